"""What README and docs promise of themselves: links that lead somewhere, commands that a test runs,
pages of at most so many words."""
import tempfile
import unittest
from pathlib import Path

import pages

# Words at most, tables included, of a page or of several together: what is longer is read by nobody.
ROOM = 300
LIMITS = {
    ("README.md",): 900,  # five minutes
    ("CHANGELOG.md",): 3000,
    ("docs/validation.md",): 1200,
    ("docs/sharing.md",): 800,
    ("tests/validation/h200/README.md", "tests/validation/h200/captures.md"): 1500,
    ("tests/bench/README.md",): 1000,
    ("capture/README.md",): 1500,
    ("capture/FIRST_CONTACT.md",): 900,
    ("capture/live/README.md",): 450,
    ("capture/torch/README.md",): 500,
    ("capture/replay/cuda/README.md",): 400,
    ("sim/plugin/python/README.md",): 450,  # half of it examples that run
    **{(f"{room}/README.md",): ROOM for room in (
        "capture/replay", "sim/advise", "sim/engine", "sim/gpu", "sim/measure/calibrate",
        "sim/model", "sim/network", "sim/policy", "sim/run", "sim/step_cost", "sim/sweep",
        "sim/synth", "sim/validate", "sim/workload", "tests/conformance/meetings", "traces",
        "traces/export", "traces/import", "traces/inspect", "traces/samples")},
}


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
                words = sum(len((pages.SOURCE / name).read_text(encoding="utf-8").split())
                            for name in names)
                self.assertLessEqual(words, limit)

    def test_every_page_of_docs_is_in_its_index(self):
        index = pages.SOURCE / "docs/README.md"
        named = pages.links(pages.cut(index.read_text(encoding="utf-8"))[1])
        for page in index.parent.glob("*.md"):
            if page != index:
                self.assertIn(page.name, named)


if __name__ == "__main__":
    unittest.main()
