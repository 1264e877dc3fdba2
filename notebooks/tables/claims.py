"""Claims of papers beside our numbers: what was said, what we find, whether the two agree.

A claim is judged by code, from result files; the reason of a miss is written by hand. Where the
paper's text was not at hand, `standing` says how the claim came to us.
"""
import dataclasses
import json

import pandas

from . import results

# How a claim came to us.
STANDINGS = {
    "stated": "in the paper's own abstract or text",
    "second-hand": "in a summary or review of the paper",
    "recalled": "from memory of the paper, not found in any text at hand",
    "inferred": "follows from what is stated, by arithmetic",
}
VERDICTS = {True: "yes", False: "**no**", None: "open"}


@dataclasses.dataclass(frozen=True)
class Claim:
    """One statement of a paper, judged."""

    id: str         # "specinf-offline-over-tgs": the same in the notebook, the file and the README
    statement: str  # what the paper says, in our words, with its number
    source: str     # "arXiv 2503.02550, abstract"
    standing: str   # a key of STANDINGS
    ours: str       # our number, with its unit
    condition: str  # the job, filler and device at which it was found
    agrees: bool | None  # None: the results cannot tell
    why: str = ""   # of a miss: its cause; of an agreement: what limits it

    def __post_init__(self):
        if self.standing not in STANDINGS:
            raise ValueError(f"{self.id}: standing {self.standing!r}; "
                             f"allowed: {', '.join(STANDINGS)}")


def table(claims):
    """The claims as a frame, in the order given."""
    return pandas.DataFrame([{
        "claim": c.statement, "source": f"{c.source} ({c.standing})", "ours": c.ours,
        "condition": c.condition, "agrees": VERDICTS[c.agrees].strip("*"), "why": c.why}
        for c in claims])


def markdown(claims):
    """The same as a table of Markdown."""
    lines = ["| claim | source | ours | at | agrees | why, or what limits it |",
             "|---|---|---|---|---|---|"]
    for c in claims:
        cells = (c.statement, f"{c.source}; {c.standing}", c.ours, c.condition,
                 VERDICTS[c.agrees], c.why)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def save(paper, claims):
    """Keeps them as claims/PAPER.{json,md} beside the figures, and returns the frame."""
    twice = [c.id for c in claims]
    if len(set(twice)) != len(twice):
        raise ValueError(f"{paper}: two claims of one id: {twice}")
    place = results.folder() / "claims"
    place.mkdir(parents=True, exist_ok=True)
    listed = [dataclasses.asdict(c) for c in claims]
    (place / f"{paper}.json").write_text(json.dumps(listed, indent=1) + "\n", encoding="utf-8")
    (place / f"{paper}.md").write_text(markdown(claims), encoding="utf-8")
    return table(claims)


def percent(value, digits=0):
    """A fraction as a claim's text shows it."""
    return f"{100 * value:.{digits}f} %"


def within(value, least, most):
    """Whether least <= value <= most; None where there is no value."""
    if value is None or value != value:
        return None
    return bool(least <= value <= most)
