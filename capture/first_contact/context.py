"""What every part is handed, and what it hands back."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, List, Optional

CAPTURE = Path(__file__).resolve().parents[1]
ROOT = CAPTURE.parent

# ok: all done. partial: worth having, and goes on when started again. failed: nothing to show, the
# log says why. blocked: something is not there that no second try brings. waits: no time was left.
STATUSES = ("ok", "partial", "failed", "blocked", "waits")


@dataclass
class Verdict:
    status: str
    line: str
    figures: Dict[str, Any] = field(default_factory=dict)


def ok(line: str, **figures: Any) -> Verdict:
    return Verdict("ok", line, figures)


def partial(line: str, **figures: Any) -> Verdict:
    return Verdict("partial", line, figures)


def failed(line: str, **figures: Any) -> Verdict:
    return Verdict("failed", line, figures)


def blocked(line: str, **figures: Any) -> Verdict:
    return Verdict("blocked", line, figures)


@dataclass
class Context:
    work: Path
    python: str               # that runs this
    bubblesim: Optional[Path]  # none: there is no program that starts here
    fake: bool
    facts: Dict[str, Any] = field(default_factory=dict)  # part a's, of this run or an earlier one

    def folder(self, name: str) -> Path:
        made = self.work / name
        made.mkdir(parents=True, exist_ok=True)
        return made

    @property
    def fits(self) -> Path:
        """How stand-ins were fitted: measured once for all parts."""
        return self.work / "fits"

    def mps_refused(self) -> str:
        """Why there is no MPS; empty where there is, or where nobody has looked."""
        if self.fake:
            return ""
        return str(self.facts.get("mps", {}).get("refused", ""))

    def torch_python(self) -> str:
        """The Python that has PyTorch; empty: none has."""
        return str(self.facts.get("torch", {}).get("python", ""))

    def device_name(self) -> str:
        """The device file that is nearest to the card (configs/devices)."""
        devices = self.facts.get("driver", {}).get("devices") or [{}]
        name = str(devices[0].get("name", "")).upper().replace(" ", "")
        large = devices[0].get("memory_bytes", 0) > 60e9
        for word, file in (("H200", "h200"), ("H100", "h100"), ("RTX6000ADA", "rtx6000ada"),
                           ("A100", "a100-80gb" if large else "a100-40gb")):
            if word in name:
                return file
        return "h100"

    def environment(self) -> Dict[str, str]:
        """Of the programs that parts start. They may write bytecode: an installation of PyTorch that
        came without it would be compiled anew, for seconds, in each of them."""
        places = [str(CAPTURE), str(CAPTURE / "torch"), os.environ.get("PYTHONPATH", "")]
        return {**os.environ, "BUBBLESIM_CONFIGS": str(ROOT / "configs"),
                "PYTHONPATH": os.pathsep.join(place for place in places if place),
                "PYTHONUNBUFFERED": "1",
                "TORCH_EXTENSIONS_DIR": str(self.work / "build" / "torch")}


def read_json(path: Path) -> Any:
    """None of a file that is not there or not whole."""
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return None


def write_json(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(".part")
    beside.write_text(json.dumps(value, indent=1) + "\n")
    beside.replace(path)


def module_command(name: str, *arguments: str) -> List[str]:
    return [sys.executable, "-m", f"first_contact.{name}", *arguments]
