"""One GPU shared: pairs of jobs, processes of one model, time slices, MIG instances and SM caps,
under each system of the tables. A row is a scene and figures that were measured of it; what is
simulated comes with it (sim/validate/sharing_json.hpp)."""
from __future__ import annotations

import dataclasses
import itertools
import os
from argparse import ArgumentParser, Namespace
from collections import Counter
from dataclasses import dataclass
from typing import Any, Callable, Iterable, Mapping, Sequence

import bubblesim
from bubblesim import _core
from bubblesim._table import failed, threads, write_file
from lab.report import (Errors, Fault, check_judged, csv_quoted, half_away, json_text, shortest,
                        tables_text, text_table)
from lab.sharing_rows import (EVEN, FORMS, Setting, SharingRow, form_of, read_sharing_rows,
                              unread_columns)
from lab.sharing_scenes import Judging, Stage, Workloads
from lab.table import Table, letters_of

Row = dict[str, Any]
LEAST_TOLD = 0.001  # of a mean |error|
ORDERED = ("p95_ms", "training_throughput_rel", "relative_to_alone")


def relative(figure: Mapping) -> float:
    return figure["simulated"] / figure["measured"] - 1


def asked_for(rows: Sequence[SharingRow], systems: Sequence[str], role: str,
              device: str) -> list[SharingRow]:
    names = set(map(letters_of, systems))
    return [row for row in rows if (not role or row.role == role)
            and (not device or row.device == device)
            and (not names or letters_of(row.system) in names)]


def row_dict(row: SharingRow, judged: Mapping[str, Any], demands: Sequence[str]) -> Row:
    figures = [{"metric": figure.metric, "quantity": figure.quantity, "client": figure.client,
                "measured": figure.measured, "simulated": simulated}
               for figure, simulated in zip(row.figures, judged["simulated"])]
    return {"table": row.table, "role": row.role, "subject": row.subject, "system": row.system,
            "outcome": judged["outcome"], "note": judged["note"], "device": row.device,
            "clients": len(row.clients),
            "has_requests": any(client.pace == EVEN for client in row.clients),
            "has_a_part": row.sm_percentage > 0 or row.partition > 0, "demands": demands,
            "figures": figures, "left_out": row.left_out, "over_time": judged["over_time"]}


def simulate(tables: Sequence[str], *, setting: str = "", systems: Sequence[str] = (),
             role: str = "", device: str = "", rows: Sequence[int] = (),
             changes: Mapping[str, float] = {}, window_ns: int = 0, threads: int = 0,
             progress: Callable[[str], None] | None = None) -> dict[str, Any]:
    """The tables and their rows as judged: those of the systems, role and device that are given,
    of these the ones with the numbers `rows`. `changes`: constants of all devices that are other
    than their files say; "burst": of every setting."""
    settings: dict[str, Setting] = {}
    every, notes_of = [], []
    machines: dict[str, Any] = {}
    for path in map(str, tables):
        table = Table(path)
        own = Setting.find(setting or form_of(table))
        found = read_sharing_rows(table, own)
        if table.name in settings:
            raise failed([(path, "line 1", f"a table called {table.name} is there already; names "
                                           "differ")])
        for name in dict.fromkeys([own.device, *(row.device for row in found)]):
            machines[name] = machines.get(name) or _core.PairMachine(name)
        settings[table.name] = own
        notes_of.append({"table": table.name, "setting": own.path, "device": own.device,
                         "unread": unread_columns(table)})
        every += asked_for(found, systems, role, device)
    every = [every[at] for at in rows if at < len(every)] if rows else every
    for key, value in changes.items():
        for machine in machines.values() if key != "burst" else ():
            machine.put(key, value)
    if "burst" in changes:
        settings = {name: dataclasses.replace(own, burst=half_away(changes["burst"]))
                    for name, own in settings.items()}
    stage = Stage(settings, machines, Workloads(), _core.Policies(), window_ns)
    judged = Judging(every, stage, threads, progress).run()
    return {"tables": sorted(notes_of, key=lambda note: note["table"]),
            "rows": [row_dict(row, one, demands_of(row, stage))
                     for row, one in zip(every, judged)]}


def demands_of(row: SharingRow, stage: Stage) -> list[str]:
    """What policies of the row's system demand whatever their parameters."""
    return list(dict.fromkeys(
        demand for system in stage.settings[row.table].systems if system.name == row.system
        for demand in stage.policies.demands(system.policy)))


# ---- mechanisms of the sharing model that can be left out

def demands(row: Row, *features: str) -> bool:
    return any(feature in row["demands"] for feature in features)


def run_together(row: Row) -> bool:
    return row["clients"] > 1 and not demands(row, "time_slicing")


def take_turns(row: Row) -> bool:
    return row["clients"] > 1 and not demands(row, "mps", "mig", "one_process")


def has_a_part(row: Row) -> bool:
    return row["has_a_part"]


def contend(row: Row) -> bool:
    return has_a_part(row) or run_together(row)


def has_requests(row: Row) -> bool:
    return row["has_requests"]


@dataclass(frozen=True)
class Mechanism:
    replacement: str                # what replaces it
    changes: Mapping[str, float]    # of settings, to leave it out
    touches: Callable[[Row], bool]  # whether it can move the row's figures


# long_slices: NVIDIA's open kernel modules (timeout 128 << 3), a switch at the bandwidth of DRAM.
MECHANISMS = {
    "arrival_order": Mechanism("equal MPS clients have even parts of the room",
                               {"even_clients": 1}, run_together),
    "client_switch": Mechanism("a kernel that follows another client's comes at once",
                               {"client_switch": 0}, run_together),
    "long_slices": Mechanism("slices of 1.024 ms, switches of 50 us",
                             {"time_slice": 1_024_000, "context_switch": 50_000}, take_turns),
    "contention": Mechanism("kernels that run together do not slow each other",
                            {"contention/l2_slowdown": 0, "contention/issue_shares": 0,
                             "contention/memory_boundness": 0}, contend),
    "l2": Mechanism("no slowdown by the neighbours' traffic below saturation",
                    {"contention/l2_slowdown": 0}, run_together),
    "dram_reach": Mechanism("kernels ask for parts of DRAM's peak bandwidth", {"dram_reach": 1},
                            contend),
    "dram_saturation": Mechanism("traffic in proportion to a client's SMs",
                                 {"part/dram_saturating_sms": 0}, has_a_part),
    "dark_clock": Mechanism("the clock stays while SMs are dark", {"part/dark_clock_gain": 1},
                            has_a_part),
    "bursts": Mechanism("requests come evenly", {"burst": 0}, has_requests),
}


# ---- errors by table, system, metric and role; the order of the systems

def aim_of(row: Row, figure: Mapping) -> tuple[float, bool]:
    """The most a mean |error| is to be, 0 without an aim; and whether it bounds each difference of
    shares instead."""
    p95, share = figure["metric"] == "p95_ms", figure["quantity"] == "share"
    system = row["system"]
    if figure["quantity"] == "sum":
        return (0.05 if system == "mps" else 0.04), False
    if figure["quantity"] == "time":
        return (0.10 if system == "mig" else 0.08 if row["table"].startswith("sm_caps_v") else
                0.06), False
    if system in ("mps", "mps_priority"):
        return (0.05 if share else 0.15 if p95 else 0.0), False
    if system == "time_slicing":
        return (0.04 if share else 0.08 if p95 else 0.0), False
    if system == "tally":
        return (0.15 if share and figure["client"] == 1 else 0.05 if p95 else 0.0), False
    if row["table"].startswith("cotraining") and share:
        return 0.05, True
    return 0.0, False


@dataclass(frozen=True)
class Summary:
    table: str
    system: str
    metric: str
    role: str      # fit, judge, all
    errors: Errors
    aim: float
    points: bool   # errors are differences of shares
    within: float  # share of rows within the aim; 1 without one

    @property
    def met(self) -> bool:
        return self.within >= 1 if self.points else self.errors.mean_absolute <= self.aim

    def cells(self) -> list[str]:
        aim = ""
        if self.aim > 0:
            aim = (f"{'each' if self.points else 'mean'} <= {100 * self.aim:.0f} "
                   f"{'points' if self.points else '%'}: {'met' if self.met else 'missed'}; "
                   f"{100 * self.within:.0f} % of rows within")
        errors = self.errors
        return [self.system, self.metric, self.role, str(errors.rows),
                f"{100 * errors.mean_absolute:.1f}%", f"{100 * errors.bias:+.1f}%",
                f"{100 * errors.worst:+.1f}%", aim]

    def json(self) -> dict[str, Any]:
        out = {"table": self.table, "system": self.system, "metric": self.metric,
               "role": self.role, "rows": self.errors.rows,
               "unit": "share" if self.points else "relative",
               "mean_absolute_error": self.errors.mean_absolute, "bias": self.errors.bias,
               "worst": self.errors.worst}
        if self.aim > 0:
            out["aim"] = {"bound": self.aim, "met": self.met, "rows_within": self.within}
        return out


def predicted(rows: Iterable[Row]) -> list[Row]:
    return [row for row in rows if row["outcome"] == "predicted"]


def summarise(rows: Iterable[Row]) -> list[Summary]:
    """In the order in which metrics first appear; roles apart where a metric has both."""
    groups: dict[tuple[str, str, str], list[tuple[Row, Mapping]]] = {}
    for row in predicted(rows):
        for figure in row["figures"]:
            key = row["table"], row["system"], figure["metric"]
            groups.setdefault(key, []).append((row, figure))
    out = []
    for key, cells in groups.items():
        aim, points = aim_of(*cells[0])
        for role in ("fit", "judge", "all"):
            labelled = [(figure["simulated"] - figure["measured"] if points else relative(figure),
                         row["subject"])
                        for row, figure in cells if role in ("all", row["role"])]
            if role != "all" and not 0 < len(labelled) < len(cells):
                continue
            kept = sum(abs(error) <= aim for error, _ in labelled)
            out.append(Summary(*key, role, Errors.of(labelled), aim, points,
                               kept / len(labelled) if aim > 0 else 1.0))
    return out


def unjudged(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Rows that take no part, counted by table, outcome and reason."""
    counted = Counter((row["table"], row["outcome"], row["note"]) for row in rows
                      if row["outcome"] != "predicted")
    return [{"table": table, "outcome": outcome, "reason": reason, "rows": count}
            for (table, outcome, reason), count in counted.items()]


def chain(figures: Sequence[tuple[float, str]]) -> str:
    ordered = sorted(figures, key=lambda figure: figure[0])
    out = ordered[0][1]
    for (before, _), (value, system) in itertools.pairwise(ordered):
        out += (" < " if value > before else " = ") + system
    return out


def orders(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Whether a subject's systems come in the measured order of a metric."""
    subjects: dict[tuple[str, str], list[Row]] = {}
    for row in predicted(rows):
        subjects.setdefault((row["table"], row["subject"]), []).append(row)
    out = []
    for (table, subject), metric in itertools.product(subjects, ORDERED):
        found = [(figure, row["system"]) for row in subjects[table, subject]
                 for figure in row["figures"] if figure["metric"] == metric]
        if len(found) < 2:
            continue
        sides = {side: [(figure[side], system) for figure, system in found]
                 for side in ("measured", "simulated")}
        pairs = [(a["simulated"], b["simulated"])
                 for (a, _), (b, _) in itertools.product(found, found)
                 if a["measured"] < b["measured"]]
        right = sum(first < second for first, second in pairs)
        out.append({"table": table, "subject": subject, "metric": metric,
                    "right": right == len(pairs), "compared": len(pairs), "concordant": right,
                    **{side: chain(figures) for side, figures in sides.items()}})
    return out


# ---- as text, CSV and JSON

def row_text(row: Row) -> str:
    out = f"{row['role']:<5} {row['system']:<13}"
    if row["outcome"] != "predicted":
        return f"{out} {row['outcome']}: {row['note']}\n"
    for figure in row["figures"]:
        out += (f" | {figure['metric']} {figure['measured']:.4g} {figure['simulated']:.4g} "
                f"{100 * relative(figure):+.1f}%")
    out += "\n" + (f"      {row['note']}\n" if row["note"] else "")
    if row["over_time"]:
        rates = " ".join(f"{rate:.3g}" for rate in row["over_time"])
        out += f"      passes/s over time: {rates}\n"
    return out


def rows_text(rows: Iterable[Row]) -> str:
    parts = []
    for (table, subject), group in itertools.groupby(
            rows, lambda row: (row["table"], row["subject"])):
        head = f"{table}: {subject} (measured, simulated, error)\n"
        parts.append(head + "".join(map(row_text, group)))
    return "\n".join(parts)


def summary_text(summaries: Iterable[Summary]) -> str:
    parts = []
    head = ["system", "metric", "role", "rows", "|error|", "bias", "worst", "aim"]
    for table, group in itertools.groupby(summaries, lambda summary: summary.table):
        cells = [summary.cells() for summary in group]
        parts.append(f"{table}\n{text_table([head, *cells], {0, 1, 2, 7}, '')}")
    return "\n".join(parts)


def unjudged_text(groups: Sequence[dict]) -> str:
    if not groups:
        return ""
    cells = [[group["table"], str(group["rows"]), group["outcome"], group["reason"]]
             for group in groups]
    return ("rows that are not judged\n" +
            text_table([["table", "rows", "", "why"], *cells], {0, 2, 3}, "") + "\n")


def orders_text(found: Sequence[dict]) -> str:
    out = "order of the systems\n" if found else ""
    for order in found:
        out += (f"{order['subject']}, {order['metric']}: {'right' if order['right'] else 'wrong'} "
                f"({order['concordant']} of {order['compared']} comparisons)\n")
        if not order["right"]:
            out += f"  measured:  {order['measured']}\n  simulated: {order['simulated']}\n"
    return out


def notes(tables: Sequence[dict], rows: Sequence[Row]) -> list[dict[str, Any]]:
    """For each table its setting, the devices of its rows, and what is not read of it."""
    out = []
    for table in tables:
        own = [row for row in rows if row["table"] == table["table"]]
        devices = dict.fromkeys(row["device"] for row in own if row["outcome"] != "stated")
        out.append({**table, "devices": list(devices) or [table["device"]],
                    "left_out": Counter(metric for row in own for metric in row["left_out"])})
    return out


def csv_text(rows: Iterable[Row]) -> str:
    """A line a figure, also of one that is blank or 0 in the table; a row that was not predicted
    has one line."""
    out = "table,role,subject,system,outcome,metric,measured,simulated,error,note\n"
    for row in rows:
        head = ",".join([csv_quoted(row["table"]), row["role"], csv_quoted(row["subject"]),
                         csv_quoted(row["system"]), row["outcome"]])
        note = csv_quoted(row["note"])
        if row["outcome"] != "predicted":
            out += f"{head},,,,,{note}\n"
            continue
        for figure in row["figures"]:
            numbers = figure["measured"], figure["simulated"], relative(figure)
            out += f"{head},{figure['metric']},{','.join(map(shortest, numbers))},{note}\n"
        out += "".join(f"{head},{metric},,,,blank or 0 in the table\n"
                       for metric in row["left_out"])
    return out


def row_json(row: Row) -> dict[str, Any]:
    out = {key: row[key] for key in ("table", "role", "subject", "system", "outcome")}
    if row["note"]:
        out["note"] = row["note"]
    if row["outcome"] == "predicted":
        out["figures"] = {figure["metric"]: {
            "measured": figure["measured"], "simulated": figure["simulated"],
            "error": relative(figure)} for figure in row["figures"]}
        if row["left_out"]:
            out["left_out"] = row["left_out"]
    return out


# ---- the command

def ablation_text(cells: Mapping[str, Sequence[Sequence[str]]]) -> str:
    """A line a mechanism, table, system and metric: rows, and errors with and without it."""
    head = ["table", "system", "metric", "rows", "|error|", "without"]
    return "\n".join(
        f"{name}; without it: {MECHANISMS[name].replacement}\n" +
        (text_table([head, *lines], {0, 1, 2}) if lines else "")
        for name, lines in cells.items())


def counted(summaries: Sequence[Summary]) -> dict[tuple, Summary]:
    """The rows marked judge of a metric that has both roles, else all its rows."""
    out = {}
    for summary in summaries:
        key = summary.table, summary.system, summary.metric
        if summary.role == "judge" or (summary.role == "all" and key not in out):
            out[key] = summary
    return out


def ablate(rows: list[Row], again: Callable[..., dict]) -> dict[str, list[list[str]]]:
    """Judges anew, without each mechanism, the rows that it touches. Only cells whose mean |error|
    moves by 0.1 points or more are told."""
    complete = counted(summarise(rows))
    out: dict[str, list[list[str]]] = {}
    for name, mechanism in MECHANISMS.items():
        touched = [at for at, row in enumerate(rows) if mechanism.touches(row)]
        changed = list(rows)
        if touched:
            anew = again(name, rows=touched, changes=mechanism.changes)["rows"]
            for at, row in zip(touched, anew, strict=True):
                changed[at] = row
        ablated = {(one.table, one.system, one.metric, one.role): one for one in
                   summarise(changed)}
        out[name] = []
        for key, cell in complete.items():
            same = ablated.get((*key, cell.role))
            if same is None or abs(same.errors.mean_absolute -
                                   cell.errors.mean_absolute) < LEAST_TOLD:
                continue
            out[name].append([*key, str(cell.errors.rows), *(
                f"{100 * one.errors.mean_absolute:.1f}%" for one in (cell, same))])
    return out


def changes_without(names: Iterable[str]) -> dict[str, float]:
    out: dict[str, float] = {}
    for name in names:
        if name not in MECHANISMS:
            raise Fault(f'unknown mechanism "{name}"; expected one of {", ".join(MECHANISMS)}',
                        place="--without")
        out |= MECHANISMS[name].changes
    return out


def window_of(text: str) -> int:
    window = 0
    try:
        window = bubblesim.parse_duration(text) if text else 0
    except (bubblesim.Error, ValueError):
        pass
    if text and window <= 0:
        raise Fault("expected a duration above 0, like 5s", "--over-time")
    return window


def judge(options: Namespace) -> int:
    tables = options.table or [path for name in FORMS
                               if os.path.exists(path := f"{options.dir}/{name}.csv")]
    if not tables:
        raise Fault("no table of sharing is in this folder", options.dir, "--dir")
    left_out = changes_without(options.without)
    if options.ablation and (options.csv is not None or options.json is not None):
        raise Fault("prints only; expected no --csv and no --json", place="--ablation")
    check_judged(options, "table,role,subject,", "{\n \"rows\": [", tables)

    def run(without: str = "", **more: Any) -> dict[str, Any]:
        changes = {**left_out, **more.pop("changes", {})}
        before = f"without {without}: " if without else ""
        return simulate(tables, setting=options.setting, systems=options.system, changes=changes,
                        window_ns=window_of(options.over_time), threads=options.jobs,
                        progress=options.progress(before), **more)

    judged = run()
    rows = judged["rows"]
    if not rows and options.system:
        raise Fault("no row of these systems", tables[0], "--system")
    if options.ablation:
        cells = ablate(rows, run)
        options.progress.clear()
        print(ablation_text(cells), end="")
        return 0
    options.progress.clear()
    summaries, found, groups = summarise(rows), orders(rows), unjudged(rows)
    write_file(options.csv, csv_text(rows))
    write_file(options.json, json_text({
        "rows": [row_json(row) for row in rows],
        "summary": [summary.json() for summary in summaries], "unjudged": groups,
        "order": found}, 1) + "\n")
    print(tables_text(notes(judged["tables"], rows)), end="")
    if not options.summary:
        print(rows_text(rows))
    print(f"{summary_text(summaries)}\n{unjudged_text(groups)}{orders_text(found)}", end="")
    return int(any(row["outcome"] == "failed" for row in rows))


def add_options(parser: ArgumentParser) -> None:
    parser.description = (
        "One GPU shared: pairs of jobs, processes of one model, time slices, MIG instances and SM "
        "caps, under each system of the tables. Rows that cannot be judged, such as those of a "
        "job without a workload, are counted with the reason. Exit code 1 if a row's simulation "
        "failed.")
    parser.add_argument("--dir", default="../shared/validation",
                        help="folder of the measured tables (%(default)s)")
    parser.add_argument("--table", action="append", default=[],
                        help="this table only: a CSV file with the columns of one of the folder's "
                        "(may be repeated)")
    parser.add_argument("--setting", default="",
                        help="a file of configs/validation: device, arrivals, policies of the "
                        "systems; by default that of the shipped table with the same columns")
    parser.add_argument("--system", action="append", default=[],
                        help="only rows of this system (may be repeated)")
    parser.add_argument("--without", action="append", default=[],
                        help="leave a mechanism of the model out (may be repeated): " +
                        ", ".join(MECHANISMS))
    parser.add_argument("--ablation", action="store_true",
                        help="mean errors with all mechanisms and without each, where they differ")
    parser.add_argument("--over-time", default="",
                        help="print, below each row, its client's passes a second in one window "
                        "of this length (such as 5s) after another")
    parser.add_argument("--jobs", type=threads, default=0, help="threads; 0: one a core")
