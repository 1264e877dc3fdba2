"""How 03_beyond draws planes of all policies, and what each loses by its mechanism."""
import matplotlib
import numpy
from matplotlib import patheffects

from . import beyond, draw

# Where a label may stand beside its mark, in points: right, left, above, below, then corners.
PLACES = ((5, 0, "left", "center"), (-5, 0, "right", "center"), (0, 5, "center", "bottom"),
          (0, -5, "center", "top"), (5, 5, "left", "bottom"), (5, -5, "left", "top"),
          (-5, 5, "right", "bottom"), (-5, -5, "right", "top"))
MARK_PIXELS = 5
HALO = [patheffects.withStroke(linewidth=1.2, foreground="white")]
# The corner where training is kept and little is filled, enlarged: filler throughput, training.
CORNER = ((-0.006, 0.058), (0.955, 1.006))
# Variants of a policy have its colour.
LOOKS = {"XSched, level 1": draw.POLICIES["xsched"],
         "XSched, level 3": (draw.PURPLE, "s", "", ":"),
         "REEF, waiting": draw.POLICIES["reef"], "REEF, killing": (draw.GREEN, "o", "", "--"),
         "PipeFill, offloading": (draw.VERMILION, "s", "", "--")}


def _label_all(figure, parts, x, y):
    """Labels of [(axes, rows)]; sizes of axes and texts are known only in a drawn figure."""
    figure.canvas.draw()
    for axes, table in parts:
        _labels(axes, table, x, y, figure.canvas.get_renderer())


def _labels(axes, table, x, y, renderer):
    """Names beside the marks that have room; the others are in the legend only."""
    marks = axes.transData.transform(table[[x, y]].to_numpy(dtype=float))
    taken = [matplotlib.transforms.Bbox.from_extents(
        px - MARK_PIXELS, py - MARK_PIXELS, px + MARK_PIXELS, py + MARK_PIXELS)
        for px, py in marks]
    taken += [child.get_window_extent(renderer) for child in axes.child_axes]
    inside = axes.get_window_extent(renderer)
    for i, (_, row) in enumerate(table.iterrows()):
        for dx, dy, horizontal, vertical in PLACES:
            text = axes.annotate(beyond.short(row["policy"]), (row[x], row[y]), (dx, dy),
                                 textcoords="offset points", ha=horizontal, va=vertical,
                                 fontsize=5.5, path_effects=HALO)
            box = text.get_window_extent(renderer)
            others = taken[:i] + taken[i + 1:]
            if inside.contains(*box.min) and inside.contains(*box.max) and not any(
                    box.overlaps(other) for other in others) and _nearest(box, marks, i):
                taken.append(box)
                break
            text.remove()


def _nearest(box, marks, own):
    """Whether a label is no nearer to another mark than to its own: it would name the wrong one."""
    gaps = numpy.maximum(numpy.maximum(box.min - marks, marks - box.max), 0)
    distances = numpy.hypot(gaps[:, 0], gaps[:, 1])
    return distances[own] <= distances.min() + 1


def _all_policies(figure, table):
    """One legend of all of them, under the figure."""
    handles = [matplotlib.lines.Line2D([], [], linestyle="", marker=draw.POLICIES[name][1],
                                       color=draw.POLICIES[name][0], markeredgecolor="black",
                                       markeredgewidth=0.4, markersize=5, label=draw.label(name))
               for name in dict.fromkeys(table["policy"])]
    figure.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, 0.0), ncol=7,
                  fontsize=6.5, columnspacing=1.0, handletextpad=0.2)


def _refused(axes, part, rest=""):
    names = [beyond.short(p) for p in part.loc[part["admitted"] == 0, "policy"]]
    axes.set_xlabel(f"{axes.get_xlabel()}\nadmits no filler: {', '.join(names)}{rest}")


def offline(table):
    """A plane a job: training kept over filler throughput, and the oracles' dashed lines."""
    jobs = list(dict.fromkeys(table["job"]))
    figure, grid = draw.grid(1, len(jobs), height=2.9)
    parts = []
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
        inset, inside = _corner(axes, there)
        parts += [(axes, there[~inside]), (inset, there[inside])]
    grid[0][0].set_ylabel("training kept, of its pace alone")
    _label_all(figure, parts, "filler_throughput", "training_kept")
    _all_policies(figure, table)
    return figure


def _corner(axes, part):
    """Enlarges CORNER where all three jobs leave room: the inset, and which rows lie in it."""
    (left, right), (low, high) = CORNER
    inset = axes.inset_axes([0.12, 0.06, 0.17, 0.42])
    inside = part["filler_throughput"].between(left, right) & part["training_kept"].between(
        low, high)
    draw.points(inset, part[inside], "filler_throughput", "training_kept", "policy")
    inset.set(xlim=CORNER[0], ylim=CORNER[1], xticks=(0, 0.05), yticks=(0.96, 0.98, 1))
    inset.tick_params(labelsize=5, length=2, pad=1)
    inset.spines[["top", "right"]].set_visible(True)
    inset.spines[:].set_linewidth(0.5)
    _, connectors = axes.indicate_inset_zoom(inset, edgecolor="black", linewidth=0.5)
    for connector in connectors:
        connector.set_visible(False)
    return inset, inside


def online(table):
    """A plane a job and load: p95 over requests served; pale: training lost more than 5 %."""
    jobs, loads = list(dict.fromkeys(table["job"])), sorted(table["load_per_s"].unique())
    figure, grid = draw.grid(len(loads), len(jobs), height=2.5)
    parts = []
    for row, load in zip(grid, loads):
        for axes, job in zip(row, jobs):
            part = table[(table["job"] == job) & (table["load_per_s"] == load)]
            there = part[part["admitted"] > 0]
            _service(axes, there)
            axes.set(title=f"{job}\n{load:.0f} requests/s arrive", xlim=(-0.09 * load, 1.1 * load),
                     ylim=(4, 8e4), yscale="log", xlabel="requests served, 1/s")
            axes.grid(True, axis="both")
            _refused(axes, part)
            parts.append((axes, there))
        row[0].set_ylabel("p95 of latency, ms")
    _label_all(figure, parts, "requests_per_s", "p95_ms")
    _all_policies(figure, table)
    return figure


def _service(axes, part):
    for _, row in part.iterrows():
        colour, mark, _, _ = draw.POLICIES[row["policy"]]
        pale = 1.0 if row["training_kept"] >= 0.95 else 0.35
        error = min(row["half"], row["p95_ms"] / 2)
        axes.errorbar(row["requests_per_s"], row["p95_ms"], yerr=error, marker=mark, color=colour,
                      alpha=pale, markeredgecolor="black", markeredgewidth=0.4, markersize=5,
                      elinewidth=0.8, zorder=3)
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
                    axes.annotate(_change(-cost), (i, top), (0, 1), textcoords="offset points",
                                  ha="center", fontsize=6)
            axes.set(title=f"{draw.label(policy)}: {job}", ylim=(0, 1.95))
            axes.title.set_fontsize(7)
        row[0].set_ylabel("work, in GPUs\n(grey: training)")
    return figure


def _lines(axes, table, x, series, y):
    """A line for each of the series, variants by LOOKS."""
    for name, part in table.sort_values(x, kind="stable").groupby(series, sort=False):
        colour, mark, _, dashes = LOOKS.get(name) or draw.looks([name])[name]
        axes.plot(part[x], part[y], dashes, marker=mark, color=colour, label=draw.label(name))


def _change(value):
    return "0" if abs(value) < 0.005 else f"{value:+.2f}"


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
    told = table["policy"] == "ideal"
    oracle, others = table[told].iloc[0], table[~told]
    for axes, value, name in zip(grid[0], ("filler_throughput", "training_kept"),
                                 ("filler throughput", "training kept")):
        _lines(axes, others, "delay_ms", "policy", value)
        axes.axhline(oracle[value], color="black", linestyle=":", linewidth=1,
                     label=draw.label("ideal"))
        axes.set(xscale="log", ylim=(0, 1.04 if value == "training_kept" else None), ylabel=name,
                 xlabel="window (RCKM), poll of bubbles (FreeRide), ms")
    draw.legend(figure, grid[0][0], 3)
    return figure


def preemption(table):
    """Training lost, and filler throughput, over the requests of a pass."""
    figure, grid = draw.grid(1, 2, height=2.1)
    for axes, value, name in zip(grid[0], ("training_lost_percent", "filler_throughput"),
                                 ("training lost, %", "filler throughput")):
        _lines(axes, table, "batch", "series", value)
        axes.set_xscale("log", base=2)
        axes.set(xlabel="requests of a pass", ylabel=name)
        axes.xaxis.set_major_formatter(matplotlib.ticker.FormatStrFormatter("%d"))
    draw.legend(figure, grid[0][0], 4)
    return figure


def memory(table):
    """Filler throughput, and GPUs that admit it, over a filler's memory."""
    figure, grid = draw.grid(1, 2, height=2.1)
    for axes, value, name in zip(grid[0], ("filler_throughput", "admitted"),
                                 ("filler throughput", "GPUs that admit it")):
        _lines(axes, table, "memory_gb", "series", value)
        axes.set(xlabel="memory of the filler on each GPU, GB", ylabel=name)
    draw.legend(figure, grid[0][0], 4)
    return figure
