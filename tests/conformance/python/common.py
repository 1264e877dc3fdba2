"""What several test files share."""
import os
from pathlib import Path

SOURCE = Path(os.environ["BUBBLESIM_SOURCE"])
PROGRAM = os.environ.get("BUBBLESIM_PROGRAM", "")


def has_program():
    return os.path.exists(PROGRAM)


def config(policies, duration="200ms", traces=SOURCE / "traces/samples"):
    return {
        "name": "test", "duration": duration, "warmup": "50ms",
        "training": {"trace": f"{traces}/training", "memory": "24GB"},
        "fillers": [{"name": "encoder", "mode": "online", "memory": "2GB",
                     "program": {"trace": f"{traces}/inference.json.gz"},
                     "arrivals": {"process": "poisson", "rate_per_s": 200}}],
        "policies": policies}


def environment():
    """Of the program: it has its sanitizers itself."""
    return {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
