"""Tables of 03_beyond, on frames made by hand."""
import json

import pandas
import pytest

from tables import beyond, beyond_claims, beyond_jobs, results


def rows(*values, **columns):
    """A sweep's rows: policy, training kept, filler throughput; other columns by name."""
    frame = pandas.DataFrame(values, columns=["policy", "training_normalised_fraction",
                                              "filler_normalised_fraction"])
    return frame.assign(oracle=0, filler_gpus_admitted=4, policy_parameters="", seed=1, **columns)


def test_the_plane_adds_what_training_and_the_filler_get():
    frame = rows(("mps", 0.75, 0.5), ("exclusive", 1.0, None), **{beyond.MODEL: "llama2-7b"})
    table = beyond.plane(frame)
    assert list(table["job"]) == ["model parallel (LLaMA2-7B)"] * 2
    assert list(table["work_gpus"]) == [1.25, 1.0]


def test_a_place_that_is_not_swept_has_its_fixed_value():
    assert list(beyond.plane(rows(("mps", 1, 0)))["job"]) == ["pipeline (GPT2-large)"]


def test_an_oracles_line_ends_where_the_filler_has_all_gpus():
    table = beyond.plane(rows(("ideal_spatial", 1.0, 0.4), ("mps", 0.5, 0.75),
                              ("mig", 0.5, 0.65))).assign(oracle=[True, False, False])
    assert beyond.front(table, "ideal_spatial") == ([0.4, 1.0], [1.0, 0.0])
    # At half of training the line holds 0.4 + 0.5 x 0.6 = 0.7: MPS is beyond it, MIG is not.
    assert beyond.beyond_oracle(table) == ["mps"]


def test_a_service_that_leaves_more_than_a_twentieth_has_not_kept_up():
    frame = rows(("mps", 1, 1), ("mps", 1, 1), ("tgs", 1, 0), ("tgs", 1, 0)).assign(
        seed=[1, 2, 1, 2], filler_requests_per_s=[10, 12, 4, 4], latency_p95_ms=[5.0, 7, 90, 90],
        requests_completed=[95, 96, 50, 50], requests_arrived=100)
    table = beyond.service_plane(frame).set_index("policy")
    assert table.loc["mps", ["requests_per_s", "p95_ms", "seeds"]].tolist() == [11, 6, 2]
    # Two values 2 apart: deviation sqrt 2, t 12.706, so 12.706 x sqrt 2 / sqrt 2.
    assert table.loc["mps", "half"] == pytest.approx(12.706)
    assert table["kept_up"].to_dict() == {"mps": True, "tgs": False}


def test_each_step_costs_the_work_that_it_takes_from_the_one_before():
    names = {name for chain in beyond.CHAINS.values() for name, _, _ in chain}
    left = {"bound-time": 1.5, "freeride-whole-passes": 1.25, "freeride-manager": 1.125,
            "freeride": 1.0625, "freeride-memory": 1.0}
    frame = rows(*[("any", 1.0, left.get(name, 1.0) - 1.0) for name in sorted(names)],
                 config=sorted(names))
    table = beyond.losses(frame)
    free = table[table["policy"] == "freeride"]
    assert list(free["loss"]) == ["oracle", "no preemption", "detection delay",
                                  "loop of the task", "memory"]
    assert list(free["cost_gpus"]) == [0, 0.25, 0.125, 0.0625, 0.0625]
    assert beyond.largest_loss(free)["loss"].tolist() == ["no preemption"]


def test_spans_and_sizes_are_read_with_their_units():
    assert [results.milliseconds(t) for t in ("50us", "2ms", "1s", "500ns")] == [
        pytest.approx(0.05), 2.0, 1000.0, pytest.approx(5e-4)]
    assert results.gigabytes("12GB") == 12
    with pytest.raises(ValueError, match="no span"):
        results.milliseconds("5")
    with pytest.raises(ValueError, match="GB"):
        results.gigabytes("12MiB")


def test_detection_reads_the_delay_from_the_policys_parameters():
    frame = rows(("ideal", 1, 0.4), ("specinf", 0.7, 0.4), ("freeride", 1, 0.1)).assign(
        policy_parameters=["", "poll=2ms;window=500us", "grace=500ms;manager_poll=10ms"])
    assert beyond.detection(frame)["delay_ms"].tolist()[1:] == [0.5, 10.0]
    assert pandas.isna(beyond.detection(frame)["delay_ms"][0])


# `bubblesim schedule NAME --stages 4 --micro-batches 8` at F = I = W = 1, bubble of the makespan.
@pytest.mark.parametrize("schedule, fraction", [
    ("gpipe", 9 / 33), ("1f1b", 9 / 33), ("interleaved", 9 / 57), ("zb-h1", 3 / 27),
    ("zb-h2", 3 / 27), ("zb-v", 3 / 51), ("dualpipe", 2 / 26), ("dualpipev", 6 / 54)])
def test_closed_forms_are_those_of_the_schedules_command(schedule, fraction):
    assert beyond_jobs.closed_form(schedule, 4, 8) == pytest.approx(fraction)


def test_freerides_arithmetic_gives_its_own_number():
    # (p-1)/(m+p-1) at p = m = 4: 3/7 = 42.9 %.
    assert beyond_jobs.closed_form("1f1b", 4, 4) == pytest.approx(0.429, abs=5e-4)
    assert beyond_jobs.closed_form("chimera", 4, 4) is None


def schedule_rows():
    """1F1B and ZB-H1, stages alike, a slot of 10 ms: 30 ms a micro-batch, 9 and 3 slots idle."""
    out = []
    for schedule, idle in (("1f1b", 90.0), ("zb-h1", 30.0)):
        for m in (8, 32):
            time = 30.0 * m + idle
            out += [("exclusive", 1.0, None, schedule, m, time, idle / time),
                    ("ideal", 1.0, idle / time, schedule, m, time, 0.0)]
    return pandas.DataFrame(out, columns=[
        "policy", "training_normalised_fraction", "filler_normalised_fraction",
        beyond_jobs.SCHEDULE, beyond_jobs.GLOBAL_BATCH, "training_iteration_mean_ms",
        "bubble_fraction"])


def test_bubbles_are_of_the_job_alone_and_an_oracle_uses_the_whole_gpu():
    table = beyond_jobs.schedules(schedule_rows())
    ideal = table[table["policy"] == "ideal"]
    assert ideal["bubble"].tolist() == pytest.approx(ideal["closed_form"].tolist())
    assert ideal["used_gpus"].tolist() == pytest.approx([1.0] * 4)


def test_what_a_schedule_saves_is_its_idle_slots():
    table = beyond_jobs.schedules(schedule_rows())
    assert beyond_jobs.per_micro_batch(table, "1F1B") == pytest.approx((30.0, 30.0))
    saved = beyond_jobs.savings(table).set_index(["schedule", "micro_batches"])
    # 9 - 3 slots of 10 ms.
    assert saved.loc[("ZB-H1", 8)].tolist() == pytest.approx([60.0, 60.0])
    claim = beyond_claims.schedules(table)[0]
    assert claim.id == "schedule-zb-h1" and claim.agrees is True


def test_one_number_of_micro_batches_leaves_the_schedules_open():
    frame = schedule_rows()
    table = beyond_jobs.schedules(frame[frame[beyond_jobs.GLOBAL_BATCH] == 8].reset_index())
    assert [c.agrees for c in beyond_claims.schedules(table)] == [None]


def test_overhead_is_the_time_that_training_takes_longer():
    frame = rows(("exclusive", 1.0, None), ("freeride", 0.8, 0.3)).assign(
        config="VGG-19", bubble_fraction=[0.43, 0.4], bubble_recovered_fraction=[0, 0.5],
        **{beyond_jobs.GLOBAL_BATCH: 16, beyond_jobs.STEP_CV: 0.091,
           "/policies/0": ["exclusive", "freeride"]})
    table = beyond_jobs.side_tasks(frame)
    assert table["loop"].tolist() == ["fits", "artifact"]
    assert table["steps_vary"].tolist() == pytest.approx([9.1, 9.1])
    assert table["micro_batches"].tolist() == [4, 4]
    assert table["bubble"].tolist() == [0.43, 0.43]
    assert table["overhead_percent"].tolist() == pytest.approx([0.0, 25.0])


def test_a_loop_is_the_artifacts_unless_its_config_says_otherwise():
    def loop(**given):
        return beyond_jobs.loop_of(json.dumps({"name": "freeride", "parameters": given}))
    assert loop(looks="completion", step_margin=1) == "fits"
    assert loop(looks="completion") == "margin"
    assert loop(step_margin=1.2) == "artifact"


def test_utilisation_counts_for_bubbletea_only_where_training_is_kept():
    table = pandas.DataFrame({
        "plan": "pipeline", "link": "1 Gb/s", "bubble": 0.9,
        "policy": ["exclusive", "specinf", "freeride", "ideal"],
        "utilisation": [0.1, 0.99, 0.9, 1.0], "training_kept": [1.0, 0.6, 0.97, 1.0]})
    claim = beyond_claims.bubbletea(table)[0]
    assert claim.ours.startswith("90.0 % (freeride, 1 Gb/s)") and claim.agrees is True


def test_tokens_and_shares_are_means_over_seeds():
    frame = pandas.DataFrame({
        "config": "static", "policy": "mps", "seed": [1, 2], "latency_p95_ms": [1000.0, 3000.0],
        "filler_requests_per_s": [2.0, 4.0], "requests_within_deadline": [5, 10],
        "requests_completed": [10, 10], "requests_arrived": 10,
        "training_normalised_fraction": 0.5})
    table = beyond_jobs.serving(frame).set_index("value")["mean"]
    assert table["p95_s"] == 2 and table["tokens_per_s"] == 99 and table["in_time"] == 0.75
