"""SpecInF's figures, drawn: tables of specinf.py in, a matplotlib figure out. Shares in percent."""
import numpy
import pandas

from . import draw

# Two rows of axes share one look; what is read along y.
TRAINING = "Training\n(of exclusive, %)"
FILLER = "Offline inference\n(of own GPUs, %)"
P95 = "p95 latency (ms)"
MODES = ["DP", "MP", "PP"]
SHORT = {"ResNet152": "ResNet\n152", "VGG19": "VGG\n19", "BERT-base": "BERT\nbase",
         "RoBERTa-large": "RoBERTa\nlarge", "GPT2-large": "GPT2\nlarge"}


def percent(frame, columns):
    """The same with these columns in percent."""
    return frame.assign(**{c: frame[c] * 100 for c in columns if c in frame})


def from_a_decade(axis):
    """A logarithmic y axis whose bars begin at a power of ten."""
    least = min((bar.get_height() for bar in axis.axes.patches if bar.get_height() > 0), default=1)
    draw.logarithmic(axis)
    axis.axes.set_ylim(bottom=10 ** numpy.floor(numpy.log10(least)))


def reference(axes, y, text=None):
    """A thin line across, at what a value is compared with."""
    axes.axhline(y, color="black", linewidth=0.7, linestyle=(0, (4, 3)), zorder=4, label=text)


def pairs(table, columns, labels, log=()):
    """A column of axes a training job, a row for each of `columns`; bars a policy and model."""
    jobs = list(dict.fromkeys(table["job"]))
    figure, axes = draw.grid(len(columns), len(jobs), height=1.55, sharey="row")
    for j, job in enumerate(jobs):
        part = table[table["job"] == job]
        for i, column in enumerate(columns):
            place = axes[i][j]
            shown = part[part[column].notna()].replace({"inference": SHORT})
            if not shown.empty:
                draw.bars(place, shown, "inference", "policy", column, column + "_half")
            if column in log:
                from_a_decade(place.yaxis)
            if column == "training":
                reference(place, 100)
        axes[0][j].set_title(f"{part['mode'].iloc[0]} training of {job}" if len(part) else job)
    for i, label in enumerate(labels):
        axes[i][0].set_ylabel(label)
    draw.legend(figure, axes[0][0])
    return figure


def offline(table):
    """Figures 4 to 6, offline."""
    table = percent(table, ["training", "filler"])
    table = table.assign(filler=table["filler"].where(table["policy"] != "exclusive"))
    return pairs(table, ["training", "filler"], [TRAINING, FILLER])


def online(table):
    """Figures 4 to 6, online."""
    table = percent(table, ["training", "training_half"]).rename(
        columns={"p95_half": "p95_ms_half"})
    return pairs(table, ["training", "p95_ms"], [TRAINING, P95], log=("p95_ms",))


def over_time(series, columns, labels):
    """Figure 1: rows of axes a job, columns of axes a measure, a line a GPU; percent over s."""
    figure, axes = draw.grid(len(series), len(columns), height=1.25, sharey=True, sharex="row")
    for i, (job, frame) in enumerate(series.items()):
        for j, (column, label) in enumerate(zip(columns, labels)):
            for k, (gpu, part) in enumerate(frame.groupby("gpu")):
                colour, _, _, dashes = draw.SERIES[k % len(draw.SERIES)]
                axes[i][j].plot(part["s"], part[column] * 100, dashes, color=colour,
                                linewidth=1.0, label=f"GPU {gpu}")
            axes[0][j].set_title(label)
        axes[i][0].set_ylabel(job + "\n(%)")
        axes[i][0].set_ylim(-3, 103)
    for place in axes[-1]:
        place.set_xlabel("Time (s)")
    draw.legend(figure, axes[0][0])
    return figure


def occupancy(table, columns, labels):
    """Figure 2: one axes a measure, a bar a job or service; percent."""
    figure, axes = draw.grid(1, len(columns), height=2.4, sharey=True)
    rows = range(len(table))[::-1]
    colours = [draw.GREY if "alone" in what else draw.BLUE for what in table["what"]]
    for place, column, label in zip(axes[0], columns, labels):
        place.barh(rows, table[column] * 100, color=colours, edgecolor="black", linewidth=0.4)
        place.set(xlim=(0, 100), xlabel=label)
        place.grid(axis="x"), place.grid(False, axis="y")
    axes[0][0].set_yticks(rows, table["what"])
    return figure


def ratios(table, stated):
    """A bar a cell: how much one policy has over another, on a logarithmic scale."""
    figure, axes = draw.grid(1, len(MODES), height=2.0, sharey=True)
    for place, mode in zip(axes[0], MODES):
        shown = table[table["mode"] == mode].replace({"inference": SHORT})
        draw.bars(place, shown, "inference", "job", "ratio")
        draw.logarithmic(place.yaxis, (0.1, 1, 10, 100))
        reference(place, stated, f"stated: up to {stated}")
        place.set(title=mode, ylim=(0.1, 5000))
        place.tick_params(axis="x", labelsize=5)
        place.legend(loc="upper left", fontsize=6)
    axes[0][0].set_ylabel("Offline throughput,\nSpecInF over TGS")
    return figure


def settle(series):
    """What one policy lets inference have over time: a line a series, percent of the time."""
    figure, axes = draw.grid(1, 1, width=draw.COLUMN, height=1.8)
    table = pandas.concat([f.groupby("step").agg(s=("s", "mean"), busy=(
        "filler_busy_fraction", "mean")).assign(policy=p) for p, f in series.items()])
    for (name, part), (colour, _, _, dashes) in zip(
            table.groupby("policy", sort=False), draw.looks(series).values()):
        axes[0][0].plot(part["s"], part["busy"] * 100, dashes, color=colour,
                        label=draw.label(name))
    axes[0][0].set(xlabel="Time (s)", ylabel="Inference busy\n(% of time)", ylim=(0, None))
    axes[0][0].legend(loc="center right")
    return figure


def variants(table, columns, labels, log=()):
    """One axes a measure, a row a variant, a mark a job."""
    names = list(dict.fromkeys(table["variant"]))
    figure, axes = draw.grid(1, len(columns), height=0.19 * len(names) + 0.6, sharey=True)
    for place, column, label in zip(axes[0], columns, labels):
        for k, (job, part) in enumerate(table.groupby("job", sort=False)):
            colour, mark, _, _ = draw.SERIES[k % len(draw.SERIES)]
            rows = [-names.index(v) for v in part["variant"]]
            place.scatter(part[column], rows, color=colour, marker=mark, s=20, label=job,
                          edgecolors="black", linewidths=0.4, zorder=3)
        if column in log:
            draw.logarithmic(place.xaxis, (10, 100, 1000, 10000))
        place.set_xlabel(label)
        place.grid(True, axis="both")
    heads = dict(zip(table["variant"], table["part"]))
    axes[0][0].set_yticks([-i for i in range(len(names))], [f"{heads[n]}: {n}" if heads[
        n] != "as it is" else n for n in names])
    draw.legend(figure, axes[0][0])
    return figure


def grouped(table, columns, labels, log=()):
    """One axes a measure, a group of bars a job, a bar a series, with intervals over seeds."""
    figure, axes = draw.grid(1, len(columns), height=1.9)
    breaks = ", " if len(columns) < 3 else ", |-"  # narrow axes: names in more lines
    table = table.assign(job=table["job"].str.replace(breaks, "\n", regex=True))
    for place, column, label in zip(axes[0], columns, labels):
        shown = table[table[column].notna()]
        draw.bars(place, shown, "job", "series", column, column + "_half")
        if column in log:
            from_a_decade(place.yaxis)
        place.set_ylabel(label)
    draw.legend(figure, max(axes[0], key=lambda a: len(a.get_legend_handles_labels()[0])))
    return figure
