#!/usr/bin/env python3
"""A CUDA program without compiler, toolkit and PyTorch: kernels out of PTX by the driver's own
interface, with the options that campaigns give. The least that a recorder can be loaded into.

Example:
  bubblesim capture -o out/small -- python3 capture/first_contact/driver_job.py --iterations 20
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import signal
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from first_contact.cuda import CudaFault, Driver, probe_module  # noqa: E402


def hold(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "ready.part").write_text(str(os.getpid()))
    (folder / "ready.part").rename(folder / "ready")
    until = time.monotonic() + 120
    while not (folder / "go").exists():
        if time.monotonic() > until:
            raise SystemExit(f"nobody wrote {folder / 'go'}")
        time.sleep(0.005)


def main(argv: list) -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--iterations", type=int, default=10)
    parser.add_argument("--times", type=Path)
    parser.add_argument("--hold", type=Path)
    parser.add_argument("--launches", type=int, default=200, help="kernels of an iteration")
    parser.add_argument("--loops", type=int, default=20000, help="work of a kernel")
    parser.add_argument("--pause-ms", type=float, default=2.0, help="after an iteration")
    parser.add_argument("--seconds", type=float, default=0.0,
                        help="iterations until so much time has passed")
    arguments = parser.parse_args(argv)
    # A filler is told to end; it still says what it did.
    stopped = []
    signal.signal(signal.SIGTERM, lambda *_: stopped.append(True))
    try:
        driver = Driver()
        driver.use()
        module = probe_module(driver)
        sms = driver.attribute(16)
        out = driver.allocate(24 * sms)
        module.launch("blocks", sms, 256, out, ctypes.c_uint32(arguments.loops))
        driver.synchronize()
        if arguments.hold:
            hold(arguments.hold)
        seconds = []
        until = time.monotonic() + arguments.seconds
        while not stopped and (len(seconds) < arguments.iterations if not arguments.seconds
                               else time.monotonic() < until):
            began = time.perf_counter()
            for _ in range(arguments.launches):
                module.launch("blocks", sms, 256, out, ctypes.c_uint32(arguments.loops))
            driver.synchronize()
            seconds.append(time.perf_counter() - began)
            time.sleep(arguments.pause_ms * 1e-3)
    except CudaFault as fault:
        print(f"driver job: {fault}", file=sys.stderr)
        return 3
    if arguments.times:
        facts = {"iteration_s": seconds, "device": driver.facts()["name"], "torch": None,
                 "cuda": None}
        arguments.times.write_text(json.dumps(facts))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
