"""Measured sharing of one GPU, from seven forms of tables, which are told apart by their columns, as
rows of one: a scene (who runs where, under which system) and the figures that were measured of it.
What the columns do not say (the device, how requests came, which policy stands for each system):
configs/validation."""
from __future__ import annotations

import dataclasses
import functools
import re
from dataclasses import dataclass, field
from typing import Any, Callable, Mapping

from bubblesim import Error
from bubblesim._table import failed

from .table import (LOWER, Cells, Fields, Table, batches_in, device_names, find_setting,
                    first_message, found, gathered, letters_of, number_of)

ALONE = "alone"
MOST_BATCH, MOST_CLIENTS, MOST_SLICES = 1 << 16, 64, 7
ENDLESS = 1 << 30  # an epoch
HOSTS_LIMIT = 1.3  # runs of one setting differ by so much (sm_caps_v100)
LEAST_LOAD = 0.01
SHARE = "share"            # passes a second, relative to the client alone
SUM = "sum"                # passes a second of all clients, relative to the first one alone
TIME = "time"              # mean time of a pass, relative to the client alone
MEAN = "mean"              # mean time of a pass, ms
PERCENTILE = "percentile"  # of times of a pass, ms
LOOP = "loop"              # the next pass begins when one has ended
EVEN = "even"              # one pass at random within each of equally many expected arrivals
PERIODIC = "periodic"      # one pass a period


@dataclass
class Figure:
    quantity: str
    client: int = 0
    percent: float = 0.0
    metric: str = ""       # as the table calls it
    measured: float = 0.0


@dataclass(frozen=True)
class Client:
    role: str              # training, inference
    workload: str          # as the table calls it
    batch: int = 0         # of jobs that leave it to the table
    solo_ms: float = 0.0   # a pass alone, which it is scaled to; 0: as the workload says
    pace: str = LOOP
    per_s: float = 0.0     # passes asked for, unless it loops
    epoch: int = 0         # of a loop: after so many passes the host pauses; 0: never
    pause_ms: float = 0.0
    between_ms: float = 0.0  # with epochs: host time between passes
    period_ms: float = 0.0   # with epochs: from a pass to the next alone, without pauses. The host
                             # is no faster; without solo_ms, a longer pass is scaled to it


@dataclass
class SharingRow:
    table: str
    role: str
    system: str
    device: str
    subject: str = ""       # whose systems are compared: "BERT beside PointNet"
    note: str = ""          # why it is not predicted
    instance: int = 0       # MIG compute slices that all clients share; 0: the GPU
    sm_percentage: int = 0  # of the first client; 0: no cap
    partition: int = 0      # MIG compute slices of the first client; 0: no partition
    clients: list[Client] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)  # metrics that are blank or 0


@dataclass(frozen=True)
class System:
    name: str    # as the table calls it
    policy: str
    case: str    # of rows whose subject begins so; empty: of all
    parameters: Mapping[str, Any]


@dataclass(frozen=True)
class Setting:
    path: str
    device: str              # of configs/devices and configs/efficiency
    devices: Mapping[str, str]
    load: float              # of services beside a training job: solo time over all time
    burst: int               # ns; requests within such a span come together
    seed: int
    least_length: int        # of a run
    requests: int            # a run is as long as so many passes take, if that is longer
    starts: int              # runs of a row; in run k loops begin k / starts of a pass apart
    latencies_from: float    # the first share of passes gives no latency
    spans: list[tuple[str, int, int]]  # case, from, until: in place of the length
    epoch: int
    epoch_pause: int
    step_pause: int
    systems: list[System]

    @classmethod
    def find(cls, name: str) -> Setting:
        root = find_setting(name)
        root.text("note", "")
        device, named = root.text("device"), root.child("devices", {})
        devices = {key: named.text(key) for key in named.root}
        arrivals = root.child("arrivals")
        arrivals.text("source", "")
        spans = arrivals.children("measured", [])
        systems = root.children("systems")
        whole = {"least": 1, "most": 1 << 24, "whole": True}
        out = cls(
            root.path, device, {}, arrivals.number("load", LEAST_LOAD, 1, 0.5),
            arrivals.duration("burst", 0, 0), arrivals.number("seed", 0, 1 << 53, 1, True),
            arrivals.duration("least_length", 1_000_000), arrivals.number("requests", **whole),
            arrivals.number("starts", 1, 1000, 1, True),
            arrivals.number("latencies_from", 0, 0.9, 0), [_span_of(span) for span in spans],
            arrivals.number("epoch", **whole, default=0), arrivals.duration("epoch_pause", 0, 0),
            arrivals.duration("step_pause", 0, 0), [_system_of(system) for system in systems])
        root.finish(named, arrivals, *spans, *systems)
        return dataclasses.replace(out, devices=device_names(devices))


def _span_of(span: Fields) -> tuple[str, int, int]:
    start = span.duration("from")
    return span.text("case"), start, span.duration("until", start + 1)


def _system_of(system: Fields) -> System:
    return System(system.text("name"), system.text("policy"), system.text("case", ""),
                  system.scalars("parameters"))


class SharingCells(Cells):
    """A table's row of which a SharingRow is made."""

    def __init__(self, table: Table, at: int, setting: Setting) -> None:
        super().__init__(table, at)
        self.setting = setting

    def named(self, subject: str, *parts: tuple[str, str, str]) -> str:
        """parts: what stands before, a cell's text, what stands behind; none of blank cells."""
        return subject + "".join(before + shown + after for before, shown, after in parts if shown)

    def take(self, row: SharingRow, column: str, figure: Figure) -> None:
        measured = self.measured(column)
        if measured is None:
            row.left_out.append(column)
            return
        figure.metric, figure.measured = column, measured
        row.figures.append(figure)


def take_alone(row: SharingRow, client: Client) -> None:
    """As its workload says: not scaled to what it is judged by."""
    row.system = ALONE
    row.figures = [Figure(MEAN, metric="mean_ms", measured=client.solo_ms)]
    row.clients = [dataclasses.replace(client, solo_ms=0.0, pace=LOOP, epoch=0)]


# ---- an inference service beside a training job

PAIR_FIGURES = {"inference_throughput_rel": (SHARE, 0), "training_throughput_rel": (SHARE, 1),
                "avg_ms": (MEAN, 0), "p90_ms": (PERCENTILE, 0, 90), "p95_ms": (PERCENTILE, 0, 95),
                "p99_ms": (PERCENTILE, 0, 99)}


def load_of(row: SharingRow, cells: SharingCells) -> float:
    """The load that the row gives, else the setting's."""
    column = cells.table.optional(["load"])
    load = cells.number(column)
    if load is None:
        return cells.setting.load
    row.subject += f", load {cells.text(column)}"
    if not LEAST_LOAD <= load <= 1:
        cells.state(f"load: found \"{cells.text(column)}\"; expected 0.01 to 1")
    return load


def read_pair(row: SharingRow, cells: SharingCells) -> None:
    solo_ms = cells.needed("solo_avg_ms")
    service, job = cells.text("inference"), cells.text("training")
    row.subject = f"{service} beside {job}"
    load = load_of(row, cells)
    row.clients = [Client("inference", service, solo_ms=solo_ms, pace=EVEN,
                          per_s=1e3 * load / solo_ms), Client("training", job)]
    for column, figure in PAIR_FIGURES.items():
        cells.take(row, column, Figure(*figure))


# ---- two programs, each with rows of its own, and rows of each alone

COTRAINING = ("production", "opportunistic")
COTRAINING_FIGURES = {"relative_to_alone": (SHARE, 0), "mean_ms": (MEAN, 0),
                      "p50_ms": (PERCENTILE, 50), "p95_ms": (PERCENTILE, 95),
                      "p99_ms": (PERCENTILE, 99)}


@functools.lru_cache(8)
def alone_rows(table: Table) -> dict[tuple, int]:
    """The first row of each case, device and job alone."""
    out: dict[tuple, int] = {}
    for at in range(len(table)):
        cells = Cells(table, at)
        if letters_of(cells.text("system")) == ALONE:
            key = *cells.key("case", table.device_column), letters_of(cells.text("job"))
            out.setdefault(key, at)
    return out


def cotraining_client(cells: SharingCells, job: str, alone: dict[tuple, int]) -> Client:
    workload = f"{cells.text('case')} {job}"
    at = alone.get((*cells.key("case", cells.table.device_column), job))
    if at is None:
        cells.state(f"the table has no row of {workload} alone")
        return Client("training", workload)
    solo = Cells(cells.table, at)
    solo_ms, per_s = solo.needed("mean_ms"), solo.needed("per_s")
    cells.state(solo.note)
    # A job that leaves its own GPU idle for most of the time is paced by a clock, not by its work.
    if per_s * solo_ms < 1e3 / 2:
        return Client("training", workload, 0, solo_ms, PERIODIC, per_s)
    setting = cells.setting
    if setting.epoch == 0:
        return Client("training", workload, 0, solo_ms)
    pause_ms = 1e3 * (setting.epoch_pause * 1e-9)
    return Client("training", workload, 0, solo_ms, LOOP, 0.0, setting.epoch, pause_ms,
                  1e3 * (setting.step_pause * 1e-9),
                  max(0.0, 1e3 / per_s - pause_ms / setting.epoch))


def read_cotraining(row: SharingRow, cells: SharingCells) -> None:
    job = letters_of(cells.text("job"))
    if job not in COTRAINING:
        raise cells.fault("job", "production or opportunistic")
    at = COTRAINING.index(job)
    row.subject = f"{cells.text('case')}, {job}"
    alone = alone_rows(cells.table)
    row.clients = [cotraining_client(cells, name, alone) for name in COTRAINING]
    if row.system == ALONE:
        take_alone(row, row.clients[at])
        return
    for column, (quantity, percent) in COTRAINING_FIGURES.items():
        cells.take(row, column, Figure(quantity, at, percent))


# ---- time slices: a case in words, one figure a row

SLICE_METRICS = "samples_per_s, mean_ms, median_iteration_ms or pN_ms (_s: in seconds)"
LEAST_RATE, MOST_RATE = 0.1, 1e6
RATE = re.compile(r"(?:/(?:second|sec|s)|(?<![a-z])(?:per second|rps|qps|hz))(?![a-z])")
RATE_UNIT = re.compile(r" *(?:requests|request|reqs|req)? *\Z")
RATE_NUMBER = re.compile(r"[a-zA-Z0-9.,+-]*\Z")


def rate_in(words: str) -> float | None:
    """Requests a second: "30.7/s", "30 req/s", "30 per second", "30 rps". Nothing if the words name
    no rate."""
    text = words.translate(LOWER)
    marks = list(RATE.finditer(text))
    if not marks:
        return None
    if len(marks) > 1:
        raise failed([("", "", f"two rates in {found(words)}; expected one")])
    before = text[:marks[0].start()]
    before = before[:RATE_UNIT.search(before).start()]
    rate = number_of(RATE_NUMBER.search(before)[0])
    if rate is None or not LEAST_RATE <= rate <= MOST_RATE:
        raise failed([("", "", f"no rate is read in {found(words)}; expected 0.1 to 1e6 "
                               "requests/s, as in \"30.7/s\"")])
    return rate


def slice_metric(metric: str) -> tuple[Figure, float] | None:
    """The figure, and milliseconds of the table's unit, 0 of a rate. Nothing of another metric."""
    if metric == "samples_per_s":
        return Figure(SUM), 0.0
    parts = re.fullmatch("(mean|median|median_iteration|p(.+))(_ms|_s)", metric)
    if parts is None:
        return None
    ms = 1.0 if parts[3] == "_ms" else 1e3
    if parts[1] == "mean":
        return Figure(MEAN), ms
    percent = 50.0 if parts[2] is None else number_of(parts[2])
    if percent is None or not 0 <= percent <= 100:
        return None
    return Figure(PERCENTILE, 0, percent), ms


def case_of(cells: SharingCells) -> str:
    """ "the same" is the case of the row before."""
    for at in range(cells.at, -1, -1):
        text = cells.table.rows[at].get("case", "")
        if letters_of(text) != "thesame":
            return text
    return ""


def read_slices(row: SharingRow, cells: SharingCells) -> None:
    """The job that a case's words name: they contain one of the job's words."""
    words, name = case_of(cells), cells.text("metric")
    clients = cells.count("clients", MOST_CLIENTS)
    row.subject = cells.named(f"{cells.text('gpu')}, {words}",
                              (", ", cells.shown("clients", clients), ""))
    row.system = "time_slicing"
    if not cells.text("gpu"):
        cells.state("the row names no gpu")
    metric = slice_metric(name)
    if metric is None:
        cells.state(f"metric: found \"{name}\"; expected {SLICE_METRICS}")
        return
    figure, ms = metric
    alone, shared = cells.needed("alone"), cells.needed("shared")
    figure.metric, figure.measured = name, shared * ms if ms else shared / alone
    row.figures = [figure]
    batches = batches_in(words)
    if len(batches) > 1:
        cells.state("its case names two batch sizes; expected one job")
    samples = batches[0] if batches else 1  # of a pass
    client = Client("training" if "training" in words else "inference", words,
                    solo_ms=alone * ms if ms else 1e3 * samples / alone)
    row.clients = [client] * clients
    try:
        rate = rate_in(words)
    except Error as fault:
        cells.state(first_message(fault))
    else:
        if rate is not None:
            row.clients[0] = dataclasses.replace(client, pace=EVEN, per_s=rate)


# ---- processes of one model under MPS in a MIG instance

@functools.lru_cache(8)
def rows_of_one(table: Table) -> dict[tuple, list[int]]:
    """Rows of one process, by what its others are found by."""
    out: dict[tuple, list[int]] = {}
    for at in range(len(table)):
        cells = Cells(table, at)
        if cells.figure("processes") == 1:
            out.setdefault(process_key(cells), []).append(at)
    return out


def process_key(cells: Cells) -> tuple:
    return cells.key("batch", "mig_compute_slices", "model", cells.table.device_column)


def equal_solo_ms(cells: SharingCells, batch: int, processes: int) -> float:
    """A pass of one process alone, in the same instance."""
    for at in rows_of_one(cells.table).get(process_key(cells), []):
        rate = Cells(cells.table, at).measured("samples_per_s_per_process")
        if rate is not None:
            return 1e3 * batch / rate
    # Not measured alone with this batch: what the sum says of it.
    rate = cells.needed("samples_per_s_per_process")
    return 1e3 * batch * cells.needed("sum_relative_to_one") / (rate * processes)


def read_equal(row: SharingRow, cells: SharingCells) -> None:
    batch = cells.count("batch", MOST_BATCH)
    row.instance = cells.count("mig_compute_slices", MOST_SLICES)
    processes = cells.count("processes", MOST_CLIENTS)
    client = Client("inference", cells.text("model"), batch,
                    equal_solo_ms(cells, batch, processes))
    row.subject = cells.named(client.workload, (" batch ", cells.shown("batch", batch), ""),
                              (", ", cells.shown("mig_compute_slices", row.instance), "g"),
                              (", ", cells.shown("processes", processes), ""))
    row.system = "mps"
    if cells.figure("processes") == 1:
        take_alone(row, client)
        return
    row.clients = [client] * processes
    cells.take(row, "sum_relative_to_one", Figure(SUM))


# ---- one job in MIG instances of several sizes

def read_mig(row: SharingRow, cells: SharingCells) -> None:
    batch = cells.count("batch", MOST_BATCH)
    time, relative = cells.needed("median_iteration_ms"), cells.needed("relative_to_7")
    client = Client("training", cells.text("job"), batch, time / relative)
    row.partition = cells.count("mig_compute_slices", MOST_SLICES)
    row.subject = cells.named(client.workload, (" batch ", cells.shown("batch", batch), ""),
                              (", ", cells.shown("mig_compute_slices", row.partition), "g"))
    row.system = "mig"
    if row.partition == MOST_SLICES:
        take_alone(row, client)
        return
    row.clients = [client]
    cells.take(row, "relative_to_7", Figure(TIME))


# ---- one job under an MPS percentage

def read_cap(row: SharingRow, cells: SharingCells) -> None:
    row.sm_percentage = cells.count("sm_percentage", 100)
    work = cells.text("work")
    row.subject = cells.named(work, (", ", cells.shown("sm_percentage", row.sm_percentage), " %"))
    row.system = "sm_cap"
    row.clients = [Client("inference", work)]
    cells.take(row, "time_relative_to_all_sms", Figure(TIME))


def read_network_cap(row: SharingRow, cells: SharingCells) -> None:
    """A pass with all SMs is no row, but told by each. The host takes as long, or less."""
    batch, relative = cells.count("batch", MOST_BATCH), cells.needed("relative_to_all_sms")
    row.sm_percentage = cells.count("sm_percent", 100)
    client = Client("inference", cells.text("model"), batch, epoch=ENDLESS,
                    period_ms=cells.needed("latency_ms") / relative)
    if relative <= HOSTS_LIMIT:
        cells.state(f"up to {HOSTS_LIMIT} times as long hosts may limit it")
    row.subject = cells.named(client.workload, (" batch ", cells.shown("batch", batch), ""),
                              (", ", cells.shown("sm_percent", row.sm_percentage), " %"))
    row.system = "sm_cap"
    row.clients = [client]
    cells.take(row, "relative_to_all_sms", Figure(TIME))


# ---- which is which

Reader = Callable[[SharingRow, SharingCells], None]
# By the shipped table of the form: its columns, and what reads a row.
FORMS: dict[str, tuple[tuple[str, ...], Reader]] = {
    "colocation_a100": ((*PAIR_FIGURES, "inference", "training", "system", "solo_avg_ms"),
                        read_pair),
    "cotraining_gv100": (("case", "job", "system", "per_s", *COTRAINING_FIGURES),
                         read_cotraining),
    "time_slices": (("gpu", "case", "metric", "clients", "alone", "shared"), read_slices),
    "equal_mps_clients_a100": (("model", "mig_compute_slices", "batch", "processes",
                                "samples_per_s_per_process", "sum_relative_to_one"), read_equal),
    "mig_training_a100": (("job", "batch", "mig_compute_slices", "median_iteration_ms",
                           "relative_to_7"), read_mig),
    "sm_caps_a100": (("work", "sm_percentage", "time_relative_to_all_sms"), read_cap),
    "sm_caps_v100": (("model", "batch", "sm_percent", "latency_ms", "relative_to_all_sms"),
                     read_network_cap),
}


def form_of(table: Table) -> str:
    """That of which the table has most columns, for its faults' sake."""
    def share(name: str) -> float:
        columns = FORMS[name][0]
        return sum(column in table.columns for column in columns) / len(columns)
    best = max(FORMS, key=share)
    if share(best) == 0:
        names = ", ".join(f"{name}.csv" for name in FORMS)
        raise failed([(table.path, "line 1", "columns of no table of sharing; expected those of "
                                             f"{names}")])
    return best


def read_row(cells: SharingCells, read: Reader) -> SharingRow:
    systems = {letters_of(system.name): system.name for system in reversed(cells.setting.systems)}
    system = cells.text("system")
    systems[ALONE] = ALONE
    row = SharingRow(cells.table.name, cells.role, systems.get(letters_of(system), system),
                     cells.device(cells.setting.devices) or cells.setting.device)
    read(row, cells)
    called = cells.text(cells.table.device_column)
    if called and read is not read_slices:
        row.subject += f" on {called}"
    if not row.figures:
        cells.state("nothing is measured in it")
    row.note = cells.note
    return row


def read_sharing_rows(table: Table, setting: Setting) -> list[SharingRow]:
    """Faults, all at once: a form that is not known, a missing column, text where a number is
    expected, a negative figure, an unknown role."""
    columns, read = FORMS[form_of(table)]
    table.expect(columns)
    return gathered(lambda at: read_row(SharingCells(table, at, setting), read), len(table))


def unread_columns(table: Table) -> list[str]:
    columns, read = FORMS[form_of(table)]
    load = [table.optional(["load"])] if read is read_pair else []
    return table.besides([*columns, "role", table.device_column, *load])
