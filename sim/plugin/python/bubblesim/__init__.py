"""What filling a training job's bubbles gains and costs: traces, runs, sweeps and their results,
and sharing policies in Python.

Every time is a whole number of nanoseconds, every memory size one of bytes, every client its number
(0: training). Tables are pandas frames, records are NumPy arrays over the library's own memory.
"""
from ._core import (
    ADMIT, BUBBLE_CAUSES, COLLECTIVE_KINDS, CONTRACT_VERSION, COPY_DIRECTIONS, DEVICE_OP_KINDS,
    HOLD, HOST_CALL_KINDS, RANGE_KINDS, SLICE_KINDS, STALL_KINDS, Actions, Admission, BubbleInfo,
    ClientInfo, ClientSharing, CompletionInfo, Counters, Error, Fault, GpuInfo, GpuState,
    IterationInfo, JobInfo, KernelBound, Latencies, LatencyHistogram, LaunchInfo, LaunchKind, MigGeometry,
    Needs, Parameter, Placer, Policy, Preemption, RegisteredPolicy, Role, Severity, Sharing,
    SharingMode, Verdict, __version__, declare_choice, declare_duration, declare_flag,
    declare_integer, declare_number, format_duration, ms,
    parse_duration, register, registered, seconds, us)
from ._advise import Advice, advise
from ._run import RunResult, run, sweep
from ._store import Store, open_store
from ._trace import Rank, Trace, open_trace

__all__ = [
    "ADMIT", "BUBBLE_CAUSES", "COLLECTIVE_KINDS", "CONTRACT_VERSION", "COPY_DIRECTIONS",
    "DEVICE_OP_KINDS", "HOLD", "HOST_CALL_KINDS", "RANGE_KINDS", "SLICE_KINDS", "STALL_KINDS",
    "Actions", "Admission", "Advice", "BubbleInfo", "ClientInfo", "ClientSharing", "CompletionInfo",
    "Counters", "Error", "Fault", "GpuInfo", "GpuState", "IterationInfo", "JobInfo", "KernelBound",
    "Latencies", "LatencyHistogram", "LaunchInfo", "LaunchKind", "MigGeometry", "Needs", "Parameter", "Placer",
    "Policy", "Preemption",
    "Rank", "RegisteredPolicy", "Role", "RunResult", "Severity", "Sharing", "SharingMode", "Store",
    "Trace", "Verdict", "__version__", "advise", "declare_choice", "declare_duration", "declare_flag",
    "declare_integer", "declare_number", "format_duration", "ms", "open_store", "open_trace",
    "parse_duration", "register", "registered", "run", "seconds", "sweep", "us"]
