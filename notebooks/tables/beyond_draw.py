"""How the figures of 03_beyond are drawn: planes of all policies, steps of losses, stacked work."""
import matplotlib
import numpy

from . import beyond, beyond_jobs, draw

# Where a label may stand beside its mark, in points: right, left, above, below, then corners.
PLACES = ((5, 0, "left", "center"), (-5, 0, "right", "center"), (0, 5, "center", "bottom"),
          (0, -5, "center", "top"), (5, 5, "left", "bottom"), (5, -5, "left", "top"),
          (-5, 5, "right", "bottom"), (-5, -5, "right", "top"))
MARK_PIXELS = 5


def _labels(axes, table, x, y):
    """Names beside the marks that have room; the others are in the legend only."""
    figure = axes.get_figure()
    figure.canvas.draw()  # sizes of axes and texts are known only then
    renderer = figure.canvas.get_renderer()
    marks = axes.transData.transform(table[[x, y]].to_numpy(dtype=float))
    taken = [matplotlib.transforms.Bbox.from_extents(
        px - MARK_PIXELS, py - MARK_PIXELS, px + MARK_PIXELS, py + MARK_PIXELS)
        for px, py in marks]
    inside = axes.get_window_extent(renderer)
    for i, (_, row) in enumerate(table.iterrows()):
        for dx, dy, horizontal, vertical in PLACES:
            text = axes.annotate(beyond.short(row["policy"]), (row[x], row[y]), (dx, dy),
                                 textcoords="offset points", ha=horizontal, va=vertical,
                                 fontsize=5.5)
            box = text.get_window_extent(renderer)
            others = taken[:i] + taken[i + 1:]
            if inside.contains(*box.min) and inside.contains(*box.max) and not any(
                    box.overlaps(other) for other in others):
                taken.append(box)
                break
            text.remove()


def _all_policies(figure):
    """One legend of all twenty, under the figure."""
    handles = [matplotlib.lines.Line2D([], [], linestyle="", marker=mark, color=colour,
                                       markeredgecolor="black", markeredgewidth=0.4, markersize=5,
                                       label=draw.label(name))
               for name, (colour, mark, _, _) in draw.POLICIES.items()]
    figure.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, 0.0), ncol=7)


def _refused(axes, part, rest=""):
    names = [beyond.short(p) for p in part.loc[part["admitted"] == 0, "policy"]]
    axes.set_xlabel(f"{axes.get_xlabel()}\nadmits no filler: {', '.join(names)}{rest}")


def offline(table):
    """A plane a job: training kept over filler throughput, and the oracles' dashed lines."""
    jobs = list(dict.fromkeys(table["job"]))
    figure, grid = draw.grid(1, len(jobs), height=2.9)
    for axes, job in zip(grid[0], jobs):
        part = table[table["job"] == job]
        for oracle, dashes in (("ideal", ":"), ("ideal_spatial", "--")):
            axes.plot(*beyond.front(part, oracle), dashes, color="black", linewidth=0.9)
        there = part[part["admitted"] > 0]
        draw.points(axes, there, "filler_throughput", "training_kept", "policy")
        axes.set(title=job, xlim=(-0.04, 1.0), ylim=(0.4, 1.06),
                 xlabel="filler throughput, of GPUs of its own")
        axes.grid(True, axis="both")
        _refused(axes, part)
        _labels(axes, there, "filler_throughput", "training_kept")
    grid[0][0].set_ylabel("training kept, of its pace alone")
    _all_policies(figure)
    return figure


def online(table):
    """A plane a job and load: p95 over requests served; pale: training lost more than 5 %."""
    jobs, loads = list(dict.fromkeys(table["job"])), sorted(table["load_per_s"].unique())
    figure, grid = draw.grid(len(loads), len(jobs), height=2.5)
    for row, load in zip(grid, loads):
        for axes, job in zip(row, jobs):
            part = table[(table["job"] == job) & (table["load_per_s"] == load)]
            there = part[part["admitted"] > 0]
            _service(axes, there)
            axes.set(title=f"{job}\n{load:.0f} requests/s arrive", xlim=(-0.09 * load, 1.1 * load),
                     ylim=(4, 2e4), yscale="log", xlabel="requests served, 1/s")
            axes.grid(True, axis="both")
            _refused(axes, part)
            _labels(axes, there, "requests_per_s", "p95_ms")
        row[0].set_ylabel("p95 of latency, ms")
    _all_policies(figure)
    return figure


def _service(axes, part):
    for _, row in part.iterrows():
        colour, mark, _, _ = draw.POLICIES[row["policy"]]
        pale = 1.0 if row["training_kept"] >= 0.95 else 0.35
        axes.errorbar(row["requests_per_s"], row["p95_ms"], yerr=min(row["half"], row["p95_ms"] / 2),
                      marker=mark, color=colour, alpha=pale, markeredgecolor="black",
                      markeredgewidth=0.4, markersize=5, elinewidth=0.8, zorder=3)
        if not row["kept_up"]:
            axes.annotate("", (row["requests_per_s"], row["p95_ms"] * 2.2),
                          (row["requests_per_s"], row["p95_ms"] * 1.25),
                          arrowprops={"arrowstyle": "->", "linewidth": 0.5, "color": "black"})


def losses(table):
    """Work by step, from the oracle on the left to the real policy: training and filler stacked."""
    jobs, policies = list(dict.fromkeys(table["job"])), list(beyond.CHAINS)
    figure, grid = draw.grid(len(jobs), len(policies), height=2.3, sharey=True)
    for row, job in zip(grid, jobs):
        for axes, policy in zip(row, policies):
            part = table[(table["job"] == job) & (table["policy"] == policy)]
            colour, _, hatch, _ = draw.POLICIES[policy]
            stack(axes, part["loss"], part["training_kept"], part["filler_throughput"],
                  colour, hatch)
            for i, (top, cost) in enumerate(zip(part["work_gpus"], part["cost_gpus"])):
                if i:
                    axes.annotate(f"{-cost:+.2f}", (i, top), (0, 1), textcoords="offset points",
                                  ha="center", fontsize=6)
            axes.set(title=f"{draw.label(policy)}: {job}", ylim=(0, 1.95))
            axes.title.set_fontsize(7)
        row[0].set_ylabel("work, in GPUs\n(grey: training)")
    return figure


def stack(axes, names, lower, upper, colour, hatch):
    """Bars of two parts: training's in grey below, the filler's above."""
    x = numpy.arange(len(names))
    axes.bar(x, lower, 0.75, color="#C8C8C8", edgecolor="black", linewidth=0.4)
    axes.bar(x, upper, 0.75, bottom=lower, color=colour, hatch=hatch, edgecolor="black",
             linewidth=0.4)
    axes.set_xticks(x, names, rotation=40, ha="right", rotation_mode="anchor", fontsize=6)


def detection(table):
    """Filler throughput and training kept over the delay, and the oracle's level."""
    figure, grid = draw.grid(1, 2, height=2.1)
    oracle = table[table["policy"] == "ideal"].iloc[0]
    others = table[table["policy"] != "ideal"]
    for axes, value, name in zip(grid[0], ("filler_throughput", "training_kept"),
                                 ("filler throughput", "training kept")):
        draw.lines(axes, others, "delay_ms", "policy", value)
        axes.axhline(oracle[value], color="black", linestyle=":", linewidth=1, label="Ideal (oracle)")
        axes.set(xscale="log", ylim=(0, 1.04 if value == "training_kept" else None), ylabel=name,
                 xlabel="window (SpecInF), poll of bubbles (FreeRide), ms")
    draw.legend(figure, grid[0][0], 3)
    return figure


def preemption(table):
    """Training lost, and filler throughput, over the requests of a pass."""
    figure, grid = draw.grid(1, 2, height=2.1)
    for axes, value, name in zip(grid[0], ("training_lost_percent", "filler_throughput"),
                                 ("training lost, %", "filler throughput")):
        draw.lines(axes, table, "batch", "series", value)
        axes.set_xscale("log", base=2)
        axes.set(xlabel="requests of a pass: length of the filler's kernels", ylabel=name)
        axes.xaxis.set_major_formatter(matplotlib.ticker.FormatStrFormatter("%d"))
    draw.legend(figure, grid[0][0], 4)
    return figure


def memory(table):
    """Filler throughput, and GPUs that admit it, over a filler's memory."""
    figure, grid = draw.grid(1, 2, height=2.1)
    for axes, value, name in zip(grid[0], ("filler_throughput", "admitted"),
                                 ("filler throughput", "GPUs that admit it")):
        draw.lines(axes, table, "memory_gb", "series", value)
        axes.set(xlabel="memory of the filler on each GPU, GB", ylabel=name)
    draw.legend(figure, grid[0][0], 4)
    return figure


def schedules(table):
    """Bubbles by schedule with their closed forms, and what policies make of them."""
    figure, grid = draw.grid(1, 2, height=2.4)
    left, right = grid[0]
    alone = table[table["policy"] == "exclusive"].assign(
        label=lambda t: t["micro_batches"].map("{} micro-batches".format))
    draw.bars(left, alone, "schedule", "label", "bubble")
    draw.bars(right, table[(table["policy"] != "exclusive") & (table["micro_batches"] == 8)],
              "schedule", "policy", "filler_throughput")
    names = list(dict.fromkeys(alone["schedule"]))
    counts = sorted(alone["micro_batches"].unique())
    forms = alone.dropna(subset=["closed_form"])
    x = [names.index(s) + (counts.index(m) - (len(counts) - 1) / 2) * 0.8 / len(counts)
         for s, m in zip(forms["schedule"], forms["micro_batches"])]
    left.plot(x, forms["closed_form"], "_", color="black", markersize=7, markeredgewidth=1.6,
              label="closed form")
    left.set_ylabel("bubble, of the iteration")
    right.set_ylabel("filler throughput, 8 micro-batches")
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
        alone = part[part["policy"] == "exclusive"].assign(policy="bubble, training alone")
        draw.bars(column[0], alone, "plan", "policy", "bubble")
        draw.bars(column[1], part, "plan", "policy", "utilisation")
        draw.bars(column[2], part[part["policy"] != "exclusive"], "plan", "policy",
                  "training_kept")
        column[0].set_title(f"link of {link}")
        for axes in column:
            axes.set_ylim(0, 1.05)
        names = list(dict.fromkeys(part["plan"]))
        column[2].set_xticks(range(len(names)), names, rotation=40, ha="right",
                             rotation_mode="anchor")
    for axes, name in zip(grid[:, 0], ("bubble", "utilisation", "training kept")):
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
    """Overhead and what of the bubble the side task uses, by task and micro-batches."""
    part = table[table["policy"] != "exclusive"].assign(
        group=lambda t: t["task"] + ",\n" + t["micro_batches"].map("{} micro-batches".format))
    figure, grid = draw.grid(1, 2, height=2.0)
    for axes, value, name in zip(grid[0], ("overhead_percent", "recovered"),
                                 ("training's overhead, %", "bubble time used")):
        draw.bars(axes, part, "group", "policy", value)
        axes.set_ylabel(name)
    draw.legend(figure, grid[0][0], 2)
    return figure
