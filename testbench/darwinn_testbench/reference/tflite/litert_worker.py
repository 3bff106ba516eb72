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
    """The interpreter of one model and the requests that it answers."""

    def __init__(self) -> None:
        self._interpreter: Any = None

    def answer(self, header: Mapping[str, Any], arrays: Sequence[NDArray[Any]]) -> Frame:
        if header["request"] == "prepare":
            return self._prepare(arrays[0].tobytes(), header["kernels"])
        return self._run(header["indices"], arrays, header["wanted"])

    def _prepare(self, model: bytes, kernels: str) -> Frame:
        from ai_edge_litert.interpreter import Interpreter, OpResolverType

        self._interpreter = Interpreter(
            model_content=model,
            experimental_op_resolver_type=OpResolverType[kernels],
            experimental_preserve_all_tensors=True,
            num_threads=1,
        )
        self._interpreter.allocate_tensors()
        return {}, []

    def _run(
        self, indices: Sequence[int], values: Sequence[NDArray[Any]], wanted: Sequence[int]
    ) -> Frame:
        self._interpreter.reset_all_variables()
        for index, value in zip(indices, values, strict=True):
            self._interpreter.set_tensor(index, value)
        self._interpreter.invoke()
        computed: dict[int, NDArray[Any]] = {}
        lacking: dict[int, str] = {}
        for index in wanted:
            try:
                computed[index] = np.asarray(self._interpreter.get_tensor(index))
            except ValueError as fault:
                lacking[index] = str(fault)
        strings = {index for index, value in computed.items() if value.dtype.hasobject}
        lacking |= dict.fromkeys(strings, "strings are not compared")
        numbers = {index: each for index, each in computed.items() if index not in strings}
        header = {"indices": list(numbers), "lacking": list(lacking.items())}
        return header, list(numbers.values())


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
