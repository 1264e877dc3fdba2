#!/usr/bin/env python3
"""A job without PyTorch and GPU, with the options that campaigns give: --hold, --times,
--iterations. For tests of capture/campaign.sh.

Example:
  python3 fake_job.py --iterations 5 --times times.json
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--iterations", type=int, default=5)
    parser.add_argument("--times", type=Path)
    parser.add_argument("--hold", type=Path)
    parser.add_argument("--milliseconds", type=float, default=1.0, help="of an iteration")
    parser.add_argument("--fail", action="store_true", help="end with exit code 3 at once")
    arguments = parser.parse_args(argv)
    if arguments.fail:
        print("fake job: told to fail", file=sys.stderr)
        return 3
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
        time.sleep(arguments.milliseconds * 1e-3)
        seconds.append(time.perf_counter() - began)
    if arguments.times:
        facts = {"iteration_s": seconds, "device": "none", "torch": "none", "cuda": None}
        arguments.times.write_text(json.dumps(facts))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
