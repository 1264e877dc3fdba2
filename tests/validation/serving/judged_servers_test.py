"""Whole servers against measured ones: LLMServingSim's runs of vLLM 0.19. Limits
are what is reached, with a little room; docs/validation.md says what does not fit. Arguments: JUDGE
DATA.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

JUDGE, DATA = Path(sys.argv[1]), Path(sys.argv[2]) / "casys-kaist+LLMServingSim"
GPUS = ("RTX4090", "RTXPRO6000")
BUNDLES = [str(DATA / f"bench/examples/{gpu}/Llama-3.1-8B") for gpu in GPUS]
PROFILES = [str(DATA / f"profiler/perf/{gpu}/meta-llama/Llama-3.1-8B/bf16") for gpu in GPUS]


def mean_errors(*options: str, bundles: list[str] = BUNDLES) -> list[float]:
    """Percent, by GPU."""
    with tempfile.NamedTemporaryFile() as file:
        subprocess.run([sys.executable, str(JUDGE), "serving", *bundles, "--summary", "--json",
                        file.name, *options], check=True)
        judged = json.loads(Path(file.name).read_text())["bundles"]
    assert all(len(bundle["figures"]) == 15 for bundle in judged)
    return [bundle["mean_absolute_error_percent"] for bundle in judged]


@unittest.skipUnless(Path(BUNDLES[0]).is_dir(), f"no bundle at {BUNDLES[0]}")
class JudgedServers(unittest.TestCase):
    def bounded(self, errors: list[float], *most: float) -> None:
        for error, bound in zip(errors, most, strict=True):
            self.assertLess(error, bound)

    def test_are_met_with_layer_times(self) -> None:
        options = [word for path in PROFILES for word in ("--layers", path)]
        self.bounded(mean_errors(*options), 5.5, 1.3)

    def test_are_met_by_the_kernel_model(self) -> None:
        self.bounded(mean_errors(), 2.0, 4.5)

    def test_on_two_gpus_are_met_with_layer_times_and_prompts(self) -> None:
        """Its profile has qk_norm of one GPU, and its GPUs read each other's activations."""
        options = ["--layers", str(DATA / "profiler/perf/RTXPRO6000/Qwen/Qwen3-32B/bf16"),
                   "--prompts", str(DATA / "workloads/sharegpt-qwen3-32b-300-sps10.jsonl.gz")]
        bundle = str(DATA / "bench/examples/RTXPRO6000/Qwen3-32B")
        self.bounded(mean_errors(*options, bundles=[bundle]), 0.3)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
