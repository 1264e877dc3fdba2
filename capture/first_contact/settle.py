"""Part o: what the fakes take for granted of CUPTI and MPS. The records of kernels in graphs name
the node that CUPTI told when it was copied, so that collectives of graphs have bytes; and a client
of MPS gets no more memory than its limit.

    python3 -m first_contact.settle graph PROGRAM   announces, captures, launches an all-reduce
    python3 -m first_contact.settle allocate MIB    exit code: CUDA's, of the allocation
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import subprocess
import sys
import time
from typing import Dict, List, Optional

from processes import last_lines, run_logged

from .context import Context, Verdict, failed, module_command, ok, partial
from .cuda import CudaFault, Driver
from .mps import MpsDaemon, MpsRefused

KERNEL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
PTX = (f".version 7.0\n.target sm_70\n.address_size 64\n"
       f".visible .entry {KERNEL}() {{ ret; }}\n").encode()
LAUNCHES, COUNT = 5, 1000  # floats of each of 8 ranks
BYTES = LAUNCHES * COUNT * 4
COLL_API = 1 << 9  # capture/record/nccl/profiler_abi.hpp
LIMIT_MIB, BELOW_MIB, BEYOND_MIB = 1024, 256, 2048
MEMORY_LIMIT = "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"
OUT_OF_MEMORY = 2


class Call(ctypes.Structure):
    """NCCL's descriptor of a collective that is called (v5)."""

    _fields_ = [("type", ctypes.c_uint64), ("parent", ctypes.c_void_p), ("rank", ctypes.c_int),
                ("function", ctypes.c_char_p), ("count", ctypes.c_size_t),
                ("datatype", ctypes.c_char_p), ("root", ctypes.c_int),
                ("stream", ctypes.c_void_p), ("graph_captured", ctypes.c_bool)]


def announce() -> None:
    """As NCCL 2.28 does to the recorder, its profiler plug-in."""
    plugin = ctypes.CDLL(os.environ["NCCL_PROFILER_PLUGIN"])
    table = (ctypes.c_void_p * 6).in_dll(plugin, "ncclProfiler_v5")
    context, handle, mask = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_int()
    ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p,
                     ctypes.c_char_p, ctypes.c_int, ctypes.c_int, ctypes.c_int,
                     ctypes.c_void_p)(table[1])(
        ctypes.addressof(context), 0xABCD, ctypes.addressof(mask), b"tp", 1, 8, 2, None)
    call = Call(COLL_API, None, 2, b"AllReduce", COUNT, b"ncclFloat32", 0, None, True)
    ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(table[2])(
        context, ctypes.addressof(handle), ctypes.addressof(call))


def await_recorder(program: str) -> None:
    command = [program, "capture", "status", str(os.getpid()), "--json"]
    for _ in range(600):
        if b'"recording"' in subprocess.run(command, capture_output=True, check=False).stdout:
            return
        time.sleep(0.05)
    raise SystemExit("the recorder does not record after 30 s")


class Node(ctypes.Structure):
    """A kernel of tests/fakes/cuda/fake_cuda.hpp."""

    _fields_ = [("device", ctypes.c_uint32), ("stream", ctypes.c_uint32),
                ("name", ctypes.c_void_p), ("ns", ctypes.c_uint64), ("node", ctypes.c_uint64)]


def fake_graph(program: str) -> None:
    library = ctypes.CDLL(os.environ["BUBBLESIM_FAKE_CUDA"], mode=ctypes.RTLD_GLOBAL)
    library.cuInit(0)
    await_recorder(program)
    announce()
    library.fake_cuda_capture_kernel(ctypes.c_uint64(11))
    library.fake_cuda_copy_node(ctypes.c_uint64(21), ctypes.c_uint64(11))
    keep = ctypes.CDLL(None).strdup  # names of kernels are there as long as the process
    keep.restype = ctypes.c_void_p
    node = Node(0, 7, keep(KERNEL.encode()), 2000, 21)
    for _ in range(LAUNCHES):
        library.fake_cuda_graph_launch(ctypes.byref(node), ctypes.c_size_t(1))


def graph(program: str) -> None:
    if "BUBBLESIM_FAKE_CUDA" in os.environ:
        fake_graph(program)
        return
    driver = Driver()
    driver.use()
    module, stream = driver.module(PTX), driver.stream()
    module.launch(KERNEL, 1, 32, stream=stream)  # so that all is loaded
    driver.synchronize()
    await_recorder(program)
    made, ready = ctypes.c_void_p(), ctypes.c_void_p()
    driver.call("cuStreamBeginCapture_v2", stream, 1)
    announce()
    module.launch(KERNEL, 1, 32, stream=stream)
    driver.call("cuStreamEndCapture", stream, ctypes.byref(made))
    driver.call("cuGraphInstantiateWithFlags", ctypes.byref(ready), made, ctypes.c_ulonglong(0))
    for _ in range(LAUNCHES):
        driver.call("cuGraphLaunch", ready, stream)
    driver.synchronize()


def allocate(mib: int) -> int:
    driver = Driver()
    driver.use()
    try:
        driver.allocate(mib << 20)
    except CudaFault as fault:
        print(fault)
        return fault.code
    return 0


def wrong_graph(context: Context, limit_s: float) -> str:
    """Why the bytes of the graph's all-reduce are not in the recording; empty: they are."""
    folder, log = context.folder("o") / "recording", context.folder("o") / "graph.txt"
    shutil.rmtree(folder, ignore_errors=True)
    program = str(context.bubblesim)
    command = [program, "capture", "-o", str(folder), "--",
               *module_command("settle", "graph", program)]
    if run_logged(command, log, limit_s, context.environment()) != 0:
        return f"graph: {last_lines(log, 2)}"
    done = subprocess.run([program, "inspect", str(folder), "--json"], capture_output=True,
                          check=False)
    try:
        found = json.loads(done.stdout)["ranks"][0]["operations"]["collectives"]
    except (ValueError, KeyError, IndexError):
        return f"graph: {done.stderr.decode(errors='replace').strip()}"
    total = sum(it["bytes"] for it in found)
    return "" if total == BYTES else f"graph: {total} bytes of all-reduces, expected {BYTES}"


def allocation(context: Context, name: str, mib: int, environment: Dict[str, str]) -> Optional[int]:
    log = context.folder("o") / f"{name}.txt"
    return run_logged(module_command("settle", "allocate", str(mib)), log, 15.0, environment)


def wrong_limit(context: Context) -> str:
    """How a client's memory differs from its limit; empty: it does not."""
    try:
        with MpsDaemon() as daemon:
            plain = {**context.environment(), **daemon.clients()}
            limited = {**plain, MEMORY_LIMIT: f"0={LIMIT_MIB}M"}
            codes = {"beyond, unlimited": allocation(context, "plain", BEYOND_MIB, plain),
                     "below": allocation(context, "below", BELOW_MIB, limited),
                     "beyond": allocation(context, "beyond", BEYOND_MIB, limited)}
    except (MpsRefused, OSError) as fault:
        return f"memory limit: no MPS: {fault}"
    expected = {"beyond, unlimited": 0, "below": 0, "beyond": OUT_OF_MEMORY}
    return "; ".join(f"memory limit: {name}: CUDA says {code}, expected {expected[name]}"
                     for name, code in codes.items() if code != expected[name])


def run(context: Context, limit_s: float) -> Verdict:
    right: List[str] = []
    wrong: List[str] = []
    for said, fault in (("collectives of graphs have their bytes", wrong_graph(context, limit_s)),
                        ("" if context.fake else f"{LIMIT_MIB} MiB of an MPS client hold",
                         "" if context.fake else wrong_limit(context))):
        (wrong if fault else right).append(fault or said)
    line = "; ".join(text for text in right + wrong if text)
    if not wrong:
        return ok(line)
    return partial(line) if right else failed(line)


def main(role: str, value: str) -> int:
    if role == "allocate":
        return allocate(int(value))
    graph(value)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
