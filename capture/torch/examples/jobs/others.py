"""Convolutional and graph models of configs/models as plain modules."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from .transformer import Block

Layer = dict[str, Any]


def convolution(source: int, layer: Layer) -> list[nn.Module]:
    parts: list[nn.Module] = [
        nn.Conv2d(source, layer["out"], layer["kernel"], layer.get("stride", 1),
                  layer.get("padding", 0), bias=layer.get("bias", False))
    ]
    if layer.get("norm"):
        parts.append(nn.BatchNorm2d(layer["out"]))
    if layer.get("relu"):
        parts.append(nn.ReLU(inplace=True))
    return parts


class Residual(nn.Module):
    """ResNet's blocks; the bottleneck has its stride in the 3x3 convolution."""

    def __init__(self, kind: str, source: int, inner: int, stride: int) -> None:
        super().__init__()
        out = 4 * inner if kind == "bottleneck" else inner
        shapes = (
            [(source, inner, 1, 1), (inner, inner, 3, stride), (inner, out, 1, 1)]
            if kind == "bottleneck"
            else [(source, inner, 3, stride), (inner, out, 3, 1)]
        )
        parts: list[nn.Module] = []
        for place, (a, b, kernel, step) in enumerate(shapes):
            last = place + 1 == len(shapes)
            parts += convolution(a, {"out": b, "kernel": kernel, "stride": step,
                                     "padding": kernel // 2, "norm": True, "relu": not last})
        self.main = nn.Sequential(*parts)
        self.side: nn.Module = nn.Identity()
        if source != out or stride != 1:
            shape = {"out": out, "kernel": 1, "stride": stride, "norm": True}
            self.side = nn.Sequential(*convolution(source, shape))
        self.relu = nn.ReLU(inplace=True)
        self.out = out

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.relu(self.main(x) + self.side(x))


class Convolutional(nn.Module):
    def __init__(self, config: dict[str, Any], image: int = 0) -> None:
        super().__init__()
        self.channels: int = config.get("channels", 3)
        self.image = image or int(config["image"])
        parts: list[nn.Module] = []
        width, flat = self.channels, 0
        shape = torch.zeros(1, self.channels, self.image, self.image)
        for layer in config["layers"]:
            for copy in range(layer.get("repeat", 1)):
                made, width, flat = self._layer(layer, copy, width, flat, shape)
                part = nn.Sequential(*made)
                with torch.no_grad():
                    shape = part.eval()(shape)
                parts.append(part.train())
        self.parts = nn.Sequential(*parts)

    def _layer(
        self, layer: Layer, copy: int, width: int, flat: int, shape: torch.Tensor
    ) -> tuple[list[nn.Module], int, int]:
        kind = layer["kind"]
        if kind == "convolution":
            return convolution(width, layer), layer["out"], 0
        if kind == "max_pool":
            pool = nn.MaxPool2d(layer["kernel"], layer.get("stride", 1), layer.get("padding", 0))
            return [pool], width, 0
        if kind == "average_pool":
            return [nn.AdaptiveAvgPool2d(1)], width, 0
        if kind in ("bottleneck", "basic"):
            stride = layer.get("stride", 1) if copy == 0 else 1
            block = Residual(kind, width, layer["out"], stride)
            return [block], block.out, 0
        made: list[nn.Module] = [] if flat else [nn.Flatten()]
        source = flat or shape[0].numel()
        made.append(nn.Linear(source, layer["out"], bias=layer.get("bias", False)))
        if layer.get("relu"):
            made.append(nn.ReLU(inplace=True))
        if layer.get("dropout"):
            made.append(nn.Dropout(0.5))
        return made, width, layer["out"]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.parts(x)


class TransformerBranch(nn.Module):
    def __init__(self, branch: Layer) -> None:
        super().__init__()
        config = {
            "hidden": branch["width"], "heads": branch["heads"], "kv_heads": branch["heads"],
            "head_size": branch["width"] // branch["heads"], "ffn": branch["ffn"],
            "attention": "bidirectional", "norm": "layer", "norm_place": "before",
            "activation": "gelu", "biases": True, "dropout": False,
        }
        self.blocks = nn.ModuleList(Block(config, n) for n in range(branch["layers"]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        at = torch.arange(x.shape[1], device=x.device)
        for block in self.blocks:
            x = block(x, None, at)
        return x.mean(1)


class Graph(nn.Module):
    """Branches beside each other, joined."""

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__()
        self.shapes: list[Layer] = [
            branch for branch in config["branches"] for _ in range(branch.get("repeat", 1))
        ]
        self.branches = nn.ModuleList(self._branch(branch) for branch in self.shapes)
        width = sum(branch["width"] for branch in self.shapes)
        parts: list[nn.Module] = []
        for _ in range(config.get("join_layers", 0)):
            parts += [nn.Linear(width, config["join_width"]), nn.ReLU(inplace=True)]
            width = config["join_width"]
        parts.append(nn.Linear(width, config["outputs"]))
        self.join = nn.Sequential(*parts)

    @staticmethod
    def _branch(branch: Layer) -> nn.Module:
        if branch["kind"] == "transformer":
            return TransformerBranch(branch)
        if branch["kind"] == "embedding_bag":
            return nn.EmbeddingBag(branch["rows"], branch["width"], mode="sum")
        parts: list[nn.Module] = []
        source = branch["inputs"]
        for _ in range(branch["layers"]):
            parts += [nn.Linear(source, branch["width"]), nn.ReLU(inplace=True)]
            source = branch["width"]
        return nn.Sequential(*parts)

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        return self.join(torch.cat([b(x) for b, x in zip(self.branches, inputs)], 1))
