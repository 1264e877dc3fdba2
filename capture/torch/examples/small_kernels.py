#!/usr/bin/env python3
"""Thousands of tiny kernels a second: the worst case of a recorder. An iteration launches
--launches kernels over --streams streams, with --gap turns of an empty loop before each: work of
the host that is always the same, so that what a recorder costs adds to it and is not hidden, as
it would be by a pace. The default makes 5,000 to 10,000 launches a second; the rate is printed.

Examples:
  python3 small_kernels.py
  python3 small_kernels.py --gap 8000 --launches 500
  python3 small_kernels.py --gap 0 --streams 4     (as fast as the host can)
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

import torch

from jobs import steps


def parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    number = steps.whole_number
    parser.add_argument("--launches", type=number(1), default=1000, help="of an iteration")
    parser.add_argument("--gap", type=number(0), default=5000,
                        help="turns of an empty loop before each launch")
    parser.add_argument("--streams", type=number(1), default=1, help="taken in turn")
    parser.add_argument("--elements", type=number(1), default=1024, help="of each kernel's vector")
    steps.add_step_options(parser, iterations=50)
    return parser.parse_args(argv)


def make_step(arguments: argparse.Namespace, device: torch.device) -> Any:
    vectors = [torch.zeros(arguments.elements, device=device) for _ in range(arguments.streams)]
    on_gpu = device.type == "cuda"
    streams = [torch.cuda.Stream() for _ in vectors] if on_gpu and arguments.streams > 1 else []

    def launch(number: int) -> None:
        place = number % arguments.streams
        if streams:
            with torch.cuda.stream(streams[place]):
                vectors[place].add_(1.0)
        else:
            vectors[place].add_(1.0)

    def step(_number: int) -> None:
        for number in range(arguments.launches):
            for _ in range(arguments.gap):
                pass
            launch(number)
        for stream in streams:
            torch.cuda.current_stream().wait_stream(stream)

    return step


def main(argv: list[str]) -> int:
    arguments = parse(argv)
    device = steps.device_of(arguments.device)
    facts = {"model": "small-kernels", "plan": "none", "launches": arguments.launches,
             "gap": arguments.gap}
    seconds = steps.run(make_step(arguments, device), arguments, device, facts)
    print(f"{arguments.launches * len(seconds) / sum(seconds):.0f} launches a second")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
