"""Constants of a node's ring all-reduce from measured tables.

Fitted: the base and hop of LL128 and Simple, LL128's share of the port, the port's bandwidth, the
copies that cross no link, and the quantum of a channel: eight constants of mechanisms, none of a
single table. Half of the sizes of the tables of 2, 4 and 8 GPUs take part; the other half and all
other tables judge. Each octave of sizes of each table weighs the same. Least squares on the
logarithms of the constants, residuals relative, large ones damped (soft L1 beyond 5 %). The tables
may reach below CollectiveSpec::low_latency_below; the fit then uses LL's constants as they stand.
"""
from collections import Counter

import numpy
from bubblesim import _core
from bubblesim._table import write_file

from .all_reduce import read_folder
from .config_file import ConfigFile, constants_text, exact, failed, find, spelled, table_text
from .least_squares import fit_least_squares, from_logs

CONSTANTS = {"collectives/ring_base/LL128": "us", "collectives/ring_base/Simple": "us",
             "collectives/ring_hop/LL128": "us", "collectives/ring_hop/Simple": "us",
             "collectives/bandwidth_share/LL128": "share", "node/bandwidth": "GB/s",
             "collectives/local_copies": "steps", "collectives/channel_quantum": "KiB"}
# By unit: what a cluster file may say. Logarithms, so that nothing is 0.
RANGES = {"us": (1e-3, 1e7), "share": (1e-3, 1.0), "GB/s": (1e-3, 1e5), "steps": (1e-3, 10.0),
          "KiB": (1e-3, 2 ** 20)}
STEP = 0.01      # for the derivative: wide enough that whole nanoseconds and bytes do not show
DAMPING = 0.05
# The protocols can take each other's part, so the search begins at several places: LL128's share
# and the quantum as given and times these.
STARTS = [(1.0, 1.0), (1.0, 0.5), (0.75, 1.0), (0.75, 0.5)]


def octaves_of(sizes):
    return numpy.array([size.bit_length() for size in sizes])


def errors_text(rows, errors):
    """A line a table: mean errors of rows that took part, of the others, of octaves."""
    lines = []
    for table, found in zip(rows, errors):
        octaves, found = octaves_of(table.sizes), numpy.abs(found)
        fitted = numpy.array(table.fitted)
        means = [found[octaves == octave].mean() for octave in numpy.unique(octaves)]
        parts = [found[fitted], found[~fitted]]
        lines.append([str(table.gpus)] + [text for part in parts for text in (
            str(len(part)), f"{100 * part.mean() if len(part) else 0:.2f}%")]
            + [f"{100 * numpy.mean(means):.2f}%", f"{100 * found.max():.2f}%"])
    return table_text(["GPUs", "fit rows", "|error|", "judge rows", "|error|", "octaves", "worst"],
                      set(range(7)), lines)


def errors_at(tables, config, values):
    for (path, unit), value in zip(CONSTANTS.items(), values):
        config.put(path, exact(float(value), unit))
    cluster = config.read(_core.Cluster)
    return [numpy.array(table.simulated(cluster)) / numpy.array(table.measured) - 1
            for table in tables]


def fit(tables, config):
    """Fitted values, in the order of CONSTANTS."""
    least, most = numpy.transpose([RANGES[unit] for unit in CONSTANTS.values()])
    low, high = numpy.log([least, most])
    given = numpy.log(numpy.clip([config.value(*each) for each in CONSTANTS.items()], least, most))
    weights = []
    for table in tables:
        octaves = octaves_of(table.sizes)
        counts = Counter(octaves[numpy.array(table.fitted)])
        weights.append([1 / numpy.sqrt(counts[octave]) if part else 0
                        for octave, part in zip(octaves, table.fitted)])
    weights = numpy.concatenate(weights)
    if numpy.count_nonzero(weights) < len(CONSTANTS):
        raise failed([("", "", f"found {numpy.count_nonzero(weights)} rows to fit; expected tables "
                               f"of 2, 4 or 8 GPUs with at least {len(CONSTANTS)}")])

    def residuals(logs):
        # The square of a residual is its soft L1 loss: a weight is that of the loss.
        r = numpy.concatenate(errors_at(tables, config, from_logs(logs, least, most)))
        loss = 2 * DAMPING ** 2 * (numpy.sqrt(1 + (r / DAMPING) ** 2) - 1)
        return (weights * numpy.copysign(numpy.sqrt(loss), r))[weights > 0]

    best = (given, numpy.inf, 0)
    for share, quantum in STARTS:
        logs = given.copy()
        logs[4] += numpy.log(share)
        logs[7] += numpy.log(quantum)
        best = min(best, fit_least_squares(residuals, logs, low, high, loss="squares", step=STEP,
                                           least_gain=1e-9), key=lambda found: found[1])
    return from_logs(best[0], least, most)


def main(options):
    tables, path = read_folder(options.data), find("clusters", options.cluster)
    config = ConfigFile(path)
    start = [config.value(*each) for each in CONSTANTS.items()]
    cluster = _core.Cluster(str(path))  # faults of the file, before anything is fitted
    for table in tables:
        table.simulated(cluster)
    fitted = fit(tables, config)
    errors = errors_at(tables, config, fitted)
    shown = [config.value(*each) for each in CONSTANTS.items()]
    if options.output:
        config = ConfigFile(path)
        for (name, unit), value in zip(CONSTANTS.items(), shown):
            config.put(name, spelled(value, unit),
                       f"fitted: scripts/fit network --cluster {options.cluster}, rings over "
                       "VIA-Research+vTrain/trace/a100, 2, 4 and 8 GPUs, half of the sizes")
        write_file(options.output, config.text())
    print(constants_text([(*each, *values) for *each, values in zip(
        CONSTANTS, CONSTANTS.values(), zip(start, shown))]))
    print(errors_text(tables, errors), end="")
    if options.output:
        print(f"\nwritten: {options.output}")
