"""What to run: answers to questions."""
import json
import os

from . import _core
from ._frames import pandas


class Advice(dict):
    """An answer: what `bubblesim advise QUESTION --json` prints, as a dict, and more of it by
    methods. "recommended" is None where nothing keeps the limits."""

    def __init__(self, data):
        super().__init__(json.loads(data.json))
        self._data = data

    def __repr__(self):
        best = self["recommended"]
        return f"<bubblesim.Advice on {self['name']}: {best['policy'] if best else 'nothing'}>"

    @property
    def json(self):
        """The answer as JSON text."""
        return self._data.json

    @property
    def text(self):
        """The answer in one screen, as the program prints it."""
        return self._data.text

    @property
    def config(self):
        """The run config of the recommendation, which run() takes; None where there is none."""
        return json.loads(self._data.run_config) if self._data.run_config else None

    def frame(self):
        """A frame, a row a setting that was tried: policy, setting (a policy as a run config has
        it), places (what is set besides), training_kept, gpus_worth, requests_per_s, tokens_per_s,
        latency_p95_ns, beyond_limits, available, simulated_ns."""
        columns = ["training_kept", "gpus_worth", "requests_per_s", "tokens_per_s",
                   "latency_p95_ns", "beyond_limits", "available", "simulated_ns"]
        rows = []
        for tried in self["tried"]:
            if not tried["done"]:
                continue
            policy = tried["policy"]
            name = policy if isinstance(policy, str) else policy["name"]
            rows.append({"policy": name, "setting": policy, "places": tried["places"],
                         **{column: tried[column] for column in columns}})
        return pandas().DataFrame(rows)

    def write_page(self, path):
        """Writes the answer as an HTML page that needs nothing else."""
        with open(os.fspath(path), "w", encoding="utf-8") as file:
            file.write(self._data.page)


def advise(question, *, base=None, store=None, configs=None, threads=0, progress=None):
    """Says what to run, as `bubblesim advise QUESTION` does: searches policies, their parameters
    and loads for what gains most within limits.

    question: a path, or a dict with the keys of configs/README.md ("A question"); its paths are
    relative to the folder `base` (default: the working folder). store: a store that keeps all runs,
    and where a search goes on. configs: the folder with devices/. threads: runs at once, 0: all
    cores; the answer does not depend on it. progress: called as progress(trials, best) now and
    then, best a text. Ctrl-C, and what progress raises, end the search.
    Policies are those that are built in.

    Python's lock is free while it searches. Raises bubblesim.Error."""
    return Advice(_core.answer_question(
        question, None if base is None else os.fspath(base),
        None if store is None else os.fspath(store),
        None if configs is None else os.fspath(configs), threads, progress, [], None))
