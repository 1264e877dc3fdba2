"""How 04_field draws its tables."""
import numpy

from . import draw


def power(table):
    """What limits cost training and decode, and what filling a pipeline's bubbles draws."""
    figure, grid = draw.grid(1, 2, height=2.2)
    left, right = grid[0]
    filled = table[table["plan"] == "pp-4-1f1b"]
    table = table[table["plan"] == "ddp-4"]
    x = numpy.arange(len(table))
    for i, name in enumerate(("training", "decode")):
        colour, mark, hatch, _ = draw.SERIES[i]
        left.bar(x + (i - 0.5) * 0.4, 100 * table[f"{name}_lost"], 0.4, color=colour, hatch=hatch,
                 edgecolor="black", linewidth=0.4, label=name)
    for i, (name, column) in enumerate((("training", "training_w"), ("beside decode", "both_w"),
                                       ("decode in bubbles", "bubbles_w"))):
        colour, mark, _, dashes = draw.SERIES[i]
        right.plot(x, filled[column], color=colour, marker=mark, linestyle=dashes, label=name)
    left.set(ylabel="throughput lost, %", title="data parallel, and decode: each alone")
    right.set(ylabel="mean power of a GPU, W", title="a pipeline, and decode in its bubbles")
    for axes in (left, right):
        axes.set_xticks(x, table["limit"], rotation=40, ha="right", rotation_mode="anchor")
        axes.legend()
    return figure


def _panels(table, by, x, y, ylabel, series=None):
    names = list(dict.fromkeys(table[by]))
    figure, grid = draw.grid(1, len(names), height=2.0, sharey=True)
    for axes, name in zip(grid[0], names):
        part = table[table[by] == name]
        if series is None:
            axes.bar(part[x].astype(str), part[y], color=draw.BLUE, edgecolor="black",
                     linewidth=0.4)
        for i, (column, label) in enumerate(series or []):
            colour, mark, _, dashes = draw.SERIES[i]
            axes.plot(part[x], 100 * part[column], color=colour, marker=mark, linestyle=dashes,
                      label=label)
        axes.set(title=name)
        axes.tick_params(axis="x", rotation=40 if series is None else 0)
    grid[0][0].set_ylabel(ylabel)
    return figure, grid[0]


def zero(table):
    """Gains of ZeRO++'s parts, a panel a network."""
    figure, _ = _panels(table, "cluster", "parts", "gain", "throughput over ZeRO-3's")
    return figure


def experts(table):
    """What skew costs and what placement gains, a panel a place of the exchange."""
    figure, axes = _panels(table, "group", "zipf", None, "%",
                           [("skew_costs", "skew costs"), ("placement_gains", "placement gains")])
    for panel in axes:
        panel.set_xlabel("Zipf exponent of the experts")
    axes[0].legend()
    return figure


def overlap(table):
    """Gain of exchanges beside compute, and what an iteration still waits, by tokens."""
    figure, grid = draw.grid(1, 2, height=2.2)
    left, right = grid[0]
    for i, (form, part) in enumerate(table.groupby("form", sort=False)):
        colour, mark, _, dashes = draw.SERIES[i]
        left.plot(part["tokens"], part["gain"], color=colour, marker=mark, linestyle=dashes)
        right.plot(part["tokens"], 100 * part["waiting"], color=colour, marker=mark,
                   linestyle=dashes, label=form)
    left.set(ylabel="throughput over exchanges in turn")
    right.set(ylabel="waiting, % of the iteration")
    for axes in (left, right):
        axes.set_xscale("log", base=2)
        axes.set_xlabel("tokens of a micro-batch")
    right.legend()
    return figure


def paths(table):
    """Throughput of each hash from best to worst, beside flows that are planned."""
    figure, grid = draw.grid(1, 1, height=2.0)
    axes = grid[0][0]
    hashed = 100 * table[table["flows"] == "hash"]["throughput_kept"].sort_values(ascending=False)
    planned = 100 * table[table["flows"] == "planned"]["throughput_kept"].iloc[0]
    axes.plot(range(1, len(hashed) + 1), hashed, color=draw.BLUE, marker=".", linestyle="none",
              label="by hash, a point a seed")
    axes.axhline(planned, color="black", linestyle="--", linewidth=0.7, label="planned")
    axes.set(xlabel="hashes, from best to worst", ylabel="throughput, % of spread flows'")
    axes.legend()
    return figure


def apart(table):
    """Throughput by ratio, and how long tokens wait for each other."""
    figure, grid = draw.grid(1, 2, height=2.0)
    for axes, value, name in zip(grid[0], ("requests_per_s", "tbt_p99_ms"),
                                 ("requests/s", "p99 between tokens, ms")):
        axes.plot(table["prefill_gpus"], table[value], color=draw.BLUE, marker="o")
        axes.set(xlabel="GPUs of 8 that compute prompts", ylabel=name)
    return figure


def swaps(table):
    """Tails by how sequences are swapped."""
    figure, grid = draw.grid(1, 2, height=2.0)
    for axes, value, name in zip(grid[0], ("ttft_p99_ms", "tbt_p99_ms"),
                                 ("p99 of TTFT, ms", "p99 between tokens, ms")):
        axes.bar(range(len(table)), table[value], color=draw.BLUE, edgecolor="black", linewidth=0.4)
        axes.set_xticks(range(len(table)), table["swapped"], rotation=40, ha="right",
                        rotation_mode="anchor", fontsize=6)
        axes.set_ylabel(name)
    return figure
