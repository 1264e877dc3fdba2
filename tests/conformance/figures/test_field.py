"""Tables of 04_field, on frames made by hand."""
import json

import pandas
import pytest

from tables import field, field_claims


def power_rows():
    """No limit and a cap of 320 W: training 10 and 8 iterations/s, decode 4 and 3.9 requests/s."""
    common = {"gpu_clock_mean_mhz": 1410.0, "filler_gpus": 1, "filler_request_energy_j": 25.0,
              "gpu_power_peak_w": 400.0, "training_normalised_fraction": 0.5,
              "training_iteration_energy_j": 30.0}
    rows = []
    for setting, rate, own, watts in (("{}", 10.0, 4.0, 350.0), ('{"cap_w":320}', 8.0, 3.9, 310.0)):
        for policy in ("exclusive", "mps", "ideal"):
            rows.append({field.PLAN: "ddp-4", "/power": setting, "policy": policy,
                         "training_iterations_per_s": rate,
                         "gpu_power_mean_w": watts + {"mps": 20, "ideal": 30}.get(policy, 0),
                         "filler_requests_per_s": own / 2, "filler_normalised_fraction": 0.5,
                         **common})
    return pandas.DataFrame(rows)


def test_limits_cost_what_throughput_falls():
    table = field.power(power_rows())
    assert list(table["limit"]) == ["none", "320 W"]
    assert list(table["training_lost"]) == pytest.approx([0, 0.2])
    assert list(table["decode_lost"]) == pytest.approx([0, 0.025])
    assert list(table["decode_above_idle_w"]) == pytest.approx([100, 97.5])  # 25 J a request
    assert list(table["both_w"] - table["training_w"]) == [20, 20]
    assert list(table["bubbles_w"] - table["training_w"]) == [30, 30]
    assert list(table["bubbles_training_kept"]) == [0.5, 0.5]


def test_a_limit_says_of_whom_it_is():
    assert field.power_setting('{"cap_w": 320}') == "320 W"
    assert field.power_setting('{"node_cap_w": 960}') == "960 W a node"
    assert field.power_setting({}) == "none"


def test_a_plan_is_called_by_its_parts():
    assert field.plan_parts("zero3-384") == "ZeRO-3"
    assert field.plan_parts(json.dumps({"parameters": {"secondary": 16}})) == "hpZ"
    both = {"parameters": {"secondary": 16, "element_bytes": 1}}
    assert field.plan_parts(json.dumps(both)) == "hpZ + qwZ"
    levels = {"data": 4, "global_batch": 32, "parameters": {"primary": 2}}
    assert field.plan_parts(json.dumps(levels)) == "levels x 8"


def test_gains_are_over_zero_3_on_the_same_network():
    table = field.zero(pandas.DataFrame({
        field.CLUSTER: ["a", "a", "b", "b"], field.PLAN: ["zero3-384", "zeropp-384"] * 2,
        "training_iteration_mean_ms": [400.0, 100.0, 200.0, 100.0]}))
    assert list(table["gain"]) == [1, 4, 1, 2]


def overlap_rows():
    """1,024 tokens: exchanges in turn 100 ms, beside compute on 8 and on 2 SMs 80 and 110."""
    rows = []
    for overlap, ms, waiting in ((None, 100.0, 0.3), ({}, 90.0, 0.2),
                                 ({"sms": 8, "fused_norm": True}, 80.0, 0.1),
                                 ({"sms": 2, "fused_norm": True}, 110.0, 0.4)):
        plan = {"micro_batch": 2} | ({} if overlap is None else {"tensor_overlap": overlap})
        rows.append({field.PLAN: json.dumps(plan), field.PLAN + "/sequence": 512,
                     "training_iteration_mean_ms": ms, "bubble_fraction": waiting})
    return pandas.DataFrame(rows)


def test_exchanges_beside_compute_are_held_against_those_in_turn():
    table = field.overlap(overlap_rows())
    assert list(table["form"]) == ["in turn", "beside", "beside, 8 SMs, fused",
                                   "beside, 2 SMs, fused"]
    assert list(table["tokens"]) == [1024] * 4
    assert list(table["gain"]) == pytest.approx([1, 1 / 0.9, 1.25, 1 / 1.1])
    assert [claim.agrees for claim in field_claims.overlap(table)] == [True] * 4


def test_a_skew_costs_against_even_routing_and_a_placement_gains_against_the_skew():
    rows = [(zipf, placement) for zipf in (0, 1) for placement in ("contiguous", "balanced")]
    table = field.experts(pandas.DataFrame({
        field.PLAN + "/tensor": 1, field.PLAN + "/routing/zipf": [z for z, _ in rows],
        field.PLAN + "/routing/placement": [p for _, p in rows],
        "training_iteration_mean_ms": [100.0, 100.0, 150.0, 120.0],
        "bubble_fraction": [0.1, 0.1, 0.4, 0.2]}))
    skewed = table[table["zipf"] == 1].iloc[0]
    assert skewed["skew_costs"] == pytest.approx(0.5)
    assert skewed["placement_gains"] == pytest.approx(0.25)
    assert skewed["waiting"] == pytest.approx(0.4)


def test_what_a_slow_link_costs_is_its_bytes():
    plans = [{"model": "gpt2-large", "plan": {"data": 16}}] * 3
    slow = ["[]"] + [json.dumps([{"link": "nic", "gpu": 0, "slowdown": s}]) for s in (8, 16)]
    table = field.links(pandas.DataFrame({
        "/training/synth": [json.dumps(plan) for plan in plans], "/training/slow_links": slow,
        "training_iteration_mean_ms": [60.0, 160.0, 280.0], "bubble_fraction": [0.1, 0.6, 0.8]}))
    assert list(table["iteration_ratio"]) == pytest.approx([1, 160 / 60, 280 / 60])
    assert table["link_gb"].iloc[2] == pytest.approx(24 * 0.120 / 8)


def test_flows_are_held_against_those_that_are_spread():
    table = field.paths(pandas.DataFrame({
        field.CLUSTER: ["h800-clos-spread"] + ["h800-clos-hash"] * 3,
        field.HASH_SEED: [None, 1, 2, 3],
        "training_iteration_mean_ms": [100.0, 125.0, 200.0, 125.0]}))
    assert list(table["flows"]) == ["spread", "hash", "hash", "hash"]
    assert list(table["throughput_kept"]) == [1, 0.8, 0.5, 0.8]
    claims = field_claims.paths(pandas.concat(
        [table, pandas.DataFrame([{"flows": "planned", "throughput_kept": 1.0}])]))
    assert [claim.agrees for claim in claims] == [True, True]
    assert claims[0].ours == "of 3 hashes: 20.0 % by 2, 50.0 % by 1"


def test_stages_are_told_apart_by_what_they_follow():
    chain = [{"after": []}, {"after": [0]}, {"after": [1]}]
    graph = [{"after": [], "micro_batch": 2}, {"after": []}, {"after": [0, 1]}]
    table = field.stages(pandas.DataFrame({
        field.PLAN + "/stages": [json.dumps(chain), json.dumps(graph)],
        "training_iteration_mean_ms": [300.0, 200.0]}))
    assert list(table["stages"]) == ["chain", "graph, micro-batches x 2"]
    assert list(table["gain"]) == pytest.approx([1, 1.5])


def test_speculation_is_held_against_none():
    plain, tree = {"batch": 1}, {"batch": 1, "speculation": {"acceptance": 0.7}}
    table = field.speculation(pandas.DataFrame({
        "/fillers/0/program": [json.dumps(plain), json.dumps(tree)],
        "filler_requests_per_s": [1.0, 2.0], "filler_normalised_fraction": [0.5, 0.5]}))
    assert list(table["acceptance"]) == [0, 0.7]
    assert list(table["gain"]) == [1, 2]


def test_a_day_keeps_what_faults_do_not_take():
    # Twice a day: an hour at half speed, 10 minutes of restart, half of 20 minutes again.
    assert field.goodput(2, 2.0, 3600, 600, 1200) == pytest.approx(1 - 2 * 3000 / 86400)
    assert field.goodput(1, float("inf"), 3600, 0, 0) == pytest.approx(1 - 1 / 24)
    assert field.goodput(100, float("inf"), 3600, 0, 0) == 0


def test_spans_of_configs_are_seconds():
    assert field.span_s("500ms") == 0.5
    assert field.span_s("2s") == 2
    with pytest.raises(ValueError):
        field.span_s("2 hours")


def test_a_fault_is_held_against_its_closed_form():
    # 10 iterations/s over 38 s: 3 s at a stand and 20 iterations again are 5 of 38 s.
    fault = [{"at": "12s", "detection": "1s", "restart": "2s"}]
    rows = []
    for policy, filler in (("exclusive", 0.0), ("mps", 5.0)):
        for faults, rate, redone, goodput in (([], 10.0, None, None),
                                              (fault, 350 / 38, 20, 330 / 38)):
            rows.append({"/training/faults": json.dumps(faults), "policy": policy,
                         "/training/checkpoint_every": 50, "training_iterations_per_s": rate,
                         "training_redone_iterations": redone, "training_goodput_per_s": goodput,
                         "bubble_fraction": 0.1, "simulated_s": 40.0, "warmup_s": 2.0,
                         "filler_requests_per_s": filler * (2 if faults else 1)})
    table = field.outages(pandas.DataFrame(rows))
    assert list(table["kept"]) == pytest.approx([1, 33 / 38] * 2)
    assert list(table["closed_form"]) == pytest.approx([1, 33 / 38] * 2)
    assert [claim.agrees for claim in field_claims.outages(table)] == [True, True]


def test_what_is_on_the_host_is_held_against_nothing():
    rows = []
    half, slow = {"activations": 0.5}, {"activations": 0.5, "bandwidth_gb_per_s": 6.5}
    for kept, ms, gigabytes, gpus in ((None, 1000.0, 38e9, 1), (half, 1010.0, 33e9, 4),
                                      (slow, 1500.0, 33e9, 4),
                                      ({"checkpoint_every": 1}, 1000.0, 38e9, 1)):
        plan = json.dumps({} if kept is None else {"host": kept})
        rows += [{field.PLAN: plan, "policy": policy, "training_iteration_mean_ms": ms,
                  "memory_high_water_bytes": gigabytes, "filler_gpus_admitted": gpus,
                  "filler_requests_per_s": 10.0 * gpus} for policy in ("exclusive", "mps")]
    table = field.host(pandas.DataFrame(rows))
    assert list(table["on_host"]) == ["nothing", "50 % of activations",
                                      "50 % of activations, 6.5 GB/s", "checkpoint"]
    assert list(table["costs"]) == pytest.approx([0, 0.01, 0.5, 0])
    assert [claim.agrees for claim in field_claims.host(table)] == [True, True, True]


def test_rollouts_are_held_against_iterations_without():
    rows = []
    for lengths, seconds, waiting in ((None, 30.0, 0.0), ({"cv": 0.01}, 60.0, 0.01),
                                      ({"cv": 1}, 100.0, 0.3),
                                      ({"cv": 1, "spare": 1.25}, 80.0, 0.1)):
        plan = json.dumps({} if lengths is None else {"rollout": lengths})
        rows += [{field.PLAN: plan, "policy": policy, "training_iteration_mean_ms": 1e3 * seconds,
                  "bubble_fraction": waiting, "training_normalised_fraction": 0.9,
                  "filler_normalised_fraction": waiting} for policy in ("exclusive", "mps")]
    table = field.rollout(pandas.DataFrame(rows))
    alone = table[table["policy"] == "exclusive"]
    assert list(alone["lengths"]) == ["no rollout", "even", "cv 1", "cv 1, spare 1.25"]
    assert list(alone["rollout"]) == pytest.approx([0, 0.5, 0.7, 0.625])
    assert [claim.agrees for claim in field_claims.rollout(table)] == [True, True, None, True]


def test_a_slow_rank_is_held_against_the_whole_job():
    table = field.faults(pandas.DataFrame({
        field.PLAN: ["ddp-4", "ddp-4"],
        "/training/stragglers": ["[]", '[{"rank": 2, "slowdown": 2}]'],
        "training_iteration_mean_ms": [100.0, 180.0], "bubble_fraction": [0.1, 0.4]}))
    assert list(table["slowdown"]) == [1, 2]
    assert list(table["iteration_ratio"]) == pytest.approx([1, 1.8])
