"""The process in which LiteRT runs: a damaged model can crash or hang it, and nothing else.

Requests and replies are frames on standard input and output: the length of a JSON header, the
header, and the bytes of the arrays that the header's ``arrays`` describes (dtype, shape).
"""

from __future__ import annotations

import json
import os
import resource
import struct
import sys
import time
from collections.abc import Mapping, Sequence
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

MAXIMUM_MEMORY = 8 * 2**30
"""Bytes of address space of the process, at most."""

_LENGTH = struct.Struct("<Q")

Frame = tuple[dict[str, Any], list[NDArray[Any]]]


def send(stream: IO[bytes], header: Mapping[str, Any], arrays: Sequence[NDArray[Any]]) -> None:
    """Write one frame."""
    described = [{"dtype": each.dtype.str, "shape": each.shape} for each in arrays]
    text = json.dumps({**header, "arrays": described}).encode()
    stream.write(_LENGTH.pack(len(text)))
    stream.write(text)
    for each in arrays:
        stream.write(np.ascontiguousarray(each).reshape(-1).view(np.uint8).data)
    stream.flush()


def receive(stream: IO[bytes]) -> Frame:
    """Read one frame; EOFError if the stream ends before its end."""
    (length,) = _LENGTH.unpack(_read(stream, _LENGTH.size))
    header = json.loads(_read(stream, length))
    arrays = []
    for each in header.pop("arrays"):
        dtype, shape = np.dtype(each["dtype"]), tuple(each["shape"])
        data = _read(stream, dtype.itemsize * int(np.prod(shape, dtype=np.int64)))
        arrays.append(np.frombuffer(data, dtype).reshape(shape))
    return header, arrays


def _read(stream: IO[bytes], size: int) -> bytes:
    data = stream.read(size)
    if len(data) != size:
        raise EOFError("the stream ends inside a frame")
    return data


class _Session:
    """The interpreters of a model's parts, by number, and the requests that they answer."""

    def __init__(self) -> None:
        self._interpreters: dict[int, Any] = {}

    def answer(self, header: Mapping[str, Any], arrays: Sequence[NDArray[Any]]) -> Frame:
        part = header.get("part", 0)
        match header["request"]:
            case "describe":
                return _described(arrays[0].tobytes()), []
            case "prepare":
                return self._prepare(part, arrays[0].tobytes(), header)
            case "forget":
                self._interpreters.clear()
                return {}, []
            case "reset":
                for interpreter in self._interpreters.values():
                    interpreter.reset_all_variables()
                return {}, []
        interpreter = self._interpreters[part]
        if not header.get("stateful"):
            interpreter.reset_all_variables()
        return _run(interpreter, header["indices"], arrays, header["wanted"])

    def _prepare(self, part: int, model: bytes, options: Mapping[str, Any]) -> Frame:
        from ai_edge_litert.interpreter import Interpreter, OpResolverType

        interpreter = Interpreter(
            model_content=model,
            experimental_op_resolver_type=OpResolverType[options["kernels"]],
            experimental_preserve_all_tensors=options.get("preserve", True),
            num_threads=options.get("threads", 1),
        )
        interpreter.allocate_tensors()
        self._interpreters[part] = interpreter
        tensors = interpreter.get_tensor_details()
        return {"shapes": [(each["index"], each["shape"].tolist()) for each in tensors]}, []


def _run(
    interpreter: Any,
    indices: Sequence[int],
    values: Sequence[NDArray[Any]],
    wanted: Sequence[int],
) -> Frame:
    for index, value in zip(indices, values, strict=True):
        interpreter.set_tensor(index, value)
    begin = time.perf_counter()
    interpreter.invoke()
    seconds = time.perf_counter() - begin
    computed: dict[int, NDArray[Any]] = {}
    lacking: dict[int, str] = {}
    for index in wanted:
        try:
            computed[index] = np.asarray(interpreter.get_tensor(index))
        except ValueError as fault:
            lacking[index] = str(fault)
    strings = {index for index, value in computed.items() if value.dtype.hasobject}
    lacking |= dict.fromkeys(strings, "strings are not compared")
    numbers = {index: each for index, each in computed.items() if index not in strings}
    header = {"indices": list(numbers), "lacking": list(lacking.items()), "seconds": seconds}
    return header, list(numbers.values())


def _described(model: bytes) -> dict[str, Any]:
    """What LiteRT says of a whole model's tensors and signatures, before anything is allocated."""
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(model_content=model)
    return {
        "tensors": [_plain(each) for each in interpreter.get_tensor_details()],
        "signatures": interpreter._get_full_signature_list(),
    }


def _plain(value: Any) -> Any:
    """A value of JSON for what LiteRT says of a tensor."""
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, np.ndarray):
        return {"array": value.tolist(), "dtype": value.dtype.str}
    if isinstance(value, type):
        return {"type": np.dtype(value).str}
    return value


def main() -> None:
    """Answer requests until standard input ends."""
    resource.setrlimit(resource.RLIMIT_AS, (MAXIMUM_MEMORY, MAXIMUM_MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # Native code may print; only frames may reach the pipe.
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    session = _Session()
    while True:
        try:
            header, arrays = receive(sys.stdin.buffer)
        except EOFError:
            return
        try:
            reply, results = session.answer(header, arrays)
        except (MemoryError, RuntimeError, TypeError, ValueError) as fault:
            reply, results = {"error": " ".join(str(fault).split())}, []
        send(replies, reply, results)


if __name__ == "__main__":
    main()
