"""Results as JSON and as tables in Markdown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Result = dict[str, Any]


def percent(ratio: float) -> str:
    return f"{100 * (ratio - 1):+.2f}"


def capture_table(results: list[Result]) -> list[str]:
    rows = [r for r in results if r["kind"] == "capture" and r["status"] == "done"]
    if not rows:
        return []
    lines = ["## Traces", "",
             "| trace | iteration ms | device operations | kB | replay error % | worst % |",
             "|---|---:|---:|---:|---:|---:|"]
    for r in rows:
        lines.append(
            f"| `{r['name']}` | {1e3 * r['median_iteration_s']:.3f} | {r['device_ops']} | "
            f"{r['trace_bytes'] / 1e3:.0f} | {100 * r['replay_mean_error']:.3f} | "
            f"{100 * r['replay_worst_error']:.3f} |")
    lost = [f"- `{r['name']}` lost {r['lost']}" for r in rows if r.get("lost")]
    return lines + [""] + (lost + [""] if lost else [])


def overhead_table(results: list[Result]) -> list[str]:
    rows = [r for r in results if r["kind"] == "overhead" and r["status"] == "done"]
    if not rows:
        return []
    lines = ["## Overhead", "",
             "Median iteration time; 95 % intervals in brackets. Overhead is against the job "
             "without the recorder, in interleaved rounds.", "",
             "| workload | arm | iterations | median ms | overhead % |", "|---|---|---:|---:|---:|"]
    for r in rows:
        for name, arm in r["arms"].items():
            low, high = arm["median_s_95"]
            over = "" if name == "absent" else (
                f"{percent(arm['ratio'])} [{percent(arm['ratio_95'][0])}, "
                f"{percent(arm['ratio_95'][1])}]")
            lines.append(f"| `{r['name'].removeprefix('overhead-')}` | {name} | "
                         f"{arm['iterations']} | {1e3 * arm['median_s']:.3f} "
                         f"[{1e3 * low:.3f}, {1e3 * high:.3f}] | {over} |")
    return lines + [""]


def failure_list(results: list[Result]) -> list[str]:
    rows = [r for r in results if r["status"] != "done"]
    if not rows:
        return []
    lines = ["## Not done", ""]
    return lines + [f"- `{r['name']}`: {r['status']}: {r['reason']}" for r in rows] + [""]


def write(folder: Path, facts: Result, results: list[Result]) -> None:
    (folder / "results.json").write_text(
        json.dumps({**facts, "parts": results}, indent=1, sort_keys=True) + "\n")
    known = [f"{key} {facts[key]}" for key in ("device", "driver", "torch", "cuda", "date")
             if facts.get(key)]
    lines = ["# Campaign", "", ", ".join(known), ""]
    lines += capture_table(results) + overhead_table(results) + failure_list(results)
    (folder / "results.md").write_text("\n".join(lines))
