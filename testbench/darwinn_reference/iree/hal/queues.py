"""Queues: every operation is done when it is called."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from darwinn_reference.iree.hal import transfers
from darwinn_reference.iree.hal.commands import bound_ranges, execute
from darwinn_reference.iree.hal.objects import HAL, Host, buffer_of, source_of

_QUEUE = "device affinity wait signal"
_COPY = f"{_QUEUE} source source_offset target target_offset length flags"


@HAL.add("device.queue.fill", "0rIrrrIIIiI_v", f"{_QUEUE} target offset length pattern size flags")
def _fill(host: Host, target: Any, offset: int, length: int, pattern: int, size: int) -> None:
    transfers.fill(host, buffer_of(target).range(offset, length), pattern, size)


@HAL.add("device.queue.copy", "0rIrrrIrIII_v", _COPY)
@HAL.add("device.queue.read", "0rIrrrIrIIi_v", _COPY)
@HAL.add("device.queue.read", "0rIrrrIrIII_v", _COPY)
@HAL.add("device.queue.write", "0rIrrrIrIIi_v", _COPY)
@HAL.add("device.queue.write", "0rIrrrIrIII_v", _COPY)
def _copy(
    host: Host, source: Any, source_offset: int, target: Any, target_offset: int, length: int
) -> None:
    data = buffer_of(source).range(source_offset, length)
    transfers.copy(host, data, buffer_of(target).range(target_offset, length))


@HAL.add("device.queue.update", "0rIrrrIrIII_v", _COPY)
def _update(
    host: Host, source: Any, source_offset: int, target: Any, target_offset: int, length: int
) -> None:
    data = source_of(source).part(source_offset, length)
    transfers.copy(host, data, buffer_of(target).range(target_offset, length))


HAL.add("device.queue.execute", "0rIrrrI_v", f"{_QUEUE} commands flags")(execute)
HAL.add("ex.submit_and_wait", "0rr_v", "device commands")(execute)


@HAL.add("device.queue.execute", "0rIrrCrD_v", f"{_QUEUE} commands")
def _execute_several(host: Host, commands: Sequence[tuple[Any]]) -> None:
    for (entry,) in commands:
        execute(host, entry)


@HAL.add("device.queue.execute.indirect", "0rIrrrCrIID_v", f"{_QUEUE} commands table")
@HAL.add("device.queue.execute.indirect", "0rIrrrICrIID_v", f"{_QUEUE} commands flags table")
def _execute_bound(host: Host, commands: Any, table: Sequence[tuple[Any, int, int]]) -> None:
    execute(host, commands, bound_ranges(table))
