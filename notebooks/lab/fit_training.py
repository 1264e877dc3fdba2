"""What no kernel table tells, the host's costs and a software's slowdowns, from measured training
jobs: least squares on the logarithm of simulated over measured time, on rows with the role `fit`.
Each evaluation synthesises and simulates every such row."""
import difflib
import math
import sys

import numpy
from bubblesim._table import write_file

from . import parallel
from .config_file import ConfigFile, constants_text, exact, failed, find, spelled
from .least_squares import fit_least_squares, from_logs
from .report import tables_text
from .table import spread
from .training_rows import TrainingTable

# By constant: its unit and the range in which it means something. Slowdowns below 0.9 would be
# faster than the device's memory for kernels that stream.
CONSTANTS = {"forward_gap": ("us", 1, 1e3), "backward_gap": ("us", 1, 1e3),
             "optimizer_gap": ("us", 1, 1e4), "collective_call": ("us", 1, 1e4),
             "transfer_call": ("us", 1, 1e4), "action": ("us", 1, 1e5),
             "iteration": ("us", 1, 1e6), "slowdown/gemm": ("times", 0.9, 2.5),
             "slowdown/batched_gemm": ("times", 0.9, 2.5),
             "slowdown/streaming": ("times", 0.9, 2.5)}
MOST_STEPS = 12
LOG_STEP = 0.03     # of a logarithm, for differences
GOOD_ENOUGH = 1e-3  # relative gain of a step below which the fit ends
PRIOR = 0.02        # pull of a constant towards its start, per unit logarithm
OUTLIER = 0.05      # residuals beyond count as their logarithm


class Tables:
    """Rows of measured training jobs of one software."""

    def __init__(self, folder, names, software):
        self.tables = [TrainingTable.read(f"{folder}/{name}.csv") for name in names]
        for table in self.tables:
            table.keep(lambda row: row.software == software)
        self.tables = [table for table in self.tables if table.rows]

    def log_ratios(self, software, threads):
        """Log of simulated over measured time, for each row that a fit may see."""
        samples = [(table, row) for each in self.tables for table in [each.with_software(software)]
                   for row in table.rows if row.role == "fit" and not row.note]

        def ratio(sample):
            table, row = sample
            seconds = table.predict(row).seconds
            if row.seconds:
                return math.log(seconds / row.seconds)
            return math.log(row.tflops_per_gpu / table.tflops_of(row, seconds))
        return spread(ratio, samples, threads)


def ratios_at(tables, config, constants, values, threads):
    for name, value in zip(constants, values):
        config.put(name, exact(float(value), CONSTANTS[name][0]))
    return numpy.array(config.read(lambda path: tables.log_ratios(path, threads)))


def fit(tables, config, constants, threads):
    """(values, steps, mean errors at the start and after each step)."""
    units, least, most = zip(*(CONSTANTS[name] for name in constants))
    low, high, errors = numpy.log(least), numpy.log(most), []
    start = numpy.log(numpy.clip([config.value(*each) for each in zip(constants, units)],
                                 least, most))

    def residuals(logs):
        values = from_logs(logs, least, most)
        ratios = ratios_at(tables, config, constants, values, threads)
        return numpy.append(ratios, PRIOR * numpy.sqrt(len(ratios)) * (logs - start))

    def progress(step, r):
        errors.append(numpy.abs(numpy.exp(r[:-len(constants)]) - 1).mean())
        if sys.stderr.isatty():
            print(f"step {step}: mean error {100 * errors[-1]:.2f} %", file=sys.stderr)

    logs, _, steps = fit_least_squares(residuals, start, low, high, loss="cauchy", scale=OUTLIER,
                                       step=LOG_STEP, iterations=MOST_STEPS,
                                       least_gain=GOOD_ENOUGH, progress=progress)
    return from_logs(logs, least, most), steps, errors


def main(options):
    constants = options.constants or list(CONSTANTS)
    for name in constants:
        if name not in CONSTANTS:
            near = difflib.get_close_matches(name, CONSTANTS, 1)
            hint = f"; did you mean \"{near[0]}\"?" if near else ""
            raise failed([("--constants", "", f"unknown constant \"{name}\"{hint} Known: "
                                              f"{', '.join(CONSTANTS)}")])
    path = find("software", options.software)
    config = ConfigFile(path)
    tables = Tables(options.dir, options.tables, path.stem)
    if not tables.log_ratios(str(path), options.jobs):
        raise failed([(options.dir, "", "no rows with role fit whose setting (configs/validation) "
                                        f"has the software {path.stem} in "
                                        f"{','.join(options.tables)}")])
    units = [CONSTANTS[name][0] for name in constants]
    start = [config.value(*each) for each in zip(constants, units)]
    values, steps, errors = fit(tables, config, constants, options.jobs)
    ratios_at(tables, config, constants, values, options.jobs)  # puts them
    shown = [config.value(*each) for each in zip(constants, units)]
    judged = config.read(lambda fitted: [table.with_software(fitted).judged(options.jobs)
                                         for table in tables.tables])
    if options.output:
        config = ConfigFile(path)
        source = f"fitted: scripts/fit training --software {options.software}"
        if options.constants:
            source += f" --constants {','.join(constants)}"
        for name, unit, value in zip(constants, units, shown):
            config.put(name, spelled(value, unit),
                       f"{source}, rows with role fit of "
                       f"{', '.join(table.name for table in tables.tables)}")
        write_file(options.output, config.text())
    print(tables_text([table["table"] for table in judged]), end="")
    print(f"{steps} steps, mean |error| of fit rows {100 * errors[0]:.2f} % -> "
          f"{100 * errors[-1]:.2f} %\n")
    print(constants_text(zip(constants, units, start, shown)))
    rows = [row for table in judged for row in table["rows"]]
    print(parallel.summary_text(parallel.summarise(rows)), end="")
    if options.output:
        print(f"\nwritten: {options.output}")
