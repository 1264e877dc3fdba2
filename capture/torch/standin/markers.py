"""Kernels that do nothing but have a name, one an operation: where a collective stood.

They are PTX, which the driver assembles, so no CUDA compiler is needed. libcuda is the copy that
PyTorch has loaded.
"""

from __future__ import annotations

import ctypes

from .note import OPERATIONS

KERNEL_PREFIX = "bubblesim_standin_"


def ptx() -> str:
    """sm_70 is the oldest architecture; the driver assembles for the one that is there."""
    entries = "\n".join(
        f".visible .entry {KERNEL_PREFIX}{op}()\n{{\n  ret;\n}}" for op in OPERATIONS
    )
    return f".version 7.0\n.target sm_70\n.address_size 64\n\n{entries}\n"


class Markers:
    """Marker kernels in the current CUDA context; `launch` and `functions` are for the C++ side."""

    def __init__(self) -> None:
        self._driver = ctypes.CDLL("libcuda.so.1")
        module = ctypes.c_void_p()
        image = ctypes.create_string_buffer(ptx().encode())
        self._check("cuModuleLoadData", ctypes.byref(module), image)
        self.functions = {op: self._function(module, op) for op in OPERATIONS}
        self._launch = self._driver.cuLaunchKernel
        self._launch.argtypes = [ctypes.c_void_p] + [ctypes.c_uint] * 7 + [ctypes.c_void_p] * 3

    @property
    def launch_address(self) -> int:
        return ctypes.cast(self._launch, ctypes.c_void_p).value or 0

    def launch(self, op: str, stream: int) -> None:
        """One block of one warp on the raw stream."""
        code = self._launch(self.functions[op], 1, 1, 1, 32, 1, 1, 0, stream, None, None)
        if code != 0:
            raise RuntimeError(f"cuLaunchKernel of {KERNEL_PREFIX}{op} gave CUDA error {code}")

    def _function(self, module: ctypes.c_void_p, op: str) -> int:
        function = ctypes.c_void_p()
        name = f"{KERNEL_PREFIX}{op}".encode()
        self._check("cuModuleGetFunction", ctypes.byref(function), module, name)
        return function.value or 0

    def _check(self, call: str, *arguments: object) -> None:
        code = getattr(self._driver, call)(*arguments)
        if code != 0:
            raise RuntimeError(f"{call} gave CUDA error {code}")
