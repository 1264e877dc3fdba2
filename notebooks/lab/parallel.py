"""Synthesised training jobs, their schedules and their network: tables of measured jobs, measured
all-reduces, schedules against closed forms, PipeFill's days and GraphPipe's case study. Each row
comes as simulated (sim/validate/validate.hpp)."""
from __future__ import annotations

import itertools
import json
import os
from argparse import ArgumentParser, Namespace
from dataclasses import dataclass
from typing import Any, Iterable, Sequence

from bubblesim import _core
from lab.report import (Errors, Fault, Progress, csv_quoted, json_text, shortest, tables_text,
                        text_table, threads, write_outputs)

Row = dict[str, Any]
NEAR = 0.05
TABLES = ("megatron_deepspeed_a100_multi_node", "megatron_deepspeed_a100_single_node",
          "published_training_runs")
CHECKS = ("all_reduce", "schedules", "pipefill", "graphpipe")
# The project's own: of the mean, or of each row; 0 is exact. PipeFill's published days are whole
# ones; GraphPipe's gain of about 10 % is met within 2 points.
AIMS = {
    "megatron_deepspeed_a100_multi_node": ("mean", 0.05),
    "megatron_deepspeed_a100_single_node": ("mean", 0.03),
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


# ---- the command

def training_table(path: str, options: Namespace) -> dict[str, Any]:
    """The table's note and its rows."""
    return json.loads(_core.judge_training_table(path, options.setting, options.jobs,
                                                 options.progress()))


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
    for name in TABLES + CHECKS:
        if options.only not in ("", name):
            continue
        if name in CHECKS:
            rows += json.loads(_core.judge_check(name, options.data, options.jobs))
            continue
        judged = training_table(os.path.join(options.dir, f"{name}.csv"), options)
        notes.append(judged["table"])
        rows += judged["rows"]
    return notes, rows


def judge(options: Namespace) -> int:
    options.jobs = options.jobs or os.cpu_count() or 1
    notes, rows = simulate(options)
    options.progress.clear()
    summaries = summarise(rows)
    print(tables_text(notes), end="")
    if not options.summary:
        print(rows_text(rows))
    print(summary_text(summaries), end="")
    write_outputs({options.csv: csv_text(rows),
                   options.json: json_text({"rows": [row_json(row) for row in rows],
                                            "summary": [one.json() for one in summaries]}, 1) +
                   "\n"}, [options.table])
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
    parser.add_argument("--only", default="", choices=TABLES + CHECKS, help="only one of these")
    parser.add_argument("--jobs", type=threads, default=0, help="threads; 0: one a core")
