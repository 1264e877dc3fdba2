"""Rows of measured sharing simulated: each client's job is scaled until it alone takes what the
table says of it alone, where it says so; everything that clients do to each other is a
prediction."""
from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any, Callable, Sequence

from bubblesim import Error, _core
from bubblesim._table import failed

from .report import half_away
from .sharing_rows import (ALONE, EVEN, LOOP, MEAN, PERCENTILE, SHARE, SUM, Client, Figure, Setting,
                           SharingRow)
from .table import (at_batch, batches_in, first_message, has_unread_batch, is_within, job_letters,
                    job_words, letters_of, spread, without_batch)

# ---- jobs of configs/workloads by what tables call them

MOST_RESIZED = 4096  # larger batches are no job's; a convolution may launch a kernel a sample


@dataclass(frozen=True)
class Found:
    workload: Any        # of _core
    batch: int = 0       # that is asked for in place of the workload's own; 0: its own
    refused: str = ""    # why it does not run at the batch size asked for


def own_batch(workload: Any) -> int:
    """Its file's, else that of its names, else of its models; 0: none says one."""
    named = (batches_in(name) for name in workload.names)
    batches = next((found for found in named if len(found) == 1), workload.model_batches)
    return workload.batch or (batches[0] if len(batches) == 1 else 0)


def refuse_batch(workload: Any, batch: int) -> str:
    """Why a workload does not run at a batch size; empty: it does."""
    own = own_batch(workload)
    if own == batch or workload.is_resizable:
        return ""
    said = f"batch {own}" if own else "one batch size, which it does not say"
    return f"{workload.id} does not run at batch {batch}: its steps are those of {said}"


def fit_of(known: str, words: str) -> float:
    """How well `words` call a job `known`: by the letters of `known` if that is several words that
    stand in them; 0: not at all."""
    letters = letters_of(known)
    if letters == letters_of(words):
        return math.inf
    return len(letters) if " " in known and is_within(known, words) else 0


def found_without_batch(workload: Any, name: str) -> Found:
    """By a name without a batch size: in place of its own, the workload runs at that asked for."""
    batches = batches_in(name)
    if len(batches) > 1:
        return Found(workload, 0, f"{name} names two batch sizes; expected one")
    if not batches:
        return Found(workload, 0, "" if not has_unread_batch(name) else
                     f"no batch size is read in {name}; expected one as in \"batch 16\"")
    batch, = batches
    refused = (f"{name}: expected a batch size from 1 to {MOST_RESIZED}" if batch > MOST_RESIZED
               else refuse_batch(workload, batch))
    return Found(workload, 0 if batch == own_batch(workload) else batch, refused)


# How a workload is meant by a name, the better the greater.
NO_BATCH, OTHER_BATCH, NAME = 1, 2, 3


def meaning_of(workload: Any, name: str, asked: str) -> tuple[bool, int, float, Found] | None:
    """What one of a workload's names asks for; a refused meaning counts only without another."""
    def meant(match: int, fit: float, found: Found) -> tuple[bool, int, float, Found] | None:
        return (not found.refused, match, fit, found) if fit else None
    known, batches, wanted = job_words(name), batches_in(name), batches_in(asked)
    as_named = fit_of(known, job_words(asked))
    if as_named == math.inf or as_named and batches:
        return meant(NAME, as_named, Found(workload))
    if not batches:
        found = found_without_batch(workload, asked)
        return meant(NO_BATCH if found.batch else NAME, fit_of(known, without_batch(asked)), found)
    if len(batches) != 1 or len(wanted) != 1 or wanted[0] > MOST_RESIZED or (
            not workload.is_resizable):
        return None
    return meant(OTHER_BATCH, fit_of(known, at_batch(asked, batches[0])),
                 Found(workload, wanted[0]))


class Workloads:
    def __init__(self, workloads: Sequence[Any] | None = None) -> None:
        self.all = _core.pair_workloads() if workloads is None else workloads
        self._known: dict[tuple[str, str], Found | None] = {}
        names = Counter((workload.role, job_letters(name)) for workload in self.all
                        for name in workload.names)
        faults = [(f"{workload.id}.json", "/names", f"\"{name}\" is the name of another workload")
                  for workload in self.all for name in workload.names
                  if names[workload.role, job_letters(name)] > 1]
        if faults:
            raise failed(faults)

    def find(self, role: str, name: str) -> Found | None:
        """The one of a role that a table calls `name`; case, spaces, punctuation and how a batch
        size is written do not count. If none has that name, the one with the longest name of
        several words that stands in it; else one that has its steps at any batch and is called so
        but for the batch size."""
        if (role, name) not in self._known:
            meanings = [meaning for workload in self.all if workload.role == role
                        for known in workload.names
                        if (meaning := meaning_of(workload, known, name))]
            best = max(meanings, key=lambda meaning: meaning[:3], default=None)
            self._known[role, name] = best[3] if best else None
        return self._known[role, name]

    def of(self, client: Client) -> Found | None:
        """Refused, too, at another batch size in its table's column than it can run at."""
        found = self.find(client.role, client.workload)
        if found is None or client.batch == 0 or found.refused:
            return found
        named = batches_in(client.workload)
        refused = (refuse_batch(found.workload, client.batch)
                   if named in ([], [client.batch]) else
                   f"batch: found {client.batch} beside the name {client.workload}; expected one "
                   "batch size")
        return Found(found.workload, found.batch, refused)


# ---- scenes

@dataclass
class Stage:
    """Everything that a judgement stands on, read once."""
    settings: dict[str, Setting]  # by table
    machines: dict[str, Any]      # by device
    workloads: Workloads
    policies: Any
    window_ns: int = 0            # of rates over time; 0: none are told


def begins_so(row: SharingRow, case: str) -> bool:
    return job_letters(row.subject).startswith(job_letters(case))


def policy_role(client: Client) -> str:
    if client.role == "training":
        return client.role
    return "offline" if client.pace == LOOP else "online"


def nanoseconds(ms: float) -> int:
    return half_away(1e6 * ms)


class Scene:
    def __init__(self, row: SharingRow, setting: Setting, machine: Any, lone: list[Any]) -> None:
        self.row, self.setting, self.machine, self.lone = row, setting, machine, lone
        self.shared: list[Any] = []           # figures of the clients over all runs
        self.alone_passes: list[float] = []   # of the same arrivals and time alone; 0 of a loop

    def pass_ms(self, at: int) -> float:
        """Alone, with its share of pauses."""
        client, mean_ms = self.row.clients[at], self.lone[at].mean_ms
        if client.epoch == 0:
            return mean_ms
        return max(client.period_ms, mean_ms + client.between_ms) + client.pause_ms / client.epoch

    def length(self) -> int:
        out = self.setting.least_length
        for at, client in enumerate(self.row.clients):
            pass_s = (1e-3 * self.pass_ms(at) * len(self.lone) if client.pace == LOOP
                      else 1 / client.per_s)
            if at == 0 or client.pace != LOOP:
                out = max(out, half_away(1e9 * pass_s * self.setting.requests))
        return out

    def slowdown_bound(self) -> float:
        """Nothing takes longer on a part of a GPU than in proportion to its SMs: runs on parts are
        so much longer, so that as many passes end."""
        if self.row.sm_percentage:
            return 100 / self.row.sm_percentage
        return self.machine.compute_slices / self.row.partition if self.row.partition else 1.0

    def span(self) -> tuple[int, int]:
        for case, start, until in self.setting.spans:
            if begins_so(self.row, case):
                return start, until
        return 0, int(self.length() * self.slowdown_bound() + 0.5)

    def arrivals(self, client: Client, length: int) -> list[int]:
        if client.pace == LOOP:
            return []
        period = half_away(1e9 / client.per_s)
        if client.pace == EVEN:
            return _core.even_arrivals(self.setting.seed, self.setting.burst, period, length)
        return list(range(0, length, period))

    def client(self, at: int, length: int) -> Any:
        client = self.row.clients[at]
        return _core.SceneClient(
            self.lone[at], client.workload, policy_role(client), self.arrivals(client, length),
            client.pace == LOOP, client.epoch, nanoseconds(client.pause_ms),
            nanoseconds(client.between_ms), nanoseconds(client.period_ms))

    def space_loops(self, clients: list[Any], run: int) -> None:
        """Processes of one model stay where they stand to each other, and how often they meet on
        the GPU hangs on that: over several runs they begin so far apart that any two have stood
        everywhere. In a single one, as far apart as can be."""
        starts = self.setting.starts
        apart = run / starts if starts > 1 else 1 / len(clients)
        for at, client in enumerate(clients):
            share = apart * at - math.floor(apart * at)
            client.start = nanoseconds(self.lone[at].mean_ms * share)

    def run(self, system: Any) -> Scene:
        start, length = self.span()
        clients = [self.client(at, length) for at in range(len(self.lone))]
        self.shared = [_core.ClientFigures() for _ in clients]
        starts = self.setting.starts
        for run in range(starts):
            self.space_loops(clients, run)
            figures = _core.run_scene(self.machine, system, clients, length, start,
                                      self.setting.latencies_from)
            for total, one in zip(self.shared, figures):
                total.add(one, 1 / starts)
        for client, given in zip(clients, self.row.clients):
            alone = 0 if given.pace == LOOP else _core.run_scene(
                self.machine, None, [client], length, start, 0.0)[0].passes
            self.alone_passes.append(float(alone * starts))
        return self

    def figure(self, asked: Figure) -> float:
        shared = self.shared[asked.client]
        if asked.quantity == SHARE:
            passes = self.alone_passes[asked.client]
            return (shared.passes / passes if passes
                    else shared.per_s * self.pass_ms(asked.client) * 1e-3)
        if asked.quantity == SUM:
            return sum((one.per_s for one in self.shared), 0.0) / self.lone[0].per_s
        if asked.quantity == PERCENTILE:
            return shared.percentile_ms(asked.percent)
        if asked.quantity == MEAN:
            return shared.mean_ms()
        if self.row.clients[asked.client].epoch:  # whose pauses are no part of a pass
            return 1e3 / shared.per_s / self.pass_ms(asked.client)
        return shared.mean_ms() / self.lone[asked.client].mean_ms

    def over_time(self, client: int, window: int) -> list[float]:
        """Passes a second of a client, in one window after another; whole ones only."""
        ends = self.shared[client].ends if window else []
        out = [0.0] * (ends[-1] // window if ends else 0)
        for end in ends:
            if end // window < len(out):
                out[end // window] += 1 / (window * 1e-9)
        return out


# ---- rows that are as they should be, each with a run of its own or that of an earlier row

class Judging:
    def __init__(self, rows: Sequence[SharingRow], stage: Stage, threads: int,
                 tell: Callable[[str], None] | None) -> None:
        self.rows, self.stage, self.threads = rows, stage, threads
        self.tell = tell or (lambda _: None)

    def run(self) -> list[dict[str, Any]]:
        """Each row's outcome, note, simulated figures and rates over time."""
        systems = [self.system_of(row) for row in self.rows]
        reasons = [self.why_not(row, *system) for row, system in zip(self.rows, systems)]
        keys = [None if why else self.scene_key(row) for row, why in zip(self.rows, reasons)]
        scenes: dict[Any, int] = {}
        for at, key in enumerate(keys):
            if key is not None:
                scenes.setdefault(key, at)
        lone = self.lone_clients([self.rows[at] for at in scenes.values()])

        def simulated(at: int) -> Scene | Error:
            row = self.rows[at]
            self.tell(f"{row.subject}, {row.system}")
            clients = [lone[self.lone_key(row, client)] for client in row.clients]
            fault = next((one for one in clients if isinstance(one, Error)), None)
            if fault is not None:
                return fault
            try:
                return Scene(row, self.stage.settings[row.table], self.machine_of(row),
                             clients).run(systems[at][0])
            except Error as unfit:
                return unfit
        found = dict(zip(scenes, spread(simulated, list(scenes.values()), self.threads)))
        return [self.judged(row, why, found.get(key))
                for row, why, key in zip(self.rows, reasons, keys)]

    def system_of(self, row: SharingRow) -> tuple[Any, str, str]:
        """The system of a row, why there is none, and why it does not take the row's own
        parameters. Faults are the setting's."""
        if row.system == ALONE:
            return None, "", ""
        setting, found = self.stage.settings[row.table], (
            None, f"the setting has no system {row.system}", "")
        own = [("training_percentage", row.sm_percentage)] if row.sm_percentage else []
        own += [("training_profile", f"{row.partition}g")] if row.partition else []
        for system in setting.systems:
            if system.name != row.system or not begins_so(row, system.case):
                continue
            given, place = list(system.parameters.items()), f"/systems/{system.name}/parameters"
            made = self.stage.policies.system(system.policy, given, setting.path, place)
            found = made, "" if made else f"no policy {system.policy}", ""
            try:
                if made and own:
                    found = self.stage.policies.system(system.policy, given + own, "", ""), "", ""
            except Error as fault:
                found = made, "", f"{system.policy}: {first_message(fault)}"
        return found

    def why_not(self, row: SharingRow, _: Any, missing: str, refused: str) -> str:
        """Why a row is stated; empty of one that runs."""
        if row.note or missing:
            return row.note or missing
        for client in row.clients:
            found = self.stage.workloads.of(client)
            if found is None:
                return f"no workload of configs/workloads is called {client.workload}"
            if found.refused:
                return found.refused
        slices = max(row.instance, row.partition)
        try:
            if slices:
                self.stage.machines[row.device].instance(slices)
        except Error as fault:
            return first_message(fault)
        return refused

    def machine_of(self, row: SharingRow) -> Any:
        whole = self.stage.machines[row.device]
        slices = whole.compute_slices if row.partition else row.instance
        return whole.instance(slices) if slices else whole

    @staticmethod
    def lone_key(row: SharingRow, client: Client) -> tuple:
        return (row.device, row.instance, client.role, client.workload, client.batch,
                client.solo_ms, client.period_ms)

    def scene_key(self, row: SharingRow) -> tuple:
        return (row.table, row.system, row.partition, row.sm_percentage,
                *((*self.lone_key(row, client), client.per_s) for client in row.clients))

    def lone_clients(self, rows: Sequence[SharingRow]) -> dict[tuple, Any]:
        """What clients do alone, or the fault."""
        fresh = {self.lone_key(row, client): (row, client)
                 for row in reversed(rows) for client in reversed(row.clients)}
        keys = list(reversed(fresh))

        def made(key: tuple) -> Any:
            row, client = fresh[key]
            self.tell(f"{client.workload} alone")
            found = self.stage.workloads.of(client)
            machine, batch = self.machine_of(row), client.batch or found.batch
            try:
                lone = machine.lone(found.workload, batch, client.solo_ms)
                if client.solo_ms == 0 and 0 < client.period_ms < lone.mean_ms:
                    lone = machine.lone(found.workload, batch, client.period_ms)
                return lone
            except Error as fault:
                return fault
        return dict(zip(keys, spread(made, keys, self.threads)))

    def resized(self, row: SharingRow) -> str:
        """The first client that runs a workload at another batch size than its file's."""
        for client in row.clients:
            found = self.stage.workloads.of(client)
            if found.batch:
                return (f"{client.workload}: {found.workload.id} at batch {found.batch}" + (
                    ", scaled to its time alone" if client.solo_ms > 0 else
                    ", by our kernel times; no job of it was measured alone"))
        return ""

    def judged(self, row: SharingRow, why: str, found: Scene | Error | None) -> dict[str, Any]:
        figures = [0.0] * len(row.figures)
        out = {"outcome": "stated", "note": why, "simulated": figures, "over_time": []}
        if found is None:
            return out
        if isinstance(found, Error):
            return out | {"outcome": "failed", "note": str(found).split("\n", maxsplit=1)[0]}
        figures = [found.figure(figure) for figure in row.figures]
        out |= {"outcome": "predicted", "note": self.resized(row), "simulated": figures,
                "over_time": found.over_time(row.figures[0].client, self.stage.window_ns)}
        if min(figures) <= 0:
            out |= {"outcome": "failed", "note": "no pass ends within the run"}
        return out
