"""Stages of a load generator against vLLM on H100s: errors, medians over the stages, stay within
their bounds, and each stage is told rightly to be served or overloaded. First argument: the folder
of measured tables."""
import json
import sys
import tempfile
import unittest
from argparse import Namespace
from pathlib import Path

import short_sharing  # puts notebooks on the path
from lab import stages

TABLE = short_sharing.TABLES / "vllm_h100_stages.csv"
BOUNDS = {"fit": {"e2e_mean": 0.05, "e2e_p99": 0.20, "ttft_mean": 0.08, "itl_mean": 0.05},
          "judge": {"e2e_mean": 0.07, "e2e_p99": 0.18, "ttft_mean": 0.10, "itl_mean": 0.06}}


@unittest.skipUnless(TABLE.is_file(), f"no {TABLE}")
class Stages(unittest.TestCase):
    def test_median_errors_stay_within_their_bounds(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "judged.json")
            stages.judge(Namespace(table=str(TABLE), engine="vllm-0.19", csv=None, json=str(path),
                                   force=False, summary=True))
            judged = json.loads(path.read_text(encoding="utf-8"))
        for stage in judged["stages"]:
            self.assertEqual(stage["overloaded"], stage["overloaded_simulated"], stage["stage"])
        for one in judged["summary"]:
            with self.subTest(role=one["role"], figure=one["figure"]):
                self.assertLessEqual(one["median_absolute_error"],
                                     BOUNDS[one["role"]][one["figure"]])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
