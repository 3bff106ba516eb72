"""Messages between the delegate in C and the chip's process, in the byte order of the machine.

A message is a header (magic ``EDTP``, kind, both 32 bits, and the size of the rest, 64 bits) and
its content. The chip's process begins with DONE or ERROR; then each request has one answer:

OPEN: operators that run one after another. Their count; of each its name, its options (a 64-bit
size and bytes), indices of its inputs and of its outputs; then the count of tensors, and of each
its index, type of TensorFlow Lite, scale (float), zero point, flags (1: a variable, 2: a constant),
dimensions, name, and a constant's bytes behind their 64-bit size; then the indices of the tensors
that RUN sends, and of those that it gets. The answer has the number of the part, and the dimensions
of what RUN gets.

RUN: the number of a part and the bytes of its inputs. The answer has the bytes of its outputs, then
the next values of the variables among its inputs, in their order.

CLOSE: the number of a part that is not needed any more.

Numbers have 32 bits unless they say otherwise; names, indices and dimensions begin with their
count. An answer of the kind ERROR is the reason as text.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from darwinn_testbench.device.sockets import take

HEADER = struct.Struct("=4sIQ")
MAGIC = b"EDTP"

MAXIMUM_BYTES = 1 << 30
"""Content of a message, at most."""

MAXIMUM_COUNT = 1 << 12
"""Operators, tensors, indices or dimensions of one list, at most."""

TIME_LIMIT = 600.0
"""Seconds within which a message that has begun must be complete: a debugger may have stopped the
application in its middle."""


class Kind(IntEnum):
    """What a message is."""

    DONE = 0
    ERROR = 1
    OPEN = 2
    RUN = 3
    CLOSE = 4


class MessageError(Exception):
    """Content that is not what its kind says."""


class Broken(Exception):
    """A stream that cannot go on: no header, a message too large, half a message."""


@dataclass(frozen=True)
class SentTensor:
    """A tensor of OPEN; ``type`` is TensorFlow Lite's number."""

    index: int
    type: int
    scale: float
    zero_point: int
    variable: bool
    shape: tuple[int, ...]
    name: str
    constant: bytes | None


@dataclass(frozen=True)
class SentOperator:
    """An operator of OPEN."""

    name: str
    options: bytes
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


@dataclass(frozen=True)
class Opening:
    """The content of OPEN."""

    operators: tuple[SentOperator, ...]
    tensors: dict[int, SentTensor]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


class Content:
    """Reads the content of a message from its beginning to its end."""

    def __init__(self, data: bytes | bytearray) -> None:
        self._data = memoryview(data)
        self._at = 0

    def take(self, size: int) -> memoryview:
        """The next bytes."""
        if size > len(self._data) - self._at:
            raise MessageError(f"the message ends at byte {len(self._data)}, within a field")
        self._at += size
        return self._data[self._at - size : self._at]

    def record(self, codes: str) -> tuple[Any, ...]:
        """The next numbers, by their codes in :mod:`struct`."""
        format_ = f"={codes}"
        return struct.unpack(format_, self.take(struct.calcsize(format_)))

    def number(self, code: str = "I") -> Any:
        """The next number, by its code in :mod:`struct`."""
        return self.record(code)[0]

    def count(self) -> int:
        """How many entries follow."""
        count: int = self.number()
        if count > MAXIMUM_COUNT:
            raise MessageError(f"{count} entries, more than {MAXIMUM_COUNT}")
        return count

    def text(self) -> str:
        """A name, which need not be valid UTF-8."""
        return bytes(self.take(self.number())).decode("utf-8", "replace")

    def numbers(self) -> tuple[int, ...]:
        """Indices, or dimensions."""
        count = self.count()
        return struct.unpack(f"={count}i", self.take(4 * count))

    def array(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> NDArray[Any]:
        """The next tensor."""
        size = dtype.itemsize * int(np.prod(shape, dtype=np.int64))
        return np.frombuffer(self.take(size), dtype).reshape(shape)

    def end(self) -> None:
        """Nothing may follow."""
        if self._at != len(self._data):
            raise MessageError(f"{len(self._data) - self._at} bytes too many")


def read_opening(data: bytes | bytearray) -> Opening:
    """The content of OPEN; MessageError if it is not."""
    content = Content(data)
    operators = tuple(
        SentOperator(content.text(), bytes(content.take(content.number("Q"))), *_two_lists(content))
        for _ in range(content.count())
    )
    tensors = {each.index: each for each in (_tensor(content) for _ in range(content.count()))}
    inputs, outputs = _two_lists(content)
    content.end()
    named = {k for each in operators for k in (*each.inputs, *each.outputs)}
    for index in sorted({*named, *inputs, *outputs} - tensors.keys()):
        raise MessageError(f"there is no tensor {index}")
    return Opening(operators, tensors, inputs, outputs)


def _two_lists(content: Content) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return content.numbers(), content.numbers()


def _tensor(content: Content) -> SentTensor:
    index, type_, scale, zero_point, flags = content.record("IIfiI")
    shape, name = content.numbers(), content.text()
    data = bytes(content.take(content.number("Q")))
    return SentTensor(
        index, type_, scale, zero_point, bool(flags & 1), shape, name, data if flags & 2 else None
    )


def receive(connection: socket.socket) -> tuple[Kind, bytearray] | None:
    """The next message; None at the end of the stream. Broken if what comes is none."""
    connection.settimeout(None)
    first = connection.recv(1)
    if not first:
        return None
    deadline = time.monotonic() + TIME_LIMIT
    header = first + _rest(connection, HEADER.size - 1, deadline)
    magic, kind, size = HEADER.unpack(header)
    if magic != MAGIC or kind not in set(Kind):
        raise Broken(f"no message begins with {header.hex()}")
    if size > MAXIMUM_BYTES:
        raise Broken(f"a message of {size} bytes, more than {MAXIMUM_BYTES}")
    return Kind(kind), _rest(connection, size, deadline)


def _rest(connection: socket.socket, size: int, deadline: float) -> bytearray:
    try:
        return take(connection, size, deadline)
    except TimeoutError:
        raise Broken(f"a message was not complete within {TIME_LIMIT:g} s") from None
    except EOFError:
        raise Broken("the stream ends within a message") from None


def send(connection: socket.socket, kind: Kind, content: Sequence[bytes]) -> None:
    """Send a message; OSError if nobody is there to take it."""
    connection.settimeout(TIME_LIMIT)
    connection.sendall(HEADER.pack(MAGIC, kind, sum(map(len, content))))
    for each in content:
        connection.sendall(each)
