"""The built module `bubblesim`, for the commands of scripts/."""
import importlib
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def find_module(program: str) -> None:
    """Makes `import bubblesim` work: from PYTHONPATH, installed, or of a build in build/. Ends the
    process with 2 where there is none."""
    os.environ.setdefault("BUBBLESIM_CONFIGS", str(ROOT / "configs"))
    sys.dont_write_bytecode = True
    built = (ROOT / "build").glob("*/sim/plugin/python/bubblesim/_core*.so")
    sys.path += [str(path.parents[1]) for path in sorted(built)]
    try:
        importlib.import_module("bubblesim")
    except ImportError as fault:
        print(f"{program}: {fault}; expected the module built: cmake --build --preset demo "
              "--target bubblesim_python", file=sys.stderr)
        sys.exit(2)
