"""The command: what it does again, what it says of wrong words."""
import json
import types

import make_figures
import pytest


def source_of(folder, **config):
    path = folder / "x-a.json"
    path.write_text(json.dumps(config))
    return make_figures.Source(path, {})


def test_a_file_with_a_base_is_a_sweep(tmp_path):
    assert source_of(tmp_path, base={}).is_sweep
    assert not source_of(tmp_path, training={}).is_sweep


def test_an_unknown_notebook_is_named_with_those_that_are(capsys):
    with pytest.raises(SystemExit):
        make_figures.notebooks(["nothing"])
    assert "allowed: tour" in capsys.readouterr().err


def test_a_change_of_program_or_settings_changes_the_digest(tmp_path, monkeypatch):
    monkeypatch.setattr(make_figures, "ROOT", tmp_path)
    monkeypatch.setattr(make_figures, "CONFIGS", tmp_path / "configs")
    (tmp_path / "configs" / "devices").mkdir(parents=True)
    device = tmp_path / "configs" / "devices" / "a.json"
    device.write_text("1")
    program = tmp_path / "program"
    program.write_bytes(b"1")
    source = source_of(tmp_path, base={})
    seen = {make_figures.digest(source, program)}
    assert make_figures.digest(source, program) in seen
    program.write_bytes(b"2")
    seen.add(make_figures.digest(source, program))
    device.write_text("2")
    seen.add(make_figures.digest(source, program))
    small = make_figures.Source(source.path, {"/duration": "1s"})
    seen.add(make_figures.digest(small, program))
    assert len(seen) == 4


def test_a_reduced_run_has_its_settings_put_in(tmp_path):
    source = source_of(tmp_path, duration="9s", fillers=[{"batch": 8}])
    small = make_figures.Source(source.path, {"/duration": "1s", "/fillers/0/batch": 1})
    assert make_figures.reduced_config(small) == {"duration": "1s", "fillers": [{"batch": 1}]}


def test_claim_tables_go_between_their_marks_with_when_they_were_made(tmp_path, monkeypatch):
    monkeypatch.setattr(make_figures, "NOTEBOOKS", tmp_path)
    page = tmp_path / "CLAIMS.md"
    marks = "before\n<!-- claims: {0} -->\n{1}\n<!-- end: {0} -->\nafter\n"
    page.write_text(marks.format("a", "old") + marks.format("b", "old"))
    (tmp_path / "claims").mkdir()
    for name in ("a", "b"):
        (tmp_path / "claims" / f"{name}.md").write_text("new\n")
    make_figures.write_claims(tmp_path, ["a"], "made\n")
    # b's table is of an earlier call, and so is what is said of it.
    assert page.read_text() == marks.format("a", "made\nnew") + marks.format("b", "old")


def test_a_stamp_names_the_version_that_the_program_prints(tmp_path):
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\necho bubblesim 0.2.0+abc\necho compiler: x\n")
    program.chmod(0o755)
    assert make_figures.stamp(program).endswith(", by version 0.2.0+abc.\n\n")


def test_reduced_results_never_reach_the_readme(capsys):
    with pytest.raises(SystemExit) as stopped:
        make_figures.parse(["--program", __file__, "--reduced", "--readme"])
    assert stopped.value.code == 2 and "reduced results" in capsys.readouterr().err


def test_claims_are_counted_by_answer(tmp_path):
    path = tmp_path / "a.json"
    path.write_text(json.dumps([{"agrees": a} for a in (True, True, False, None)]))
    assert make_figures.claim_counts(path) == "4 claims: 2 agree, 1 do not, 1 open"


def test_what_is_there_is_not_simulated_again(tmp_path, monkeypatch, capsys):
    options = types.SimpleNamespace(output=tmp_path, program=tmp_path, threads=1)
    calls = []
    monkeypatch.setattr(make_figures, "digest", lambda *_: "d")
    monkeypatch.setattr(make_figures, "do_sweep", lambda *_: calls.append(1))
    source = source_of(tmp_path, base={})
    make_figures.simulate(source, options)
    make_figures.simulate(source, options)
    assert len(calls) == 1 and "there already" in capsys.readouterr().out
    monkeypatch.setattr(make_figures, "digest", lambda *_: "other")
    make_figures.simulate(source, options)
    assert len(calls) == 2
