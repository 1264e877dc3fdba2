#!/usr/bin/env python3
"""What runs that end when their figures are known cost, beside runs of given lengths.

  tests/bench/auto_saving.py [build/release] [--policy mps,specinf,tgs] [--skip-long]

Runs each config of configs/runs, and each of configs/figures and configs/sweeps (of a sweep: its
base), that has a duration and no fill jobs: as it is, with "duration": "auto", and for the 120 s
after 60 s of warm-up that `bubblesim run` takes without a config; --skip-long: not these, of which
only CPU is not known before. Prints a Markdown table of simulated seconds, of all policies
together, and of CPU; tests/bench/README.md has it.
"""
import argparse
import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LONG = {"duration": "180s", "warmup": "60s"}
LONG_SECONDS = 180.0


def with_absolute_paths(value, folder):
    if isinstance(value, dict):
        return {key: with_absolute_paths(item, folder) for key, item in value.items()}
    if isinstance(value, list):
        return [with_absolute_paths(item, folder) for item in value]
    if isinstance(value, str) and value.startswith("../"):
        return str((folder / value).resolve())
    return value


def config_of(path):
    """The run's config, or the base of a sweep; None: its end does not depend on a duration."""
    document = json.loads(path.read_text(encoding="utf-8"))
    config = document.get("base", document)
    if not isinstance(config, dict) or "duration" not in config:
        return None
    if any(filler.get("mode") == "jobs" for filler in config.get("fillers", [])):
        return None
    return with_absolute_paths(config, path.parent)


def automatic(config):
    return {**{key: value for key, value in config.items() if key != "warmup"}, "duration": "auto"}


def cpu_of_children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def simulate(program, config, policies):
    """Simulated seconds, CPU seconds, figures that were not known at the end."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(config, file)
        file.flush()
        before = cpu_of_children()
        done = subprocess.run([program, "run", file.name, "--policy", policies, "--json",
                               "--threads", "1"], capture_output=True, text=True, check=False)
        cpu = cpu_of_children() - before
    if not done.stdout:
        sys.exit(done.stderr)
    runs = json.loads(done.stdout)["policies"]
    figures = [figure for run in runs for figure in run.get("precision", {}).get("figures", [])]
    unknown = sum(not figure["reached"] and not figure["overloaded"] for figure in figures)
    return sum(run["simulated_ns"] for run in runs) * 1e-9, cpu, unknown


def long_run(program, config, given):
    if not given.skip_long:
        return simulate(program, {**config, **LONG}, given.policy)
    return LONG_SECONDS * len(given.policy.split(",")), float("nan"), 0


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("folder", nargs="?", default="build/release")
    arguments.add_argument("--policy", default="mps,specinf,tgs")
    arguments.add_argument("--skip-long", action="store_true")
    given = arguments.parse_args()
    program = f"{given.folder}/sim/app/bubblesim"
    print("| config | s: as it is | auto | 120 s | CPU s: as it is | auto | 120 s | not known |\n"
          "|---|--:|--:|--:|--:|--:|--:|--:|")
    total = [0.0] * 7
    for path in sorted(path for folder in ("runs", "figures", "sweeps")
                       for path in (ROOT / "configs" / folder).glob("*.json")):
        config = config_of(path)
        if config is None:
            continue
        runs = [simulate(program, each, given.policy) for each in (config, automatic(config))]
        runs.append(long_run(program, config, given))
        row = [run[0] for run in runs] + [run[1] for run in runs] + [runs[1][2]]
        total = [sum(pair) for pair in zip(total, row)]
        print_row(f"`{path.parent.name}/{path.stem}`", row)
    print_row("all", total)


def print_row(name, row):
    seconds = " | ".join(f"{value:.1f}" for value in row[:6])
    print(f"| {name} | {seconds} | {row[6]:.0f} |", flush=True)


if __name__ == "__main__":
    main()
