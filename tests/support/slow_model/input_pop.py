"""Slow PopInput: units of the host's stream into a buffer, one after another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from slow_model.memory import Core
from slow_model.sync import Watchers, produce
from slow_model.traversal import walk

UNIT_BYTES = (64, 8)
UNITS = (2048, 32768)


def run(core: Core, fields: Mapping[str, Any], stream: bytes) -> bytes:
    """Execute one instruction; return what is left of ``stream``."""
    fifo = fields["fifo"]
    size = UNIT_BYTES[fifo]
    buffer = core.activations if fifo else core.parameters
    watchers = Watchers(fields)
    for element in walk(fields, "buffer"):
        if len(stream) < size or not watchers.passes(core.flags, element.begins):
            return stream
        first = size * (element.address % UNITS[fifo])
        buffer[first : first + size] = stream[:size]
        stream = stream[size:]
        core.flags[0 if fifo else 1] += produce(fields, "producer", element.ends)
    return stream
