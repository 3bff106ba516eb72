"""The chip's process: answers one delegate (``messages``) until that is gone.

    python -m darwinn_testbench.device.delegate.server [KEY=VALUE...]

The delegate starts it with a connected socket as file descriptor 3. Options are those of the
delegate; what is wrong with one is the first answer.
"""

from __future__ import annotations

import math
import os
import re
import select
import socket
import struct
import sys
import threading
import traceback
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from darwinn_formats.errors import FormatError
from darwinn_formats.flatbuffer import Span
from darwinn_sim.errors import SimulationError
from darwinn_sim.kernel.compiling import announced
from numpy.typing import NDArray

from darwinn_testbench.chip.inputs import TensorPort
from darwinn_testbench.chip.operators.chip_operator import operator_on
from darwinn_testbench.chip.operators.custom_operator import PlacedOperator
from darwinn_testbench.chip.operators.kinds import NAMES, make
from darwinn_testbench.chip.operators.parts import CustomPart, Values
from darwinn_testbench.chip.session import Device
from darwinn_testbench.device.delegate.messages import (
    CHIP_SOCKET,
    CHIPS_VARIABLE,
    DEVICE_PREFIX,
    MAX_CHIPS,
    Broken,
    Kind,
    Opening,
    SentTensor,
    TensorFlag,
    read_opening,
    receive,
    send,
)
from darwinn_testbench.device.wire import Content, MessageError
from darwinn_testbench.errors import InputError

MAXIMUM_PARTS = 64
"""Parts that are open at the same time, at most: each may have a chip."""

MAXIMUM_TENSOR = 1 << 28
"""Elements of a tensor, at most."""

_FLAGS: Mapping[str, bool] = {"strict": False, "assumptions": True}
"""Options of the chip with their defaults."""

_DEVICE = rf"(?:(?:usb|pci)?(?::(\d+))?|{DEVICE_PREFIX}(\d+))"
"""A chip as the vendor's library names it, or by its path in the list of devices."""

_WITHOUT_EFFECT: Mapping[str, tuple[str, str]] = {
    "device": (_DEVICE, "usb, pci, :N, usb:N, pci:N"),
    "Performance": ("low|medium|high|max", "low, medium, high, max"),
    "Usb.AlwaysDfu": ("true|false", "true, false"),
    "Usb.MaxBulkInQueueLength": (r"\d{1,3}", "0 to 999"),
}
"""Options of the vendor's library, and what it takes for each in any case of letters: as a pattern
and in words."""

_MAXIMUM_DIGITS = 9
"""Digits of a number of seconds, at most."""

_TRUTH = {"0": False, "false": False, "no": False, "1": True, "true": True, "yes": True}

_DTYPES = {
    number: np.dtype(name)
    for number, name in {
        1: "f4",
        2: "i4",
        3: "u1",
        4: "i8",
        6: "?",
        7: "i2",
        9: "i1",
        10: "f2",
        11: "f8",
        13: "u8",
        16: "u4",
        17: "u2",
    }.items()
}
"""Types of TensorFlow Lite's C interface by their numbers, which are not those of its files."""

_ERRORS = (InputError, MessageError, SimulationError, ValueError, MemoryError)
"""What is wrong with a request, and not with this process."""


def main(arguments: Sequence[str]) -> int:
    """Answer requests until the stream ends; 1 if it breaks off."""
    connection = socket.socket(fileno=CHIP_SOCKET)
    threading.Thread(target=_end_with, args=(connection.fileno(),), daemon=True).start()
    try:
        flags = flags_of(arguments)
    except InputError as error:
        send(connection, Kind.ERROR, [_line(error)])
        return 1
    try:
        send(connection, Kind.DONE, [])
        with announced(_announce):
            Answers(flags).serve(connection)
    except (Broken, OSError) as error:
        print(f"darwinn: {error}", file=sys.stderr)
        return 1
    return 0


def _announce() -> None:
    print(
        "darwinn: compiling the model of the chip, once: about a minute of processor time",
        file=sys.stderr,
    )


def _end_with(descriptor: int) -> None:
    """End this process with the one at the other end of its socket, whatever is being computed."""
    waiting = select.poll()
    waiting.register(descriptor, select.POLLHUP)
    waiting.poll()
    os._exit(1)


def flags_of(arguments: Sequence[str]) -> dict[str, bool]:
    """Options of the chip from ``KEY=VALUE``; InputError for one that there is not.

    The delegate itself reads ``timeout``, and cannot say what is wrong with it.
    """
    flags = dict(_FLAGS)
    for argument in arguments:
        key, _, value = argument.partition("=")
        if key in flags:
            if value.lower() not in _TRUTH:
                raise InputError(f"option {key}: {value!r} is neither true nor false")
            flags[key] = _TRUTH[value.lower()]
        elif key == "timeout":
            digits = value.isascii() and value.isdigit() and len(value) <= _MAXIMUM_DIGITS
            if not (digits and int(value)):
                raise InputError(
                    f"option timeout: {value[:20]!r} is no number of seconds (1 to 999999999)"
                )
        elif key in _WITHOUT_EFFECT:
            pattern, values = _WITHOUT_EFFECT[key]
            found = re.fullmatch(pattern, value, re.IGNORECASE | re.ASCII)
            if not found:
                raise InputError(f"option {key}: {value!r} is none of its values ({values})")
            if key == "device":
                _check_chip(next(filter(None, found.groups()), "0"))
        else:
            known = ", ".join(sorted({*flags, *_WITHOUT_EFFECT, "timeout"}))
            raise InputError(f"there is no option {key!r}, only {known}")
    return flags


def _check_chip(number: str) -> None:
    """Refuse a chip that the application does not have."""
    given = os.environ.get(CHIPS_VARIABLE, "1")
    if given not in map(str, range(1, MAX_CHIPS + 1)):
        raise InputError(f"{CHIPS_VARIABLE}: {given!r} is no number of chips (1 to {MAX_CHIPS})")
    if len(number) > _MAXIMUM_DIGITS or int(number) >= int(given):
        raise InputError(
            f"option device: there is no chip {number[:_MAXIMUM_DIGITS]}, only 0 to "
            f"{int(given) - 1}; darwinn delegate --chips N or {CHIPS_VARIABLE}=N gives N chips"
        )


class Answers:
    """The parts of one delegate, by number, and the answers to its requests."""

    def __init__(self, flags: Mapping[str, bool]) -> None:
        self._flags = flags
        self._parts: dict[int, OpenPart] = {}
        self._count = 0

    def serve(self, connection: socket.socket) -> None:
        """Answer until the stream ends; Broken or OSError if it breaks off."""
        while (message := receive(connection)) is not None:
            try:
                answer = self.answer(*message)
            except FormatError as error:
                named = error if error.file else error.with_file("the custom operator of the model")
                send(connection, Kind.ERROR, [_line(named)])
            except _ERRORS as error:
                send(connection, Kind.ERROR, [_line(error)])
            except Exception as error:
                # A defect of this program: the application is told, and the others go on.
                traceback.print_exc()
                text = f"internal error, please report it: {type(error).__name__}: ".encode()
                send(connection, Kind.ERROR, [text, _line(error)])
            else:
                send(connection, Kind.DONE, answer)

    def answer(self, kind: Kind, data: bytes | bytearray) -> list[bytes]:
        """The content of the answer; one of several errors if there is none."""
        if kind is Kind.OPEN:
            return self._open(data)
        content = Content(data)
        number = content.number()
        if kind not in (Kind.RUN, Kind.CLOSE) or number not in self._parts:
            raise MessageError(f"{kind.name} of part {number}, which is not open")
        if kind is Kind.CLOSE:
            del self._parts[number]
            return []
        return self._parts[number].run(content)

    def _open(self, data: bytes | bytearray) -> list[bytes]:
        if len(self._parts) == MAXIMUM_PARTS:
            raise MessageError(f"{MAXIMUM_PARTS} parts are open, no more can be")
        part = OpenPart(read_opening(data), self._flags)
        self._count += 1
        self._parts[self._count] = part
        shapes = [part.shapes[index] for index in part.opening.outputs]
        described = (struct.pack(f"=I{len(shape)}i", len(shape), *shape) for shape in shapes)
        return [struct.pack("=I", self._count), *described]


class OpenPart:
    """Custom operators that run one after another, ready to run.

    Raises:
        FormatError, InputError: operators or tensors that are not valid.
        SimulationError: the chip refuses a program.
    """

    def __init__(self, opening: Opening, flags: Mapping[str, bool]) -> None:
        self.opening = opening
        ports = {each.index: _port(each) for each in opening.tensors}
        for each in opening.operators:
            if each.name not in NAMES:
                raise InputError(f"there is no custom operator {each.name!r}")
        self.part = CustomPart(
            [
                (
                    make(
                        PlacedOperator(
                            each.name,
                            Span(memoryview(each.options)),
                            tuple(ports[k] for k in each.inputs),
                            tuple(ports[k] for k in each.outputs),
                        ),
                        lambda place: operator_on(
                            place,
                            Device(strict=flags["strict"], assumptions=flags["assumptions"]),
                        ),
                    ),
                    each.inputs,
                    each.outputs,
                )
                for each in opening.operators
            ]
        )
        self.part.prepare()
        self.shapes = self.part.shapes
        self._given = [(index, ports[index]) for index in opening.inputs]
        self._constants: Values = {
            each.index: _array(Content(each.constant), ports[each.index])
            for each in opening.tensors
            if each.flags & TensorFlag.CONSTANT
        }

    def run(self, content: Content) -> list[bytes]:
        """The outputs for inputs, then the next values of variables."""
        values = dict(self._constants)
        for index, port in self._given:
            values[index] = _array(content, port)
        content.end()
        self.part.run(values)
        tensors = self.opening.tensors
        variables = {each.index for each in tensors if each.flags & TensorFlag.VARIABLE}
        states = [index for index in self.opening.inputs if index in variables]
        return [values[index].tobytes() for index in (*self.opening.outputs, *states)]


def _array(content: Content, port: TensorPort) -> NDArray[Any]:
    """The tensor that comes next."""
    size = port.dtype.itemsize * math.prod(port.shape)
    return np.frombuffer(content.take(size), port.dtype).reshape(port.shape)


def _port(tensor: SentTensor) -> TensorPort:
    dtype = _DTYPES.get(tensor.type)
    if dtype is None:
        raise InputError(f"tensor {tensor.name} has elements of type {tensor.type}")
    if min(tensor.shape, default=0) < 0 or math.prod(tensor.shape) > MAXIMUM_TENSOR:
        raise InputError(f"tensor {tensor.name} has the shape {list(tensor.shape)}")
    return TensorPort(tensor.name, tensor.shape, dtype, tensor.scale, tensor.zero_point)


def _line(error: Exception) -> bytes:
    return " ".join(str(error).split()).encode()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
