"""docs/sharing.md against the program: its table of errors with and without each mechanism, on a
part of the rows and in shorter runs; how TGS's limit moves, against XSched's logs. Arguments:
TABLES DATA.
"""
from __future__ import annotations

import functools
import gzip
import re
import sys
import unittest
from pathlib import Path
from statistics import mean

import short_sharing
from lab import sharing

LOGS = Path(sys.argv[2]) / "XpuOS+xsched-artifacts/results/fig11/raw"
WINDOW_S = 10
BOTH_RUN = 5 * 3600 + 25 * 60 + 37.6  # both jobs run from 5:25:37.6 on


def stated_figures() -> list[tuple[str, str, str, str, float, float]]:
    """Mechanism, table, system, metric, percent with and without it: the lines of seven cells."""
    page = (short_sharing.SOURCE / "docs/sharing.md").read_text()
    lines = [re.sub("[ `%]", "", line).strip("|").split("|")
             for line in page.splitlines() if line.startswith("| `")]
    return [(*cells[:4], float(cells[5]), float(cells[6])) for cells in lines if len(cells) == 7]


@functools.cache
def errors_of(table: str, system: str, mechanism: str) -> dict[tuple[str, str], float]:
    """Percent; without a mechanism, if one is named. No runs of minutes."""
    changes = sharing.MECHANISMS[mechanism].changes if mechanism else {}
    rows = short_sharing.judge(
        table, requests=8 if table == "colocation_a100" else 30, least_s=20, span=(2, 28),
        systems=(system,), every=10 if table == "equal_mps_clients_a100" else 1, changes=changes)
    return {cell: 100 * one.errors.mean_absolute
            for cell, one in short_sharing.errors(rows).items()}


def slack(metric: str, percent: float) -> float:
    """Short runs and fewer rows move a mean by a few points, percentiles of few requests by
    more."""
    return max(8.0, 0.5 * percent) if metric == "p95_ms" else max(3.0, 0.3 * percent)


def logged(job: str) -> list[float]:
    """Passes a second of one process's log, by window from when both run on."""
    with gzip.open(LOGS / f"cotrain_tgs_{job}_gv100.json.gz", "rt") as file:
        times = re.findall(r'"time": "(\d+):(\d+):([\d.]+)', file.read())
    at = [3600 * int(hour) + 60 * int(minute) + float(second) - BOTH_RUN
          for hour, minute, second in times]
    out = [0.0] * (int(max(at) // WINDOW_S) + 1)
    for second in at:
        if second >= 0:
            out[int(second // WINDOW_S)] += 1 / WINDOW_S
    return out


@unittest.skipUnless(short_sharing.TABLES.is_dir(), f"no tables at {short_sharing.TABLES}")
class SharingPage(unittest.TestCase):
    def test_its_errors_are_those_of_the_program(self) -> None:
        cells = stated_figures()
        self.assertGreaterEqual(len(cells), 8)
        for mechanism, table, system, metric, with_it, without in cells:
            for percent, left_out in ((with_it, ""), (without, mechanism)):
                found = errors_of(table, system, left_out)[system, metric]
                print(f"{mechanism}, {table}, {system}, {metric}: {found:.1f} (page {percent})")
                with self.subTest(mechanism=mechanism, table=table, system=system, metric=metric):
                    self.assertAlmostEqual(found, percent, delta=slack(metric, percent))

    # An ablation simulates the rows that a mechanism touches; the others would be the same without.
    def test_what_a_mechanism_does_not_touch_stays(self) -> None:
        untouched = rows = 0
        for table, every in (("time_slices", 1), ("sm_caps_a100", 2), ("mig_training_a100", 12),
                             ("cotraining_gv100", 3), ("equal_mps_clients_a100", 90)):
            judge = functools.partial(short_sharing.judge, table, requests=4, least_s=1,
                                      span=(1, 4), every=every)
            before = judge()
            rows += len(before)
            for mechanism in sharing.MECHANISMS.values():
                if all(map(mechanism.touches, before)):
                    continue
                for row, anew in zip(before, judge(changes=mechanism.changes), strict=True):
                    if not mechanism.touches(row):
                        self.assertEqual(row, anew)
                        untouched += 1
        self.assertGreater(untouched, 3 * rows)

    # In the profile the filler has nothing; then its limit rises for over a minute, stays, and
    # falls to almost nothing once in five minutes, to rise again.
    @unittest.skipUnless(LOGS.is_dir(), f"no logs in {LOGS}")
    def test_tgs_moves_as_its_logs_say(self) -> None:
        rows = sharing.simulate([str(short_sharing.TABLES / "cotraining_gv100.csv")],
                                systems=["tgs"], window_ns=WINDOW_S * 10**9)["rows"]
        simulated = next(row["over_time"] for row in rows
                         if row["subject"] == "cotrain, opportunistic")
        log = logged("ojob")
        self.assertGreaterEqual(len(simulated), 28)
        for window, (seen, found) in enumerate(zip(log, simulated)):
            print(f"{WINDOW_S * window:3} s: log {seen:.1f} simulated {found:.1f}")
        for seen, found in zip(log[:11], simulated):  # the rise
            self.assertAlmostEqual(found, seen, delta=1)
        for rates in (log, simulated):
            self.assertLess(mean(rates[:3]), 1)       # the profile
            self.assertLess(mean(rates[3:5]), 3)      # the limit rises slowly
            self.assertGreater(mean(rates[11:15]), 6.5)  # and stays
            fall = min(range(14, 24), key=lambda window: rates[window])
            self.assertLess(rates[fall], 2.5)         # until it falls
            self.assertGreater(mean(rates[25:28]), 5)    # and rises again


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
