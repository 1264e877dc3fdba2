"""Builds and loads the C++ backend."""

from __future__ import annotations

import os
import site
from pathlib import Path
from types import ModuleType
from typing import Sequence

import torch

from .markers import Markers
from .note import ranks_text

SOURCE = Path(__file__).with_name("standin_backend.cpp")


def nvtx_include_folders() -> list[str]:
    """Where nvtx3/nvToolsExt.h is: the toolkit's folder, or a Python package of NVIDIA's."""
    roots = [os.environ.get("CUDA_HOME", ""), os.environ.get("CUDA_PATH", ""), "/usr/local/cuda"]
    folders = [Path(root) / "include" for root in roots if root]
    packages = [*site.getsitepackages(), str(Path(torch.__file__).parent.parent)]
    for package in packages:
        folders += sorted(Path(package, "nvidia").glob("*/include"))
    folders.append(Path("/usr/include"))
    return [str(f) for f in folders if (f / "nvtx3" / "nvToolsExt.h").is_file()][:1]


def load_extension(verbose: bool = False) -> ModuleType:
    """Compiles at first use; later ones find the result in PyTorch's extension cache."""
    from torch.utils import cpp_extension

    return cpp_extension.load(
        name="bubblesim_standin",
        sources=[str(SOURCE)],
        extra_cflags=["-O2", "-DUSE_DISTRIBUTED"],
        extra_include_paths=nvtx_include_folders(),
        with_cuda=False,
        verbose=verbose,
    )


def raw_stream(stream_id: int, device_index: int, device_type: int) -> int:
    """The cudaStream_t of one of PyTorch's streams."""
    stream = torch.cuda.Stream(
        stream_id=stream_id, device_index=device_index, device_type=device_type
    )
    return int(stream.cuda_stream)


class CppBackend:
    """The built extension, told of marker kernels and what to fill."""

    def __init__(self, markers: Markers | None, fill: str, keep_log: bool) -> None:
        self.extension = load_extension()
        launch = markers.launch_address if markers else 0
        functions = markers.functions if markers else {}
        self.extension.configure(launch, functions, raw_stream, fill, keep_log)

    def create(self, rank: int, size: int, name: str, ranks: Sequence[int]) -> object:
        return self.extension.create(rank, size, name, list(ranks), ranks_text(ranks))

    def take_log(self) -> list[str]:
        return list(self.extension.take_log())
