"""Part j: `bubblesim fill` in front of two programs that nobody changed."""

from __future__ import annotations

import json
import shlex
import shutil
import time
from pathlib import Path
from typing import Any, Dict, List, Optional

from processes import last_lines, run_logged

from .context import CAPTURE, Context, Verdict, blocked, failed, ok, partial, read_json, write_json

HERE = Path(__file__).resolve().parent
EXAMPLES = CAPTURE / "torch" / "examples"
# Of training: a filler starts as late as training does, or later, and must be seen beside it.
ITERATIONS = {"": 60, "infer": 200, "vllm": 600, "transformers": 300}
Json = Dict[str, Any]


class Arm:
    """One run: training alone (`policy` empty), or with a filler behind the gate."""

    def __init__(self, name: str, policy: str, filler: str, expect_s: float) -> None:
        self.name, self.policy, self.filler, self.expect_s = name, policy, filler, expect_s


def arms_of(context: Context) -> List[Arm]:
    if context.fake:
        return [Arm("alone", "", "", 3), Arm("tgs", "tgs", "infer", 5)]
    arms = [Arm("alone", "", "", 25)]
    shares = not context.mps_refused()
    if shares:
        arms.append(Arm("specinf", "specinf", "infer", 35))
    packages = context.facts.get("torch", {}).get("packages", [])
    engine = next((it for it in ("vllm", "transformers") if it in packages), None)
    if engine:
        arms.append(Arm(f"tgs-{engine}", "tgs", engine, 60))
    arms.append(Arm("tgs", "tgs", "infer", 35))
    return arms + ([Arm("mps", "mps", "infer", 35)] if shares else [])


def job(context: Context, *words: str) -> List[str]:
    if context.fake or not context.torch_python():
        return [context.python, str(HERE / "driver_job.py"), *words]
    return [context.torch_python(), *words]


def training(context: Context, kind: str, times: Path) -> List[str]:
    if context.fake or not context.torch_python():
        return job(context, "--iterations", "100", "--times", str(times))
    return job(context, str(EXAMPLES / "train.py"), "--model", "gpt2-large", "--batch", "8",
               "--sequence", "512", "--iterations", str(ITERATIONS[kind]), "--times", str(times))


def filler(context: Context, kind: str, folder: Path) -> List[str]:
    if context.fake or not context.torch_python():
        return job(context, "--seconds", "300", "--times", str(folder / "filler.json"))
    if kind == "infer":
        return job(context, str(EXAMPLES / "infer.py"), "--model", "gpt2-large", "--batch", "4",
                   "--prompt", "128", "--tokens", "32", "--iterations", "100000")
    return job(context, str(HERE / "serve.py"), "--engine", kind, "--folder", str(folder / "model"),
               "--times", str(folder / "filler.json"))


def run_arm(context: Context, arm: Arm, limit_s: float) -> Json:
    folder = context.folder("j") / arm.name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    times, log = folder / "training.json", folder / "log.txt"
    train = training(context, arm.filler, times)
    command = train
    if arm.policy:
        command = [str(context.bubblesim), "fill", "--policy", arm.policy, "--device",
                   context.device_name(), "--fill-log", str(folder / "filler.txt"), "--grace", "5s",
                   "--json", "--train", shlex.join(train), "--fill",
                   shlex.join(filler(context, arm.filler, folder))]
    code = run_logged(command, log, limit_s, context.environment(), patience_s=15.0)
    return record_of(code, times, log, folder)


def record_of(code: Optional[int], times: Path, log: Path, folder: Path) -> Json:
    seconds = (read_json(times) or {}).get("iteration_s")
    if code != 0 or not seconds:
        filled = last_lines(folder / "filler.txt", 1)
        return {"fault": ("took too long" if code is None else f"exit code {code}: "
                          f"{last_lines(log, 2)}") + (f"; filler: {filled}" if filled else "")}
    late = sorted(seconds[len(seconds) // 2:])  # the filler may still be starting before
    made: Json = {"median_s": late[len(late) // 2], "iterations": len(seconds)}
    filled = read_json(folder / "filler.json")
    if filled:
        made["filler_batches"] = len(filled["iteration_s"])
    lines = log.read_text(errors="replace").strip().splitlines()
    try:
        made["fill"] = json.loads(lines[-1])
    except (IndexError, ValueError):
        pass  # training alone prints no JSON
    return made


def text_of(name: str, record: Json, alone: Optional[Json]) -> str:
    text = f"{name}: {1e3 * record['median_s']:.1f} ms"
    if alone and alone is not record:
        text += f" ({100 * (record['median_s'] / alone['median_s'] - 1):+.1f} %)"
    seen = record.get("fill", {}).get("filler", {})
    if seen:
        text += f", filler {seen.get('kernels', 0)} kernels, {seen.get('held', 0)} held"
    costs = [record.get("fill", {}).get(job, {}).get("mean_gate_overhead_ns")
             for job in ("training", "filler")]
    if None not in costs:
        text += f", gate {costs[0]} and {costs[1]} ns a launch"
    return text


def run(context: Context, limit_s: float) -> Verdict:
    deadline = time.monotonic() + limit_s - 3
    if not context.fake and not context.facts.get("driver", {}).get("devices"):
        return blocked("no GPU was found by part a")
    records: Dict[str, Json] = {}
    lines, wrong = [], []
    for arm in arms_of(context):
        kept = context.folder("j") / f"{arm.name}.json"
        record = read_json(kept)
        if not record:
            left = deadline - time.monotonic()
            if left < arm.expect_s:
                wrong.append(f"{arm.name}: no time left")
                continue
            record = run_arm(context, arm, left)
            if "fault" in record:
                wrong.append(f"{arm.name}: {record['fault']}")
                continue
            write_json(kept, record)
        records[arm.name] = record
        lines.append(text_of(arm.name, record, records.get("alone")))
    if context.mps_refused():
        wrong.append("mps, specinf: left out for want of MPS")
    if not context.fake and not context.torch_python():
        wrong.append("no PyTorch: with driver_job.py in its place")
    said = "; ".join(lines + wrong)
    if not any(name != "alone" for name in records):
        return failed(said)
    return partial(said) if wrong else ok(said)
