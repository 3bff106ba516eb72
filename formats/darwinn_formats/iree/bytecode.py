"""Functions of a module as instructions, and back: decoder and encoder of the opcode table.

Byte offsets within a function (``pc``) count from its first byte.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from darwinn_formats.errors import FormatError
from darwinn_formats.iree.opcodes import (
    BY_MNEMONIC,
    CORE,
    OPERATIONS,
    Field,
    Operation,
)

Operand = int | bytes | tuple[int, ...] | tuple[tuple[int, int], ...] | tuple[Any, ...]
"""Value of a field as the bytes hold it.

Registers, ordinals and block offsets are numbers, immediate integers signed; immediate floats are
their bits. Texts are bytes, lists tuples of numbers, copies tuples of (source, destination), and
cases tuples of (block, copies).
"""

_IMMEDIATES: Mapping[str, struct.Struct] = {
    "i": struct.Struct("<i"),
    "l": struct.Struct("<q"),
    "f": struct.Struct("<I"),
    "d": struct.Struct("<Q"),
}
_U16 = struct.Struct("<H")
_U32 = struct.Struct("<I")
_PAIR_BYTES = 4
_REGISTER_KINDS = frozenset("ilfdr*")
_ORDINAL_KINDS = frozenset("GTOFB")


@dataclass(frozen=True, slots=True)
class Instruction:
    """An operation with its operands, one ``Operand`` for each field, from ``pc`` to ``end``."""

    pc: int
    end: int
    operation: Operation
    operands: tuple[Any, ...]

    @property
    def mnemonic(self) -> str:
        """Name of the operation."""
        return self.operation.mnemonic

    def fields(self) -> Iterator[tuple[Field, Any]]:
        """Each field of the operation with its operand."""
        return zip(self.operation.fields, self.operands, strict=True)

    def of_kind(self, kind: str) -> Iterator[Any]:
        """Operands of the fields of a kind."""
        return (operand for field, operand in self.fields() if field.kind == kind)


def decode(body: bytes | memoryview, base: int = 0) -> Iterator[Instruction]:
    """Decode a function to its last byte; ``base`` is added to the offsets of errors.

    Raises:
        FormatError: at a byte that is no opcode, or a field that ends after the function.
    """
    reader = _Reader(memoryview(body), base)
    while reader.position < len(reader.body):
        yield reader.instruction()


def encode(instructions: Iterable[tuple[str, Sequence[Operand]]]) -> bytes:
    """Bytes of a function from mnemonics and operands; what ``decode`` gives encodes to the same.

    Raises:
        FormatError: an operation that is not known, or an operand that does not fit its field.
    """
    body = bytearray()
    for mnemonic, operands in instructions:
        operation = BY_MNEMONIC.get(mnemonic)
        if operation is None:
            raise FormatError(mnemonic, "no operation has this name")
        if len(operands) != len(operation.fields):
            count = len(operation.fields)
            raise FormatError(mnemonic, f"{len(operands)} operands for {count} fields")
        if operation.prefix != CORE:
            body.append(operation.prefix)
        body.append(operation.opcode)
        try:
            for field, operand in zip(operation.fields, operands, strict=True):
                _encode_field(body, field, operand)
        except (struct.error, TypeError, ValueError) as error:
            raise FormatError(mnemonic, f"operand does not fit its field: {error}") from None
    return bytes(body)


def _encode_field(body: bytearray, field: Field, operand: Any) -> None:
    if field.kind in _REGISTER_KINDS:
        body += _U16.pack(operand)
    elif field.kind == "#":
        body += _IMMEDIATES[field.type].pack(operand)
    elif field.kind in _ORDINAL_KINDS:
        body += _U32.pack(operand)
    elif field.kind == "S":
        body += _U16.pack(len(operand)) + operand
    elif field.kind == "V":
        body += bytes(len(body) % 2) + struct.pack(f"<{1 + len(operand)}H", len(operand), *operand)
    elif field.kind == "M":
        flat = [register for pair in operand for register in pair]
        body += bytes(len(body) % 2) + struct.pack(f"<{1 + len(flat)}H", len(operand), *flat)
    else:
        body += _U16.pack(len(operand))
        for block, copies in operand:
            _encode_field(body, Field("B"), block)
            _encode_field(body, Field("M"), copies)


class _Reader:
    """A position in the bytes of a function."""

    def __init__(self, body: memoryview, base: int) -> None:
        self.body = body
        self.base = base
        self.position = 0

    def fault(self, field: str, reason: str) -> FormatError:
        return FormatError(field, reason, offset=self.base + self.position)

    def instruction(self) -> Instruction:
        pc = self.position
        prefix, opcode = CORE, self.body[pc]
        self.position += 1
        if opcode in OPERATIONS and opcode != CORE:
            prefix, opcode = opcode, self._byte()
        operation = OPERATIONS[prefix].get(opcode)
        if operation is None:
            self.position = pc
            text = f"{opcode:#04x}" if prefix == CORE else f"{prefix:#04x} {opcode:#04x}"
            raise self.fault("opcode", f"no operation has the opcode {text}")
        operands = tuple(self._operand(field, operation) for field in operation.fields)
        return Instruction(pc, self.position, operation, operands)

    def _operand(self, field: Field, operation: Operation) -> Operand:
        name = operation.mnemonic
        if field.kind in _REGISTER_KINDS:
            return self._number(_U16, name)
        if field.kind == "#":
            return self._number(_IMMEDIATES[field.type], name)
        if field.kind in _ORDINAL_KINDS:
            return self._number(_U32, name)
        if field.kind == "S":
            return bytes(self._take(self._number(_U16, name), name))
        if field.kind == "V":
            return self._list(name)
        if field.kind == "M":
            return self._copies(name)
        return self._cases(name)

    def _byte(self) -> int:
        return self._take(1, "opcode")[0]

    def _take(self, size: int, name: str) -> memoryview:
        end = self.position + size
        if end > len(self.body):
            raise self.fault(
                name, f"{size} bytes are needed, {len(self.body) - self.position} left"
            )
        start, self.position = self.position, end
        return self.body[start:end]

    def _number(self, codec: struct.Struct, name: str) -> int:
        value: int = codec.unpack(self._take(codec.size, name))[0]
        return value

    def _count(self, name: str) -> int:
        self._take(self.position % 2, name)
        return self._number(_U16, name)

    def _list(self, name: str) -> tuple[int, ...]:
        count = self._count(name)
        return struct.unpack(f"<{count}H", self._take(_U16.size * count, name))

    def _copies(self, name: str) -> tuple[tuple[int, int], ...]:
        count = self._count(name)
        return tuple(struct.iter_unpack("<HH", self._take(_PAIR_BYTES * count, name)))

    def _cases(self, name: str) -> tuple[Any, ...]:
        count = self._number(_U16, name)
        return tuple((self._number(_U32, name), self._copies(name)) for _ in range(count))
