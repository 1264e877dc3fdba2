"""How a model is spread: each plan makes the step of rank r, with the process group in place."""

from __future__ import annotations

import contextlib
from typing import Any, Callable, cast

import torch
import torch.distributed as dist
from torch import nn

from .build import Inputs, Job, build, build_model, dtype_of, make_inputs, make_loss, placed
from .config import ConfigError
from .steps import marked
from .transformer import RMSNorm, Rotary, Transformer

Step = Callable[[int], None]


def adam(parameters: Any) -> torch.optim.Optimizer:
    """One group of plain tensors, one of distributed ones: a fused update cannot mix them."""
    groups: dict[bool, list[Any]] = {False: [], True: []}
    for parameter in parameters:
        groups[hasattr(parameter, "to_local")].append(parameter)
    made = [{"params": group} for group in groups.values() if group]
    on_gpu = all(p.is_cuda for group in groups.values() for p in group)
    return torch.optim.AdamW(made, lr=1e-5, **({"fused": True} if on_gpu else {}))


def training_step(job: Job, micro_batches: int, optimizer: torch.optim.Optimizer) -> Step:
    """Gradients of `micro_batches` passes are added up; only the last exchanges them (DDP)."""

    def one_pass(number: int, last: bool) -> None:
        model: Any = job.model
        quiet = hasattr(model, "no_sync") and not last
        sync = model.no_sync() if quiet else contextlib.nullcontext()
        with marked(f"micro-batch {number}"), sync:
            with marked("forward"):
                loss = job.loss(job.model(*job.inputs))
            with marked("backward"):
                loss.backward()

    def step(_number: int) -> None:
        for number in range(micro_batches):
            one_pass(number, number + 1 == micro_batches)
        with marked("optimizer"):
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)

    return step


def single(job: Job, micro_batches: int) -> Step:
    return training_step(job, micro_batches, adam(job.model.parameters()))


def data_parallel(job: Job, micro_batches: int) -> Step:
    devices = [job.inputs[0].device.index] if job.inputs[0].is_cuda else None
    wrapped = nn.parallel.DistributedDataParallel(
        job.model, device_ids=devices, gradient_as_bucket_view=True, broadcast_buffers=False
    )
    job.model = wrapped
    return training_step(job, micro_batches, adam(wrapped.parameters()))


def needs_torch(version: tuple[int, int], plan: str) -> None:
    have = tuple(int(part) for part in torch.__version__.split(".")[:2])
    if have < version:
        raise ConfigError(f"--plan {plan} needs PyTorch {version[0]}.{version[1]}; "
                          f"this is {torch.__version__}")


def initialise(model: nn.Module) -> None:
    """Values for a model made without storage; as large as usual, which is all that matters.
    Each rank fills its own share, without asking the others."""

    def local(tensor: Any) -> torch.Tensor:
        return cast(torch.Tensor, tensor.to_local() if hasattr(tensor, "to_local") else tensor)

    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, Rotary):
                module.fill()
            for name, parameter in module.named_parameters(recurse=False):
                if name == "bias":
                    local(parameter).zero_()
                elif isinstance(module, (nn.LayerNorm, RMSNorm)):
                    local(parameter).fill_(1.0)
                else:
                    local(parameter).normal_(std=0.02)


def sharded(config: dict[str, Any], batch: int, sequence: int, device: torch.device,
            micro_batches: int, world: int) -> tuple[Job, Step]:
    """FSDP2, a unit a block. Only this rank's shares are ever allocated, except of models with
    tied embeddings: those do not survive being made without storage."""
    needs_torch((2, 6), "fsdp")
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    if config.get("family") != "transformer":
        raise ConfigError("--plan fsdp is for transformers")
    bare = not config["tied_embeddings"]
    model = placed(lambda: build_model(config), torch.device("meta") if bare else device)
    mesh = init_device_mesh(device.type, (world,), mesh_dim_names=("dp",))
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for block in cast(Transformer, model).blocks:
        fully_shard(block, mesh=mesh, mp_policy=policy)
    fully_shard(model, mesh=mesh, mp_policy=policy)
    if bare:
        model.to_empty(device=device)
        initialise(model)
    job = build(config, batch, sequence, device, model)
    return job, training_step(job, micro_batches, adam(model.parameters()))


def tensor_parallel(config: dict[str, Any], batch: int, sequence: int, device: torch.device,
                    micro_batches: int, world: int) -> tuple[Job, Step]:
    """Each block's matrices by DTensor, as Megatron-LM splits them: an all-reduce after the
    attention and one after the feed-forward part. Embedding and head are whole on each rank."""
    needs_torch((2, 7), "tp")
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import (
        ColwiseParallel, RowwiseParallel, parallelize_module)

    if config.get("family") != "transformer" or config.get("mixture"):
        raise ConfigError("--plan tp is for transformers without experts")
    if config["kv_heads"] % world != 0 or config["ffn"] % world != 0:
        raise ConfigError(f"--world {world} must divide kv_heads {config['kv_heads']} "
                          f"and ffn {config['ffn']}")
    mesh = init_device_mesh(device.type, (world,), mesh_dim_names=("tp",))
    with torch.device("meta"):
        model = Transformer(config)
    plan: dict[str, Any] = {name: ColwiseParallel() for name in
                            ("attention.q", "attention.k", "attention.v", "ffn.up", "ffn.gate")}
    plan.update({"attention.out": RowwiseParallel(), "ffn.down": RowwiseParallel()})
    if config["activation"] != "swiglu":
        del plan["ffn.gate"]
    for block in model.blocks:
        parallelize_module(block, mesh, plan, src_data_rank=None)
    model = model.to(dtype_of(device)).to_empty(device=device)
    if model.has_head and config["head"] == "language_model" and config["tied_embeddings"]:
        model.head.weight = model.tokens.weight
    initialise(model)
    job = build(config, batch, sequence, device, model)
    return job, training_step(job, micro_batches, adam(model.parameters()))


class Stage:
    """One stage of a pipeline: 1F1B order, activations and gradients by send and recv."""

    def __init__(self, config: dict[str, Any], batch: int, sequence: int, device: torch.device,
                 rank: int, world: int) -> None:
        if config.get("family") != "transformer":
            raise ConfigError("--plan pp-stage is for transformers")
        if config["layers"] < world:
            raise ConfigError(f"--world {world}: the model has {config['layers']} blocks only")
        first, last = (config["layers"] * r // world for r in (rank, rank + 1))
        self.rank, self.world = rank, world
        stage = placed(lambda: Transformer(config, first, last), device)
        self.model = stage.to(dtype_of(device))
        self.tokens: Inputs = make_inputs(config, batch, sequence, device)
        self.loss = make_loss(config, batch, sequence, device)
        shape = (*self.tokens[0].shape, config["hidden"])
        self.activations = torch.zeros(shape, device=device, dtype=dtype_of(device))
        self.pending: list[tuple[torch.Tensor, torch.Tensor]] = []
        self.sends: list[Any] = []

    def forward(self, number: int) -> None:
        with marked(f"micro-batch {number}"):
            source = self.tokens[0]
            if self.rank > 0:
                source = torch.empty_like(self.activations)
                dist.irecv(source, self.rank - 1).wait()
                source.requires_grad_()
            with marked("forward"):
                output = self.model(source)
                if self.rank + 1 == self.world:
                    output = self.loss(output)
            self.pending.append((source, output))
            if self.rank + 1 < self.world:
                self.sends.append(dist.isend(output.detach(), self.rank + 1))

    def backward(self, number: int) -> None:
        with marked(f"micro-batch {number}"):
            source, output = self.pending.pop(0)
            gradient = None
            if self.rank + 1 < self.world:
                gradient = torch.empty_like(output)
                dist.irecv(gradient, self.rank + 1).wait()
            with marked("backward"):
                output.backward(gradient)
            if self.rank > 0:
                assert source.grad is not None
                self.sends.append(dist.isend(source.grad, self.rank - 1))

    def order(self, micro_batches: int) -> list[tuple[str, int]]:
        """1F1B: forwards that fill the pipeline, then one of each, then the rest."""
        ahead = min(self.world - self.rank - 1, micro_batches)
        work = [("forward", number) for number in range(ahead)]
        for number in range(micro_batches - ahead):
            work += [("forward", ahead + number), ("backward", number)]
        return work + [("backward", n) for n in range(micro_batches - ahead, micro_batches)]

    def step(self, micro_batches: int, optimizer: torch.optim.Optimizer) -> None:
        for kind, number in self.order(micro_batches):
            (self.forward if kind == "forward" else self.backward)(number)
        for send in self.sends:
            send.wait()
        self.sends.clear()
        with marked("optimizer"):
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)


def pipeline_stage(config: dict[str, Any], batch: int, sequence: int, device: torch.device,
                   micro_batches: int, rank: int, world: int) -> Step:
    stage = Stage(config, batch, sequence, device, rank, world)
    optimizer = adam(stage.model.parameters())
    return lambda _number: stage.step(micro_batches, optimizer)
