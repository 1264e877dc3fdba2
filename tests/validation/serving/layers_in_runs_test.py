"""A measured vLLM server by two roads, with a profiler's layer times and with the kernel model:
`scripts/judge serving`, whose engine adds up times of steps, and `run`, whose GPU runs the steps'
kernels, beside a training job that stands still. Arguments: PROGRAM JUDGE DATA.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAM, JUDGE = Path(sys.argv[1]), Path(sys.argv[2])
DATA = Path(sys.argv[3]) / "casys-kaist+LLMServingSim"
PROFILE = DATA / "profiler/perf/RTXPRO6000/meta-llama/Llama-3.1-8B/bf16"
BUNDLE = DATA / "bench/examples/RTXPRO6000/Llama-3.1-8B"
REQUESTS = {"path": str(BUNDLE / "vllm/requests.jsonl"), "format": "bundle"}


def bubblesim(*arguments: str) -> str:
    done = subprocess.run([str(PROGRAM), *arguments], text=True, capture_output=True, check=False)
    if done.returncode not in (0, 1):
        raise AssertionError(done.stderr)
    return done.stdout


def config(layers: Path | None) -> dict:
    """The bundle's settings (meta.json). Training is out of order from the start on."""
    times = {} if layers is None else {"layers": str(layers)}
    return {
        "name": "server", "duration": "80s", "device": "rtxpro6000",
        "training": {
            "memory": "1GB", "faults": [{"at": "1ms", "detection": "1ms", "restart": "10min"}],
            "synth": {"model": "llama-68m", "cluster": "a100-40gb-4",
                      "plan": {"data": 1, "global_batch": 1, "micro_batch": 1, "sequence": 16}}},
        "fillers": [{
            "name": "server", "mode": "online", "memory": "80GB",
            "program": {"model": "llama3-8b", "precision": "bf16", "decode": "graph",
                        "step_host": "500us", "requests": REQUESTS,
                        "engine": {"max_model_len": 8192, "max_num_seqs": 128,
                                   "max_num_batched_tokens": 2048, "gpu_memory_utilization": 0.9,
                                   **times}},
            "arrivals": {"process": "file", **REQUESTS}}],
        "policies": ["mps"]}


def figures_by_both(folder: Path, layers: Path | None) -> list[tuple[str, float, dict]]:
    """Mean latencies by name: what `run` has, in ms, and the judge's figure."""
    judged, run = folder / "judged", folder / "run"
    options = [] if layers is None else ["--layers", str(layers)]
    subprocess.run([sys.executable, str(JUDGE), "serving", str(BUNDLE), *options, "--json",
                    str(judged)], check=True)
    run.write_text(json.dumps(config(layers)))
    filler = json.loads(bubblesim("run", str(run), "--json"))["policies"][0]["fillers"][0]
    assert filler["requests_completed"] == 300, filler["requests_completed"]
    known = json.loads(judged.read_text())["bundles"][0]["figures"]
    means = {**filler["server"], "latency": filler["latency"]}
    return [(name, means[name]["mean"]["value_ns"] / 1e6,
             next(figure for figure in known if figure["figure"] == f"{name}_mean"))
            for name in ("ttft", "tpot", "latency")]


@unittest.skipUnless(BUNDLE.is_dir(), f"no bundle at {BUNDLE}")
class ServersInRuns(unittest.TestCase):
    def test_by_layer_times_both_roads_lead_to_the_same_latencies_and_to_the_measured(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            layers = Path(name) / "layers"
            subprocess.run([sys.executable, "-m", "bubblesim.layers", str(PROFILE), "-o",
                            str(layers)], stdout=subprocess.PIPE, check=True)
            for figure, found, known in figures_by_both(Path(name), layers):
                self.assertAlmostEqual(found / known["simulated_ms"], 1, delta=0.01, msg=figure)
                self.assertAlmostEqual(found / known["measured_ms"], 1, delta=0.015, msg=figure)

    def test_by_the_kernel_model_both_roads_lead_to_the_same_latencies(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            for figure, found, known in figures_by_both(Path(name), None):
                self.assertAlmostEqual(found / known["simulated_ms"], 1, delta=0.01, msg=figure)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
