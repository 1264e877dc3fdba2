"""Config files whose constants a fit reads, tries and writes: what is not fitted stays as it is."""
import json
import math
import re
import tempfile
from pathlib import Path

from bubblesim import Error, _core, parse_duration
from bubblesim._table import failed, table_text

PROTOCOLS = ["LL", "LL128", "Simple"]
KIB = {"B": 1 / 1024, "KB": 1000 / 1024, "KiB": 1.0, "MB": 1e6 / 1024, "MiB": 1024.0}


class ConfigFile:
    """A JSON file of constants with units and sources. A path such as "collectives/ring_hop/Simple"
    names one; the last word may be a protocol, the place in a list."""

    def __init__(self, path):
        self.path = Path(path)
        try:
            self.root = json.loads(self.path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as fault:
            raise failed([(str(path), "", f"cannot be read: {fault}")]) from None
        if not isinstance(self.root, dict):
            raise failed([(str(path), "", "expected a JSON object")])

    def _place(self, path):
        at, index, words = self.root, None, path.split("/")
        if words[-1] in PROTOCOLS:
            index = PROTOCOLS.index(words.pop())
        for word in words:
            at = at.setdefault(word, {})
        return at, index

    def value(self, path, unit):
        """The constant as a number of `unit`."""
        value = None
        try:
            at, index = self._place(path)
            value = at["value"] if index is None else at["value"][index]
            number = self._number(value, unit)
        except (Error, AttributeError, IndexError, KeyError, TypeError, ValueError):
            number = math.nan
        if not math.isfinite(number):
            raise failed([(str(self.path), f"/{path}", f"found {json.dumps(value)}; expected "
                           f"\"value\" with a constant in {unit} or another unit of its kind")])
        return number

    @staticmethod
    def _number(value, unit):
        if unit in ("us", "ns"):
            return parse_duration(value) / (1e3 if unit == "us" else 1)
        if unit == "GB/s":
            return float(value.removesuffix(unit))
        if unit == "KiB":
            number, suffix = re.fullmatch(r"([\d.]+)(\w+)", value).groups()
            return float(number) * KIB[suffix]
        return float(value)

    def put(self, path, value, source=None):
        """`value`: as the file spells it. The source of a list names what was not fitted, too."""
        at, index = self._place(path)
        if index is None:
            at["value"] = value
        else:
            at["value"][index] = value
        if source is not None:
            old = at.get("source", "")
            if index is None:
                at["source"] = source
            elif not old.startswith("fitted: "):
                at["source"] = f"{source}; others: {old}"

    def read(self, reader):
        """What reader() makes of a file with the constants as put."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / self.path.name
            path.write_text(json.dumps(self.root), encoding="utf-8")
            return reader(str(path))

    def text(self):
        return json.dumps(self.root, indent=2, ensure_ascii=False) + "\n"


def exact(value, unit):
    """A value as the simulator reads it, whole nanoseconds and bytes."""
    if unit == "us":
        return f"{int(value * 1e3 + 0.5)}ns"
    if unit == "KiB":
        return f"{int(value * 1024 + 0.5)}B"
    return f"{value!r}GB/s" if unit == "GB/s" else value


def spelled(value, unit):
    """A fitted value as config files have it, to four digits."""
    if unit in ("us", "GB/s"):
        return f"{value:.4g}{unit}"
    return exact(value, unit) if unit == "KiB" else json.loads(f"{value:.4g}")


def constants_text(rows):
    """The table that every fit prints; rows: (constant, unit, start, fitted)."""
    return table_text(["constant", "unit", "start", "fitted"], {2, 3}, [
        [name, unit, *(one if isinstance(one, str) else f"{one:.4g}" for one in values)]
        for name, unit, *values in rows])


def find(kind, name):
    """The path of configs/KIND/NAME.json; NAME may be a path."""
    path = Path(name if "/" in name or name.endswith(".json") else
                f"{_core.config_folder()}/{kind}/{name}.json")
    if not path.is_file():
        known = sorted(each.stem for each in Path(_core.config_folder(), kind).glob("*.json"))
        raise failed([(str(path), "", f"there is no such file; known: {', '.join(known)}")])
    return path


__all__ = ["ConfigFile", "Error", "constants_text", "exact", "failed", "find", "spelled",
           "table_text"]
