"""The ``hal`` and ``hal_inline`` modules: one device that does everything at once, in order.

Every queue operation is done when it is called, so that fences are passed before anyone waits.
Command buffers are lists of commands that run when they are executed; a command whose buffer is
null takes the one that the execution binds to its slot.
"""

from __future__ import annotations

import fnmatch
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from darwinn_testbench.reference.iree import effects
from darwinn_testbench.reference.iree.imports import ImportTable, expect
from darwinn_testbench.reference.iree.memory import Buffer, allocate
from darwinn_testbench.reference.protocol import ExecutionError, Unsupported

EXECUTABLE_FORMAT = "vmvx-bytecode-fb"
"""The one format of executables that can be run."""
WHOLE_BUFFER = -1
"""Length of a range that goes to the end of its buffer."""
_COUNTS = struct.Struct("<3I")
"""Workgroup counts that an indirect dispatch reads from memory."""
PATTERN_SIZES = (1, 2, 4, 8)
DEVICE_IDENTIFIER = "local"

HAL = ImportTable("hal", {})
HAL_INLINE = ImportTable("hal_inline", {})


@dataclass(eq=False, slots=True)
class Opaque:
    """What a program holds but never looks into: a fence, an allocator, a layout."""

    what: str


class Device(Opaque):
    """The device."""


class HalBuffer:
    """Memory of the device: ``!hal.buffer``; ranges of it see the same bytes."""

    __slots__ = ("contents",)

    def __init__(self, contents: Buffer) -> None:
        self.contents = contents

    def range(self, offset: int, length: int) -> memoryview:
        """Bytes of a range; a length of -1 goes to the end."""
        if length == WHOLE_BUFFER:
            length = len(self.contents) - offset
        return self.contents.part(offset, length)


@dataclass(eq=False, slots=True)
class BufferView:
    """A tensor: memory with a shape and an element type."""

    buffer: HalBuffer
    shape: tuple[int, ...]
    element_type: int
    encoding: int


@dataclass(frozen=True, slots=True)
class Range:
    """A range of a buffer, or, if the buffer is None, of what is bound to the slot."""

    slot: int
    buffer: HalBuffer | None
    offset: int
    length: int

    def resolve(self, table: Sequence[Range]) -> memoryview:
        """The bytes, by the table of an execution."""
        if self.buffer is not None:
            return self.buffer.range(self.offset, self.length)
        if not 0 <= self.slot < len(table):
            raise ExecutionError(f"slot {self.slot} of {len(table)} that are bound")
        bound = table[self.slot]
        whole = bound.resolve(())
        return HalBuffer(Buffer(whole)).range(self.offset, self.length)


Command = Callable[["Host", Sequence[Range]], None]


@runtime_checkable
class Executable(Protocol):
    """A program for the device."""

    def lookup(self, name: str) -> int:
        """Number of an entry point by its name."""
        ...

    def dispatch(
        self,
        entry: int,
        workgroups: tuple[int, int, int],
        constants: Sequence[int],
        bindings: Sequence[memoryview],
    ) -> None:
        """Run an entry point once for each workgroup."""
        ...


class Host(Protocol):
    """What the imports need of the reference."""

    def create_executable(self, format_name: str, data: Buffer, constants: Any) -> Executable:
        """An executable from its data."""
        ...

    def filled(self, operation: str, target: memoryview) -> None:
        """Told after a command wrote to memory other than by a dispatch."""
        ...

    def allocated(self, buffer: Buffer) -> None:
        """Told of memory that an inline module allocates."""
        ...


@dataclass(eq=False, slots=True)
class CommandBuffer:
    """Recorded commands, and the state that older versions push before a dispatch."""

    commands: list[Command] = field(default_factory=list)
    constants: dict[int, int] = field(default_factory=dict)
    bindings: dict[int, dict[int, Range]] = field(default_factory=dict)


effects.REFERENCE_TYPES.update(
    {
        "!hal.device": Device,
        "!hal.buffer": HalBuffer,
        "!hal.buffer_view": BufferView,
        "!hal.command_buffer": CommandBuffer,
    }
)

DEVICE = Device("device")


def text_of(value: Any) -> str:
    """A text that a program passes as a buffer."""
    return bytes(expect(value, Buffer, "a text").memory).decode("utf-8", "replace")


def _buffer(value: Any) -> HalBuffer:
    buffer: HalBuffer = expect(value, HalBuffer, "a buffer")
    return buffer


def _optional_buffer(value: Any) -> HalBuffer | None:
    return None if value is None else _buffer(value)


def _commands(value: Any) -> CommandBuffer:
    commands: CommandBuffer = expect(value, CommandBuffer, "a command buffer")
    return commands


# Devices.


@HAL.add("devices.count", "0v_i")
def _devices_count(host: Host) -> int:
    return 1


@HAL.add("devices.get", "0i_r")
def _devices_get(host: Host, index: int) -> Device | None:
    return None if index else DEVICE


@HAL.add("ex.shared_device", "0v_r")
def _shared_device(host: Host) -> Device:
    return DEVICE


@HAL.add("device.query.i64", "0rrr_iI")
def _device_query(host: Host, device: Any, category: Any, key: Any) -> tuple[int, int]:
    known = {"hal.device.id": DEVICE_IDENTIFIER, "hal.executable.format": EXECUTABLE_FORMAT}
    value = known.get(text_of(category))
    supported = int(value is not None and fnmatch.fnmatchcase(value, text_of(key)))
    return supported, supported


@HAL.add("device.allocator", "0r_r")
def _device_allocator(host: Host, device: Any) -> Opaque:
    return Opaque("allocator")


# Buffers and views.


def _allocated(size: int) -> HalBuffer:
    return HalBuffer(Buffer(allocate(size)))


def _imported(source: Any, offset: int, length: int) -> HalBuffer:
    data = expect(source, Buffer, "the source")
    length = len(data) - offset if length == WHOLE_BUFFER else length
    return HalBuffer(Buffer(data.part(offset, length)))


@HAL.add("allocator.allocate", "0rIiiI_r")
def _allocate(host: Host, allocator: Any, affinity: int, types: int, usage: int, size: int) -> Any:
    return _allocated(size)


@HAL.add("allocator.allocate", "0riiI_r")
def _allocate_15(host: Host, allocator: Any, types: int, usage: int, size: int) -> Any:
    return _allocated(size)


@HAL.add("allocator.allocate.initialized", "0riirII_r")
def _allocate_initialized(
    host: Host, allocator: Any, types: int, usage: int, source: Any, offset: int, length: int
) -> Any:
    buffer = _allocated(length)
    buffer.contents.memory[:] = expect(source, Buffer, "the source").part(offset, length)
    return buffer


@HAL.add("allocator.import", "0riIiirII_r")
def _import(
    host: Host,
    allocator: Any,
    attempt: int,
    affinity: int,
    types: int,
    usage: int,
    source: Any,
    offset: int,
    length: int,
) -> Any:
    return _imported(source, offset, length)


@HAL.add("allocator.map.byte_buffer", "0riiirII_r")
def _map_byte_buffer(
    host: Host,
    allocator: Any,
    attempt: int,
    types: int,
    usage: int,
    source: Any,
    offset: int,
    length: int,
) -> Any:
    return _imported(source, offset, length)


@HAL.add("buffer.assert", "0rrrIii_v")
def _buffer_assert(
    host: Host, buffer: Any, message: Any, allocator: Any, minimum: int, types: int, usage: int
) -> None:
    length = len(_buffer(buffer).contents)
    if length < minimum:
        raise ExecutionError(f"{text_of(message)}: {length} bytes, {minimum} are needed")


@HAL.add("buffer_view.create", "0rIIiiCID_r")
@HAL_INLINE.add("buffer_view.create", "0rIIiiCID_r")
def _view_create(
    host: Host,
    buffer: Any,
    offset: int,
    length: int,
    element_type: int,
    encoding: int,
    dimensions: Sequence[tuple[int]],
) -> BufferView:
    part = HalBuffer(Buffer(_buffer(buffer).range(offset, length)))
    shape = tuple(size for (size,) in dimensions)
    if min(shape, default=0) < 0:
        raise ExecutionError(f"a view of shape {shape}")
    return BufferView(part, shape, element_type, encoding)


@HAL.add("buffer_view.assert", "0rriiCID_v")
@HAL_INLINE.add("buffer_view.assert", "0rriiCID_v")
def _view_assert(
    host: Host,
    view: Any,
    message: Any,
    element_type: int,
    encoding: int,
    dimensions: Sequence[tuple[int]],
) -> None:
    found: BufferView = expect(view, BufferView, "the view")
    shape = tuple(size for (size,) in dimensions)
    if found.element_type != element_type:
        raise ExecutionError(
            f"{text_of(message)}: element type {found.element_type:#x}, not {element_type:#x}"
        )
    if found.shape != shape:
        raise ExecutionError(f"{text_of(message)}: shape {found.shape}, not {shape}")
    if found.encoding != encoding:
        raise ExecutionError(f"{text_of(message)}: encoding {found.encoding}, not {encoding}")


@HAL.add("buffer_view.buffer", "0r_r")
@HAL_INLINE.add("buffer_view.buffer", "0r_r")
def _view_buffer(host: Host, view: Any) -> HalBuffer:
    buffer: HalBuffer = expect(view, BufferView, "the view").buffer
    return buffer


@HAL.add("buffer_view.dim", "0ri_I")
@HAL_INLINE.add("buffer_view.dim", "0ri_I")
def _view_dimension(host: Host, view: Any, index: int) -> int:
    shape: tuple[int, ...] = expect(view, BufferView, "the view").shape
    if not 0 <= index < len(shape):
        raise ExecutionError(f"dimension {index} of {len(shape)}")
    return shape[index]


@HAL.add("buffer_view.element_type", "0r_i")
def _view_element_type(host: Host, view: Any) -> int:
    element_type: int = expect(view, BufferView, "the view").element_type
    return element_type


@HAL.add("buffer_view.encoding_type", "0r_i")
def _view_encoding(host: Host, view: Any) -> int:
    encoding: int = expect(view, BufferView, "the view").encoding
    return encoding


@HAL.add("buffer_view.rank", "0r_i")
def _view_rank(host: Host, view: Any) -> int:
    return len(expect(view, BufferView, "the view").shape)


@HAL.add("buffer.length", "0r_I")
def _buffer_length(host: Host, buffer: Any) -> int:
    return len(_buffer(buffer).contents)


@HAL.add("buffer.subspan", "0rII_r")
def _buffer_part(host: Host, buffer: Any, offset: int, length: int) -> HalBuffer:
    return HalBuffer(Buffer(_buffer(buffer).range(offset, length)))


@HAL_INLINE.add("buffer.allocate", "0iI_rr")
def _inline_allocate(host: Host, alignment: int, size: int) -> tuple[HalBuffer, Buffer]:
    buffer = _allocated(size)
    host.allocated(buffer.contents)
    return buffer, buffer.contents


@HAL_INLINE.add("buffer.storage", "0r_r")
def _inline_storage(host: Host, buffer: Any) -> Buffer:
    return _buffer(buffer).contents


# Executables and layouts.


@HAL.add("executable.create", "0rIrrr_r")
def _executable_create(
    host: Host, device: Any, affinity: int, format_name: Any, data: Any, constants: Any
) -> Executable:
    return host.create_executable(
        text_of(format_name), expect(data, Buffer, "the executable"), constants
    )


@HAL.add("executable.create", "0rrrrCrD_r")
def _executable_create_15(
    host: Host, device: Any, format_name: Any, data: Any, constants: Any, layouts: Any
) -> Executable:
    return host.create_executable(
        text_of(format_name), expect(data, Buffer, "the executable"), constants
    )


@HAL.add("executable.lookup.function", "0rr_I")
def _executable_lookup(host: Host, executable: Any, name: Any) -> int:
    return _executable(executable).lookup(text_of(name))


def _executable(value: Any) -> Executable:
    executable: Executable = expect(value, Executable, "the executable")
    return executable


@HAL.add("descriptor_set_layout.create", "0riCiiiD_r")
def _set_layout(host: Host, device: Any, flags: int, bindings: Any) -> Opaque:
    return Opaque("descriptor set layout")


@HAL.add("pipeline_layout.create", "0riCrD_r")
def _pipeline_layout(host: Host, device: Any, constants: int, layouts: Any) -> Opaque:
    return Opaque("pipeline layout")


# Command buffers.


@HAL.add("command_buffer.create", "0riiIi_r")
def _commands_create(
    host: Host, device: Any, modes: int, categories: int, affinity: int, capacity: int
) -> CommandBuffer:
    return CommandBuffer()


@HAL.add("command_buffer.create", "0riii_r")
def _commands_create_15(
    host: Host, device: Any, modes: int, categories: int, capacity: int
) -> CommandBuffer:
    return CommandBuffer()


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


def _ranges(bindings: Sequence[tuple[int, int, Any, int, int]]) -> tuple[Range, ...]:
    return tuple(
        Range(slot, _optional_buffer(buffer), offset, length)
        for _, slot, buffer, offset, length in bindings
    )


@HAL.add("command_buffer.dispatch", "0rrIiiiICiDCiirIID_v")
def _command_dispatch(
    host: Host,
    commands: Any,
    executable: Any,
    entry: int,
    x: int,
    y: int,
    z: int,
    flags: int,
    constants: Sequence[tuple[int]],
    bindings: Sequence[tuple[int, int, Any, int, int]],
) -> None:
    ranges = _ranges(bindings)
    words = tuple(word for (word,) in constants)
    command = _dispatch(_executable(executable), entry, (x, y, z), words, ranges)
    _commands(commands).commands.append(command)


@HAL.add("command_buffer.dispatch.indirect", "0rrIirIICiDCiirIID_v")
def _command_dispatch_indirect(
    host: Host,
    commands: Any,
    executable: Any,
    entry: int,
    slot: int,
    counts: Any,
    offset: int,
    flags: int,
    constants: Sequence[tuple[int]],
    bindings: Sequence[tuple[int, int, Any, int, int]],
) -> None:
    place = Range(slot, _optional_buffer(counts), offset, _COUNTS.size)
    ranges = _ranges(bindings)
    words = tuple(word for (word,) in constants)
    program = _executable(executable)

    def command(host: Host, table: Sequence[Range]) -> None:
        workgroups = _COUNTS.unpack(place.resolve(table))
        _dispatch(program, entry, workgroups, words, ranges)(host, table)

    _commands(commands).commands.append(command)


@HAL.add("command_buffer.push_constants", "0rriCiD_v")
def _push_constants(
    host: Host, commands: Any, layout: Any, offset: int, values: Sequence[tuple[int]]
) -> None:
    for index, (value,) in enumerate(values, offset):
        _commands(commands).constants[index] = value


@HAL.add("command_buffer.push_descriptor_set", "0rriCiirIID_v")
def _push_descriptors(
    host: Host,
    commands: Any,
    layout: Any,
    number: int,
    bindings: Sequence[tuple[int, int, Any, int, int]],
) -> None:
    _commands(commands).bindings[number] = {
        ordinal: Range(slot, _optional_buffer(buffer), offset, length)
        for ordinal, slot, buffer, offset, length in bindings
    }


@HAL.add("command_buffer.dispatch", "0rriiii_v")
def _command_dispatch_15(
    host: Host, commands: Any, executable: Any, entry: int, x: int, y: int, z: int
) -> None:
    state = _commands(commands)
    words = tuple(state.constants[index] for index in sorted(state.constants))
    if len(state.bindings) > 1:
        raise Unsupported("uses of imports", ["hal.command_buffer.dispatch with several sets"])
    (bound,) = state.bindings.values() or ({},)
    ranges = tuple(bound[ordinal] for ordinal in sorted(bound))
    state.commands.append(_dispatch(_executable(executable), entry, (x, y, z), words, ranges))


def _copy(source: Range, target: Range) -> Command:
    def command(host: Host, table: Sequence[Range]) -> None:
        _copy_bytes(host, source.resolve(table), target.resolve(table))

    return command


def _copy_bytes(host: Host, source: memoryview, target: memoryview) -> None:
    if target.readonly:
        raise ExecutionError("a copy to read-only data")
    if len(source) != len(target):
        raise ExecutionError(f"a copy of {len(source)} bytes to {len(target)}")
    target[:] = source
    host.filled("copy", target)


def _fill_bytes(host: Host, target: memoryview, pattern: int, size: int) -> None:
    if size not in PATTERN_SIZES or len(target) % size:
        raise ExecutionError(f"a pattern of {size} bytes does not fill {len(target)}")
    if target.readonly:
        raise ExecutionError("a fill of read-only data")
    packed = (pattern & ((1 << 8 * size) - 1)).to_bytes(size, "little")
    target[:] = packed * (len(target) // size)
    host.filled("fill", target)


@HAL.add("command_buffer.copy_buffer", "0riirIrIII_v")
def _command_copy(
    host: Host,
    commands: Any,
    source_slot: int,
    target_slot: int,
    source: Any,
    source_offset: int,
    target: Any,
    target_offset: int,
    length: int,
    flags: int,
) -> None:
    _commands(commands).commands.append(
        _copy(
            Range(source_slot, _optional_buffer(source), source_offset, length),
            Range(target_slot, _optional_buffer(target), target_offset, length),
        )
    )


@HAL.add("command_buffer.copy_buffer", "0rrIrII_v")
def _command_copy_15(
    host: Host,
    commands: Any,
    source: Any,
    source_offset: int,
    target: Any,
    target_offset: int,
    length: int,
) -> None:
    _commands(commands).commands.append(
        _copy(
            Range(0, _buffer(source), source_offset, length),
            Range(0, _buffer(target), target_offset, length),
        )
    )


def _fill(target: Range, pattern: int, size: int) -> Command:
    def command(host: Host, table: Sequence[Range]) -> None:
        _fill_bytes(host, target.resolve(table), pattern, size)

    return command


@HAL.add("command_buffer.fill_buffer", "0rrIIiIiI_v")
def _command_fill(
    host: Host,
    commands: Any,
    target: Any,
    offset: int,
    length: int,
    slot: int,
    pattern: int,
    size: int,
    flags: int,
) -> None:
    place = Range(slot, _optional_buffer(target), offset, length)
    _commands(commands).commands.append(_fill(place, pattern, size))


@HAL.add("command_buffer.fill_buffer", "0rrIIii_v")
def _command_fill_15(
    host: Host, commands: Any, target: Any, offset: int, length: int, pattern: int, size: int
) -> None:
    place = Range(0, _buffer(target), offset, length)
    _commands(commands).commands.append(_fill(place, pattern, size))


@HAL.add("command_buffer.update_buffer", "0rrIrIIiI_v")
def _command_update(
    host: Host,
    commands: Any,
    source: Any,
    source_offset: int,
    target: Any,
    target_offset: int,
    length: int,
    slot: int,
    flags: int,
) -> None:
    # The data may change before the command runs: they are taken now.
    part = expect(source, Buffer, "the source").part(source_offset, length)
    data = HalBuffer(Buffer(memoryview(bytes(part))))
    place = Range(slot, _optional_buffer(target), target_offset, length)
    _commands(commands).commands.append(_copy(Range(0, data, 0, length), place))


@HAL.add("command_buffer.begin_debug_group", "0rr_v")
@HAL.add("command_buffer.end_debug_group", "0r_v")
@HAL.add("command_buffer.advise_buffer", "0rrIIIi_v")
@HAL.add("command_buffer.flush_buffer", "0rirII_v")
@HAL.add("command_buffer.invalidate_buffer", "0rirII_v")
@HAL.add("device.queue.barrier", "0rIrrI_v")
@HAL.add("device.queue.flush", "0rI_v")
@HAL.add("fence.signal", "0r_v")
def _no_effect(host: Host, *arguments: Any) -> None:
    """Names, caches and orders that nothing here depends on."""


@HAL.add("command_buffer.execution_barrier", "0riiI_v")
@HAL.add("command_buffer.execution_barrier", "0riii_v")
def _barrier(host: Host, commands: Any, source: int, target: int, flags: int) -> None:
    """Commands run in order."""


@HAL.add("command_buffer.finalize", "0r_v")
def _finalize(host: Host, commands: Any) -> None:
    """Nothing is left to do."""


# Queues.


@HAL.add("device.queue.alloca", "0rIrrIiiII_r")
def _queue_allocate(
    host: Host,
    device: Any,
    affinity: int,
    wait: Any,
    signal: Any,
    pool: int,
    types: int,
    usage: int,
    size: int,
    flags: int,
) -> HalBuffer:
    return _allocated(size)


@HAL.add("device.queue.alloca", "0rIrriiiI_r")
def _queue_allocate_15(
    host: Host,
    device: Any,
    affinity: int,
    wait: Any,
    signal: Any,
    pool: int,
    types: int,
    usage: int,
    size: int,
) -> HalBuffer:
    return _allocated(size)


@HAL.add("device.queue.dealloca", "0rIrrrI_v")
@HAL.add("device.queue.dealloca", "0rIrrr_v")
def _queue_free(
    host: Host, device: Any, affinity: int, wait: Any, signal: Any, buffer: Any, flags: int = 0
) -> None:
    """Memory goes when nothing refers to it."""


@HAL.add("device.queue.fill", "0rIrrrIIIiI_v")
def _queue_fill(
    host: Host,
    device: Any,
    affinity: int,
    wait: Any,
    signal: Any,
    target: Any,
    offset: int,
    length: int,
    pattern: int,
    size: int,
    flags: int,
) -> None:
    _fill_bytes(host, _buffer(target).range(offset, length), pattern, size)


@HAL.add("device.queue.copy", "0rIrrrIrIII_v")
@HAL.add("device.queue.read", "0rIrrrIrIII_v")
@HAL.add("device.queue.write", "0rIrrrIrIII_v")
def _queue_copy(
    host: Host,
    device: Any,
    affinity: int,
    wait: Any,
    signal: Any,
    source: Any,
    source_offset: int,
    target: Any,
    target_offset: int,
    length: int,
    flags: int,
) -> None:
    data = _buffer(source).range(source_offset, length)
    _copy_bytes(host, data, _buffer(target).range(target_offset, length))


@HAL.add("device.queue.update", "0rIrrrIrIII_v")
def _queue_update(
    host: Host,
    device: Any,
    affinity: int,
    wait: Any,
    signal: Any,
    source: Any,
    source_offset: int,
    target: Any,
    target_offset: int,
    length: int,
    flags: int,
) -> None:
    data = expect(source, Buffer, "the source").part(source_offset, length)
    _copy_bytes(host, data, _buffer(target).range(target_offset, length))


@HAL.add("ex.file.from_memory", "0rIirIIi_r")
def _file_from_memory(
    host: Host,
    device: Any,
    affinity: int,
    access: int,
    source: Any,
    offset: int,
    length: int,
    flags: int,
) -> HalBuffer:
    return _imported(source, offset, length)


def _execute(host: Host, commands: Any, table: Sequence[Range] = ()) -> None:
    for command in _commands(commands).commands:
        command(host, table)


@HAL.add("device.queue.execute", "0rIrrrI_v")
def _queue_execute(
    host: Host, device: Any, affinity: int, wait: Any, signal: Any, commands: Any, flags: int
) -> None:
    _execute(host, commands)


@HAL.add("device.queue.execute", "0rIrrCrD_v")
def _queue_execute_15(
    host: Host, device: Any, affinity: int, wait: Any, signal: Any, commands: Sequence[tuple[Any]]
) -> None:
    for (entry,) in commands:
        _execute(host, entry)


@HAL.add("device.queue.execute.indirect", "0rIrrrICrIID_v")
def _queue_execute_indirect(
    host: Host,
    device: Any,
    affinity: int,
    wait: Any,
    signal: Any,
    commands: Any,
    flags: int,
    table: Sequence[tuple[Any, int, int]],
) -> None:
    bound = [Range(0, _buffer(buffer), offset, length) for buffer, offset, length in table]
    _execute(host, commands, bound)


# Fences.


@HAL.add("fence.create", "0rI_r")
@HAL.add("fence.create", "0ri_r")
def _fence_create(host: Host, device: Any, flags: int) -> Opaque:
    return Opaque("fence")


@HAL.add("fence.join", "0ICrD_r")
def _fence_join(host: Host, flags: int, fences: Any) -> Opaque:
    return Opaque("fence")


@HAL.add("fence.query", "0r_i")
def _fence_query(host: Host, fence: Any) -> int:
    return 0


@HAL.add("fence.await", "0iICrD_i")
def _fence_await(host: Host, timeout: int, flags: int, fences: Any) -> int:
    return 0


@HAL.add("fence.await", "0iCrD_i")
def _fence_await_15(host: Host, timeout: int, fences: Any) -> int:
    return 0
