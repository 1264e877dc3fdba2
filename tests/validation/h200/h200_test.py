"""What the simulator says of the pairs that were measured on an H200, held to what was measured.

Nothing of the model was fitted to these pairs: slices, switches and contention come from probes. The
bounds are those of the figures as they are, so that no change makes them worse unseen; aims and
misses stand in README.md. Arguments: PROGRAM FOLDER.
"""

from __future__ import annotations

import json
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PROGRAM, OUT = Path(sys.argv.pop(1)), Path(sys.argv.pop(1))


def errors(summary: list, metric: str, policy: str = "") -> float:
    """The mean absolute error of a metric's judged cells: points of slowdowns, else percent."""
    return next(row["mean_absolute_error"] for row in summary
                if row["metric"] == metric and row["policy"] == policy and row["role"] == "judge")


class MeasuredPairs(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        done = subprocess.run([str(ROOT / "scripts" / "check-measured"), "--bubblesim",
                               str(PROGRAM), "--out", str(OUT)], check=False, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode not in (0, 1):
            raise AssertionError(done.stdout[-2000:])
        cls.report = json.loads((OUT / "errors.json").read_text())
        cls.summary = cls.report["summary"]

    def test_jobs_alone_take_as_long_as_measured(self) -> None:
        self.assertLess(errors(self.summary, "alone_iteration"), 3.0)
        self.assertLess(errors(self.summary, "filler_alone"), 0.5)

    def test_training_is_slowed_as_measured(self) -> None:
        self.assertLess(errors(self.summary, "training_slowdown"), 2.0)
        for policy, points in (("time_slicing", 2.5), ("mps", 1.0), ("tgs", 2.0), ("specinf", 2.0),
                               ("pipefill", 3.0)):
            self.assertLess(errors(self.summary, "training_slowdown", policy), points, policy)
        self.assertLess(errors(self.summary, "training_iteration"), 2.5)

    def test_latencies_are_as_measured(self) -> None:
        self.assertLess(errors(self.summary, "latency_p95"), 7.5)
        self.assertLess(errors(self.summary, "latency_p95", "time_slicing"), 5.0)

    def test_a_filler_that_nobody_holds_back_serves_what_arrives(self) -> None:
        for policy in ("time_slicing", "mps"):
            self.assertLess(errors(self.summary, "filler_throughput", policy), 1.0, policy)


if __name__ == "__main__":
    unittest.main()
