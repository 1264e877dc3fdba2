"""What all judges have in common: faults of inputs, errors summed up, text in aligned columns, CSV
cells, output files."""
from __future__ import annotations

import json
import math
import re
import shutil
import sys
from argparse import ArgumentParser, Namespace
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Iterable, Sequence

from bubblesim import Error
from bubblesim._table import FORCE_HELP, check_outputs, escaped, read_packed, table_text


class Fault(Error):
    """A fault of the input: file, place in it, and what was found and expected."""

    def __init__(self, message: str, file: object = "", place: str = "") -> None:
        super().__init__(": ".join(part for part in (str(file), place, message) if part))


def read_text(path: object) -> str:
    """Unpacked, if its content is gzip."""
    return read_packed(str(path), errors="replace")


def add_outputs(parser: ArgumentParser) -> None:
    parser.add_argument("--json", help="write everything as JSON here")
    parser.add_argument("--csv", help="write every figure here")
    parser.add_argument("--force", action="store_true", help=FORCE_HELP)


def check_judged(options: Namespace, csv: str, json_file: str, inputs: Iterable[str],
                 *more: tuple[str, str | None, str]) -> None:
    """Refuses outputs before anything is simulated. `csv`, `json_file`: how such files begin."""
    check_outputs([("--csv", options.csv, csv), ("--json", options.json, json_file), *more],
                  [path for path in inputs if path], options.force)


@dataclass(frozen=True)
class Errors:
    """What many errors come to, in whichever unit. All zero where there is none."""
    rows: int
    mean_absolute: float
    bias: float
    worst: float       # of the largest magnitude, with its sign
    worst_label: str   # of the first error that is so large

    @classmethod
    def of(cls, labelled: Sequence[tuple[float, str]]) -> Errors:
        if not labelled:
            return cls(0, 0.0, 0.0, 0.0, "")
        rows = len(labelled)
        worst, label = max(labelled, key=lambda error: abs(error[0]))
        return cls(rows, sum(abs(error) for error, _ in labelled) / rows,
                   sum(error for error, _ in labelled) / rows, worst, label)


def quantile(ascending: list[float], percent: int) -> float:
    place = percent / 100 * (len(ascending) - 1)
    below, above = ascending[math.floor(place)], ascending[math.ceil(place)]
    return below + place % 1 * (above - below)


def half_away(value: float) -> int:
    """The nearest whole number, halves away from zero."""
    down = math.floor(abs(value))
    return int(math.copysign(down + (abs(value) - down >= 0.5), value))


def text_table(rows: Sequence[Sequence[str]], left: Iterable[int], indent: str = "  ") -> str:
    """Columns two spaces apart, headings first; those in `left` stand left, the others right."""
    head, *rest = [[escaped(cell) for cell in row] for row in rows]
    return table_text(head, set(range(len(head))) - set(left), rest, indent)


def csv_quoted(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"'


def csv_cell(cell: str) -> str:
    """In quotes if the text has a comma, a quote or a line end."""
    return csv_quoted(cell) if re.search(r'[,"\r\n]', cell) else cell


def json_text(value: Any, indent: int | None = None) -> str:
    separators = (",", ":") if indent is None else None
    return json.dumps(value, indent=indent, separators=separators, ensure_ascii=False)


def shortest(value: float) -> str:
    """The shortest text that reads back as the number; a whole one has no point."""
    return repr(float(value)).removesuffix(".0")


def tables_text(notes: Sequence[dict[str, Any]]) -> str:
    """The setting and devices of each table, columns that are not read, and figures left out."""
    out = "tables\n" if notes else ""
    for note in notes:
        out += f"{note['table']}: setting {note['setting']}, device {', '.join(note['devices'])}\n"
        if note["unread"]:
            out += f"  columns that are not read: {', '.join(note['unread'])}\n"
        if note.get("of_a_formula"):
            out += (f"  not measured: {note['of_a_formula']} rows follow a formula to 1e-9; errors "
                    "are distances to another simulator\n")
        for metric, rows in sorted(note.get("left_out", {}).items()):
            out += f"  blank or 0 and left out: {metric} in {rows} rows\n"
    return out + ("\n" if notes else "")


class Progress:
    """One line of a terminal that says what is simulated; nothing elsewhere."""

    def __init__(self) -> None:
        self.shown = sys.stderr.isatty()

    def __call__(self, before: str = "") -> Callable[[str], None] | None:
        width = shutil.get_terminal_size().columns - 1

        def tell(text: str) -> None:
            print(f"\r\x1b[K{escaped(before + text)[:width]}", end="", file=sys.stderr, flush=True)
        return tell if self.shown else None

    def clear(self) -> None:
        if self.shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
