"""advise(): what the program answers, and what run() makes of it."""
import json
import subprocess

import bubblesim
import pytest
from common import PROGRAM, config, environment, has_program


def question():
    base = config(["exclusive"], duration="600ms")
    base["fillers"][0]["mode"] = "offline"
    del base["fillers"][0]["arrivals"]
    return {"name": "small", "base": base, "keep": 0.9, "policies": ["mps", "stream_priority"],
            "budget": "1s"}


@pytest.fixture(scope="module")
def advice():
    told = []
    found = bubblesim.advise(question(), progress=lambda trials, best: told.append((trials, best)))
    assert told and told == sorted(told, key=lambda one: one[0])
    assert any(best.startswith(("mps", "stream_priority")) for _, best in told)
    return found


def test_the_recommendation_does_again_what_the_answer_says(advice):
    assert advice["recommended"]["training_kept"] >= 0.9
    result = bubblesim.run(advice.config)["policies"][0]
    assert result["training"]["normalised_fraction"] == advice["recommended"]["training_kept"]
    assert result["fillers"][0]["requests_per_s"] == advice["recommended"]["requests_per_s"]


def test_gains_and_costs_are_of_the_whole_job(advice):
    assert advice["gains_gpus"] == advice["recommended"]["gpus_worth"]
    assert advice["costs_gpus"] == pytest.approx(
        4 * (1 - advice["recommended"]["training_kept"]))
    assert advice.text.startswith("small: ") and "\nRun " in advice.text
    assert json.loads(advice.json) == advice


def test_it_is_what_the_program_answers(advice, tmp_path):
    if not has_program():
        pytest.skip("needs the program bubblesim")
    file = tmp_path / "question.json"
    file.write_text(json.dumps(question()))
    done = subprocess.run([PROGRAM, "advise", file, "--json", "--config", tmp_path / "c.json"],
                          capture_output=True, text=True, env=environment())
    assert done.returncode == 0, done.stderr
    program = json.loads(done.stdout)
    for key in ("recommended", "runner_up", "confirmed", "tried", "bounds", "search"):
        assert program[key] == advice[key], key
    from_file = bubblesim.advise(file, threads=1)
    assert from_file["tried"] == advice["tried"]


def test_settings_that_were_tried_are_a_frame(advice):
    pytest.importorskip("pandas")
    frame = advice.frame()
    assert len(frame) == sum(tried["done"] for tried in advice["tried"])
    assert {"mps", "stream_priority", "exclusive"} <= set(frame["policy"])


def test_the_page_is_written(advice, tmp_path):
    advice.write_page(tmp_path / "advice.html")
    assert "What to run: small" in (tmp_path / "advice.html").read_text()


def test_faults_have_the_words_of_the_program():
    with pytest.raises(bubblesim.Error, match="did you mean \"mps\"?"):
        bubblesim.advise({**question(), "can": ["msp"]})
    with pytest.raises(bubblesim.Error, match="keep"):
        bubblesim.advise({**question(), "keep": 2})
    with pytest.raises(bubblesim.Error, match="no filler of the base is online"):
        bubblesim.advise({**question(), "p95": "50ms"})


def test_what_progress_raises_ends_the_search():
    def stop(trials, best):
        raise RuntimeError("enough")
    with pytest.raises(RuntimeError, match="enough"):
        bubblesim.advise({**question(), "budget": "60s"}, progress=stop)
