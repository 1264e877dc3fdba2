"""bubblesim.fleet: which fill work goes to which jobs. Splits and placements by hand, tables and
their faults, and the command on the tables of configs/advise/fleet."""
import csv
import json
import os
import random
import signal
import subprocess
import sys

import bubblesim
import pytest
from common import SOURCE

pytest.importorskip("numpy")
from bubblesim.fleet import (Answer, Job, Kind, Plan, Work, best_split, main, place_work, plan_csv,
                             plan_json, plan_text, read_jobs, read_work)

TABLES = SOURCE / "configs/advise/fleet"
QUICK = ["--duration", "600ms", "--warmup", "200ms", "--budget", "1s", "--policy", "mps", "--keep",
         "0.9"]


def value_of(value, split):
    return sum(v * s for values, hours in zip(value, split) for v, s in zip(values, hours))


def test_a_split_gives_each_kind_the_work_that_is_worth_most():
    assert best_split([10, 20], [None, None], [[0.5, 0.3], [0.1, 0.4]], [[1, 1], [1, 1]]) == [
        [10, 0], [0, 20]]
    assert best_split([10], [None], [[-0.1]], [[5]]) == [[0]]  # nothing pays


def test_work_that_ends_goes_to_whom_a_request_is_worth_most():
    """60 requests of the better work: kind 0 does 2 an hour at 0.5, kind 1 does 4 at 0.6. An hour
    of it is worth 0.2 more than the other work to kind 0, 0.1 a request; 0.1 more to kind 1, 0.025 a
    request. So kind 0 has all of its 10 hours of it, 20 requests; the other 40 are 10 of kind 1's
    20 hours."""
    split = best_split([10, 20], [60, None], [[0.5, 0.3], [0.6, 0.5]], [[2, 9], [4, 9]])
    assert split[0] == pytest.approx([10, 0]) and split[1] == pytest.approx([10, 10])


def test_no_split_on_a_grid_is_better():
    numbers = random.Random(7)
    for _ in range(20):
        left = [2 + 4 * numbers.random(), 3 * numbers.random()]
        value = [[numbers.random() - 0.1 for _ in "ab"] for _ in "ab"]
        done = [[0.5 + numbers.random() for _ in "ab"] for _ in "ab"]
        split = best_split([2, 3], left, value, done)
        assert all(sum(hours) <= most + 1e-9 for hours, most in zip(split, [2, 3]))
        best = 0
        for code in range(5 ** 2 * 7 ** 2):
            a, b, c, d = code % 5, code // 5 % 5, code // 25 % 7, code // 175
            other = [[a / 2, b / 2], [c / 2, d / 2]]
            requests = [sum(done[kind][work] * other[kind][work] for kind in range(2))
                        for work in range(2)]
            if a + b <= 4 and c + d <= 6 and all(r <= most for r, most in zip(requests, left)):
                best = max(best, value_of(value, other))
        assert value_of(value, split) >= best - 1e-9


def job(name, gpus, hours):
    return Job(name, "line 2", {}, "", gpus, hours)


def gaining(gains, costs, requests_per_s):
    return Answer("", "mps", "mps", gains, costs, requests_per_s, {})


@pytest.fixture
def placed():
    """Kind 0: jobs of 4 and 2 GPUs for 10 and 24 hours: 40 + 48 GPU-hours. Kind 1: 10. Work 0 has
    3,600 x 50 requests: at 1 a second and GPU, 50 GPU-hours of kind 0, worth 0.3 an hour more than
    work 1 there; kind 1 gains 0.1 of it and loses 0.2: no work pays there."""
    plan = Plan([job("a", 4, 10), job("b", 10, 1), job("c", 2, 24)],
                [Work("first", "", {}, 3600.0 * 50), Work("second", "", {})], 0.98,
                [Kind(0, gpu_hours=88, answers=[gaining(0.5, 0, 1), gaining(0.2, 0.01, 2)]),
                 Kind(1, gpu_hours=10, answers=[gaining(0.1, 0.2, 1), gaining(0.1, 0.2, 1)])],
                [0, 1, 0], [4, 10, 2])
    place_work(plan)
    return plan


def test_work_is_placed_job_by_job(placed):
    assert [(job, work) for job, work, _ in placed.placements] == [(0, 0), (2, 0), (2, 1)]
    assert [hours for _, _, hours in placed.placements] == pytest.approx([10, 5, 19])
    filled, gained, lost, _ = placed.gained()
    assert [filled, gained, lost] == pytest.approx([88, 50 * 0.5 + 38 * 0.2, 38 * 0.01])
    assert placed.gained(0)[3] == pytest.approx(3600 * 50)
    assert "\nb,b,10,,0,,,0,0,0\n" in plan_csv(placed)
    assert "no work pays under the setting that gains most, or none is left" in plan_text(placed)
    assert plan_json(placed)["gpu_hours"] == 98


def test_a_sum_has_no_negative_nothing():
    plan = Plan([job("a", 1, 24)], [Work("first", "", {})], 0.98,
                [Kind(0, gpu_hours=24, answers=[gaining(0.5, -0.00004, 1)])], [0], [1])
    place_work(plan)
    assert "-0.00" not in plan_text(plan)


def table(folder, text):
    file = folder / "table.csv"
    file.write_text(text, encoding="utf-8")
    (folder / "traces").mkdir(exist_ok=True)
    return str(file)


def test_tables_are_jobs_and_work(tmp_path):
    jobs = read_jobs(table(tmp_path, "\ufeffjob,hours,gpus,trace,model,plan,cluster,memory\n"
                                     "a,30,64,traces,,,,24GB\nb,0.5,,,gpt2-large,pp-4-1f1b,c,\n"))
    assert jobs[0] == Job("a", "line 2", {"trace": [str(tmp_path / "traces")], "memory": "24GB"},
                          "", 64, 24)
    assert jobs[1].training == {"synth": {"model": "gpt2-large", "plan": "pp-4-1f1b",
                                          "cluster": "c"}}
    work = read_work(table(tmp_path, "work,trace,model,batch,prompt_tokens,requests,weight\n"
                                     "embed,traces,,,,5000,\nchat,,llama-68m,8,128,,2\n"))
    assert [(one.requests, one.weight) for one in work] == [(5000, 1), (None, 2)]
    assert work[1].filler["program"] == {"model": "llama-68m", "batch": 8, "prompt_tokens": 128}


@pytest.mark.parametrize("read, text, faults", [
    (read_jobs, "job,hours,gpu\na,1,1\n",
     ["header: unknown column \"gpu\"; did you mean \"gpus\"?"]),
    (read_jobs, "job,trace\na,traces\n", ["line 1: no column \"hours\""]),
    (read_jobs, "", ["is empty"]),
    (read_jobs, "job,hours\n", ["found no row below the header"]),
    (read_jobs, "job,hours\na\n", ["line 2: found 1 cells; expected 2"]),
    (read_jobs, "job,hours,gpus,trace,model,plan\na,-1,2,traces,,\na,3,x,traces,gpt2-large,p\n"
                "b,,2,elsewhere,,\nc,1,1,traces,,p\n",
     ["line 2: hours: found \"-1\"; expected a number above 0", "line 3: job: found \"a\"",
      "line 3: gpus: found \"x\"", "line 3: trace: found \"traces\"; expected either",
      "line 4: hours: found \"\"", "line 4: trace: found \"elsewhere\"; expected a file or folder",
      "line 5: plan: found \"p\"; expected nothing, as there is a trace"]),
    (read_work, "work,trace,model,batch\nx,,,\ny,,m,1.5\n\"z\n1\",traces,,8\n",
     ["line 2: model: found \"\"; expected either", "line 3: batch: found \"1.5\"; expected a",
      "line 4: batch: found \"8\"; expected nothing"])])
def test_all_faults_of_a_table_are_told_by_their_lines(tmp_path, read, text, faults):
    with pytest.raises(bubblesim.Error) as raised:
        read(table(tmp_path, text))
    lines = str(raised.value).split("\n")
    for fault in faults:
        assert any(line.startswith(f"{tmp_path}/table.csv: {fault}") for line in lines), lines


def test_the_command_says_which_work_goes_where(tmp_path, capsys):
    files = [f"{tmp_path}/{name}" for name in ("fleet.csv", "fleet.html", "fleet.db")]
    line = [f"{TABLES}/jobs.csv", "--queue", f"{TABLES}/work.csv", *QUICK, "--csv", files[0],
            "--html", files[1], "-o", files[2]]
    assert main(line) == 0
    text = capsys.readouterr().out
    assert "4 jobs of 3 kinds, 2 works: " in text and " runs now, 0 stored before" in text
    assert "Which fill work goes where" in open(files[1]).read()
    rows = list(csv.DictReader(open(files[0])))
    assert main([*line, "--json", "--threads", "1"]) == 0  # the store has all runs
    plan = json.loads(capsys.readouterr().out)
    gained = sum(float(row["gained_gpu_hours"]) for row in rows)
    assert gained > 0 and gained == pytest.approx(plan["gained_gpu_hours"], rel=1e-3)
    assert [kind["jobs"] for kind in plan["kinds"]] == [2, 1, 1]
    answer = plan["kinds"][0]["answers"][0]  # its config does again what it says
    policy = bubblesim.run(answer["run_config"])["policies"][0]
    assert policy["training"]["normalised_fraction"] == answer["training_kept"]


@pytest.mark.parametrize("words, fault", [
    ([], "one of the arguments --queue --filler is required"),
    (["--queue", "{work}", "--filler-memory", "4GB"], "--filler-memory: found with --queue"),
    (["--queue", "{work}", "--p95", "50ms"], "unrecognized arguments: --p95"),
    (["--queue", "{work}", "--warmup", "30s"], "--warmup: found 30s, expected less than --dur"),
    (["--queue", "{work}", "--keep", "2"], "--keep: found 2, expected a number from 0.01 to 1"),
    (["--queue", "{work}", "--can", "msp"], "--can: unknown system feature \"msp\"; did you"),
    (["--queue", "{work}", "--csv", "{work}"], "found a file that this command reads"),
    (["--filler", "{filler}", "--filler-memory", "x"], "--filler: memory: found \"x\""),
    (["--filler", "{filler}", "--filler-memory", "900GB"], "fits no job; beside recorded-a: "),
    (["--queue", "{broken}"], "broken.csv: line 2: model: "),
    (["--queue", "{work}", "--policy-library", "{work}"], "work.csv: cannot be loaded")])
def test_faults_are_told_in_one_line(tmp_path, capsys, words, fault):
    (tmp_path / "broken.csv").write_text("work,model\nw,bert-basee\n")
    places = {"work": f"{TABLES}/work.csv", "broken": f"{tmp_path}/broken.csv",
              "filler": f"{SOURCE}/traces/samples/inference.json.gz"}
    words = [word.format(**places) for word in words]
    try:
        code = main([f"{TABLES}/jobs.csv", *QUICK[:4], *words])
    except SystemExit as ended:
        code = ended.code
    assert code == 2 and fault in capsys.readouterr().err


def test_a_job_that_does_not_load_is_told_by_its_line(tmp_path, capsys):
    (tmp_path / "traces").mkdir()
    jobs = table(tmp_path, "job,hours,trace\nlost,24,traces\n")
    assert main([jobs, "--filler", f"{SOURCE}/traces/samples/inference.json.gz"]) == 2
    assert "table.csv: line 2: job lost: " in capsys.readouterr().err


def test_a_signal_ends_it_with_what_is_known():
    process = subprocess.Popen(
        [sys.executable, "-m", "bubblesim.fleet", f"{TABLES}/jobs.csv", "--queue",
         f"{TABLES}/work.csv", "--budget", "10min", "--json"], stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, env=os.environ)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(4)
    process.send_signal(signal.SIGTERM)
    out, errors = process.communicate(timeout=120)
    assert process.returncode == 130, errors
    plan = json.loads(out)
    assert plan["stopped"] and plan["kinds"][2]["answers"][1]["reason"] == "stopped"
