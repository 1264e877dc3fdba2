"""Figures of papers from result files: everything that the notebooks use.

    import figures
    figures.style()
    frame = figures.sweep("specinf-dp")          # rows of configs/figures/specinf-dp.json
    figures.settings(frame)                      # which constants stand behind it

Functions named after a figure return its table, a pandas frame; units are in the columns' names.
Nothing here simulates: `scripts/figures` does, and writes what this reads.
"""
from tables import (
    beyond, beyond_claims, beyond_draw, beyond_draw_jobs, beyond_jobs, beyond_llm, draw, errors,
    field, field_claims, field_draw, pipefill, pipefill_claims, pipefill_sensitivity, specinf,
    specinf_claims, specinf_draw, tour)
from tables.claims import Claim, save as save_claims, within
from tables.draw import (
    COLUMN, PAGE, bars, grid, legend, lines, logarithmic, points, save, style)
from tables.results import (
    Missing, half_interval, over_seeds, parameter, parameters, reduced, run, settings, sweep,
    usage)

__all__ = [
    "COLUMN", "Claim", "Missing", "PAGE", "bars", "beyond", "beyond_claims", "beyond_draw",
    "beyond_draw_jobs", "beyond_jobs", "beyond_llm", "draw", "errors", "field", "field_claims",
    "field_draw", "grid", "half_interval", "legend", "lines", "logarithmic", "over_seeds",
    "parameter", "parameters", "pipefill", "pipefill_claims", "pipefill_sensitivity", "points",
    "reduced", "run", "save", "save_claims", "settings", "specinf", "specinf_claims",
    "specinf_draw", "style", "sweep", "tour", "usage", "within"]
