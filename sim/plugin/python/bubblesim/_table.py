"""Tables: CSV files read row by row, and text laid out in columns."""
import csv
import difflib
import gzip
import io
import json
import math
import zlib
from pathlib import Path

from . import _core


def failed(faults):
    """The exception of these faults, (file, place, message) each."""
    texts = [": ".join(part for part in fault if part) for fault in faults]
    error = _core.Error("\n".join(texts))
    error.faults = [_core.Fault(*fault) for fault in faults]
    return error


def number_of(text):
    """The finite number that a cell holds, or None."""
    try:
        value = math.nan if "_" in text else float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def read_packed(path):
    """The text of a file, unpacked if its content is gzip."""
    try:
        data = Path(path).read_bytes()
        return (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode("utf-8-sig")
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as fault:
        why = getattr(fault, "strerror", None) or str(fault)
        raise failed([(str(path), "", f"cannot be read: {why}")]) from None


def lines_of(path):
    """The line and the cells of each row of a CSV file, the header's first."""
    reader, line = csv.reader(io.StringIO(read_packed(path), newline="")), 1
    try:
        for cells in reader:
            cells = [cell.strip() for cell in cells]
            if any(cells) or len(cells) > 1:
                yield line, cells
            line = reader.line_num + 1
    except csv.Error as fault:
        raise failed([(str(path), f"line {line}", f"is not CSV: {fault}")]) from None


def dict_rows(path, required):
    """The rows of a CSV file as dicts by column, "place" being their line."""
    lines = list(lines_of(path))
    header = lines[0][1] if lines else []
    faults = [(str(path), "line 1", f"no column \"{column}\"")
              for column in required if column not in header]
    faults += [(str(path), f"line {line}", f"found {len(cells)} cells; expected {len(header)}, as in "
                                           "the header")
               for line, cells in lines if len(cells) != len(header)]
    if faults or len(lines) < 2:
        raise failed(faults or [(str(path), "", "found no row below the header")])
    return [{**dict(zip(header, cells)), "place": f"line {line}"} for line, cells in lines[1:]]


class Rows:
    """The rows of a table, as dicts whose "place" is their line; what is wrong with them is
    gathered in `faults`. Columns that nobody reads and rows of another length are faults."""

    def __init__(self, path, columns, required):
        self.file, self.faults, self._names = path, [], set()
        lines = list(lines_of(path))
        if not lines:
            raise failed([(path, "", "is empty; expected a header and rows")])
        (_, header), *rows = lines
        self._check_header(header, columns, required)
        self.rows = [self._row(header, line, cells) for line, cells in rows]
        if not rows:
            self.faults.append((path, "", "found no row below the header"))
        self.check()

    def __iter__(self):
        return iter(self.rows)

    def check(self):
        if self.faults:
            raise failed(self.faults)

    def _check_header(self, header, columns, required):
        for column in header:
            if column in columns:
                continue
            near = difflib.get_close_matches(column, columns, 1)
            hint = f"; did you mean \"{near[0]}\"? Known: " if near else "; known: "
            self.faults.append((self.file, "header",
                                f"unknown column \"{column}\"{hint}{', '.join(columns)}"))
        for column in {column for column in header if header.count(column) > 1}:
            self.faults.append((self.file, "header", f"found column \"{column}\" twice"))
        for column in required:
            if column not in header:
                self.faults.append((self.file, "line 1", f"no column \"{column}\""))

    def _row(self, header, line, cells):
        place = f"line {line}"
        if len(cells) != len(header):
            self.faults.append((self.file, place, f"found {len(cells)} cells; expected "
                                                  f"{len(header)}, as in the header"))
        return {**dict(zip(header, cells)), "place": place}

    def fault(self, row, column, expected):
        self.faults.append((self.file, row["place"], f"{column}: found \"{row.get(column, '')}\"; "
                                                     f"expected {expected}"))

    def name(self, row, column):
        """A cell that no other row has."""
        name = row.get(column, "")
        if not name or name in self._names:
            self.fault(row, column, "a name of its own")
        self._names.add(name)
        return name

    def above_zero(self, row, column, default=None, whole=False):
        text = row.get(column, "")
        if not text:
            return default
        value = number_of(text)
        if value is None or value <= 0 or whole and value != int(value):
            self.fault(row, column, "a whole number from 1 on" if whole else "a number above 0")
            return 1
        return int(value) if whole else value


def table_text(headings, right, rows, indent=""):
    """Columns as wide as their widest cell, two spaces apart; `right`: those that stand right."""
    rows = [headings, *rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(headings))]
    return "".join(indent + "  ".join(
        cell.rjust(width) if i in right else cell.ljust(width)
        for i, (cell, width) in enumerate(zip(row, widths))).rstrip(" ") + "\n" for row in rows)


def write_new(path, document):
    """Writes a document as compact JSON, over nothing but another of its format."""
    path = Path(path)
    head = f"{{\"format\":\"{document['format']}\""
    try:
        if path.exists():
            with open(path, encoding="utf-8", errors="replace") as file:
                if file.read(len(head)) not in ("", head):
                    raise failed([("--output", "", f"found {path}, which is not of the format "
                                                   f"{document['format']}; expected another file")])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(document, separators=(",", ":"), ensure_ascii=False) + "\n",
                        encoding="utf-8")
    except OSError as fault:
        raise failed([(str(path), "", f"cannot be written: {fault.strerror}")]) from None
