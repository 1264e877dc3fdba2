"""Tables: CSV files read row by row, and text laid out in columns."""
import csv
import difflib
import io
import math

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


class Rows:
    """The rows of a table, as dicts whose "place" is their line; what is wrong with them is
    gathered in `faults`. Columns that nobody reads and rows of another length are faults."""

    def __init__(self, path, columns, required):
        self.file, self.faults, self._names = path, [], set()
        lines = list(self._lines())
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

    def _lines(self):
        try:
            with open(self.file, encoding="utf-8-sig", newline="") as file:
                reader = csv.reader(io.StringIO(file.read(), newline=""))
            line = 1
            for cells in reader:
                cells = [cell.strip() for cell in cells]
                if any(cells) or len(cells) > 1:
                    yield line, cells
                line = reader.line_num + 1
        except (OSError, UnicodeDecodeError, csv.Error) as fault:
            why = getattr(fault, "strerror", None) or str(fault)
            raise failed([(self.file, "", f"cannot be read: {why}; expected a CSV file")]) from None

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
