"""NVTX ranges for scripts: what a recording calls iterations and phases. Nothing without CUDA."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Iterator

import torch


@contextmanager
def marked(text: str) -> Iterator[None]:
    """A range in NVTX's default domain. "iteration N", "micro-batch N", "forward", "backward",
    "optimizer", "prefill", "decode" are what bubblesim knows."""
    if not torch.cuda.is_available():
        yield
        return
    torch.cuda.nvtx.range_push(text)
    try:
        yield
    finally:
        torch.cuda.nvtx.range_pop()
