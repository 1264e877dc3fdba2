"""Stores of results, for reading."""
import collections
import json
import os

from . import _core
from ._frames import _setting, frame_of, pandas


def _text(value):
    if not isinstance(value, str):
        raise TypeError(f"found {value!r}, expected a text")
    return value


def _list(texts):
    if texts is None:
        return []
    return [texts] if isinstance(texts, str) else [_text(text) for text in texts]


def _filter(sweep=None, policy=None, filler=None, settings=None, key=""):
    return {"sweeps": _list(sweep), "policies": _list(policy), "fillers": _list(filler),
            "settings": {pointer: json.dumps(value) for pointer, value in (settings or {}).items()},
            "key": _text(key)}


_NO_LINE = collections.defaultdict(int, point={})


def _comparison(line, by_point):
    width = line["half_width"]
    row = {"metric": line["metric"], "filler": line["filler"], "policy": line["policy"]}
    if by_point:
        row.update({pointer: _setting(text) for pointer, text in line["point"].items()})
    paired = line["pairs"] > 0
    row.update(
        pairs=line["pairs"],
        mean=line["mean"] if paired else None,
        baseline_mean=line["baseline_mean"] if paired else None,
        difference=line["difference"] if paired else None,
        low=None if width is None else line["difference"] - width,
        high=None if width is None else line["difference"] + width,
        differs=None if width is None else abs(line["difference"]) > width,
        unpaired=line["unpaired"], lower_bounds=line["lower_bounds"],
        overloaded=line["overloaded"], losses=line["losses"])
    return row


class Store:
    """A store of results, open for reading only.

    Filters of its methods: sweep, policy, filler take a name or a list of names, and a name that
    no run of the store has is an Error; settings a dict from JSON pointers to what the sweep set
    there; key how the runs' keys begin. Nothing given restricts nothing. A column whose name begins
    with "/" has what a sweep set there: numbers and texts as they are, lists and objects as JSON.
    """

    def __init__(self, data):
        self._data = data

    def __repr__(self):
        return f"<bubblesim.Store {self.path}>"

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def close(self):
        """Closes the file; nothing can be read afterwards."""
        self._data.close()

    @property
    def path(self):
        """As it was given to open_store()."""
        return self._data.path

    def runs(self, sweep=None, settings=None, key=""):
        """A frame, a row a run: key, sweep, index, point, seed, repetition, status ("done" or
        "failed"), reason, host, version, finished_unix_ns, cpu_ns, and what the sweep set."""
        return frame_of(self._data.runs(_filter(sweep, settings=settings, key=key)))

    def results(self, sweep=None, policy=None, filler=None, settings=None, key=""):
        """A frame, a row a policy and filler of each run: the columns of `bubblesim results
        export` (sim/observe/OUTPUTS.md), and what the sweep set."""
        return frame_of(self._data.results(_filter(sweep, policy, filler, settings, key)))

    def latency(self, key, policy=None, filler=None):
        """The latencies of a filler's requests under a policy in the run whose key begins with
        `key`: a LatencyHistogram. policy and filler may be left out where there is one only."""
        places = self._data.places(_filter(policy=policy, filler=filler, key=key))
        if len(places) != 1:
            found = ", ".join(f"{run[:8]} {name}/{served}"
                              for run, name, served, _, _ in places[:8])
            raise _core.Error(f"{self.path}: key {key!r}: found "
                              f"{'several: ' + found if places else 'no policy with a filler'}, "
                              "expected one run, policy and filler")
        run, name, served, policy_index, filler_index = places[0]
        histogram = self._data.latency(run, policy_index, filler_index)
        if histogram is None:
            raise _core.Error(f"{self.path}: key {run}: found no latencies of {served} under "
                              f"{name}, expected an online filler")
        return histogram

    def compare(self, metrics=(), baseline="", by_point=False, confidence=0.95, sweep=None,
                policy=None, filler=None, settings=None):
        """Policies against one of them, as `bubblesim results compare`: runs are paired by point
        and seed, and low and high bound the mean difference with the confidence given (Student's
        t). A frame: metric, filler, policy, with by_point what the sweep set, pairs, mean,
        baseline_mean, difference, low, high, differs, unpaired, lower_bounds, overloaded, losses. Its attrs have
        baseline and confidence. Without metrics: training_normalised_fraction,
        filler_normalised_fraction, latency_p95_ms; without baseline: the first run's first."""
        compared = self._data.compare(_filter(sweep, policy, filler, settings), _list(metrics),
                                      baseline, by_point, confidence)
        lines = [_comparison(line, by_point) for line in compared["lines"]]
        columns = None if lines else list(_comparison(_NO_LINE, by_point))
        frame = pandas().DataFrame(lines, columns=columns)
        frame.attrs.update(baseline=compared["baseline"], confidence=compared["confidence"])
        return frame

    def config(self, key):
        """The config of the run whose key begins with `key`, as a dict: run() takes it again."""
        found = self._data.configs(key)
        if len(found) != 1:
            raise _core.Error(f"{self.path}: found {'several runs' if found else 'no run'} whose "
                              f"key begins with {key!r}, expected one")
        return json.loads(found[0][1])

    def check(self):
        """Reads everything and checks it; the Error names the first damage."""
        self._data.check()


def open_store(path):
    """Opens a store of results for reading: a file, or "postgresql://...". Raises bubblesim.Error
    where there is no store, it is damaged, or a newer version wrote it."""
    return Store(_core.read_store(os.fspath(path)))
