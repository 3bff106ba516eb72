"""Messages between the delegate in C and the chip's process, and how Python sends them.

A message is :class:`Header` and its content. The chip's process begins with DONE or ERROR; then
each request has one answer.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Sequence
from typing import Annotated

from darwinn_testbench.device.sockets import take
from darwinn_testbench.device.wire import (
    F32,
    I32,
    U32,
    U64,
    Content,
    MessageError,
    Numbered,
    Numbers,
    Octets,
    Record,
    Text,
    list_of,
)

CHIP_SOCKET = 3
"""File descriptor of the connection in the chip's process."""

CHIPS_VARIABLE = "DARWINN_CHIPS"
"""The variable of the environment that says how many chips an application has; 1 without it."""

MAX_CHIPS = 16
"""The most that it may have."""

DEVICE_PREFIX = "darwinn:"
"""Path of a chip in the list of devices, before its number."""

MAGIC = int.from_bytes(b"EDTP", "little")

MAXIMUM_BYTES = 1 << 30
"""Content of a message, at most."""

TIME_LIMIT = 600.0
"""Seconds within which a message that has begun must be complete: a debugger may have stopped the
application in its middle."""


class Kind(Numbered):
    """Kinds of messages; a part is a number of 32 bits."""

    DONE = 0, "the answer to a request"
    ERROR = 1, "the reason, as text, why there is none"
    OPEN = 2, "struct opening; answered with a part, and the dimensions of what RUN gets"
    RUN = 3, "a part, bytes of inputs; answered with outputs, then next values of variable inputs"
    CLOSE = 4, "a part that is not needed any more"


class TensorFlag(Numbered):
    """What a tensor is."""

    VARIABLE = 1
    CONSTANT = 2


class Header(Record, frozen=True):
    """The beginning of a message."""

    magic: Annotated[U32, "MAGIC"]
    kind: Annotated[U32, "enum kind"]
    size: Annotated[U64, "bytes of content, MAXIMUM_BYTES at most"]


class SentTensor(Record, frozen=True):
    """A tensor of OPEN."""

    index: Annotated[U32, "in the model"]
    type: Annotated[U32, "TensorFlow Lite's number"]
    scale: Annotated[F32, "0 if it is not quantized"]
    zero_point: Annotated[I32, "of the quantization"]
    flags: Annotated[U32, "enum tensor_flag"]
    shape: Annotated[Numbers, "dimensions"]
    name: Annotated[Text, "for messages"]
    constant: Annotated[Octets, "of a constant"]


class SentOperator(Record, frozen=True):
    """An operator of OPEN."""

    name: Annotated[Text, "of the custom operator"]
    options: Annotated[Octets, "as the model has them"]
    inputs: Annotated[Numbers, "indices of tensors"]
    outputs: Annotated[Numbers, "indices of tensors"]


class Opening(Record, frozen=True):
    """The content of OPEN: operators that run one after another."""

    operators: Annotated[tuple[SentOperator, ...], list_of(SentOperator), "in their order"]
    tensors: Annotated[tuple[SentTensor, ...], list_of(SentTensor), "all that operators name"]
    inputs: Annotated[Numbers, "indices of the tensors that RUN sends"]
    outputs: Annotated[Numbers, "indices of the tensors that RUN gets"]


class Broken(Exception):
    """A stream that cannot go on: no header, a message too large, half a message."""


def read_opening(data: bytes | bytearray) -> Opening:
    """The content of OPEN; MessageError if it is not."""
    content = Content(data)
    opening = Opening.read(content)
    content.end()
    named = {k for each in opening.operators for k in (*each.inputs, *each.outputs)}
    there = {each.index for each in opening.tensors}
    for index in sorted({*named, *opening.inputs, *opening.outputs} - there):
        raise MessageError(f"there is no tensor {index}")
    return opening


def receive(connection: socket.socket) -> tuple[Kind, bytearray] | None:
    """The next message; None at the end of the stream. Broken if what comes is none."""
    connection.settimeout(None)
    first = connection.recv(1)
    if not first:
        return None
    deadline = time.monotonic() + TIME_LIMIT
    data = first + _rest(connection, Header.layout.size - 1, deadline)
    header = Header.unpack(data)
    if header.magic != MAGIC or header.kind not in set(Kind):
        raise Broken(f"no message begins with {data.hex()}")
    if header.size > MAXIMUM_BYTES:
        raise Broken(f"a message of {header.size} bytes, more than {MAXIMUM_BYTES}")
    return Kind(header.kind), _rest(connection, header.size, deadline)


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
    header = Header(magic=MAGIC, kind=kind, size=sum(map(len, content)))
    connection.sendall(header.pack())
    for each in content:
        connection.sendall(each)
