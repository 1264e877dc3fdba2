"""Part e: what is unknown of sharing, seen by kernels that write the device's clock down.

Instants of all processes are on the device's own clock, so order needs no other. A newcomer's wait
is its start on the device less the host's clock before the launch, above the least such difference
of launches alone: the clocks' offset and the launch itself fall out. The two clocks drift apart by
tens of us a second, as much as some waits: launches alone come in two runs, which show the rate."""

from __future__ import annotations

import bisect
import contextlib
import os
import shutil
import time
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

from processes import end_group, ending_waits, last_lines, start_logged

from .context import Context, Verdict, failed, module_command, ok, partial, read_json, write_json
from .mps import MpsDaemon, MpsRefused, with_mps_of, without_mps

READY_S = 20.0
DRIFT_NS = 200_000_000  # least time between launches alone that a rate is taken from
Json = Dict[str, Any]
Environment = Dict[str, str]


class ProbeFault(Exception):
    """A process of a probe did not do what it should."""


def quantiles(values: Sequence[float]) -> Json:
    """Quartiles, extremes and number; of nothing, its number."""
    ordered = sorted(values)
    if not ordered:
        return {"n": 0}

    def at(share: float) -> float:
        return ordered[min(int(share * len(ordered)), len(ordered) - 1)]

    return {"n": len(ordered), "min": ordered[0], "p25": at(0.25), "p50": at(0.5),
            "p75": at(0.75), "p95": at(0.95), "max": ordered[-1]}


class Probe:
    """Processes that begin together; ended with this, whatever happens."""

    def __init__(self, context: Context, name: str, deadline: float) -> None:
        self.context, self.deadline = context, deadline
        self.folder = context.folder("e") / name
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        self.children: List[Tuple[str, Any]] = []

    def start(self, role: str, environment: Environment, **options: int) -> None:
        """Returns once the process is ready, so that what it measures alone is alone."""
        name = f"{role}-{len(self.children)}"
        folder = self.folder / name
        folder.mkdir()
        texts = [f"{key}={value}" for key, value in options.items()]
        command = module_command("probe_sharing", role, str(folder), *texts)
        with ending_waits():
            process = start_logged(command, folder / "log.txt",
                                   with_mps_of(environment, self.context.environment()))
            self.children.append((name, process))
        until = min(time.monotonic() + READY_S, self.deadline)
        while not (folder / "ready").exists():
            if process.poll() is not None or time.monotonic() > until:
                raise ProbeFault(self.why(name, process))
            time.sleep(0.005)

    def why(self, name: str, process: Any) -> str:
        fault = (read_json(self.folder / name / "result.json") or {}).get("fault")
        if fault:
            return f"{name}: {fault['call']}: {fault['text']} ({fault['code']})"
        said = last_lines(self.folder / name / "log.txt", 2)
        return f"{name}: " + ("too slow" if process.poll() is None else "ended early") + \
            (f": {said}" if said else "")

    def results(self) -> List[Json]:
        (self.folder / "go").touch()
        made = []
        for name, process in self.children:
            while process.poll() is None:
                if time.monotonic() > self.deadline:
                    raise ProbeFault(self.why(name, process))
                time.sleep(0.01)
            result = read_json(self.folder / name / "result.json")
            if process.returncode != 0 or not result or "fault" in result:
                raise ProbeFault(self.why(name, process))
            made.append(result)
        return made

    def __enter__(self) -> "Probe":
        return self

    def __exit__(self, kind: Optional[type], *_rest: object) -> None:
        for _name, process in self.children:
            end_group(process, patience_s=1.0)
        if kind is None:
            # Records are large; what was made of them is kept, and logs of what went wrong.
            shutil.rmtree(self.folder, ignore_errors=True)


def offset_ns(row: Sequence[int]) -> int:
    return row[2] - row[0]


def waits_ns(newcomer: Json, kernels: Optional[List[Json]] = None) -> Tuple[List[int], List[int]]:
    """Waits alone, and beside the load, above the line through the least offsets of both halves of
    the launches alone. With the load's `kernels`, only launches from its start to its end count."""
    alone = newcomer["alone"]
    half = len(alone) // 2
    least = min(alone, key=offset_ns)
    rate = 0.0
    if half:
        early, late = min(alone[:half], key=offset_ns), min(alone[half:], key=offset_ns)
        if late[0] - early[0] >= DRIFT_NS:
            least = early
            rate = (offset_ns(late) - offset_ns(early)) / (late[0] - early[0])

    def wait(row: Sequence[int]) -> int:
        return round(offset_ns(row) - offset_ns(least) - rate * (row[0] - least[0]))

    def beside_load(row: Sequence[int]) -> bool:
        if kernels is None:
            return True
        return bool(kernels) and kernels[0]["starts"][0] <= row[2] - wait(row) < kernels[-1]["end"]

    return ([wait(row) for row in alone],
            [wait(row) for row in newcomer["beside"] if beside_load(row)])


def blocks_left(kernels: List[Json], start: int) -> Optional[float]:
    """Of the kernel that has begun last before `start` and has not ended: the share of its blocks
    that start later. None: no kernel is under way."""
    found = None
    for kernel in kernels:
        if kernel["starts"][0] <= start < kernel["end"]:
            found = kernel
    if found is None:
        return None
    starts = found["starts"]
    return 1 - bisect.bisect_right(starts, start) / len(starts)


def order(left: Sequence[float]) -> str:
    """Strict: a newcomer's blocks start when all of the kernel before it have. Mixed: anywhere."""
    middle = quantiles(left).get("p50")
    if middle is None:
        return "not seen"
    return "strict" if middle < 0.02 else "mixed" if middle > 0.15 else "between"


def probe_order(probe: Probe, mps: Environment, depth: int) -> Json:
    probe.start("load", mps, grid=0, blocks_per_sm=20, threads=1024, block_ns=250_000, kernels=240,
                depth=depth, ms=1200)
    probe.start("newcomer", mps, grid=0, threads=1024, block_ns=20_000, alone=40, count=120)
    resident, newcomer = probe.results()
    seen = [blocks_left(resident["kernels"], row[2]) for row in newcomer["beside"]]
    left = [value for value in seen if value is not None]
    alone, beside = waits_ns(newcomer, resident["kernels"])
    return {"depth": depth, "order": order(left), "blocks_left": quantiles(left),
            "all_blocks_left": left, "alone_ns": quantiles(alone), "wait_ns": quantiles(beside)}


def probe_arrival(probe: Probe, mps: Environment) -> Json:
    """Half of the SMs are free: what a newcomer waits for is not room."""
    probe.start("load", mps, grid=64, blocks_per_sm=1, threads=128, block_ns=50_000, kernels=8000,
                depth=20, ms=700)
    probe.start("newcomer", mps, grid=8, threads=128, block_ns=10_000, alone=60, count=150)
    resident, newcomer = probe.results()
    alone, beside = waits_ns(newcomer, resident["kernels"])
    return {"alone_ns": quantiles(alone), "wait_ns": quantiles(beside)}


def after_ns(newcomer: Json, waits: Sequence[int]) -> List[int]:
    """Of all launches beside the load but the first: device time from the end of the kernel before
    to the launch, so for how long the resident has been alone by then."""
    rows = newcomer["beside"]
    return [later[2] - wait - earlier[3]
            for earlier, later, wait in zip(rows, rows[1:], waits[1:])]


def probe_newcomer(probe: Probe, plain: Environment, depth: int) -> Json:
    """Without MPS, beside a context that saturates the GPU with kernels of 2.5 ms, `depth` of them
    launched before it waits."""
    probe.start("load", plain, grid=0, blocks_per_sm=20, threads=1024, block_ns=250_000,
                kernels=400, depth=depth, ms=1500)
    probe.start("newcomer", plain, grid=0, threads=1024, block_ns=20_000, alone=40, count=150)
    resident, newcomer = probe.results()
    alone, beside = waits_ns(newcomer, resident["kernels"])
    return {"depth": depth, "alone_ns": quantiles(alone), "wait_ns": quantiles(beside),
            "all_wait_ns": beside, "all_after_ns": after_ns(newcomer, waits_ns(newcomer)[1])}


def present(watcher: Json) -> List[Tuple[int, int]]:
    """When the process was on the GPU."""
    edges = [watcher["first"]]
    for before, after in watcher["gaps"]:
        edges += [before, after]
    edges.append(watcher["last"])
    return list(zip(edges[0::2], edges[1::2]))


def slices_of(watchers: List[Json]) -> Json:
    """Whole stretches of each process while all run, and what lies between one's and the next's."""
    began = max(watcher["first"] for watcher in watchers)
    ended = min(watcher["last"] for watcher in watchers)
    turns = sorted((start, end, number) for number, watcher in enumerate(watchers)
                   for start, end in present(watcher) if start > began and end < ended)
    switches = [later[0] - earlier[1] for earlier, later in zip(turns, turns[1:])
                if earlier[2] != later[2]]
    spans = [end - start for start, end, _number in turns]
    whole = sum(spans) + sum(max(gap, 0) for gap in switches)
    return {"processes": len(watchers), "slice_ns": quantiles(spans),
            "switch_ns": quantiles(switches), "kept": sum(spans) / whole if whole else None,
            "overlapping": sum(gap < 0 for gap in switches)}


def probe_slices(probe: Probe, plain: Environment, processes: int, blocks: int = 1,
                 threads: int = 32) -> Json:
    for _ in range(processes):
        probe.start("watch", plain, ms=1200 if blocks == 1 else 600, gap_ns=20_000, blocks=blocks,
                    threads=threads)
    return slices_of(probe.results())


def pairs_that_cost(gaps: Json) -> List[Tuple[int, int]]:
    """A stream, and one beside whose wait its gaps are longer by half and more."""
    return [(of, other) for of, row in enumerate(gaps["beside_ns"])
            for other, gap in enumerate(row)
            if gap is not None and gap > 1.5 * max(gaps["alone_ns"][of], 1)]


def probe_waits(probe: Probe, plain: Environment) -> Json:
    probe.start("waits", plain, streams=STREAMS, kernels=100, block_ns=5_000, plug_ns=3_000_000)
    gaps = probe.results()[0]
    return {**gaps, "cost": pairs_that_cost(gaps)}


def median(values: Sequence[float]) -> float:
    return float(quantiles(values)["p50"])


def share_of(probe: Probe, environment: Environment, whole: Optional[Json]) -> Json:
    """One process with a part of the SMs; its work is the whole GPU's."""
    probe.start("solo", environment, sms=whole["sms"] if whole else 0,
                loops=whole["loops"] if whole else 0, block_ns=250_000, mib=2048, rounds=5)
    result = probe.results()[0]
    made = {**result, "compute_ns": median(result["compute_ns"]),
            "memory_ns": median(result["memory_ns"])}
    if whole:
        made["compute_ratio"] = made["compute_ns"] / whole["compute_ns"]
        made["memory_ratio"] = made["memory_ns"] / whole["memory_ns"]
    return made


PERCENTAGES = (80, 60, 50, 40, 30, 20)

# Name, whether MPS is needed. In the order of their worth.
SECTIONS = (("slices-2", False), ("order-1", True), ("order-10", True), ("newcomer-4", False),
            ("caps", True), ("newcomer-1", False), ("newcomer-20", False), ("arrival", True),
            ("order-100", True), ("slices-3", False), ("covered-33", False), ("covered-66", False),
            ("covered-132", False), ("covered-264", False), ("waits", False),
            ("waits-32", False))
STREAMS = 12  # of which each waits for each
CONNECTIONS = "CUDA_DEVICE_MAX_CONNECTIONS"  # 8 where nobody sets it


def run_section(context: Context, name: str, environment: Environment,
                daemon: Optional[MpsDaemon], deadline: float) -> Json:
    if name == "caps":
        assert daemon is not None
        return caps(context, daemon, deadline)
    with Probe(context, name, deadline) as probe:
        kind, _, number = name.partition("-")
        if kind == "waits":
            return probe_waits(probe, {**environment, CONNECTIONS: number or "8"})
        if kind == "slices":
            return probe_slices(probe, environment, int(number))
        if kind == "covered":  # blocks of half an SM each: what a switch costs by what it saves
            return {"blocks": int(number), **probe_slices(probe, environment, 2, int(number), 1024)}
        if kind == "order":
            return probe_order(probe, environment, int(number))
        if kind == "newcomer":
            return probe_newcomer(probe, environment, int(number))
        return probe_arrival(probe, environment)


def caps(context: Context, daemon: MpsDaemon, deadline: float) -> Json:
    with Probe(context, "caps-100", deadline) as probe:
        whole = share_of(probe, daemon.clients(), None)
    made: Json = {"whole": whole, "shares": []}
    for percentage in PERCENTAGES:
        with Probe(context, f"caps-{percentage}", deadline) as probe:
            share = share_of(probe, daemon.clients(percentage), whole)
        made["shares"].append({"percentage": percentage, **share})
    return made


def text_of(name: str, result: Json) -> str:
    """A section's figures in a few words."""
    if name.startswith(("slices", "covered")):
        if result["overlapping"]:
            return f"{name}: not sliced: {result['overlapping']} turns overlap"
        return (f"{name}: slice {result['slice_ns'].get('p50', 0) / 1e6:.3f} ms, switch "
                f"{result['switch_ns'].get('p50', 0) / 1e3:.0f} us")
    if name.startswith("order"):
        return (f"{name}: {result['order']}, {result['blocks_left'].get('p50', -1):.2f} of blocks "
                "left")
    if name == "caps":
        half = next(share for share in result["shares"] if share["percentage"] == 50)
        return (f"caps: at 50 % compute x{half['compute_ratio']:.2f}, memory "
                f"x{half['memory_ratio']:.2f}")
    if name.startswith("waits"):
        alone = quantiles(result["alone_ns"])
        return (f"{name}: gaps of {alone['p50'] / 1e3:.2f} us, longer by half beside a wait in "
                f"{len(result['cost'])} of {STREAMS * (STREAMS - 1)} pairs of streams")
    return f"{name}: waits {result['wait_ns'].get('p50', 0) / 1e3:.0f} us"


@contextlib.contextmanager
def mps_of(context: Context) -> Iterator[Tuple[Optional[MpsDaemon], str]]:
    """A daemon, or why there is none."""
    refused = context.mps_refused()
    if refused:
        yield None, refused
        return
    try:
        daemon = MpsDaemon().__enter__()
    except MpsRefused as fault:
        yield None, str(fault)
        return
    try:
        yield daemon, ""
    finally:
        daemon.__exit__()


def run(context: Context, limit_s: float) -> Verdict:
    deadline = time.monotonic() + limit_s - 2.0
    folder = context.folder("e")
    lines: List[str] = []
    wrong: List[str] = []
    with mps_of(context) as (daemon, refused):
        for name, needs_mps in SECTIONS:
            kept = folder / f"{name}.json"
            result = read_json(kept)
            if result is None and needs_mps and daemon is None:
                continue
            if result is None:
                environment = daemon.clients() if needs_mps and daemon else \
                    without_mps(dict(os.environ))
                if time.monotonic() > deadline:
                    wrong.append(f"{name}: no time left")
                    continue
                try:
                    result = run_section(context, name, environment, daemon, deadline)
                except (ProbeFault, OSError, ValueError, IndexError, KeyError) as fault:
                    wrong.append(f"{name}: {fault}")
                    continue
                write_json(kept, result)
            lines.append(text_of(name, result))
    if refused:
        wrong.append(f"no MPS: {refused}")
    said = "; ".join(lines + wrong)
    figures = {"done": len(lines), "sections": len(SECTIONS), "wrong": wrong}
    if not lines:
        return failed(said, **figures)
    return partial(said, **figures) if wrong else ok(said, **figures)
