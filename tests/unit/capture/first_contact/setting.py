"""Where the tests find what they test, and a machine that is made of fakes."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[3]
SCRIPT = str(ROOT / "capture" / "first_contact.sh")
sys.path[:0] = [str(ROOT / "capture"), str(ROOT / "capture" / "torch")]
DRIVER = os.environ.get("FAKE_LIBCUDA_FILE", "")


class Machine(unittest.TestCase):
    """A folder, a PATH with a fake MPS, and a driver without a device."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.out = self.folder / "out"
        self.programs = self.folder / "bin"
        self.programs.mkdir()
        (self.programs / "nvidia-cuda-mps-control").symlink_to(HERE / "fake_mps_control")

    def environment(self, **more: str) -> dict:
        plain = {key: value for key, value in os.environ.items()
                 if not key.startswith(("CUDA_", "FAKE_", "BUBBLESIM_"))}
        return {**plain, "PATH": f"{self.programs}:/usr/bin:/bin", "FIRST_CONTACT_LIBCUDA": DRIVER,
                "FIRST_CONTACT_PLACES": "", **more}

    def run_script(self, *arguments: str, limit_s: float = 100,
                   **more: str) -> "subprocess.CompletedProcess[str]":
        command = ["bash", SCRIPT, "--out", str(self.out), "--python", sys.executable, *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=limit_s,
                              check=False, env=self.environment(**more))

    def with_program(self, *arguments: str, **more: str) -> "subprocess.CompletedProcess[str]":
        return self.run_script("--bubblesim", str(HERE / "fake_bubblesim"), *arguments, **more)
