#!/usr/bin/env python3
"""Thousands of tiny kernels a second: the worst case of a recorder. An iteration launches
--launches kernels at --rate a second, over --streams streams.

Examples:
  python3 small_kernels.py
  python3 small_kernels.py --rate 5000 --launches 500
  python3 small_kernels.py --rate 0 --streams 4     (as fast as the host can)
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

import torch

from jobs import steps


def parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    number = steps.whole_number
    parser.add_argument("--launches", type=number(1), default=1000, help="of an iteration")
    parser.add_argument("--rate", type=number(0), default=10000,
                        help="launches a second; 0: as many as can be")
    parser.add_argument("--streams", type=number(1), default=1, help="taken in turn")
    parser.add_argument("--elements", type=number(1), default=1024, help="of each kernel's vector")
    steps.add_step_options(parser, iterations=50)
    return parser.parse_args(argv)


def make_step(arguments: argparse.Namespace, device: torch.device) -> Any:
    vectors = [torch.zeros(arguments.elements, device=device) for _ in range(arguments.streams)]
    on_gpu = device.type == "cuda"
    streams = [torch.cuda.Stream() for _ in vectors] if on_gpu and arguments.streams > 1 else []
    span = arguments.launches / arguments.rate if arguments.rate else 0.0

    def launch(number: int) -> None:
        place = number % arguments.streams
        if streams:
            with torch.cuda.stream(streams[place]):
                vectors[place].add_(1.0)
        else:
            vectors[place].add_(1.0)

    def step(_number: int) -> None:
        began = time.perf_counter()
        for number in range(arguments.launches):
            # Every tenth launch looks at the clock: the pace is even at that grain.
            while span and number % 10 == 0 and (
                time.perf_counter() - began < span * number / arguments.launches
            ):
                pass
            launch(number)
        for stream in streams:
            torch.cuda.current_stream().wait_stream(stream)

    return step


def main(argv: list[str]) -> int:
    arguments = parse(argv)
    device = steps.device_of(arguments.device)
    facts = {"model": "small-kernels", "plan": "none", "launches": arguments.launches,
             "rate": arguments.rate}
    steps.run(make_step(arguments, device), arguments, device, facts)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
