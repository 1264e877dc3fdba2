"""Traces in Python: views of the records, figures that can be checked by hand, and those of
`bubblesim inspect`."""
import gc
import json
import os
from pathlib import Path

import bubblesim
import pytest

numpy = pytest.importorskip("numpy")
pandas = pytest.importorskip("pandas")
SAMPLE = Path(os.environ["BUBBLESIM_SOURCE"]) / "traces/samples/training"


def event(category, name, start_us, length_us, thread, **arguments):
    return {"ph": "X", "cat": category, "name": name, "pid": 0, "tid": thread, "ts": start_us,
            "dur": length_us, "args": arguments}


@pytest.fixture
def small(tmp_path):
    """Two kernels of 20 and 10 us with 30 us between them, launched by two calls."""
    shape = {"grid": [4, 2, 1], "block": [32, 1, 1], "registers per thread": 16,
             "shared memory": 0, "device": 0, "stream": 7}
    events = [
        event("cuda_runtime", "cudaLaunchKernel", 100, 5, 1, correlation=1),
        event("cuda_runtime", "cudaLaunchKernel", 140, 5, 1, correlation=2),
        event("kernel", "first", 110, 20, 7, correlation=1, **shape),
        event("kernel", "second", 160, 10, 7, correlation=2, **shape)]
    path = tmp_path / "small.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    return path


def test_a_cluster_that_no_collective_needs_is_a_fault(small):
    with pytest.raises(bubblesim.Error, match="cluster"):
        bubblesim.open_trace(small, cluster="dgx-a100-80gb")
    with pytest.raises(bubblesim.Error, match="no-such"):
        bubblesim.open_trace(small, cluster="no-such")


def test_collectives_without_times_are_simulated_on_a_cluster(tmp_path):
    """A kernel of 1 ms, then an all-reduce of 1 GB over two ranks without a duration."""
    for rank in (0, 1):
        nodes = [{"Id": 1, "Name": "gemm", "NodeType": 4, "runtime": 1000, "is_cpu_op": False,
                  "data_deps": []},
                 {"Id": 2, "Name": "allreduce", "NodeType": 7, "runtime": 0, "is_cpu_op": False,
                  "data_deps": [1], "comm_type": 0, "comm_size": 10**9}]
        (tmp_path / f"job.{rank}.json").write_text(json.dumps({"workload_graph": nodes}))
    trace = bubblesim.open_trace(tmp_path, cluster="dgx-a100-80gb")
    collectives = trace.collective_ops()
    assert len(collectives) == 2 and (collectives["duration_ns"] > 1_000_000).all()


def test_figures_of_a_small_trace(small):
    trace = bubblesim.open_trace(small)
    rank, = trace
    assert len(trace) == 1 and trace[0] is rank and rank.number == 0
    kernels = trace.kernels()
    assert list(kernels["name"]) == ["first", "second"]
    assert list(kernels["duration_ns"]) == [20_000, 10_000]
    assert kernels["duration_ns"].dtype == "int64"
    assert kernels["start_ns"].diff()[1] == 50_000
    assert list(kernels["blocks"]) == [8, 8]
    assert list(kernels["threads_per_block"]) == [32, 32]
    assert list(kernels["launch"]) == [0, 1]
    assert list(trace.calls()["kind"]) == ["launch_kernel", "launch_kernel"]
    # 160 - 130 us: nothing runs.
    assert list(trace.idle()["duration_ns"]) == [30_000]
    assert trace.bubbles()["duration_ns"].sum() == 30_000
    assert rank.streams[0]["system_id"] == 7
    assert rank.metadata["format"] == "kineto" and rank.metadata["source"] == "small.json"


def test_records_are_views_that_nobody_may_write():
    rank = bubblesim.open_trace(SAMPLE)[0]
    for name in ("device_ops", "host_calls", "collectives", "edges", "ranges", "memory", "stalls",
                 "clocks", "shapes"):
        once, twice = getattr(rank, name), getattr(rank, name)
        assert not once.flags.writeable and not once.flags.owndata, name
        with pytest.raises(ValueError):
            once.flags.writeable = True
        if len(once):
            assert numpy.shares_memory(once, twice), name
    assert len(rank.device_ops) > 1000
    starts = rank.device_ops["start"]
    assert starts.dtype == numpy.int64 and numpy.shares_memory(starts, rank.device_ops)
    with pytest.raises(ValueError):
        starts[0] = 0
    assert (numpy.diff(starts) >= 0).all()


def test_a_view_keeps_the_trace_alive():
    starts = bubblesim.open_trace(SAMPLE)[0].device_ops["start"]
    before = starts.copy()
    gc.collect()
    bubblesim.open_trace(SAMPLE)  # would take memory that was free
    assert (starts == before).all()


def test_bubbles_and_kernels_are_those_of_inspect():
    trace = bubblesim.open_trace(SAMPLE)
    inspected = trace.inspect(top_kernels=0)
    bubbles = trace.bubbles()
    assert set(bubbles["cause"]) <= set(bubblesim.BUBBLE_CAUSES)
    for rank, number in zip(inspected["ranks"], range(4)):
        mine = bubbles[bubbles["rank"] == number]
        assert mine["duration_ns"].sum() == rank["whole"]["bubble_ns"]
        idle = trace[number].idle()["duration_ns"].sum()
        assert idle == rank["whole"]["idle_ns"]
        assert len(trace[number].iterations()) == len(rank["iterations"]["all"])
    sums = trace.kernels().groupby("name")["duration_ns"].agg(["sum", "count"])
    for kernel in inspected["job"]["operations"]["top_kernels"]:
        if kernel["kind"] == "kernel":
            assert sums.loc[kernel["name"], "sum"] == kernel["total_ns"]
            assert sums.loc[kernel["name"], "count"] == kernel["count"]


def test_frames_of_all_ranks_have_documented_columns():
    trace = bubblesim.open_trace([str(SAMPLE / f"rank{rank}.json.gz") for rank in range(4)])
    for method in ("kernels", "copies", "collective_ops", "calls", "named_ranges", "bubbles",
                   "idle", "iterations"):
        frame = getattr(trace, method)()
        assert set(frame["rank"]) == {0, 1, 2, 3}, method
        documented = getattr(bubblesim.Rank, method).__doc__
        for column in frame.columns:
            assert column in documented, (method, column)
    collectives = trace.collective_ops()
    assert set(collectives["kind"]) <= set(bubblesim.COLLECTIVE_KINDS)
    assert (collectives["bytes"] > 0).any() and set(collectives["group"]) != {""}
    ops = trace[0].device_ops
    assert len(ops) == sum(len(getattr(trace[0], method)())
                           for method in ("kernels", "copies", "collective_ops"))


def test_what_is_no_trace_is_an_error_with_file_and_words(tmp_path):
    with pytest.raises(bubblesim.Error, match="found no path"):
        bubblesim.open_trace([])
    with pytest.raises(bubblesim.Error, match="no-such-file"):
        bubblesim.open_trace("no-such-file.json")
    bad = tmp_path / "bad.json"
    bad.write_text("[1, 2")
    with pytest.raises(bubblesim.Error) as caught:
        bubblesim.open_trace(bad)
    fault, = caught.value.faults
    assert fault.file.endswith("bad.json") and fault.message in str(caught.value)
    with pytest.raises(IndexError):
        bubblesim.open_trace(SAMPLE)[0].peers(10**6)


def test_without_pandas_the_error_says_what_is_missing(small, monkeypatch):
    import sys
    rank = bubblesim.open_trace(small)[0]
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert len(rank.device_ops) == 2
    with pytest.raises(ImportError, match="python3-pandas"):
        rank.kernels()


def test_without_numpy_the_error_says_what_is_missing(small, monkeypatch):
    import sys
    monkeypatch.setitem(sys.modules, "numpy", None)
    with pytest.raises(ImportError, match="python3-numpy"):
        bubblesim.open_trace(small)
