"""The result files that `scripts/figures` wrote, as pandas frames.

Columns and their units are those of sim/observe/OUTPUTS.md; a swept place of a config is a column
named by its JSON pointer. Nothing is simulated here.
"""
import json
import os
import pathlib

import numpy
import pandas

ROOT = pathlib.Path(__file__).resolve().parents[2]  # of the checkout
CONFIGS = ROOT / "configs"
FOLDER_VARIABLE = "BUBBLESIM_FIGURES"
DEFAULT_FOLDER = ROOT / "out" / "figures"

# Student's t, two-sided 95 %, by degrees of freedom; of more than 30 the normal's
# (NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2).
STUDENT_T = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306,
             9: 2.262, 10: 2.228, 15: 2.131, 20: 2.086, 30: 2.042}


class Missing(FileNotFoundError):
    """A result that a figure needs is not there."""


def folder():
    """Where results are and figures go: $BUBBLESIM_FIGURES, or out/figures of the checkout."""
    return pathlib.Path(os.environ.get(FOLDER_VARIABLE, DEFAULT_FOLDER))


def reduced():
    """Whether the results are of the reduced size: shapes hold, numbers mean nothing."""
    return (folder() / "reduced").exists()


def _existing(name, what):
    path = folder() / "data" / name
    if not path.exists():
        raise Missing(f"{path}: no {what} here; make it with: scripts/figures")
    return path


def sweep(name):
    """Every row of the sweep configs/figures/NAME.json: a line a run, policy and filler."""
    frame = pandas.read_csv(_existing(name + ".csv", "results"), keep_default_na=True,
                            dtype={"policy_parameters": str, "latency_lower_bound_from": str})
    text = ["policy_parameters", "latency_lower_bound_from"]
    frame[text] = frame[text].fillna("")
    return frame


def run(name):
    """The report of the run configs/figures/NAME.json (OUTPUTS.md, JSON)."""
    return json.loads(_existing(f"{name}/results.json", "report").read_text(encoding="utf-8"))


def usage(name):
    """How each GPU was used over time in that run (OUTPUTS.md, usage over time)."""
    return pandas.read_csv(_existing(f"{name}/usage.csv", "usage over time"))


def parameters(text):
    """`policy_parameters` as a dict of texts."""
    return dict(part.split("=", 1) for part in text.split(";") if part)


def parameter(frame, name):
    """One parameter of each row's policy, as text; None where the policy has no such."""
    return frame["policy_parameters"].map(lambda text: parameters(text).get(name))


def milliseconds(text):
    """A span as a config writes it, in ms."""
    for unit, factor in (("ns", 1e-6), ("us", 1e-3), ("ms", 1.0), ("s", 1e3)):
        if text.endswith(unit):
            return float(text[:-len(unit)]) * factor
    raise ValueError(f"{text!r} is no span")


def gigabytes(text):
    """A size as a config writes it, in GB."""
    if not text.endswith("GB"):
        raise ValueError(f"{text!r} is not in GB")
    return float(text[:-2])


def half_interval(values):
    """Half of the 95 % confidence interval of a mean; 0 for one value or equal ones."""
    values = numpy.asarray(values, dtype=float)
    if len(values) < 2:
        return 0.0
    freedom = len(values) - 1
    below = [f for f in STUDENT_T if f <= freedom]
    student = 1.96 if freedom > 30 else STUDENT_T[max(below)]
    return student * values.std(ddof=1) / numpy.sqrt(len(values))


def over_seeds(frame, by, column):
    """Mean and half interval of a column over what `by` does not name: seeds, as a rule.

    Columns: those of `by`, then mean, half, seeds; in the order in which `by` first appears.
    """
    groups = frame.groupby(list(by), sort=False, dropna=False)[column]
    return groups.agg(mean="mean", half=half_interval, seeds="count").reset_index()


def settings(frame):
    """Which constants a figure stands on: device, policy, and every parameter that was varied.

    A parameter that is the same in all rows of a policy is not varied and shown under `fixed`.
    """
    rows = []
    for (device, policy), part in frame.groupby(["device", "policy"], sort=False):
        values = [parameters(text) for text in part["policy_parameters"].unique()]
        names = list(dict.fromkeys(name for each in values for name in each))
        seen = {n: list(dict.fromkeys(v.get(n, "") for v in values)) for n in names}
        rows.append({
            "device": device, "policy": policy,
            "varied": "; ".join(f"{n}={', '.join(v)}" for n, v in seen.items() if len(v) > 1),
            "fixed": "; ".join(f"{n}={v[0]}" for n, v in seen.items() if len(v) == 1)})
    return pandas.DataFrame(rows)
