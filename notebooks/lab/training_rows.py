"""Training jobs of a table, as jobs that can be synthesised, with what was measured.

Two forms of columns are understood, told apart by their names: iteration_time_ms with every size
of the plan (vTrain, MICRO 2024), and tflops_per_gpu or seconds_per_iteration, where a plan's size
may be blank (published runs). What a table's columns do not say is its setting's
(configs/validation)."""
from __future__ import annotations

import dataclasses
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Mapping

import numpy
from bubblesim import Error, _core
from bubblesim._table import failed

from .report import json_text
from .table import (Cells, Table, device_names, find_setting, first_message, gathered,
                    letters_of, spread)

Row = dict[str, Any]
NODE_GPUS = 8            # of the tables' systems; tensor ranks stay in a node where none are given
LARGEST_MICRO_BATCH = 16
LARGE_SHARE = 0.1        # of FLOPs that a source may count or not
# The most that plans and model files may say (sim/synth/plan_file.hpp, sim/model/model_spec.hpp).
MOST_RANKS, MOST_SAMPLES, MOST_MICRO_BATCH, MOST_CHUNKS = 65_536, 1 << 24, 1 << 16, 1024
MOST_WIDTH, MOST_COUNT, MOST_PARAMETERS = 1 << 22, 1 << 14, 1e13

OPTIONAL = ("role", "source", "model", "vocabulary", "context_parallelism", "recompute")
ITERATION = ("hidden_size", "num_layers", "attention_heads", "sequence_length", "num_gpus",
             "global_batch", "micro_batch", "tensor_parallelism", "pipeline_parallelism",
             "data_parallelism", "iteration_time_ms")
PUBLISHED = ("hidden_size", "layers", "attention_heads", "sequence_length", "vocabulary",
             "num_gpus", "global_batch", "tflops_per_gpu")
PUBLISHED_OPTIONAL = ("tensor_parallelism", "pipeline_parallelism", "data_parallelism",
                      "micro_batch", "virtual_stages", "seconds_per_iteration")
RECOMPUTE = {"full": {"recompute": "full"}, "selective": {"recompute": "selective"},
             "selective+sequence": {"recompute": "selective", "sequence_parallel": True},
             "none": {"recompute": "none"}}


# ---- settings

@dataclass(frozen=True)
class Machine:
    """What rows on one kind of GPU share."""
    gpu: str       # as tables call it, besides names of its device
    cluster: str   # a file of configs/clusters
    device: str    # the cluster's
    plan: dict[str, Any]


@dataclass(frozen=True)
class Setting:
    name: str
    path: str
    own: Machine               # of rows that name no other
    vocabulary: int
    machines: list[Machine]
    devices: Mapping[str, str]
    models: list[Any]          # rows of their sizes are they; others are GPTs
    disturbed: str = ""        # a regular expression: rows with such a label are summed up apart

    @classmethod
    def find(cls, name: str) -> Setting:
        root = find_setting(name)
        root.text("note", "")
        cluster = root.text("cluster")
        vocabulary = root.number("vocabulary", 1, 1 << 32, whole=True)
        plans, parts = [root.child("plan")], root.children("machines", [])
        named = [(part.text("gpu"), part.text("cluster")) for part in parts]
        plans += [part.child("plan") for part in parts]
        models, disturbed = root.texts("models"), root.text("disturbed", "")
        root.finish(*parts)
        own, *machines = (Machine(gpu, cluster, _core.Cluster(cluster).device, plan.root)
                          for (gpu, cluster), plan in zip([("", cluster), *named], plans))
        for machine in (own, *machines):
            plan_of(machine.plan, root.path, root.path)
        return cls(Path(root.path).stem, root.path, own, vocabulary, machines,
                   device_names({one.gpu: one.device for one in machines}),
                   [_core.Network(model) for model in models], disturbed)


def plan_of(plan: Mapping[str, Any], label: str, beside: str) -> Any:
    return _core.Plan(json_text(plan), label, os.path.dirname(beside))


def setting_of(table: Table) -> Setting:
    """The one of the table's own name, else of those the one whose form and size of jobs are the
    table's."""
    if Path(_core.config_folder(), "validation", f"{table.name}.json").exists():
        return Setting.find(table.name)
    if "tflops_per_gpu" in table.columns and "iteration_time_ms" not in table.columns:
        return Setting.find("published_training_runs")
    gpus = (Cells(table, at).figure("num_gpus") or 0 for at in range(len(table)))
    several = any(NODE_GPUS < count <= 1e9 and count == int(count) for count in gpus)
    return Setting.find(f"megatron_deepspeed_a100_{'multi' if several else 'single'}_node")


# ---- rows

@dataclass
class TrainingRow:
    place: str
    machine: Machine
    plan: dict[str, Any]
    vocabulary: int
    role: str = "judge"
    label: str = ""          # "GPT 175B, 512 GPUs, t 8, p 16, d 4"
    note: str = ""           # why nothing can be said of the row
    hidden: int = 0
    layers: int = 0
    heads: int = 0
    sequence: int = 0
    gpus: int = 0
    network: Any = None      # of _core
    chunks_unknown: bool = False  # the source does not say how many stages a rank holds
    seconds: float | None = None  # measured, an iteration
    tflops_per_gpu: float | None = None

    @property
    def stages(self) -> int:
        return self.plan.get("pipeline", 1)

    @property
    def software(self) -> str:
        return self.plan.get("software", "pytorch")

    def counted_flops(self) -> float:
        """FLOPs of an iteration, as the tables count them. A GPT: Narayanan et al., SC 2021, 5.1.
        Another model: 6 N B s with its published parameters N, as scaling laws count; attention's
        own products are not in it."""
        batch, s = float(self.plan["global_batch"]), float(self.sequence)
        if self.network.published is not None:
            return 6 * self.network.published * batch * s
        h, l, v = float(self.hidden), float(self.layers), float(self.vocabulary)
        passes, head = (96, 16) if self.plan.get("recompute") == "full" else (72, 12)
        return passes * batch * s * l * h * h * (1 + s / (6 * h) + v / (head * l * h))


class TrainingCells(Cells):
    def sizes(self, row: TrainingRow, layers: str) -> None:
        row.hidden = self.count("hidden_size", MOST_WIDTH)
        row.layers = self.count(layers, MOST_COUNT)
        row.heads = self.count("attention_heads", MOST_COUNT)
        row.sequence = self.count("sequence_length", MOST_WIDTH)
        row.gpus = self.count("num_gpus", MOST_RANKS)
        row.plan["global_batch"] = self.count("global_batch", MOST_SAMPLES)
        if self.text("vocabulary"):
            row.vocabulary = self.count("vocabulary", MOST_WIDTH)
        self.put_if_there(row.plan, "context", "context_parallelism", MOST_RANKS)

    def put_if_there(self, plan: dict[str, Any], key: str, column: str, most: int) -> bool:
        if self.text(column):
            plan[key] = self.count(column, most)
        return bool(self.text(column))

    def check_ranks(self, row: TrainingRow) -> None:
        sizes = {key: row.plan.get(key, 1) for key in ("tensor", "context", "pipeline", "data")}
        tensor, context, pipeline, data = sizes.values()
        ranks = tensor * context * pipeline * data
        if ranks != row.gpus:
            split = " x ".join(f"{key} {size}" for key, size in sizes.items())
            self.state(f"{row.gpus} GPUs are not the {ranks} ranks of {split}")

    def set_replicas(self, row: TrainingRow) -> None:
        ranks = row.plan["tensor"] * row.plan["pipeline"] * row.plan["context"]
        row.plan["data"] = row.gpus // min(ranks, row.gpus)
        if row.gpus % ranks:
            self.state(f"{row.gpus} GPUs are no multiple of {ranks} model-parallel ranks")

    def read_iteration_form(self, row: TrainingRow) -> None:
        self.sizes(row, "num_layers")
        for key, column, most in (("micro_batch", "micro_batch", MOST_MICRO_BATCH),
                                  ("tensor", "tensor_parallelism", MOST_RANKS),
                                  ("data", "data_parallelism", MOST_RANKS),
                                  ("pipeline", "pipeline_parallelism", MOST_RANKS)):
            row.plan[key] = self.count(column, most)
        self.check_ranks(row)
        time = self.measured("iteration_time_ms")
        row.seconds = None if time is None else time * 1e-3

    def read_published_form(self, row: TrainingRow) -> None:
        """Tensor ranks that the source does not give: as many as a node has, the usual choice."""
        plan = row.plan
        plan |= {"tensor": NODE_GPUS, "pipeline": 1, "context": 1, "micro_batch": 0, "chunks": 0}
        self.sizes(row, "layers")
        self.put_if_there(plan, "tensor", "tensor_parallelism", MOST_RANKS)
        self.put_if_there(plan, "pipeline", "pipeline_parallelism", MOST_RANKS)
        self.put_if_there(plan, "micro_batch", "micro_batch", MOST_MICRO_BATCH)
        chunks_known = self.put_if_there(plan, "chunks", "virtual_stages", MOST_CHUNKS)
        data_known = self.put_if_there(plan, "data", "data_parallelism", MOST_RANKS)
        row.chunks_unknown = not chunks_known and row.stages > 1
        if plan["chunks"] > 1:
            plan["schedule"] = "interleaved"
        row.tflops_per_gpu = self.measured("tflops_per_gpu")
        row.seconds = self.measured("seconds_per_iteration")
        if data_known:
            self.check_ranks(row)
        else:
            self.set_replicas(row)

    def machine(self, setting: Setting) -> Machine:
        """By what the setting calls its GPU; then the setting's own, then that of the device."""
        device = self.device(setting.devices)
        if not device:
            return setting.own
        called = letters_of(self.text(self.table.device_column))
        for machine in setting.machines:
            if letters_of(machine.gpu) == called:
                return machine
        if device == setting.own.device:
            return setting.own
        for machine in setting.machines:
            if machine.device == device:
                return machine
        known = ", ".join(machine.device for machine in (setting.own, *setting.machines))
        self.state(f"the setting {setting.name} has no machine of {device}; it has {known}")
        return setting.own

    def take_network(self, row: TrainingRow, setting: Setting) -> None:
        sizes = row.hidden, row.layers, row.heads
        row.network = next((model for model in setting.models if model.sizes == sizes), None)
        if row.network is None:
            row.network = _core.Network.gpt(*sizes, row.vocabulary, row.sequence)
        if row.seconds is None and row.tflops_per_gpu is None:
            self.state("the row has no measurement (blank or 0)")
        parameters = row.network.parameters
        if parameters is not None and parameters > MOST_PARAMETERS:
            self.state(f"its network has {parameters:.3g} parameters; expected "
                       f"{MOST_PARAMETERS:.0e} at most")
        published = row.network.published
        # Attention's own products, of a causal mask, over what counted_flops() counts.
        share = row.layers * row.hidden * row.sequence / published if published else 0
        if row.seconds is None and share > LARGE_SHARE:
            self.state(f"not sure: attention's products are {100 * share:.0f} % of the FLOPs that "
                       "are counted, and whether the source counts them is not known")


def is_timed(table: Table) -> bool:
    return "iteration_time_ms" in table.columns


def read_row(cells: TrainingCells, setting: Setting) -> TrainingRow:
    machine = cells.machine(setting)
    row = TrainingRow(cells.place, machine, dict(machine.plan), setting.vocabulary, cells.role)
    if is_timed(cells.table):
        cells.read_iteration_form(row)
    else:
        cells.read_published_form(row)
    recompute = cells.text("recompute")
    if recompute and recompute not in RECOMPUTE:
        raise cells.fault("recompute", '"full", "selective", "selective+sequence" or "none"')
    row.plan |= RECOMPUTE.get(recompute, {}) | {"sequence": row.sequence}
    cells.take_network(row, setting)
    plan = row.plan
    row.label = (f"h {row.hidden} L {row.layers} s {row.sequence}, {row.gpus} GPUs: "
                 f"t {plan.get('tensor', 1)} p {row.stages} d {plan.get('data', 1)}, "
                 f"batch {plan['global_batch']} / {plan['micro_batch']}")
    if "model" in cells.table.columns:
        row.label = ": ".join([cells.text("source"),
                               f"{cells.text('model')}, {cells.text('recompute')}"])
    row.note = cells.note
    return row


def training_rows(table: Table, setting: Setting) -> list[TrainingRow]:
    """Stated are rows without a measurement, on a device that the setting has no machine of, of
    sizes beyond the ranges of model files and plans, and of other GPUs than their parallel sizes
    make."""
    if not is_timed(table) and "tflops_per_gpu" not in table.columns:
        raise failed([(table.path, "line 1", "expected a column iteration_time_ms or "
                                             "tflops_per_gpu")])
    table.expect(ITERATION if is_timed(table) else PUBLISHED)
    return gathered(lambda at: read_row(TrainingCells(table, at), setting), len(table))


def unread_columns(table: Table) -> list[str]:
    form = ITERATION if is_timed(table) else (*PUBLISHED, *PUBLISHED_OPTIONAL)
    return table.besides([*OPTIONAL, *form, table.device_column])


def rows_of_a_formula(rows: list[TrainingRow]) -> int:
    """How many rows are no measurements, but a formula's: of one layer on the same GPUs, six
    constants meet more than seven rows to 1e-9, which no machine repeats. Constants are of an
    iteration, a layer, a stage's layers, the same of each micro-batch, a micro-batch, a stage."""
    alike: dict[tuple, list[tuple]] = {}
    for row in rows:
        plan = row.plan
        if row.note or row.seconds is None:
            continue
        runs = plan["global_batch"] / plan["micro_batch"] / plan.get("data", 1)
        layers = row.layers / row.stages
        key = (row.hidden, row.heads, row.sequence, plan["micro_batch"], plan.get("tensor", 1),
               plan.get("data", 1))
        alike.setdefault(key, []).append(
            (1.0, row.layers, layers, runs * layers, runs, row.stages, row.seconds))
    found = 0
    for group in alike.values():
        terms, seconds = numpy.hsplit(numpy.array(group), [6])
        if len(group) > 7:
            left = terms @ numpy.linalg.lstsq(terms, seconds, rcond=None)[0] - seconds
            found += len(group) if numpy.abs(left / seconds).max() < 1e-9 else 0
    return found


# ---- predictions

@dataclass(frozen=True)
class Prediction:
    seconds: float    # of an iteration
    micro_batch: int  # as given, or the fastest that fits where the row has none
    chunks: int       # stages a rank: the same


def short_ends(layers: int, stages: int) -> list[int]:
    """Where layers divide over the stages but for two: one fewer in the first and in the last
    (Llama 3, section 3.3.2)."""
    if stages < 2 or layers % stages == 0 or (layers + 2) % stages:
        return []
    each = (layers + 2) // stages
    return [each - 1, *[each] * (stages - 2), each - 1]


def chunk_counts(row: TrainingRow) -> list[int]:
    """0: as the plan says."""
    if not row.chunks_unknown:
        return [0]
    layers = row.layers if row.layers % row.stages == 0 else row.layers + 2
    return [1, *(chunks for chunks in range(2, layers // row.stages + 1)
                 if layers % row.stages == 0 and layers // row.stages % chunks == 0)]


@dataclass
class TrainingTable:
    path: str
    setting: Setting
    rows: list[TrainingRow]
    unread: list[str]
    machines: dict[tuple[str, str], Any] = field(default_factory=dict)  # of _core

    @classmethod
    def read(cls, path: str, setting: str = "") -> TrainingTable:
        table = Table(path)
        found = Setting.find(setting) if setting else setting_of(table)
        out = cls(path, found, training_rows(table, found), unread_columns(table))
        for row in out.rows:
            key = out.machine_key(row)
            out.machines[key] = out.machines.get(key) or _core.Testbed(*key)
        return out

    @property
    def name(self) -> str:
        return Path(self.path).stem

    @staticmethod
    def machine_key(row: TrainingRow) -> tuple[str, str]:
        return row.machine.cluster, row.software

    def keep(self, wanted: Callable[[TrainingRow], bool]) -> None:
        """Drops the other rows."""
        self.rows = [row for row in self.rows if wanted(row)]

    def seconds_of(self, row: TrainingRow, micro_batch: int, chunks: int, fits: bool) -> float:
        """Length of an iteration. Memory is checked only for sizes that the row does not give; the
        others did run."""
        plan = row.plan | {"micro_batch": micro_batch}
        if chunks:
            plan |= {"chunks": chunks, "schedule": "interleaved" if chunks > 1 else "1f1b"}
        made = plan_of(plan, f"{self.path}, {row.place}", self.setting.path)
        if not made.layers_per_stage:
            stages = row.stages * max(plan.get("chunks", 0), 1)
            made.layers_per_stage = short_ends(row.layers, stages)
        return self.machines[self.machine_key(row)].seconds(row.network, made, row.gpus, fits)

    def predict_as_given(self, row: TrainingRow) -> Prediction:
        micro_batch, chunks = row.plan["micro_batch"], row.plan.get("chunks", 0)
        return Prediction(self.seconds_of(row, micro_batch, 0, False), micro_batch, max(chunks, 1))

    def predict(self, row: TrainingRow) -> Prediction:
        """Where a source is silent, its authors will have used the fastest that fits. Plans that
        cannot be made are no candidates; if none can, a micro-batch that is given did run, of one
        chunk."""
        given = row.plan["micro_batch"]
        if given and not row.chunks_unknown:
            return self.predict_as_given(row)
        sizes = [given] if given else [
            1 << power for power in range(LARGEST_MICRO_BATCH.bit_length())]
        best, last = None, None
        for chunks in chunk_counts(row):
            for size in sizes:
                try:
                    seconds = self.seconds_of(row, size, chunks, True)
                except Error as fault:
                    last = fault
                    continue
                if best is None or seconds < best.seconds:
                    best = Prediction(seconds, size, max(chunks, row.plan.get("chunks", 0), 1))
        if best is None and not given:
            raise last
        return best or self.predict_as_given(row)

    def judged_row(self, row: TrainingRow) -> Row:
        out = {"table": self.name, "role": row.role, "row": row.label,
               "unit": "TFLOP/s" if row.seconds is None else "s", "outcome": "stated",
               "measured": 0.0, "simulated": 0.0, "note": row.note, "brief": True}
        if self.setting.disturbed:
            out["disturbed"] = re.search(self.setting.disturbed, row.label) is not None
        if row.note:
            return out
        try:
            found = self.predict(row)
        except Error as fault:
            return out | {"outcome": "failed", "note": first_message(fault)}
        searched = [] if row.plan["micro_batch"] else [f"micro-batch {found.micro_batch}"]
        searched += [f"{found.chunks} chunks a rank"] if row.chunks_unknown else []
        return out | {
            "outcome": "predicted", "note": searched and "found: " + ", ".join(searched) or "",
            "measured": row.seconds or row.tflops_per_gpu,
            "simulated": found.seconds if row.seconds else self.tflops_of(row, found.seconds)}

    @staticmethod
    def tflops_of(row: TrainingRow, seconds: float) -> float:
        return row.counted_flops() / seconds / row.gpus * 1e-12

    def judged(self, threads: int, progress: Callable[[str], None] | None = None) -> dict[str, Any]:
        """The table's note and its rows."""
        done = iter(range(1, len(self.rows) + 1))

        def judge(row: TrainingRow) -> Row:
            out = self.judged_row(row)
            if progress:
                progress(f"{self.name}: {next(done)} of {len(self.rows)} rows")
            return out
        rows = spread(judge, self.rows, threads)
        devices = [self.machines[self.machine_key(row)].device for row in self.rows if not row.note]
        return {"table": {"table": self.name, "setting": self.setting.path,
                          "devices": list(dict.fromkeys(devices)) or [self.setting.own.device],
                          "unread": self.unread, "of_a_formula": rows_of_a_formula(self.rows)},
                "rows": rows}

    def with_software(self, path: str) -> TrainingTable:
        """The same rows on machines of another software, a file."""
        return dataclasses.replace(self, machines={
            key: _core.Testbed(key[0], path) for key in self.machines})
