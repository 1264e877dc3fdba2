"""The examples of sim/plugin/python/README.md run as they stand."""
import os
import re
from pathlib import Path

import pytest

pytest.importorskip("numpy")
pytest.importorskip("pandas")
SOURCE = Path(os.environ["BUBBLESIM_SOURCE"])
README = (SOURCE / "sim/plugin/python/README.md").read_text()


def test_the_examples_of_the_readme_run(tmp_path, monkeypatch, capsys):
    for name in ("configs", "traces"):
        (tmp_path / name).symlink_to(SOURCE / name)
    monkeypatch.chdir(tmp_path)
    examples = re.findall(r"^```python\n(.*?)^```$", README, re.M | re.S)
    assert len(examples) == 4
    names = {}
    for example in examples:
        exec(compile(example, "README.md", "exec"), names)
    assert names["done"]["done"] == 96 and names["done"]["failed"] == 0
    assert len(names["results"]) >= 1
    printed = capsys.readouterr().out
    assert "96 of 96" in printed
    assert "Empty DataFrame" not in printed and "Series([]" not in printed
    assert "None" not in printed
