"""The driver by ctypes, without compiler, toolkit and PyTorch. A call that fails is named."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Any, Dict, List, Optional

LIBRARY = "libcuda.so.1"
KERNELS = Path(__file__).resolve().parent / "probe_kernels.ptx"

# CUdevice_attribute, by the numbers of cuda.h.
ATTRIBUTES = {
    "threads_per_block": 1, "shared_bytes_per_block": 8, "warp": 10, "clock_khz": 13,
    "sms": 16, "integrated": 18, "compute_mode": 20, "concurrent_kernels": 31, "ecc": 32,
    "memory_clock_khz": 36, "bus_bits": 37, "l2_bytes": 38, "threads_per_sm": 39,
    "copy_engines": 40, "capability_major": 75, "capability_minor": 76,
    "stream_priorities": 78, "shared_bytes_per_sm": 81, "registers_per_sm": 82,
    "compute_preemption": 90, "blocks_per_sm": 106,
}
JIT_ERROR_LOG, JIT_ERROR_LOG_BYTES = 5, 6  # CUjit_option
LOG_BYTES = 4096


class CudaFault(Exception):
    """A call of the driver that failed, or a driver that is not there."""

    def __init__(self, call: str, code: int, text: str) -> None:
        super().__init__(f"{call}: {text} ({code})")
        self.call, self.code, self.text = call, code, text

    def record(self) -> Dict[str, Any]:
        return {"call": self.call, "code": self.code, "text": self.text}


class Driver:
    def __init__(self) -> None:
        try:
            self.library = ctypes.CDLL(os.environ.get("FIRST_CONTACT_LIBCUDA", LIBRARY))
        except OSError as fault:
            raise CudaFault("dlopen", -1, str(fault)) from None

    def call(self, name: str, *arguments: Any) -> None:
        try:
            function = getattr(self.library, name)
        except AttributeError:
            raise CudaFault(name, -1, "this driver has no such function") from None
        code = function(*arguments)
        if code != 0:
            raise CudaFault(name, code, self._text(code))

    def _text(self, code: int) -> str:
        text = ctypes.c_char_p()
        try:
            self.library.cuGetErrorName(code, ctypes.byref(text))
        except AttributeError:
            return "CUDA error"
        return (text.value or b"unknown error").decode()

    def version(self) -> int:
        number = ctypes.c_int()
        self.call("cuDriverGetVersion", ctypes.byref(number))
        return number.value

    def facts(self, ordinal: int = 0) -> Dict[str, Any]:
        """Of a device; an attribute that the driver does not know is left out."""
        name = ctypes.create_string_buffer(256)
        self.call("cuDeviceGetName", name, 256, ordinal)
        memory = ctypes.c_size_t()
        self.call("cuDeviceTotalMem_v2", ctypes.byref(memory), ordinal)
        made: Dict[str, Any] = {"name": name.value.decode(), "memory_bytes": memory.value}
        for key, number in ATTRIBUTES.items():
            try:
                made[key] = self.attribute(number, ordinal)
            except CudaFault:
                continue
        return made

    def attribute(self, number: int, ordinal: int = 0) -> int:
        value = ctypes.c_int()
        self.call("cuDeviceGetAttribute", ctypes.byref(value), number, ordinal)
        return value.value

    def use(self, ordinal: int = 0) -> None:
        """Initialises the driver and makes the primary context current."""
        self.call("cuInit", 0)
        context = ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), ordinal)
        self.call("cuCtxSetCurrent", context)

    def module(self, image: bytes) -> "Module":
        """Of PTX, which the driver assembles; what its assembler says is in the fault."""
        log = ctypes.create_string_buffer(LOG_BYTES)
        keys = (ctypes.c_int * 2)(JIT_ERROR_LOG, JIT_ERROR_LOG_BYTES)
        values = (ctypes.c_void_p * 2)(ctypes.addressof(log), LOG_BYTES)
        handle = ctypes.c_void_p()
        try:
            self.call("cuModuleLoadDataEx", ctypes.byref(handle),
                      ctypes.create_string_buffer(image), 2, keys, values)
        except CudaFault as fault:
            said = log.value.decode(errors="replace").strip()
            text = f"{fault.text}: {said}" if said else fault.text
            raise CudaFault(fault.call, fault.code, text) from None
        return Module(self, handle)

    def allocate(self, size: int) -> ctypes.c_uint64:
        pointer = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(size))
        return pointer

    def words(self, pointer: ctypes.c_uint64, count: int) -> List[int]:
        """64-bit words of the device's memory; waits for what was launched before."""
        made = (ctypes.c_uint64 * count)()
        self.call("cuMemcpyDtoH_v2", made, pointer, ctypes.c_size_t(8 * count))
        return list(made)

    def stream(self) -> ctypes.c_void_p:
        """One that does not wait for the default stream."""
        made = ctypes.c_void_p()
        self.call("cuStreamCreate", ctypes.byref(made), 1)
        return made

    def wait_for(self, waiting: ctypes.c_void_p, stream: ctypes.c_void_p) -> None:
        """What is launched into `waiting` from now on comes after all that is in `stream`."""
        event = ctypes.c_void_p()
        self.call("cuEventCreate", ctypes.byref(event), 2)
        self.call("cuEventRecord", event, stream)
        self.call("cuStreamWaitEvent", waiting, event, 0)
        self.call("cuEventDestroy_v2", event)

    def synchronize(self) -> None:
        self.call("cuCtxSynchronize")


class Module:
    def __init__(self, driver: Driver, handle: ctypes.c_void_p) -> None:
        self.driver, self.handle = driver, handle
        self.functions: Dict[str, ctypes.c_void_p] = {}

    def launch(self, name: str, grid: int, block: int, *values: Any,
               stream: Optional[ctypes.c_void_p] = None) -> None:
        """On the context's default stream if none is named; values are ctypes numbers."""
        if name not in self.functions:
            function = ctypes.c_void_p()
            self.driver.call("cuModuleGetFunction", ctypes.byref(function), self.handle,
                             name.encode())
            self.functions[name] = function
        places = (ctypes.c_void_p * len(values))(
            *(ctypes.cast(ctypes.byref(value), ctypes.c_void_p) for value in values))
        self.driver.call("cuLaunchKernel", self.functions[name], grid, 1, 1, block, 1, 1, 0,
                         stream, places, None)


def probe_module(driver: Driver) -> Module:
    return driver.module(KERNELS.read_bytes())
