"""What README and docs promise of themselves: links that lead somewhere, commands that a test runs,
pages of at most so many words."""
import json
import re
import tempfile
import unittest
from collections import defaultdict
from pathlib import Path

import pages

# Words at most, tables included, of a page or of several together; of any other README.md: ROOM.
ROOM = 300
LIMITS = {
    ("README.md",): 705,  # five minutes; two fifths of it what the program prints
    ("CHANGELOG.md",): 1900,
    ("CONTRIBUTING.md",): 490,
    ("docs/recorded-jobs.md",): 440,
    ("docs/validation.md",): 1150,
    ("docs/sharing.md",): 720,
    ("docs/using.md",): 930,  # half of it commands
    ("docs/worth-it.md",): 840,  # a third of it a printed answer
    ("policies/README.md",): 1340,
    ("sim/README.md",): 1370,  # the table of rooms has three quarters
    ("sim/observe/OUTPUTS.md", "configs/README.md"): 5510,  # a fifth of it bars of tables
    ("configs/clusters/README.md",): 590,
    ("configs/devices/README.md",): 1000,
    ("configs/efficiency/README.md", "configs/software/README.md"): 730,
    ("configs/models/README.md",): 400,
    ("configs/plans/README.md",): 1440,
    ("configs/validation/README.md", "configs/workloads/README.md"): 810,
    ("traces/format/FORMAT.md",): 1500,
    ("tests/validation/h100/README.md", "tests/validation/h200/README.md",
     "tests/validation/h200/captures.md"): 1470,
    ("tests/bench/README.md",): 830,
    ("capture/README.md",): 1450,
    ("capture/FIRST_CONTACT.md",): 760,
    ("capture/live/README.md",): 430,
    ("capture/torch/README.md",): 490,
    ("capture/replay/cuda/README.md",): 400,
    ("sim/plugin/python/README.md",): 325,  # half of it examples that run
}
ALL_WORDS = 40000  # of all pages that people write
HEAD_LINES = 25  # of a policy's head comment
TWO_FIGURES = {"152 us": "an H100's switch between slices; an H200's with one block held"}
# The pages that explain the keys of a kind of config, with the kinds of which they explain none.
EXPLAINED = {"run": ("configs", "plan"), "sweep": ("configs", ""), "advise": ("configs", ""),
             "plan": ("configs/plans", ""), "cluster": ("configs/clusters", ""),
             "model": ("configs/models", ""), "software": ("configs/software", ""),
             "efficiency": ("configs/efficiency", ""), "engine": ("configs/engines", ""),
             "device": ("configs/devices", "")}


def words(page):
    return len(page.read_text(encoding="utf-8").split())


def keys(schema):
    """(name, declaration) of all keys of a JSON Schema, but for parameters of policies."""
    for name, value in schema.items() if isinstance(schema, dict) else enumerate(schema):
        if name == "properties":
            yield from value.items()
        if isinstance(value, (dict, list)) and not str(name).startswith("parameters_"):
            yield from keys(value)


def schema_of(kind):
    schema = pages.SOURCE / f"configs/schema/{kind}.schema.json"
    return json.loads(schema.read_text(encoding="utf-8"))


def keys_of(kind):
    """Keys of a kind of config, but for what every constant of a device has."""
    found = {name for name, _ in keys(schema_of(kind))} if kind else set()
    return found - {"$schema", "value", "unit", "source"}


def defaults_in(text):
    """(key, value) of "| `key` (value), ..." at the beginning of a row."""
    for cell in re.findall(r"(?m)^\| (.*?) \|", text):
        for path, value in re.findall(r"`([\w/]+)` \(([^)]+)\)", cell):
            yield path.rsplit("/", 1)[-1], value


class Reading(unittest.TestCase):
    def test_a_page_is_cut_into_blocks_and_prose(self):
        blocks, prose = pages.cut("# A\n```sh\n# say\nls \\\n  -l\npwd\n```\ntext\n"
                                  "    no block\n\n    ls &&\n      pwd\n\n"
                                  "<!-- tested by: a/b.py (c) -->\n\n    cd\n\n```text\ncd\n```\n")
        self.assertEqual([block.language for block in blocks], ["sh", "", "", "text"])
        self.assertEqual([block.commands() for block in blocks],
                         [["ls  -l", "pwd"], ["ls && pwd"], ["cd"], ["cd"]])
        self.assertEqual([block.tested_by for block in blocks], ["", "", "a/b.py", ""])
        self.assertIn("    no block", prose)

    def test_headings_are_called_as_in_links(self):
        self.assertEqual(pages.anchors(["# The `a_b` of C++, [x](y.md)", "text", "## A-b", "## A-b"]),
                         ["the-a_b-of-c-x", "a-b", "a-b-1"])

    def test_broken_links_are_found(self):
        with tempfile.TemporaryDirectory() as folder:
            page = Path(folder, "page.md")
            page.write_text("# Top\n[a](page.md) [b](#top) [c](https://x.y) `[d](no.md)`\n"
                            "[e](no.md) ![f](no.svg) [g](#no) [h](page.md#top-1)\n")
            self.assertEqual([fault.split(":")[0] for fault in pages.broken_links(page)],
                             ["no.md", "no.svg", "#no", "page.md#top-1"])


    def test_figures_have_three_digits_and_a_unit(self):
        text = ("11.15 % of 80 GB, 1,200 W; 0.57, 1.43 and\n1.5 us; 0.125 ms, 1,234 MB/s, 2.50 and 3\n"
                "<!-- readme-tables: a -->\n```text\n99.9 %\n```\n")
        self.assertEqual(list(pages.figures(text)), ["11.15 %", "1.43 us", "0.125 ms", "1,234 MB/s"])


class Tree(unittest.TestCase):
    def test_every_relative_link_leads_to_a_file_and_a_heading(self):
        for page in pages.all_pages():
            with self.subTest(page=str(page.relative_to(pages.SOURCE))):
                self.assertEqual(list(pages.broken_links(page)), [])

    def test_every_command_is_run_or_names_the_test_of_it(self):
        for page in pages.read_pages():
            for block in pages.cut(page.read_text(encoding="utf-8"))[0]:
                shown = [line for line in block.commands() if pages.COMMAND.match(line)]
                with self.subTest(page=page.name, commands=shown):
                    if block.tested_by:
                        self.assertTrue((pages.SOURCE / block.tested_by).is_file(),
                                        f"there is no {block.tested_by}")
                    elif shown:
                        self.assertEqual(block.language, "sh", "expected a block ```sh, or a line "
                                         "<!-- tested by: FILE --> before it")

    def test_pages_have_at_most_their_words(self):
        for names, limit in LIMITS.items():
            with self.subTest(pages=names):
                self.assertLessEqual(sum(words(pages.SOURCE / name) for name in names), limit)

    def test_a_room_has_a_page_that_is_read(self):
        limited = {pages.SOURCE / name for names in LIMITS for name in names}
        for page in set(pages.all_pages()) - limited:
            with self.subTest(page=str(page.relative_to(pages.SOURCE))):
                if page.name == "README.md":
                    self.assertLessEqual(words(page), ROOM)

    def test_pages_that_people_write_have_together_at_most_their_words(self):
        written = [page for page in pages.all_pages() if not pages.is_generated(page)]
        self.assertLessEqual(sum(map(words, written)), ALL_WORDS)

    def test_no_figure_stands_on_two_pages(self):
        pages_of = defaultdict(set)
        for page in pages.all_pages():
            if not pages.is_generated(page) and page.name != "CHANGELOG.md":  # what figures were
                for figure in pages.figures(page.read_text(encoding="utf-8")):
                    pages_of[figure].add(str(page.relative_to(pages.SOURCE)))
        twice = {figure: sorted(names) for figure, names in pages_of.items() if len(names) > 1}
        self.assertEqual(twice.keys(), TWO_FIGURES.keys(), twice)

    def test_every_key_of_a_config_is_explained(self):
        for kind, (folder, elsewhere) in EXPLAINED.items():
            page = pages.SOURCE / folder / "README.md"
            code = pages.inline_code(page.read_text(encoding="utf-8").split("\n"))
            explained = {word for text in code for word in re.findall(r"[*\w]+", text)}
            with self.subTest(kind=kind, page=folder):
                self.assertEqual({key for key in keys_of(kind) - keys_of(elsewhere)
                                  if key not in explained
                                  and re.sub("^[a-z]+_kernel_", "*_kernel_", key) not in explained
                                  and not re.fullmatch("[1-7]g", key)}, set())

    def test_defaults_of_keys_are_the_schemas(self):
        for folder in ("configs", "configs/plans"):
            kinds = [kind for kind, (page, _) in EXPLAINED.items() if page == folder]
            allowed = {(name, str(declared["default"]).removesuffix(".0")) for kind in kinds
                       for name, declared in keys(schema_of(kind))
                       if isinstance(declared, dict) and "default" in declared}
            text = (pages.SOURCE / folder / "README.md").read_text(encoding="utf-8")
            stated = set(defaults_in(text))
            with self.subTest(page=folder):
                self.assertGreater(len(stated), 20)
                self.assertEqual(stated - allowed, set())

    def test_head_comments_of_policies_fit_on_a_screen(self):
        for policy in (pages.SOURCE / "policies").glob("*.cpp"):
            lines = policy.read_text(encoding="utf-8").split("\n")
            head = next(at for at, line in enumerate(lines) if not line.startswith("//"))
            with self.subTest(policy=policy.name):
                self.assertLessEqual(head, HEAD_LINES)

    def test_every_page_of_docs_is_in_its_index(self):
        index = pages.SOURCE / "docs/README.md"
        named = pages.links(pages.cut(index.read_text(encoding="utf-8"))[1])
        for page in index.parent.glob("*.md"):
            if page != index:
                self.assertIn(page.name, named)


if __name__ == "__main__":
    unittest.main()
