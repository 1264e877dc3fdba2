"""Run as rank r of N on one GPU: collectives are recorded and stood in for.

    import standin
    standin.init(rank=3, world_size=64)
    ...
    standin.close()

capture/torch/README.md says what is announced, what is filled, and what differs from NCCL.
"""

from __future__ import annotations

import inspect
import os
import sys
from datetime import timedelta
from typing import Any, Callable

import torch
import torch.distributed as dist

from .markers import Markers
from .ranges import marked

__all__ = ["close", "implementation", "init", "marked", "take_log"]

IMPLEMENTATIONS = ("auto", "cpp", "python")
FILLS = ("shard", "all", "none")

_state: dict[str, Any] = {"implementation": "", "take_log": None, "creator": None}


def implementation() -> str:
    """"cpp", "python", or empty before init."""
    return str(_state["implementation"])


def take_log() -> list[str]:
    """The announcements since the last call, where init was told to keep them."""
    take: Callable[[], list[str]] | None = _state["take_log"]
    return take() if take else []


def init(
    rank: int,
    world_size: int,
    backend: str = "auto",
    fill: str = "shard",
    keep_log: bool = False,
) -> str:
    """Makes the default process group; returns the implementation taken. GPU 0 is the device."""
    _check(rank, world_size, backend, fill)
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(world_size), LOCAL_RANK="0")
    markers = None
    if torch.cuda.is_available():
        torch.cuda.set_device(0)
        torch.cuda.synchronize()
        markers = Markers()
    _state["creator"] = _choose(backend, markers, fill, keep_log)
    _register()
    dist.init_process_group(
        "standin", store=_store(world_size), rank=rank, world_size=world_size,
        timeout=timedelta(seconds=60),
    )
    with marked(f"bubblesim.standin implementation={implementation()}"):
        pass
    return implementation()


def close() -> None:
    if dist.is_initialized():
        dist.destroy_process_group()


def _check(rank: int, world_size: int, backend: str, fill: str) -> None:
    if not 0 <= rank < world_size:
        raise ValueError(f"rank is {rank}; must be 0 to {world_size - 1} (world_size - 1)")
    if backend not in IMPLEMENTATIONS:
        raise ValueError(f"backend is {backend!r}; allowed: {', '.join(IMPLEMENTATIONS)}")
    if fill not in FILLS:
        raise ValueError(f"fill is {fill!r}; allowed: {', '.join(FILLS)}")


def _choose(backend: str, markers: Markers | None, fill: str, keep_log: bool) -> Callable[..., Any]:
    if backend != "python":
        try:
            return _cpp_creator(markers, fill, keep_log)
        except Exception as fault:  # a compiler's words, a missing header, an older PyTorch
            if backend == "cpp":
                raise
            first = str(fault).strip().splitlines() or [type(fault).__name__]
            print(f"standin: the C++ backend is not usable ({first[0]}); the Python process group "
                  "stands in: host times of collectives are longer", file=sys.stderr)
    return _python_creator(markers, fill, keep_log)


def _cpp_creator(markers: Markers | None, fill: str, keep_log: bool) -> Callable[..., Any]:
    if int(torch.__version__.split(".")[0]) < 2:
        raise RuntimeError(f"PyTorch {torch.__version__} is older than 2")
    from .cpp_backend import CppBackend

    built = CppBackend(markers, fill, keep_log)
    _state.update(implementation="cpp", take_log=built.take_log)
    return built.create


def _python_creator(markers: Markers | None, fill: str, keep_log: bool) -> Callable[..., Any]:
    from .python_group import PythonGroup

    PythonGroup.markers, PythonGroup.fill = markers, fill
    PythonGroup.log = [] if keep_log else None

    def take() -> list[str]:
        lines = list(PythonGroup.log or [])
        if PythonGroup.log is not None:
            PythonGroup.log.clear()
        return lines

    _state.update(implementation="python", take_log=take)
    return PythonGroup


def _store(world_size: int) -> Any:
    """One process's store. PyTorch before 2.1 waits in it for the others at the start of each
    group; they are counted as there beforehand."""
    store = dist.HashStore()
    if int(torch.__version__.split(".")[0]) < 2:
        for group in range(1, 65):
            store.add(f"store_based_barrier_key:{group}", world_size - 1)
    return store


def _register() -> None:
    """PyTorch hands the creator what it knows of a group as one object."""

    def create(options: Any, _backend_options: Any = None) -> Any:
        ranks = list(options.global_ranks_in_group) or list(range(options.group_size))
        creator = _state["creator"]
        return creator(options.group_rank, options.group_size, str(options.group_id), ranks)

    if hasattr(dist.Backend, "STANDIN"):
        return
    arguments: dict[str, Any] = {"extended_api": True}
    if "devices" in inspect.signature(dist.Backend.register_backend).parameters:
        arguments["devices"] = ["cpu", "cuda"]
    dist.Backend.register_backend("standin", create, **arguments)
