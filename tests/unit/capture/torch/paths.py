"""Where the tests find what they test; what to skip."""

import os
import sys
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[3]
TORCH = ROOT / "capture" / "torch"
sys.path[:0] = [str(TORCH), str(TORCH / "examples"), str(ROOT / "capture")]
SKIPPED = 77


def main_or_skip(needs: str) -> None:
    """Runs the tests of the calling module; exit code 77 where the module `needs` is absent."""
    try:
        __import__(needs)
    except ImportError as fault:
        print(f"skipped: {needs} is not there ({fault})")
        sys.exit(SKIPPED)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    unittest.main(module="__main__")
