"""Results in few files: at most 8 files of 16 MiB come back, no more than two folders down.

    verdicts.txt        a line a part, for people
    results.json        every part's record
    state.tar.gz        figures, logs and what a later call needs to go on; logs cut where long
    traces-N.tar        captured traces, at most five files
"""

from __future__ import annotations

import io
import shutil
import tarfile
from pathlib import Path
from typing import Dict, List

MEBIBYTE = 1 << 20
FILE_BYTES = 15 * MEBIBYTE + MEBIBYTE // 2
TRACE_FILES = 5
TRACES = ("b/traces", "captures/traces")
LONGEST_LOG = 128 * 1024
ENTRY_BYTES, END_BYTES = 2048, 20480  # of a tar file: headers and padding; its end
LEFT_OUT = ("build",)  # made anew where needed


def state_files(work: Path) -> List[Path]:
    """Records and figures first, then the rest by size: what does not fit are large logs."""
    found = [path for path in work.rglob("*") if path.is_file() and not path.is_symlink()
             and not any(str(path.relative_to(work)).startswith(name + "/") for name in LEFT_OUT)
             and path.suffix not in (".btr", ".part")]
    return sorted(found, key=lambda path: (path.suffix not in (".json", ".csv"),
                                           path.stat().st_size, str(path)))


def cut(data: bytes, suffix: str) -> bytes:
    """Of a long log its beginning and its end; other files whole."""
    if suffix not in (".txt", ".log") or len(data) <= LONGEST_LOG:
        return data
    half = LONGEST_LOG // 2
    return data[:half] + b"\n... cut ...\n" + data[-half:]


def write_state(work: Path, place: Path, limit: int = FILE_BYTES) -> List[str]:
    """Names of what was left out."""
    room = 4 * limit
    while True:
        left_out = []
        used = 0
        with tarfile.open(place, "w:gz", compresslevel=6) as archive:
            for path in state_files(work):
                data = cut(path.read_bytes(), path.suffix)
                name = str(path.relative_to(work))
                if used + len(data) > room:
                    left_out.append(name)
                    continue
                used += len(data)
                entry = tarfile.TarInfo(name)
                entry.size, entry.mtime = len(data), int(path.stat().st_mtime)
                archive.addfile(entry, io.BytesIO(data))
        if place.stat().st_size <= limit:
            return left_out
        room = min(room, used) // 2


def write_traces(work: Path, folder: Path, limit: int = FILE_BYTES) -> List[str]:
    """Traces as they are, which are compressed: several to a file. Names of what was left out."""
    bins: List[List[Path]] = []
    sizes: List[int] = []
    left_out = []
    for path in [path for name in TRACES for path in sorted((work / name).glob("*.btr"))]:
        size = path.stat().st_size + ENTRY_BYTES
        place = next((i for i, used in enumerate(sizes) if used + size <= limit - END_BYTES), None)
        if place is None and len(bins) < TRACE_FILES and size <= limit - END_BYTES:
            place = len(bins)
            bins.append([])
            sizes.append(0)
        if place is None:
            left_out.append(path.name)
            continue
        bins[place].append(path)
        sizes[place] += size
    for number, paths in enumerate(bins, 1):
        with tarfile.open(folder / f"traces-{number}.tar", "w") as archive:
            for path in paths:
                archive.add(path, arcname=str(path.relative_to(work)))
    return left_out


def pack(work: Path, out: Path) -> List[str]:
    """Writes beside and moves, so that a call that is ended leaves whole files. Returns what was
    left out."""
    out.mkdir(parents=True, exist_ok=True)
    beside = work.parent / (work.name + ".packed")
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir(parents=True)
    left_out = write_state(work, beside / "state.tar.gz") + write_traces(work, beside)
    for path in sorted(beside.iterdir()):
        shutil.move(str(path), str(out / path.name))
    shutil.rmtree(beside, ignore_errors=True)
    return left_out


def unpack(folder: Path, work: Path) -> int:
    """What an earlier call left, where `work` does not have it yet; how many files came."""
    count = 0
    for place in [folder / "state.tar.gz", *sorted(folder.glob("traces-*.tar"))]:
        if not place.is_file():
            continue
        try:
            with tarfile.open(place) as archive:
                count += sum(unpack_one(archive, entry, work) for entry in archive)
        except (tarfile.TarError, OSError, EOFError):
            continue  # cut off when it was written: its parts are done again
    return count


def unpack_one(archive: tarfile.TarFile, entry: tarfile.TarInfo, work: Path) -> bool:
    path = work / entry.name
    source = archive.extractfile(entry) if entry.isfile() else None
    if source is None or ".." in Path(entry.name).parts or entry.name.startswith("/") \
            or path.exists():
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(source.read())
    return True


def verdict_lines(records: List[Dict]) -> List[str]:
    return [f"{record['part']}  {record['status']:8} {record['took_s']:6.1f} s  "
            f"{record['title']}: {record['line']}" for record in records]
