"""What programs hold of the device, what the imports need of the reference, and their tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from darwinn_formats.errors import ExecutionError

from darwinn_reference.iree import effects
from darwinn_reference.iree.imports import ImportTable, expect
from darwinn_reference.iree.memory import Buffer
from darwinn_reference.iree.parameter_store import ParameterStore

WHOLE_BUFFER = -1
"""Length of a range that goes to the end of its buffer."""

OUTSIDE = -1
"""The place of a command that is in no command buffer."""

HAL = ImportTable("hal", {})
HAL_INLINE = ImportTable("hal_inline", {})


@dataclass(eq=False, slots=True)
class Opaque:
    """What a program holds but never looks into: a fence, an allocator, a layout."""

    what: str


class Device(Opaque):
    """The device."""


@dataclass(eq=False, slots=True)
class HalBuffer:
    """Memory of the device: ``!hal.buffer``; ranges of it see the same bytes."""

    contents: Buffer

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
        whole = table[self.slot].resolve(())
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

    @property
    def parameters(self) -> ParameterStore:
        """Values of files that the program may load."""
        ...

    def takes(self, format_name: str) -> bool:
        """Whether executables of a format can be created."""
        ...

    def look(self) -> None:
        """ExecutionError if the call has taken more time or memory than it may."""
        ...

    def create_executable(self, format_name: str, data: Buffer, constants: Any) -> Executable:
        """An executable from its data."""
        ...

    def at(self, position: int) -> None:
        """Told which command of a command buffer follows, by its place in it."""
        ...

    def fills(self, operation: str) -> None:
        """Told before a command writes to memory other than by a dispatch."""
        ...

    def filled(self, operation: str, target: memoryview, source: memoryview | None = None) -> None:
        """Told after a command wrote to memory other than by a dispatch, and from where."""
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


def text_of(value: object) -> str:
    """A text that a program passes as a buffer."""
    return bytes(expect(value, Buffer, "a text").memory).decode("utf-8", "replace")


def buffer_of(value: object) -> HalBuffer:
    """A buffer that is not null."""
    return expect(value, HalBuffer, "a buffer")


def source_of(value: object) -> Buffer:
    """Memory of the program that the device reads."""
    return expect(value, Buffer, "the source")
