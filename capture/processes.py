"""Processes of the scripts in this folder: each leads a group of its own, has a time limit and a
log, and is ended with everything that it started. Needs Python 3.8 and nothing else."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from pathlib import Path
from typing import Dict, Iterator, List, Optional

PATIENCE_S = 8.0  # between asking a group to end and ending it
ENDING = (signal.SIGTERM, signal.SIGHUP)


def signal_group(process: "subprocess.Popen[bytes]", number: int) -> None:
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        pass


def end_on_signals() -> None:
    """SIGTERM and SIGHUP end this process as an exit does, so that what it started is ended too."""
    def leave(number: int, _frame: object) -> None:
        raise SystemExit(128 + number)

    for number in ENDING:
        signal.signal(number, leave)


@contextlib.contextmanager
def ending_waits() -> Iterator[None]:
    """A process is being started, and nobody could end it yet."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def end_group(process: "subprocess.Popen[bytes]", patience_s: float = PATIENCE_S) -> None:
    """Asks first: `bubblesim measure` stops its MPS daemon and puts the card's settings back. What
    the leader leaves behind in its group is ended too."""
    if process.poll() is None:
        signal_group(process, signal.SIGTERM)
        try:
            process.wait(timeout=patience_s)
        except subprocess.TimeoutExpired:
            pass
    signal_group(process, signal.SIGKILL)
    process.wait()


def start_logged(command: List[str], log: Path, env: Optional[Dict[str, str]] = None,
                 cwd: Optional[Path] = None) -> "subprocess.Popen[bytes]":
    """The leader of a new group; both of its outputs go to `log`."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w") as output:
        return subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, env=env, cwd=cwd,
            stdin=subprocess.DEVNULL, start_new_session=True,
            preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING))


def run_logged(command: List[str], log: Path, limit_s: float,
               env: Optional[Dict[str, str]] = None, cwd: Optional[Path] = None,
               patience_s: float = PATIENCE_S) -> Optional[int]:
    """The exit code; none: it took longer than `limit_s`."""
    process = None
    try:
        with ending_waits():
            process = start_logged(command, log, env, cwd)
        return process.wait(timeout=max(limit_s, 0.1))
    except subprocess.TimeoutExpired:
        return None
    finally:
        if process is not None:
            end_group(process, patience_s)


def first_line(command: List[str], limit_s: float = 30.0) -> str:
    """Of a command's standard output; empty where it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit_s, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    lines = done.stdout.strip().splitlines()
    return lines[0].strip() if done.returncode == 0 and lines else ""


def last_lines(path: Path, count: int = 4) -> str:
    """Of a log, in one line; empty where there is no log."""
    if not path.is_file():
        return ""
    lines = path.read_text(errors="replace").strip().splitlines()
    return " | ".join(line.strip() for line in lines[-count:])
