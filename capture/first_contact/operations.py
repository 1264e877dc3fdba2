"""Part l: what each operation of a few arms did, where measured and simulated times differ and
figures of part g do not say why. A CSV file a policy (`bubblesim measure --operations`), packed."""

from __future__ import annotations

import csv
import gzip
import json
import shutil
import time
from pathlib import Path
from typing import Any, Dict, List, Sequence, Tuple

from processes import last_lines, run_logged

from .context import Context, Verdict, failed, ok, partial, write_json
from .pairs import policy_name, write_configs

# Pair, policies, how long whoever waits looks before it sleeps.
ARMS: Tuple[Tuple[str, Tuple[str, ...], str], ...] = (
    ("vgg19-dp--resnet50-online", ("pipefill",), "50ms"),
    ("roberta-dp--encoder-offline", ("pipefill",), "50ms"),
    ("roberta-dp--encoder-offline", ("pipefill", "specinf"), "50us"),
    ("gpt2-pp--encoder-online", ("specinf", "mps"), "50us"),
    ("gpt2-pp--encoder-online", ("specinf", "pipefill"), "5ms"),
    ("vgg19-dp--resnet50-online", ("pipefill",), "50us"),
    ("vgg19-dp--resnet50-online", ("pipefill",), "5ms"),
    ("roberta-dp--bert-online", ("specinf", "pipefill"), "50us"),
    ("roberta-dp--bert-online", ("specinf", "pipefill"), "5ms"),
    ("gpt2-pp--llama-offline", ("specinf",), "5ms"),
)
FAKE_ARMS = (("vgg19-dp--resnet50-online", ("exclusive",), "50us"),)
# Of a run and of its warm-up, in ms.
TIMES, FAKE_TIMES = (2400, 800), (150, 50)
KEPT_NS = 800_000_000  # of each, from its end
LEAST_S = 20.0
Json = Dict[str, Any]


def policy_named(policies: List[Any], name: str) -> Any:
    """As the config sets it."""
    return next((it for it in policies if policy_name(it) == name), name)


def shortened(path: Path, policies: Sequence[str], times: Tuple[int, int]) -> Json:
    config = json.loads(path.read_text())
    return {**config, "policies": [policy_named(config["policies"], name) for name in policies],
            "duration": f"{times[0]}ms", "warmup": f"{times[1]}ms"}


def run_arm(context: Context, folder: Path, config: Path, spin: str, limit_s: float) -> str:
    """Empty, or what went wrong."""
    arguments = ["measure", str(config), "--operations", str(folder / "operations"), "--device",
                 context.device_name(), "--out", str(folder), "--spin", spin]
    arguments += ["--fake"] if context.fake else ["--fits", str(context.fits)]
    log = folder / "log.txt"
    code = run_logged([str(context.bubblesim), *arguments], log, limit_s, context.environment(),
                      patience_s=15.0)
    if code not in (0, 1):
        return "took too long" if code is None else last_lines(log, 2)
    tables = sorted((folder / "operations").glob("*.csv"))
    for path in tables:
        if not path.stem.endswith("alone"):
            pack(path)
        path.unlink()
    return "" if tables else "no operations were written"


def pack(path: Path) -> None:
    with path.open(newline="") as source:
        rows = csv.DictReader(source)
        late = list(rows)
    last = max((int(row["called_ns"]) for row in late), default=0)
    with gzip.open(f"{path}.gz", "wt", newline="") as packed:
        out = csv.DictWriter(packed, rows.fieldnames or [], lineterminator="\n")
        out.writeheader()
        out.writerows(row for row in late if int(row["called_ns"]) > last - KEPT_NS)


def run(context: Context, limit_s: float) -> Verdict:
    deadline = time.monotonic() + limit_s - 3
    place = context.folder("l")
    write_configs(context, place / "configs", None)
    done, wrong = [], []
    for pair, policies, spin in FAKE_ARMS if context.fake else ARMS:
        name = ".".join((pair, *policies, spin))
        folder = place / name
        if list(folder.glob("operations/*.csv.gz")) and not list(folder.glob("operations/*.csv")):
            done.append(name)
            continue
        left_s = deadline - time.monotonic()
        if left_s < LEAST_S and not context.fake:
            wrong.append(f"{name}: no time left")
            continue
        shutil.rmtree(folder, ignore_errors=True)
        write_json(folder / "config.json",
                   shortened(place / "configs" / f"{pair}.json", policies,
                             FAKE_TIMES if context.fake else TIMES))
        fault = run_arm(context, folder, folder / "config.json", spin, left_s)
        if fault:
            wrong.append(f"{name}: {fault}")
        else:
            done.append(name)
    said = "; ".join([f"{len(done)} arms: {', '.join(done)}", *wrong])
    if not done:
        return failed(said)
    return partial(said) if wrong else ok(said)
