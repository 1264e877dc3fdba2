"""Traces: what happened on the ranks of a job, in recorded time."""
import json
import os

from . import _core
from ._frames import concatenated, numpy, pandas, texts_of

_NONE = 0xFFFF_FFFF


def _index(numbers):
    """Indices as int64, -1 where the record has none."""
    wide = numbers.astype("int64")
    wide[numbers == _NONE] = -1
    return wide


class Rank:
    """One rank's timeline.

    The array properties (device_ops, host_calls, collectives, edges, ranges, memory, stalls,
    clocks, shapes) are read-only views of the library's records: nothing is copied, and the trace
    lives as long as one of them. Their times are int64 ns of recorded time. What is a method is
    computed, and is the caller's own.
    """

    def __init__(self, data):
        self._data = data
        self._names = None

    def __repr__(self):
        return (f"<bubblesim.Rank {self.number} of {self.world_size}: "
                f"{len(self.device_ops)} device operations>")

    @property
    def number(self):
        """The rank's number, from 0."""
        return self._data.number

    @property
    def world_size(self):
        """Ranks of the job."""
        return self._data.world_size

    @property
    def device(self):
        """The GPU as recorded: a dict with name, sm_count, compute_major, compute_minor,
        memory_bytes; 0: not recorded."""
        return self._data.device

    @property
    def metadata(self):
        """Where the trace came from: a dict with source, format, tool, note."""
        return self._data.metadata

    @property
    def threads(self):
        """Host threads, by the number that records have: dicts with system_id, name."""
        return self._data.threads

    @property
    def streams(self):
        """Streams, by the number that records have: dicts with system_id, priority (CUDA's: lower
        is more urgent), device."""
        return self._data.streams

    @property
    def names(self):
        """Texts by the number that records have as name or group. Made at the first use."""
        if self._names is None:
            self._names = tuple(self._data.names)
        return self._names

    @property
    def counters(self):
        """What was dropped, guessed or repaired: dicts with name, severity, count, help."""
        return self._data.counters

    @property
    def device_ops(self):
        """View: all work on the device, by start. Fields: start, duration (ns), correlation, name
        (into names), stream, kind (into DEVICE_OP_KINDS), direction (into COPY_DIRECTIONS), shape
        (into shapes), bytes, collective (into collectives), launch (into host_calls); the last two
        are 2**32 - 1 where there is none."""
        return self._data.device_ops

    @property
    def host_calls(self):
        """View: calls of the CUDA runtime or driver, by start. Fields: start, duration (ns),
        correlation, name, thread, kind (into HOST_CALL_KINDS), stream (2**32 - 1: none), event."""
        return self._data.host_calls

    @property
    def collectives(self):
        """View: what is known of collectives. Fields: kind (into COLLECTIVE_KINDS), bytes, group
        (into names), group_size, sequence, sequence_recorded. peers(i) has the ranks."""
        return self._data.collectives

    @property
    def edges(self):
        """View: device operation `after` starts when `before` has ended. Fields: before, after
        (into device_ops), inferred."""
        return self._data.edges

    @property
    def ranges(self):
        """View: named spans on host threads. Fields: start, duration (ns), name, thread, kind
        (into RANGE_KINDS), number (of an iteration or micro-batch; -1: none)."""
        return self._data.ranges

    @property
    def memory(self):
        """View: device memory over time. Fields: at (ns), allocated_bytes, reserved_bytes."""
        return self._data.memory

    @property
    def stalls(self):
        """View: spans for which launch calls were held. Fields: start, duration (ns), thread, kind
        (into STALL_KINDS)."""
        return self._data.stalls

    @property
    def clocks(self):
        """View: the trace's clock beside the host's. Fields: at, realtime_ns, monotonic_ns."""
        return self._data.clocks

    @property
    def shapes(self):
        """View: launch shapes. Fields: grid and block (3 numbers each), registers_per_thread (0:
        not recorded), shared_memory_bytes."""
        return self._data.shapes

    def peers(self, collective):
        """Global ranks of a collective (its number); empty: not recorded."""
        return self._data.peers(collective)

    def _ops(self, *kinds):
        ops = self.device_ops
        wanted = ops["kind"] == _core.DEVICE_OP_KINDS.index(kinds[0])
        for kind in kinds[1:]:
            wanted |= ops["kind"] == _core.DEVICE_OP_KINDS.index(kind)
        ops = ops[wanted]
        return ops, {"rank": self.number, "start_ns": ops["start"],
                     "duration_ns": ops["duration"], "stream": ops["stream"],
                     "name": texts_of(ops["name"], self.names)}

    def kernels(self):
        """A frame of the kernels that are no collectives: rank, start_ns, duration_ns, stream,
        name, blocks, threads_per_block, registers_per_thread, shared_memory_bytes, correlation,
        launch (into host_calls; -1: launched outside the trace)."""
        ops, columns = self._ops("kernel")
        shapes = self.shapes[ops["shape"]] if len(self.shapes) else self.shapes
        columns.update(
            blocks=shapes["grid"].prod(axis=1, dtype="u8"),
            threads_per_block=shapes["block"].prod(axis=1, dtype="u8"),
            registers_per_thread=shapes["registers_per_thread"],
            shared_memory_bytes=shapes["shared_memory_bytes"],
            correlation=ops["correlation"], launch=_index(ops["launch"]))
        return pandas().DataFrame(columns)

    def copies(self):
        """A frame of copies and memsets: rank, start_ns, duration_ns, stream, name, kind,
        direction, bytes (0: not recorded), correlation, launch (-1: none)."""
        ops, columns = self._ops("copy", "memset")
        columns.update(kind=texts_of(ops["kind"], _core.DEVICE_OP_KINDS),
                       direction=texts_of(ops["direction"], _core.COPY_DIRECTIONS),
                       bytes=ops["bytes"], correlation=ops["correlation"],
                       launch=_index(ops["launch"]))
        return pandas().DataFrame(columns)

    def collective_ops(self):
        """A frame of the collectives on the device: rank, start_ns, duration_ns, stream, name,
        kind, bytes (0: not recorded), group, group_size, sequence, launch (-1: none)."""
        ops, columns = self._ops("collective")
        known = ops["collective"] != _NONE
        about = numpy().zeros(len(ops), dtype=self.collectives.dtype)
        if known.any():
            for field in about.dtype.names:
                about[field][known] = self.collectives[field][ops["collective"][known]]
        columns.update(kind=texts_of(about["kind"], _core.COLLECTIVE_KINDS), bytes=about["bytes"],
                       group=numpy().where(known, texts_of(about["group"], self.names), "")
                       if self.names else "",
                       group_size=about["group_size"], sequence=about["sequence"],
                       launch=_index(ops["launch"]))
        return pandas().DataFrame(columns)

    def calls(self):
        """A frame of the host calls: rank, start_ns, duration_ns, thread, name, kind, stream (-1:
        none), event, correlation."""
        calls = self.host_calls
        return pandas().DataFrame({
            "rank": self.number, "start_ns": calls["start"], "duration_ns": calls["duration"],
            "thread": calls["thread"], "name": texts_of(calls["name"], self.names),
            "kind": texts_of(calls["kind"], _core.HOST_CALL_KINDS),
            "stream": _index(calls["stream"]), "event": calls["event"],
            "correlation": calls["correlation"]})

    def named_ranges(self):
        """A frame of the ranges: rank, start_ns, duration_ns, thread, name, kind, number."""
        ranges = self.ranges
        return pandas().DataFrame({
            "rank": self.number, "start_ns": ranges["start"], "duration_ns": ranges["duration"],
            "thread": ranges["thread"], "name": texts_of(ranges["name"], self.names),
            "kind": texts_of(ranges["kind"], _core.RANGE_KINDS), "number": ranges["number"]})

    def bubbles(self):
        """A frame of the rank's bubbles by time, each with one cause, as `bubblesim inspect` sums
        them up (traces/inspect/bubbles.hpp defines them): rank, start_ns, end_ns, duration_ns,
        cause (one of BUBBLE_CAUSES)."""
        found = self._data.bubbles()
        return pandas().DataFrame({
            "rank": self.number, "start_ns": found["start"], "end_ns": found["end"],
            "duration_ns": found["end"] - found["start"],
            "cause": texts_of(found["cause"], _core.BUBBLE_CAUSES)})

    def idle(self):
        """A frame of the spans in which nothing at all runs on the device: rank, start_ns, end_ns,
        duration_ns. Bubbles are more: in them collectives may run."""
        found = self._data.idle()
        return pandas().DataFrame({
            "rank": self.number, "start_ns": found["start"], "end_ns": found["end"],
            "duration_ns": found["end"] - found["start"]})

    def iterations(self):
        """A frame of the rank's iterations: rank, number (-1: not marked), start_ns, end_ns,
        duration_ns, busy_ns (any operation runs), own_ns (any but collectives)."""
        found = self._data.iterations()
        return pandas().DataFrame({
            "rank": self.number, "number": found["number"], "start_ns": found["start"],
            "end_ns": found["end"], "duration_ns": found["end"] - found["start"],
            "busy_ns": found["busy"], "own_ns": found["own"]})


class Trace:
    """A job's trace: its ranks, on one clock. The frames are those of all ranks together."""

    def __init__(self, data):
        self._data = data
        self._ranks = tuple(Rank(rank) for rank in data.ranks)

    def __repr__(self):
        return f"<bubblesim.Trace of {len(self._ranks)} ranks>"

    def __len__(self):
        return len(self._ranks)

    def __getitem__(self, index):
        return self._ranks[index]

    def __iter__(self):
        return iter(self._ranks)

    @property
    def ranks(self):
        """All ranks in order, as a tuple; also trace[0], len(trace), iteration."""
        return self._ranks

    @property
    def counters(self):
        """Counters of reading and aligning all ranks: dicts with name, severity, count, help."""
        return self._data.counters

    @property
    def residual_ns(self):
        """Median disagreement of collectives' ends after alignment; None: no clock was aligned."""
        return self._data.residual_ns

    def inspect(self, top_kernels=15):
        """What `bubblesim inspect --json` prints, as a dict. top_kernels: 0 for all."""
        return json.loads(self._data.inspect_json(top_kernels))

    def _all(self, method):
        return concatenated(getattr(rank, method)() for rank in self._ranks)

    def kernels(self):
        """Rank.kernels() of all ranks."""
        return self._all("kernels")

    def copies(self):
        """Rank.copies() of all ranks."""
        return self._all("copies")

    def collective_ops(self):
        """Rank.collective_ops() of all ranks."""
        return self._all("collective_ops")

    def calls(self):
        """Rank.calls() of all ranks."""
        return self._all("calls")

    def named_ranges(self):
        """Rank.named_ranges() of all ranks."""
        return self._all("named_ranges")

    def bubbles(self):
        """Rank.bubbles() of all ranks."""
        return self._all("bubbles")

    def idle(self):
        """Rank.idle() of all ranks."""
        return self._all("idle")

    def iterations(self):
        """Rank.iterations() of all ranks."""
        return self._all("iterations")


def open_trace(paths, cluster=None, configs=None):
    """Reads the trace of a job: a path or several, of files or folders. What a file is, is told by
    its content: .btr, PyTorch profiler JSON, Nsight Systems SQLite exports, Chakra execution
    traces, plain or gzip. Chakra's collectives that have sizes and no times are simulated on
    `cluster`: the id of a file in the folder `configs`, or a path. Raises bubblesim.Error with
    the file, the place and what was found."""
    numpy()  # what is read is arrays
    if isinstance(paths, (str, os.PathLike)):
        paths = [paths]
    return Trace(_core.read_trace([os.fspath(path) for path in paths], cluster, configs))
