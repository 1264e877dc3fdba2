"""The text that announces a collective (capture/torch/README.md has the grammar)."""

from __future__ import annotations

from typing import Sequence

PREFIX = "bubblesim.collective"
FILL_PREFIX = "bubblesim.fill"
MAX_RANKS_TEXT = 512

OPERATIONS = (
    "all_reduce",
    "all_gather",
    "reduce_scatter",
    "broadcast",
    "reduce",
    "all_to_all",
    "gather",
    "scatter",
    "send",
    "recv",
    "barrier",
)


def ranks_text(ranks: Sequence[int]) -> str:
    """Ranks as short as can be: "0-7", "3-63/4", "0,3,5"; empty if too long."""
    if len(ranks) > 1:
        step = ranks[1] - ranks[0]
        if step > 0 and list(ranks) == list(range(ranks[0], ranks[-1] + 1, step)):
            span = f"{ranks[0]}-{ranks[-1]}"
            return span if step == 1 else f"{span}/{step}"
    text = ",".join(str(rank) for rank in ranks)
    return text if len(text) <= MAX_RANKS_TEXT else ""


def word(text: str) -> str:
    """`text` as a value: no blanks, no "=", printable ASCII, at most 64 characters."""
    kept = (c if c.isascii() and c.isprintable() and c not in " =" else "_" for c in text)
    return "".join(kept)[:64] or "_"


def group_word(description: str, name: str) -> str:
    """The name of a group: what a device mesh calls its dimension, else PyTorch's own name."""
    if not description or description == "undefined":
        return word(name)
    return word(description[5:] if description.startswith("mesh_") else description)


def collective_text(
    op: str,
    size_bytes: int,
    dtype: str,
    group: str,
    size: int,
    rank: int,
    sequence: int,
    asynchronous: bool,
    ranks: str,
) -> str:
    text = (
        f"{PREFIX} op={op} bytes={size_bytes} dtype={dtype} group={group} size={size} "
        f"rank={rank} seq={sequence} async={int(asynchronous)}"
    )
    return f"{text} ranks={ranks}" if ranks else text


def parse(text: str) -> dict[str, str]:
    """The keys of an announcement; empty if `text` is none."""
    words = text.split(" ")
    if words[0] != PREFIX:
        return {}
    return dict(item.split("=", 1) for item in words[1:])
