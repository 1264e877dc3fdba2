"""Synthesised jobs against measured ones: the mean error of a table must not grow. Bounds are of
all rows that are predicted, and above what is reached by little, so that growth shows; the aims are
the report's. Of the table of one node every third row is taken, for time. Argument: TABLES."""
from __future__ import annotations

import sys
import tempfile
import unittest
from argparse import Namespace
from pathlib import Path

import short_sharing
from lab import parallel
from lab.report import Progress

BOUNDS = {"megatron_deepspeed_a100_multi_node": (0.068, 1),
          "megatron_deepspeed_a100_single_node": (0.075, 3), "published_training_runs": (0.085, 1)}


@unittest.skipUnless(short_sharing.TABLES.is_dir(), f"no tables at {short_sharing.TABLES}")
class Parallel(unittest.TestCase):
    def test_mean_errors_stay_under_their_bounds(self) -> None:
        options = Namespace(setting="", jobs=2, progress=Progress())
        for table, (bound, every) in BOUNDS.items():
            head, *rows = (short_sharing.TABLES / f"{table}.csv").read_text().splitlines(True)
            with self.subTest(table=table), tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / f"{table}.csv"
                path.write_text(head + "".join(rows[::every]))
                summaries = parallel.summarise(
                    parallel.training_table(str(path), options)["rows"])
                print(parallel.summary_text(summaries))
                self.assertEqual(summaries[-1].outcomes["failed"], 0)
                self.assertLessEqual(summaries[-1].errors.mean_absolute, bound)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
