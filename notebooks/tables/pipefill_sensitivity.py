"""What PipeFill's filling depends on: length of bubbles, free memory, the rule of its scheduler.

Tables as in pipefill.py; `share` is a fill job's rate over that of a GPU of its own.
"""
import pandas

from . import results
from .pipefill import PLAN, gpus, programs, setting, sharing, slowdown


def length(frame, name="pipefill-length"):
    """A row a length of samples, fill job and sharing: `bubble_ms` is a GPU's bubble time of an
    iteration of the job alone, `share` what the fill job gets."""
    given = frame.assign(series=sharing(frame), tokens=setting(frame, PLAN + "sequence", name),
                         bubble_ms=frame["bubble_fraction"] * frame["training_iteration_mean_ms"])
    given = pandas.concat([given, programs(given, name)[["model", "batch"]]], axis=1)
    by = ["tokens", "model"]
    alone = given[given["series"] == "exclusive"][by + ["bubble_ms"]].drop_duplicates(by)
    part = given[given["series"] != "exclusive"].drop(columns="bubble_ms").merge(alone, on=by)
    return part.assign(slowdown=slowdown(part), share=part["filler_normalised_fraction"])[
        by + ["bubble_ms", "series", "share", "slowdown"]]


def short(frame, name="pipefill-short"):
    """A row a least length of bubbles that are filled, scale, schedule and sharing."""
    return pandas.DataFrame({
        "gpus": gpus(frame, name), "series": sharing(frame),
        "schedule": setting(frame, PLAN + "schedule", name),
        "min_bubble_ms": results.parameter(frame, "min_bubble").map(results.milliseconds),
        "share": frame["filler_normalised_fraction"], "slowdown": slowdown(frame)})


def memory(frame, name="pipefill-memory"):
    """A row a size of the fill job, scale and whether memory is moved."""
    moved = results.parameter(frame, "offload").map({"true": "moved to host", "false": "stays"})
    return pandas.DataFrame({
        "gpus": gpus(frame, name), "series": moved,
        "memory_GB": setting(frame, "/fillers/0/memory", name).map(results.gigabytes),
        "share": frame["filler_normalised_fraction"], "slowdown": slowdown(frame)})


def names_at(frame, column):
    """A line's name for each row: how contexts share or where memory is, at what."""
    shown = {"pipefill": "time slices", "PipeFill, MPS": "MPS"}
    at = [f"{v:,} GPUs" if column == "gpus" else v for v in frame[column]]
    return [f"{shown.get(s, s)}, {a}" for s, a in zip(frame["series"], at)]


def queue(report):
    """A row a scheduler rule: what became of the fill jobs."""
    rows = []
    for policy in report["policies"]:
        jobs = policy["fillers"][0]["jobs"]
        rule = {each["name"]: each["value"] for each in policy["parameters"]}["schedule"]
        rows.append({"rule": rule, "finished": jobs["finished"], "submitted": jobs["submitted"],
                     "mean_completion_s": (jobs["mean_completion_ns"] or 0) / 1e9,
                     "makespan_s": (jobs["makespan_ns"] or float("nan")) / 1e9,
                     "deadlines_met": jobs["deadlines_met"],
                     "slowdown": 1 / policy["training"]["normalised_fraction"] - 1})
    return pandas.DataFrame(rows)


def completions(report):
    """A row a finished job and rule, in order: `done` is the part of all jobs that have ended
    after `completion_s` since their submission."""
    rows = []
    for policy in report["policies"]:
        rule = {each["name"]: each["value"] for each in policy["parameters"]}["schedule"]
        jobs = policy["fillers"][0]["jobs"]["list"]
        times = sorted((each["ended_ns"] - each["submitted_ns"]) / 1e9 for each in jobs
                       if each["ended_ns"] is not None)
        rows += [{"rule": rule, "completion_s": time, "done": (i + 1) / len(jobs)}
                 for i, time in enumerate(times)]
    return pandas.DataFrame(rows, columns=["rule", "completion_s", "done"])
