"""run(): the program's report, and the same figures as frames, arrays and a timeline."""
import json
import os
import signal
import subprocess
import threading
import time

import bubblesim
import pytest
from common import PROGRAM, SOURCE, config, environment, has_program

numpy = pytest.importorskip("numpy")
pandas = pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def result():
    return bubblesim.run(config(["exclusive", "mps"]), timeline="mps",
                         timeline_window_ns=bubblesim.ms(20))


@pytest.mark.skipif(not has_program(), reason="needs the program bubblesim")
def test_the_report_is_the_programs_byte_by_byte(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config(["mps", "specinf"])))
    printed = subprocess.run([PROGRAM, "run", str(path), "--json", "--threads", "1"], check=True,
                             capture_output=True, env=environment()).stdout
    assert bubblesim.run(path).json.encode() == printed
    assert bubblesim.run(path, threads=2).json.encode() == printed
    assert bubblesim.run(config(["mps", "specinf"])).json.encode() == printed


def test_paths_of_a_dict_are_relative_to_the_base():
    relative = config(["mps"], traces="samples")
    assert (bubblesim.run(relative, base=SOURCE / "traces").json
            == bubblesim.run(config(["mps"])).json)
    with pytest.raises(bubblesim.Error) as caught:
        bubblesim.run(relative, base="elsewhere")
    assert "elsewhere/samples/training" in str(caught.value)


def test_a_file_is_read_alike_with_policies_of_ones_own(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config(["exclusive"])))
    assert bubblesim.run(path, ["mps"]).json == bubblesim.run(config(["mps"])).json
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(config(["exclusive"])).encode())
    assert bubblesim.run(path, ["mps"]).json == bubblesim.run(config(["mps"])).json
    for text, words in (('{"seed": 1, "seed": 2}', "seed"), ("[1", "config.json"), (None, "")):
        path.write_text(text) if text else path.unlink()
        with pytest.raises(bubblesim.Error, match=words) as alone:
            bubblesim.run(path)
        with pytest.raises(bubblesim.Error) as with_policies:
            bubblesim.run(path, ["mps"])
        assert with_policies.value.faults[0].message == alone.value.faults[0].message


def test_the_frame_has_the_figures_of_the_report(result):
    frame = result.frame()
    assert list(frame["policy"]) == ["exclusive", "mps"]
    for row, policy in zip(frame.itertuples(), result["policies"]):
        assert row.training_iterations_per_s == policy["training"]["iterations_per_s"]
        assert row.requests_completed == policy["fillers"][0]["requests_completed"]
    assert frame["seed"].dtype == "int64"
    assert numpy.isnan(frame["training_samples_per_s"]).all()  # the config says nothing of samples


def test_iterations_are_those_that_the_report_counts(result):
    iterations = result.iterations("exclusive")
    assert list(iterations.columns) == ["policy", "rank", "iteration", "duration_ns", "counted"]
    assert set(iterations["rank"]) == {0, 1, 2, 3}
    counted = iterations[iterations["counted"]]
    rate = len(counted) / (counted["duration_ns"].sum() * 1e-9)
    assert rate == pytest.approx(result["policies"][0]["training"]["iterations_per_s"])
    assert set(result.iterations()["policy"]) == {"exclusive", "mps"}


def test_latencies_are_a_view_and_their_histogram_is_within_one_percent(result):
    samples = result.latencies("mps")
    assert not samples.flags.writeable and samples.dtype == numpy.int64
    assert numpy.shares_memory(samples, result.latencies(1, 0))
    latency = result.latency("mps", "encoder")
    p95 = result["policies"][1]["fillers"][0]["latency"]["p95"]
    assert latency.percentile(95) == p95["value_ns"]
    assert latency.is_lower_bound(95) == p95["lower_bound"]
    assert latency.percentile(95) / 1e6 == result.frame()["latency_p95_ms"][1]
    histogram = latency.histogram()
    assert histogram.completed == latency.completed == len(samples) > 0
    assert histogram.counts.sum() == histogram.completed
    assert histogram.unfinished_counts.sum() == histogram.unfinished
    edges = histogram.edges
    assert len(edges) == len(histogram.counts) + 1 and (numpy.diff(edges) > 0).all()
    assert edges[0] <= samples.min() and samples.max() < edges[-1]
    assert histogram.percentile(95) == pytest.approx(p95["value_ns"], rel=0.01)
    if not histogram.unfinished:
        assert histogram.mean() == pytest.approx(samples.mean(), rel=0.01)
        inside = numpy.histogram(samples, bins=edges)[0]
        assert (inside == histogram.counts).all()
    assert (histogram + histogram).completed == 2 * histogram.completed
    with pytest.raises(ValueError, match="percentile"):
        histogram.percentile(0)


def test_a_servers_tokens_have_latencies_of_their_own():
    served = config(["mps"], duration="600ms")
    served["fillers"] = [{
        "name": "chat", "mode": "online",
        "program": {"model": "llama-68m", "efficiency": "a100-40gb",
                    "engine": {"max_model_len": 256, "kv_blocks": 64},
                    "requests": {"prompt_tokens": 40, "output_tokens": 5}},
        "arrivals": {"process": "poisson", "rate_per_s": 50}}]
    result = bubblesim.run(served)
    ttft, tpot = result.token_latencies("mps", "chat")
    assert 0 < tpot.completed <= ttft.completed
    assert ttft.percentile(50) / 1e6 == result.frame()["ttft_p50_ms"][0]
    assert tpot.percentile(95) / 1e6 == result.frame()["tpot_p95_ms"][0]
    assert ttft.histogram().completed == ttft.completed
    with pytest.raises(ValueError, match="no language-model server"):
        bubblesim.run(config(["mps"])).token_latencies("mps")


def test_a_view_keeps_the_result_alive():
    samples = bubblesim.run(config(["mps"])).latencies("mps")
    total = samples.sum()
    bubblesim.run(config(["mps"]))
    assert samples.sum() == total


def test_a_timeline_is_recorded_on_request(result, tmp_path):
    timeline = result.timeline()
    assert {"kernel", "request"} <= set(timeline["kind"]) <= set(bubblesim.SLICE_KINDS)
    assert (timeline["end_ns"] >= timeline["start_ns"]).all()
    # 50 ms of warm-up, then 20 ms of window.
    assert timeline["end_ns"].min() >= 50_000_000 and timeline["start_ns"].max() <= 70_000_000
    assert "encoder" in set(timeline["client"])
    counters = result.timeline_counters()
    assert list(counters.columns) == ["gpu", "counter", "at_ns", "value"]
    result.write_timeline(tmp_path / "timeline.json")
    assert json.loads((tmp_path / "timeline.json").read_text())["traceEvents"]
    whole = bubblesim.run(config(["mps"]), timeline="mps", timeline_window_ns=2**63 - 1)
    assert len(whole.timeline()) > len(timeline)
    for window in (0, -1):
        with pytest.raises(bubblesim.Error, match="timeline_window_ns: found .*above 0"):
            bubblesim.run(config(["mps"]), timeline="mps", timeline_window_ns=window)
    with pytest.raises(bubblesim.Error, match='timeline: found "tgs"'):
        bubblesim.run(config(["mps"]), timeline="tgs")
    with pytest.raises(ValueError, match="no timeline was recorded"):
        bubblesim.run(config(["exclusive"])).timeline()


def test_policies_and_fillers_that_are_not_there_are_named(result):
    with pytest.raises(ValueError, match="found policy 'tgs', expected one of exclusive, mps"):
        result.latency("tgs")
    with pytest.raises(ValueError, match="found filler 'chat', expected one of encoder"):
        result.latency("mps", "chat")
    with pytest.raises(bubblesim.Error) as caught:
        bubblesim.run({**config(["mps"]), "durration": "1s"})
    fault, = caught.value.faults
    assert fault.place == "/durration" and "duration" in fault.message


def test_other_threads_go_on_while_a_run_simulates():
    ticks, ended = [], threading.Event()

    def tick():
        while not ended.wait(0.001):
            ticks.append(time.monotonic())

    thread = threading.Thread(target=tick)
    thread.start()
    began = time.monotonic()
    bubblesim.run(config(["mps"], "2s"))
    done = time.monotonic()
    ended.set()
    thread.join()
    assert sum(began < at < done for at in ticks) >= 3


class NeverCalled(bubblesim.Policy):
    def __init__(self, parameters):
        super().__init__()


# Days of work: what the job does alone has not ended when the signal comes.
@pytest.mark.parametrize("policy", ["mps", "never_called"])
def test_ctrl_c_ends_a_run(policy):
    bubblesim.register("never_called", NeverCalled)
    handler = signal.getsignal(signal.SIGINT)
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        bubblesim.run(config([policy], "1000000s"), force=True)
    timer.join()
    assert signal.getsignal(signal.SIGINT) is handler
    assert bubblesim.run(config([policy]))["policies"][0]["policy"] == policy


def test_a_run_that_would_take_all_memory_is_refused_before_it_starts():
    wanted = config(["mps"], "60s")
    wanted["fillers"][0]["arrivals"]["rate_per_s"] = 1e9
    with pytest.raises(bubblesim.Error, match="would simulate 6e[+]10 requests"):
        bubblesim.run(wanted)


# What parts of a run do alone is shared by the runs of a session, as long as files do not change.
def test_a_file_that_changes_between_runs_is_read_anew(tmp_path):
    def alone(milliseconds):
        (tmp_path / "kernels.csv").write_text(
            "Name,Profile,Memory_footprint,SM_usage,Duration\n"
            f"F,-1,0,50,{milliseconds * 1_000_000}\n")
        changed = config(["exclusive"])
        changed["fillers"] = [{"name": "batch", "mode": "offline", "memory": "1GB",
                               "program": {"kernel_table": str(tmp_path / "kernels.csv")}}]
        return bubblesim.run(changed)["baseline"]["fillers"][0]["requests_per_s"]

    once = alone(1)
    assert alone(2) == pytest.approx(once / 2, rel=0.02)
    assert alone(1) == once
