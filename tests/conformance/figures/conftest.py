"""Where notebooks' modules are, and a folder of results for each test."""
import os
import pathlib
import sys

import pytest

SOURCE = pathlib.Path(os.environ.get("BUBBLESIM_SOURCE",
                                     pathlib.Path(__file__).resolve().parents[3]))
sys.path[:0] = [str(SOURCE / "notebooks"), str(SOURCE / "scripts")]
os.environ.setdefault("MPLBACKEND", "Agg")


@pytest.fixture
def source():
    return SOURCE


@pytest.fixture
def place(tmp_path, monkeypatch):
    """An empty folder of results."""
    monkeypatch.setenv("BUBBLESIM_FIGURES", str(tmp_path))
    (tmp_path / "data").mkdir()
    return tmp_path
