"""Tables of measurements as their sources write them: cells in which nothing was measured, counts,
devices by any of their names, jobs and batch sizes in words; and the settings of such tables."""
from __future__ import annotations

import functools
import json
import math
import os
import re
import string
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Callable, Iterable, Mapping, Sequence, TypeVar

from bubblesim import Error, _core, parse_duration
from bubblesim._table import escaped, failed, lines_of

T = TypeVar("T")
DEVICE_COLUMNS = ("gpu", "device")
SHOWN = 60  # characters of what a message shows of an input
NUMBER = re.compile(r"-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


def number_of(text: str) -> float | None:
    """The finite number that a text is from its first character to its last."""
    value = float(text) if NUMBER.fullmatch(text) else math.nan
    return value if math.isfinite(value) else None


def found(text: str) -> str:
    return f'"{escaped(text if len(text) <= SHOWN else text[:SHOWN] + "...")}"'


def first_message(fault: Error) -> str:
    return fault.faults[0].message


def gathered(read: Callable[[int], T], count: int) -> list[T]:
    """read(0), read(1), ...; their faults all at once."""
    out, faults = [], []
    for at in range(count):
        try:
            out.append(read(at))
        except Error as fault:
            faults += fault.faults
    if faults:
        raise failed(faults)
    return out


def spread(work: Callable[[T], Any], items: Sequence[T], threads: int) -> list[Any]:
    """work() of each, in their order."""
    with ThreadPoolExecutor(threads or os.cpu_count() or 1) as pool:
        return list(pool.map(work, items))


# ---- names of jobs, systems and devices. Letters and digits are ASCII's.

def _joined(gap: re.Match[str]) -> str:
    text = gap.string
    between = gap.start() > 0 and gap.end() < len(text)
    return "-" if between and (text[gap.start() - 1] + text[gap.end()]).isdigit() else ""


@functools.lru_cache(1 << 16)
def letters_of(name: str) -> str:
    """What of a name counts: its letters in lower case and its digits, with a dash between two
    numbers that follow each other. "Llama-2-7B" is not "Llama-27B"."""
    return re.sub("[^a-z0-9]+", _joined, name.translate(LOWER))


def _counts(text: str, at: int) -> bool:
    return 0 <= at < len(text) and text[at].isascii() and text[at].isalnum()


def goes_on(text: str, left: int, right: int) -> bool:
    """Whether a word or a number goes on from one position to another, with at most one character
    between them: "16", "1x", "1.5", "1,000", "Tiny-BERT"; not "2, 3"."""
    if not _counts(text, left) or not _counts(text, right):
        return False
    joint = text[left + 1:right]
    return not joint or joint in "-_./+" or (
        joint == "," and text[left].isdigit() and text[right].isdigit())


def _stands_alone(text: str, first: int, last: int) -> bool:
    return not any(goes_on(text, *ends) for ends in (
        (first - 1, first), (first - 2, first), (last, last + 1), (last, last + 2)))


def is_within(name: str, words: str) -> bool:
    """Whether a name is a part of `words` beside which no word and no number goes on: "batch 1" is
    in "net batch 1 (TensorRT)", but neither in "batch 16" nor in "batch 1.5"."""
    wanted, text = letters_of(name), ""
    places: list[int] = []  # in `words` of each of `text`; of a dash, of the number behind it
    for part in re.finditer("[a-z0-9]+", words.translate(LOWER)):
        if text and (text[-1] + part[0][0]).isdigit():
            text += "-"
            places.append(part.start())
        text += part[0]
        places += range(*part.span())
    at = text.find(wanted) if wanted else -1
    while at >= 0:
        if _stands_alone(words, places[at], places[at + len(wanted) - 1]):
            return True
        at = text.find(wanted, at + 1)
    return False


BATCH = re.compile(r"(?:batch(?:[ _-]*size)?|(?<![a-z0-9])(?:bsz|bs|b(?= *=)))[ =:_-]*([0-9]+)")
UNREAD_BATCH = re.compile(r"batch[^a-z0-9]*(?:size)?[^a-z0-9]*(?:of)?[^a-z0-9]*[0-9]")


def _batch_words(words: str) -> list[tuple[int, int, int]]:
    """Where batch sizes stand, and which: "batch 16", "batch-size 16", "bs16", "b=16". "b16" is
    none: models are called so."""
    text = words.translate(LOWER)
    return [(*hit.span(), int(hit[1])) for hit in BATCH.finditer(text)
            if 0 < int(hit[1]) < 2 ** 32 and not goes_on(text, hit.end() - 1, hit.end())
            and not goes_on(text, hit.end() - 1, hit.end() + 1)]


def _with_batches(words: str, written: Callable[[int], str]) -> str:
    out, at = "", 0
    for start, end, batch in _batch_words(words):
        out += words[at:start] + written(batch)
        at = end
    return out + words[at:]


@functools.lru_cache(1 << 16)
def batches_in(words: str) -> list[int]:
    """The different batch sizes in `words`, in their order."""
    return list(dict.fromkeys(batch for *_, batch in _batch_words(words)))


@functools.lru_cache(1 << 16)
def job_words(words: str) -> str:
    """With "batch N" in place of each batch size N, however it is written."""
    return _with_batches(words, "batch {}".format)


def job_letters(name: str) -> str:
    """The same for all ways to write a job's name."""
    return letters_of(job_words(name))


def at_batch(words: str, batch: int) -> str:
    return _with_batches(words, lambda _: f"batch {batch}")


def without_batch(words: str) -> str:
    return _with_batches(words, lambda _: "")


def has_unread_batch(words: str) -> bool:
    """Whether "batch" stands before a number that is no batch size: "batch of 3", "batch 1.5"."""
    return bool(UNREAD_BATCH.search(without_batch(words).translate(LOWER)))


# ---- tables

class Table:
    """A CSV file; rows by their number, cells by their column. Columns that are not there are
    blank."""

    def __init__(self, path: str, first_counts: bool = False) -> None:
        self.path, self.name = path, Path(path).stem
        lines = list(lines_of(path))
        if not lines:
            raise failed([(path, "", "is empty; expected a header and rows")])
        (line, self.columns), *rows = lines
        faults = [] if first_counts else self._repeated(line)
        faults += [(path, f"line {line}", f"found {len(cells)} cells; expected "
                                          f"{len(self.columns)}, as in the header")
                   for line, cells in rows if len(cells) != len(self.columns)]
        if faults or not rows:
            raise failed(faults[:1] or [(path, "", "found no row below the header")])
        self.lines = [line for line, _ in rows]
        self.rows = [dict(zip(reversed(self.columns), reversed(cells))) for _, cells in rows]

    def _repeated(self, line: int) -> list[tuple[str, str, str]]:
        """Columns without a name, as spreadsheets leave them, may be several."""
        return [(self.path, f"line {line}", f"columns {self.columns.index(name) + 1} and {at + 1} "
                                            f"are both named {found(name)}; expected each name "
                                            "once")
                for at, name in enumerate(self.columns)
                if name and self.columns.index(name) < at]

    def __len__(self) -> int:
        return len(self.rows)

    def expect(self, columns: Iterable[str]) -> None:
        absent = [column for column in columns if column not in self.columns]
        if absent:
            raise failed([(self.path, "line 1", f"no column {found(column)}")
                          for column in absent])

    def besides(self, read: Iterable[str]) -> list[str]:
        """Columns that are none of these."""
        known = set(read)
        return [column for column in self.columns if column not in known]

    def optional(self, names: Sequence[str]) -> str:
        """The first of these that the table has, as it writes it; empty: none."""
        return next((column for name in names for column in self.columns
                     if letters_of(column) == name), "")

    @functools.cached_property
    def device_column(self) -> str:
        return self.optional(DEVICE_COLUMNS)


class Cells:
    """A row of a table. What keeps it from being predicted, the first reason, is its `note`."""

    def __init__(self, table: Table, at: int) -> None:
        self.table, self.at, self.note = table, at, ""
        self.place = f"line {table.lines[at]}"

    def state(self, reason: str) -> None:
        self.note = self.note or reason

    def text(self, column: str) -> str:
        return self.table.rows[self.at].get(column, "")

    def fault(self, column: str, expected: str) -> Error:
        return failed([(self.table.path, self.place,
                        f"{column}: found {found(self.text(column))}; expected {expected}")])

    def figure(self, column: str) -> float | None:
        return number_of(self.text(column))

    def number(self, column: str) -> float | None:
        """Nothing if blank."""
        value = self.figure(column)
        if value is None and self.text(column):
            raise self.fault(column, "a number")
        return value

    def measured(self, column: str) -> float | None:
        """Nothing if the cell is blank or 0: then nothing was measured."""
        value = self.figure(column)
        if self.text(column) and (value is None or value < 0):
            raise self.fault(column, "a number above 0")
        return value or None

    def needed(self, column: str) -> float:
        """A figure without which the row is stated; then 1."""
        value = self.measured(column)
        if value is None:
            self.state(f"nothing is measured in {column} (blank or 0)")
        return 1.0 if value is None else value

    def count(self, column: str, most: int) -> int:
        """A whole number; of a row that has another number or none, which is stated, 1."""
        value, expected = self.figure(column), f"a whole number from 1 to {most}"
        if value is None and self.text(column):
            raise self.fault(column, expected)
        if value is not None and 1 <= value <= most and value == int(value):
            return int(value)
        self.state(f"{column}: found \"{self.text(column)}\"; expected {expected}")
        return 1

    def shown(self, column: str, count: int) -> str:
        """A count as its row is called by it: the number that was read, else the cell as it is."""
        return str(count) if self.figure(column) == count else self.text(column)

    def key(self, *columns: str) -> tuple[float | str, ...]:
        """Equal for rows that have the same numbers, or else the same names, in these."""
        return tuple(job_letters(self.text(column)) if (value := self.figure(column)) is None
                     else value for column in columns)

    @property
    def role(self) -> str:
        """Rows that name none judge."""
        role = self.text("role") or "judge"
        if role not in ("fit", "judge"):
            raise self.fault("role", '"fit" or "judge"')
        return role

    def device(self, names: Mapping[str, str]) -> str:
        """The file of the device that the row names; empty: none, or no file stands for it."""
        called = self.text(self.table.device_column)
        out = names.get(letters_of(called), "") if called else ""
        if called and not out:
            self.state(f"no device file stands for {called}")
        return out


def device_names(named: Mapping[str, str]) -> dict[str, str]:
    """Files of configs/devices by the letters of what tables call them: as a setting says, then
    ids and recorded names of the files."""
    out: dict[str, str] = {}
    for name in sorted(named):
        out.setdefault(letters_of(name), named[name])
    for device, recorded in _core.device_names():
        for name in (*recorded, device):
            out.setdefault(letters_of(name), device)
    return out


# ---- settings: configs/validation

def find_setting(name: str) -> Fields:
    """`name`: a path, else the id of a file in configs/validation."""
    path = Path(name)
    if "/" not in name and not name.endswith(".json"):
        folder = Path(_core.config_folder(), "validation")
        path = folder / f"{name}.json"
        if not path.is_file():
            known = sorted(each.stem for each in folder.glob("*.json"))
            raise failed([("", "", f"unknown setting {found(name)}; known: {', '.join(known)}")])
    try:
        root = json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=_distinct)
    except (OSError, ValueError, RecursionError) as fault:
        why = getattr(fault, "strerror", None) or str(fault)
        raise failed([(str(path), "", f"cannot be read: {why}")]) from None
    return Fields(str(path), root, "", [])


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) < len(pairs):
        raise ValueError(f"a key is there twice: {', '.join(key for key, _ in pairs)}")
    return out


class Fields:
    """An object of a setting, read key by key. finish() raises its faults, unread keys
    among them."""

    def __init__(self, path: str, root: Any, place: str, faults: list) -> None:
        self.path, self._place, self.faults, self._read = path, place, faults, set()
        self.root = root if isinstance(root, dict) else {}
        if not isinstance(root, dict):
            self.fault("", "an object")

    def fault(self, key: str, expected: str) -> None:
        place = f"{self._place}/{key}" if key else self._place
        self.faults.append((self.path, place, f"expected {expected}"))

    def get(self, key: str, default: Any, fits: Callable[[Any], bool], expected: str) -> Any:
        """Without a default, which is not None, the key has to be there."""
        self._read.add(key)
        value = self.root.get(key, default)
        if key not in self.root and default is not None or fits(value):
            return value
        self.fault(key, expected)
        return default

    def text(self, key: str, default: str | None = None) -> str:
        return self.get(key, default, lambda value: isinstance(value, str), "a text") or ""

    def texts(self, key: str) -> list[str]:
        return self.get(key, [], lambda value: isinstance(value, list) and all(
            isinstance(each, str) for each in value), "a list of texts")

    def number(self, key: str, least: float, most: float, default: float | None = None,
               whole: bool = False) -> Any:
        def fits(value: Any) -> bool:
            return isinstance(value, (int, float)) and not isinstance(value, bool) and (
                least <= value <= most) and (not whole or value == int(value))
        name = "a whole number" if whole else "a number"
        value = self.get(key, default, fits, f"{name} from {least} to {most}") or 0
        return int(value) if whole else value

    def duration(self, key: str, least: int = 0, default: int | None = None) -> int:
        """In nanoseconds."""
        def fits(value: Any) -> bool:
            try:
                return parse_duration(value) >= least
            except (Error, TypeError, ValueError):
                return False
        value = self.get(key, default, fits, f"a duration of at least {least} ns, as \"1ms\"")
        return parse_duration(value) if isinstance(value, str) and fits(value) else value or 0

    def scalars(self, key: str) -> dict[str, Any]:
        return self.get(key, {}, lambda value: isinstance(value, dict) and all(
            isinstance(each, (bool, int, float, str)) for each in value.values()),
            "an object of flags, numbers and texts")

    def child(self, key: str, default: Any = None) -> Fields:
        self._read.add(key)
        return Fields(self.path, self.root.get(key, default), f"{self._place}/{key}", self.faults)

    def children(self, key: str, default: list | None = None) -> list[Fields]:
        objects = self.get(key, default, lambda value: isinstance(value, list), "a list") or []
        return [Fields(self.path, each, f"{self._place}/{key}/{at}", self.faults)
                for at, each in enumerate(objects)]

    def finish(self, *parts: Fields) -> None:
        for fields in (self, *parts):
            for key in fields.root.keys() - fields._read:
                fields.fault(key, "no such key; known: " + ", ".join(sorted(fields._read)))
        if self.faults:
            raise failed(self.faults)
