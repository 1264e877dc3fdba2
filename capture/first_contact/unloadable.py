"""Part n: what becomes of a job whose CUDA_INJECTION64_PATH names a library that the loader refuses
(an older glibc, musl, a file that is not there). Its exit code must be the one without."""

from __future__ import annotations

from pathlib import Path
from typing import Dict

from processes import last_lines, run_logged

from .context import Context, Verdict, blocked, failed, ok, partial

HERE = Path(__file__).resolve().parent
EACH_S = 3.0


def run(context: Context, _limit_s: float) -> Verdict:
    if context.fake:
        return blocked("no driver that injects")
    folder = context.folder("n")
    text = folder / "text.so"
    text.write_text("not a library\n")
    places: Dict[str, str] = {"none": "", "missing": str(folder / "missing.so"), "text": str(text)}
    command = [context.python, str(HERE / "driver_job.py"), "--iterations", "1"]
    codes: Dict[str, int] = {}
    for name, place in places.items():
        environment = {**context.environment(), "CUDA_INJECTION64_PATH": place}
        if not place:
            del environment["CUDA_INJECTION64_PATH"]
        codes[name] = run_logged(command, folder / f"{name}.txt", EACH_S, environment)
    if codes["none"] != 0:
        return failed(f"the job itself: {last_lines(folder / 'none.txt', 1)}", **codes)
    changed = [f"{name}: exit code {code}, {last_lines(folder / f'{name}.txt', 1)}"
               for name, code in codes.items() if code != codes["none"]]
    return partial("; ".join(changed), **codes) if changed else ok("exit codes stay", **codes)
