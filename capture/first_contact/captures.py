"""Parts b, h and i: the recorder, by the campaign of captures (capture/torch/campaign)."""

from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any, Dict, List

from processes import last_lines, run_logged

from .context import CAPTURE, Context, Verdict, blocked, failed, ok, partial, read_json, write_json

sys.path.insert(0, str(CAPTURE / "torch"))
from campaign.parts import Part, fake_parts, main_captures, overhead_parts  # noqa: E402
from campaign.runner import Tools, is_done, run_part  # noqa: E402

HERE = Path(__file__).resolve().parent
Json = Dict[str, Any]


def compiled(context: Context, log: Path) -> str:
    """The small CUDA program, made by the machine's own compiler; empty: it was not made."""
    nvcc = context.facts.get("machine", {}).get("tools", {}).get("nvcc", "")
    made = context.folder("build") / "small_job"
    if not nvcc:
        return ""
    command = [nvcc, "-O2", "-std=c++17", "-o", str(made), str(HERE / "small_job_main.cu"), "-ldl"]
    code = run_logged(command, log, 60.0, context.environment())
    return str(made) if code == 0 and made.is_file() else ""


def small_parts(context: Context, folder: Path) -> List[Part]:
    """Smallest first: each asks for more of the machine than the one before."""
    if context.fake:
        return fake_parts()[:1]
    parts = [Part("driver-job", "capture", (str(HERE / "driver_job.py"),), 25.0, 5)]
    program = compiled(context, folder / "nvcc.txt")
    if program:
        parts.append(Part("small-job", "capture", (program,), 25.0, 5))
    if context.torch_python():
        parts += [Part("torch-small-kernels", "capture",
                       ("small_kernels.py", "--launches", "300"), 40.0, 5),
                  Part("torch-training", "capture",
                       tuple("train.py --model bert-base --plan none --batch 8 "
                             "--sequence 128".split()), 60.0, 3)]
    return parts


def python_of(context: Context) -> str:
    return context.python if context.fake else context.torch_python() or context.python


def run_small(context: Context, part: Part, deadline: float) -> Json:
    """Beside PyTorch the recorder finds PyTorch's CUPTI; elsewhere it is told of part a's."""
    assert context.bubblesim is not None
    name = "BUBBLESIM_CAPTURE_CUPTI"
    found = context.facts.get("cupti", {}).get("path", "")
    told = found and name not in os.environ and not part.name.startswith("torch-")
    if told:
        os.environ[name] = found
    try:
        tools = Tools(context.bubblesim, python_of(context), context.folder("b"), 1, deadline)
        return run_part(tools, part)
    finally:
        if told:
            del os.environ[name]


def lost_in(record: Json) -> str:
    return f" (lost: {record['lost']})" if record.get("lost") else ""


def small(context: Context, limit_s: float) -> Verdict:
    """Part b. One job at a time; each one's record is kept."""
    folder = context.folder("b")
    deadline = time.monotonic() + limit_s
    lines, wrong, done = [], [], 0
    for part in small_parts(context, folder):
        kept = folder / f"{part.name}.json"
        record = read_json(kept)
        if not record or not is_done(record):
            record = run_small(context, part, deadline)
            write_json(kept, record)
        if record["status"] == "done":
            done += 1
            lines.append(f"{part.name}: {record['device_ops']} operations, replayed within "
                         f"{100 * record['replay_mean_error']:.2f} %{lost_in(record)}")
        else:
            wrong.append(f"{part.name}: {record['reason']}{lost_in(record)}")
    if not context.fake:
        wrong += [] if context.torch_python() else ["no PyTorch: not tried in it"]
        wrong += [] if (context.folder("build") / "small_job").is_file() else \
            ["small-job: not built: " + (last_lines(folder / "nvcc.txt", 1) or "no nvcc")]
    said = "; ".join(lines + wrong)
    if not done:
        return failed(said, done=0)
    return partial(said, done=done) if wrong else ok(said, done=done)


def campaign(context: Context, names: List[str], limit_s: float, log: str) -> Verdict:
    """Parts of the campaign by name; what is done in its folder is not done again."""
    if not context.fake and not context.torch_python():
        return blocked("no PyTorch: nothing to capture; name a Python that has it with --python")
    out = context.folder("captures")
    command = [python_of(context), "-m", "campaign", "--out", str(out), "--bubblesim",
               str(context.bubblesim), "--python", python_of(context), "--budget",
               str(int(limit_s - 5)), "--only", ",".join(names), "--max-mb", "70"]
    command += ["--fake"] if context.fake else []
    path = context.folder("logs") / f"{log}.txt"
    run_logged(command, path, limit_s, context.environment(), patience_s=15.0)
    found = {name: read_json(out / "parts" / f"{name}.json") or {} for name in names}
    done = [it for it in found.values() if it.get("status") == "done"]
    wrong = [f"{name}: {it.get('reason', 'no time left')}" for name, it in found.items()
             if it.get("status") != "done"]
    for name in names:
        shutil.rmtree(out / "work" / name / "recording", ignore_errors=True)
    said = "; ".join([f"{len(done)} of {len(names)} done", *figures_of(done), *wrong[:4]])
    if not done:
        return failed(f"{said}: {last_lines(path, 1)}")
    return partial(said, done=len(done)) if wrong else ok(said, done=len(done))


def figures_of(done: List[Json]) -> List[str]:
    lines = []
    errors = sorted(abs(it["replay_mean_error"]) for it in done if "replay_mean_error" in it)
    if errors:
        lines.append(f"replay error median {100 * errors[len(errors) // 2]:.2f} %, worst "
                     f"{100 * errors[-1]:.2f} %")
    for record in done:
        if record.get("lost"):
            lines.append(f"{record['name']} lost {record['lost']}")
        if "arms" in record:
            costs = [f"{arm} {100 * (it['ratio'] - 1):+.2f} %"
                     for arm, it in record["arms"].items() if arm != "absent"]
            lines.append(f"{record['name']}: {', '.join(costs)}")
    return lines


def traces(context: Context, limit_s: float) -> Verdict:
    """Part h."""
    parts = fake_parts()[:1] if context.fake else main_captures()
    return campaign(context, [part.name for part in parts], limit_s, "captures")


def overhead(context: Context, limit_s: float) -> Verdict:
    """Part i."""
    parts = fake_parts()[2:] if context.fake else overhead_parts(False)
    return campaign(context, [part.name for part in parts], limit_s, "overhead")
