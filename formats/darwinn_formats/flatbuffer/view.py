"""The bytes of a flatbuffer, and the checks that everything in them passes before it is read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, TypeVar

from darwinn_formats.errors import FormatError
from darwinn_formats.flatbuffer.encoding import OBJECT_MEMORY, U32

T = TypeVar("T")

STRUCTURE_SLACK = 64 * 1024
MEMORY_SLACK = 48 * 1024 * 1024


class Budget:
    """What one file may cost: shared by all flatbuffers within it.

    ``structure`` bounds the work: bytes of tables, vectors and strings that are visited. In a
    file without aliasing they are disjoint, so that twice the file's size is never reached.
    ``memory`` bounds the objects that are made, in bytes, by an estimate that errs high; with
    the file itself and a copy of it a load stays within 64 MiB plus twice the file's size.
    """

    __slots__ = ("memory", "structure")

    def __init__(self, file_size: int) -> None:
        self.structure = 2 * file_size + STRUCTURE_SLACK
        self.memory = file_size + MEMORY_SLACK


class View(ABC):
    """One flatbuffer: its bytes, and where they start in the file.

    ``prefix`` is how many bytes before the flatbuffer its writer aligned: with a size prefix,
    alignments count from there. ``unaligned`` counts the vectors whose elements are not aligned,
    which are an error if the flatbuffer ``is_aligned``. Nested ones are views of their own.
    ``newer`` are places of tables that are not read, because only a newer schema explains them.
    """

    __slots__ = (
        *("base", "budget", "buffer", "is_aligned", "length", "nested", "newer", "prefix"),
        "unaligned",
    )

    def __init__(
        self,
        buffer: memoryview,
        base: int,
        budget: Budget,
        prefix: int = 0,
        *,
        is_aligned: bool = False,
    ) -> None:
        self.buffer = buffer
        self.length = len(buffer)
        self.base = base
        self.budget = budget
        self.prefix = prefix
        self.is_aligned = is_aligned
        self.unaligned = 0
        self.nested: dict[int, View] = {}
        self.newer: set[int] = set()

    def fault(self, position: int, reason: str, field: str = "") -> FormatError:
        """An error at the byte ``position`` of this view."""
        return FormatError(field, reason, offset=self.base + position)

    def charge(self, position: int, structure: int, memory: int) -> None:
        """Take from the budget; FormatError when it is spent."""
        budget = self.budget
        budget.structure -= structure
        budget.memory -= memory
        if budget.structure < 0 or budget.memory < 0:
            raise self.fault(position, "the data that offsets point to exceed the file many times")

    def target(self, position: int) -> int:
        """Byte position that the offset at ``position``, which is within the view, points to."""
        offset: int = U32.unpack_from(self.buffer, position)[0]
        if not 0 < offset < self.length - position:
            raise self.fault(position, f"offset {offset} leads out of the {self.length} bytes")
        return position + offset

    @abstractmethod
    def verify_table(self, target: type[Any], position: int, depth: int) -> None:
        """Check a table and everything that it refers to."""

    @abstractmethod
    def read_table(self, target: type[T], position: int) -> T:
        """The table at a position that was verified."""

    def verify_vector(self, position: int, size: int, alignment: int, memory: int) -> None:
        """Check place and length of a vector of elements of ``size`` bytes.

        ``memory`` is what an element costs once it is read, in bytes.
        """
        if position % U32.size:
            raise self.fault(position, "vector is not aligned to 4 bytes")
        if position + U32.size > self.length:
            raise self.fault(position, "the length of a vector is outside the data")
        count: int = U32.unpack_from(self.buffer, position)[0]
        start = position + U32.size
        if count * size > self.length - start:
            raise self.fault(
                position, f"vector of {count} elements of {size} bytes ends after data"
            )
        if count and (start + self.prefix) % alignment:
            # The length is aligned to 4 bytes, and so are the elements.
            if self.is_aligned:
                raise self.fault(start, f"elements are not aligned to {alignment} bytes")
            self.unaligned += 1
        self.charge(position, U32.size + count * size, OBJECT_MEMORY + count * memory)

    def verify_blob(self, position: int, memory: int) -> None:
        """Check place and length of a vector of bytes, which is not charged as structure.

        ``memory`` is what a byte costs once it is read.
        """
        self.verify_vector(position, 0, 1, 0)
        count = U32.unpack_from(self.buffer, position)[0]
        if count > self.length - position - U32.size:
            raise self.fault(position, f"vector of {count} bytes ends after the data")
        self.charge(position, 0, count * memory)

    def verify_string(self, position: int, memory: int) -> None:
        """Check place, length and terminating zero of a string."""
        self.verify_blob(position, memory)
        end = position + U32.size + U32.unpack_from(self.buffer, position)[0]
        if end >= self.length or self.buffer[end]:
            raise self.fault(position, "string does not end with a zero byte")

    def extent(self, position: int) -> tuple[int, int]:
        """Start and end of the bytes of a vector of bytes that was verified."""
        start = position + U32.size
        return start, start + U32.unpack_from(self.buffer, position)[0]
