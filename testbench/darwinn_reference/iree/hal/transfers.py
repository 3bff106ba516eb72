"""Bytes that the device writes without a dispatch."""

from __future__ import annotations

from darwinn_formats.errors import ExecutionError

from darwinn_reference.iree.hal.objects import Host
from darwinn_reference.iree.memory import device_memory

PATTERN_SIZES = (1, 2, 4, 8)


def _writable(target: memoryview, what: str) -> memoryview:
    """Memory that the device may write to."""
    memory = device_memory(target)
    if memory.readonly:
        raise ExecutionError(f"{what} read-only data")
    return memory


def copy(host: Host, source: memoryview, target: memoryview) -> None:
    """Copy as many bytes as the target has."""
    target = _writable(target, "a copy to")
    if len(source) != len(target):
        raise ExecutionError(f"a copy of {len(source)} bytes to {len(target)}")
    host.fills("copy")
    target[:] = source
    host.filled("copy", target, source)


def fill(host: Host, target: memoryview, pattern: int, size: int) -> None:
    """Repeat a pattern of ``size`` bytes."""
    if size not in PATTERN_SIZES or len(target) % size:
        raise ExecutionError(f"a pattern of {size} bytes does not fill {len(target)}")
    target = _writable(target, "a fill of")
    host.fills("fill")
    packed = (pattern & ((1 << 8 * size) - 1)).to_bytes(size, "little")
    target[:] = packed * (len(target) // size)
    host.filled("fill", target)
