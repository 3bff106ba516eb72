"""What the chip did on the bus, and its comparison with an executable's DMA hints.

A trace comes from executing the program. The hints are what a host attached by USB would go by;
here they are the expectation, never an input. Facts: docs/host-interface.md, section "Trace and
hints".
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import islice
from typing import NamedTuple

from darwinn_formats.brief import brief
from darwinn_formats.darwinn import (
    Buffer,
    Description,
    Direction,
    DmaDescriptorHint,
    DmaHint,
    DmaHints,
    InstructionHint,
    InterruptHint,
    buffer_of,
)


class TransferKind(Enum):
    """What a transfer moves, or which event stands in its place in the order."""

    INSTRUCTION = "instruction"
    INPUT = "input"
    PARAMETER = "parameter"
    OUTPUT = "output"
    SCRATCH = "scratch"
    INTERRUPT = "interrupt"
    FENCE = "fence"


class TransferDirection(Enum):
    """Which way the bytes go."""

    INFEED = "infeed"
    OUTFEED = "outfeed"


KIND_OF_DESCRIPTION = {
    Description.BASE_ADDRESS_OUTPUT_ACTIVATION: TransferKind.OUTPUT,
    Description.BASE_ADDRESS_INPUT_ACTIVATION: TransferKind.INPUT,
    Description.BASE_ADDRESS_PARAMETER: TransferKind.PARAMETER,
    Description.BASE_ADDRESS_SCRATCH: TransferKind.SCRATCH,
}
"""What the buffers of each description hold."""


@dataclass(frozen=True, slots=True)
class Transfer:
    """One entry of the trace, in the order in which the chip issued it.

    ``address`` is the device address and ``size`` the bytes (both 0 for interrupts and fences).
    ``buffer`` is the buffer that the driver mapped there, ``offset`` the byte offset within it;
    an address that the driver did not map has no buffer. ``number`` is the index of the chunk for
    an instruction transfer, the number of the interrupt for an interrupt, else 0.
    """

    kind: TransferKind
    direction: TransferDirection
    buffer: Buffer | None = None
    offset: int = 0
    size: int = 0
    address: int = 0
    number: int = 0

    @property
    def is_interrupt(self) -> bool:
        """True for a host interrupt."""
        return self.kind is TransferKind.INTERRUPT

    @property
    def is_descriptor(self) -> bool:
        """True for bytes that the program itself asked to move."""
        return self.kind not in _EVENTS

    def continues(self, before: Transfer) -> bool:
        """True if this descriptor goes on where ``before`` ends, in buffer and direction."""
        return self.direction is before.direction and self.adjoins(before)

    def adjoins(self, before: Transfer) -> bool:
        """True if this descriptor begins where ``before`` ends, whichever way the bytes go."""
        same = (self.kind, self.buffer) == (before.kind, before.buffer)
        adjacent = (self.offset, self.address) == (
            before.offset + before.size,
            before.address + before.size,
        )
        return self.is_descriptor and same and adjacent


_EVENTS = (TransferKind.INSTRUCTION, TransferKind.INTERRUPT, TransferKind.FENCE)


class TraceEntry(NamedTuple):
    """What hint and trace have in common: the fields that are compared.

    An event (instruction chunk, interrupt, fence) has no buffer, offset or size: a hint does not
    say how long a chunk is. ``number`` is the chunk or the interrupt.
    """

    kind: TransferKind
    direction: TransferDirection
    buffer: Buffer | None
    offset: int
    size: int
    number: int

    def text(self) -> str:
        """The entry for a person to read."""
        if self.kind is TransferKind.FENCE:
            return "fence"
        if self.kind in _EVENTS:
            return f"{self.kind.value} {self.number}"
        name = f"{self.buffer.name!r} " if self.buffer and self.buffer.name else ""
        where = name if self.buffer else "(address that nothing is mapped to) "
        kind, direction = self.kind.value, self.direction.value
        return f"{kind} {direction} {where}offset {self.offset} size {self.size}"

    def as_json(self) -> dict[str, object]:
        """The entry as plain values."""
        return {
            "kind": self.kind.value,
            "direction": self.direction.value,
            "name": self.buffer.name if self.buffer else None,
            "batch": self.buffer.batch if self.buffer else None,
            "offset": self.offset,
            "size": self.size,
            "number": self.number,
        }


@dataclass(frozen=True, slots=True)
class DmaRow:
    """One hint and what the chip did in its place; either may be missing.

    ``descriptors`` is how many descriptors the chip issued for it, ``differences`` names the fields
    that differ. A row behind hints that cover the run only in part has no hint and no difference.
    ``against`` of the bytes went the other way than the hint says.
    """

    index: int
    hint: TraceEntry | None
    issued: TraceEntry | None
    descriptors: int
    differences: tuple[str, ...]
    against: int = 0

    @property
    def equal(self) -> bool:
        """True if nothing differs."""
        return not self.differences

    def as_json(self) -> dict[str, object]:
        """The row as plain values."""
        return {
            "index": self.index,
            "hint": self.hint.as_json() if self.hint else None,
            "issued": self.issued.as_json() if self.issued else None,
            "descriptors": self.descriptors,
            "differences": list(self.differences),
            "against": self.against,
        }


@brief
@dataclass(frozen=True, slots=True)
class DmaComparison:
    """The whole comparison: a row for each hint, and for each transfer without one."""

    rows: tuple[DmaRow, ...]
    fully_deterministic: bool

    @property
    def first_difference(self) -> DmaRow | None:
        """The first row in which hint and chip differ, if any."""
        return next((row for row in self.rows if not row.equal), None)

    @property
    def equal(self) -> bool:
        """True if no row differs."""
        return self.first_difference is None

    @property
    def merged(self) -> DmaRow | None:
        """The first row whose hint stands for descriptors of both directions, if any."""
        return next((row for row in self.rows if row.equal and row.against), None)

    @property
    def beyond_hints(self) -> int:
        """Transfers that the chip issued after the last hint."""
        return sum(row.hint is None for row in self.rows)

    def as_json(self) -> dict[str, object]:
        """The comparison as plain values."""
        first = self.first_difference
        return {
            "equal": self.equal,
            "fully_deterministic": self.fully_deterministic,
            "hints": sum(row.hint is not None for row in self.rows),
            "beyond_hints": self.beyond_hints,
            "first_difference": first.index if first else None,
            "rows": [row.as_json() for row in self.rows],
        }


def compare_with_hints(hints: DmaHints, transfers: Iterable[Transfer]) -> DmaComparison:
    """Compare what the chip issued with the executable's hints, one after another.

    Adjacent contiguous descriptors are taken together as far as the hint that they carry out goes,
    of both directions if that is exactly what they sum up to.
    Transfers behind hints that are not fully deterministic are listed without judgement.
    """
    pending = deque(transfers)
    rows: list[DmaRow] = []
    for hint in hints.hints:
        expected = expected_entry(hint)
        taken = _take(pending, expected)
        issued = _entry(taken) if taken else None
        differences = _differences(expected, issued)
        rows.append(DmaRow(len(rows), expected, issued, len(taken), differences, _against(taken)))
    while pending:
        taken = [pending.popleft()]
        while pending and pending[0].continues(taken[-1]):
            taken.append(pending.popleft())
        differences = ("no hint",) if hints.fully_deterministic else ()
        rows.append(DmaRow(len(rows), None, _entry(taken), len(taken), differences))
    return DmaComparison(tuple(rows), hints.fully_deterministic)


def _take(pending: deque[Transfer], expected: TraceEntry) -> list[Transfer]:
    """The next transfer, with those that continue it as far as ``expected`` goes."""
    count = _run(pending, expected.size, Transfer.continues)
    merged = _run(pending, expected.size, Transfer.adjoins)
    if sum(transfer.size for transfer in islice(pending, merged)) == expected.size:
        count = merged
    return [pending.popleft() for _ in range(count)]


def _run(
    pending: Iterable[Transfer], size: int, goes_on: Callable[[Transfer, Transfer], bool]
) -> int:
    """How many transfers go on one from another until there are ``size`` bytes; at least one."""
    before: Transfer | None = None
    count = moved = 0
    for transfer in pending:
        if before is not None and (moved >= size or not goes_on(transfer, before)):
            break
        before = transfer
        moved += transfer.size
        count += 1
    return count


def _against(transfers: Sequence[Transfer]) -> int:
    """Bytes that go the other way than the first transfer."""
    return sum(each.size for each in transfers if each.direction is not transfers[0].direction)


def _entry(transfers: Sequence[Transfer]) -> TraceEntry:
    """Contiguous descriptors, or one event, as an entry."""
    first = transfers[0]
    if not first.is_descriptor:
        return TraceEntry(first.kind, first.direction, None, 0, 0, first.number)
    size = sum(transfer.size for transfer in transfers)
    return TraceEntry(first.kind, first.direction, first.buffer, first.offset, size, 0)


def expected_entry(hint: DmaHint) -> TraceEntry:
    """What a hint says that the chip will do."""
    direction = (
        TransferDirection.OUTFEED
        if hint.direction == Direction.OUTFEED
        else TransferDirection.INFEED
    )
    what = hint.any_hint
    if isinstance(what, DmaDescriptorHint):
        buffer = buffer_of(what.meta)
        kind = KIND_OF_DESCRIPTION[buffer.desc]
        return TraceEntry(kind, direction, buffer, what.offset_in_bytes, what.size_in_bytes, 0)
    if isinstance(what, InstructionHint):
        number = what.instruction_chunk_index
        return TraceEntry(TransferKind.INSTRUCTION, direction, None, 0, 0, number)
    if isinstance(what, InterruptHint):
        return TraceEntry(TransferKind.INTERRUPT, direction, None, 0, 0, int(what.type))
    return TraceEntry(TransferKind.FENCE, direction, None, 0, 0, 0)


def _differences(expected: TraceEntry, issued: TraceEntry | None) -> tuple[str, ...]:
    """Names of the fields that differ."""
    if issued is None:
        return ("not issued",)
    return tuple(
        field
        for field, wanted, found in zip(TraceEntry._fields, expected, issued, strict=True)
        if wanted != found
    )
