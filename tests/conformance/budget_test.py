"""No test and no test program takes more than its share of the first stage of scripts/test.

    budget_test.py LOG NINJA_LOG...    CTest's log of this run; what Ninja says of each build

Shares, not seconds: they are the same on slow machines, and both jobs of a run share the cores alike.
A case of CTest may take CASE of the time of all; what is built for one test program, PROGRAM of the
time of all builds.
"""
import collections
import re
import sys
from pathlib import Path

CASE = 0.12
PROGRAM = 0.02
CASE_TIME = re.compile(r"^\d+/\d+ Testing: (\S+)|^Test time = +([\d.]+) sec", re.M)
PROGRAM_OBJECT = re.compile(r"tests/.*CMakeFiles/([^/]+)\.dir/")


def cases(log):
    """Seconds by case, in the order of the log, in which each case's name comes before its time."""
    seconds, name = {}, None
    for found_name, found_time in CASE_TIME.findall(log):
        if found_name:
            name = found_name
        elif name:
            seconds[name] = float(found_time)
    return seconds


def build_steps(log):
    """Seconds by what was built; a step with several outputs, which has a line each, counts once."""
    steps = {}
    for line in log.splitlines():
        fields = line.split("\t")
        if len(fields) == 5:
            start, end, _, output, command = fields
            steps[command] = (output, (int(end) - int(start)) / 1000)
    return steps.values()


def too_large(seconds, whole, share):
    return [f"{name}: {value:.1f} of {whole:.0f} s are {value / whole:.1%}, allowed: {share:.0%}"
            for name, value in sorted(seconds.items()) if value > share * whole]


def main():
    log, *builds = map(Path, sys.argv[1:])
    by_case = cases(log.read_text(encoding="utf-8", errors="replace"))
    by_program, built = collections.Counter(), 0.0
    for build in builds:
        for output, seconds in build_steps(build.read_text()) if build.exists() else ():
            built += seconds
            if found := PROGRAM_OBJECT.search(output):
                by_program[found.group(1)] += seconds
    print(f"{len(by_case)} cases took {sum(by_case.values()):.0f} s; {len(by_program)} test programs "
          f"{sum(by_program.values()):.0f} of the builds' {built:.0f} s")
    faults = too_large(by_case, sum(by_case.values()), CASE) + too_large(by_program, built, PROGRAM)
    print("\n".join(faults))
    if len(by_case) < 100:
        print("skipped: a run of a few tests has no shares")
        sys.exit(77)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
