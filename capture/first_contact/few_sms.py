"""Part m: kernels of convolutional networks at small batches, on the whole GPU and on as many SMs
as an A100's smallest MIG instance has (a cap of MPS). ParvaGPU's table is of such instances, and
its times of small batches cannot be told from a host's (docs/validation.md, equal clients)."""

from __future__ import annotations

import os
import time
from typing import Dict, List, Tuple

from .captures import python_of
from .clients import (READY_S, Client, ClientFault, common_environment, ended, record_all,
                      recorder_of)
from .context import Context, Verdict, blocked, failed, ok, partial
from .mps import with_mps_of, without_mps
from .sharing import mps_of

JOBS = tuple(f"tf32:{network}:{batch}x224"
             for network, batches in (("inception_v3", (1, 2, 4, 8, 16)), ("resnet50", (1, 4, 16)))
             for batch in batches)
SMS = 14  # of an instance 1g.5gb


def groups_of(context: Context, mps: Dict[str, str]) -> List[Tuple[str, Dict[str, str]]]:
    """Names of the recordings, and the environment of their process."""
    common = common_environment(context)
    made = [("few-sms-all", with_mps_of(without_mps(dict(os.environ)), common))]
    if mps:
        made.append((f"few-sms-{SMS}", with_mps_of(mps, common)))
    return made


def run(context: Context, limit_s: float) -> Verdict:
    if context.fake or not context.torch_python():
        return blocked("no PyTorch on a GPU")
    deadline = time.monotonic() + limit_s - 3
    devices = context.facts.get("driver", {}).get("devices") or [{}]
    percentage = -(-100 * SMS // devices[0].get("sms", 132))  # so that SMS are whole
    command = [*recorder_of(context), python_of(context)]
    wrong: List[str] = []
    clients: List[Client] = []
    with mps_of(context) as (daemon, refused), ended(clients):
        wrong += [f"no MPS: {refused}"] if refused else []
        groups = groups_of(context, daemon.clients(percentage) if daemon else {})
        for name, environment in groups:
            clients.append(Client(context.folder("m") / name, command, JOBS, environment))
        for (name, _), client in zip(groups, clients):
            try:
                client.wait_for("ready", min(deadline, time.monotonic() + READY_S))
                wrong += record_all(context, client, deadline, "m", name)
            except (ClientFault, OSError, ValueError) as fault:
                wrong.append(f"{name}: {fault}")
    done = len(list((context.folder("captures") / "traces").glob("few-sms-*.btr")))
    said = "; ".join([f"{done} of {len(groups) * len(JOBS)} recorded", *wrong])
    if not done:
        return failed(said)
    return partial(said) if wrong else ok(said)
