#!/usr/bin/env python3
"""A job without PyTorch and GPU, with the options that campaigns give: --hold, --times,
--iterations. For tests of capture/campaign.sh.

Where BUBBLESIM_FAKE_CUDA names a stand-in of the driver (tests/fakes/cuda), each iteration launches
kernels on it, which a recorder in the process sees.

Example:
  python3 fake_job.py --iterations 5 --times times.json
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import sys
import time
from pathlib import Path


class Launch(ctypes.Structure):
    """A kernel, as tests/fakes/cuda/fake_cuda.hpp declares it."""

    _fields_ = [("device", ctypes.c_uint32), ("stream", ctypes.c_uint32),
                ("name", ctypes.c_char_p), ("ns", ctypes.c_uint64)]


class FakeGpu:
    """Launches kernels of 20 us on the stand-in of the driver; without one, does nothing."""

    def __init__(self) -> None:
        path = os.environ.get("BUBBLESIM_FAKE_CUDA")
        self.driver = ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL) if path else None
        if self.driver and self.driver.cuInit(0) != 0:
            raise SystemExit("fake job: the stand-in of the driver does not start")

    def launch(self, count: int) -> None:
        kernel = Launch(0, 7, b"fake_kernel", 20_000)
        for _ in range(count if self.driver else 0):
            self.driver.fake_cuda_launch(ctypes.byref(kernel))


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--iterations", type=int, default=5)
    parser.add_argument("--times", type=Path)
    parser.add_argument("--hold", type=Path)
    parser.add_argument("--milliseconds", type=float, default=1.0, help="of an iteration")
    parser.add_argument("--launches", type=int, default=100, help="kernels of an iteration")
    parser.add_argument("--fail", action="store_true", help="end with exit code 3 at once")
    arguments = parser.parse_args(argv)
    if arguments.fail:
        print("fake job: told to fail", file=sys.stderr)
        return 3
    gpu = FakeGpu()
    if arguments.hold:
        arguments.hold.mkdir(parents=True, exist_ok=True)
        (arguments.hold / "ready.part").write_text(str(os.getpid()))
        (arguments.hold / "ready.part").rename(arguments.hold / "ready")
        until = time.monotonic() + 60
        while not (arguments.hold / "go").exists() and time.monotonic() < until:
            time.sleep(0.005)
    seconds = []
    for _ in range(arguments.iterations):
        began = time.perf_counter()
        gpu.launch(arguments.launches)
        time.sleep(arguments.milliseconds * 1e-3)
        seconds.append(time.perf_counter() - began)
    if arguments.times:
        facts = {"iteration_s": seconds, "device": "none", "torch": "none", "cuda": None}
        arguments.times.write_text(json.dumps(facts))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
