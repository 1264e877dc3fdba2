"""scripts/judge, as a user calls it."""
import os
import subprocess
import sys
from pathlib import Path

SOURCE = Path(os.environ["BUBBLESIM_SOURCE"])


def judge(folder, *arguments, code=0):
    """What it printed: on standard output, or what it said of a fault."""
    done = subprocess.run([sys.executable, str(SOURCE / "scripts/judge"), *map(str, arguments)],
                          cwd=folder, text=True, capture_output=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stderr if code == 2 else done.stdout
