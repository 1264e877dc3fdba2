"""Started by first_contact.sh, which says what the options mean."""

from __future__ import annotations

import argparse
import datetime
import os
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any, Dict, List, Optional

from processes import end_on_signals, first_line, run_logged

from . import device, results
from .context import ROOT, Context, Verdict, blocked, failed, read_json, write_json
from .parts import PARTS, Part

PACK_S = 8.0   # kept at the end of the time for the results
FAKE_LEAST = 0.1  # of a part's least time, on fakes
BUILD_S = 420.0


def say(text: str) -> None:
    print(f"first_contact: {text}", flush=True)


def parse(argv: List[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="first_contact", description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--work", type=Path)
    parser.add_argument("--from", type=Path, action="append", default=[], dest="earlier")
    parser.add_argument("--bubblesim", type=Path)
    parser.add_argument("--budget", type=float, default=570.0)
    parser.add_argument("--only", default="")
    parser.add_argument("--again", default="")
    parser.add_argument("--build", action="store_true")
    parser.add_argument("--fake", action="store_true")
    parser.add_argument("--dry-run", action="store_true")
    return parser.parse_args(argv)


def letters(text: str, option: str) -> List[str]:
    names = [name for name in text.split(",") if name]
    known = [part.name for part in PARTS]
    unknown = [name for name in names if name not in known]
    if unknown:
        print(f"first_contact: {option}: no part {unknown[0]!r}; there are: {', '.join(known)}",
              file=sys.stderr)
        sys.exit(2)
    return names


def starts(program: Path) -> bool:
    return os.access(program, os.X_OK) and first_line([str(program), "--version"]) != ""


def find_program(arguments: argparse.Namespace, work: Path, left_s: float) -> Optional[Path]:
    """One that starts on this machine: the one named, the bundle's, a build's, or built now."""
    named = [arguments.bubblesim] if arguments.bubblesim else []
    places = named or [ROOT / "out" / "bundle" / "bin" / "bubblesim",
                       *sorted(ROOT.glob("build/*/sim/app/bubblesim"))]
    for place in places:
        if starts(place):
            return Path(place).resolve()
        if place.exists():
            say(f"note: {place} does not start here")
    if not arguments.build:
        return None
    say("building the program")
    folder = ROOT / "build" / "demo"
    command = (f"cmake --preset demo -S '{ROOT}' && cmake --build '{folder}' --target bubblesim "
               "bubblesim_replay bubblesim_capture bubblesim_gate")
    run_logged(["bash", "-c", command], work / "logs" / "build.txt", min(BUILD_S, left_s / 2))
    built = folder / "sim" / "app" / "bubblesim"
    return built if starts(built) else None


class FirstContact:
    def __init__(self, arguments: argparse.Namespace) -> None:
        self.arguments = arguments
        self.deadline = time.monotonic() + arguments.budget
        self.out: Path = arguments.out.absolute()
        # Beside the results and not in them, for what comes back is counted.
        beside = self.out.parent / (self.out.name + ".work")
        if self.out.parent.is_dir() and not os.access(self.out.parent, os.W_OK):
            beside = Path(tempfile.gettempdir()) / "first-contact.work"
        self.work: Path = (arguments.work or beside).absolute()
        only = letters(arguments.only, "--only")
        self.again = letters(arguments.again, "--again")
        self.parts = [part for part in PARTS if not only or part.name in only]

    def left_s(self) -> float:
        return self.deadline - time.monotonic()

    def record_path(self, part: Part) -> Path:
        return self.work / "records" / f"{part.name}.json"

    def done(self, part: Part) -> Optional[Dict[str, Any]]:
        record = read_json(self.record_path(part))
        finished = record and record.get("status") == "ok" and part.name not in self.again
        return record if finished else None

    def dry_run(self) -> int:
        total = 0.0
        for part in self.parts:
            done = self.done(part) is not None
            total += 0 if done else part.limit_s
            state = "done" if done else f"at most {part.limit_s:.0f} s"
            print(f"{part.name}  {state:16} {part.title}")
        print(f"at most {total:.0f} s; {self.arguments.budget:.0f} s are given; what does not fit "
              "waits for the next call")
        return 0

    def prepare(self) -> Context:
        for folder in [*self.arguments.earlier, self.out]:
            count = results.unpack(folder, self.work)
            if count:
                say(f"{count} files of an earlier call, from {folder}")
        program = find_program(self.arguments, self.work, self.left_s())
        if program is None:
            say("note: no program bubblesim starts here; capture/bundle.sh makes one")
        context = Context(self.work, sys.executable, program, self.arguments.fake)
        os.environ.update(context.environment())
        context.facts = read_json(self.work / "a" / "facts.json") or {}
        return context

    def run(self) -> int:
        self.work.mkdir(parents=True, exist_ok=True)
        context = self.prepare()
        held: List[int] = []
        try:
            for part in self.parts:
                # Part a's programs may be what makes the device files.
                held = held or ([] if self.arguments.fake else device.hold_devices())
                self.one(context, part)
        finally:
            for file in held:
                os.close(file)
            self.pack()
        records = self.records()
        for line in results.verdict_lines(records):
            print(line)
        return 0 if all(record["status"] == "ok" for record in records) else 1

    def one(self, context: Context, part: Part) -> None:
        # What there is may differ from one machine to the next: part a is always done again.
        if self.done(part) and part.name != "a":
            say(f"{part.name}: done before")
            return
        if part.name in self.again:
            self.forget(part)
        began = time.monotonic()
        verdict = self.verdict_of(context, part)
        record = {"part": part.name, "title": part.title, "status": verdict.status,
                  "line": " ".join(verdict.line.split()), "figures": verdict.figures,
                  "took_s": round(time.monotonic() - began, 3),
                  "at": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")}
        write_json(self.record_path(part), record)
        print(results.verdict_lines([record])[0], flush=True)
        self.pack()

    def forget(self, part: Part) -> None:
        """What a part keeps would be taken for done: it is put aside."""
        aside = self.work / "before" / str(int(time.time()))
        for path in [found for pattern in (part.name, *part.keeps)
                     for found in self.work.glob(pattern)]:
            place = aside / path.relative_to(self.work)
            place.parent.mkdir(parents=True, exist_ok=True)
            path.rename(place)

    def verdict_of(self, context: Context, part: Part) -> Verdict:
        if part.program and context.bubblesim is None:
            return blocked("no program bubblesim starts here (capture/bundle.sh)")
        limit_s = min(part.limit_s, self.left_s() - PACK_S)
        if limit_s < part.least_s * (FAKE_LEAST if self.arguments.fake else 1):
            return Verdict("waits", f"{max(self.left_s(), 0):.0f} s are left")
        try:
            return part.run(context, limit_s)
        except Exception:  # a part's own fault must not cost the parts after it
            text = traceback.format_exc()
            (self.work / "logs").mkdir(exist_ok=True)
            (self.work / "logs" / f"{part.name}-fault.txt").write_text(text)
            return failed(f"a fault of this script: {text.strip().splitlines()[-1]}")

    def records(self) -> List[Dict[str, Any]]:
        found = [read_json(self.record_path(part)) for part in PARTS]
        return [record for record in found if record]

    def pack(self) -> None:
        left_out = results.pack(self.work, self.out)
        records = self.records()
        lines = results.verdict_lines(records)
        if left_out:
            lines.append(f"left out, for size: {', '.join(left_out)}")
        (self.out / "verdicts.txt").write_text("\n".join(lines) + "\n")
        write_json(self.out / "results.json", {"parts": records, "left_out": left_out})


def main(argv: List[str]) -> int:
    contact = FirstContact(parse(argv))
    return contact.dry_run() if contact.arguments.dry_run else contact.run()


if __name__ == "__main__":
    end_on_signals()
    sys.exit(main(sys.argv[1:]))
