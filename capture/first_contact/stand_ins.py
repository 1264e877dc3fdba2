"""Parts c and f: stand-in kernels against what they should last; the constants of the card."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, List

import validate_campaign
from processes import last_lines, run_logged

from .context import Context, Verdict, failed, ok, partial, write_json
from .pairs import CONFIGS, FIRST_PAIR
from .sharing import quantiles

# Columns of a file of fits (capture/replay/cuda/stand_in_fit.cpp), behind its head line.
COLUMNS = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z", "registers",
           "shared_bytes", "bound", "tensor", "dram_share", "issue_share", "solo_ns", "floor_ns",
           "loop_ns", "sparse", "dense", "wide", "tensor_steps", "memory_rate", "error",
           "at_floor")
BOUNDS = ("unknown", "compute", "memory")
TOLERANCE = 0.02  # kFitTolerance
SECOND_PAIR = "vgg19-dp--resnet50-online"
MEASURED = ("launch_latency", "stream_gap", "sync_latency", "completion_notice", "dram_reach",
            "host_bandwidth", "time_slice", "context_switch", "client_switch")
NEED_MPS = ("clients", "sms", "contention")
Json = Dict[str, Any]


def read_fits(path: Path) -> List[Dict[str, float]]:
    """Lines of another length are of another format, and are left out."""
    if not path.is_file():
        return []
    rows = [line.split() for line in path.read_text().splitlines()[1:]]
    return [dict(zip(COLUMNS, map(float, row))) for row in rows if len(row) == len(COLUMNS)]


def class_of(fit: Dict[str, float]) -> str:
    if fit["tensor"]:
        kind = "tensor"
    else:
        kind = BOUNDS[int(fit["bound"])]
    size = "below 10 us" if fit["solo_ns"] < 10e3 else \
        "below 100 us" if fit["solo_ns"] < 100e3 else "100 us and more"
    return f"{kind}, {size}"


def by_class(fits: List[Dict[str, float]]) -> Dict[str, Json]:
    """Errors of durations by class; floors apart, for what is at its floor lasts too long."""
    groups: Dict[str, List[Dict[str, float]]] = {}
    for fit in fits:
        groups.setdefault(class_of(fit), []).append(fit)
    made = {}
    for name, group in sorted(groups.items()):
        fitted = [fit for fit in group if not fit["at_floor"]]
        made[name] = {
            "kernels": len(group), "error": quantiles([fit["error"] for fit in fitted]),
            "off_target": sum(fit["error"] > TOLERANCE for fit in fitted),
            "at_floor": len(group) - len(fitted),
            "floor_ns": quantiles([fit["floor_ns"] for fit in group])}
    return made


def alone(folder: Path) -> Dict[str, Json]:
    """Of each job: its iteration alone, and what the worker counted (replay/cuda/README.md says how
    to read it)."""
    made = {}
    for path in sorted(folder.glob("*/results.json")):
        for report in validate_campaign.read_reports(path):
            training = report["policies"][0].get("training", {})
            made[path.parent.name] = {"iteration_ns": training.get("iteration_mean_ns"),
                                      "counters": report.get("counters", [])}
    return made


def stand_ins(context: Context, limit_s: float) -> Verdict:
    """Part c: two jobs alone, whose kernels are fitted on the way; then their iterations."""
    folder = context.folder("c")
    wrong = []
    for number, name in enumerate((FIRST_PAIR, SECOND_PAIR)):
        arguments = ["measure", str(CONFIGS / f"{name}.json"), "--policy", "exclusive", "--device",
                     context.device_name(), "--out", str(folder / name)]
        arguments += ["--fake"] if context.fake else ["--fits", str(context.fits)]
        log = folder / f"{name}.txt"
        code = run_logged([str(context.bubblesim), *arguments], log,
                          limit_s * (0.6 if number == 0 else 0.4) - 5, context.environment(),
                          patience_s=15.0)
        if code not in (0, 1):
            wrong.append(f"{name}: " + ("took too long" if code is None else last_lines(log, 2)))
    classes = by_class(read_fits(context.fits))
    write_json(folder / "classes.json", classes)
    jobs = alone(folder)
    kernels = sum(it["kernels"] for it in classes.values())
    off = sum(it["off_target"] for it in classes.values())
    floors = sum(it["at_floor"] for it in classes.values())
    said = "; ".join([f"{kernels} stand-ins, {off} off by more than 2 %, {floors} at their floor",
                      *(f"{name}: worst {100 * it['error'].get('max', 0):.1f} %"
                        for name, it in classes.items()),
                      *(f"{name} alone {(it['iteration_ns'] or 0) / 1e6:.3f} ms"
                        for name, it in jobs.items()), *wrong])
    if not jobs:
        return failed(said, classes=classes)
    return (partial if wrong else ok)(said, classes=classes, jobs=jobs)


def measured(device: Json, prefix: str = "") -> List[str]:
    """Names of the constants whose source is a measurement."""
    names = []
    for name, value in device.items():
        if isinstance(value, dict) and str(value.get("source", "")).startswith("measured"):
            names.append(prefix + name)
        elif isinstance(value, dict) and "source" not in value:
            names += measured(value, f"{prefix}{name}/")
    return names


def constants(context: Context, limit_s: float) -> Verdict:
    """Part f."""
    folder = context.folder("f")
    part = folder / "device.part.json"
    arguments = ["calibrate", "-o", str(part), "--residuals", str(folder / "residuals.csv")]
    wrong = []
    if context.fake:
        arguments += ["--fake", "--device", "h100"]
    else:
        arguments += ["--fits", str(context.fits), "--device", context.device_name()]
    if context.mps_refused():
        arguments += ["--only", "latencies,copies,slices"]
        wrong.append(f"without {', '.join(NEED_MPS)}, for want of MPS")
    log = folder / "log.txt"
    code = run_logged([str(context.bubblesim), *arguments], log, limit_s, context.environment(),
                      patience_s=15.0)
    if code not in (0, 1) or not part.is_file():
        return failed("took too long" if code is None else last_lines(log, 3))
    part.rename(folder / "device.json")
    device = json.loads((folder / "device.json").read_text())
    found = measured(device)
    kept = [name for name in MEASURED if name not in found]
    if kept:
        wrong.append(f"not measured, see log.txt: {', '.join(kept)}")
    values = [f"{name} {device[name]['value']}" for name in found if "/" not in name]
    said = "; ".join([f"{len(found)} constants measured", *values, *wrong])
    return (partial if wrong else ok)(said, measured=found)
