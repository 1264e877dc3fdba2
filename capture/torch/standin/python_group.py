"""The process group "standin" in Python: for where the C++ one cannot be built.

The same announcements, marker kernels and edges; each collective costs the host more.
"""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Sequence

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import _create_work_from_future

from .markers import Markers
from .note import FILL_PREFIX, collective_text, group_word, ranks_text
from .ranges import marked

SMALL_BYTES = 1 << 20
Tensors = Sequence[torch.Tensor]


def bytes_of(tensors: Tensors) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def flat(lists: Sequence[Tensors]) -> list[torch.Tensor]:
    return [tensor for tensors in lists for tensor in tensors]


def copy(target: torch.Tensor, source: torch.Tensor) -> None:
    """Nothing to do where a buffer is gathered into or scattered from in place."""
    if target.data_ptr() != source.data_ptr() and target.numel() == source.numel():
        target.copy_(source.reshape(target.shape), non_blocking=True)


class PythonGroup(dist.ProcessGroup):
    """One group; PyTorch calls the methods named as its own."""

    markers: Markers | None = None
    fill = "shard"
    log: list[str] | None = None

    def __init__(self, rank: int, size: int, name: str, ranks: Sequence[int]) -> None:
        super().__init__(rank, size)
        self._rank, self._size, self._name = rank, size, name
        self._ranks = list(ranks)
        self._ranks_text = ranks_text(self._ranks)
        self._sequence = 0
        self._pair_sequences: dict[str, int] = {}
        self._streams: dict[int, Any] = {}
        self._device = torch.device("cpu")

    def getBackendName(self) -> str:
        return "standin"

    def allreduce(self, tensors: Tensors, opts: Any = None) -> Any:
        return self._stand_in("all_reduce", tensors, tensors, opts)

    def allreduce_coalesced(self, tensors: Tensors, opts: Any = None) -> Any:
        return self._stand_in("all_reduce", tensors, tensors, opts)

    def broadcast(self, tensors: Tensors, opts: Any = None) -> Any:
        return self._stand_in("broadcast", tensors, tensors, opts)

    def reduce(self, tensors: Tensors, opts: Any = None) -> Any:
        return self._stand_in("reduce", tensors, tensors, opts)

    def barrier(self, opts: Any = None) -> Any:
        return self._stand_in("barrier", [], [], opts)

    def allgather(self, outputs: Sequence[Tensors], inputs: Tensors, opts: Any = None) -> Any:
        def fill(everything: bool) -> None:
            for shares, source in zip(outputs, inputs):
                self._gather(shares, source, everything)

        return self._stand_in("all_gather", inputs, flat(outputs), opts, fill)

    def _allgather_base(
        self, output: torch.Tensor, source: torch.Tensor, opts: Any = None
    ) -> Any:
        return self.allgather_into_tensor_coalesced([output], [source], opts)

    def allgather_into_tensor_coalesced(
        self, outputs: Tensors, inputs: Tensors, opts: Any = None
    ) -> Any:
        def fill(everything: bool) -> None:
            for output, source in zip(outputs, inputs):
                self._gather(output.chunk(self._size), source, everything)

        return self._stand_in("all_gather", inputs, outputs, opts, fill)

    def reduce_scatter(
        self, outputs: Tensors, inputs: Sequence[Tensors], opts: Any = None
    ) -> Any:
        def fill(_everything: bool) -> None:
            for output, shares in zip(outputs, inputs):
                copy(output, shares[self._rank])

        return self._stand_in("reduce_scatter", flat(inputs), outputs, opts, fill)

    def _reduce_scatter_base(
        self, output: torch.Tensor, source: torch.Tensor, opts: Any = None
    ) -> Any:
        return self.reduce_scatter_tensor_coalesced([output], [source], opts)

    def reduce_scatter_tensor_coalesced(
        self, outputs: Tensors, inputs: Tensors, opts: Any = None
    ) -> Any:
        def fill(_everything: bool) -> None:
            for output, source in zip(outputs, inputs):
                copy(output, source.chunk(self._size)[self._rank])

        return self._stand_in("reduce_scatter", inputs, outputs, opts, fill)

    def alltoall_base(
        self,
        output: torch.Tensor,
        source: torch.Tensor,
        output_splits: Sequence[int],
        input_splits: Sequence[int],
        opts: Any = None,
    ) -> Any:
        def fill(everything: bool) -> None:
            if not output_splits and not input_splits and not everything:
                copy(output.chunk(self._size)[self._rank], source.chunk(self._size)[self._rank])
            elif output.numel() == source.numel():
                copy(output, source)
            else:
                output.zero_()

        return self._stand_in("all_to_all", [source], [output], opts, fill)

    def alltoall(self, outputs: Tensors, inputs: Tensors, opts: Any = None) -> Any:
        def fill(everything: bool) -> None:
            for place, (output, source) in enumerate(zip(outputs, inputs)):
                if everything or place == self._rank:
                    copy(output, source) if output.shape == source.shape else output.zero_()

        return self._stand_in("all_to_all", inputs, outputs, opts, fill)

    def gather(self, outputs: Sequence[Tensors], inputs: Tensors, opts: Any = None) -> Any:
        def fill(everything: bool) -> None:
            for shares, source in zip(outputs, inputs):
                self._gather(shares, source, everything)

        return self._stand_in("gather", inputs, flat(outputs), opts, fill)

    def scatter(self, outputs: Tensors, inputs: Sequence[Tensors], opts: Any = None) -> Any:
        def fill(_everything: bool) -> None:
            if inputs:
                copy(outputs[0], inputs[0][self._rank])
            else:
                outputs[0].zero_()

        return self._stand_in("scatter", outputs, outputs, opts, fill)

    def send(self, tensors: Tensors, peer: int, _tag: int = 0) -> Any:
        return self._stand_in("send", tensors, [], None, peer=peer)

    def recv(self, tensors: Tensors, peer: int, _tag: int = 0) -> Any:
        def fill(_everything: bool) -> None:
            for tensor in tensors:
                tensor.zero_()

        return self._stand_in("recv", tensors, tensors, None, fill, peer)

    def _gather(self, shares: Tensors, source: torch.Tensor, everything: bool) -> None:
        for place, share in enumerate(shares):
            if everything or place == self._rank:
                copy(share, source)

    def _announcement(self, op: str, inputs: Tensors, asynchronous: bool, peer: int) -> str:
        description = getattr(self, "group_desc", "")
        group = group_word(description if isinstance(description, str) else "", self._name)
        dtype = str(inputs[0].dtype).removeprefix("torch.") if inputs else "uint8"
        size = bytes_of(inputs)
        if peer < 0:
            sequence = self._sequence
            self._sequence += 1
            return collective_text(op, size, dtype, group, self._size, self._rank, sequence,
                                   asynchronous, self._ranks_text)
        ends = [self._ranks[self._rank], self._ranks[peer]]
        if op == "recv":
            ends.reverse()
        pair = f"{ends[0]}>{ends[1]}"
        sequence = self._pair_sequences.get(pair, 0)
        self._pair_sequences[pair] = sequence + 1
        return collective_text(op, size, dtype, f"{group}.{pair}", 2, int(op == "recv"), sequence,
                               True, f"{ends[0]},{ends[1]}")

    def _stand_in(
        self,
        op: str,
        inputs: Tensors,
        outputs: Tensors,
        opts: Any,
        fill: Callable[[bool], None] | None = None,
        peer: int = -1,
    ) -> Any:
        asynchronous = bool(getattr(opts, "asyncOp", True))
        tensors = list(outputs) or list(inputs)
        if tensors:
            self._device = tensors[0].device
        text = self._announcement(op, inputs, asynchronous, peer)
        if PythonGroup.log is not None:
            PythonGroup.log.append(text)
        future = self._future()
        with torch.no_grad(), self._launched(op, text, asynchronous, peer):
            size = bytes_of(outputs)
            if fill is not None and size > 0 and PythonGroup.fill != "none":
                with marked(f"{FILL_PREFIX} op={op} bytes={size}"):
                    fill(PythonGroup.fill == "all" or size <= SMALL_BYTES)
            future.set_result(list(outputs))
        return _create_work_from_future(future)

    def _future(self) -> Any:
        if self._device.type != "cuda":
            return torch.futures.Future()
        return torch.futures.Future(devices=[self._device])

    def _launched(self, op: str, text: str, asynchronous: bool, peer: int) -> Any:
        """Announces and marks; the context in which the collective's stream is current. A future
        completed in it makes those who wait for it wait for that stream."""
        if self._device.type != "cuda":
            return contextlib.nullcontext()
        callers = torch.cuda.current_stream(self._device)
        stream = callers
        with marked(text):
            if asynchronous:
                stream = self._streams.setdefault(peer, torch.cuda.Stream(self._device))
                stream.wait_stream(callers)
            assert PythonGroup.markers is not None, "standin.init was not called"
            PythonGroup.markers.launch(op, stream.cuda_stream)
        return torch.cuda.stream(stream)
