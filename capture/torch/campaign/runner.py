"""Runs one part: starts jobs with and without the recorder, and reads what they left."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from processes import end_group, ending_waits, last_lines, start_logged

from .parts import Part
from .statistics import median, median_interval, ratio_interval

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
LISTEN_S = 5.0
# What is asked of the recorder: kernels alone, all but allocations, all.
RECORDED = {"light": ("--light",), "without-memory": ("--no-memory",), "capturing": ()}
ARMS = ("absent", "idle", *RECORDED)
# Above this share of operations without a launch, a replay says little of the recording.
MOST_WITHOUT_LAUNCH = 0.01


class PartFailure(Exception):
    """Why a part has no result; the campaign goes on."""


@dataclass
class Tools:
    bubblesim: Path
    python: str
    folder: Path  # of the campaign
    rounds: int
    deadline: float  # by time.monotonic: no job lives longer


def job_command(tools: Tools, part: Part) -> list[str]:
    """An example script, or a program by its absolute path."""
    name, *options = part.arguments
    program = [name] if name.startswith("/") and not name.endswith(".py") \
        else [tools.python, str(EXAMPLES / name)]
    return program + options


class Job:
    """One process of a part, with its log; the whole group is ended if it lasts too long."""

    def __init__(self, tools: Tools, part: Part, arm: str, work: Path, iterations: int) -> None:
        work.mkdir(parents=True, exist_ok=True)
        self.times, self.log, self.hold = work / "times.json", work / "log.txt", work / "hold"
        for stale in (self.times, self.hold / "ready", self.hold / "go"):
            stale.unlink(missing_ok=True)
        self.command = [] if arm == "absent" else [str(tools.bubblesim), "capture", "--idle", "--"]
        self.command += job_command(tools, part)
        self.command += ["--iterations", str(iterations), "--times", str(self.times),
                         "--hold", str(self.hold)]
        self.until = min(time.monotonic() + part.limit_s, tools.deadline)
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with ending_waits():
            self.process = start_logged(self.command, self.log)

    def wait_ready(self) -> int:
        """The job's process id, once its warm-up is over."""
        ready = self.hold / "ready"
        while not ready.is_file():
            if self.process.poll() is not None:
                raise PartFailure(f"the job ended before its warm-up was over, exit code "
                                  f"{self.process.returncode}: {last_lines(self.log)}")
            self._check_time("its warm-up")
            time.sleep(0.02)
        return int(ready.read_text())

    def go(self) -> None:
        (self.hold / "go").touch()

    def finish(self) -> dict[str, Any]:
        while self.process.poll() is None:
            self._check_time("its iterations")
            time.sleep(0.02)
        if self.process.returncode != 0:
            raise PartFailure(f"the job ended with exit code {self.process.returncode}: "
                              f"{last_lines(self.log)}")
        if not self.times.is_file():
            raise PartFailure(f"the job wrote no times: {last_lines(self.log)}")
        facts: dict[str, Any] = json.loads(self.times.read_text())
        return facts

    def stop(self) -> None:
        """At once: the job has nothing to put back."""
        if self.process is not None:
            end_group(self.process, patience_s=0)

    def _check_time(self, what: str) -> None:
        if time.monotonic() > self.until:
            raise PartFailure(f"the job took too long for {what}: {last_lines(self.log)}")


def tell(tools: Tools, *arguments: str, limit_s: float = 90.0) -> Any:
    """A command of bubblesim; what it prints, as JSON."""
    command = [str(tools.bubblesim), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit_s, check=False)
    except subprocess.TimeoutExpired:
        raise PartFailure(f"bubblesim {' '.join(arguments[:2])} took more than "
                          f"{limit_s:.0f} s") from None
    if done.returncode not in (0, 1) or not done.stdout.strip():
        said = " | ".join(done.stderr.strip().splitlines()[-3:])
        raise PartFailure(f"bubblesim {' '.join(arguments[:2])} ended with exit code "
                          f"{done.returncode}: {said}")
    try:
        return json.loads(done.stdout)
    except ValueError:
        raise PartFailure(f"bubblesim {' '.join(arguments[:2])} printed no JSON: "
                          f"{done.stdout[:200]}") from None


def attach(tools: Tools, pid: int, *arguments: str) -> None:
    """The recorder listens a moment after cuInit has returned, later where the machine is busy."""
    until = time.monotonic() + LISTEN_S
    while True:
        try:
            tell(tools, "capture", "attach", str(pid), *arguments)
            return
        except PartFailure as fault:
            if "nothing listens" not in str(fault) or time.monotonic() > until:
                raise
            time.sleep(0.1)


def start_recording(tools: Tools, pid: int, folder: Path, iterations: int | None,
                    options: tuple[str, ...] = ()) -> None:
    """Returns once the recorder records."""
    extra = [*options, *(["--iterations", str(iterations)] if iterations else [])]
    attach(tools, pid, "-o", str(folder), "--json", *extra)
    until = time.monotonic() + 60
    while True:
        answer = tell(tools, "capture", "status", str(pid), "--json")
        status = answer[0] if isinstance(answer, list) else answer
        if status["state"] == "recording":
            return
        if status["state"] == "failed" or time.monotonic() > until:
            raise PartFailure(f"no recording: the recorder is {status['state']}: "
                              f"{status.get('message', '')}")
        time.sleep(0.05)


def recorded_file(folder: Path) -> Path:
    files = sorted(folder.glob("*.btr"))
    if len(files) != 1:
        raise PartFailure(f"expected one recording, found {len(files)}: "
                          f"{', '.join(f.name for f in files)}")
    return files[0]


def record(tools: Tools, part: Part, work: Path, iterations: int, stop_after: int | None,
           facts: dict[str, Any], arm: str = "capturing") -> Path:
    """One held job, recorded from the end of its warm-up."""
    folder = work / "recording"
    shutil.rmtree(folder, ignore_errors=True)
    job = Job(tools, part, arm, work, iterations)
    try:
        job.start()
        start_recording(tools, job.wait_ready(), folder, stop_after, RECORDED[arm])
        job.go()
        facts.update(job.finish())
    finally:
        job.stop()
    return recorded_file(folder)


def counted(counters: dict[str, Any], name: str) -> int:
    return int(counters.get(name, {}).get("count", 0))


def what_is_missing(device_ops: int, counters: dict[str, Any]) -> str:
    """Why a recording is none to build on; empty: it is whole. A replay of operations without
    launches meets their times because it has nothing else, so its error must not be told."""
    without = max(counted(counters, "program_ops_without_launch"),
                  counted(counters, "join_device_ops_without_launch"))
    if not device_ops:
        return "no device operations were recorded"
    if without <= MOST_WITHOUT_LAUNCH * device_ops:
        return ""
    return (f"{without} operations have no launch call, beside {device_ops} that are replayed: "
            "their replay starts them when they were recorded and checks nothing")


def what_was_lost(counters: dict[str, Any]) -> str:
    return ", ".join(f"{entry['count']} {name}" for name, entry in sorted(counters.items())
                     if entry["severity"] in ("loss", "error"))


def is_done(record: dict[str, Any]) -> bool:
    """Also of records of earlier versions, which called recordings without launches done."""
    if record.get("status") != "done":
        return False
    return "counters" not in record or not what_is_missing(record.get("device_ops") or 0,
                                                           record["counters"])


def run_capture(tools: Tools, part: Part) -> dict[str, Any]:
    """A few iterations to traces/NAME.btr, replayed. One more is run than recorded: the last
    recorded one then has a whole successor, as in the middle of a job."""
    work = tools.folder / "work" / part.name
    facts: dict[str, Any] = {}
    made = record(tools, part, work, part.iterations + 1, part.iterations, facts)
    replay = tell(tools, "inspect", str(made), "--replay", "--json")
    kept = tools.folder / "traces" / f"{part.name}.btr"
    kept.parent.mkdir(parents=True, exist_ok=True)
    size = made.stat().st_size
    shutil.move(made, kept)
    report, counters = replay["replay"], replay.get("counters", {})
    result = {"trace": f"traces/{kept.name}", "trace_bytes": size,
              "device_ops": report.get("device_ops"), "counters": counters,
              "median_iteration_s": median(facts["iteration_s"]), "job": without_times(facts)}
    if lost := what_was_lost(counters):
        result["lost"] = lost
    if missing := what_is_missing(report.get("device_ops") or 0, counters):
        return {**result, "status": "failed", "reason": missing}
    return {**result, "status": "done", "replay_mean_error": report["mean_error"],
            "replay_worst_error": report["worst_error"]}


def without_times(facts: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in facts.items() if key != "iteration_s"}


def build_standin(tools: Tools) -> None:
    """Compiles the C++ stand-in beforehand, so that no part pays for it."""
    code = ("import sys; sys.path.insert(0, sys.argv[1]); "
            "from standin.cpp_backend import load_extension; load_extension()")
    log = tools.folder / "standin-build.log"
    limit_s = max(1.0, min(180.0, tools.deadline - time.monotonic()))
    try:
        with log.open("w") as output:
            done = subprocess.run([tools.python, "-c", code, str(EXAMPLES.parent)], stdout=output,
                                  stderr=output, timeout=limit_s, check=False)
        failed = done.returncode != 0
    except (OSError, subprocess.TimeoutExpired):
        failed = True
    if failed:
        print(f"campaign: note: the C++ stand-in was not built, the Python one is used: "
              f"{last_lines(log, 1)}", file=sys.stderr)


def run_arm(tools: Tools, part: Part, arm: str, work: Path) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    if arm in RECORDED:
        made = record(tools, part, work, part.iterations, None, facts, arm)
        facts["trace_bytes"] = made.stat().st_size
        made.unlink()
        return facts
    job = Job(tools, part, arm, work, part.iterations)
    try:
        job.start()
        job.wait_ready()
        job.go()
        return job.finish()
    finally:
        job.stop()


def run_overhead(tools: Tools, part: Part) -> dict[str, Any]:
    """A-B-C-D-E-A-B-C-D-E; medians over all rounds, ratios to the arm without the recorder."""
    times: dict[str, list[list[float]]] = {arm: [] for arm in ARMS}
    facts: dict[str, Any] = {}
    trace_bytes = 0
    for round_number in range(tools.rounds):
        for arm in ARMS:
            work = tools.folder / "work" / part.name / f"{arm}-{round_number}"
            facts = run_arm(tools, part, arm, work)
            times[arm].append(facts["iteration_s"])
            trace_bytes = facts.get("trace_bytes", trace_bytes)
    arms = {}
    for arm in ARMS:
        pooled = [value for values in times[arm] for value in values]
        low, high = median_interval(pooled)
        pairs = list(zip(times["absent"], times[arm]))
        ratio_low, ratio_high = ratio_interval(pairs)
        base = median([value for values in times["absent"] for value in values])
        arms[arm] = {"iterations": len(pooled), "median_s": median(pooled),
                     "median_s_95": [low, high], "ratio": median(pooled) / base,
                     "ratio_95": [ratio_low, ratio_high]}
    return {"rounds": tools.rounds, "arms": arms, "iteration_s": times,
            "trace_bytes": trace_bytes, "job": without_times(facts)}


def run_part(tools: Tools, part: Part) -> dict[str, Any]:
    """The part's record; a failure is a record too."""
    began = time.monotonic()
    result: dict[str, Any] = {"name": part.name, "kind": part.kind,
                              "command": " ".join(part.arguments)}
    try:
        made = run_capture(tools, part) if part.kind == "capture" else run_overhead(tools, part)
        result.update({"status": "done", **made})
        if result["status"] != "done":
            print(f"campaign: {part.name}: {result['reason']}", file=sys.stderr)
    except (PartFailure, OSError, KeyError, ValueError) as fault:
        result.update(status="failed", reason=str(fault) or type(fault).__name__)
        print(f"campaign: {part.name}: {result['reason']}", file=sys.stderr)
    result["took_s"] = round(time.monotonic() - began, 3)
    return result
