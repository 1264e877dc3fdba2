"""How figures look: one colour and one mark a policy everywhere, print sizes, PDF and PNG.

Colours are those of Okabe and Ito (Color Universal Design, 2008), which people with any common
colour vision tell apart; marks, hatches and dashes tell series apart in grey. Sizes in inches are
those of two-column papers. Files carry no date: the same results give the same bytes.
"""
import itertools

import matplotlib
import matplotlib.pyplot as pyplot
import matplotlib.ticker
import numpy

from . import results

COLUMN = 3.35   # width of one column of a two-column paper
PAGE = 7.0      # width of both

# Okabe and Ito's eight, by name.
BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
YELLOW, BLUE, VERMILION, PURPLE = "#F0E442", "#0072B2", "#D55E00", "#CC79A7"
GREY = "#8C8C8C"

# Policy: colour, mark, hatch, dashes. Policies share nine colours; no two share both
# colour and mark.
POLICIES = {
    "exclusive": (GREY, "o", "", "-"),
    "time_slicing": (YELLOW, "s", "//", "--"),
    "mps": (SKY, "^", "\\\\", "-."),
    "tgs": (ORANGE, "D", "xx", ":"),
    "specinf": (BLUE, "*", "", "-"),
    "specinf_equal": (BLUE, "P", "//", "--"),
    "pipefill": (VERMILION, "P", "..", "-"),
    "freeride": (PURPLE, "X", "--", "--"),
    "ideal": (BLACK, "h", "", ":"),
    "ideal_spatial": (BLACK, "H", "++", "-."),
    "dilu": (GREEN, "v", "||", "--"),
    "mig": (GREY, "s", "//", "--"),
    "stream_priority": (SKY, "v", "..", "--"),
    "green_context": (GREEN, "o", "oo", "-"),
    "gpreempt": (VERMILION, "<", "//", "--"),
    "antman": (YELLOW, "p", "xx", ":"),
    "orion": (PURPLE, "o", "//", "-"),
    "reef": (GREEN, "D", "xx", ":"),
    "tally": (BLUE, "s", "..", "--"),
    "xsched": (PURPLE, "^", "\\\\", "-."),
    "vcuda": (GREY, "X", "..", "-."),
}
# Where series are no policies: by their order.
SERIES = [(BLUE, "o", "", "-"), (ORANGE, "s", "//", "--"), (GREEN, "^", "..", "-."),
          (VERMILION, "D", "xx", ":"), (SKY, "v", "\\\\", "--"), (PURPLE, "P", "--", "-."),
          (GREY, "X", "||", "-"), (BLACK, "*", "++", ":")]

NAMES = {"exclusive": "Exclusive", "time_slicing": "Time slicing", "mps": "MPS", "tgs": "TGS",
         "specinf": "SpecInF", "specinf_equal": "SpecInF, at MPS's cost",
         "pipefill": "PipeFill", "freeride": "FreeRide", "dilu": "Dilu",
         "ideal": "Ideal (oracle)", "ideal_spatial": "Ideal, spatial (oracle)", "mig": "MIG",
         "stream_priority": "Stream priority", "green_context": "Green contexts",
         "gpreempt": "GPreempt", "antman": "AntMan",
         "orion": "Orion", "reef": "REEF", "tally": "Tally", "xsched": "XSched",
         "vcuda": "vCUDA"}


def style():
    """Sets the look of all figures. Call it once, first."""
    matplotlib.rcParams.update({
        "font.family": "sans-serif", "font.size": 8, "axes.titlesize": 8, "axes.labelsize": 8,
        "legend.fontsize": 7, "xtick.labelsize": 7, "ytick.labelsize": 7,
        "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True,
        "axes.grid.axis": "y", "grid.color": "#DDDDDD", "grid.linewidth": 0.5,
        "axes.axisbelow": True, "lines.linewidth": 1.2, "lines.markersize": 4,
        "legend.frameon": False, "hatch.linewidth": 0.5, "figure.dpi": 110,
        "pdf.fonttype": 42, "savefig.bbox": "tight", "savefig.pad_inches": 0.02,
        "figure.constrained_layout.use": True})


def label(series):
    """What a policy, or another series, is called in a legend."""
    return NAMES.get(series, str(series))


def looks(series):
    """A (colour, mark, hatch, dashes) for each of the series, policies by name."""
    others = itertools.cycle(SERIES)
    return {s: POLICIES[s] if s in POLICIES else next(others) for s in series}


def grid(rows=1, columns=1, width=PAGE, height=1.9, **more):
    """A figure of rows x columns axes, height in inches a row; axes always as a 2-D array."""
    return pyplot.subplots(rows, columns, figsize=(width, height * rows), squeeze=False, **more)


def bars(axes, frame, group, series, value="mean", half="half"):
    """Groups of bars with error bars: a group for each value of `group`, a bar for each series."""
    groups = list(dict.fromkeys(frame[group]))
    names = list(dict.fromkeys(frame[series]))
    width = 0.8 / max(1, len(names))
    for i, (name, (colour, _, hatch, _)) in enumerate(looks(names).items()):
        part = frame[frame[series] == name].set_index(group)
        x = numpy.array([groups.index(g) for g in part.index]) + (i - (len(names) - 1) / 2) * width
        error = part[half] if half in part and (part[half] > 0).any() else None
        axes.bar(x, part[value], width, label=label(name), color=colour, hatch=hatch,
                 edgecolor="black", linewidth=0.4, yerr=error, error_kw={"linewidth": 0.8})
    axes.set_xticks(range(len(groups)), [label(g) for g in groups])
    axes.margins(x=0.02)


def lines(axes, frame, x, series, value="mean", half="half"):
    """A line for each series over `x`, with a band of the half interval."""
    names = list(dict.fromkeys(frame[series]))
    for name, (colour, mark, _, dashes) in looks(names).items():
        part = frame[frame[series] == name].sort_values(x)
        axes.plot(part[x], part[value], dashes, marker=mark, color=colour, label=label(name))
        if half in part and (part[half] > 0).any():
            axes.fill_between(part[x], part[value] - part[half], part[value] + part[half],
                              color=colour, alpha=0.2, linewidth=0)


def points(axes, frame, x, y, series):
    """A mark for each row, by its series."""
    names = list(dict.fromkeys(frame[series]))
    for name, (colour, mark, _, _) in looks(names).items():
        part = frame[frame[series] == name]
        axes.scatter(part[x], part[y], marker=mark, color=colour, label=label(name), s=28,
                     edgecolors="black", linewidths=0.4, zorder=3)


def logarithmic(axis, ticks=None):
    """A logarithmic axis (axes.xaxis or axes.yaxis) with plain numbers, at ticks if given."""
    axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    plain = matplotlib.ticker.FuncFormatter(lambda value, _: f"{value:g}")
    axis.set_major_formatter(plain)
    if ticks is None:
        axis.set_major_locator(matplotlib.ticker.LogLocator(subs=(1, 2, 5)))
    else:
        axis.set_major_locator(matplotlib.ticker.FixedLocator(list(ticks)))
    axis.set_minor_locator(matplotlib.ticker.NullLocator())


def legend(figure, axes, columns=5):
    """One legend above the whole figure, of one of its axes; what is saved has room for it."""
    handles, names = axes.get_legend_handles_labels()
    figure.legend(handles, names, loc="lower center", ncol=columns, bbox_to_anchor=(0.5, 1.0))


def save(figure, name):
    """Writes NAME.pdf and NAME.png beside the results, and closes nothing."""
    place = results.folder()
    place.mkdir(parents=True, exist_ok=True)
    figure.savefig(place / f"{name}.pdf", metadata={"CreationDate": None})
    figure.savefig(place / f"{name}.png", dpi=200, metadata={"Software": None})
