"""Parts d and g: pairs of configs/measure, measured and simulated, by validate_campaign.py."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any, Dict, List, Optional

import validate_campaign
from processes import last_lines, run_logged

from .context import CAPTURE, ROOT, Context, Verdict, failed, ok, partial, read_json

CONFIGS = ROOT / "configs" / "measure"
FIRST_PAIR = "roberta-dp--bert-online"
# How processes share the GPU, one policy each that only shares.
SUBSTRATES = ["exclusive", "time_slicing", "mps", "stream_priority"]
# Share by MPS (policies/*.cpp, SharingMode::kMps), as the configs set them.
NEED_MPS = {"antman", "mps", "specinf", "dilu", "freeride"}
# A fake GPU measures by its own clock; short runs say as much.
FAKE = {"duration": "300ms", "warmup": "100ms"}


def policy_name(policy: Any) -> str:
    return policy if isinstance(policy, str) else str(policy["name"])


def write_configs(context: Context, folder: Path, policies: Optional[List[str]]) -> List[str]:
    """Copies with those policies that can run here, and paths that hold anywhere; the left out."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    left_out = set()
    for path in sorted(CONFIGS.glob("*.json")):
        config = validate_campaign.with_absolute_paths(json.loads(path.read_text()), path.parent)
        wanted = policies or config["policies"]
        if context.mps_refused():
            left_out |= {policy_name(it) for it in wanted} & NEED_MPS
            wanted = [it for it in wanted if policy_name(it) not in NEED_MPS]
        config["policies"] = wanted
        config.update(FAKE if context.fake else {})
        (folder / path.name).write_text(json.dumps(config, indent=2) + "\n")
    shutil.copy(CONFIGS / "roles.csv", folder / "roles.csv")
    return sorted(left_out)


def device_of(context: Context) -> str:
    """Part f's constants if there are any, else the nearest device file."""
    measured = context.work / "f" / "device.json"
    return str(measured) if measured.is_file() else context.device_name()


def share_fits(context: Context, out: Path) -> None:
    """Fits of stand-ins are measured once for all parts: who writes a file keeps what it found
    there, unless it is of another card. So the newer one counts, however small."""
    places = [context.fits, out / "fits"]
    found = [path for path in places if path.is_file()]
    if found:
        newer = max(found, key=lambda path: path.stat().st_mtime_ns)
        for path in places:
            if path != newer:
                shutil.copyfile(newer, path)


def campaign(context: Context, letter: str, limit_s: float, policies: Optional[List[str]],
             options: List[str]) -> Verdict:
    out = context.folder(letter)
    left_out = write_configs(context, out / "configs", policies)
    share_fits(context, out)
    command = [sys.executable, str(CAPTURE / "validate_campaign.py"), "--out", str(out),
               "--configs", str(out / "configs"), "--bubblesim", str(context.bubblesim),
               "--device", device_of(context), "--budget", str(int(limit_s - 10)), *options]
    command += ["--fake"] if context.fake else []
    log = context.folder("logs") / f"{letter}.txt"
    run_logged(command, log, limit_s, context.environment(), patience_s=15.0)
    share_fits(context, out)
    return judged(out, log, left_out)


def rounds_of(out: Path) -> int:
    return sum(bool(validate_campaign.read_reports(path))
               for path in out.glob("measured/*/results-*.json"))


def judged(out: Path, log: Path, left_out: List[str]) -> Verdict:
    environment = read_json(out / "environment.json") or {}
    wrong = list(environment.get("not_done", []))
    if left_out:
        wrong.append(f"left out for want of MPS: {', '.join(left_out)}")
    rounds = rounds_of(out)
    if not rounds:
        return failed("nothing was measured: " + ("; ".join(wrong[:2]) or last_lines(log, 2)))
    if not environment:
        wrong.append(f"ended before its end: {last_lines(log, 1)}")
    errors = out / "errors.txt"
    said = "; ".join([f"{rounds} rounds measured", *summary_of(errors), *wrong[:3]])
    figures: Dict[str, Any] = {"rounds": rounds, "not_done": wrong}
    return partial(said, **figures) if wrong else ok(said, **figures)


def summary_of(errors: Path) -> List[str]:
    """Mean absolute errors beside their aims, and how policies come in order, of judged cells."""
    if not errors.is_file():
        return []
    lines = [" ".join(line.split()) for line in errors.read_text(errors="replace").splitlines()]
    aims = [line.split(" beside:")[0] for line in lines if " <= " in line]
    wrong = [int(found.group(1)) for line in lines
             for found in [re.search(r": (\d+) of \d+ pairs wrong", line)] if found]
    return aims + ([f"{sum(wrong)} pairs of policies in the wrong order"] if wrong else [])


def substrates(context: Context, limit_s: float) -> Verdict:
    """Part d."""
    return campaign(context, "d", limit_s, SUBSTRATES, ["--only", FIRST_PAIR, "--rounds", "1"])


def policies(context: Context, limit_s: float) -> Verdict:
    """Part g: judged pairs first, all of them once before any of them twice."""
    return campaign(context, "g", limit_s, None, ["--rounds", "1" if context.fake else "2"])
