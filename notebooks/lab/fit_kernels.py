"""Constants of configs/efficiency from measured kernels: few constants with a meaning each, fitted
together to all rows of a kind; the loss is robust and on log(model / measured), so that every
kernel counts alike whatever its length. Rows for judging are looked at for their errors alone.
"""
import json
import sys

import numpy
from bubblesim import _core
from bubblesim._table import write_file

from .config_file import ConfigFile, constants_text, failed, find, table_text
from .kernel_tables import FAMILIES, KINDS, PRECISIONS, TABLES, read_measured_kernels
from .least_squares import fit_least_squares
from .recorded_kernels import RECORDINGS

LONG_NS = 3000  # 1 us is the resolution of some tables: shorter kernels tell little
# What is fitted at once, in this order: a later stage builds on the constants of earlier ones (fp32
# products on those of tensor cores, convolutions on those of products). Every stage starts from the
# defaults in efficiency.hpp, so that a fit does not depend on the file that it renews.
GEMM = ["math_share", "dram_share", "fixed", "tile_half_size", "wave_overhead", "roof_exponent",
        "idle_speedup", "hot_slowdown", "hot_after", "sm_reach", "split_dram_share"]
STAGES = [
    (lambda work: work.kind == "gemm" and work.precision != "fp32", [f"gemm/{g}" for g in GEMM]),
    (lambda work: work.kind == "gemm" and work.precision == "fp32", ["gemm/fp32_math_share"]),
    ("convolution", ["convolution/math_share", "convolution/dram_share",
                     "convolution/roof_exponent"]),
    ("attention", ["attention/math_share", "attention/fixed"]),
    ("elementwise", ["elementwise/dram_share", "elementwise/fixed", "l2/resident", "l2/speedup"]),
    *((kind, [f"{kind}/dram_share", f"{kind}/fixed"]) for kind in KINDS[4:])]
MOST_ROWS = 3000   # of a stage; more are thinned out evenly
LEAST_ROWS = 4     # with fewer nothing is fitted
# What is known of a constant before any row: its default, give or take 30 %. It weighs as one row
# that is measured to 5 %: nothing beside thousands, and enough to hold what a dozen cannot tell.
PRIOR_SPREAD, PRIOR_ERROR = 0.3, 0.05
HELP = {"kernel_tables_missing": ("notice", "tables of measured kernels that are not in the data "
                                            "folder; the fit does without them"),
        "kernel_rows_unread": ("info", "rows of measured tables that name no kernel of a known "
                                       "kind, or no positive time")}


class Kernels:
    """Measured rows, and what the model says of them under constants by path."""

    def __init__(self, rows, name):
        self.rows = rows
        self.model = _core.KernelTimes(name, _core.config_folder(), [
            (KINDS.index(work.kind), PRECISIONS.index(work.precision), work.shape, work.flops,
             work.bytes, work.elements, row.device) for row in rows for work in [row.work]])
        self.constants = self.model.constants
        self.measured = numpy.array([row.ns for row in rows]) * 1e-9

    def log_ratios(self, chosen, values):
        return numpy.log(numpy.array(self.model.seconds(chosen, values)) / self.measured[chosen])


def takes(stage, work, ns):
    return stage(work) if callable(stage) else work.kind == stage and ns >= LONG_NS


def sentence(rows, mean):
    publishers = list(dict.fromkeys(row.source.split(" ")[0] for row in rows))
    return (f"fitted: scripts/fit kernels, {len(rows)} rows of {', '.join(publishers)}, mean "
            f"|error| {100 * mean:.1f} %")


def fit_stage(kernels, stage, paths, values, constants):
    """Renews `values` of the stage's paths; appends (path, unit, start, value, source) each."""
    chosen = [number for number, row in enumerate(kernels.rows)
              if row.role == "fit" and takes(stage, row.work, row.ns)]
    if len(chosen) < LEAST_ROWS:
        return
    defaults = {path: constant[3] for path, constant in kernels.constants.items()}
    if stage == "convolution":
        # PyTorch's images are channels-first; the libraries transpose them before and after,
        # without overlap: three times the traffic. All else is as for products.
        for name in [*GEMM, "fp32_math_share"]:
            values[f"convolution/{name}"] = values[f"gemm/{name}"]
        values.update({"convolution/dram_share": 0.3, "convolution/roof_exponent": 1.1})
        defaults = values.copy()
    few = chosen if len(chosen) <= MOST_ROWS else [
        chosen[i * len(chosen) // MOST_ROWS] for i in range(MOST_ROWS)]
    given = numpy.array([defaults[path] for path in paths])
    least, most = numpy.array([kernels.constants[path][1:3] for path in paths]).T
    scale = numpy.where(given > 0, given, most * 1e-3)
    start = given / scale
    low = numpy.maximum(least / scale, start / 20)
    high = numpy.minimum(most / scale, numpy.maximum(start, 1.0) * 20)

    def at(parameters):
        return {**values, **dict(zip(paths, map(float, parameters * scale)))}

    def residuals(parameters):
        return numpy.append(kernels.log_ratios(few, at(parameters)),
                            (parameters - start) * (PRIOR_ERROR / PRIOR_SPREAD))

    found = at(fit_least_squares(residuals, start, low, high)[0])
    mean = numpy.abs(numpy.exp(kernels.log_ratios(chosen, found)) - 1).mean()
    source = sentence([kernels.rows[number] for number in chosen], mean)
    constants += [(path, kernels.constants[path][0], values[path], found[path], source)
                  for path in paths]
    values.update(found)


def row_text(row):
    m, n, k, batch = row.work.shape
    shape = f"{batch} x {m} x {n} x {k}" if m > 0 else f"{row.work.bytes * 1e-6:.3g} MB"
    return f"{row.source}, {row.work.name} {shape}, {row.ns * 1e-3:.1f} us"


def errors_of(kernels, values):
    """By kind and precision, fit rows before judge rows: dicts as --json prints them."""
    errors = numpy.exp(kernels.log_ratios(list(range(len(kernels.rows))), values)) - 1
    groups = {}
    for row, error in zip(kernels.rows, errors):
        name = f"{row.work.kind}, {row.work.precision}"
        groups.setdefault((row.role, name), []).append((float(error), row))
    out = []
    for (role, name), all_rows in sorted(groups.items()):
        long_rows = [abs(error) for error, row in all_rows if row.ns >= 20_000]
        worst = max(all_rows, key=lambda one: abs(one[0]))
        out.append({
            "kernels": name, "role": role, "rows": len(all_rows),
            "rows_of_20us_or_more": len(long_rows),
            "mean_absolute_error": sum(abs(error) for error, _ in all_rows) / len(all_rows),
            "mean_absolute_error_of_20us_or_more": sum(long_rows) / max(1, len(long_rows)),
            "bias": sum(error for error, _ in all_rows) / len(all_rows),
            "worst": worst[0], "worst_row": row_text(worst[1])})
    return out


def fit(kernels):
    """(values by path, constants as (path, unit, start, value, source))."""
    values = {path: constant[4] for path, constant in kernels.constants.items()}
    constants = []
    for stage, paths in STAGES:
        fit_stage(kernels, stage, paths, values, constants)
    return values, constants


def errors_text(errors):
    lines = [[e["kernels"], e["role"], str(e["rows"]), *(f"{100 * e[key]:.1f}%" for key in (
        "mean_absolute_error", "mean_absolute_error_of_20us_or_more", "bias", "worst")),
        e["worst_row"]] for e in errors]
    return table_text(["kernels", "rows", "n", "|error|", ">= 20 us", "bias", "worst",
                       "the worst one"], {2, 3, 4, 5, 6}, lines)


def main(options):
    path = find("efficiency", options.device)
    family = next((family for family in FAMILIES if path.stem.startswith(family)), path.stem)
    rows, sources, left_out = read_measured_kernels(options.data, family, TABLES + RECORDINGS)
    kernels = Kernels(rows, str(path))
    values, constants = fit(kernels)
    errors = errors_of(kernels, values)
    if options.output:
        config = ConfigFile(path)
        for name in kernels.constants:
            config.put(name, float(f"{values[name]:.4g}"))
        for name, _, _, _, source in constants:
            config._place(name)[0]["source"] = source
        write_file(options.output, config.text())
    if options.json:
        print(json.dumps({"sources": sources, "constants": [
            {"path": path, "start": start, "value": value, "source": source}
            for path, _, start, value, source in constants], "errors": errors}, indent=1))
    else:
        print(f"{len(rows)} rows of {len(sources)} tables\n")
        print(constants_text(constant[:4] for constant in constants))
        print(errors_text(errors), end="")
    for name in sorted(left_out):
        severity, text = HELP[name]
        print(f"{name} ({severity}): {left_out[name]}: {text}", file=sys.stderr)
    if options.output and not options.json:
        print(f"\nwritten: {options.output}")


__all__ = ["Kernels", "errors_of", "failed", "fit", "main"]
