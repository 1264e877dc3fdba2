"""Part l: what each operation of a few arms did, where measured and simulated times differ and
figures of part g do not say why. A CSV file an arm (`bubblesim measure --operations`), packed."""

from __future__ import annotations

import gzip
import json
import shutil
import time
from pathlib import Path
from typing import Any, Dict, List, Tuple

from processes import last_lines, run_logged

from .context import Context, Verdict, failed, ok, partial, write_json
from .pairs import write_configs

# Pair and policy; seconds of a run, of which the first are its warm-up.
ARMS: Tuple[Tuple[str, str, float, float], ...] = (
    ("gpt2-pp--llama-offline", "exclusive", 0.9, 0.3),
    ("gpt2-pp--encoder-online", "exclusive", 0.9, 0.3),
    ("vgg19-dp--resnet50-online", "pipefill", 2.4, 0.8),
    ("roberta-dp--bert-online", "pipefill", 2.4, 0.8),
    ("gpt2-fsdp--gpt2-offline", "pipefill", 2.4, 0.8),
)
FAKE_ARMS = (("vgg19-dp--resnet50-online", "exclusive", 0.15, 0.05),)
LEAST_S = 20.0
Json = Dict[str, Any]


def policies_named(policies: List[Any], name: str) -> List[Any]:
    """As the config sets it."""
    return [it for it in policies if (it if isinstance(it, str) else it["name"]) == name]


def shortened(path: Path, policy: str, run_s: float, warmup_s: float) -> Json:
    config = json.loads(path.read_text())
    return {**config, "policies": policies_named(config["policies"], policy) or [policy],
            "duration": f"{round(run_s * 1e3)}ms", "warmup": f"{round(warmup_s * 1e3)}ms"}


def run_arm(context: Context, folder: Path, config: Path, limit_s: float) -> str:
    """Empty, or what went wrong."""
    arguments = ["measure", str(config), "--operations", str(folder / "operations"), "--device",
                 context.device_name(), "--out", str(folder)]
    arguments += ["--fake"] if context.fake else ["--fits", str(context.fits)]
    log = folder / "log.txt"
    code = run_logged([str(context.bubblesim), *arguments], log, limit_s, context.environment(),
                      patience_s=15.0)
    if code not in (0, 1):
        return "took too long" if code is None else last_lines(log, 2)
    tables = sorted((folder / "operations").glob("*.csv"))
    for path in tables:
        with path.open("rb") as source, gzip.open(f"{path}.gz", "wb") as packed:
            shutil.copyfileobj(source, packed)
        path.unlink()
    return "" if tables else "no operations were written"


def run(context: Context, limit_s: float) -> Verdict:
    deadline = time.monotonic() + limit_s - 3
    place = context.folder("l")
    write_configs(context, place / "configs", None)
    done, wrong = [], []
    for pair, policy, run_s, warmup_s in FAKE_ARMS if context.fake else ARMS:
        name = f"{pair}.{policy}"
        folder = place / name
        if list(folder.glob("operations/*.csv.gz")) and not list(folder.glob("operations/*.csv")):
            done.append(name)
            continue
        left_s = deadline - time.monotonic()
        if left_s < LEAST_S and not context.fake:
            wrong.append(f"{name}: no time left")
            continue
        shutil.rmtree(folder, ignore_errors=True)
        write_json(folder / "config.json", shortened(place / "configs" / f"{pair}.json", policy,
                                                     run_s, warmup_s))
        fault = run_arm(context, folder, folder / "config.json", left_s)
        if fault:
            wrong.append(f"{name}: {fault}")
        else:
            done.append(name)
    said = "; ".join([f"{len(done)} arms: {', '.join(done)}", *wrong])
    if not done:
        return failed(said)
    return partial(said) if wrong else ok(said)
