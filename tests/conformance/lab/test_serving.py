"""scripts/judge serving on bundles of two requests."""
import csv
import json

import pytest

from judge import judge

KWARGS = {"max_num_seqs": 8, "max_num_batched_tokens": 512, "max_model_len": 4096}
META = {"model": "meta-llama/Llama-3.1-8B", "vllm_version": "0.19.0", "engine_kwargs": KWARGS}
CLUSTER = {"link_bw": 16, "link_latency": 2000, "nodes": [{"instances": [{"hardware": "RTX4090"}]}]}


def request(name, prompt, output, arrival, first, last):
    return {"request_id": name, "input_toks": prompt, "output_toks": output,
            "arrival_time": 1000 + arrival, "queued_ts": arrival, "first_token_ts": first,
            "last_token_ts": last}


# Out of order: "a" comes first.
REQUESTS = [request("b", 300, 3, 2, 2.5, 2.7), request("a", 100, 1, 1, 1.25, 1.25)]


@pytest.fixture
def bundle(tmp_path):
    """Writes a bundle and judges it, with the arguments of `scripts/judge serving`; its JSON, or
    with code=2 what was said of the fault."""
    def run(*arguments, meta=None, requests=REQUESTS, cluster=CLUSTER, code=0, given="run"):
        (tmp_path / "run/vllm").mkdir(parents=True, exist_ok=True)
        (tmp_path / "run/config.json").write_text(json.dumps(cluster))
        (tmp_path / "run/vllm/meta.json").write_text(json.dumps(META if meta is None else meta))
        lines = "".join(json.dumps(one) + "\n" for one in requests)
        (tmp_path / "run/vllm/requests.jsonl").write_text(lines)
        said = judge(tmp_path, "serving", given, "--json", "judged.json", *arguments, code=code)
        if code:
            return said
        return json.loads((tmp_path / "judged.json").read_text())["bundles"][0]
    run.folder = tmp_path
    return run


def with_resolved(**config):
    return META | {"resolved_config": config}


def test_fifteen_figures_of_both_sides(bundle):
    judged = bundle()
    figures = {one["figure"]: one for one in judged["figures"]}
    assert list(figures) == [f"{time}_{which}" for time in ("ttft", "tpot", "latency")
                             for which in ("mean", "p50", "p90", "p95", "p99")]
    assert all(one["simulated_ms"] > 0 for one in figures.values())
    # First tokens after 250 and 500 ms; one request has further tokens, 2 in 200 ms.
    assert figures["ttft_mean"]["measured_ms"] == pytest.approx(375)
    assert figures["ttft_p90"]["measured_ms"] == pytest.approx(250 + 0.9 * 250)
    assert figures["tpot_mean"]["measured_ms"] == pytest.approx(100)
    assert figures["latency_mean"]["measured_ms"] == pytest.approx((250 + 700) / 2)
    shares = [one["error_percent"] for one in figures.values()]
    assert judged["mean_absolute_error_percent"] == pytest.approx(sum(map(abs, shares)) / 15)
    assert judged["worst_error_percent"] == max(shares, key=abs)
    assert {"kv_cache_size_computed", "prompts_shared_unknown"} == set(judged["counters"])
    assert bundle(given="run/vllm")["bundle"] == judged["bundle"]


def test_times_of_each_request_are_written(bundle):
    bundle("--requests", "requests.csv", "--csv", "figures.csv")
    rows = list(csv.DictReader((bundle.folder / "requests.csv").open()))
    assert [row["request"] for row in rows] == ["a", "b"]
    assert [row["measured_ttft_ms"] for row in rows] == ["250.000", "500.000"]
    assert [row["measured_tpot_ms"] for row in rows] == ["", "100.000"]
    assert [row["queued_s"] for row in rows] == ["0.000000", "1.000000"]
    assert float(rows[1]["simulated_latency_ms"]) > float(rows[1]["simulated_ttft_ms"])
    assert len((bundle.folder / "figures.csv").read_text().splitlines()) == 16


# Without a threshold the prompts take a step each, and two further tokens two more; of at most 128
# tokens a step, the prompt of 300 takes three. What the engine resolved stands before what was
# given, and a threshold of 0 is none.
@pytest.mark.parametrize("given, resolved, steps", [
    (None, None, 4), (None, 128, 6), (128, None, 6), (128, 0, 4)])
def test_the_recorded_threshold_of_long_prompts_holds(bundle, given, resolved, steps):
    meta = with_resolved(
        scheduler_config={"long_prefill_token_threshold": resolved},
        compilation_config={"cudagraph_capture_sizes": []})
    meta["engine_kwargs"] = KWARGS | {"long_prefill_token_threshold": given}
    judged = bundle(meta=meta)
    assert judged["steps"] == steps
    assert judged["counters"]["steps_without_graphs"]["count"] == 1


def test_settings_that_no_simulated_server_has_are_counted(bundle):
    judged = bundle(meta=with_resolved(
        scheduler_config={"policy": "priority"}, model_config={"quantization": "fp8"},
        cache_config={"cache_dtype": "auto"}))
    counters = judged["counters"]
    assert counters["scheduling_policy_ignored"]["severity"] == "notice"
    assert counters["quantization_ignored"]["severity"] == "loss"
    assert "kv_cache_dtype_ignored" not in counters


@pytest.mark.parametrize("meta, said", [
    ({"model": "m"}, "run/vllm/meta.json: /engine_kwargs: is missing; expected the engine's"),
    ([], "is no JSON object"),
    (META | {"engine_kwargs": KWARGS | {"max_num_seqs": 0.5}},
     "/engine_kwargs/max_num_seqs: found 0.5; expected a whole number from 1 on"),
    (META | {"engine_kwargs": KWARGS | {"max_model_len": 200}},
     "the request 'b' has 300 tokens of prompt and 3 of output, but the model's window is 200"),
    (META | {"kv_cache": {"num_gpu_blocks": 5}}, "but the whole KV cache holds 64"),
    (META | {"kv_cache": {"gpu_memory_utilization": 2}},
     "/kv_cache/gpu_memory_utilization: found 2; expected a share of the GPU's memory"),
    (META | {"engine_kwargs": KWARGS | {"pipeline_parallel_size": 4}},
     "pipeline_parallel_size: found 4; expected 1"),
    (META | {"engine_kwargs": KWARGS | {"data_parallel_size": 2}},
     "found data_parallel_size 2 for a model without experts"),
    (META | {"model": "org/unknown"}, "no model is published as 'org/unknown'; known: "),
])
def test_settings_that_cannot_be_served_are_refused(bundle, meta, said):
    assert said in bundle(meta=meta, code=2)


@pytest.mark.parametrize("request_line, said", [
    (request("a", 1, 1, 1, 0.5, 2), "line 1/first_token_ts: found 0.5; expected a time after"),
    (request("a", 1, 1, 1, 2, 1.5), "line 1/last_token_ts: found 1.5; expected first_token_ts"),
    (request("a", 1, 1, 1, 2, 1e299), "line 1/last_token_ts: found 1e+299; expected seconds"),
    (request("a", 1, 2, 1, 2, 2), "run: its tpot_mean is measured as 0.0 ms; expected more than 0"),
    (request("a", 1, 1, 1, 2, 2) | {"arrival_time": None},
     "line 1/arrival_time: is missing; expected a number"),
])
def test_times_that_cannot_be_are_refused(bundle, request_line, said):
    assert said in bundle(requests=[request_line], code=2)


def test_two_requests_of_a_name_are_refused(bundle):
    assert "line 2/request_id: found \"a\"; expected a name of its own" in bundle(
        requests=[request("a", 1, 1, 1, 2, 2)] * 2, code=2)


def test_a_span_of_centuries_is_refused(bundle):
    lines = [request("a", 1, 1, 1, 2, 2), request("b", 1, 1, 1e11, 1e11 + 1, 1e11 + 1)]
    assert "'b' arrives 99999999999" in bundle(requests=lines, code=2)


def test_several_gpus_need_their_link(bundle):
    meta = META | {"engine_kwargs": KWARGS | {"tensor_parallel_size": 2}}
    assert "config.json: no link_bw" in bundle(meta=meta, cluster={}, code=2)


# ---- what prompts share; the bundle's blocks hold 16 tokens

PROMPTS = [request("bench-0", 100, 2, 1, 1.5, 1.6), request("bench-1", 300, 2, 3, 3.5, 3.6)]


def with_prompts(bundle, *prompts, code=0):
    lines = "".join(json.dumps({"input_tok_ids": list(ids)}) + "\n" for ids in prompts)
    (bundle.folder / "workload.jsonl").write_text(lines)
    return bundle("--prompts", "workload.jsonl", requests=PROMPTS, code=code)


# The second prompt begins with 100, 40 or none of the first one's tokens, of which blocks of 16 are
# computed once: 6, 2 and 0. Tokens 10 to 99 behind others are not shared.
@pytest.mark.parametrize("second, shared", [
    (range(300), 96), ([*range(40), *range(1000, 1260)], 32),
    ([*range(2000, 2010), *range(10, 300)], 0)])
def test_shared_blocks_are_computed_once(bundle, second, shared):
    judged = with_prompts(bundle, range(100), second)
    assert judged["prefix_hit_tokens"] == shared
    assert "prompts_shared_unknown" not in judged["counters"]


@pytest.mark.parametrize("prompts, said", [
    ([[1, -2]], "workload.jsonl: line 1: has no token ids"),
    ([[1 << 32]], "numbers below 2^32"),
    ([range(99)], "found 99 tokens; bench-0 was measured with 100"),
    ([range(100)], "found 1 requests; expected the 2"),
    ([range(100), range(300), range(5)], "line 3: found a request that was not measured"),
])
def test_another_workload_is_refused(bundle, prompts, said):
    assert said in with_prompts(bundle, *prompts, code=2)


# ---- step times, outputs

def test_files_of_step_times_are_read_and_refused(bundle):
    (bundle.folder / "empty.json").write_text("{}")
    assert "empty.json" in bundle("--layers", "empty.json", code=2)
    assert "empty.json" in bundle("--steps", "empty.json", code=2)
    assert "not allowed with" in bundle("--steps", "a", "--layers", "b", code=2)
    assert "--layers: found 2 for 1 bundles" in bundle("--layers", "a", "--layers", "b", code=2)


def sums(tokens, keys):
    """Of one sequence."""
    return {"sequences": float(tokens > 0), "tokens": tokens, "keys": keys,
            "squares": tokens * tokens, "products": tokens * keys}


# A prompt of 300 tokens takes 80 ms and a sequence that decodes behind it 20 ms, as recorded; the
# first token comes with the prompt's step, two more with a step of decoding each. The host takes
# what configs/engines says, below 2 ms.
def test_recorded_steps_say_what_steps_take(bundle):
    steps = [{"prompts": sums(300, 300), "singles": sums(0, 0), "kernels_us": 80_000},
             {"prompts": sums(0, 0), "singles": sums(1, 301), "kernels_us": 20_000}]
    (bundle.folder / "steps.json").write_text(json.dumps(
        {"format": "bubblesim.steps/1", "gpu": "", "source": "engine.json", "steps": steps}))
    judged = bundle("--steps", "steps.json", requests=[request("a", 300, 3, 1, 2, 3)])
    simulated = {one["figure"]: one["simulated_ms"] for one in judged["figures"]}
    assert simulated["ttft_mean"] == pytest.approx(81, abs=1.5)
    assert simulated["tpot_mean"] == pytest.approx(21, abs=1.5)
    assert judged["step_times"].endswith("corrected by steps of engine.json")


def test_an_input_is_not_written_over(bundle):
    assert "a file that this command reads" in bundle("--json", "run/vllm/meta.json", code=2)
