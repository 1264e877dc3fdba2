"""Sweeps and stores: what sweep() writes is what the program writes and reads."""
import csv
import io
import json
import os
import signal
import subprocess

import bubblesim
import pytest
from common import PROGRAM, config, environment, has_program

numpy = pytest.importorskip("numpy")
pandas = pytest.importorskip("pandas")
RATE = "/fillers/encoder/arrivals/rate_per_s"


@pytest.fixture(scope="module")
def sweep_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("sweep") / "small.json"
    path.write_text(json.dumps({
        "name": "small", "base": config(["exclusive"]),
        "axes": [{"pointer": "/policies/0", "values": ["exclusive", "mps"]},
                 {"pointer": RATE, "values": [100, 200]}],
        "repetitions": 2}))
    return path


@pytest.fixture(scope="module")
def stored(sweep_file):
    """2 policies x 2 rates x 2 seeds."""
    path = sweep_file.parent / "small.db"
    told = []
    done = bubblesim.sweep(sweep_file, path, threads=2,
                           progress=lambda done, all: told.append((done, all)))
    assert done == {"runs": 8, "stored": 0, "done": 8, "failed": 0, "left": 0}
    assert told[-1] == (8, 8) and told == sorted(told)
    return path


@pytest.fixture
def store(stored):
    with bubblesim.open_store(stored) as opened:
        yield opened


def program(*arguments):
    if not has_program():
        pytest.skip("needs the program bubblesim")
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True,
                          env=environment())
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_runs_that_are_stored_are_not_run_again(sweep_file, stored):
    again = bubblesim.sweep(sweep_file, stored)
    assert again == {"runs": 8, "stored": 8, "done": 0, "failed": 0, "left": 0}


def test_a_limit_leaves_runs_for_later(sweep_file, tmp_path):
    first = bubblesim.sweep(sweep_file, tmp_path / "s.db", limit=3, set=["/duration=100ms"])
    assert (first["done"], first["left"]) == (3, 5)
    with bubblesim.open_store(tmp_path / "s.db") as opened:
        assert len(opened.runs()) == 3


def test_runs_have_their_settings(store):
    runs = store.runs()
    assert len(runs) == 8 and set(runs["status"]) == {"done"} and runs["key"].is_unique
    assert set(runs[RATE]) == {100, 200} and set(runs["/policies/0"]) == {"exclusive", "mps"}
    assert sorted(runs["seed"].unique()) == [1, 2]
    assert len(store.runs(settings={RATE: 100})) == 4
    with pytest.raises(bubblesim.Error, match='unknown sweep "another"; known: small'):
        store.runs(sweep="another")
    for read in store.results, store.compare:
        with pytest.raises(bubblesim.Error, match='did you mean "mps"'):
            read(policy="mp")


def test_filters_are_texts(store):
    for reading in (lambda: store.results(policy=[1]), lambda: store.runs(key=3)):
        with pytest.raises(TypeError, match="found [13], expected a text"):
            reading()


def test_a_policy_alone_is_compared_with_none(store):
    for by_point in (False, True):
        alone = store.compare(policy="mps", by_point=by_point)
        assert alone.empty and {"metric", "pairs", "low"} <= set(alone.columns)


def test_results_are_filtered_and_are_those_of_a_run(store):
    results = store.results(policy="mps", settings={RATE: 200})
    assert len(results) == 2 and set(results["policy"]) == {"mps"}
    row = results[results["seed"] == 1].iloc[0]
    again = bubblesim.run(store.config(row["key"]))
    assert again.frame()["latency_p95_ms"][0] == row["latency_p95_ms"]
    histogram = store.latency(row["key"])
    assert histogram == again.latency("mps").histogram()
    assert histogram.percentile(95) == pytest.approx(row["latency_p95_ms"] * 1e6, rel=0.01)


def test_results_are_those_of_export(store):
    rows = list(csv.DictReader(io.StringIO(program("results", store.path, "export"))))
    results = store.results()
    assert list(results.columns) == list(rows[0])
    assert list(results["key"]) == [row["key"] for row in rows]
    for name in ("training_iterations_per_s", "latency_p95_ms"):
        exported = [float(row[name]) if row[name] else float("nan") for row in rows]
        assert numpy.array_equal(results[name], exported, equal_nan=True)


def test_a_store_of_the_program_reads_the_same(sweep_file, store, tmp_path):
    path = tmp_path / "program.db"
    program("sweep", sweep_file, "--store", path, "--threads", "2")
    with bubblesim.open_store(path) as other:
        columns = ["key"] if other.runs()["version"][0] == store.runs()["version"][0] else []
        pandas.testing.assert_frame_equal(other.results().drop(columns="key"),
                                          store.results().drop(columns="key"))
        for name in columns:
            assert list(other.runs()[name]) == list(store.runs()[name])


def test_comparisons_are_differences_of_pairs(store):
    compared = store.compare("training_iterations_per_s", baseline="exclusive")
    line, = compared.itertuples()
    assert compared.attrs == {"baseline": "exclusive", "confidence": 0.95}
    assert (line.policy, line.pairs) == ("mps", 4)
    rates = store.results().groupby("policy")["training_iterations_per_s"].mean()
    assert line.difference == pytest.approx(rates["mps"] - rates["exclusive"])
    assert line.low < line.difference < line.high
    by_point = store.compare("training_iterations_per_s", baseline="exclusive", by_point=True)
    assert list(by_point[RATE]) == [100, 200] and list(by_point["pairs"]) == [2, 2]
    printed = json.loads(program("results", store.path, "compare", "--baseline", "exclusive",
                                 "--metric", "training_iterations_per_s", "--json"))
    shown, = printed["comparisons"]
    assert float(shown["difference"]) == line.difference and float(shown["low"]) == line.low


def test_faults_have_the_librarys_words(store, tmp_path, sweep_file):
    with pytest.raises(bubblesim.Error, match="none.db"):
        bubblesim.open_store(tmp_path / "none.db")
    (tmp_path / "text.db").write_text("not a database, but long enough to be looked at" * 100)
    with pytest.raises(bubblesim.Error, match="text.db"):
        bubblesim.open_store(tmp_path / "text.db")
    with pytest.raises(bubblesim.Error, match="latency_p95_ms"):  # the nearest
        store.compare("latency_p95")
    with pytest.raises(bubblesim.Error, match="found several"):
        store.latency("")
    with pytest.raises(bubblesim.Error, match="found no run whose key begins with 'x'"):
        store.config("x")
    with pytest.raises(bubblesim.Error, match="/durration"):
        bubblesim.sweep(sweep_file, tmp_path / "s.db", set=["/durration=1s"])
    assert not (tmp_path / "s.db").exists()
    store.check()
    store.close()
    with pytest.raises(ValueError, match="closed"):
        store.runs()


def test_a_store_is_only_read(stored):
    before = stored.read_bytes()
    with bubblesim.open_store(stored) as opened:
        opened.results()
    assert stored.read_bytes() == before


def test_what_progress_raises_ends_the_sweep_and_what_is_done_is_stored(sweep_file, tmp_path):
    def interrupt(done, all):
        os.kill(os.getpid(), signal.SIGINT)

    path = tmp_path / "s.db"
    with pytest.raises(KeyboardInterrupt):
        bubblesim.sweep(sweep_file, path, threads=1, progress=interrupt, set=["/duration=2s"])
    with bubblesim.open_store(path) as opened:
        stored = len(opened.runs())
    rest = bubblesim.sweep(sweep_file, path, set=["/duration=2s"], limit=0)
    assert rest["stored"] == stored and 1 <= stored
