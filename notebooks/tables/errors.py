"""Simulated against measured: a picture of what `bubblesim validate RUN MEASURED --csv` writes.

    python3 -m tables.errors errors.csv errors.svg     (from this folder's parent)

Line: equal. Band: within 5 %. Hollow: the cell took part in a fit.
"""
import sys

import matplotlib.pyplot as pyplot
import pandas

from . import draw

BAND = 0.05
# Title, metric, and what is drawn of its values. A slowdown of s % leaves 1 / (1 + s / 100).
PANELS = (
    ("training throughput, % of alone", "training_slowdown", lambda s: 100 / (1 + s / 100)),
    ("filler throughput, % of a GPU of its own", "filler_of_own_gpu", lambda share: share),
    ("p95 latency, ms", "latency_p95", lambda ms: ms),
)


def panel(axes, cells: pandas.DataFrame, title: str, drawn) -> None:
    axes.set(title=title, xlabel="measured", ylabel="simulated")
    if cells.empty:
        axes.text(0.5, 0.5, "nothing measured", ha="center", transform=axes.transAxes)
        return
    measured, simulated = drawn(cells.measured), drawn(cells.simulated)
    if "latency" in title:
        axes.set(xscale="log", yscale="log")
    ends = [min(measured.min(), simulated.min()), max(measured.max(), simulated.max())]
    axes.plot(ends, ends, color=draw.GREY, linewidth=0.8)
    axes.fill_between(ends, [(1 - BAND) * end for end in ends],
                      [(1 + BAND) * end for end in ends], color=draw.SKY, alpha=0.2, linewidth=0)
    for order, (policy, own) in enumerate(cells.groupby("policy", sort=False)):
        colour, mark, _, _ = draw.POLICIES.get(policy.split(" ")[0],
                                               draw.SERIES[order % len(draw.SERIES)])
        for role, rows in own.groupby("role"):
            axes.plot(measured[rows.index], simulated[rows.index], mark, color=colour,
                      fillstyle="none" if role == "fit" else "full",
                      label=policy if role == "judge" else f"{policy}, fitted")


def picture(path: str):
    """The figure of an errors.csv."""
    cells = pandas.read_csv(path)
    cells = cells[cells.outcome == "predicted"]
    cells = cells[(cells.metric != "latency_p95") | (cells.simulated > 0)]  # axes are logarithmic
    figure, all_axes = pyplot.subplots(1, len(PANELS), figsize=(2 * draw.PAGE, draw.PAGE / 1.5))
    for axes, (title, metric, drawn) in zip(all_axes, PANELS):
        panel(axes, cells[cells.metric == metric], title, drawn)
        if axes.get_legend_handles_labels()[0]:
            axes.legend(fontsize="small")
    return figure


if __name__ == "__main__":
    picture(sys.argv[1]).savefig(sys.argv[2])
