"""A device's constants of sharing from all tables that were measured on it at once: its time slice,
the cost of a switch of contexts, the delay of a switch of clients in one context, and what a part
of the SMs reaches.

Rows with the role fit only, of the systems mps, mps_priority, time_slicing and sm_cap. What is made
small is the mean |relative error| of a table's figures (90th and 99th percentiles left out: they
rest on few requests), mean over the tables; a row that is not predicted counts as an error of 1.
Coordinate search: each constant in turn is tried at its value times and over a step, which shrinks
when nothing is better.
"""
import math
import sys
from collections import defaultdict

from bubblesim import format_duration

from . import sharing
from .config_file import ConfigFile, constants_text, failed, find

SYSTEMS = ["mps", "mps_priority", "time_slicing", "sm_cap"]
# Name, grain (ns or a ratio), least and largest value.
CONSTANTS = [("time_slice", 100, 1e4, 1e9), ("context_switch", 100, 1e3, 1e9),
             ("client_switch", 100, 1e3, 1e8), ("part/dram_saturating_sms", 0.01, 0.01, 1),
             ("part/dark_clock_gain", 0.01, 1, 3)]
FIRST_STEP, LEAST_STEP = 1.4, 1.05


def sharing_loss(rows):
    """rows: (table, whether it is predicted, (metric, error) pairs)."""
    tables = defaultdict(list)
    for table, predicted, errors in rows:
        tables[table] += [abs(error) if predicted else 1.0 for metric, error in errors
                          if metric not in ("p90_ms", "p99_ms")]
    means = [sum(errors) / len(errors) for _, errors in sorted(tables.items())]
    return sum(means) / len(means) if means else 0.0


def rounded(value, grain, least, most):
    return min(max(math.floor(value / grain + 0.5) * grain, least), most)


def search(loss, start, rounds, names=()):
    """(values, their loss, loss at the start, evaluations). `names`: of what is fitted; none: all."""
    best, evaluations, step = list(start), 1, FIRST_STEP
    error = first = loss(best)
    for _ in range(rounds):
        if step < LEAST_STEP:
            break
        better = False
        for i, (name, grain, least, most) in enumerate(CONSTANTS):
            if names and name not in names:
                continue
            for factor in (step, 1 / step):
                tried = list(best)
                tried[i] = rounded(best[i] * factor, grain, least, most)
                if tried[i] == best[i]:
                    continue
                evaluations += 1
                found = loss(tried)
                if sys.stderr.isatty():
                    print(f"error {found:.6f}", file=sys.stderr)
                if found < error:
                    error, best, better = found, tried, True
                    break
        if not better:
            step = math.sqrt(step)
    return best, error, first, evaluations


def start_of(device):
    """The constants as the device's file has them; without parts, those of sim/hardware."""
    config = ConfigFile(find("devices", device))
    times = [config.value(name, "ns") for name, *_ in CONSTANTS[:3]]
    if "part" not in config.root:
        return [*times, 0.0, 1.0]
    return [*times, *(config.value(name, "share") for name, *_ in CONSTANTS[3:])]


def rows_at(options, values):
    """What sharing_loss takes, of the rows that can be judged."""
    rows = sharing.simulate(
        options.table, setting=options.setting, systems=SYSTEMS, role="fit", device=options.device,
        changes={name: value for (name, *_), value in zip(CONSTANTS, values)},
        threads=options.jobs)["rows"]
    judged = [row for row in rows if row["outcome"] != "stated"]
    if not judged:
        why = (f"no row can be judged: {rows[0]['note']}" if rows else
               f"no row of a {options.device} with the role fit under mps, mps_priority, "
               "time_slicing or sm_cap")
        raise failed([("", "", why)])
    return [(row["table"], row["outcome"] == "predicted",
             [(figure["metric"], sharing.relative(figure)) for figure in row["figures"]])
            for row in judged]


def main(options):
    start = start_of(options.device)
    count = len(rows_at(options, start))
    values, error, first, evaluations = search(
        lambda tried: sharing_loss(rows_at(options, tried)), start, options.rounds,
        options.constant)
    print(f"{count} rows, {evaluations} evaluations, mean |error| {100 * first:.2f} % -> "
          f"{100 * error:.2f} %")

    def text(value, time):
        return format_duration(int(value + 0.5)) if time else f"{value:.2f}"
    print(constants_text([
        (name, "" if grain == 100 else "ratio", text(a, grain == 100), text(b, grain == 100))
        for (name, grain, *_), a, b in zip(CONSTANTS, start, values)]), end="")
