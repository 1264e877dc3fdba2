"""What the tour shows: a trace's bubbles, and the policies side by side.

Frames come from the Python package `bubblesim`; times are nanoseconds there and milliseconds here.
Timelines and stores are drawn by the program itself: `inspect --plot`, `view`, `report`.
"""
import os
import subprocess

from .results import ROOT, folder

TRAINING = ROOT / "traces" / "samples" / "training"
RUN = ROOT / "configs" / "runs" / "example.json"
SWEEP = ROOT / "configs" / "sweeps" / "load-latency.json"

# What the columns of a run that a newcomer looks at first are called here.
FIRST_LOOK = {
    "policy": "policy", "training_normalised_fraction": "training kept",
    "filler_requests_per_s": "requests/s", "latency_p95_ms": "p95 (ms)",
    "bubble_fraction": "bubble", "bubble_recovered_fraction": "of it filled"}


def bubbles_by_cause(trace):
    """Milliseconds of bubble of each rank by cause, over all of the trace's iterations."""
    frame = trace.bubbles()
    out = frame.groupby(["cause", "rank"])["duration_ns"].sum().unstack("rank") / 1e6
    return out.fillna(0).sort_values(out.columns[0], ascending=False)


def program():
    """The command `bubblesim`: $BUBBLESIM, the one that scripts/demo builds, or an installed one."""
    built = ROOT / "build" / "demo" / "sim" / "app" / "bubblesim"
    return os.environ.get("BUBBLESIM") or (built if built.exists() else "bubblesim")


def made(name, *command):
    """The file NAME of the figures' folder, which the command writes; its path is put last."""
    path = folder() / name
    path.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run([str(part) for part in (program(), *command, path)], check=True,
                   stdout=subprocess.DEVNULL)
    return path


def picture(name, *command):
    """Shows such a file, an SVG."""
    from IPython.display import SVG
    return SVG(filename=str(made(name, *command)))


def first_look(result):
    """The columns of a run to look at first."""
    frame = result.frame()
    bound = frame["latency_lower_bound_from"].isin(["p50", "p90", "p95"])
    out = frame[list(FIRST_LOOK)].rename(columns=FIRST_LOOK).round(3)
    out["p95 (ms)"] = [("> " if b else "") + f"{v:.1f}" if v == v else ""
                       for b, v in zip(bound, frame["latency_p95_ms"])]
    return out.set_index("policy")


def load_table(results):
    """The sweep's p95 latencies in ms: a row a load in requests/s, a column a policy."""
    load = "/fillers/encoder-online/arrivals/rate_per_s"
    frame = results.rename(columns={load: "requests/s offered"})
    return frame.pivot_table("latency_p95_ms", "requests/s offered", "policy").round(1)
