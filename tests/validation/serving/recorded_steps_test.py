"""Steps of engines in public traces by two roads: bubblesim.steps, and the trace's JSON read here.
Argument: DATA.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TRACES = Path(sys.argv[1]) / "AMD-AGI+TraceLens/tests/traces/inference"
SGLANG = TRACES / "sglang_prefilldecode/sglang_Qwen3-8B_prefilldecode.json.gz"
VLLM = TRACES / "vllm_prefilldecode_piecewise/graph_execution.json.gz"


def imported(trace: Path) -> list[dict]:
    with tempfile.TemporaryDirectory() as name:
        made = Path(name) / "steps.json"
        done = subprocess.run([sys.executable, "-m", "bubblesim.steps", str(trace), "-o",
                               str(made)], text=True, capture_output=True, check=False)
        if done.returncode != 0:
            raise AssertionError(done.stderr)
        return json.loads(made.read_text())["steps"]


def kernels_us(trace: Path) -> float:
    """Lengths of the kernels whose calls lie within the step's range, added up."""
    events = json.loads(gzip.decompress(trace.read_bytes()))["traceEvents"]
    step = next(one for one in events if one.get("cat") == "user_annotation"
                and one["name"].startswith("execute_"))
    calls = {one["args"].get("correlation"): one["ts"] for one in events
             if one.get("cat") == "cuda_runtime"}
    return sum(one["dur"] for one in events if one.get("cat") == "kernel" and 0 <=
               calls.get(one["args"].get("correlation"), -1) - step["ts"] < step["dur"])


@unittest.skipUnless(SGLANG.is_file() and VLLM.is_file(), f"no traces at {TRACES}")
class RecordedSteps(unittest.TestCase):
    def test_prompts_of_sglang(self) -> None:
        steps = imported(SGLANG)
        self.assertEqual(len(steps), 1)
        # 15 prompts of 1024 tokens.
        self.assertEqual(steps[0]["prompts"], {"sequences": 15, "tokens": 15 * 1024,
                                               "keys": 15 * 1024, "squares": 15 * 1024 ** 2,
                                               "products": 15 * 1024 ** 2})
        self.assertEqual(steps[0]["singles"]["tokens"], 0)
        self.assertAlmostEqual(steps[0]["kernels_us"] / kernels_us(SGLANG), 1, delta=1e-4)

    def test_a_mixed_step_of_vllm_with_gaps_between_kernels_of_its_graphs(self) -> None:
        steps = imported(VLLM)
        self.assertEqual(len(steps), 1)
        self.assertEqual(steps[0]["prompts"]["tokens"] + steps[0]["singles"]["tokens"], 8192)
        self.assertEqual(steps[0]["singles"], {"sequences": 37, "tokens": 37, "keys": 34489,
                                               "squares": 37, "products": 34489})
        more = steps[0]["kernels_us"] / kernels_us(VLLM) - 1
        self.assertTrue(0 < more < 0.005, more)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
