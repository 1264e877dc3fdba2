"""Measured all-reduce times inside of a node: tables as nccl-tests and vTrain write them, one row a
message size. Columns are found by name; of columns of one name the first counts (nccl-tests: out of
place)."""
from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bubblesim._table import failed

from .report import half_away
from .table import Cells, Table

FOLDER = "VIA-Research+vTrain/trace/a100"
SIZE = "size(B)"
TIMES = {"time(ns)": 1.0, "time(us)": 1e3, "time(ms)": 1e6}
MOST_GPUS, MOST_BYTES, MOST_NS = 1024, 1e15, 1e15
FITTED_GPUS = (2, 4, 8)


@dataclass(frozen=True)
class AllReduces:
    path: str
    gpus: int            # of one node; at least 2
    sizes: list[int]     # bytes of the whole array, ascending
    measured: list[int]  # ns

    @property
    def fitted(self) -> list[bool]:
        """Which rows take part in a fit."""
        return [self.gpus in FITTED_GPUS and at % 2 == 0 for at in range(len(self.sizes))]

    def simulated(self, cluster: Any) -> list[int]:
        """Rings on one node of a cluster (of _core), ns."""
        if self.gpus > cluster.gpus_per_node:
            raise failed([(self.path, "", f"found {self.gpus} GPUs; expected at most a node of the "
                                          f"cluster, {cluster.gpus_per_node}")])
        return cluster.ring_times(self.gpus, self.sizes)


def read_table(path: str, gpus: int) -> AllReduces:
    table = Table(path, first_counts=True)
    column = next((name for name in TIMES if name in table.columns), "")
    if SIZE not in table.columns or not column:
        raise failed([(path, "line 1", f"expected columns {SIZE} and one of {', '.join(TIMES)}")])
    out = AllReduces(path, gpus, [], [])
    for at in range(len(table)):
        cells = Cells(table, at)
        size, time = cells.figure(SIZE) or 0, (cells.figure(column) or 0) * TIMES[column]
        if not 1 <= size <= MOST_BYTES or not 1 <= time <= MOST_NS:
            raise cells.fault(SIZE, "a size from 1 byte and a time from 1 ns")
        if out.sizes and int(size) <= out.sizes[-1]:
            raise cells.fault(SIZE, "ascending sizes")
        out.sizes.append(int(size))
        out.measured.append(half_away(time))
    return out


def read_folder(data: str) -> list[AllReduces]:
    """Every file whose name says for how many GPUs it is ("AR_GPU8_1M_1024M_LUT"), ascending by
    GPUs."""
    folder = Path(data, FOLDER)
    try:
        names = [path.name for path in folder.iterdir()]
    except OSError as fault:
        raise failed([(str(folder), "", f"cannot be read: {fault.strerror}")]) from None
    found = [(int(gpus[1]), str(folder / name)) for name in names
             if (gpus := re.match(r".*?GPU(\d{1,9})", name, re.ASCII))
             and 2 <= int(gpus[1]) <= MOST_GPUS]
    if not found:
        raise failed([(str(folder), "", "found no all-reduce table; expected names such as "
                                        "AR_GPU8_1M_1024M")])
    return [read_table(path, gpus) for gpus, path in sorted(found)]
