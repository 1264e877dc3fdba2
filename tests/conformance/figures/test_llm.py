"""Tables of language-model servers, on frames made by hand."""
import pandas
import pytest

from tables import beyond_llm, field, field_claims


def rows(*values):
    """(policy, training kept, p95 of TTFT, of TPOT, completed of 100): by the pipeline, two seeds."""
    return pandas.DataFrame([{
        "config": "pipeline", "policy": policy, "seed": seed, "oracle": policy == "ideal",
        "filler_gpus_admitted": 4, "requests_completed": completed,
        "training_normalised_fraction": kept, "ttft_p50_ms": 50.0, "ttft_p95_ms": ttft + seed,
        "tpot_p50_ms": 20.0, "tpot_p95_ms": tpot, "requests_within_limits": 80,
        "requests_arrived": 100} for policy, kept, ttft, tpot, completed in values
        for seed in (-1, 1)])


def test_a_policy_keeps_what_its_means_are_within():
    table = beyond_llm.servers(rows(("mps", 0.8, 200.0, 30.0, 100), ("ideal", 1, 900, 90, 90),
                                    ("tgs", 0.99, 5000.0, 20.0, 95), ("mig", 0.95, 100, 150, 99),
                                    ("reef", 1.0, 900.0, 20.0, 89)))
    kept = table.set_index("policy")["keeps"]
    assert kept["mps"] == "TTFT, TPOT"
    assert kept["ideal"] == "training, TTFT, TPOT"
    assert kept["tgs"] == "training, TPOT"
    assert kept["mig"] == "training, TTFT"
    assert kept["reef"] == "training"  # it falls behind
    assert table.set_index("policy").loc["mps", "ttft_p95_ms"] == 200
    # An oracle is no policy that one can have.
    assert beyond_llm.keepers(table, "a pipeline of 4") == []
    assert beyond_llm.keepers(table, "a pipeline of 4", "training") == ["tgs", "mig", "reef"]


def test_a_finding_is_judged_by_whether_a_real_policy_keeps_all():
    some = beyond_llm.servers(rows(("mps", 0.96, 200.0, 30.0, 100)))
    found = {claim.id: claim for claim in beyond_llm.findings(some)}
    assert found["llm-beside-pipeline"].agrees is True
    assert "MPS" in found["llm-beside-pipeline"].ours
    assert found["llm-beside-tensor"].agrees is False


def apart_table(best):
    rates = {gpus: 10.0 - abs(gpus - best) for gpus in range(1, 8)}
    return pandas.DataFrame({"prefill_gpus": list(rates), "requests_per_s": list(rates.values()),
                             "ttft_p50_ms": 1.0, "tbt_p50_ms": 1.0, "tbt_p99_ms": 1.0})


@pytest.mark.parametrize("best, inside", [(1, False), (4, True), (7, False)])
def test_a_ratio_is_best_inside_or_at_an_end(best, inside):
    assert field_claims.apart(apart_table(best))[0].agrees is inside


def test_tails_of_swaps_are_means_over_seeds_and_held_against_each_other():
    frame = pandas.DataFrame([
        {"config": name, "ttft_p95_ms": tail, "ttft_p99_ms": tail + seed, "tbt_p99_ms": tail / 10,
         "tbt_max_ms": tail, "server_preemptions": 5}
        for name, tail in (("blocks", 400.0), ("groups", 300.0), ("beside", 200.0),
                           ("reuse", 100.0)) for seed in (-1, 1)])
    table = field.swaps(frame)
    assert list(table["ttft_p99_ms"]) == [400, 300, 200, 100]
    claim = field_claims.swaps(table)[0]
    assert claim.agrees is True  # 400 / 100 = 4 lies within 1.4 to 11.2
    assert "4.0" in claim.ours
