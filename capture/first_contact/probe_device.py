"""What the driver and CUPTI allow, as JSON on standard output; a process of its own, since either
may crash or hang. Arguments: `driver`, `context`, or `cupti PATH`."""

from __future__ import annotations

import ctypes
import json
import sys
from typing import Any, Dict

from first_contact.cuda import CudaFault, Driver, probe_module

CONCURRENT_KERNEL = 10  # CUpti_ActivityKind
CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint, ctypes.c_void_p)


def driver_facts(made: Dict[str, Any]) -> None:
    driver = Driver()
    made["version"] = driver.version()
    driver.call("cuInit", 0)
    count = ctypes.c_int()
    driver.call("cuDeviceGetCount", ctypes.byref(count))
    made["devices"] = [driver.facts(number) for number in range(count.value)]


def context_facts(made: Dict[str, Any]) -> None:
    """A context, a kernel out of PTX, and its result."""
    driver = Driver()
    driver.use()
    out = driver.allocate(24)
    probe_module(driver).launch("blocks", 1, 32, out, ctypes.c_uint32(10))
    start, end, _sm = driver.words(out, 3)
    made["kernel_ns"] = end - start
    made["sms_seen"] = driver.attribute(16)


def result_text(library: ctypes.CDLL, code: int) -> str:
    text = ctypes.c_char_p()
    library.cuptiGetResultString(code, ctypes.byref(text))
    return (text.value or b"refused").decode()


def cupti_facts(made: Dict[str, Any], path: str) -> None:
    library = ctypes.CDLL(path)
    version = ctypes.c_uint32()
    made["version_code"] = library.cuptiGetVersion(ctypes.byref(version))
    made["version"] = version.value
    try:
        Driver().use()
    except CudaFault as fault:
        # Without a driver CUPTI may still say what it is.
        made["driver"] = fault.record()
    # As the recorder does: one subscriber, then the kind of record.
    subscriber, ignored = ctypes.c_void_p(), CALLBACK(lambda *_: None)
    code = library.cuptiSubscribe(ctypes.byref(subscriber), ignored, None)
    if code == 0:
        code = library.cuptiActivityEnable(CONCURRENT_KERNEL)
        library.cuptiActivityDisable(CONCURRENT_KERNEL)
        library.cuptiUnsubscribe(subscriber)
    made["enable_code"] = code
    made["enable"] = "allowed" if code == 0 else result_text(library, code)


def main(arguments: list) -> int:
    made: Dict[str, Any] = {}
    try:
        if arguments[0] == "driver":
            driver_facts(made)
        elif arguments[0] == "context":
            context_facts(made)
        else:
            cupti_facts(made, arguments[1])
    except CudaFault as fault:
        made["fault"] = fault.record()
    except (OSError, AttributeError) as fault:
        made["fault"] = {"call": "dlopen", "code": -1, "text": str(fault)}
    print(json.dumps(made))
    return 1 if "fault" in made else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
