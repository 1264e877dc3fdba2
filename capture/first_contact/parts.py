"""The parts, in the order of what they are worth a minute."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, Tuple

from . import (captures, clients, device, few_sms, live, operations, pairs, sharing,
               settle, stand_ins, unloadable)
from .context import Context, Verdict


@dataclass(frozen=True)
class Part:
    name: str                 # of a letter
    title: str
    limit_s: float            # it is ended then; what it has done by then is kept
    least_s: float            # it is not begun with less time left
    run: Callable[[Context, float], Verdict]
    program: bool = True      # needs bubblesim
    keeps: Tuple[str, ...] = ()  # beside its folder: patterns of what would be taken for done


PARTS: Tuple[Part, ...] = (
    Part("a", "driver, device, permissions", 60, 10, device.run, program=False),
    Part("b", "recorder in small programs", 60, 15, captures.small),
    Part("c", "stand-ins against targets", 110, 20, stand_ins.stand_ins,
         keeps=("fits", "*/fits")),
    Part("d", "one pair under four ways to share", 80, 30, pairs.substrates),
    Part("e", "probes of sharing", 90, 15, sharing.run, program=False),
    Part("f", "constants of the card", 100, 60, stand_ins.constants),
    Part("g", "pairs by policy", 360, 60, pairs.policies),
    Part("h", "captures for traces/samples", 150, 30, captures.traces,
         keeps=("captures/parts/train-*", "captures/parts/infer-*", "captures/parts/fake-c*")),
    Part("i", "what capturing costs", 190, 60, captures.overhead,
         keeps=("captures/parts/overhead-*", "captures/parts/fake-o*")),
    Part("j", "fill before unchanged programs", 100, 40, live.run),
    Part("k", "unchanged jobs as clients of one GPU", 240, 60, clients.run,
         keeps=("captures/traces/client-*",)),
    Part("l", "single operations of a few arms", 150, 30, operations.run),
    Part("m", "kernels of small batches on few SMs", 60, 30, few_sms.run,
         keeps=("captures/traces/few-sms-*",)),
    Part("n", "a recorder that cannot be loaded", 9, 6, unloadable.run, program=False),
    Part("o", "collectives of graphs, memory limits of MPS", 40, 20, settle.run),
)
