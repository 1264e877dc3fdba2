"""Runs and sweeps."""
import json
import os

from . import _core
from ._frames import concatenated, frame_of, numpy, pandas, texts_of


class RunResult(dict):
    """What a run gave: the report of `bubblesim run --json` as a dict, and more of it by methods.

    policy and filler of its methods are names, or numbers from 0 on where a policy is there several
    times; a filler may be left out where there is one only.
    """

    def __init__(self, data):
        super().__init__(json.loads(data.json))
        self._data = data

    def __repr__(self):
        names = ", ".join(policy["policy"] for policy in self["policies"])
        return f"<bubblesim.RunResult of {self['config']}: {names}>"

    @property
    def json(self):
        """The report, byte by byte as `bubblesim run --json` prints it."""
        return self._data.json

    @property
    def _arrays(self):
        numpy()
        return self._data

    def _place(self, what, wanted, names):
        if isinstance(wanted, int) and 0 <= wanted < len(names):
            return wanted
        if wanted is None and len(names) == 1:
            return 0
        if names.count(wanted) != 1:
            raise ValueError(f"found {what} {wanted!r}, expected one of {', '.join(names)}"
                             + (" by its number" if wanted in names else ""))
        return names.index(wanted)

    def _policy(self, policy):
        return self._place("policy", policy, [each["policy"] for each in self["policies"]])

    def _filler(self, policy, filler):
        names = [each["name"] for each in self["policies"][policy]["fillers"]]
        return self._place("filler", filler, names)

    def frame(self):
        """A frame, a row a policy and filler: the columns of sim/observe/OUTPUTS.md."""
        return frame_of(self._data.rows())

    def iterations(self, policy=None):
        """A frame of training's finished iterations under a policy (all of them: None): policy,
        rank, iteration, duration_ns, counted (it ended in the measured window)."""
        names = [each["policy"] for each in self["policies"]]
        wanted = range(len(names)) if policy is None else [self._policy(policy)]
        frames = []
        for place in wanted:
            for rank, lengths, first in self._arrays.iterations(place):
                numbers = numpy().arange(len(lengths))
                frames.append(pandas().DataFrame({
                    "policy": names[place], "rank": rank, "iteration": numbers,
                    "duration_ns": lengths, "counted": numbers >= first}))
        return concatenated(frames)

    def latencies(self, policy, filler=None):
        """int64 ns of every completed request that arrived in the measured window, in the order of
        their completion: a read-only view, which keeps the result alive."""
        place = self._policy(policy)
        return self._arrays.latencies(place, self._filler(place, filler))

    def latency(self, policy, filler=None):
        """The same as Latencies, unfinished requests with it: percentiles are the table's."""
        place = self._policy(policy)
        return self._data.latency(place, self._filler(place, filler))

    def token_latencies(self, policy, filler=None):
        """A pair of Latencies of a language-model server: time to first token, and time per
        output token after the first."""
        place = self._policy(policy)
        return self._data.token_latencies(place, self._filler(place, filler))

    def timeline(self):
        """What ran when, if run(timeline=...) recorded it: a frame with gpu, client (its name),
        kind (one of SLICE_KINDS), name, start_ns, end_ns (simulated), request (-1: none)."""
        slices = self._arrays.slices()
        names, clients = self._data.slice_names()
        request = slices["request"].astype("int64")  # 2**64 - 1, no request, becomes -1
        who = zip(slices["gpu"].tolist(), slices["client"].tolist())
        return pandas().DataFrame({
            "gpu": slices["gpu"], "client": [clients[client] for client in who],
            "kind": texts_of(slices["kind"], _core.SLICE_KINDS),
            "name": [names[name] for name in slices["name"].tolist()],
            "start_ns": slices["start"], "end_ns": slices["end"], "request": request})

    def timeline_counters(self):
        """Values over time on GPUs, recorded with the timeline: a frame with gpu, counter (its
        name, with the unit), at_ns (simulated), value."""
        samples = self._arrays.samples()
        tracks = self._data.tracks()
        gpus = [gpu for gpu, _ in tracks] or [0]
        names = [name for _, name in tracks] or [""]
        return pandas().DataFrame({
            "gpu": texts_of(samples["track"], gpus).astype("i8"),
            "counter": texts_of(samples["track"], names),
            "at_ns": samples["at"], "value": samples["value"]})

    def write_timeline(self, path):
        """Writes the timeline as a Chrome trace, for https://ui.perfetto.dev."""
        self._data.write_timeline(os.fspath(path))


def run(config, policies=None, *, base=None, libraries=(), configs=None, threads=1, timeline=None,
        timeline_window_ns=1_000_000_000, force=False):
    """Simulates a run config, as `bubblesim run CONFIG` does.

    config: a path, or a dict whose paths are relative to the folder `base` (default: the working
    folder). policies: in place of the config's, in the same form: names, and {"name",
    "parameters"}. libraries: paths of shared libraries of policies. configs: the folder with
    devices/. threads: simulations at once, of runs without policies from Python (those have one);
    results do not depend on it. timeline: the policy whose timeline is recorded, from the end of
    the warm-up on for timeline_window_ns. force: whatever it takes (`bubblesim run --force`).

    Python's lock is free while a run simulates, and Ctrl-C ends it. Raises bubblesim.Error."""
    return RunResult(_core.simulate(
        config, None if policies is None else list(policies),
        None if base is None else os.fspath(base), [os.fspath(path) for path in libraries],
        None if configs is None else os.fspath(configs), threads, timeline, timeline_window_ns,
        force))


def sweep(config, store, *, set=(), configs=None, threads=0, limit=None, retry_failed=False,
          progress=None):
    """Does the runs of a sweep file that the store does not have yet, and stores them, as
    `bubblesim sweep CONFIG --store STORE` does; open_store() reads them.

    set: other values of the base, "/a/b=c" each. threads: runs at once, 0: all cores. limit: at
    most so many runs now. progress: called as progress(done, all) now and then. Ctrl-C, and what
    progress raises, end the sweep when the runs in flight have; what is finished is stored.
    Policies are those that are built in.

    A dict: runs (of the sweep), stored (before), done (now), failed, left."""
    return _core.execute_sweep(os.fspath(config), os.fspath(store), list(set),
                               None if configs is None else os.fspath(configs), threads, limit,
                               retry_failed, progress)
