"""Models with random inputs and a loss, by their ids in configs/models."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any, Callable

import torch
from torch import nn
from torch.nn import functional as F

from .config import ConfigError
from .others import Convolutional, Graph
from .transformer import Transformer

Inputs = tuple[torch.Tensor, ...]


@dataclass
class Job:
    """`loss` of the model's output; targets are made once, as the inputs are."""

    model: nn.Module
    inputs: Inputs
    loss: Callable[[torch.Tensor], torch.Tensor]
    config: dict[str, Any]


def dtype_of(device: torch.device) -> torch.dtype:
    return torch.bfloat16 if device.type == "cuda" else torch.float32


def build_model(config: dict[str, Any], image: int = 0) -> nn.Module:
    family = config.get("family")
    if family == "transformer":
        return Transformer(config)
    if family == "convolutional":
        return Convolutional(config, image)
    if family == "graph":
        return Graph(config)
    raise ConfigError(f"family {family!r} is unknown; known: transformer, convolutional, graph")


def placed(make: Callable[[], nn.Module], device: torch.device) -> nn.Module:
    """The module made where it will work: random values of a large model take long on a host."""
    context: Any = device if hasattr(device, "__enter__") else contextlib.nullcontext()
    with context:
        model = make()
    return model.to(device)


def build(
    config: dict[str, Any],
    batch: int,
    sequence: int,
    device: torch.device,
    model: nn.Module | None = None,
    image: int = 0,
) -> Job:
    made = model
    if made is None:
        made = placed(lambda: build_model(config, image), device).to(dtype_of(device))
    inputs = make_inputs(config, batch, sequence, device, image)
    return Job(made, inputs, make_loss(config, batch, sequence, device), config)


def make_inputs(
    config: dict[str, Any], batch: int, sequence: int, device: torch.device, image: int = 0
) -> Inputs:
    dtype = dtype_of(device)
    if config["family"] == "transformer":
        length = min(sequence or config["max_sequence"], config["max_sequence"])
        return (torch.randint(config["vocabulary"], (batch, length), device=device),)
    if config["family"] == "convolutional":
        size = image or config["image"]
        x = torch.randn(batch, config.get("channels", 3), size, size, device=device, dtype=dtype)
        return (x,)
    made = []
    for branch in config["branches"]:
        for _ in range(branch.get("repeat", 1)):
            made.append(_branch_input(branch, batch, device, dtype))
    return tuple(made)


def _branch_input(
    branch: dict[str, Any], batch: int, device: torch.device, dtype: torch.dtype
) -> torch.Tensor:
    if branch["kind"] == "embedding_bag":
        return torch.randint(branch["rows"], (batch, branch["bag"]), device=device)
    if branch["kind"] == "transformer":
        return torch.randn(batch, branch["sequence"], branch["width"], device=device, dtype=dtype)
    return torch.randn(batch, branch["inputs"], device=device, dtype=dtype)


def make_loss(
    config: dict[str, Any], batch: int, sequence: int, device: torch.device
) -> Callable[[torch.Tensor], torch.Tensor]:
    """Cross entropy against random labels where there are classes, else the mean square."""
    classes, labels_shape = 0, (batch,)
    if config["family"] == "transformer" and config["head"] == "language_model":
        length = min(sequence or config["max_sequence"], config["max_sequence"])
        classes, labels_shape = config["vocabulary"], (batch * length,)
    elif config["family"] == "transformer" and config["head"] == "classifier":
        classes = config["classes"]
    elif config["family"] == "convolutional":
        classes = config["layers"][-1].get("out", 0)
    if classes == 0:
        return lambda output: output.float().pow(2).mean()
    labels = torch.randint(classes, labels_shape, device=device)
    return lambda output: F.cross_entropy(output.flatten(0, -2).float(), labels)
