"""Collects the instructions of one chunk, and what the host must know of them.

A program is more than its instructions: the driver patches addresses into some of them
(relocations), and the executable announces every transfer that the chip will ask for (hints).
Both follow from the instructions, so they are noted here, in the moment when the instruction that
causes them is written, and cannot disagree with it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from darwinn_formats.darwinn import (
    Description,
    Direction,
    DmaDescriptorHint,
    DmaHint,
    DmaHints,
    FieldOffset,
    InstructionBitstream,
    InstructionHint,
    InterruptHint,
    InterruptType,
    Meta,
    Position,
)
from darwinn_sim.isa.builder import Values, build, frame, traversal
from darwinn_sim.isa.codes import (
    AluOperation,
    DescriptorTag,
    DescriptorWord,
    RingChannel,
    ScalarFlag,
    StoreOperation,
    TileFlag,
    WatcherSide,
)
from darwinn_sim.isa.fields import BUNDLE_BYTES
from darwinn_sim.isa.table import BY_NAME

_BUNDLE_BITS = 8 * BUNDLE_BYTES
_LOAD_PROGRAM_BUNDLES = BY_NAME["LoadProgram"].bundles
_IMMEDIATE_BIT = BY_NAME["Scalar"].field("alu_b").offset

COUNTER = 8
"""The scalar register that counts repetitions; descriptors are made with others."""

Loops = Sequence[tuple[int, int]]
"""(iterations, step) of each loop of a traversal, innermost first."""


class Watcher(NamedTuple):
    """Holds a unit back: before the k-th block of loops below ``depth`` begins, sync flag ``flag``
    must have reached ``expected + k * stride``."""

    flag: TileFlag | ScalarFlag
    depth: int
    expected: int
    stride: int = 1
    side: WatcherSide = WatcherSide.FIRST


class Transfer(NamedTuple):
    """A descriptor: which host buffer, how much of it, and which stream of the chip it feeds.

    It begins ``offset`` bytes behind the buffer's first one.
    """

    buffer: Description
    name: str
    size: int
    tag: DescriptorTag
    offset: int = 0


class Assembler:
    """The chunk that is being written.

    Args:
        first_tag: serial number of the first tile instruction; 0x8000 in parameter-caching
            programs, so that the two halves of a model can be told apart in a trace.
    """

    def __init__(self, first_tag: int = 0) -> None:
        self._operations: list[tuple[str, Values]] = []
        self._bundles = _LOAD_PROGRAM_BUNDLES
        self._tag = first_tag
        self._relocations: list[FieldOffset] = []
        self._earlier: list[InstructionBitstream] = []
        self._hints = [DmaHint(InstructionHint(0), Direction.INFEED)]
        self._turns = dict.fromkeys(RingChannel, 0)
        self._built: tuple[tuple[int, int], InstructionBitstream] | None = None
        """The chunk as it was at some place."""

    def emit(self, name: str, *parts: Values, **values: int | float) -> None:
        """Append an instruction whose fields are those of ``parts`` and ``values`` together."""
        fields: dict[str, int | float | Sequence[int] | Sequence[float]] = {}
        for part in (*parts, values):
            fields |= part
        self._operations.append((name, fields))
        self._bundles += BY_NAME[name].bundles

    def tile(self, name: str, tiles: int, *parts: Values, **values: int | float) -> None:
        """Append an instruction for the tiles in the set ``tiles`` (bit t: tile t)."""
        self.emit(name, *parts, tiles=tiles, tag=self._tag, **values)
        self._tag += 1

    def take_turns(self, channel: RingChannel, turns: int = 1) -> int:
        """Reserve the next ``turns`` turns on a ring channel; return the first of them.

        Senders go one after another: each waits until the flag that counts finished turns, which
        every sender of the channel increments on all tiles, has reached its own number.
        """
        first = self._turns[channel]
        self._turns[channel] += turns
        return first

    @property
    def turns(self) -> dict[RingChannel, int]:
        """Turns taken on each ring channel so far."""
        return dict(self._turns)

    def repeat(self, values: range, body: Callable[[], None]) -> None:
        """Run what ``body`` writes once for each value, which is in register ``COUNTER``.

        The body takes no turns on the ring: each of them has a number of its own.
        """
        self._move(COUNTER, values.start)
        first = self._bundles
        body()
        self.emit("Scalar", _alu(AluOperation.ADD, COUNTER, COUNTER, immediate=values.step))
        self.emit("Scalar", _alu(AluOperation.LESS, 0, COUNTER, immediate=values.stop))
        self.emit(
            "Branch",
            conditional=1,
            branch_predicate=0,
            branch_polarity=1,
            relative=1,
            offset=first - self._bundles,
        )

    def transfer(self, transfer: Transfer) -> None:
        """Have the scalar core ask the host for a transfer.

        The address is not known before the program is loaded: two moves take zero immediates
        that the driver replaces by the two halves of the buffer's address. A scalar bundle has
        several slots, and all of them read the registers as they were before the bundle; so one
        bundle can store a register that an earlier one has set, and load the next.
        """
        low, high, size, tag, spare = range(5)
        self._relocated_move(low, transfer, Position.LOWER_32BIT)
        self._relocated_move(high, transfer, Position.UPPER_32BIT)
        if transfer.offset:
            self._add((low, high), transfer.offset, spare)
        self._store_word(DescriptorWord.ADDRESS_LOW, low, (size, transfer.size))
        self._store_word(DescriptorWord.ADDRESS_HIGH, high, (tag, transfer.tag))
        self._issue(size, tag)
        meta = self._meta(transfer, Position.LOWER_32BIT)
        out = transfer.tag is DescriptorTag.OUTPUT
        self._hints.append(
            DmaHint(
                DmaDescriptorHint(meta, transfer.offset, transfer.size),
                Direction.OUTFEED if out else Direction.INFEED,
            )
        )

    def interrupt(self) -> None:
        """Raise interrupt 0 at the host: a descriptor without address and size."""
        zero, tag = range(2)
        self._move(zero, 0)
        self._store_word(DescriptorWord.ADDRESS_LOW, zero, (tag, DescriptorTag.INTERRUPT_0))
        self._store_word(DescriptorWord.ADDRESS_HIGH, zero)
        self._issue(zero, tag)
        hint = InterruptHint(InterruptType.SCALAR_CORE_INT_0)
        self._hints.append(DmaHint(hint, Direction.OUTFEED))

    @property
    def place(self) -> tuple[int, int]:
        """Number of the chunk, and of the next instruction in it, its LoadProgram being 0."""
        return len(self._earlier), 1 + len(self._operations)

    @property
    def bundles(self) -> int:
        """Bundles of the chunk so far, of which program memory has room for a certain number."""
        return self._bundles

    def next_chunk(self) -> None:
        """End this chunk; what follows belongs to the next one, which the host sends after it."""
        body = frame(build(self._operations), last=False)
        self._earlier.append(InstructionBitstream(body, tuple(self._relocations)))
        self._operations, self._relocations = [], []
        self._bundles = _LOAD_PROGRAM_BUNDLES
        hint = InstructionHint(len(self._earlier))
        self._hints.append(DmaHint(hint, Direction.INFEED))

    def chunk(self) -> InstructionBitstream:
        """The chunk: LoadProgram, the program, Halt, Execute; and the fields to relocate."""
        if self._built is None or self._built[0] != self.place:
            body = frame(build(self._operations))
            self._built = self.place, InstructionBitstream(body, tuple(self._relocations))
        return self._built[1]

    def chunks(self) -> tuple[InstructionBitstream, ...]:
        """All chunks, if there have been others before."""
        return (*self._earlier, self.chunk())

    def hints(self) -> DmaHints:
        """The DMA that the program will cause, all of it."""
        return DmaHints(tuple(self._hints), fully_deterministic=True)

    def _relocated_move(self, register: int, transfer: Transfer, position: Position) -> None:
        offset = self._bundles * _BUNDLE_BITS + _IMMEDIATE_BIT
        self._relocations.append(FieldOffset(self._meta(transfer, position), offset))
        self._move(register, 0)

    @staticmethod
    def _meta(transfer: Transfer, position: Position) -> Meta:
        return Meta(transfer.buffer, 0, transfer.name, position)

    def _move(self, register: int, value: int) -> None:
        self.emit("Scalar", _move(register, value))

    def _add(self, halves: tuple[int, int], offset: int, spare: int) -> None:
        """Add less than 2^31 to the number in two registers, with a third one to find the carry.

        The lower half carries if its top bit is set, and if the other bits and what is added to
        them set it again. The vendor's compiler adds in this way, too.
        """
        low, high = halves
        top, carry = range(2)
        self.emit("Scalar", _alu(AluOperation.LESS, top, low, immediate=0))
        self.emit("Scalar", _alu(AluOperation.NOT_EQUAL, carry, low, low))
        self.emit("Scalar", _alu(AluOperation.AND, spare, low, immediate=(1 << 31) - 1))
        if_top = {"gate": 1, "predicate": top, "polarity": 1}
        self.emit("Scalar", _alu(AluOperation.ADD, spare, spare, immediate=offset), **if_top)
        self.emit("Scalar", _alu(AluOperation.LESS, carry, spare, immediate=0), **if_top)
        self.emit("Scalar", _alu(AluOperation.ADD, low, low, immediate=offset))
        if_carry = {"gate": 1, "predicate": carry, "polarity": 1}
        self.emit("Scalar", _alu(AluOperation.ADD, high, high, immediate=1), **if_carry)

    def _store_word(
        self, word: DescriptorWord, register: int, then: tuple[int, int] | None = None
    ) -> None:
        """Store a register in a descriptor word, and ``then`` load (register, value)."""
        self.emit(
            "Scalar",
            _move(*then) if then else {},
            store_op=StoreOperation.DESCRIPTOR,
            store_address=word,
            store_register=register,
        )

    def _issue(self, size: int, tag: int) -> None:
        self._store_word(DescriptorWord.SIZE, size)
        self._store_word(DescriptorWord.TAG, tag)
        self.emit("Scalar", store_op=StoreOperation.ISSUE)


def _alu(
    operation: AluOperation,
    destination: int,
    one: int,
    other: int = 0,
    immediate: int | None = None,
) -> Values:
    """An operation of two registers, or of one and an immediate."""
    return {
        "alu_op": operation,
        "alu_immediate": immediate is not None,
        "alu_destination": destination,
        "alu_a": one,
        "alu_b": other if immediate is None else immediate,
    }


def _move(register: int, value: int) -> Values:
    return {
        "alu_op": AluOperation.MOVE,
        "alu_immediate": 1,
        "alu_destination": register,
        "alu_b": value,
    }


def wait(instruction: str, *watchers: Watcher) -> Values:
    """The watcher fields of an instruction, those not used all zero.

    Raises:
        ValueError: more watchers than the instruction has.
    """
    table = BY_NAME[instruction]
    count = table.field("watcher_flag").count
    if len(watchers) > count:
        raise ValueError(f"{instruction} has {count} watchers, not {len(watchers)}")
    columns: dict[str, list[int]] = {
        "flag": [watcher.flag for watcher in watchers],
        "depth": [watcher.depth for watcher in watchers],
        "expected": [watcher.expected for watcher in watchers],
        "stride": [watcher.stride for watcher in watchers],
        "valid": [1 for _ in watchers],
        "side": [watcher.side for watcher in watchers],
    }
    names = {field.name for field in table.fields}
    return {
        f"watcher_{name}": _column(values, count)
        for name, values in columns.items()
        if f"watcher_{name}" in names
    }


def _column(values: list[int], count: int) -> int | Sequence[int]:
    column = values + [0] * (count - len(values))
    return column[0] if count == 1 else column


def signal(producer: str = "producer", *, depth: int = 0) -> Values:
    """Fields of a producer that signals at the end of each block of loops below ``depth``."""
    return {f"{producer}_increment": 1, f"{producer}_depth": depth}


def walk(
    instruction: str,
    name: str,
    base: int,
    loops: Loops,
    *,
    last: int = 0,
    double: tuple[int, int] = (0, 0),
) -> Values:
    """Fields of a traversal: ``loops`` from ``base``.

    ``last`` is how often loop 0 runs in the last iteration of loop 1, 0 for as often as ever.
    ``double`` is (loop, distance) of double buffering.
    """
    alternate = (1, last) if last else (0, 0)
    return traversal(instruction, name, base, loops, double=double, alternate=alternate)


def skip_first(name: str, base: int, words: int, *, loop: int) -> Values:
    """Fields of a prologue: before loops 0 to ``loop`` start, ``words`` elements go to ``base``."""
    if not words:
        return {}
    return {
        f"{name}_prologue_enable": 1,
        f"{name}_prologue_loop": loop,
        f"{name}_prologue_base": base,
        f"{name}_prologue_inner_limit": words - 1,
        f"{name}_prologue_outer_limit": base + words - 1,
    }
