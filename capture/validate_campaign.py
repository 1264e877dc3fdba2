"""Simulated against measured on one GPU. Started by validate_campaign.sh, which says what the
options mean. Rounds go over all pairs before the next one begins, so that a clock that drifts or a
card that warms up meets all of them alike."""

from __future__ import annotations

import argparse
import csv
import datetime
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from processes import end_on_signals, first_line, last_lines, run_logged

LEAST_ITERATIONS = 30
JUDGE_S = 10.0       # kept for the comparison at the end
CALIBRATE_S = 120.0  # limit
REDUCED = {"duration": "600ms", "warmup": "150ms",
           "policies": ["exclusive", "time_slicing", "mps"]}
REDUCED_PAIRS = 2
SMI_FIELDS = ("name", "driver_version", "pstate", "clocks.sm", "clocks.mem", "clocks.max.sm",
              "temperature.gpu", "power.draw", "compute_mode", "persistence_mode")
UNITS_S = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}


def say(text: str) -> None:
    print(f"validate_campaign: {text}", file=sys.stderr, flush=True)


def now() -> str:
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def seconds_of(span: str) -> float:
    number = span.rstrip("abcdefghijklmnopqrstuvwxyz")
    return float(number) * UNITS_S[span[len(number):]]


@dataclass
class Pair:
    name: str
    path: Path
    config: dict[str, Any]
    arm_start_s: float
    simulated_s: float = 0.0  # of all arms; 0: not known yet
    took_s: list[float] = field(default_factory=list)  # of finished rounds

    @property
    def arms(self) -> int:
        """Policies, the job alone, and every filler alone."""
        return len(self.config["policies"]) + 1 + len(self.config.get("fillers", []))

    def expected_s(self) -> float:
        """Of one round: a guess before the first, then what the last one took."""
        if self.took_s:
            return self.took_s[-1]
        run_s = seconds_of(self.config["duration"]) if "duration" in self.config else 3.0
        return (self.simulated_s or self.arms * run_s) + self.arms * self.arm_start_s

    def learn(self, reports: list[dict[str, Any]]) -> None:
        """How long the arms are, from a simulation; the baselines as long as the policies."""
        lengths = [policy.get("simulated_ns", 0) / 1e9
                   for report in reports for policy in report["policies"]]
        if lengths and all(lengths):
            self.simulated_s = self.arms * sum(lengths) / len(lengths)


@dataclass
class Campaign:
    out: Path
    bubblesim: Path
    fake: bool
    device: str
    rounds: int
    deadline: float  # by time.monotonic
    notes: list[str] = field(default_factory=list)

    def left_s(self) -> float:
        return self.deadline - time.monotonic()

    def note(self, text: str) -> None:
        """What is not as it should be: printed, kept in environment.json, exit code 1."""
        say(text)
        self.notes.append(text)

    def call(self, log: str, arguments: list[str], limit_s: float) -> int | None:
        """Exit code of a command of bubblesim; nothing: it took too long. With its output in
        logs/, and its whole process group ended if need be."""
        return run_logged([str(self.bubblesim), *arguments], self.log_of(log), limit_s)

    def log_of(self, log: str) -> Path:
        return self.out / "logs" / f"{log}.txt"

    def said(self, log: str) -> str:
        return last_lines(self.log_of(log), 2)

    def common(self) -> list[str]:
        return ["--device", self.device] if self.device else []


def parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="validate_campaign", description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--configs", type=Path, required=True)
    parser.add_argument("--bubblesim", type=Path, default=Path("bubblesim"))
    parser.add_argument("--device", default="")
    parser.add_argument("--rounds", type=int, help="by default 2, reduced 1")
    parser.add_argument("--arm-start", type=float, default=2.5)
    parser.add_argument("--budget", type=float, default=540.0, help="seconds for all")
    parser.add_argument("--only", default="", help="names of pairs, with commas")
    parser.add_argument("--fake", action="store_true")
    parser.add_argument("--reduced", action="store_true")
    parser.add_argument("--dry-run", action="store_true")
    arguments = parser.parse_args(argv)
    if arguments.rounds is None:
        arguments.rounds = 1 if arguments.reduced else 2
    if arguments.rounds < 1:
        parser.error(f"--rounds is {arguments.rounds}; expected 1 or more")
    return arguments


def read_roles(path: Path) -> list[dict[str, str]]:
    if not path.is_file():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def read_pairs(arguments: argparse.Namespace) -> list[Pair]:
    """In the order of roles.csv, judged ones first; then what it does not name."""
    pairs = {}
    for path in sorted(arguments.configs.glob("*.json")):
        try:
            config = json.loads(path.read_text())
            pairs[config["name"]] = Pair(config["name"], path, config, arguments.arm_start)
            len(config["policies"])
        except (OSError, ValueError, KeyError, TypeError) as fault:
            raise SystemExit(f"validate_campaign: {path} is no run config: {fault!r}") from None
    if not pairs:
        raise SystemExit(f"validate_campaign: no run configs (*.json) in {arguments.configs}")
    roles = read_roles(arguments.configs / "roles.csv")
    named = [row["config"] for row in sorted(roles, key=lambda row: row["role"] == "fit")]
    order = [name for name in dict.fromkeys(named) if name in pairs]
    order += [name for name in pairs if name not in order]
    only = [name for name in arguments.only.split(",") if name]
    unknown = [name for name in only if name not in pairs]
    if unknown:
        raise SystemExit(f"validate_campaign: --only: no pair {unknown[0]!r}; there are: "
                         f"{', '.join(order)}")
    chosen = [pairs[name] for name in order if not only or name in only]
    return chosen[:REDUCED_PAIRS] if arguments.reduced and not only else chosen


def with_absolute_paths(value: Any, folder: Path) -> Any:
    """A config's paths are relative to its folder; a copy elsewhere needs them whole."""
    if isinstance(value, list):
        return [with_absolute_paths(item, folder) for item in value]
    if not isinstance(value, dict):
        return value
    made = {}
    for key, item in value.items():
        if key in ("trace", "kernel_table", "path") and isinstance(item, str):
            made[key] = str((folder / item).resolve())
        elif key == "trace" and isinstance(item, list):
            made[key] = [str((folder / name).resolve()) for name in item]
        else:
            made[key] = with_absolute_paths(item, folder)
    return made


def reduce_pairs(pairs: list[Pair], out: Path) -> None:
    folder = out / "configs"
    folder.mkdir(parents=True, exist_ok=True)
    for pair in pairs:
        pair.config = {**with_absolute_paths(pair.config, pair.path.parent), **REDUCED}
        pair.path = folder / f"{pair.name}.json"
        pair.path.write_text(json.dumps(pair.config, indent=2) + "\n")


def smi() -> list[dict[str, str]]:
    """A dictionary a GPU; empty without nvidia-smi."""
    command = ["nvidia-smi", f"--query-gpu={','.join(SMI_FIELDS)}", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return []
    if done.returncode != 0:
        return []
    return [dict(zip(SMI_FIELDS, (cell.strip() for cell in line.split(","))))
            for line in done.stdout.splitlines() if line.strip()]


def read_reports(path: Path) -> list[dict[str, Any]]:
    """None of a file that is not there or not whole."""
    try:
        made = json.loads(path.read_text())
    except (OSError, ValueError):
        return []
    reports = made if isinstance(made, list) else [made]
    return reports if all(isinstance(it, dict) and it.get("policies") for it in reports) else []


def calibrate(campaign: Campaign) -> None:
    if campaign.device:
        return
    made = campaign.out / "device.json"
    if not made.is_file():
        say("calibrating")
        part = made.with_suffix(".part.json")
        arguments = ["calibrate", "-o", str(part)]
        if campaign.fake:
            arguments += ["--fake", "--device", "h100"]
        code = campaign.call("calibrate", arguments, min(CALIBRATE_S, campaign.left_s()))
        if code != 0 or not part.is_file():
            campaign.note("calibrate: not done, the configs' devices are used: "
                          + ("it took too long" if code is None else campaign.said("calibrate")))
            return
        part.rename(made)
    campaign.device = str(made)


def keep(work: Path, made: Path) -> bool:
    """A whole results.json to its place, by one step."""
    if not read_reports(work / "results.json"):
        return False
    made.parent.mkdir(parents=True, exist_ok=True)
    (work / "results.json").rename(made)
    shutil.rmtree(work, ignore_errors=True)
    return True


def simulate(campaign: Campaign, pair: Pair) -> bool:
    made = campaign.out / "simulated" / pair.name / "results.json"
    if read_reports(made):
        pair.learn(read_reports(made))
        return True
    work, log = campaign.out / "work" / f"run-{pair.name}", f"run-{pair.name}"
    arguments = ["run", str(pair.path), "--lone-rank", "0", "--out", str(work)]
    code = campaign.call(log, [*arguments, *campaign.common()], campaign.left_s())
    if code in (0, 1) and keep(work, made):
        pair.learn(read_reports(made))
        return True
    campaign.note(f"{pair.name}: not simulated: "
                  + ("it took too long" if code is None else campaign.said(log)))
    return False


def measure(campaign: Campaign, pair: Pair, number: int) -> None:
    """One round of a pair: baselines and all policies, in one command."""
    made = campaign.out / "measured" / pair.name / f"results-{number}.json"
    if read_reports(made):
        return
    if campaign.left_s() - JUDGE_S < pair.expected_s():
        campaign.note(f"{pair.name}: round {number} waits: it takes about "
                      f"{pair.expected_s():.0f} s, {max(campaign.left_s(), 0):.0f} s are left")
        return
    say(f"{pair.name}: round {number} of {campaign.rounds}, {pair.arms} arms")
    name = f"measure-{pair.name}-{number}"
    work = campaign.out / "work" / name
    arguments = ["measure", str(pair.path), "--rank", "0", "--rounds", "1", "--out", str(work)]
    # Fitting stand-in kernels takes longer than running them: once for all rounds.
    arguments += ["--fake"] if campaign.fake else ["--fits", str(campaign.out / "fits")]
    began = time.monotonic()
    code = campaign.call(name, [*arguments, *campaign.common()], campaign.left_s() - JUDGE_S)
    pair.took_s.append(time.monotonic() - began)
    if code not in (0, 1) or not keep(work, made):
        campaign.note(f"{pair.name}: round {number} failed: "
                      + ("it took too long" if code is None else campaign.said(name)))
        return
    for report in read_reports(made):
        check_iterations(pair, report)


def check_iterations(pair: Pair, report: dict[str, Any]) -> None:
    for policy in report["policies"]:
        found = policy.get("training", {}).get("iterations")
        if isinstance(found, int) and found < LEAST_ITERATIONS:
            say(f"note: {pair.name} under {policy['policy']}: {found} iterations measured, fewer "
                f"than {LEAST_ITERATIONS}")


def write_roles(campaign: Campaign, pairs: list[Pair], configs: Path) -> Path | None:
    """Of the pairs of this campaign: a role of a config that neither side has is a fault."""
    names = {pair.name for pair in pairs}
    rows = [row for row in read_roles(configs / "roles.csv") if row["config"] in names]
    if not rows:
        return None
    path = campaign.out / "roles.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, ("config", "policy", "role"), lineterminator="\n",
                                extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    return path


def judge(campaign: Campaign, pairs: list[Pair], configs: Path) -> None:
    out = campaign.out
    if not list((out / "measured").glob("*/results-*.json")):
        campaign.note("nothing was measured: no errors to show")
        return
    arguments = ["validate", str(out / "simulated"), str(out / "measured"),
                 "--csv", str(out / "errors.csv"), "--json", str(out / "errors.json")]
    roles = write_roles(campaign, pairs, configs)
    if roles:
        arguments += ["--role", str(roles)]
    code = campaign.call("validate", arguments, 60.0)
    if code in (0, 1):
        shutil.copyfile(out / "logs" / "validate.txt", out / "errors.txt")
    if code != 0:
        campaign.note("validate: " + ("it took too long" if code is None
                                      else f"exit code {code}: " + campaign.said("validate")))


def list_pairs(pairs: list[Pair], arguments: argparse.Namespace) -> int:
    total = 0.0
    roles = {row["config"]: row["role"] for row in read_roles(arguments.configs / "roles.csv")}
    for pair in pairs:
        done = sum(bool(read_reports(path))
                   for path in (arguments.out / "measured" / pair.name).glob("results-*.json"))
        total += pair.expected_s() * max(arguments.rounds - done, 0)
        print(f"{pair.name:32} {roles.get(pair.name, 'judge'):6} {pair.arms} arms, about "
              f"{pair.expected_s():.0f} s a round; {done} of {arguments.rounds} rounds measured")
    print(f"about {total:.0f} s to measure; {arguments.budget:.0f} s are given")
    return 0


def main(argv: list[str]) -> int:
    began = time.monotonic()
    arguments = parse(argv)
    pairs = read_pairs(arguments)
    if arguments.reduced and not arguments.dry_run:
        reduce_pairs(pairs, arguments.out)
    elif arguments.reduced:
        for pair in pairs:
            pair.config = {**pair.config, **REDUCED}
    if arguments.dry_run:
        return list_pairs(pairs, arguments)
    campaign = Campaign(arguments.out, arguments.bubblesim.resolve(), arguments.fake,
                        arguments.device, arguments.rounds, began + arguments.budget)
    campaign.out.mkdir(parents=True, exist_ok=True)
    environment = {"date": now(), "machine": platform.platform(), "cpus": os.cpu_count(),
                   "program": first_line([str(campaign.bubblesim), "--version"]),
                   "fake": campaign.fake, "gpus_before": smi()}
    calibrate(campaign)
    ready = [pair for pair in pairs if simulate(campaign, pair)]
    for number in range(1, campaign.rounds + 1):
        for pair in ready:
            measure(campaign, pair, number)
    environment.update(gpus_after=smi(), device=campaign.device or "the configs'")
    judge(campaign, pairs, arguments.configs)
    environment.update(ended=now(), not_done=campaign.notes)
    (campaign.out / "environment.json").write_text(json.dumps(environment, indent=2) + "\n")
    shutil.rmtree(campaign.out / "work", ignore_errors=True)
    say(f"results are in {campaign.out}")
    return 1 if campaign.notes else 0


if __name__ == "__main__":
    end_on_signals()
    try:
        sys.exit(main(sys.argv[1:]))
    except SystemExit as end:
        # A text is why nothing could be started.
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
            sys.exit(2)
        raise
