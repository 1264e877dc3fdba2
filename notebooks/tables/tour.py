"""What the tour shows: a trace's bubbles, a run's timeline, and the policies side by side.

Frames come from the Python package `bubblesim`; times are nanoseconds there and milliseconds here.
"""
from . import draw
from .results import ROOT

TRAINING = ROOT / "traces" / "samples" / "training"
RUN = ROOT / "configs" / "runs" / "example.json"
SWEEP = ROOT / "configs" / "sweeps" / "load-latency.json"

# What the columns of a run that a newcomer looks at first are called here.
FIRST_LOOK = {
    "policy": "policy", "training_normalised_fraction": "training kept",
    "filler_requests_per_s": "requests/s", "latency_p95_ms": "p95 (ms)",
    "bubble_fraction": "bubble", "bubble_recovered_fraction": "of it filled"}

COLOURS = {"kernel": draw.BLUE, "collective": draw.ORANGE, "filler": draw.GREEN,
           "bubble": draw.VERMILION}


def bubbles_by_cause(trace):
    """Milliseconds of bubble of each rank by cause, over all of the trace's iterations."""
    frame = trace.bubbles()
    out = frame.groupby(["cause", "rank"])["duration_ns"].sum().unstack("rank") / 1e6
    return out.fillna(0).sort_values(out.columns[0], ascending=False)


def iteration_of(trace, number):
    """Start and end (recorded ns) of an iteration on the first rank."""
    row = trace[0].iterations().set_index("number").loc[number]
    return int(row["start_ns"]), int(row["end_ns"])


def recorded(trace, number):
    """What ran on each rank's GPU in an iteration: rank, what, from_ms, to_ms in it."""
    begin, end = iteration_of(trace, number)
    parts = []
    for what, frame in (("bubble", trace.bubbles()), ("kernel", trace.kernels()),
                        ("collective", trace.collective_ops())):
        frame = frame[["rank", "start_ns", "duration_ns"]].assign(what=what)
        parts.append(_within(frame.rename(columns={"rank": "row"}), begin, end))
    return parts


def simulated(result, length_ms):
    """The same of a run whose timeline was recorded, from where it begins: rows are GPUs."""
    timeline = result.timeline()
    begin = int(timeline["start_ns"].min())
    kept = timeline[timeline["kind"].isin(["kernel", "collective"])]
    ours = kept["client"].str.startswith("training")
    parts = []
    for what, wanted in (("kernel", ours & (kept["kind"] == "kernel")),
                         ("collective", ours & (kept["kind"] == "collective")),
                         ("filler", ~ours)):
        frame = kept[wanted].assign(what=what, row=kept["gpu"],
                                    duration_ns=kept["end_ns"] - kept["start_ns"])
        parts.append(_within(frame, begin, begin + int(length_ms * 1e6)))
    return parts


def _within(frame, begin, end):
    """Of spans, what lies between two instants, in ms from the first."""
    start = frame["start_ns"].clip(begin, end)
    stop = (frame["start_ns"] + frame["duration_ns"]).clip(begin, end)
    out = frame.assign(from_ms=(start - begin) / 1e6, length_ms=(stop - start) / 1e6)
    return out.loc[stop > start, ["row", "what", "from_ms", "length_ms"]]


def timeline(axes, parts, row_name):
    """Draws such parts: a lane a row, and in its upper part bubbles or fillers."""
    rows = sorted({row for part in parts for row in part["row"].unique()})
    for part in parts:
        for (row, what), spans in part.groupby(["row", "what"]):
            above = what in ("bubble", "filler")
            low, height = rows.index(row) + (0.1 if above else 0.45), 0.32 if above else 0.45
            axes.broken_barh(list(zip(spans["from_ms"], spans["length_ms"])), (low, height),
                             facecolors=COLOURS[what], linewidth=0, rasterized=True)
    axes.set_yticks([i + 0.5 for i in range(len(rows))], [f"{row_name} {row}" for row in rows])
    axes.invert_yaxis()
    axes.set_xlabel("ms")
    axes.grid(False)


def key(figure, *what):
    """A legend of timeline colours."""
    from matplotlib.patches import Patch
    figure.legend(handles=[Patch(color=COLOURS[w], label=w) for w in what], ncol=len(what),
                  loc="lower center", bbox_to_anchor=(0.5, 1.0))


def first_look(result):
    """The columns of a run to look at first."""
    frame = result.frame()
    bound = frame["latency_lower_bound_from"].isin(["p50", "p90", "p95"])
    out = frame[list(FIRST_LOOK)].rename(columns=FIRST_LOOK).round(3)
    out["p95 (ms)"] = [("> " if b else "") + f"{v:.1f}" if v == v else ""
                       for b, v in zip(bound, frame["latency_p95_ms"])]
    return out.set_index("policy")


def load_curve(results):
    """Of the sweep's store: policy, requests/s offered, mean p95 and its half interval in ms."""
    from . import results as files
    load = "/fillers/encoder-online/arrivals/rate_per_s"
    frame = results.rename(columns={load: "offered"})
    served = frame[frame["latency_p95_ms"].notna()]
    return files.over_seeds(served, ["policy", "offered"], "latency_p95_ms")
