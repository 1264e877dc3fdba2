"""Part a: what is there and what may be done there, as one JSON (a/facts.json)."""

from __future__ import annotations

import glob
import json
import os
import platform
import re
import resource
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional

from processes import first_line

from .context import Context, Verdict, failed, module_command, ok, partial, write_json
from .mps import MpsDaemon, MpsRefused, without_mps

Json = Dict[str, Any]
SMI_FIELDS = ("name", "uuid", "driver_version", "vbios_version", "compute_mode", "mig.mode.current",
              "persistence_mode", "pstate", "clocks.sm", "clocks.mem", "clocks.max.sm",
              "power.draw", "power.limit", "temperature.gpu", "memory.total", "memory.used",
              "pcie.link.gen.current", "pcie.link.width.current")
TORCH = ("import json, torch, sysconfig; print(json.dumps({'version': torch.__version__, "
         "'cuda': torch.version.cuda, 'available': torch.cuda.is_available(), "
         "'folder': sysconfig.get_paths()['purelib']}))")
PYTHONS = ("/opt/*/bin/python3", "/opt/*/.venv/bin/python3", "/venv/bin/python3",
           "/opt/conda/bin/python3", "/usr/local/bin/python3", "/usr/bin/python3")
TORCH_S = 90.0  # a first import reads gigabytes
TOOLS = ("nvidia-smi", "nvcc", "nvidia-cuda-mps-control", "nsys", "ncu", "compute-sanitizer",
         "cuda-gdb", "cmake", "ninja", "c++", "g++", "gcc")


def said(command: List[str], limit_s: float = 30.0,
         environment: Optional[Dict[str, str]] = None) -> str:
    """A command's standard output; empty where it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit_s,
                              check=False, env=environment, errors="replace")
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""


def probed(context: Context, arguments: List[str], environment: Dict[str, str],
           limit_s: float = 30.0) -> Json:
    """What a process of its own found; that it crashed or hung, if it did."""
    command = module_command("probe_device", *arguments)
    kept = {**environment, **{key: context.environment()[key] for key in ("PYTHONPATH",)}}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit_s, check=False,
                              env=kept, errors="replace")
    except subprocess.TimeoutExpired:
        return {"fault": {"call": arguments[0], "code": -1, "text": f"hung for {limit_s:.0f} s"}}
    try:
        made = json.loads(done.stdout.strip().splitlines()[-1])
    except (IndexError, ValueError):
        text = (done.stderr.strip().splitlines() or ["no output"])[-1]
        return {"fault": {"call": arguments[0], "code": done.returncode, "text": text}}
    return made if isinstance(made, dict) else {}


def fault_text(found: Json) -> str:
    fault = found.get("fault")
    return f"{fault['call']}: {fault['text']} ({fault['code']})" if fault else ""


def machine() -> Json:
    limits = {name: resource.getrlimit(getattr(resource, name))[0]
              for name in ("RLIMIT_NOFILE", "RLIMIT_NPROC", "RLIMIT_MEMLOCK")}
    shm = os.statvfs("/dev/shm") if os.path.isdir("/dev/shm") else None
    memory = re.search(r"MemTotal:\s+(\d+)", read_text("/proc/meminfo"))
    return {"system": platform.platform(), "glibc": platform.libc_ver()[1],
            "cpus": len(os.sched_getaffinity(0)), "cpu": cpu_name(),
            "memory_bytes": int(memory.group(1)) * 1024 if memory else None, "user": os.getuid(),
            "limits": limits, "shm_bytes": shm.f_frsize * shm.f_bavail if shm else None,
            "python": sys.version.split()[0],
            "tools": {name: shutil.which(name) or "" for name in TOOLS}}


def cpu_name() -> str:
    found = re.search(r"model name\s*:\s*(.+)", read_text("/proc/cpuinfo"))
    return found.group(1) if found else ""


def read_text(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""


def smi() -> List[Json]:
    text = said(["nvidia-smi", f"--query-gpu={','.join(SMI_FIELDS)}", "--format=csv,noheader"])
    return [dict(zip(SMI_FIELDS, (cell.strip() for cell in line.split(","))))
            for line in text.splitlines() if line.strip()]


def torch_facts(context: Context) -> Json:
    """Of the first Python that can import it."""
    found = [path for pattern in PYTHONS for path in sorted(glob.glob(pattern))]
    wrong = "no PyTorch in any Python that was looked at"
    for python in dict.fromkeys([context.python, *found]):
        text = said([python, "-c", TORCH], TORCH_S)
        try:
            made = json.loads(text.strip().splitlines()[-1])
        except (IndexError, ValueError):
            continue
        packages = said([python, "-c", "import importlib.util as u; print(*[n for n in "
                                       "('vllm', 'transformers', 'ninja') if u.find_spec(n)])"])
        return {**made, "python": python, "packages": packages.split()}
    return {"python": "", "fault": wrong}


def meanwhile(made: Callable[[], Json]) -> Callable[[], Json]:
    """Begins at once, beside the caller; what is returned waits for the result. A daemon thread, so
    that it keeps nobody who is told to end."""
    found: Json = {}
    thread = threading.Thread(target=lambda: found.update(made()), daemon=True)
    thread.start()

    def wait() -> Json:
        thread.join()
        return found

    return wait


def hold_devices() -> List[int]:
    """Files of the GPUs, kept open to the end. Without persistence mode the driver shuts a GPU down
    once no process has its file open, and the next process waits seconds for it."""
    held = []
    for path in sorted(glob.glob("/dev/nvidia[0-9]*")):
        try:
            held.append(os.open(path, os.O_RDWR | os.O_CLOEXEC))
        except OSError:
            continue  # another's GPU, or none that may be used
    return held


def cupti_places(torch: Json) -> List[str]:
    """As the recorder looks for it (capture/record/cupti/api.hpp), and in PyTorch's."""
    folders = []
    if torch.get("folder"):
        folders += [f"{torch['folder']}/nvidia/{name}/lib" for name in ("cu13", "cuda_cupti")]
    for root in [os.environ.get("CUDA_HOME", ""), "/usr/local/cuda"]:
        folders += [f"{root}/lib64", f"{root}/extras/CUPTI/lib64"] if root else []
    found = [os.environ.get("BUBBLESIM_CAPTURE_CUPTI", "")]
    found += [path for folder in folders for path in sorted(glob.glob(f"{folder}/libcupti.so*"))]
    return [path for path in dict.fromkeys(found) if path and os.path.isfile(path)]


def cupti_facts(context: Context, torch: Json, environment: Dict[str, str]) -> Json:
    """Each library that is there; the first that may be used is `path`."""
    tried: List[Json] = []
    seen = set()
    for path in cupti_places(torch):
        real = os.path.realpath(path)
        if real in seen or len(seen) == 3:
            continue
        seen.add(real)
        tried.append({"path": path, **probed(context, ["cupti", path], environment)})
    usable = [it for it in tried if it.get("enable_code") == 0]
    profiling = re.search(r"RmProfilingAdminOnly:\s*(\d)", read_text("/proc/driver/nvidia/params"))
    return {"path": usable[0]["path"] if usable else "", "tried": tried,
            "admin_only": profiling.group(1) if profiling else "unknown"}


def mps_facts(context: Context) -> Json:
    """A private daemon and a kernel of a client, with half of the SMs."""
    try:
        with MpsDaemon() as daemon:
            client = probed(context, ["context"], daemon.clients(50))
            if "fault" in client:
                return {"refused": f"a client: {fault_text(client)} {daemon.said()}".strip()}
            return {"refused": "", "client_at_50_percent": client, "log": daemon.said()}
    except (MpsRefused, OSError) as fault:
        return {"refused": str(fault)}


def state_of(facts: Json) -> List[str]:
    """What stands in the way of measuring, in words."""
    wrong = []
    for key in ("driver", "context"):
        if fault_text(facts[key]):
            wrong.append(f"{key}: {fault_text(facts[key])}")
    if not facts["cupti"]["path"]:
        tried = [f"{it['path']}: {it.get('enable') or fault_text(it)}"
                 for it in facts["cupti"]["tried"]]
        wrong.append("CUPTI: " + ("; ".join(tried) if tried else "no libcupti found"))
    if facts["mps"]["refused"]:
        wrong.append(f"MPS: {facts['mps']['refused']}")
    if not facts["torch"]["python"]:
        wrong.append(str(facts["torch"]["fault"]))
    elif not facts["torch"].get("available"):
        wrong.append(f"PyTorch {facts['torch']['version']} finds no GPU")
    if facts["program"]["fault"]:
        wrong.append(facts["program"]["fault"])
    for gpu in facts["smi"]:
        if gpu.get("compute_mode") not in ("Default", "[N/A]", None):
            wrong.append(f"compute mode {gpu['compute_mode']}: processes cannot share the GPU")
        if gpu.get("mig.mode.current") == "Enabled":
            wrong.append("MIG is on")
    return wrong


def program_facts(context: Context) -> Json:
    bundle = Path(context.bubblesim).parents[1] / "BUNDLE.txt" if context.bubblesim else None
    return {"path": str(context.bubblesim or ""),
            "version": first_line([str(context.bubblesim), "--version"])
            if context.bubblesim else "",
            "bundle": read_text(str(bundle)) if bundle else "",
            "fault": "" if context.bubblesim else "no program bubblesim starts here"}


def run(context: Context, _limit_s: float) -> Verdict:
    folder = context.folder("a")
    plain = without_mps(dict(os.environ))
    torch = meanwhile(lambda: torch_facts(context))  # the longest by far, and mostly of the disk
    facts: Json = {"machine": machine(), "smi": smi(), "program": program_facts(context)}
    facts["driver"] = probed(context, ["driver"], plain)
    facts["context"] = probed(context, ["context"], plain)
    facts["nvcc"] = said(["nvcc", "--version"]).strip().splitlines()[-1:]
    facts["mps"] = mps_facts(context) if not fault_text(facts["context"]) else \
        {"refused": "" if context.fake else "not tried: no context without it"}
    facts["driver_file"] = read_text("/proc/driver/nvidia/version").strip()
    (folder / "nvidia-smi-q.txt").write_text(said(["nvidia-smi", "-q"]))
    (folder / "topology.txt").write_text(said(["nvidia-smi", "topo", "-m"]))
    facts["torch"] = torch() or {"python": "", "fault": "looking for PyTorch failed"}
    facts["cupti"] = cupti_facts(context, facts["torch"], plain)
    facts["wrong"] = state_of(facts)
    write_json(folder / "facts.json", facts)
    context.facts = facts
    devices = facts["driver"].get("devices") or []
    if not devices:
        return failed("no GPU to be used: " + "; ".join(facts["wrong"]))
    version = facts["driver"]["version"]
    head = (f"{devices[0]['name']}, {devices[0].get('sms')} SMs, CUDA {version // 1000}."
            f"{version % 1000 // 10}")
    if facts["wrong"]:
        return partial(f"{head}; but {'; '.join(facts['wrong'])}")
    return ok(f"{head}, CUPTI, MPS and PyTorch {facts['torch']['version']} may be used")
