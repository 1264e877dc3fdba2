"""Tables of measured sharing judged in shorter runs than the report's, for time."""
from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

SOURCE = Path(os.environ["BUBBLESIM_SOURCE"])
TABLES = Path(sys.argv[1])
sys.path.insert(0, str(SOURCE / "notebooks"))
os.environ["BUBBLESIM_CONFIGS"] = str(SOURCE / "configs")

from lab import sharing  # noqa: E402


def seconds(text: str) -> float:
    return sharing.bubblesim.parse_duration(text) / 1e9


def cut_spans(arrivals: dict, start: float, length: float) -> None:
    for span in arrivals.get("measured", []):
        begin = min(seconds(span["from"]), start)
        end = min(seconds(span["until"]), begin + length)
        span |= {"from": f"{begin:g}s", "until": f"{end:g}s"}


def judge(table: str, *, requests: int, least_s: float, span: tuple[float, float],
          systems: tuple[str, ...] = (), every: int = 1, **more: object) -> list[dict]:
    """Every so-manieth row of the systems; `span`: from when on, and for how long, a run that is
    measured for a part of its time is counted at most (s)."""
    setting = json.loads((SOURCE / f"configs/validation/{table}.json").read_text())
    arrivals = setting["arrivals"]
    arrivals["requests"] = min(arrivals["requests"], requests)
    arrivals["starts"] = min(arrivals.get("starts", 1), 3)
    arrivals["least_length"] = f"{min(seconds(arrivals['least_length']), least_s):g}s"
    cut_spans(arrivals, *span)
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(setting, file)
        file.flush()
        return sharing.simulate([str(TABLES / f"{table}.csv")], setting=file.name, systems=systems,
                                rows=range(0, 10_000, every), threads=2, **more)["rows"]


def errors(rows: list[dict]) -> dict[tuple[str, str], sharing.Summary]:
    """By system and metric: of rows marked judge if there are any, else of all."""
    return {(system, metric): summary for (_, system, metric), summary
            in sharing.counted(sharing.summarise(rows)).items()}
