"""Every command and every Python block of one page runs as written, in the order of the page, from a
folder that looks like the source tree. Only the lengths of runs are cut, and nothing is installed or
built. Commands that are named in the text exist, with their options.

  BUBBLESIM_PROGRAM=FILE commands_test.py PAGE      the page relative to the source tree
"""
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import pages

PAGE = pages.SOURCE / sys.argv.pop(1)
PROGRAM = Path(os.environ["BUBBLESIM_PROGRAM"]).resolve()
RUN_ONLY = PROGRAM.with_name("bubblesim_run_only")  # what scripts/demo waits for

# Simulated times of configs and commands, and repetitions of sweeps: enough to run every path. An
# iteration of the sample job takes 134 ms; one of mp-4xa100 takes the longest, 0.8 s, and twice that
# in turns with a filler.
SHORT = [(r'("/?duration": )"\w+"', r'\1"2s"'), (r'("/?warmup": )"\w+"', r'\1"200ms"'),
         (r'("repetitions": )\d+', r"\g<1>1")]
# The questions of configs/advise have the lengths of their bases.
SHORT_QUESTION = [(r'("base": "\S+")', r'\1, "set": {"/duration": "300ms", "/warmup": "100ms"}')]
# The program: runs without a config have their times on the command line, and so have searches.
SHORT_PROGRAM = """#!/usr/bin/env bash
if [ "${1:-}" = run ] && [[ "${2:-}" != *.json ]]; then
  set -- run --duration 600ms --warmup 200ms "${@:2}"
elif [ "${1:-}" = advise ]; then
  words=() before=
  for word in "$@"; do
    case "$before" in
      --duration) word=300ms ;;
      --warmup) word=100ms ;;
      --budget) word=100ms ;;
    esac
    words+=("$word") before=$word
  done
  set -- "${words[@]}"
fi
exec "$BUBBLESIM_PROGRAM" "$@"
"""
# What scripts call to install, build and test: all is there, and there is nothing to do.
STAND_INS = {"dpkg-query": "printf installed", "apt-get": "exit 1", "cmake": "", "ctest": ""}


def replaced(text, rules):
    for pattern, by in rules:
        text = re.sub(pattern, by, text)
    return text


def write_program(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


def make_place(place):
    """Links to the source tree, but for its configs, which are copied and cut short; programs."""
    for entry in pages.SOURCE.iterdir():
        if entry.name not in ("build", "out", "configs") and not entry.name.startswith("."):
            (place / entry.name).symlink_to(entry)
    shutil.copytree(pages.SOURCE / "configs", place / "configs")
    for config in [*place.glob("configs/runs/*.json"), *place.glob("configs/sweeps/*.json")]:
        config.write_text(replaced(config.read_text(encoding="utf-8"), SHORT), encoding="utf-8")
    for question in place.glob("configs/advise/*.json"):
        question.write_text(replaced(question.read_text(encoding="utf-8"), SHORT_QUESTION),
                            encoding="utf-8")
    (place / "out").mkdir()  # as scripts/demo leaves it
    write_program(place / ".bin/bubblesim", SHORT_PROGRAM)
    write_program(place / "build/demo/sim/app/bubblesim", SHORT_PROGRAM)
    write_program(place / "build/demo/sim/app/bubblesim_run_only",
                  SHORT_PROGRAM.replace('"$BUBBLESIM_PROGRAM"', str(RUN_ONLY)))
    for name, does in STAND_INS.items():
        write_program(place / ".bin" / name, f"#!/bin/sh\n{does}\n")


class Commands(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.place = Path(folder.name)
        make_place(self.place)
        self.blocks, self.prose = pages.cut(PAGE.read_text(encoding="utf-8"))

    def ended(self, command, without=("LD_PRELOAD", "DISPLAY", "WAYLAND_DISPLAY")):
        """The program has its sanitizers itself; what opens a window finds no desktop."""
        environment = {name: value for name, value in os.environ.items() if name not in without}
        environment["BUBBLESIM_PROGRAM"] = str(PROGRAM)  # what .bin/bubblesim runs
        environment["PATH"] = f"{self.place}/.bin:{environment['PATH']}"
        return subprocess.run(command, cwd=self.place, env=environment, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, check=False)

    def expect_runs(self, text, done):
        self.assertEqual(done.returncode, 0, f"{text}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")

    def test_blocks_of_the_page_run(self):
        for block in self.blocks:
            if block.tested_by:
                continue
            if block.language == "sh":
                for command in block.commands():
                    with self.subTest(command=command):
                        self.expect_runs(command, self.ended(["bash", "-c", command]))
            elif block.language == "python":
                with self.subTest(python=block.lines):
                    self.run_python("\n".join(block.lines))

    def run_python(self, text):
        for module in ("bubblesim", "numpy", "pandas"):
            if importlib.util.find_spec(module) is None:
                self.skipTest(f"there is no Python module {module}")
        self.expect_runs(text, self.ended([sys.executable, "-c", text], without=()))

    def test_commands_named_in_the_text_exist(self):
        for code in pages.inline_code(self.prose):
            words = code.split()
            if words[0] != "bubblesim" or len(words) < 2:
                continue
            with self.subTest(code=code):
                help_text = self.ended(["bubblesim", words[1], "--help"])
                self.expect_runs(code, help_text)
                for option in (word for word in words if word.startswith("--")):
                    self.assertIn(option, help_text.stdout)


class Shortening(unittest.TestCase):
    def test_only_lengths_are_cut(self):
        self.assertEqual(replaced('{"duration": "3s", "/warmup": "1s", "name": "10s"}', SHORT),
                         '{"duration": "2s", "/warmup": "200ms", "name": "10s"}')
        self.assertEqual(replaced('"repetitions": 3', SHORT), '"repetitions": 1')


if __name__ == "__main__":
    unittest.main()
