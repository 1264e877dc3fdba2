"""Synthesised training jobs, their schedules and their network: tables of measured jobs, measured
all-reduces, schedules against closed forms, PipeFill's days and GraphPipe's case study. Rows of
tables: training_rows.py."""
from __future__ import annotations

import itertools
import os
from argparse import ArgumentParser, Namespace
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Iterable, Sequence

from bubblesim import _core
from bubblesim._table import threads, write_file
from lab import all_reduce
from lab.report import (Errors, Fault, check_judged, csv_quoted, json_text, shortest,
                        tables_text, text_table)
from lab.training_rows import TrainingTable

Row = dict[str, Any]
NEAR = 0.05
TABLES = ("megatron_deepspeed_a100_multi_node", "megatron_deepspeed_a100_single_node",
          "published_training_runs")
# The project's own: of the mean, or of each row; 0 is exact. The table of one node has none: it is
# its authors' own replay (training_rows.rows_of_a_formula). PipeFill's published days are whole
# ones; GraphPipe's gain of about 10 % is met within 2 points.
AIMS = {
    "megatron_deepspeed_a100_multi_node": ("mean", 0.05),
    "published_training_runs": ("each", 0.05),
    "all_reduce": ("mean", 0.05),
    "schedules": ("each", 0.0),
    "pipefill": ("each", 0.05),
    "graphpipe": ("each", 0.02),
}


def error_of(row: Row) -> float:
    return row["simulated"] / row["measured"] - 1


@dataclass(frozen=True)
class Summary:
    table: str
    role: str     # fit, judge; all where a table has both
    outcomes: dict[str, int]
    errors: Errors
    near: float   # share of predicted rows within 5 %

    @classmethod
    def of(cls, table: str, role: str, rows: Sequence[Row]) -> Summary:
        errors = [(error_of(row), row["row"]) for row in rows if row["outcome"] == "predicted"]
        near = sum(abs(error) <= NEAR for error, _ in errors) / len(errors) if errors else 0.0
        outcomes = {outcome: sum(row["outcome"] == outcome for row in rows)
                    for outcome in ("stated", "failed")}
        return cls(table, role, outcomes, Errors.of(errors), near)

    @property
    def met(self) -> bool:
        """No aim is met."""
        kind, bound = AIMS.get(self.table, ("mean", float("inf")))
        if self.table in AIMS and (self.errors.rows == 0 or self.outcomes["failed"] > 0):
            return False
        return (self.errors.mean_absolute if kind == "mean" else abs(self.errors.worst)) <= bound

    def aim_text(self) -> str:
        if self.table not in AIMS:
            return ""
        kind, bound = AIMS[self.table]
        verdict = "met" if self.met else "missed"
        return f"{kind} <= {100 * bound:.0f} %: {verdict}" if bound else f"exact: {verdict}"

    def cells(self) -> list[str]:
        errors = self.errors
        return [self.table, self.role, str(errors.rows), *map(str, self.outcomes.values()),
                f"{100 * errors.mean_absolute:.1f}%", f"{100 * errors.bias:+.1f}%",
                f"{100 * errors.worst:+.1f}%", f"{100 * self.near:.0f}%", self.aim_text()]

    def json(self) -> dict[str, Any]:
        errors = self.errors
        out = {"table": self.table, "role": self.role, "rows": errors.rows, **self.outcomes,
               "mean_absolute_error": errors.mean_absolute, "bias": errors.bias,
               "worst": errors.worst, "worst_row": errors.worst_label,
               "within_5_percent": self.near}
        if self.table in AIMS:
            kind, bound = AIMS[self.table]
            out["aim"] = {"of": kind, "bound": bound, "met": self.met}
        return out


def summarise(rows: Iterable[Row]) -> list[Summary]:
    """By table, in the order in which they first appear, and role."""
    tables: dict[str, list[Row]] = {}
    for row in rows:
        tables.setdefault(row["table"], []).append(row)
    out = []
    for table, own in tables.items():
        roles = [role for role in ("fit", "judge") if any(row["role"] == role for row in own)]
        out += [Summary.of(table, role, [row for row in own if row["role"] == role])
                for role in roles]
        if len(roles) == 2:
            out.append(Summary.of(table, "all", own))
        calm = [row for row in own if not row.get("disturbed")]
        if len(calm) < len(own):
            out += [Summary.of(table, f"{role}, undisturbed",
                               [row for row in calm if row["role"] == role]) for role in roles]
    return out


def summary_text(summaries: Iterable[Summary]) -> str:
    head = ["table", "role", "rows", "stated", "failed", "|error|", "bias", "worst", "within 5%",
            "aim"]
    return text_table([head, *(summary.cells() for summary in summaries)], {0, 1, 9}, "")


def row_text(row: Row) -> str:
    head = f"{row['role']:<5} {row['row']:<72}"
    if row["outcome"] != "predicted":
        return f"{head} {row['outcome']}: {row['note']}\n"
    note = f"  {row['note']}" if row["note"] else ""
    return (f"{head} {row['measured']:>11.5g} {row['simulated']:>11.5g} {row['unit']:<8} "
            f"{100 * error_of(row):>+7.1f}%{note}\n")


def table_text(table: str, rows: Sequence[Row]) -> str:
    out = (f"{table}\n{'role':<5} {'row':<72} {'measured':>11} {'simulated':>11} {'unit':<8} "
           f"{'error':>8}\n")
    shown = [row for row in rows if row["brief"] or row["outcome"] != "predicted"]
    out += "".join(map(row_text, shown))
    hidden = len(rows) - len(shown)
    return out + (f"      and {hidden} rows between these (--csv has all)\n" if hidden else "")


def rows_text(rows: Iterable[Row]) -> str:
    return "\n".join(table_text(table, list(own))
                     for table, own in itertools.groupby(rows, lambda row: row["table"]))


def csv_text(rows: Iterable[Row]) -> str:
    out = "table,role,row,unit,outcome,measured,simulated,error,note\n"
    for row in rows:
        numbers = ",,"
        if row["outcome"] == "predicted":
            numbers = ",".join(map(shortest, (row["measured"], row["simulated"], error_of(row))))
        out += (f"{row['table']},{row['role']},{csv_quoted(row['row'])},{row['unit']},"
                f"{row['outcome']},{numbers},{csv_quoted(row['note'])}\n")
    return out


def row_json(row: Row) -> dict[str, Any]:
    out = {key: row[key] for key in ("table", "role", "row", "unit", "outcome")}
    if row["outcome"] == "predicted":
        out |= {"measured": row["measured"], "simulated": row["simulated"],
                "error": error_of(row)}
    return out | ({"note": row["note"]} if row["note"] else {})


# ---- checks: evidence that is no table of jobs

def made_row(table: str, label: str, unit: str, measured: float, simulated: float,
             stated: str = "", note: str = "") -> Row:
    """A row with the role judge; `stated`: why it is not judged."""
    return {"table": table, "role": "judge", "row": label, "unit": unit,
            "outcome": "stated" if stated else "predicted", "measured": float(measured),
            "simulated": float(simulated), "note": stated or note, "brief": True}


def all_reduce_rows(options: Namespace) -> list[Row]:
    """Rings of one node; of the text, sizes that are powers of two."""
    tables, cluster = all_reduce.read_folder(options.data), _core.Cluster("dgx-a100-80gb")
    out = []
    for table in tables:
        for size, is_fit, *times in zip(table.sizes, table.fitted, table.measured,
                                        table.simulated(cluster)):
            row = made_row("all_reduce", f"{table.gpus} A100, {size / 2**20:.6g} MiB", "us",
                           *(time / 1e3 for time in times))
            out.append(row | {"role": "fit" if is_fit else "judge",
                              "brief": size & (size - 1) == 0})
    return out


DEPTHS = (2, 4, 8, 16, 32)
MULTIPLES = (1, 2, 3, 4, 8)
# Times of F, I and W: the schedules' closed forms hold for different ones.
TIMES = [(1, 1, 1), (10, 12, 8), (5, 5, 3), (2, 1, 1), (7, 4, 3)]


def schedule_rows(_: Namespace) -> list[Row]:
    """A row a schedule: cases that have a closed form, and those whose idle times and peaks equal
    it exactly."""
    out = []
    for name in _core.schedules():
        found = [_core.closed_form_cases(name, depth, multiple * depth + extra, chunks, TIMES)
                 for depth in DEPTHS for multiple in MULTIPLES for extra in (0, 2)
                 for chunks in ((0, 1, 4) if name == "interleaved" else (0,))]
        cases, equal = map(sum, zip(*found))
        out.append(made_row("schedules", f"{name}: cases that equal the closed form", "cases",
                            cases, equal, "" if cases else "no closed form is known"))
    return out


# PipeFill's days (arXiv 2410.07192): a 40B language model trained with 16 pipeline stages, each
# 8-way tensor parallel, and a global batch that stays the same: 82, 34 and 26 days on 1K, 4K and 8K
# GPUs. They fit (m + p - 1) + 3 with p = 16 and m = 64, 16, 8 micro-batches.
#
# The number of iterations is not published, so days are judged as ratios: the days on 1K GPUs are
# set to 82. The machine, the framework and the micro-batch are not published either: V100-32GB,
# Megatron-DeepSpeed, fp16, full recomputation, one sequence of 2048 tokens.
PIPEFILL_DAYS = {1024: 82, 2048: None, 4096: 34, 8192: 26, 16384: None}
PIPEFILL_PLAN = {
    "tensor": 8, "pipeline": 16, "global_batch": 512, "precision": "fp16", "recompute": "full",
    "attention": "unfused", "gradients": {"sync": "after_backward"},
    "software": "megatron-deepspeed"}


def pipefill_seconds(gpus: int) -> float:
    """Length of an iteration."""
    machine = _core.Testbed("v100-16k", PIPEFILL_PLAN["software"])
    plan = _core.Plan(json_text(PIPEFILL_PLAN | {"data": gpus // 128}), "plan", "")
    return machine.seconds(_core.Network("pipefill-40b"), plan, 0, True)


def pipefill_rows(options: Namespace) -> list[Row]:
    """The note of each has the share of time that stages idle, beside the schedule's own
    (p - 1) / (m + p - 1)."""
    with ThreadPoolExecutor(options.jobs) as pool:
        seconds = dict(zip(PIPEFILL_DAYS, pool.map(pipefill_seconds, PIPEFILL_DAYS)))
    micro_batches = {gpus: 512 / (gpus // 128) for gpus in PIPEFILL_DAYS}
    # 48 micro-batches fewer from 1K to 4K GPUs.
    slot = (seconds[1024] - seconds[4096]) / (micro_batches[1024] - micro_batches[4096])
    out = []
    for gpus, published in PIPEFILL_DAYS.items():
        count, days = micro_batches[gpus], PIPEFILL_DAYS[1024] * seconds[gpus] / seconds[1024]
        note = (f"stages idle {100 * (1 - count * slot / seconds[gpus]):.1f} % of "
                f"{seconds[gpus]:.2f} s; fill and drain alone {100 * (15 / (count + 15)):.1f} %")
        why = ""
        if gpus == 1024 or not published:
            why = (f"{days:.1f} days, "
                   f"{'to which the others are scaled' if published else 'nothing published'}; "
                   f"{note}")
        out.append(made_row(
            "pipefill", f"40B on {gpus} GPUs, {count:.0f} micro-batches, 82 days on 1024", "days",
            published or 0, days, why, note))
    return out


def graphpipe_rows(_: Namespace) -> list[Row]:
    """GraphPipe (arXiv 2406.17145), section 7.5: two branches of four stages on eight devices, one
    after the other (8 deep) and side by side (4 deep), 64 samples in micro-batches of 2. About
    10 % are gained with micro-batches of one size. What twice the size gains besides is its
    kernels' and is stated, not judged."""
    deep = _core.graph_makespan(8, 32, [(stage, stage + 1) for stage in range(7)])
    wide = _core.graph_makespan(8, 32, [(stage, stage + 1) for stage in range(7) if stage != 3])
    return [
        made_row("graphpipe", "throughput of depth 4 over depth 8, 32 equal micro-batches", "times",
                 1.10, deep / wide),
        made_row("graphpipe", "throughput of depth 4 and micro-batch 4 over depth 8 and "
                 "micro-batch 2", "times", 1.10, deep / wide,
                 "published: 1.20; half of it is kernels of twice the size, whose shapes the paper "
                 "does not give")]


CHECKS: dict[str, Callable[[Namespace], list[Row]]] = {
    "all_reduce": all_reduce_rows, "schedules": schedule_rows, "pipefill": pipefill_rows,
    "graphpipe": graphpipe_rows}


# ---- the command

def training_table(path: str, options: Namespace) -> dict[str, Any]:
    """The table's note and its rows."""
    return TrainingTable.read(path, options.setting).judged(options.jobs, options.progress())


def simulate(options: Namespace) -> tuple[list[dict], list[Row]]:
    """Notes of tables, and rows of them and of checks."""
    if options.setting and not options.table:
        raise Fault("expected --table with it", place="--setting")
    if options.table and options.only:
        raise Fault("expected either --only or --table", place="--only")
    if options.table:
        judged = training_table(options.table, options)
        return [judged["table"]], judged["rows"]
    notes, rows = [], []
    for name in (*TABLES, *CHECKS):
        if options.only not in ("", name):
            continue
        if name in CHECKS:
            rows += CHECKS[name](options)
            continue
        judged = training_table(os.path.join(options.dir, f"{name}.csv"), options)
        notes.append(judged["table"])
        rows += judged["rows"]
    return notes, rows


def judge(options: Namespace) -> int:
    options.jobs = options.jobs or os.cpu_count() or 1
    folder = Path(options.dir)
    check_judged(options, "table,role,row,unit,", "{\n \"rows\": [",
                 [options.table, options.data, *(folder / f"{name}.csv" for name in TABLES)])
    notes, rows = simulate(options)
    options.progress.clear()
    summaries = summarise(rows)
    write_file(options.csv, csv_text(rows))
    write_file(options.json, json_text({"rows": [row_json(row) for row in rows],
                                        "summary": [one.json() for one in summaries]}, 1) + "\n")
    print(tables_text(notes), end="")
    if not options.summary:
        print(rows_text(rows))
    print(summary_text(summaries), end="")
    return int(any(row["outcome"] == "failed" for row in rows))


def add_options(parser: ArgumentParser) -> None:
    parser.description = (
        "Synthesised training jobs, their schedules and their network. Exit code 1 if a row could "
        "not be predicted for a reason other than a stated one.")
    parser.add_argument("--dir", default="../shared/validation",
                        help="folder of the measured tables (%(default)s)")
    parser.add_argument("--data", default="../shared/data",
                        help="folder of the public data sets (%(default)s)")
    parser.add_argument("--table", default="",
                        help="only this table: a CSV file with the columns of one of the folder's")
    parser.add_argument("--setting", default="",
                        help="with --table: a file of configs/validation (default: by the table's "
                        "columns)")
    parser.add_argument("--only", default="", choices=(*TABLES, *CHECKS), help="only one of these")
    parser.add_argument("--jobs", type=threads, default=0, help="threads; 0: one a core")
