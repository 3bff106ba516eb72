"""The one device, and the fences that are passed before anyone waits."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from typing import Any

from darwinn_formats.errors import ExecutionError

from darwinn_reference.iree.hal.objects import HAL, HAL_INLINE, Device, Host, Opaque, text_of

EXECUTABLE_FORMAT = "vmvx-bytecode-fb"
"""The one format of executables that can be run."""
DEVICE_IDENTIFIER = "local"

_DEVICE = Device("device")
_FORMATS = "hal.executable.format"
_QUERIES = {"hal.device.id": DEVICE_IDENTIFIER}


def _query(host: Host, category: Any, key: Any) -> tuple[int, int]:
    asked, wanted = text_of(category), text_of(key)
    value = _QUERIES.get(asked)
    supported = value is not None and fnmatch.fnmatchcase(value, wanted)
    found = int(host.takes(wanted) if asked == _FORMATS else supported)
    return found, found


def _first(choices: Sequence[tuple[Any, int]]) -> tuple[Any, int]:
    """Of the devices that a program may use the first, and its queues."""
    if not choices:
        raise ExecutionError("a choice among no devices")
    return choices[0]


def _fail(status: int) -> None:
    raise ExecutionError(f"the program says that it failed, with status {status}")


HAL.add_all(
    {
        "devices.count 0v_i": lambda: 1,
        "devices.get 0i_r": lambda index: None if index else _DEVICE,
        "ex.shared_device 0v_r": lambda: _DEVICE,
        "device.query.i64 0rrr_iI device category key": _query,
        "device.allocator 0r_r device": lambda: Opaque("allocator"),
        "fence.create 0ri_r device flags": lambda: Opaque("fence"),
        "fence.create 0rI_r device flags": lambda: Opaque("fence"),
        "fence.join 0CrD_r fences": lambda: Opaque("fence"),
        "fence.join 0ICrD_r flags fences": lambda: Opaque("fence"),
        "fence.fail 0ri_v fence status": _fail,
        "allocator.select 0iiICrID_rI types usage flags choices": _first,
        # Everything is done when it is called: every fence is passed, and orders change nothing.
        "fence.query 0r_i fence": lambda: 0,
        "fence.await 0iICrD_i timeout flags fences": lambda: 0,
        "fence.await 0iCrD_i timeout fences": lambda: 0,
        "device.queue.barrier 0rIrrI_v device affinity wait signal flags": lambda: None,
        "device.queue.flush 0rI_v device affinity": lambda: None,
        "fence.signal 0r_v fence": lambda: None,
    }
)
HAL_INLINE.add("device.query.i64", "0rr_iI", "category key")(_query)
