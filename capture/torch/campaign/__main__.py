"""A campaign of captures. Started by capture/campaign.sh, which says what the options mean."""

from __future__ import annotations

import argparse
import datetime
import json
import platform
import sys
import time
from pathlib import Path
from typing import Any

from processes import end_on_signals, first_line

from . import report
from .parts import Part, all_parts, fake_parts
from .runner import Tools, build_standin, is_done, run_part

MEGABYTE = 1_000_000


def parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="campaign", description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--bubblesim", type=Path, default=Path("bubblesim"))
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--budget", type=float, default=540.0, help="seconds for all parts")
    parser.add_argument("--max-mb", type=float, default=60.0, help="of all traces together")
    parser.add_argument("--only", default="", help="names of parts, with commas")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--fake", action="store_true")
    parser.add_argument("--dry-run", action="store_true")
    return parser.parse_args(argv)


def chosen_parts(arguments: argparse.Namespace) -> list[Part]:
    parts = fake_parts() if arguments.fake else all_parts(arguments.quick)
    names = [name for name in arguments.only.split(",") if name]
    unknown = [name for name in names if name not in {part.name for part in parts}]
    if unknown:
        raise SystemExit(f"campaign: --only: no part {unknown[0]!r}; "
                         f"there are: {', '.join(part.name for part in parts)}")
    return [part for part in parts if not names or part.name in names]


def facts_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """What the results were measured with; empty texts: not known."""
    smi = first_line(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"])
    device, _, driver = smi.partition(",")
    return {"date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
            "device": device.strip(), "driver": driver.strip(),
            "python": platform.python_version(), "system": platform.platform(),
            "bubblesim": first_line([str(arguments.bubblesim), "--version"])}


class Campaign:
    def __init__(self, arguments: argparse.Namespace) -> None:
        self.arguments = arguments
        self.began = time.monotonic()
        self.parts = chosen_parts(arguments)
        self.facts = {} if arguments.dry_run else facts_of(arguments)
        self.records = arguments.out / "parts"
        rounds = 1 if arguments.quick else 2
        self.tools = Tools(arguments.bubblesim.absolute(), arguments.python,
                           arguments.out.absolute(), rounds, self.began + arguments.budget)

    def finished(self, part: Part) -> dict[str, Any] | None:
        """The record of an earlier run, if the part was done then."""
        try:
            record: dict[str, Any] = json.loads((self.records / f"{part.name}.json").read_text())
        except (OSError, ValueError):
            return None
        return record if is_done(record) else None

    def left_s(self) -> float:
        return float(self.arguments.budget) - (time.monotonic() - self.began)

    def list_parts(self) -> None:
        total = 0.0
        for part in self.parts:
            done = self.finished(part) is not None
            total += 0 if done else part.expect_s
            state = f"about {part.expect_s:.0f} s, at most {part.limit_s:.0f} s a job"
            state = "done" if done else state
            print(f"{part.name:34} {part.kind:9} {state:34} {' '.join(part.arguments)}")
        print(f"about {total:.0f} s of {self.arguments.budget:.0f} s; "
              "what does not fit is left for the next run")

    def run(self) -> list[dict[str, Any]]:
        self.records.mkdir(parents=True, exist_ok=True)
        results: list[dict[str, Any]] = []
        if not self.arguments.fake and any(self.finished(p) is None for p in self.parts):
            build_standin(self.tools)
        for number, part in enumerate(self.parts, 1):
            results.append(self._one(part))
            print(f"campaign: {number} of {len(self.parts)}: {part.name}: "
                  f"{results[-1]['status']}, {self.left_s():.0f} s left", file=sys.stderr)
            report.write(self.arguments.out, self._facts(results), results)
        return results

    def _one(self, part: Part) -> dict[str, Any]:
        record = self.finished(part)
        if record is not None:
            return record
        if self.left_s() < part.expect_s:
            return {"name": part.name, "kind": part.kind, "status": "skipped",
                    "reason": "no time left in this run"}
        record = self._within_size(run_part(self.tools, part))
        partial = self.records / f"{part.name}.part"
        partial.write_text(json.dumps(record))
        partial.replace(self.records / f"{part.name}.json")
        return record

    def _within_size(self, record: dict[str, Any]) -> dict[str, Any]:
        """A trace with which all would be too large is removed; its figures stay."""
        if "trace" not in record:
            return record
        traces = self.arguments.out / "traces"
        total = sum(path.stat().st_size for path in traces.glob("*.btr"))
        if total > self.arguments.max_mb * MEGABYTE:
            (self.arguments.out / record["trace"]).unlink()
            record["trace"] = None
            record["note"] = f"not kept: all traces would be more than {self.arguments.max_mb} MB"
        return record

    def _facts(self, results: list[dict[str, Any]]) -> dict[str, Any]:
        for result in results:
            for key in ("torch", "cuda"):
                self.facts.setdefault(key, result.get("job", {}).get(key))
                if self.facts[key] is None:
                    del self.facts[key]
        return self.facts


def main(argv: list[str]) -> int:
    campaign = Campaign(parse(argv))
    if campaign.arguments.dry_run:
        campaign.list_parts()
        return 0
    results = campaign.run()
    done = sum(result["status"] == "done" for result in results)
    print(f"campaign: {done} of {len(results)} parts done; "
          f"{campaign.arguments.out / 'results.md'}", file=sys.stderr)
    return 0 if done == len(results) else 1


if __name__ == "__main__":
    end_on_signals()
    sys.exit(main(sys.argv[1:]))
