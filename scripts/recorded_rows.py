"""Records of a trace, as scripts that say something of recordings read them."""

from __future__ import annotations

import csv
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parents[1]


def built_program() -> str:
    """The program of build/demo, else of build/dev, else of PATH."""
    built = [path for name in ("demo", "dev")
             for path in [ROOT / "build" / name / "sim" / "app" / "bubblesim"] if path.exists()]
    return str(built[0]) if built else "bubblesim"


def refuse(text: str) -> NoReturn:
    print(f"{Path(sys.argv[0]).name}: {text}", file=sys.stderr)
    sys.exit(2)


def rows_of(bubblesim: str, trace: str) -> list[dict[str, str]]:
    """What `bubblesim export --format csv` writes; ends the script if it cannot."""
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "trace.csv"
        try:
            done = subprocess.run([bubblesim, "export", trace, "--format", "csv", "-o", str(made)],
                                  capture_output=True, text=True, check=False)
        except OSError as fault:
            refuse(f"{bubblesim}: {fault}")
        if done.returncode != 0:
            refuse(f"{trace}: {done.stderr.strip()}")
        with made.open(newline="") as file:
            return list(csv.DictReader(file))
