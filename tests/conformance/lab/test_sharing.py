"""scripts/judge sharing: sums by hand over rows as the simulator gives them, and the command on
small tables."""
import csv
import json

import pytest

from judge import judge

from lab import sharing


def row(system, measured, simulated, metric="p95_ms", **more):
    figure = {"metric": metric, "quantity": "percentile", "client": 0, "measured": measured,
              "simulated": simulated}
    return {"table": "table", "role": "judge", "subject": "service beside job", "system": system,
            "outcome": "predicted", "note": "", "device": "gpu", "clients": 2, "demands": [],
            "has_requests": False, "has_a_part": False, "figures": [figure], "left_out": [],
            "over_time": [], **more}


def test_a_summary_has_mean_bias_worst_and_share_within_the_aim():
    # +10 % and -20 % under mps: mean 15, bias -5; the aim of p95 is 15 %: one of two within.
    [summary] = sharing.summarise([row("mps", 10, 11), row("mps", 10, 8)])
    assert summary.errors.mean_absolute == pytest.approx(0.15)
    assert summary.errors.bias == pytest.approx(-0.05)
    assert summary.errors.worst == pytest.approx(-0.2)
    assert summary.within == 0.5


def test_roles_are_summed_up_apart_where_a_metric_has_both():
    rows = [row("mps", 10, 11, role="fit"), row("mps", 10, 8), row("tally", 1, 2, role="fit")]
    assert [(one.system, one.role, one.errors.rows) for one in sharing.summarise(rows)] == [
        ("mps", "fit", 1), ("mps", "judge", 1), ("mps", "all", 2), ("tally", "all", 1)]


def test_shares_of_cotraining_are_judged_by_their_difference():
    one = row("tgs", 0.5, 0.4, "relative_to_alone", table="cotraining_x")
    one["figures"][0]["quantity"] = "share"
    [summary] = sharing.summarise([one])
    assert summary.points and not summary.met
    assert summary.errors.bias == pytest.approx(-0.1)


def test_the_order_is_of_all_comparisons():
    # Measured a < b < c; simulated b < a < c: of 3 comparisons (ab, ac, bc) ab is wrong.
    [order] = sharing.orders([row("a", 1, 2), row("b", 2, 1), row("c", 3, 3)])
    assert (order["metric"], order["compared"], order["concordant"]) == ("p95_ms", 3, 2)
    assert order["measured"] == "a < b < c"
    assert order["simulated"] == "b < a < c"


def test_what_is_not_predicted_is_counted_by_reason_and_in_no_summary():
    stated = row("mig", 1, 0, outcome="stated", note="no workload")
    failed = {**stated, "outcome": "failed"}
    rows = [stated, row("mps", 1, 1), stated, failed]
    assert [one.system for one in sharing.summarise(rows)] == ["mps"]
    assert [(one["outcome"], one["rows"]) for one in sharing.unjudged(rows)] == [
        ("stated", 2), ("failed", 1)]
    assert "stated: no workload" in sharing.rows_text(rows)
    assert sharing.orders([stated]) == []


def touching(**more):
    one = row("any", 1, 1, **more)
    return [name for name, mechanism in sharing.MECHANISMS.items() if mechanism.touches(one)]


def test_mechanisms_touch_only_rows_whose_clients_share_in_their_way():
    assert touching(demands=["mps"]) == ["arrival_order", "client_switch", "contention", "l2",
                                         "dram_reach"]
    assert touching(demands=["time_slicing"], has_requests=True) == ["long_slices", "bursts"]
    assert touching(clients=1, has_a_part=True) == ["contention", "dram_reach", "dram_saturation",
                                                    "dark_clock"]
    assert len(touching(has_a_part=True)) == 8, "a policy that is not known; no requests"


def test_an_ablation_tells_cells_that_move():
    # Without a mechanism rows err by 45 instead of 20 %; of the roles judge counts.
    rows = [row("mps", 10, 12, demands=["mps"]), row("mps", 10, 10, demands=["mps"], role="fit"),
            row("turns", 10, 12, demands=["time_slicing"])]

    def again(name, rows, changes):
        worse = 14.5 if name == "l2" else 12
        assert rows == ([2] if name == "long_slices" else [0, 1])
        return {"rows": [row("turns", 10, 12) if at == 2 else
                         row("mps", 10, 10, role="fit") if at else row("mps", 10, worse)
                         for at in rows]}
    cells = sharing.ablate(rows, again)
    assert {name for name, lines in cells.items() if lines} == {"l2"}
    assert cells["l2"] == [["table", "mps", "p95_ms", "1", "20.0%", "45.0%"]]
    assert "arrival_order; without it: equal" in sharing.ablation_text(cells)


TWO_LOOPS = ("role,gpu,case,metric,clients,alone,shared\n"
             "fit,GV100,\"two closed loops, ResNet-152 batch 1 (TensorRT)\",samples_per_s,2,155.7,"
             "141.01\n")
CAPS = ("role,work,sm_percentage,time_relative_to_all_sms\n"
        "fit,decode,50,1.2\njudge,prefill,50,3\n")


@pytest.fixture
def tables(tmp_path):
    (tmp_path / "loops.csv").write_text(TWO_LOOPS)
    (tmp_path / "caps.csv").write_text(CAPS)
    return tmp_path


def test_rows_of_a_system_are_judged_and_written(tables):
    def rows_of(*options, code=0):
        said = judge(tables, "sharing", "--table", "loops.csv", "--table", "caps.csv", "--csv",
                     "rows.csv", "--json", "all.json", *options, code=code)
        return said if code else list(csv.DictReader((tables / "rows.csv").open()))
    assert len(rows_of()) == 3
    whole = json.loads((tables / "all.json").read_text())
    assert [one["role"] for one in whole["summary"]] == ["all", "fit", "judge", "all"]
    [loops] = rows_of("--system", "time-slicing")
    assert (loops["table"], loops["system"]) == ("loops", "time_slicing")
    assert float(loops["error"]) == pytest.approx(
        float(loops["simulated"]) / float(loops["measured"]) - 1)
    assert "--system: no row of these systems" in rows_of("--system", "mps", code=2)
    assert 'unknown mechanism "l3"; expected one of' in rows_of("--without", "l3", code=2)
    assert "a file that this command reads" in rows_of("--csv", "caps.csv", code=2)


# Decode waits for DRAM: half of the SMs are enough for it, unless traffic goes with the SMs.
def test_a_mechanism_is_left_out(tables):
    def time_at_half(*options):
        judge(tables, "sharing", "--table", "caps.csv", "--csv", "rows.csv", *options)
        return float(next(csv.DictReader((tables / "rows.csv").open()))["simulated"])
    assert time_at_half() < 1.2
    assert time_at_half("--without", "dram_saturation") > 1.4


# Each of the two loops has half of the 141 passes a second that were measured, in any window.
def test_rates_over_time_are_those_of_windows(tables):
    def rates(window):
        said = judge(tables, "sharing", "--table", "loops.csv", "--over-time", window)
        return list(map(float, said.split("over time: ")[1].split("\n")[0].split()))
    seconds = rates("1s")
    assert len(seconds) >= 2
    assert all(rate == pytest.approx(70.5, abs=5) for rate in seconds)
    assert len(rates("2s")) == len(seconds) // 2
    assert "--over-time: expected a duration above 0" in judge(
        tables, "sharing", "--table", "loops.csv", "--over-time", "0s", code=2)


def test_threads_change_nothing(tables):
    one, two = (judge(tables, "sharing", "--table", "caps.csv", "--jobs", jobs) for jobs in "12")
    assert one == two
