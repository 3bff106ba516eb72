"""Decoder and encoder: instruction streams to columns of field values, and back.

A stream is decoded by opcode, not by instruction: all instructions of one opcode become one table
whose columns are NumPy arrays, so that a chunk of a thousand instructions costs a few hundred
array operations. The columns are what the chip model lowers and what the disassembler prints.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from operator import index
from typing import NamedTuple

import numpy as np
from darwinn_formats.errors import Portable
from numpy.typing import NDArray

from darwinn_sim.isa.fields import BUNDLE_BYTES, Confidence, Field, Instruction
from darwinn_sim.isa.table import BY_NAME, INSTRUCTIONS

Columns = dict[str, NDArray[np.int64]]
"""Values by field name: shape (instructions,), or (instructions, count) of a repeated field."""

_OPCODE_SHIFT = 6
_OPCODE_MASK = 0x3F
_WORD_BYTES = 8


class DecodeError(Portable, ValueError):
    """An instruction stream that cannot be decoded: ``bundle`` is where, ``reason`` why.

    ``opcode`` is the unknown opcode, where that is the reason.
    """

    def __init__(self, bundle: int, reason: str, opcode: int | None = None) -> None:
        super().__init__(f"bundle {bundle}: {reason}")
        self.bundle = bundle
        self.reason = reason
        self.opcode = opcode


@dataclass(frozen=True)
class Operation:
    """One instruction with its field values (a tuple for a repeated field)."""

    pc: int
    instruction: Instruction
    values: Mapping[str, int | tuple[int, ...]]

    def __getitem__(self, name: str) -> int:
        value = self.values[name]
        if isinstance(value, tuple):
            raise TypeError(f"{name} is a repeated field")
        return value

    def many(self, name: str) -> tuple[int, ...]:
        """Values of a repeated field."""
        value = self.values[name]
        if not isinstance(value, tuple):
            raise TypeError(f"{name} is not a repeated field")
        return value


@dataclass(frozen=True)
class DecodedChunk:
    """A decoded chunk, in program order.

    ``pc`` is the bundle index of each instruction in the chunk (bundle 0 is LoadProgram),
    ``opcode`` its opcode, ``row`` its row in ``columns[opcode]``.
    """

    pc: NDArray[np.int64]
    opcode: NDArray[np.int64]
    row: NDArray[np.int64]
    columns: Mapping[int, Columns]
    bundles: int

    def __len__(self) -> int:
        return len(self.pc)

    def __getitem__(self, index: int) -> Operation:
        opcode = int(self.opcode[index])
        row = int(self.row[index])
        instruction = INSTRUCTIONS[opcode]
        values: dict[str, int | tuple[int, ...]] = {}
        for name, column in self.columns[opcode].items():
            cell = column[row]
            values[name] = int(cell) if column.ndim == 1 else tuple(int(v) for v in cell)
        return Operation(int(self.pc[index]), instruction, values)


def decode(stream: bytes | bytearray | memoryview) -> DecodedChunk:
    """Decode one chunk of ``stream`` (a multiple of 16 bytes).

    Raises:
        DecodeError: unknown opcode, a length that is no whole number of bundles, or an instruction
            that runs over the end of the stream.
    """
    if len(stream) % BUNDLE_BYTES:
        raise DecodeError(len(stream) // BUNDLE_BYTES, "the stream ends inside a bundle")
    bundles = np.frombuffer(stream, np.uint8).reshape(-1, BUNDLE_BYTES)
    starts = _boundaries(bundles)
    pc = np.asarray(starts, np.int64)
    opcode = _opcodes(bundles)[pc]
    row = np.zeros(len(pc), np.int64)
    columns: dict[int, Columns] = {}
    for code in np.unique(opcode):
        members = np.flatnonzero(opcode == code)
        row[members] = np.arange(len(members))
        columns[int(code)] = _decode_columns(INSTRUCTIONS[int(code)], bundles, pc[members])
    return DecodedChunk(pc, opcode, row, columns, len(bundles))


def encode(program: DecodedChunk) -> bytes:
    """Encode ``program``; the inverse of :func:`decode`."""
    stream = np.zeros((program.bundles, BUNDLE_BYTES), np.uint8)
    for code, columns in program.columns.items():
        instruction = INSTRUCTIONS[code]
        pcs = program.pc[program.opcode == code]
        raw = encode_columns(instruction, columns, len(pcs))
        rows = pcs[:, None] + np.arange(instruction.bundles)
        stream[rows] = raw.reshape(len(pcs), instruction.bundles, BUNDLE_BYTES)
    return stream.tobytes()


def encode_operations(operations: Iterable[tuple[str, Mapping[str, int | Sequence[int]]]]) -> bytes:
    """Encode (instruction name, field values) pairs; fields that are not given are 0.

    Raises:
        KeyError: unknown instruction or field name.
        TypeError: a value that is no integer.
        ValueError: a value that does not fit its field, or a repeated field of another length.
    """
    return b"".join(_encode_operation(BY_NAME[name], values) for name, values in operations)


def encode_columns(instruction: Instruction, columns: Columns, rows: int) -> NDArray[np.uint8]:
    """Encode ``rows`` instructions of one opcode; columns that are not given are 0.

    Returns:
        uint8, shape (rows, bytes of the instruction).

    Raises:
        ValueError: a value that does not fit its field.
    """
    size = BUNDLE_BYTES * instruction.bundles
    raw = np.zeros((rows, size + _WORD_BYTES), np.uint8)
    for field in instruction.fields:
        column = columns.get(field.name)
        if column is None:
            continue
        if rows:
            _check_range(instruction, field, int(column.min()), int(column.max()))
        values = column.reshape(rows, field.count)
        for k, offset in enumerate(field.offsets()):
            shifted = (values[:, k].astype(np.uint64) & np.uint64((1 << field.width) - 1)) << (
                np.uint64(offset % 8)
            )
            window = shifted[:, None].view(np.uint8)
            raw[:, offset // 8 : offset // 8 + _WORD_BYTES] |= window
    return raw[:, :size]


def unexplained_bits(
    stream: bytes | bytearray | memoryview, program: DecodedChunk | None = None
) -> list[tuple[int, int]]:
    """Return (pc, bit) of every set bit of a chunk that lies in no field of its instruction.

    ``program`` is the chunk decoded, if it is already.

    Raises:
        DecodeError: see :func:`decode`.
    """
    program = decode(stream) if program is None else program
    bundles = np.frombuffer(stream, np.uint8).reshape(-1, BUNDLE_BYTES)
    found: list[tuple[int, int]] = []
    for code in program.columns:
        pcs = program.pc[program.opcode == code]
        left = _bytes_of(INSTRUCTIONS[code], bundles, pcs) & ~_layout(code).known
        if left.any():
            rows, bits = np.nonzero(np.unpackbits(left, axis=1, bitorder="little"))
            found += zip(pcs[rows].tolist(), bits.tolist(), strict=True)
    return sorted(found)


@dataclass(frozen=True, slots=True)
class Explained:
    """Set bits of one instruction that lie in fields whose meaning is known with one confidence.

    ``share`` is the part of all set bits of the program that lie in fields.
    """

    opcode: int
    name: str
    confidence: Confidence
    bits: int
    share: float


def explained(program: DecodedChunk) -> tuple[Explained, ...]:
    """Return how well the set bits of ``program`` are understood, by opcode and confidence.

    Bits outside fields are no part of a :class:`DecodedChunk`; see :func:`unexplained_bits`.
    """
    counts: Counter[tuple[int, Confidence]] = Counter()
    for code, columns in program.columns.items():
        for field in INSTRUCTIONS[code].fields:
            mask = np.uint64((1 << field.width) - 1)
            raw = columns[field.name].astype(np.uint64) & mask
            # As np.bitwise_count(raw), which NumPy 1.26 lacks.
            bits_set = int(np.unpackbits(raw.view(np.uint8)).sum())
            counts[code, field.confidence] += bits_set
    total = counts.total()
    return tuple(
        Explained(code, INSTRUCTIONS[code].name, confidence, bits, bits / total)
        for (code, confidence), bits in sorted(counts.items())
        if bits
    )


def _opcodes(bundles: NDArray[np.uint8]) -> NDArray[np.int64]:
    header = bundles[:, :2].copy().view("<u2")[:, 0]
    opcodes: NDArray[np.int64] = ((header >> _OPCODE_SHIFT) & _OPCODE_MASK).astype(np.int64)
    return opcodes


def _boundaries(bundles: NDArray[np.uint8]) -> list[int]:
    """Bundle indices at which instructions start: a length is a function of the opcode alone."""
    opcodes = _opcodes(bundles).tolist()
    lengths = {code: entry.bundles for code, entry in INSTRUCTIONS.items()}
    starts: list[int] = []
    pc = 0
    while pc < len(opcodes):
        length = lengths.get(opcodes[pc])
        if length is None:
            raise DecodeError(pc, f"unknown opcode {opcodes[pc]}", opcodes[pc])
        starts.append(pc)
        pc += length
    if pc > len(opcodes):
        raise DecodeError(starts[-1], "the instruction runs over the end of the stream")
    return starts


class _Layout(NamedTuple):
    """Where the fields of an opcode are, in arrays: all repetitions of a field, then the next.

    ``first`` is the byte in which a field begins, ``shift`` its bit there; ``sign`` is the top bit
    of a signed one, or 0. ``known`` has every bit of the instruction that lies in a field.
    """

    first: NDArray[np.int64]
    shift: NDArray[np.uint64]
    mask: NDArray[np.uint64]
    sign: NDArray[np.int64]
    known: NDArray[np.uint8]


@cache
def _layout(code: int) -> _Layout:
    instruction = INSTRUCTIONS[code]
    places = [(field, offset) for field in instruction.fields for offset in field.offsets()]
    known = sum(((1 << field.width) - 1) << offset for field, offset in places)
    size = BUNDLE_BYTES * instruction.bundles
    return _Layout(
        np.array([offset // 8 for _, offset in places], np.int64),
        np.array([[offset % 8] for _, offset in places], np.uint64),
        np.array([[(1 << field.width) - 1] for field, _ in places], np.uint64),
        np.array([[field.signed << (field.width - 1)] for field, _ in places], np.int64),
        np.frombuffer(known.to_bytes(size, "little"), np.uint8),
    )


def _bytes_of(
    instruction: Instruction, bundles: NDArray[np.uint8], pcs: NDArray[np.int64]
) -> NDArray[np.uint8]:
    """The instructions at ``pcs``, a row each."""
    rows: NDArray[np.uint8] = bundles[pcs[:, None] + np.arange(instruction.bundles)]
    return rows.reshape(len(pcs), -1)


def _decode_columns(
    instruction: Instruction, bundles: NDArray[np.uint8], pcs: NDArray[np.int64]
) -> Columns:
    layout = _layout(instruction.opcode)
    size = BUNDLE_BYTES * instruction.bundles
    # Eight bytes of padding: a field is read through the 64-bit word that starts at its first byte.
    raw = np.zeros((len(pcs), size + _WORD_BYTES), np.uint8)
    raw[:, :size] = _bytes_of(instruction, bundles, pcs)
    words = np.ndarray((size, len(pcs)), "<u8", raw, strides=(1, size + _WORD_BYTES))
    values = ((words[layout.first] >> layout.shift) & layout.mask).view(np.int64)
    values = (values ^ layout.sign) - layout.sign
    columns: Columns = {}
    at = 0
    for field in instruction.fields:
        column = values[at : at + field.count]
        columns[field.name] = column[0] if field.count == 1 else column.T.copy()
        at += field.count
    return columns


class _Place(NamedTuple):
    """Where the numbers of a field are, and which it holds."""

    field: Field
    offsets: tuple[int, ...]
    low: int
    high: int
    mask: int


@cache
def _places(code: int) -> Mapping[str, _Place]:
    """The fields of an opcode by name."""
    return {
        field.name: _Place(field, field.offsets(), *field.range, (1 << field.width) - 1)
        for field in INSTRUCTIONS[code].fields
    }


def _encode_operation(instruction: Instruction, values: Mapping[str, int | Sequence[int]]) -> bytes:
    """In one integer: arrays of one row took 20 times as long."""
    places = _places(instruction.opcode)
    raw = 0
    for name, value in {"opcode": instruction.opcode, **values}.items():
        if name not in places:
            raise KeyError(f"{instruction.name} has no field {name}")
        field, offsets, low, high, mask = places[name]
        numbers = [index(item) for item in (value if isinstance(value, Sequence) else [value])]
        if len(numbers) != field.count:
            raise ValueError(
                f"{instruction.name}.{name} takes {field.count} values, not {len(numbers)}"
            )
        for number, offset in zip(numbers, offsets, strict=True):
            if not low <= number <= high:
                _check_range(instruction, field, number, number)
            raw |= (number & mask) << offset
    return raw.to_bytes(BUNDLE_BYTES * instruction.bundles, "little")


def _check_range(instruction: Instruction, field: Field, lowest: int, highest: int) -> None:
    low, high = field.range
    if lowest < low or highest > high:
        raise ValueError(
            f"{instruction.name}.{field.name} holds {field.width} bits ({low} to {high}), "
            f"not {lowest if lowest < low else highest}"
        )
