"""How 03_beyond draws other jobs: schedules, regions, language models, side tasks."""
import numpy

from . import beyond_jobs, draw
from .beyond_draw import stack

# Numbers of micro-batches are no policies: greys.
GREYS = ("#404040", "#909090", "#D8D8D8")
LOOPS = {"fits": "step fits", "margin": "1.2 steps fit", "artifact": "1.2 fit at launch"}


def schedules(table):
    """Bubbles by schedule with their closed forms, and what policies make of them."""
    figure, grid = draw.grid(1, 2, height=2.4)
    left, right = grid[0]
    alone = table[table["policy"] == "exclusive"]
    names, counts = list(dict.fromkeys(alone["schedule"])), alone["micro_batches"].unique()
    for i, (m, part) in enumerate(alone.groupby("micro_batches")):
        x = numpy.arange(len(names)) + (i - (len(counts) - 1) / 2) * 0.8 / len(counts)
        left.bar(x, part["bubble"], 0.8 / len(counts), color=GREYS[i % 3], edgecolor="black",
                 linewidth=0.4, label=f"{m} micro-batches")
        left.plot(x, part["closed_form"].astype(float), "_", color=draw.VERMILION, markersize=7,
                  markeredgewidth=1.6, label="closed form" if i == 0 else None)
    draw.bars(right, table[(table["policy"] != "exclusive") & (table["micro_batches"] == 8)],
              "schedule", "policy", "filler_throughput")
    left.set_ylabel("bubble, of the iteration")
    right.set(ylabel="filler throughput", title="filled, 8 micro-batches")
    left.set_title("training alone")
    for axes in (left, right):
        axes.set_xticks(range(len(names)), names, rotation=40, ha="right", rotation_mode="anchor")
        axes.legend(fontsize=6)
    return figure


def work(table, micro_batches=8):
    """GPU time used by training and filler, by schedule, a panel a policy."""
    policies = ["pipefill", "freeride", "specinf", "ideal"]
    figure, grid = draw.grid(1, len(policies), height=2.2, sharey=True)
    for axes, policy in zip(grid[0], policies):
        part = table[(table["policy"] == policy) & (table["micro_batches"] == micro_batches)]
        colour, _, hatch, _ = draw.POLICIES[policy]
        stack(axes, part["schedule"], part["training_part"], part["filler_throughput"], colour,
              hatch)
        axes.axhline(1, color="black", linewidth=0.5)
        axes.set(title=draw.label(policy))
    grid[0][0].set_ylabel("GPU time used\n(grey: training)")
    return figure


def regions(table):
    """The job's bubble by plan and link; utilisation and training kept when filled."""
    links = [link for link in beyond_jobs.LINKS.values() if link in set(table["link"])]
    figure, grid = draw.grid(3, len(links), height=1.7, sharey="row", sharex=True)
    for column, link in zip(grid.T, links):
        part = table[table["link"] == link]
        draw.bars(column[0], part[part["policy"] == "exclusive"], "plan", "policy", "bubble")
        draw.bars(column[1], part, "plan", "policy", "utilisation")
        draw.bars(column[2], part[part["policy"] != "exclusive"], "plan", "policy",
                  "training_kept")
        column[0].set_title(f"link of {link}")
        for axes in column:
            axes.set_ylim(0, 1.05)
        names = list(dict.fromkeys(part["plan"]))
        column[2].set_xticks(range(len(names)), names, rotation=40, ha="right",
                             rotation_mode="anchor")
    for axes, name in zip(grid[:, 0], ("bubble of the job alone", "utilisation", "training kept")):
        axes.set_ylabel(name)
    draw.legend(figure, grid[1][0], 5)
    return figure


def serving(table):
    """p95, training kept and the share in time, by kind of serving and policy."""
    figure, grid = draw.grid(1, 3, height=2.2)
    for axes, value, name in zip(grid[0], ("p95_s", "training_normalised_fraction", "in_time"),
                                 ("p95 of latency, s", "training kept",
                                  "requests served within 2 s")):
        draw.bars(axes, table[table["value"] == value], "kind", "policy")
        axes.set_ylabel(name)
        axes.set_xticklabels(axes.get_xticklabels(), rotation=25)
    grid[0][0].set_yscale("log")
    draw.legend(figure, grid[0][0], 4)
    return figure


def side_tasks(table):
    """The bubble of the job alone with its closed form, the part that side tasks use, and others.

    Steps vary as measured; FreeRide's loop is the artifact's, in the last panel also the others.
    """
    table = table.assign(group=[f"{task}\nm = {m}" for task, m in
                                zip(table["task"], table["micro_batches"])])
    alone = table[table["policy"] == "exclusive"].drop_duplicates("micro_batches")
    figure, grid = draw.grid(1, 3, height=2.0)
    left, right, beside = grid[0]
    draw.bars(left, alone.assign(group=alone["micro_batches"].map("m = {}".format)), "group",
              "policy", "bubble")
    left.plot(range(len(alone)), alone["closed_form"], "_", color=draw.VERMILION, markersize=26,
              markeredgewidth=1.6)
    left.set(ylabel="bubble of the job alone", title="short lines: (p-1)/(m+p-1)")
    table = table[table["steps_vary"] > 0]
    used = table[(table["policy"] == "ideal") | (table["loop"] == "artifact")]
    draw.bars(right, used, "group", "policy", "recovered")
    right.set_ylabel("bubble time used")
    right.tick_params(axis="x", labelsize=5.5)
    rides = table[table["policy"] == "freeride"]
    for i, (loop, part) in enumerate(rides.groupby("loop", sort=False)):
        colour, mark, _, _ = draw.SERIES[i]
        beside.plot(part["group"], part["beside_percent"], color=colour, marker=mark,
                    linestyle="none", label=LOOPS[loop])
    beside.set(ylabel="steps beside training, % of time")
    beside.tick_params(axis="x", labelsize=5.5)
    beside.legend(fontsize=5.5)
    draw.legend(figure, right, 2)
    return figure
