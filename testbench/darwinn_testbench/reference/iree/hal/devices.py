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
def count() -> int:
    """One."""
    return 1


@HAL.add("devices.get", "0i_r")
def get(index: int) -> Device | None:
    """The first device; null for others."""
    return None if index else _DEVICE


@HAL.add("ex.shared_device", "0v_r")
def shared() -> Device:
    """The device."""
    return _DEVICE


@HAL.add("device.query.i64", "0rrr_iI", "device category key")
def query(category: Any, key: Any) -> tuple[int, int]:
    """Whether the device answers to a pattern."""
    value = _QUERIES.get(text_of(category))
    supported = int(value is not None and fnmatch.fnmatchcase(value, text_of(key)))
    return supported, supported


@HAL.add("device.allocator", "0r_r", "device")
def allocator() -> Opaque:
    """The allocator."""
    return Opaque("allocator")


@HAL.add("fence.create", "0rI_r", "device flags")
@HAL.add("fence.create", "0ri_r", "device flags")
@HAL.add("fence.join", "0ICrD_r", "flags fences")
def fence() -> Opaque:
    """A fence."""
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
