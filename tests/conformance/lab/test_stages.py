"""scripts/judge stages: what a table's row says, and a stage by hand."""
import csv
import json
import os
import sys

import pytest

from judge import SOURCE, judge

sys.path.insert(0, str(SOURCE / "notebooks"))
os.environ.setdefault("BUBBLESIM_CONFIGS", str(SOURCE / "configs"))

from lab import stages  # noqa: E402
from lab.table import Cells, Table  # noqa: E402

ROW = {"role": "fit", "gpu": "H100 SXM 80GB", "run": "r", "stage": 0, "tp": 1, "rate": 2,
       "model": "meta-llama/Llama-2-7b-hf", "max_num_seqs": 128, "max_num_batched_tokens": 2048,
       "duration": 20, "system_prompt": 32, "prompts": 2, "users": 2, "output": 11, "fail": 0,
       "prompt_len_mean": 70.2, "throughput_requests_per_sec": 2, "e2e_mean_ms": 110,
       "e2e_p99_ms": 120, "ttft_mean_ms": 10, "itl_mean_ms": 5}


@pytest.fixture
def table(tmp_path):
    def write(*rows):
        path = tmp_path / "t.csv"
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, ROW)
            writer.writeheader()
            writer.writerows(ROW | row for row in rows)
        return path
    return write


def stage_of(path):
    return stages.read_stage(Cells(Table(str(path)), 0))


def test_prompts_come_again_and_users_share_their_beginning(table):
    """40 requests of four prompts of four blocks, two of which the users of a prompt share."""
    requests = stage_of(table({})).requests()
    assert len(requests) == 40
    assert [request[1] for request in requests[:3]] == [0, 500_000_000, 1_000_000_000]
    first, second, third, _, again = [request[4] for request in requests[:5]]
    assert len(first) == 4 and first == again
    assert first[:2] == second[:2] and not set(first[2:]) & set(second[2:])
    assert not set(first) & set(third)


def test_chunks_of_a_token_are_told_by_whole_requests(table):
    """Ten tokens after the first take 100 ms: 5 ms a chunk are two chunks a token."""
    stage = stage_of(table({}))
    assert stage.chunks == 2 and stage.measured["itl_mean"] == 10
    assert stage_of(table({"itl_mean_ms": 10})).chunks == 1


@pytest.mark.parametrize("row, overloaded", [
    ({}, False), ({"throughput_requests_per_sec": 1.9}, True), ({"fail": 3}, True)])
def test_a_stage_that_does_not_serve_all_is_overloaded(table, row, overloaded):
    assert stage_of(table(row)).overloaded is overloaded


def test_the_front_end_is_what_fit_rows_lack_in_the_middle(table, tmp_path):
    path = table({"ttft_mean_ms": 30}, {"ttft_mean_ms": 40}, {"ttft_mean_ms": 70},
                 {"role": "judge", "ttft_mean_ms": 45})
    judge(tmp_path, "stages", "--table", str(path), "--json", "out.json")
    out = json.loads((tmp_path / "out.json").read_text())
    simulated = [one["simulated_ms"]["ttft_mean"] for one in out["stages"]]
    assert simulated == pytest.approx([40] * 4, abs=1e-6)
    assert 30 < out["front_end_ms"] < 38


def test_what_cannot_be_read_is_told(table, tmp_path):
    said = judge(tmp_path, "stages", "--table", str(table({"gpu": "T4"})), code=2)
    assert "expected one of H100" in said
