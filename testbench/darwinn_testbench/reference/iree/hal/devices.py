"""The one device, and the fences that are passed before anyone waits."""

from __future__ import annotations

import fnmatch
from typing import Any

from darwinn_testbench.reference.iree.hal.objects import HAL, Device, Opaque, text_of

EXECUTABLE_FORMAT = "vmvx-bytecode-fb"
"""The one format of executables that can be run."""
DEVICE_IDENTIFIER = "local"

_DEVICE = Device("device")
_QUERIES = {"hal.device.id": DEVICE_IDENTIFIER, "hal.executable.format": EXECUTABLE_FORMAT}


@HAL.add("devices.count", "0v_i")
def _count() -> int:
    return 1


@HAL.add("devices.get", "0i_r")
def _get(index: int) -> Device | None:
    return None if index else _DEVICE


@HAL.add("ex.shared_device", "0v_r")
def _shared() -> Device:
    return _DEVICE


@HAL.add("device.query.i64", "0rrr_iI", "device category key")
def _query(category: Any, key: Any) -> tuple[int, int]:
    value = _QUERIES.get(text_of(category))
    supported = int(value is not None and fnmatch.fnmatchcase(value, text_of(key)))
    return supported, supported


@HAL.add("device.allocator", "0r_r", "device")
def _allocator() -> Opaque:
    return Opaque("allocator")


@HAL.add("fence.create", "0rI_r", "device flags")
@HAL.add("fence.create", "0ri_r", "device flags")
@HAL.add("fence.join", "0ICrD_r", "flags fences")
def _fence() -> Opaque:
    return Opaque("fence")


@HAL.add("fence.query", "0r_i", "fence")
@HAL.add("fence.await", "0iCrD_i", "timeout fences")
@HAL.add("fence.await", "0iICrD_i", "timeout flags fences")
def passed() -> int:
    """The status of a fence: everything is done when it is called."""
    return 0


@HAL.add("device.queue.barrier", "0rIrrI_v", "device affinity wait signal flags")
@HAL.add("device.queue.flush", "0rI_v", "device affinity")
@HAL.add("fence.signal", "0r_v", "fence")
def nothing() -> None:
    """Orders that nothing here depends on."""
