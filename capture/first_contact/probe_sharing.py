"""One process of a probe of sharing: launches kernels that write the device's clock down. Which
probes there are, and what is made of their records, is sharing.py's.

    python3 -m first_contact.probe_sharing ROLE FOLDER KEY=NUMBER...

Writes FOLDER/ready once its context and kernels are there, begins when FOLDER's parent has a file
`go`, ends with FOLDER/result.json, in which a fault of the driver may stand instead.
"""

from __future__ import annotations

import ctypes
import json
import random
import sys
import time
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional

from first_contact.cuda import CudaFault, Driver, Module, probe_module

GO_LIMIT_S = 30.0
U32, U64 = ctypes.c_uint32, ctypes.c_uint64
ROW = 3  # words of a block: start, end, SM
ROW_BYTES = 24
BETWEEN_S = 0.5  # of both runs of launches alone: how fast the clocks drift apart

Options = Dict[str, int]


class Gpu:
    def __init__(self) -> None:
        self.driver = Driver()
        self.driver.use()
        self.module: Module = probe_module(self.driver)
        self.sms = self.driver.attribute(16)

    def rows(self, pointer: U64, blocks: int) -> List[int]:
        return self.driver.words(pointer, ROW * blocks)

    def loops_for(self, block_ns: int, threads: int) -> int:
        """So many that a block lasts `block_ns` on a GPU with one block an SM."""
        out = self.driver.allocate(ROW_BYTES * self.sms)
        loops = 2000
        # Some 30 ms of work first: an idle GPU's clock is a fraction of a busy one's.
        self.module.launch("blocks", self.sms, threads, out, U32(2_000_000))
        for _ in range(3):
            self.module.launch("blocks", self.sms, threads, out, U32(loops))
            rows = self.rows(out, self.sms)
            lasted = max(sorted(rows[1::ROW])[len(rows) // 6] - min(rows[0::ROW]), 1)
            loops = max(min(int(loops * block_ns / lasted), 1 << 26), 1)
        return loops


def load(gpu: Gpu, options: Options, begin: Callable[[], None]) -> Dict[str, Any]:
    """`depth` kernels are launched, waited for, and so on. Of every kernel the starts of its
    blocks, in order, and its end."""
    grid = options["grid"] or gpu.sms * options["blocks_per_sm"]
    kernels, threads = options["kernels"], options["threads"]
    loops = U32(gpu.loops_for(options["block_ns"], threads))
    out = gpu.driver.allocate(ROW_BYTES * grid * kernels)
    begin()
    until = time.monotonic() + options["ms"] * 1e-3
    done = 0
    while done < kernels and time.monotonic() < until:
        for number in range(done, min(done + options["depth"], kernels)):
            gpu.module.launch("blocks", grid, threads, U64(out.value + ROW_BYTES * grid * number),
                              loops)
            done = number + 1
        gpu.driver.synchronize()
    rows = gpu.rows(out, grid * done)
    made = []
    for number in range(done):
        part = rows[ROW * grid * number:ROW * grid * (number + 1)]
        made.append({"starts": sorted(part[0::ROW]), "end": max(part[1::ROW])})
    return {"grid": grid, "sms": gpu.sms, "kernels": made}


def newcomer(gpu: Gpu, options: Options, begin: Callable[[], None]) -> Dict[str, Any]:
    """Small kernels at random distances: host time of each launch, device time of its start, alone
    first and then beside whoever runs."""
    grid = options["grid"] or gpu.sms
    loops = U32(gpu.loops_for(options["block_ns"], options["threads"]))
    out = gpu.driver.allocate(ROW_BYTES * grid)
    chance = random.Random(1)

    def sent(count: int) -> List[List[int]]:
        made = []
        for _ in range(count):
            time.sleep(chance.uniform(0.5e-3, 3e-3))
            before = time.monotonic_ns()
            gpu.module.launch("blocks", grid, options["threads"], out, loops)
            gpu.driver.synchronize()
            after = time.monotonic_ns()
            rows = gpu.rows(out, grid)
            made.append([before, after, min(rows[0::ROW]), max(rows[1::ROW])])
        return made

    alone = sent(options["alone"] // 2)
    time.sleep(BETWEEN_S)
    alone += sent(options["alone"] - len(alone))
    begin()
    return {"grid": grid, "alone": alone, "beside": sent(options["count"])}


def watch(gpu: Gpu, options: Options, begin: Callable[[], None]) -> Dict[str, Any]:
    """One kernel of `ms` and `blocks` blocks that sees when its process is switched out."""
    room = 4096
    out = gpu.driver.allocate(8 * (3 + 2 * room))
    begin()
    gpu.module.launch("watch", options["blocks"], options["threads"], out,
                      U64(options["ms"] * 1_000_000), U64(options["gap_ns"]), U32(room))
    words = gpu.driver.words(out, 3 + 2 * room)
    found = words[2]
    gaps = [words[3 + 2 * i:5 + 2 * i] for i in range(found)]
    return {"first": words[0], "last": words[1], "gaps": gaps}


def solo(gpu: Gpu, options: Options, begin: Callable[[], None]) -> Dict[str, Any]:
    """Compute-bound and memory-bound work with the SMs that this process has. `loops` 0: chosen
    here, and said, for the processes after this one."""
    # Fixed over all shares: the first process's choices are handed to the others.
    sms = options["sms"] or gpu.sms
    grid, threads = sms * 20, 1024
    loops = options["loops"] or gpu.loops_for(options["block_ns"], threads)
    out = gpu.driver.allocate(ROW_BYTES * grid)
    count = options["mib"] * (1 << 20) // 16
    buffer, sink = gpu.driver.allocate(16 * count), gpu.driver.allocate(8)

    def compute() -> int:
        gpu.module.launch("blocks", grid, threads, out, U32(loops))
        rows = gpu.rows(out, grid)
        return max(rows[1::ROW]) - min(rows[0::ROW])

    def memory() -> int:
        times = 10
        began = time.monotonic_ns()
        for _ in range(times):
            gpu.module.launch("stream", sms * 16, 512, buffer, U64(count), sink)
        gpu.driver.synchronize()
        return (time.monotonic_ns() - began) // times

    compute(), memory()
    begin()
    return {"sms": sms, "sms_seen": gpu.sms, "loops": loops, "bytes": 16 * count,
            "compute_ns": [compute() for _ in range(options["rounds"])],
            "memory_ns": [memory() for _ in range(options["rounds"])]}


def waits(gpu: Gpu, options: Options, begin: Callable[[], None]) -> Dict[str, Any]:
    """Gaps between small kernels of one stream, alone and while each other stream waits for it.
    A long kernel runs until all of them are launched."""
    count, kernels = options["streams"], options["kernels"]
    streams = [gpu.driver.stream() for _ in range(count)]
    loops = U32(gpu.loops_for(options["block_ns"], 32))
    longest = U32(gpu.loops_for(options["plug_ns"], 32))
    out = gpu.driver.allocate(ROW_BYTES * kernels)
    plug = gpu.driver.allocate(ROW_BYTES)

    def median_gap(of: int, waiting: Optional[int]) -> int:
        gpu.module.launch("blocks", 1, 32, plug, longest, stream=streams[of])
        for number in range(kernels):
            gpu.module.launch("blocks", 1, 32, U64(out.value + ROW_BYTES * number), loops,
                              stream=streams[of])
        if waiting is not None:
            gpu.driver.wait_for(streams[waiting], streams[of])
            gpu.module.launch("blocks", 1, 32, plug, loops, stream=streams[waiting])
        gpu.driver.synchronize()
        rows = gpu.rows(out, kernels)
        return sorted(start - end for end, start in zip(rows[1::ROW], rows[ROW::ROW]))[kernels // 2]

    begin()
    return {"alone_ns": [median_gap(of, None) for of in range(count)],
            "beside_ns": [[median_gap(of, other) if other != of else None
                           for other in range(count)] for of in range(count)]}


ROLES = {"waits": waits, "load": load, "newcomer": newcomer, "watch": watch, "solo": solo}


def wait_for_go(folder: Path) -> None:
    (folder / "ready").touch()
    until = time.monotonic() + GO_LIMIT_S
    while not (folder.parent / "go").exists():
        if time.monotonic() > until:
            raise SystemExit(f"nobody wrote {folder.parent / 'go'}")
        time.sleep(0.0005)


def main(arguments: List[str]) -> int:
    role, folder = arguments[0], Path(arguments[1])
    options = {key: int(value) for key, value in (text.split("=") for text in arguments[2:])}
    made: Dict[str, Any] = {}
    try:
        made = ROLES[role](Gpu(), options, lambda: wait_for_go(folder))
    except CudaFault as fault:
        made = {"fault": fault.record()}
        print(f"{role}: {fault}", file=sys.stderr)
    partial = folder / "result.part"
    partial.write_text(json.dumps(made))
    partial.rename(folder / "result.json")
    return 1 if "fault" in made else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
