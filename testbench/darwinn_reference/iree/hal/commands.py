"""Command buffers: what is recorded runs, in order, when it is executed."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from darwinn_reference.errors import Unsupported
from darwinn_reference.iree.hal import transfers
from darwinn_reference.iree.hal.executables import executable_of
from darwinn_reference.iree.hal.objects import (
    HAL,
    OUTSIDE,
    Command,
    CommandBuffer,
    Executable,
    HalBuffer,
    Host,
    Range,
    buffer_of,
    source_of,
)
from darwinn_reference.iree.imports import expect
from darwinn_reference.iree.memory import Buffer

Bindings = Sequence[tuple[int, int, Any, int, int]]
"""Ordinal, slot, buffer or null, offset and length of what a dispatch works on."""

_COUNTS = struct.Struct("<3I")
"""Workgroup counts that an indirect dispatch reads from memory."""


@HAL.add("command_buffer.create", "0riii_r", "device modes categories capacity")
@HAL.add("command_buffer.create", "0riiIi_r", "device modes categories affinity capacity")
def _create() -> CommandBuffer:
    return CommandBuffer()


def execute(host: Host, commands: object, table: Sequence[Range] = ()) -> None:
    """Run the commands of a command buffer; slots are bound to the ranges of the table."""
    for position, command in enumerate(_recorded(commands).commands):
        host.look()
        host.at(position)
        command(host, table)
    host.at(OUTSIDE)


def bound_ranges(table: Sequence[tuple[Any, int, int]]) -> list[Range]:
    """What an execution binds to the slots: buffer, offset and length of each."""
    return [Range(0, buffer_of(buffer), offset, length) for buffer, offset, length in table]


def _recorded(value: object) -> CommandBuffer:
    return expect(value, CommandBuffer, "a command buffer")


def _record(commands: object, command: Command) -> None:
    _recorded(commands).commands.append(command)


def _range(slot: int | None, buffer: object, offset: int, length: int) -> Range:
    """A range of a buffer, which may be null where there is a slot."""
    if slot is None:
        return Range(0, buffer_of(buffer), offset, length)
    return Range(slot, None if buffer is None else buffer_of(buffer), offset, length)


# Dispatches.


def _dispatch(
    executable: Executable,
    entry: int,
    workgroups: tuple[int, int, int],
    constants: tuple[int, ...],
    bindings: tuple[Range, ...],
) -> Command:
    def command(host: Host, table: Sequence[Range]) -> None:
        parts = [binding.resolve(table) for binding in bindings]
        executable.dispatch(entry, workgroups, constants, parts)

    return command


_DISPATCH = "commands executable entry x y z flags constants bindings"


@HAL.add("command_buffer.dispatch", "0rriiiiICiDCiirIID_v", _DISPATCH)
@HAL.add("command_buffer.dispatch", "0rrIiiiICiDCiirIID_v", _DISPATCH)
def _dispatch_counted(
    commands: Any,
    executable: Any,
    entry: int,
    x: int,
    y: int,
    z: int,
    constants: Sequence[tuple[int]],
    bindings: Bindings,
) -> None:
    ranges = tuple(_range(*binding) for _, *binding in bindings)
    words = tuple(word for (word,) in constants)
    command = _dispatch(executable_of(executable), entry, (x, y, z), words, ranges)
    _record(commands, command)


_DISPATCH_INDIRECT = "commands executable entry slot counts offset flags constants bindings"


@HAL.add("command_buffer.dispatch.indirect", "0rriirIICiDCiirIID_v", _DISPATCH_INDIRECT)
@HAL.add("command_buffer.dispatch.indirect", "0rrIirIICiDCiirIID_v", _DISPATCH_INDIRECT)
def dispatch_indirect(
    commands: Any,
    executable: Any,
    entry: int,
    slot: int,
    counts: Any,
    offset: int,
    constants: Sequence[tuple[int]],
    bindings: Bindings,
) -> None:
    """Run an entry point for as many workgroups as memory says when it runs."""
    ranges = tuple(_range(*binding) for _, *binding in bindings)
    words = tuple(word for (word,) in constants)
    place = _range(slot, counts, offset, _COUNTS.size)
    _record(commands, _dispatch_by_memory(executable_of(executable), entry, place, words, ranges))


def _dispatch_by_memory(
    executable: Executable,
    entry: int,
    counts: Range,
    constants: tuple[int, ...],
    bindings: tuple[Range, ...],
) -> Command:
    def command(host: Host, table: Sequence[Range]) -> None:
        workgroups = _COUNTS.unpack(counts.resolve(table))
        _dispatch(executable, entry, workgroups, constants, bindings)(host, table)

    return command


@HAL.add("command_buffer.push_constants", "0rriCiD_v", "commands layout offset values")
def _push_constants(commands: Any, offset: int, values: Sequence[tuple[int]]) -> None:
    for index, (value,) in enumerate(values, offset):
        _recorded(commands).constants[index] = value


@HAL.add("command_buffer.push_descriptor_set", "0rriCiirIID_v", "commands layout number bindings")
def _push_bindings(commands: Any, number: int, bindings: Bindings) -> None:
    _recorded(commands).bindings[number] = {
        ordinal: _range(*binding) for ordinal, *binding in bindings
    }


@HAL.add("command_buffer.dispatch", "0rriiii_v")
def dispatch_pushed(commands: Any, executable: Any, entry: int, x: int, y: int, z: int) -> None:
    """Run an entry point with the constants and ranges that were set."""
    words, ranges = _pushed(_recorded(commands))
    _record(commands, _dispatch(executable_of(executable), entry, (x, y, z), words, ranges))


@HAL.add("command_buffer.dispatch.indirect", "0rrirI_v")
def dispatch_pushed_indirect(
    commands: Any, executable: Any, entry: int, counts: Any, offset: int
) -> None:
    """The same for as many workgroups as memory says when it runs."""
    words, ranges = _pushed(_recorded(commands))
    place = _range(None, counts, offset, _COUNTS.size)
    _record(commands, _dispatch_by_memory(executable_of(executable), entry, place, words, ranges))


def _pushed(state: CommandBuffer) -> tuple[tuple[int, ...], tuple[Range, ...]]:
    """The constants and ranges that were set, by their numbers."""
    if len(state.bindings) > 1:
        raise Unsupported("uses of imports", ["hal.command_buffer.dispatch with several sets"])
    (bound,) = state.bindings.values() or ({},)
    words = tuple(state.constants[index] for index in sorted(state.constants))
    return words, tuple(bound[ordinal] for ordinal in sorted(bound))


@HAL.add("command_buffer.execute.commands", "0rrCrIID_v")
def execute_within(commands: Any, others: Any, table: Sequence[tuple[Any, int, int]]) -> None:
    """Run another command buffer at this place, its slots bound to the ranges of the table."""
    inner, bound = _recorded(others), bound_ranges(table)

    def command(host: Host, _: Sequence[Range]) -> None:
        for entry in inner.commands:
            host.look()
            entry(host, bound)

    _record(commands, command)


# Copies and fills.


def _copy(source: Range, target: Range) -> Command:
    return lambda host, table: transfers.copy(host, source.resolve(table), target.resolve(table))


def _fill(target: Range, pattern: int, size: int) -> Command:
    return lambda host, table: transfers.fill(host, target.resolve(table), pattern, size)


_COPY_SLOTS = "commands source_slot target_slot source source_offset target target_offset length"


@HAL.add(
    "command_buffer.copy_buffer",
    "0rrIrII_v",
    "commands source source_offset target target_offset length",
)
@HAL.add("command_buffer.copy_buffer", "0riirIrII_v", _COPY_SLOTS)
@HAL.add("command_buffer.copy_buffer", "0riirIrIII_v", f"{_COPY_SLOTS} flags")
def _copy_buffer(
    commands: Any,
    source: Any,
    source_offset: int,
    target: Any,
    target_offset: int,
    length: int,
    source_slot: int | None = None,
    target_slot: int | None = None,
) -> None:
    recorded = _recorded(commands)
    place = _range(source_slot, source, source_offset, length)
    recorded.commands.append(_copy(place, _range(target_slot, target, target_offset, length)))


@HAL.add("command_buffer.fill_buffer", "0rrIIii_v", "commands target offset length pattern size")
@HAL.add(
    "command_buffer.fill_buffer", "0rrIIiii_v", "commands target offset length slot pattern size"
)
@HAL.add(
    "command_buffer.fill_buffer",
    "0rrIIiIiI_v",
    "commands target offset length slot pattern size flags",
)
def _fill_buffer(
    commands: Any,
    target: Any,
    offset: int,
    length: int,
    pattern: int,
    size: int,
    slot: int | None = None,
) -> None:
    _record(commands, _fill(_range(slot, target, offset, length), pattern, size))


_UPDATE = "commands source source_offset target target_offset length slot"


@HAL.add("command_buffer.update_buffer", "0rrIrIIi_v", _UPDATE)
@HAL.add("command_buffer.update_buffer", "0rrIrIIiI_v", f"{_UPDATE} flags")
def update_buffer(
    commands: Any,
    source: Any,
    source_offset: int,
    target: Any,
    target_offset: int,
    length: int,
    slot: int,
) -> None:
    """Copy memory of the program as it is now: it may change before the command runs."""
    data = HalBuffer(Buffer(memoryview(bytes(source_of(source).part(source_offset, length)))))
    place = _range(slot, target, target_offset, length)
    _record(commands, _copy(Range(0, data, 0, length), place))


# What needs nothing done.


HAL.add_all(
    {
        f"command_buffer.{declaration}": lambda: None
        for declaration in (
            "begin_debug_group 0rr_v commands label",
            "end_debug_group 0r_v commands",
            "advise_buffer 0rrIIIi_v commands buffer flags offset length slot",
            "flush_buffer 0rirII_v commands slot buffer offset length",
            "invalidate_buffer 0rirII_v commands slot buffer offset length",
            "execution_barrier 0riii_v commands source target flags",
            "execution_barrier 0riiI_v commands source target flags",
            "finalize 0r_v commands",
        )
    }
)
