#!/usr/bin/env python3
"""Instructions an event and a kernel, counted by callgrind: what a busy machine cannot blur.

  tests/bench/instructions.py [build/release]

Needs valgrind. Only what runs inside the event loop is counted, with all that it calls. Prints a
Markdown table; tests/bench/README.md has it.
"""
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

LOOPS = ("bubblesim::engine::Engine::run_until*", "bubblesim::engine::Conductor::run_until*",
         "bubblesim::workload::pass_times*")
# Program, its case, and the function that is called once a unit.
CASES = (
    ("event_queue_bench", "hold_engine/16$", "event", "Holder::on_event"),
    ("event_queue_bench", "hold_engine/256$", "event", "Holder::on_event"),
    ("event_queue_bench", "hold_engine/4096$", "event", "Holder::on_event"),
    ("event_queue_bench", "hold_engine/65536$", "event", "Holder::on_event"),
    ("replay_bench", "job_alone_recurrence/8$", "kernel", "RankRecurrence::launch("),
    ("replay_bench", "job_alone/1$", "kernel", "gpu::Gpu::submit("),
    ("replay_bench", "job_and_filler/exclusive/1$", "kernel", "gpu::Gpu::submit("),
    ("replay_bench", "job_and_filler/mps/1$", "kernel", "gpu::Gpu::submit("),
    ("replay_bench", "job_and_4_fillers/mps/1$", "kernel", "gpu::Gpu::submit("),
    ("replay_bench", "job_and_12_fillers/mps/1$", "kernel", "gpu::Gpu::submit("),
    ("replay_bench", "job_and_48_fillers/mps/1$", "kernel", "gpu::Gpu::submit("),
    ("replay_bench", "job_and_filler/specinf/1$", "kernel", "gpu::Gpu::submit("),
)


def read_profile(path):
    """All instructions, and how often each function was called."""
    names, calls, total, callee = {}, Counter(), 0, None
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        if match := re.match(r"(c?fn)=\((\d+)\)(?: (.*))?$", line):
            kind, number, name = match.groups()
            if name:
                names[number] = name
            callee = number if kind == "cfn" else callee
        elif match := re.match(r"calls=(\d+)", line):
            calls[callee] += int(match.group(1))
        elif match := re.match(r"(?:summary|totals): (\d+)", line):
            total = int(match.group(1))
    return total, Counter({names[number]: count for number, count in calls.items()})


def measure(folder, program, case, unit_function):
    with tempfile.TemporaryDirectory() as scratch:
        out = f"{scratch}/profile"
        toggles = [f"--toggle-collect={loop}" for loop in LOOPS]
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", *toggles,
                   f"{folder}/tests/bench/{program}", f"--benchmark_filter={case}",
                   "--benchmark_min_time=0.05"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}\n{done.stderr}")
        total, calls = read_profile(out)
    units = sum(count for name, count in calls.items() if unit_function in name)
    if units == 0:
        sys.exit(f"{program} {case}: {unit_function} was never called")
    return total / units


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else "build/release"
    print("| program | case | instructions | an |\n|---|---|--:|---|")
    for program, case, unit, function in CASES:
        print(f"| `{program}` | `{case[:-1]}` | {measure(folder, program, case, function):.0f} "
              f"| {unit} |", flush=True)


if __name__ == "__main__":
    main()
