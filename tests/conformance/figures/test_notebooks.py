"""The notebooks as they lie in git, and the configs behind them."""
import json
import re

import pytest
from conftest import SOURCE

BOOKS = sorted((SOURCE / "notebooks").glob("*.ipynb"))
CONFIGS = sorted(path for path in (SOURCE / "configs" / "figures").glob("*.json")
                 if path.name != "reduced.json")
REDUCED = json.loads((SOURCE / "configs" / "figures" / "reduced.json").read_text())
NAMES = [path.stem.split("_", 1)[1] for path in BOOKS]


@pytest.mark.parametrize("path", BOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_without_outputs(path):
    assert re.fullmatch(r"\d\d_[a-z_]+\.ipynb", path.name)
    for cell in json.loads(path.read_text())["cells"]:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [] and cell["execution_count"] is None, cell["source"]


@pytest.mark.parametrize("path", BOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_thin(path):
    """No function of its own but the tour's policy, no long cell, no import of what computes."""
    for cell in json.loads(path.read_text())["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "code" and path.stem != "00_tour":
            assert text.count("\n") < 25, text
            assert not re.search(r"^(def|class|import (numpy|pandas|matplotlib))", text, re.M), text


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_a_config_of_figures_belongs_to_a_notebook_and_says_what_it_answers(path):
    config = json.loads(path.read_text())
    assert config["name"] == path.stem
    assert path.stem.split("-")[0] in NAMES
    assert path.stem in REDUCED, "reduced.json says how it is made small"
    if "base" in config:
        comment = " ".join(config["comment"])
        assert "Answers:" in comment and re.search(r"\d runs", comment)


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_a_config_of_figures_sets_no_constant_of_a_device(path):
    text = path.read_text()
    for key in ("time_slice", "context_switch", "efficiency", "contention"):
        assert f'"{key}' not in text, f"{key} belongs to configs/devices and configs/efficiency"


def test_reduced_names_only_what_is_there():
    assert set(REDUCED) == {path.stem for path in CONFIGS}


def test_the_page_of_claims_has_every_paper():
    text = (SOURCE / "notebooks" / "CLAIMS.md").read_text()
    for name in NAMES:
        if name == "tour":
            continue
        table = text.split(f"<!-- claims: {name} -->\n")[1].split(f"<!-- end: {name} -->")[0]
        assert table.count("\n") > 2, f"scripts/figures --readme has not been run for {name}"
