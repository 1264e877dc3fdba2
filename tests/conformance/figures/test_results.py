"""Result files as frames: what is read, and what is computed over seeds."""
import json

import pandas
import pytest

from tables import results


def test_a_result_that_is_not_there_says_how_to_make_it(place):
    with pytest.raises(results.Missing, match="scripts/figures"):
        results.sweep("nothing")


def test_texts_that_are_empty_stay_texts(place):
    (place / "data" / "a.csv").write_text(
        "policy,policy_parameters,latency_lower_bound_from,latency_p95_ms\n"
        "exclusive,,,\nmps,percentage=100,p95,3.5\n", encoding="utf-8")
    frame = results.sweep("a")
    assert list(frame["policy_parameters"]) == ["", "percentage=100"]
    assert list(frame["latency_lower_bound_from"]) == ["", "p95"]
    assert pandas.isna(frame["latency_p95_ms"][0]) and frame["latency_p95_ms"][1] == 3.5


def test_a_run_has_its_report_and_its_usage(place):
    (place / "data" / "r").mkdir()
    (place / "data" / "r" / "results.json").write_text(json.dumps({"ranks": 4}))
    (place / "data" / "r" / "usage.csv").write_text("gpu,busy_fraction\n0,0.5\n")
    assert results.run("r")["ranks"] == 4
    assert results.usage("r")["busy_fraction"][0] == 0.5


def test_parameters_are_named_texts():
    assert results.parameters("window=5ms;poll=2ms") == {"window": "5ms", "poll": "2ms"}
    assert results.parameters("") == {}
    frame = pandas.DataFrame({"policy_parameters": ["window=5ms", ""]})
    assert list(results.parameter(frame, "window")) == ["5ms", None]


def test_the_half_interval_is_students():
    # Values 1, 2, 3: mean 2, standard deviation 1, t of two degrees of freedom 4.303;
    # 4.303 * 1 / sqrt(3) = 2.4843.
    assert results.half_interval([1, 2, 3]) == pytest.approx(2.4843, abs=1e-4)
    assert results.half_interval([5, 5, 5]) == 0
    assert results.half_interval([7]) == 0


def test_between_two_tabled_degrees_the_wider_interval_is_taken():
    # 13 values have 12 degrees of freedom; of 10 the factor is 2.228, of 15 it is less.
    values = list(range(13))
    deviation = pandas.Series(values).std(ddof=1)
    assert results.half_interval(values) == pytest.approx(2.228 * deviation / 13 ** 0.5)


def test_means_over_seeds_keep_the_order_of_the_rows():
    frame = pandas.DataFrame({"policy": ["mps", "mps", "ideal"], "seed": [1, 2, 1],
                              "value": [1.0, 3.0, 5.0]})
    out = results.over_seeds(frame, ["policy"], "value")
    assert list(out["policy"]) == ["mps", "ideal"]
    assert list(out["mean"]) == [2.0, 5.0] and list(out["seeds"]) == [2, 1]


def test_settings_tell_what_was_varied_from_what_was_not():
    frame = pandas.DataFrame({
        "device": "A100", "policy": "pipefill",
        "policy_parameters": ["fill_fraction=0.5;offload=false", "fill_fraction=1;offload=false"]})
    row = results.settings(frame).iloc[0]
    assert row["varied"] == "fill_fraction=0.5, 1" and row["fixed"] == "offload=false"
