"""Marked, timed iterations, the same for every example.

Warm-up iterations are not marked. Then, with --hold FOLDER, the job writes its process id to
FOLDER/ready and goes on when FOLDER/go is there: a recording can be started between the two.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any, Callable

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from standin.ranges import marked  # noqa: E402

HOLD_LIMIT_S = 120.0


def whole_number(least: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not text.isdigit() or int(text) < least:
            raise argparse.ArgumentTypeError(
                f"found {text!r}; expected a whole number from {least}"
            )
        return int(text)

    return parse


def add_step_options(parser: argparse.ArgumentParser, iterations: int = 10) -> None:
    parser.add_argument("--iterations", type=whole_number(1), default=iterations,
                        help="marked iterations (default: %(default)s)")
    parser.add_argument("--warmup", type=whole_number(0), default=3,
                        help="iterations before them, not marked (default: %(default)s)")
    parser.add_argument("--times", type=Path, metavar="FILE",
                        help="write the time of each iteration and versions, as JSON")
    parser.add_argument("--hold", type=Path, metavar="FOLDER",
                        help="after warm-up write FOLDER/ready and wait for FOLDER/go")
    parser.add_argument("--device", choices=("auto", "cuda", "cpu"), default="auto",
                        help="auto: the GPU if there is one")
    parser.add_argument("--seed", type=whole_number(0), default=1, help="of weights and inputs")


def device_of(name: str) -> torch.device:
    if name == "cuda" and not torch.cuda.is_available():
        raise SystemExit("error: --device cuda: PyTorch finds no GPU "
                         f"(PyTorch {torch.__version__}, built for CUDA {torch.version.cuda})")
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(name, 0) if name == "cuda" else torch.device(name)


class Clock:
    """Instants on the device without stopping it; on the host where there is none."""

    def __init__(self, device: torch.device) -> None:
        self._cuda = device.type == "cuda"
        self._marks: list[Any] = []

    def mark(self) -> None:
        if self._cuda:
            event = torch.cuda.Event(enable_timing=True)
            event.record()
            self._marks.append(event)
        else:
            self._marks.append(time.perf_counter())

    def seconds(self) -> list[float]:
        """Between neighbouring marks."""
        pairs = zip(self._marks, self._marks[1:])
        if self._cuda:
            torch.cuda.synchronize()
            return [a.elapsed_time(b) * 1e-3 for a, b in pairs]
        return [b - a for a, b in pairs]


def hold(folder: Path | None, device: torch.device) -> None:
    if folder is None:
        return
    if device.type == "cuda":
        torch.cuda.synchronize()
    folder.mkdir(parents=True, exist_ok=True)
    partial = folder / "ready.part"
    partial.write_text(str(os.getpid()))
    partial.rename(folder / "ready")
    until = time.monotonic() + HOLD_LIMIT_S
    while not (folder / "go").exists():
        if time.monotonic() > until:
            raise SystemExit(f"error: nobody wrote {folder / 'go'} within {HOLD_LIMIT_S:.0f} s")
        time.sleep(0.01)


def run(step: Callable[[int], None], arguments: argparse.Namespace, device: torch.device,
        facts: dict[str, Any]) -> list[float]:
    """Runs `step(number)`; numbers of warm-up iterations are negative."""
    for number in range(-arguments.warmup, 0):
        step(number)
    hold(arguments.hold, device)
    clock = Clock(device)
    clock.mark()
    for number in range(arguments.iterations):
        with marked(f"iteration {number}"):
            step(number)
        clock.mark()
    seconds = clock.seconds()
    report(seconds, arguments, device, facts)
    return seconds


def report(seconds: list[float], arguments: argparse.Namespace, device: torch.device,
           facts: dict[str, Any]) -> None:
    middle = sorted(seconds)[len(seconds) // 2]
    print(f"{len(seconds)} iterations, median {middle * 1e3:.3f} ms")
    if arguments.times is None:
        return
    on_gpu = device.type == "cuda"
    result = {
        "iteration_s": seconds,
        "device": torch.cuda.get_device_name(device) if on_gpu else "cpu",
        "torch": torch.__version__,
        "cuda": torch.version.cuda if on_gpu else None,
        "peak_bytes": torch.cuda.max_memory_allocated(device) if on_gpu else 0,
        **facts,
    }
    partial = arguments.times.with_suffix(".part")
    partial.write_text(json.dumps(result) + "\n")
    partial.replace(arguments.times)
