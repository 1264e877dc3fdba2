"""What commands in Python share: CSV files read row by row, text laid out in columns, arguments,
output files, and how a command ends."""
import argparse
import contextlib
import csv
import difflib
import gzip
import io
import math
import os
import re
import signal
import sys
import threading
import time
import zlib
from pathlib import Path

from . import _core

FORCE_HELP = "replace files that are there, and that bubblesim did not make"
MOST_IN_CELL = 1e12
MOST_THREADS = 4096
LOOKED_AT = 65536      # bytes at a file's beginning that say who made it
GRACE_S = 1            # for a command that is asked to end, before it is made to
STOPPED, CLOSED_PIPE = 130, 141  # as shells say of SIGINT and SIGPIPE


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


def read_packed(path, errors="strict"):
    """The text of a file, unpacked if its content is gzip."""
    try:
        data = Path(path).read_bytes()
        return (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode("utf-8-sig",
                                                                                   errors)
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


def header_faults(path, header, required):
    twice = sorted({column for column in header if column in required and header.count(column) > 1})
    return [*((path, "line 1", f"found column \"{column}\" twice") for column in twice),
            *((path, "line 1", f"no column \"{column}\"")
              for column in required if column not in header)]


def rows_below_header(path):
    """The header of a CSV file; its rows as dicts by column, "place" being their line; what is wrong
    with their number and lengths. Raises the fault of a file without a header."""
    lines, path = list(lines_of(path)), str(path)
    if not lines:
        raise failed([(path, "", "is empty; expected a header and rows")])
    (_, header), *rows = lines
    faults = [(path, f"line {line}", f"found {len(cells)} cells; expected {len(header)}, as in the "
                                     "header")
              for line, cells in rows if len(cells) != len(header)]
    if not rows:
        faults.append((path, "", "found no row below the header"))
    return header, [{**dict(zip(header, cells)), "place": f"line {line}"}
                    for line, cells in rows], faults


def dict_rows(path, required):
    """The rows of a CSV file as dicts by column, "place" being their line."""
    header, rows, faults = rows_below_header(path)
    faults = header_faults(str(path), header, required) + faults
    if faults:
        raise failed(faults)
    return rows


class Rows:
    """The rows of a table, as dicts whose "place" is their line; `faults`
    gathers what is wrong. Columns that are not read and rows of another length are faults."""

    def __init__(self, path, columns, required):
        self.file, self.faults, self._names = path, [], set()
        header, self.rows, faults = rows_below_header(path)
        self._check_header(header, columns, required)
        self.faults += faults
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
        self.faults += header_faults(self.file, header, [
            column for column in columns if column in required or column in header])

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
        if value is None or not 0 < value <= MOST_IN_CELL or whole and value != int(value):
            self.fault(row, column, "a whole number from 1 to 1e12" if whole else
                       "a number above 0, at most 1e12")
            return 1
        return int(value) if whole else value


def table_text(headings, right, rows, indent=""):
    """Columns as wide as their widest cell, two spaces apart; `right`: those that stand right."""
    rows = [headings, *rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(headings))]
    return "".join(indent + "  ".join(
        cell.rjust(width) if i in right else cell.ljust(width)
        for i, (cell, width) in enumerate(zip(row, widths))).rstrip(" ") + "\n" for row in rows)


def escaped(text):
    """Control characters as \\xNN: they would end lines or move the cursor."""
    return re.sub(r"[\x00-\x1f\x7f]", lambda found: f"\\x{ord(found[0]):02x}", text)


# ---- arguments

class Parser(argparse.ArgumentParser):
    """Whose faults are one line; no abbreviations."""

    def __init__(self, **options):
        super().__init__(**{"allow_abbrev": False, **options})

    def error(self, message):
        self.exit(2, f"{self.prog}: {escaped(message)}; --help says more\n")


def number_from(least, most, whole=False):
    """The type of an argument that is a number in this range."""
    def read(text):
        value = number_of(text)
        if value is None or not least <= value <= most or whole and value != int(value):
            kind = "whole number" if whole else "number"
            raise argparse.ArgumentTypeError(f"found {text}, expected a {kind} from {least} to "
                                             f"{most}")
        return int(value) if whole else value
    return read


threads = number_from(0, MOST_THREADS, whole=True)


def names(text):
    """An argument: at least one word, each once, comma-separated."""
    found = [word.strip() for word in text.split(",") if word.strip()]
    if not found or len(set(found)) < len(found):
        raise argparse.ArgumentTypeError(f"found \"{text}\", expected words, each once, with "
                                         "commas between")
    return found


# ---- output files

def _is_read(path, inputs):
    """Whether an existing file is one of these, or lies in a folder that is one of these."""
    real = Path(os.path.realpath(path))
    return any(Path(os.path.realpath(each)) in real.parents if os.path.isdir(each)
               else os.path.exists(each) and os.path.samefile(path, each) for each in inputs)


def _output_fault(path, mark, inputs, force):
    if not path:
        return "found no name; expected that of a file"
    if os.path.isdir(path):
        return "found a folder; expected a file to write to"
    folder = Path(os.path.realpath(path)).parent
    while not folder.exists():
        folder = folder.parent
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        return f"cannot be written: {folder} is no folder that this user may write to"
    if not os.path.isfile(path):
        return ""
    if _is_read(path, inputs):
        return ("found a file that this command reads, which it would overwrite; expected another "
                "name")
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            head = file.read(LOOKED_AT)
    except OSError as fault:
        return f"cannot be read: {fault.strerror}"
    if head and not (force or mark in head):
        return ("is there already, and bubblesim did not make it; expected another name, or "
                "--force to replace it")
    return ""


def check_outputs(outputs, inputs, force):
    """Raises the faults of files that a command is to write, before it has done its work. outputs:
    (option, path or None, text that such a file has near its beginning); inputs: files and folders
    that are read."""
    faults, known = [], {}
    for option, path, mark in outputs:
        if path is None:
            continue
        why = _output_fault(path, mark, inputs, force)
        other = known.setdefault(os.path.realpath(path), option)
        if not why and other != option:
            why = f"is the file of {other}, too; expected another name"
        if why:
            faults.append((path or option, "", why))
    if faults:
        raise failed(faults)


def write_file(path, text):
    """Writes PATH.partial anew and renames it, so that PATH is whole or as it was; what is no regular
    file, such as a pipe, is written to as it is. None: no file was asked for."""
    if path is None:
        return
    straight = os.path.exists(path) and not os.path.isfile(path)
    target = path if straight else os.path.realpath(path)
    partial = path if straight else f"{target}.partial"
    try:
        os.makedirs(os.path.dirname(target) or ".", exist_ok=True)
        try:
            if not straight:  # through no link that lies there
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(partial)
            with open(partial, "w" if straight else "x", encoding="utf-8",
                      errors="surrogateescape") as file:
                file.write(text)
            if not straight:
                os.replace(partial, target)
        except BaseException:
            if not straight:
                with contextlib.suppress(OSError):
                    os.unlink(partial)
            raise
    except OSError as fault:
        raise failed([(str(path), "", f"cannot be written: {fault.strerror}")]) from None


# ---- the end of a command

def _write_no_more():
    """After standard output has failed: what Python still holds must not fail again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def ended(program, work):
    """The exit code of work(); its faults are told on standard error, a line each."""
    if sys.stdout is None:
        text = "standard output: could not be written whole: it is closed"
        print(f"{program}: {text}", file=sys.stderr or open(os.devnull, "w", encoding="utf-8"))
        return 2
    if hasattr(sys.stdout, "reconfigure"):  # names of files need not be text
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        try:
            return work()
        finally:
            sys.stdout.flush()
    except KeyboardInterrupt:
        code, text = STOPPED, "stopped"
    except BrokenPipeError:  # the reader, such as head, has read enough
        _write_no_more()
        return CLOSED_PIPE
    except _core.Error as fault:
        code, text = 2, str(fault)
    except ModuleNotFoundError as absent:
        code, text = 2, (f"needs {absent.name}, which is not installed for this Python (Debian: "
                         f"python3-{absent.name})")
    except ImportError as absent:
        code, text = 2, str(absent)
    except OSError as fault:
        if fault.filename is None:
            _write_no_more()
        code, text = 2, (f"{fault.filename or 'standard output: could not be written whole'}: "
                         f"{fault.strerror}")
    for line in text.split("\n"):
        print(f"{program}: {escaped(line)}", file=sys.stderr)
    return code


def end_on_signals():
    """Ctrl-C and SIGTERM end the process with 130: at once in Python, and after a grace where
    compiled code runs, which does not look."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)

    def wait():
        os.read(read, 1)
        time.sleep(GRACE_S)
        os._exit(STOPPED)
    threading.Thread(target=wait, daemon=True).start()
