#!/usr/bin/env python3
"""One process that runs PyTorch jobs when it is told to: many pairs for one start.

    python3 client.py FOLDER JOB...

    infer:resnet50:4            a model of configs/models, batch 4
    infer:gpt2-large:4x128      batch 4, 128 tokens; a causal model decodes 8 more
    vision:inception_v3:32      torchvision's own model
    tf32:inception_v3:4x224     the same in floats, products in TF32, images of 224 x 224
    train:bert-base:32x128      forward, backward, optimizer
    sleep:5                     no PyTorch: 5 ms, for tests

Writes FOLDER/ready once all jobs are warm. Then, for each FOLDER/N.json (N from 0) with `job` (its
place in the list), `from_ns`, `until_ns` (CLOCK_MONOTONIC), `per_s` (0: pass after pass; else
Poisson arrivals), `passes` (0: until `until_ns`), FOLDER/N.done.json has `arrive`, `begin` and
`end` of each pass in ns. A pass is waited for, as an answer or a loss would be. FOLDER/stop ends
the process.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from pathlib import Path
from typing import Any, Callable, Dict, List, Tuple

CAPTURE = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(CAPTURE / "torch" / "examples"), str(CAPTURE / "torch")]

WARM_PASSES = 8
NEW_TOKENS = 8
LONGEST_S = 600.0
Pass = Callable[[int], None]
Json = Dict[str, Any]


def sizes(text: str) -> Tuple[int, int]:
    batch, _, sequence = text.partition("x")
    return int(batch), int(sequence or 0)


def training_pass(model: str, batch: int, sequence: int) -> Pass:
    from jobs import build, config, plans, steps

    job = build.build(config.load(model, []), batch, sequence, steps.device_of("auto"))
    return plans.single(job, 1)


def serving_pass(model: str, batch: int, sequence: int) -> Pass:
    import infer
    from jobs import steps

    words = ["--model", model, "--batch", str(batch), "--tokens", str(NEW_TOKENS)]
    words += ["--prompt", str(sequence)] if sequence else []
    return infer.make_request(infer.parse(words), steps.device_of("auto"))


def vision_pass(model: str, batch: int, size: int, floats: bool) -> Pass:
    import torch
    import torchvision
    from jobs import build, steps

    device = steps.device_of("auto")
    if floats:
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    dtype = torch.float32 if floats else build.dtype_of(device)
    more = {"init_weights": False} if model == "inception_v3" else {}
    size = size or (299 if model == "inception_v3" else 224)
    made = build.placed(lambda: getattr(torchvision.models, model)(weights=None, **more), device)
    made = made.to(dtype).eval()
    images = torch.randn(batch, 3, size, size, device=device, dtype=dtype)

    def forward(_number: int) -> None:
        with steps.marked("forward"):
            made(images)

    return forward


def finished(work: Pass, gradients: bool) -> Pass:
    """The pass, marked as an iteration and waited for."""
    import torch
    from jobs.steps import marked

    wait = torch.cuda.synchronize if torch.cuda.is_available() else lambda: None

    def whole(number: int) -> None:
        with torch.set_grad_enabled(gradients), marked(f"iteration {number}"):
            work(number)
            wait()

    return whole


def pass_of(job: str) -> Pass:
    kind, name, *rest = job.split(":")
    if kind == "sleep":
        return lambda _number: time.sleep(float(name) / 1e3)
    batch, sequence = sizes(rest[0])
    if kind == "train":
        return finished(training_pass(name, batch, sequence), True)
    import torch

    with torch.inference_mode():
        made = (vision_pass(name, batch, sequence, kind == "tf32") if kind in ("vision", "tf32")
                else serving_pass(name, batch, sequence))
    plain = finished(made, False)

    def served(number: int) -> None:
        with torch.inference_mode():
            plain(number)

    return served


def wait_until(instant_ns: int) -> None:
    """Asleep, and awake for the last half millisecond."""
    left_s = (instant_ns - time.monotonic_ns()) / 1e9 - 0.0005
    if left_s > 0:
        time.sleep(left_s)
    while time.monotonic_ns() < instant_ns:
        pass


def run(work: Pass, wanted: Json) -> Json:
    chance = random.Random(wanted.get("seed", 1))
    per_s, most = wanted.get("per_s", 0.0), wanted.get("passes", 0)
    arrive: List[int] = []
    begin: List[int] = []
    end: List[int] = []
    wait_until(wanted["from_ns"])
    due = wanted["from_ns"]
    while not most or len(end) < most:
        if per_s:
            due += round(chance.expovariate(per_s) * 1e9)
            if due >= wanted["until_ns"]:
                break
            wait_until(due)
        began = time.monotonic_ns()
        if began >= wanted["until_ns"]:
            break
        work(len(end))
        arrive.append(due if per_s else began)
        begin.append(began)
        end.append(time.monotonic_ns())
    return {"arrive": arrive, "begin": begin, "end": end}


def write(path: Path, text: str) -> None:
    partial = path.with_suffix(".part")
    partial.write_text(text)
    partial.replace(path)


def main(arguments: List[str]) -> int:
    folder, jobs = Path(arguments[0]), arguments[1:]
    passes = [pass_of(job) for job in jobs]
    for work in passes:
        for number in range(WARM_PASSES):
            work(number)
    write(folder / "ready", str(os.getpid()))
    until = time.monotonic() + LONGEST_S
    number = 0
    while not (folder / "stop").exists() and time.monotonic() < until:
        command = folder / f"{number}.json"
        if not command.exists():
            time.sleep(0.002)
            continue
        wanted = json.loads(command.read_text())
        write(folder / f"{number}.done.json", json.dumps(run(passes[wanted["job"]], wanted)))
        number += 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
