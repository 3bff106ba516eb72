"""Verify a flatbuffer, then read it: nothing is read that was not checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from darwinn_formats.errors import FormatError
from darwinn_formats.flatbuffer.encoding import (
    I32,
    IDENTIFIER_SIZE,
    OBJECT_MEMORY,
    U16,
    U32,
    VTABLE_HEADER,
    WIDEST,
)
from darwinn_formats.flatbuffer.plan import Plan, plan_of
from darwinn_formats.flatbuffer.schema import NewerError, schema_of
from darwinn_formats.flatbuffer.view import Budget, View
from darwinn_formats.remarks import remark

T = TypeVar("T")

MAXIMUM_SIZE = 2**31 - 1
"""Bytes of a flatbuffer at most: offsets are 32 bits and the vtable offset is signed."""
MAXIMUM_DEPTH = 64
"""Tables within tables at most, nested flatbuffers included."""


class TableView(View):
    """A flatbuffer whose tables are verified and read by the plans of their vtables."""

    __slots__ = ("plans",)

    def __init__(
        self,
        buffer: memoryview,
        base: int,
        budget: Budget,
        prefix: int = 0,
        *,
        is_aligned: bool = False,
    ) -> None:
        super().__init__(buffer, base, budget, prefix, is_aligned=is_aligned)
        self.plans: dict[tuple[int, type[Any]], Plan] = {}

    def verify_root(self, target: type[Any], depth: int) -> None:
        """Check the header and everything that is reachable from the root table."""
        if self.length > MAXIMUM_SIZE:
            raise self.fault(0, f"{self.length} bytes are more than a flatbuffer can have")
        identifier = schema_of(target).identifier
        header = U32.size + (0 if identifier is None else IDENTIFIER_SIZE)
        if self.length < header:
            raise self.fault(0, f"{self.length} bytes are fewer than the header of {header}")
        if identifier is not None and bytes(self.buffer[4:8]) != identifier:
            found = bytes(self.buffer[4:8])
            raise self.fault(4, f"file identifier {found!r} is not {identifier!r}")
        self.verify_table(target, self.target(0), depth)
        if self.unaligned:
            vectors = f"vector{'s' * (self.unaligned > 1)} of {target.__name__}"
            remark(
                f"8-byte elements are aligned to 4 bytes only, in {self.unaligned} {vectors}: "
                "accepted, as its runtime does"
            )

    def verify_table(self, target: type[Any], position: int, depth: int) -> None:
        """Check a table and everything that it refers to."""
        if depth > MAXIMUM_DEPTH:
            raise self.fault(position, f"tables are nested more than {MAXIMUM_DEPTH} deep")
        plan = self._verified_plan(target, position)
        if position + plan.size > self.length:
            raise self.fault(position, f"table of {plan.size} bytes ends after the data")
        if (position + self.prefix) % WIDEST not in plan.aligned:
            raise self._misaligned(plan, position)
        self.charge(position, plan.size, schema_of(target).memory)
        if plan.enumerations:
            values = plan.scalars.unpack_from(self.buffer, position)
            for index, _, known, offset, name in plan.enumerations:
                if values[index] not in known:
                    reason = f"no member has the number {values[index]}"
                    raise self.newer_fault(position + offset, reason, name)
        path = ""
        try:
            for _, offset, kind, name in plan.references:
                path = name
                kind.verify(self, self.target(position + offset), depth + 1)
            for _, tag_offset, offset, member, name in plan.unions:
                path = name
                member.verify(self, position, tag_offset, offset, depth + 1)
        except FormatError as error:
            raise error.within(path) from None

    def read_table(self, target: type[T], position: int) -> T:
        """The table at a position that was verified."""
        buffer = self.buffer
        vtable = position - I32.unpack_from(buffer, position)[0]
        plan = self.plans[vtable, target]
        arguments = list(plan.defaults)
        if plan.place is not None:
            arguments[plan.place] = self.base + position
        values = plan.scalars.unpack_from(buffer, position)
        for argument, value in zip(plan.scalar_arguments, values, strict=True):
            arguments[argument] = value
        for index, argument, known, _, _ in plan.enumerations:
            arguments[argument] = known[values[index]]
        for argument, offset, kind, _ in plan.references:
            place = position + offset
            arguments[argument] = kind.read(self, place + U32.unpack_from(buffer, place)[0])
        for argument, tag_offset, offset, member, _ in plan.unions:
            arguments[argument] = member.read(self, position, tag_offset, offset)
        return target(*arguments)

    def _verified_plan(self, target: type[Any], position: int) -> Plan:
        if position % U32.size:
            raise self.fault(position, "table is not aligned to 4 bytes")
        if position + U32.size > self.length:
            raise self.fault(position, "table starts after the data")
        vtable = position - I32.unpack_from(self.buffer, position)[0]
        known = self.plans.get((vtable, target))
        if known is not None:
            return known
        if vtable % U16.size:
            raise self.fault(position, f"vtable at {self.base + vtable} is not aligned to 2 bytes")
        if not 0 <= vtable <= self.length - VTABLE_HEADER.size:
            raise self.fault(position, f"vtable at {self.base + vtable} is outside the data")
        size, table_size = VTABLE_HEADER.unpack_from(self.buffer, vtable)
        if size % U16.size or size < VTABLE_HEADER.size or vtable + size > self.length:
            raise self.fault(vtable, f"vtable has the impossible size {size}")
        if table_size < U32.size:
            raise self.fault(vtable, f"vtable gives its tables the impossible size {table_size}")
        schema = schema_of(target)
        declared = min(size, VTABLE_HEADER.size + U16.size * schema.slots)
        self.charge(vtable, size - declared, OBJECT_MEMORY * 4)
        if not schema.is_open and any(self.buffer[vtable + declared : vtable + size]):
            reason = f"{target.__name__} has no field after slot {schema.slots - 1}"
            raise self.newer_fault(vtable, reason)
        plan = plan_of(schema, bytes(self.buffer[vtable : vtable + declared]))
        if isinstance(plan, str):
            raise self.fault(vtable, plan)
        self.plans[vtable, target] = plan
        return plan

    def newer_fault(self, position: int, reason: str, field: str = "") -> NewerError:
        """An error at the byte ``position`` that only a newer schema could explain."""
        return NewerError(field, reason, offset=self.base + position)

    def _misaligned(self, plan: Plan, position: int) -> FormatError:
        start = position + self.prefix
        first = next(entry for entry in plan.stored if (start + entry.offset) % entry.size)
        reason = f"field is not aligned to {first.size} bytes"
        return self.fault(position + first.offset, reason, first.name)


@dataclass(frozen=True, slots=True)
class Verified(Generic[T]):
    """A flatbuffer that was verified: the only thing that can be read."""

    _view: TableView
    _root: type[T]

    def read(self) -> T:
        """The root table with everything in it."""
        return self._view.read_table(self._root, self._view.target(0))


def verify(
    data: bytes | memoryview,
    root: type[T],
    *,
    base: int = 0,
    budget: Budget | None = None,
    depth: int = 0,
    prefix: int = 0,
    is_aligned: bool = False,
) -> Verified[T]:
    """Check a whole flatbuffer.

    Args:
        data: the flatbuffer.
        root: dataclass of its root table; checked for the identifier that the class declares.
        base: byte offset of the data in the file; error offsets count from the file's start.
        budget: budget of the file, when the data is a part of it.
        depth: how many tables of the file already enclose the data.
        prefix: bytes of a size prefix before the data: alignments count from its start.
        is_aligned: refuse vectors of 8-byte elements that are aligned to 4 bytes only, as the
            verifier of flatcc does; that of FlatBuffers' C++ library does not look at elements.
            They are otherwise remarked upon (``darwinn_formats.remarks``).

    Raises:
        FormatError: with offset and field, at the first fault.
    """
    view = TableView(
        memoryview(data).toreadonly(),
        base,
        budget or Budget(len(data)),
        prefix,
        is_aligned=is_aligned,
    )
    try:
        view.verify_root(root, depth)
    except FormatError as error:
        raise error.within(root.__name__) from None
    return Verified(view, root)


def read(data: bytes | memoryview, root: type[T]) -> T:
    """Verify a flatbuffer and read it; raises FormatError as ``verify`` does."""
    return verify(data, root).read()
