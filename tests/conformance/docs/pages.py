"""Markdown pages as the tests of this folder read them: blocks of code, links, headings."""
import os
import re
from dataclasses import dataclass, field
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[3]

TESTED_BY = re.compile(r"<!-- tested by: (\S+).*-->")
COMMAND = re.compile(r"(\w+=\S+ )*(bubblesim|scripts/\S+|build/\S+|srun|sbatch|cmake|ctest"
                     r"|python3|pip|apt|apt-get|docker)( |$)")
LINK = re.compile(r"\[[^]]*\]\(([^()\s]+)\)")


@dataclass
class Block:
    """A block of code. Indented ones have the language ""."""
    language: str
    tested_by: str = ""  # the file that the comment before it names
    lines: list = field(default_factory=list)

    def commands(self):
        """One text a command: lines that a backslash, && or | continues are joined."""
        text = "\n".join(line.strip() for line in self.lines)
        text = re.sub(r"\\\n", " ", re.sub(r"(&&|\|)\n", r"\1 ", text))
        return [line for line in text.split("\n") if line and not line.startswith("#")]


def read_pages():
    """README.md and docs: the pages whose commands are run."""
    return [SOURCE / "README.md", *sorted((SOURCE / "docs").glob("*.md"))]


def all_pages():
    """Every page of the tree but those of builds and results."""
    for folder, folders, files in os.walk(SOURCE):
        if Path(folder) == SOURCE:
            folders[:] = [name for name in folders if name not in ("build", "out")]
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (Path(folder) / name for name in files if name.endswith(".md"))


def cut(text):
    """The blocks of code of a page, and its other lines."""
    blocks, prose, block, fenced, tested_by, blank = [], [], None, False, "", True
    for line in text.split("\n"):
        if fenced:
            fenced = not line.startswith("```")
            if fenced:
                block.lines.append(line)
            else:
                block = None
            continue
        fenced = line.startswith("```")
        indented = line.startswith("    ") and (blank or block is not None)
        if fenced or indented:
            if block is None:
                block = Block(line[3:].strip() if fenced else "", tested_by)
                blocks.append(block)
            if indented:
                block.lines.append(line)
            tested_by, blank = "", False
            continue
        block, blank = None, not line.strip()
        comment = TESTED_BY.fullmatch(line)
        if comment or not blank:
            tested_by = comment.group(1) if comment else ""
        prose.append(line)
    return blocks, prose


def links(prose):
    """Targets of the links in a page's prose."""
    return LINK.findall(re.sub(r"`[^`]*`", "", "\n".join(prose)))


def inline_code(prose):
    """Texts between backticks."""
    return re.findall(r"(?<!`)`([^`]+)`(?!`)", "\n".join(prose))


def anchors(prose):
    """What headings are called in links: small letters, no punctuation, - for spaces."""
    names = []
    for line in prose:
        if heading := re.fullmatch(r"#{1,6} (.*)", line):
            text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading.group(1)).strip().lower()
            name = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
            again = sum(other == name for other, _ in names)
            names.append((name, f"{name}-{again}" if again else name))
    return [unique for _, unique in names]


def broken_links(page):
    """Relative links of a page that lead to no file, or to no heading of one."""
    for target in links(cut(page.read_text(encoding="utf-8"))[1]):
        if re.match(r"\w+:", target):
            continue
        path, _, heading = target.partition("#")
        to = page.parent / path if path else page
        if not to.exists():
            yield f"{target}: there is no such file"
        elif heading and heading not in anchors(cut(to.read_text(encoding="utf-8"))[1]):
            yield f"{target}: there is no such heading"
