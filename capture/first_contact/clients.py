"""Part k: unchanged PyTorch jobs on one GPU: equal clients of MPS, and training beside a service
under MPS and in time slices. Each job is recorded alone, so that a simulation of the pairs has
nothing to guess but the sharing.

Three groups of processes (client.py) start together and warm up once: clients of MPS, the two of
the time slices, one with the recorder loaded. Groups that wait have no work on the GPU."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

from processes import end_group, ending_waits, last_lines, start_logged

from .captures import Tools, python_of
from .context import Context, Verdict, blocked, failed, ok, partial, read_json, write_json
from .device import smi
from .mps import MpsDaemon, with_mps_of, without_mps
from .sharing import mps_of, quantiles

HERE = Path(__file__).resolve().parent
SERVICES = ("infer:resnet50:4", "infer:resnet50:64", "infer:bert-base:1x128",
            "infer:bert-base:32x128", "infer:vgg19:32", "vision:inception_v3:32",
            "vision:densenet121:4", "vision:mobilenet_v2:64", "infer:gpt2-large:4x128")
TRAININGS = ("train:resnet50:64", "train:bert-base:32x128", "train:gpt2-large:4x512")
BESIDE = ("infer:resnet50:4", "infer:bert-base:1x128", "infer:gpt2-large:4x128")
FAKE_SERVICES, FAKE_TRAININGS = ("sleep:5", "sleep:7"), ("sleep:20",)
FAKE_PACE = 0.2     # of the seconds that a run takes
COUNTS = (1, 2, 3, 4)
LOAD = 0.2          # of an online service: its rate times its latency alone
READY_S = 100.0
ALONE_S, EQUAL_S, PAIR_S = 0.8, 1.0, 3.5
RECORDED_PASSES = {"infer:gpt2-large:4x128": 3, "train:gpt2-large:4x512": 3}
Json = Dict[str, Any]


class ClientFault(Exception):
    """A process that ended, or does not answer."""


class Client:
    """A process of client.py."""

    def __init__(self, folder: Path, command: Sequence[str], jobs: Sequence[str],
                 environment: Dict[str, str]) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        self.folder, self.jobs, self.told = folder, list(jobs), 0
        words = [*command, str(HERE / "client.py"), str(folder), *jobs]
        with ending_waits():
            self.process = start_logged(words, folder / "log.txt", environment)

    def wait_for(self, name: str, deadline: float) -> Path:
        path = self.folder / name
        while not path.exists():
            if self.process.poll() is not None or time.monotonic() > deadline:
                state = "too slow" if self.process.poll() is None else "ended"
                raise ClientFault(f"{self.folder.name}: {state}: "
                                  f"{last_lines(self.folder / 'log.txt', 2)}")
            time.sleep(0.005)
        return path

    def tell(self, job: str, **wanted: float) -> str:
        """Returns the name of the answer."""
        write_json(self.folder / f"{self.told}.json", {"job": self.jobs.index(job), **wanted})
        self.told += 1
        return f"{self.told - 1}.done.json"

    def stop(self) -> None:
        (self.folder / "stop").touch()
        end_group(self.process, patience_s=3.0)


def told_together(told: Sequence[Tuple[Client, str, float]], seconds: float,
                  deadline: float) -> List[Json]:
    """Each client's job and arrivals a second, all over the same stretch of time."""
    begin = time.monotonic_ns() + 60_000_000
    until = begin + round(seconds * 1e9)
    names = [client.tell(job, from_ns=begin, until_ns=until, per_s=per_s, seed=place + 1)
             for place, (client, job, per_s) in enumerate(told)]
    made = []
    for (client, _job, _rate), name in zip(told, names):
        answer = json.loads(client.wait_for(name, deadline).read_text())
        made.append({**answer, "from_ns": begin, "until_ns": until})
    return made


def rate_of(answer: Json) -> Optional[float]:
    """Passes a second over whole passes that end within the stretch, the first tenth left out."""
    first = answer["from_ns"] + (answer["until_ns"] - answer["from_ns"]) // 10
    ends = [end for end in answer["end"] if first <= end <= answer["until_ns"]]
    return (len(ends) - 1) / ((ends[-1] - ends[0]) / 1e9) if len(ends) > 1 else None


def latencies_ms(answer: Json) -> Json:
    first = answer["from_ns"] + (answer["until_ns"] - answer["from_ns"]) // 10
    return quantiles([(end - arrive) / 1e6 for arrive, end in zip(answer["arrive"], answer["end"])
                      if arrive >= first])


def figures_of(job: str, answer: Json, per_s: float) -> Json:
    made = {"job": job, "passes": len(answer["end"]), "passes_per_s": rate_of(answer),
            "latency_ms": latencies_ms(answer)}
    return {**made, "arrivals_per_s": per_s} if per_s else made


class Measured:
    """Runs that are kept one by one in a file: what is there, of this GPU, is not done again. What
    ran on another machine is left out, for pairs are compared with jobs alone, and hosts differ."""

    def __init__(self, path: Path, gpu: str, deadline: float, pace: float) -> None:
        self.path, self.gpu, self.deadline, self.pace = path, gpu, deadline, pace
        kept = read_json(path) or []
        self.runs: List[Json] = [run for run in kept if gpu and run.get("gpu") == gpu]

    def find(self, **key: Any) -> Optional[Json]:
        return next((run for run in self.runs
                     if all(run.get(name) == value for name, value in key.items())), None)

    def run(self, key: Json, told: Sequence[Tuple[Client, str, float]], seconds: float) -> Json:
        found = self.find(**key)
        seconds *= self.pace
        if found is None:
            if time.monotonic() + seconds > self.deadline:
                raise ClientFault("no time left")
            answers = told_together(told, seconds, self.deadline)
            found = {**key, "gpu": self.gpu, "seconds": seconds,
                     "clients": [figures_of(job, answer, per_s)
                                 for (_client, job, per_s), answer in zip(told, answers)]}
            self.runs.append(found)
            write_json(self.path, self.runs)
        return found


def equal_clients(measured: Measured, clients: Sequence[Client], services: Sequence[str]) -> None:
    for service in services:
        for count in COUNTS:
            if count <= len(clients):
                measured.run({"kind": "equal", "sharing": "mps", "job": service, "count": count},
                             [(client, service, 0.0) for client in clients[:count]], EQUAL_S)


def pairs(measured: Measured, sharing: str, clients: Sequence[Client], trainings: Sequence[str],
          services: Sequence[str]) -> None:
    """Training beside an online service, whose rate is LOAD of what it reaches alone."""
    trainer, server = clients[0], clients[1]
    alone = [*((job, trainer) for job in trainings), *((job, server) for job in services)]
    for job, client in alone:
        measured.run({"kind": "alone", "sharing": sharing, "job": job}, [(client, job, 0.0)],
                     ALONE_S)
    for training in trainings:
        for service in services:
            # Of the first group that was measured: the same arrivals under each way to share.
            first = measured.find(kind="alone", job=service)
            per_s = LOAD / (first["clients"][0]["latency_ms"]["p50"] / 1e3)
            measured.run({"kind": "pair", "sharing": sharing, "training": training,
                          "service": service},
                         [(trainer, training, 0.0), (server, service, per_s)], PAIR_S)


def wait_for_file(state: Callable[[], str], folder: Path, until: float) -> None:
    """Until the recorder is idle and its file is whole: rank0.recording.btr while it grows."""
    while True:
        said = state()
        files = [path for path in folder.glob("*.btr") if ".recording." not in path.name]
        if said == "failed" or (said == "idle" and files):
            return
        if time.monotonic() > until:
            raise ClientFault(f"the recording does not end: the recorder is {said}")
        time.sleep(0.1)


def record_all(context: Context, client: Client, deadline: float, part: str = "k",
               prefix: str = "client") -> List[str]:
    """Each job's passes, recorded alone; what went wrong."""
    from campaign.runner import PartFailure, recorded_file, start_recording, tell

    tools = Tools(bubblesim=context.bubblesim, python=python_of(context),
                  folder=context.folder(part), rounds=1, deadline=deadline)
    kept = context.folder("captures") / "traces"
    kept.mkdir(exist_ok=True)
    wrong = []
    pid = int((client.folder / "ready").read_text())
    for job in client.jobs:
        name = f"{prefix}-{job.replace(':', '-')}"
        place, folder = kept / f"{name}.btr", context.folder(part) / "recording" / name
        if place.exists() or read_json(context.folder(part) / f"{name}.json"):
            continue
        passes = RECORDED_PASSES.get(job, 6)
        shutil.rmtree(folder, ignore_errors=True)
        try:
            if time.monotonic() + 5 > deadline:
                raise ClientFault("no time left")
            start_recording(tools, pid, folder, passes)
            now = time.monotonic_ns()
            answer = client.tell(job, from_ns=now, until_ns=now + 20_000_000_000, per_s=0.0,
                                 passes=passes + 1)
            figures = json.loads(client.wait_for(answer, deadline).read_text())
            wait_for_file(lambda: tell(tools, "capture", "status", str(pid), "--json")[0]["state"],
                          folder, min(time.monotonic() + 15, deadline))
            shutil.move(str(recorded_file(folder)), str(place))
            write_json(context.folder(part) / f"{name}.json", figures)
        except (PartFailure, ClientFault, OSError, ValueError, KeyError) as fault:
            wrong.append(f"{name}: {fault}")
    return wrong


@contextlib.contextmanager
def ended(clients: List[Client]) -> Iterator[None]:
    try:
        yield
    finally:
        for client in clients:
            client.stop()


def run(context: Context, limit_s: float) -> Verdict:
    deadline = time.monotonic() + limit_s - 3
    if not context.fake and not context.torch_python():
        return blocked("no PyTorch in any Python of this machine")
    folder = context.folder("k")
    services = FAKE_SERVICES if context.fake else SERVICES
    trainings = FAKE_TRAININGS if context.fake else TRAININGS
    beside = FAKE_SERVICES if context.fake else BESIDE
    everything = [*services, *trainings]
    clients: List[Client] = []
    wrong: List[str] = []
    measured = Measured(folder / "runs.json", gpu_of(context), deadline,
                        FAKE_PACE if context.fake else 1.0)
    with mps_of(context) as (daemon, refused), ended(clients):
        groups = started(context, folder, daemon, clients, everything, [*trainings, *beside])
        if refused:
            wrong.append(f"no MPS: {refused}")
        steps = [
            ("mps", lambda group: equal_clients(measured, group, services)),
            ("mps", lambda group: pairs(measured, "mps", group, trainings, beside)),
            ("time_slicing",
             lambda group: pairs(measured, "time_slicing", group, trainings, beside)),
            ("recorded", lambda group: wrong.extend(record_all(context, group[0], deadline))),
        ]
        for name, step in steps:
            if name not in groups:
                continue
            try:
                for client in groups[name]:
                    client.wait_for("ready", min(deadline, time.monotonic() + READY_S))
                step(groups[name])
            except (ClientFault, OSError, ValueError, KeyError) as fault:
                wrong.append(f"{name}: {fault}")
    said = "; ".join([*lines_of(measured), *wrong])
    if not measured.runs:
        return failed(said)
    return partial(said) if wrong else ok(said)


def gpu_of(context: Context) -> str:
    """Asked anew: what an earlier call wrote down may be of another machine. Empty: not known."""
    return "fake" if context.fake else str((smi() or [{}])[0].get("uuid", ""))


def common_environment(context: Context) -> Dict[str, str]:
    """Without a recorder that this process may have."""
    made = context.environment()
    made.pop("CUDA_INJECTION64_PATH", None)
    return made


def recorder_of(context: Context) -> List[str]:
    return [str(context.bubblesim), "capture", "--idle", "--"]


def started(context: Context, folder: Path, daemon: Optional[MpsDaemon], clients: List[Client],
            everything: Sequence[str], paired: Sequence[str]) -> Dict[str, List[Client]]:
    """All groups warm up at once; the first client of a group can do everything."""
    python = python_of(context)
    common = common_environment(context)
    plain = with_mps_of(without_mps(dict(os.environ)), common)
    services = [job for job in everything if not job.startswith("train")]
    recorder = recorder_of(context)
    plans: List[Tuple[str, List[str], Sequence[str], Dict[str, str]]] = []
    if daemon is not None or context.fake:
        shared = with_mps_of(daemon.clients() if daemon else {}, common)
        plans += [("mps", [python], everything if place == 0 else services, shared)
                  for place in range(max(COUNTS))]
    plans += [("time_slicing", [python], paired, plain)] * 2
    if not context.fake and context.bubblesim is not None:
        plans.append(("recorded", [*recorder, python], everything, plain))
    groups: Dict[str, List[Client]] = {}
    for name, command, jobs, environment in plans:
        place = folder / f"{name}-{len(groups.get(name, []))}"
        client = Client(place, command, jobs, environment)
        clients.append(client)
        groups.setdefault(name, []).append(client)
    return groups


def lines_of(measured: Measured) -> List[str]:
    """What a reader wants to know at once."""
    made = []
    for job in dict.fromkeys(run["job"] for run in measured.runs if run["kind"] == "equal"):
        rates = {run["count"]: sum(client["passes_per_s"] or 0 for client in run["clients"])
                 for run in measured.runs if run["kind"] == "equal" and run["job"] == job}
        if rates.get(1):
            sums = ", ".join(f"{rate / rates[1]:.2f}" for _count, rate in sorted(rates.items()))
            made.append(f"{job} of 1 to {max(rates)} clients: {sums}")
    done = sum(run["kind"] == "pair" for run in measured.runs)
    return [*made, f"{done} pairs"]
