"""Where the judges' modules are, and a table of a test's own."""
import os
import sys

import pytest
from judge import SOURCE

sys.path.insert(0, str(SOURCE / "notebooks"))
os.environ.setdefault("BUBBLESIM_CONFIGS", str(SOURCE / "configs"))


@pytest.fixture
def table(tmp_path):
    """Reads a CSV text as a table."""
    from lab.table import Table

    def read(text):
        path = tmp_path / "t.csv"
        path.write_text(text)
        return Table(str(path))
    return read
