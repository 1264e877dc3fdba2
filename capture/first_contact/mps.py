"""An MPS control daemon of our own: private folders, ended with the probe. Nothing of the GPU is
set. Elsewhere it is capture/substrate/mps_daemon.hpp; this one runs where nothing was built."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Dict, Optional

CONTROL = "nvidia-cuda-mps-control"
ANSWER_S = 10.0
PIPES, LOGS = "CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_LOG_DIRECTORY"


class MpsRefused(Exception):
    """No daemon: why, with the end of its log."""


def without_mps(environment: Dict[str, str]) -> Dict[str, str]:
    """Without the variable CUDA looks at /tmp/nvidia-mps, where another daemon may listen."""
    plain = {key: value for key, value in environment.items() if not key.startswith("CUDA_MPS_")}
    return {**plain, PIPES: "/nonexistent/first-contact-no-mps"}


def with_mps_of(chosen: Dict[str, str], common: Dict[str, str]) -> Dict[str, str]:
    """The variables of the common environment, the MPS ones of the chosen one."""
    made = {key: value for key, value in common.items() if not key.startswith("CUDA_MPS_")}
    return {**made, **{key: value for key, value in chosen.items() if key.startswith("CUDA_MPS_")}}


class MpsDaemon:
    def __init__(self) -> None:
        # Paths of sockets hold 107 bytes, so not below the results.
        self.folder = Path(tempfile.mkdtemp(prefix="fc-mps-"))
        self.pipes, self.logs = self.folder / "pipe", self.folder / "log"
        self.pipes.mkdir()
        self.logs.mkdir()

    def clients(self, percentage: Optional[int] = None) -> Dict[str, str]:
        """The environment of a client."""
        made = {**without_mps(dict(os.environ)), PIPES: str(self.pipes)}
        if percentage is not None:
            made["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] = str(percentage)
        return made

    def __enter__(self) -> "MpsDaemon":
        if shutil.which(CONTROL) is None:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise MpsRefused(f"no {CONTROL} in PATH")
        try:
            self._start()
        except MpsRefused:
            self.__exit__()
            raise
        return self

    def _start(self) -> None:
        # A file and no pipe: the daemon may keep it open, and a pipe would be read to its end.
        log = self.logs / "start.log"
        try:
            with log.open("w") as output:
                done = subprocess.run([CONTROL, "-d"], env=self._environment(), stdout=output,
                                      stderr=output, stdin=subprocess.DEVNULL, timeout=ANSWER_S,
                                      check=False)
        except (OSError, subprocess.TimeoutExpired) as fault:
            raise MpsRefused(f"{CONTROL} -d: {fault} {self.said()}".strip()) from None
        if done.returncode != 0:
            raise MpsRefused(f"{CONTROL} -d ended with {done.returncode}: {self.said()}".strip())
        until = time.monotonic() + ANSWER_S
        while self._tell("get_server_list") is None:
            if time.monotonic() > until:
                raise MpsRefused(f"{CONTROL} does not answer: {self.said()}")
            time.sleep(0.1)

    def __exit__(self, *_fault: object) -> None:
        self._tell("quit")
        self._end_daemon()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _end_daemon(self) -> None:
        """Of a daemon that does not quit: its process id is in its pipe folder."""
        place = self.pipes / f"{CONTROL}.pid"
        until = time.monotonic() + 5.0
        while place.is_file() and time.monotonic() < until:
            time.sleep(0.05)
        try:
            pid = int(place.read_text())
            if Path(f"/proc/{pid}/comm").read_text().startswith("nvidia-cuda-mps"):
                os.kill(pid, signal.SIGKILL)
        except (OSError, ValueError):
            pass  # gone, as it should be

    def said(self) -> str:
        """The ends of its logs, in one line."""
        lines = []
        for path in sorted(self.logs.glob("*.log")):
            lines += path.read_text(errors="replace").strip().splitlines()[-3:]
        return " | ".join(lines)

    def _environment(self) -> Dict[str, str]:
        return {**self.clients(), LOGS: str(self.logs)}

    def _tell(self, command: str) -> Optional[str]:
        try:
            done = subprocess.run([CONTROL], input=command + "\n", env=self._environment(),
                                  capture_output=True, text=True, timeout=ANSWER_S, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout if done.returncode == 0 else None
