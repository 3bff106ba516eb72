"""LiteRT, the vendor's interpreter of TensorFlow Lite models, with every intermediate tensor.

The default kernels are LiteRT's reference kernels: plain C++ that follows the written arithmetic
of the quantised operators, the same on every machine. The optimised builtin kernels differ from
them in some tensors (the 16-bit double rounding of uint8 layers is done in another order), so they
are a choice, not the default. The XNNPACK delegate is never used: it fuses operators, so that
their intermediate tensors do not exist, and rounds in another way.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import struct
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from darwinn_formats import tflite
from darwinn_formats.errors import FormatError
from darwinn_formats.extras import require
from darwinn_formats.files import Source, read_file

from darwinn_reference.arrays import AnyArray
from darwinn_reference.errors import ModelError
from darwinn_reference.tflite import litert_worker
from darwinn_reference.tflite.graph import Network, Operator, TensorValues, network
from darwinn_reference.tflite.litert_worker import Frame, receive, send

Kernels = Literal["reference", "builtin"]

_RESOLVERS: dict[Kernels, str] = {
    "reference": "BUILTIN_REF",
    "builtin": "BUILTIN_WITHOUT_DEFAULT_DELEGATES",
}

WORKER = (sys.executable, "-m", litert_worker.__name__)
"""Command of LiteRT's process."""

TIME_LIMIT = 120.0
"""Seconds for one request, after which LiteRT's process is ended."""

KNOWN_CUSTOM_OPERATORS = frozenset({"AudioSpectrogram", "Mfcc", "TFLite_Detection_PostProcess"})
"""Custom operators that LiteRT's resolvers bring along."""

_INPUTS_SLOT, _OUTPUTS_SLOT, _OPERATORS_SLOT = 1, 2, 3
"""Slots of the SubGraph table of the TensorFlow Lite schema, version 3."""


class LiteRtReference:
    """A model in LiteRT. ``network`` is the whole model; ``missing`` names what LiteRT cannot do.

    Custom operators that LiteRT lacks (``custom_operators``), and the operators that depend on
    them, are left out, so that everything before them can still be compared. ``file`` names a
    model that is given as bytes; ``time_limit`` is for each request, in seconds.

    Raises:
        FormatError: the bytes are no valid TensorFlow Lite model.
        ModelError: LiteRT refuses the model, or no operator of it can run.
        OSError: the file cannot be read.
    """

    def __init__(
        self,
        model: Source,
        *,
        kernels: Kernels = "reference",
        file: str = "model",
        time_limit: float = TIME_LIMIT,
    ) -> None:
        self.file = file if isinstance(model, bytes) else os.fspath(model)
        data = model if isinstance(model, bytes) else read_file(model)
        try:
            parsed = tflite.load(data)
        except FormatError as fault:
            raise fault.with_file(self.file) from None
        self.network = network(parsed, self.file)
        kept, self.missing = _runnable(self.network)
        self.custom_operators = tuple(
            dict.fromkeys(
                each.name
                for each in self.network.operators
                if each.custom and each.name not in KNOWN_CUSTOM_OPERATORS
            )
        )
        if len(kept) != len(self.network.operators):
            data = self._without_the_others(data, parsed, kept)
        self._data, self._kernels, self._time_limit = data, kernels, time_limit
        self._process = self._start()

    def run(
        self, inputs: Sequence[AnyArray], states: Mapping[int, AnyArray] | None = None
    ) -> TensorValues:
        """Values of all tensors for ``inputs``, in the order of the network's inputs.

        Variables start at their zero point at every call, or at their value in ``states``, by
        tensor index; their final value is returned under their index.

        Raises:
            ModelError: an input of another shape or dtype than the model's, or LiteRT fails.
        """
        self.network.check_inputs(inputs)
        initial = dict(zip(self.network.inputs, inputs, strict=True))
        for index, value in (states or {}).items():
            self.network.check_variable(index, value)
            initial[index] = value
        wanted = [each.index for each in self.network.tensors if each.index not in self.missing]
        request = {"request": "run", "indices": list(initial), "wanted": wanted}
        if self._process.ended:
            self._process = self._start()
        reply, arrays = self._process.exchange(request, list(initial.values()))
        lacking = {index: f"LiteRT: {reason}" for index, reason in reply["lacking"]}
        computed = dict(zip(reply["indices"], arrays, strict=True))
        return TensorValues(computed, {**self.missing, **lacking})

    def _start(self) -> LiteRtProcess:
        return _prepared(self.file, self._data, self._kernels, self._time_limit)

    def outputs(self, inputs: Sequence[AnyArray]) -> tuple[AnyArray, ...]:
        """The model's outputs alone.

        Raises:
            ModelError: as :meth:`run`, or an output depends on an operator that LiteRT lacks.
        """
        return self.outputs_of(self.run(inputs))

    def outputs_of(self, values: TensorValues) -> tuple[AnyArray, ...]:
        """The model's outputs among the values of a run; raises as :meth:`outputs` does."""
        for index in self.network.outputs:
            if index in values.missing:
                raise ModelError(self.file, f"output {index}: {values.missing[index]}")
        return tuple(values[index] for index in self.network.outputs)

    def _without_the_others(
        self, data: bytes, model: tflite.Model, kept: Sequence[Operator]
    ) -> bytes:
        if not kept:
            names = ", ".join(repr(name) for name in self.custom_operators)
            raise ModelError(
                self.file, f"LiteRT lacks the custom operator {names}: nothing can run"
            )
        lost = [each for each in self.network.operators if each not in kept]
        wanted = [*self.network.outputs, *(index for each in lost for index in each.inputs)]
        written = {index for each in kept for index in each.outputs}
        outputs = [index for index in dict.fromkeys(wanted) if index in written]
        graph = model.subgraphs[0]
        kept_indices = [each.index for each in kept]
        return with_operators(data, graph.file_offset, kept_indices, graph.inputs, outputs)


class LiteRtPart:
    """Some operators of a model in LiteRT, which start from given tensors instead of its inputs.

    Args:
        data: the model, which has been read before.
        network: its network.
        operators: indices of the operators, ascending.
        sources: the tensors that they are given; none of the operators computes one.
        targets: the tensors that are asked for.
        time_limit: for each request, in seconds.

    Raises:
        ModelError: LiteRT refuses the operators.
    """

    def __init__(
        self,
        data: bytes,
        network: Network,
        operators: Sequence[int],
        sources: Sequence[int],
        targets: Sequence[int],
        time_limit: float = TIME_LIMIT,
    ) -> None:
        self.sources, self.targets = tuple(sources), tuple(targets)
        self._file = network.file
        position = tflite.load(data).subgraphs[0].file_offset
        part = with_operators(data, position, operators, sources, targets)
        self._process = _prepared(network.file, part, "reference", time_limit)

    def run(self, values: Mapping[int, AnyArray]) -> dict[int, AnyArray]:
        """The targets from ``values`` of the sources, by index.

        Raises:
            ModelError: LiteRT fails, or has no such tensor.
        """
        request = {"request": "run", "indices": self.sources, "wanted": self.targets}
        reply, arrays = self._process.exchange(request, [values[k] for k in self.sources])
        for index, reason in reply["lacking"]:
            raise ModelError(self._file, f"LiteRT: tensor {index}: {reason}")
        return dict(zip(reply["indices"], arrays, strict=True))


def _prepared(file: str, data: bytes, kernels: Kernels, time_limit: float) -> LiteRtProcess:
    model = (*WORKER, kernels, hashlib.sha256(data).digest())
    running = _idle.pop(model, None)
    if running is not None and running.process.poll() is None:
        return LiteRtProcess(file, time_limit, running)
    process = LiteRtProcess(file, time_limit)
    request = {"request": "prepare", "kernels": _RESOLVERS[kernels]}
    process.exchange(request, [np.frombuffer(data, np.uint8)])
    process.running.model = model
    return process


@dataclass(eq=False)
class _Running:
    """A process; ``model`` says which one alone it has been given, if another owner may have it.

    ``waiting`` is True from a request to its reply: after an interruption the reply is still due.
    ``overdue`` says that the reply was not there in time, and that the process has been ended.
    """

    process: subprocess.Popen[bytes]
    model: tuple[Any, ...] | None = None
    waiting: bool = False
    overdue: bool = False


_IDLE_AT_MOST = 2
"""Processes without an owner that are kept for the next one: a regression asks for the same model
again and again, and LiteRT takes longer to start than to compute a small one."""

_idle: dict[tuple[Any, ...], _Running] = {}
"""Those processes by model, the one that has waited longest first. Only the same model gets one:
what a damaged model did to its process meets no other. A child that is forked has none of them."""

os.register_at_fork(after_in_child=_idle.clear)


class _Watchdog:
    """Ends processes whose replies are overdue, within a quarter of a second: a thread for all of
    them, since a timer for each request takes as long as a small inference."""

    _TICK = 0.25

    def __init__(self) -> None:
        self._due: dict[_Running, float] = {}
        self._starting = threading.Lock()
        self._started = False

    @contextmanager
    def over(self, running: _Running, seconds: float) -> Iterator[None]:
        """End a process that is waited for longer than that."""
        with self._starting:
            if not self._started:
                threading.Thread(target=self._watch, daemon=True).start()
                self._started = True
        self._due[running] = time.monotonic() + seconds
        try:
            yield
        finally:
            del self._due[running]

    def _watch(self) -> None:
        while True:
            time.sleep(self._TICK)
            for running, due in self._due.copy().items():
                if time.monotonic() > due:
                    running.overdue = True
                    running.process.kill()


_watchdog = _Watchdog()


def _watch_anew() -> None:
    """In a child that is forked, which has no thread but its own."""
    global _watchdog
    _watchdog = _Watchdog()


os.register_at_fork(after_in_child=_watch_anew)


class LiteRtProcess:
    """LiteRT's process: one request at a time, ended with its owner or when it takes too long.

    ``file`` is what errors name; ``time_limit`` is for each request, in seconds; ``running`` is
    one that is taken over.
    """

    def __init__(self, file: str, time_limit: float, running: _Running | None = None) -> None:
        self.file = file
        self._time_limit = time_limit
        self.running = running or _started()
        self._process = self.running.process
        weakref.finalize(self, _release, self.running)

    @property
    def ended(self) -> bool:
        """True after a crash or an overdue request."""
        return self._process.poll() is not None

    def exchange(self, header: Mapping[str, Any], arrays: Sequence[AnyArray]) -> Frame:
        """Send a request and return the reply; ModelError if LiteRT refuses, crashes or hangs."""
        requests, replies = self._process.stdin, self._process.stdout
        assert requests is not None
        assert replies is not None
        self.running.waiting = True
        try:
            with _watchdog.over(self.running, self._time_limit):
                send(requests, header, arrays)
                reply, results = receive(replies)
            self.running.waiting = False
        except (EOFError, OSError):
            raise ModelError(self.file, f"LiteRT {self._death()}") from None
        if "error" in reply:
            raise ModelError(self.file, f"LiteRT: {reply['error']}")
        return reply, results

    def _death(self) -> str:
        status = self._process.wait()
        if self.running.overdue:
            return f"did not finish within {self._time_limit:g} s"
        return f"crashed (status {status})"


def _started() -> _Running:
    require("ai_edge_litert")
    process = subprocess.Popen(
        WORKER,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    return _Running(process)


def _release(running: _Running) -> None:
    """Keep the process of an owner that has gone for the next one with its model, or end it."""
    fit = not running.waiting and running.process.poll() is None
    if running.model is None or not fit or running.model in _idle:
        _end(running.process)
        return
    _idle[running.model] = running
    while len(_idle) > _IDLE_AT_MOST:
        _end(_idle.pop(next(iter(_idle))).process)


def end_idle() -> None:
    """End the processes that are kept for the next owner."""
    while _idle:
        _end(_idle.popitem()[1].process)


atexit.register(end_idle)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            # Of a request that a process did not take, a part may be left to be written.
            with suppress(BrokenPipeError):
                pipe.close()


def _runnable(whole: Network) -> tuple[list[Operator], dict[int, str]]:
    """The operators that LiteRT can run, and the tensors that it cannot compute, with reasons."""
    kept: list[Operator] = []
    missing: dict[int, str] = {}
    for operator in whole.operators:
        lost = next((index for index in operator.inputs if index in missing), None)
        if operator.custom and operator.name not in KNOWN_CUSTOM_OPERATORS:
            reason = f"LiteRT lacks the custom operator {operator.name!r}"
        elif lost is not None:
            name = whole.tensors[lost].name
            reason = f"depends on tensor {lost} ({name}), which LiteRT cannot compute"
        else:
            kept.append(operator)
            continue
        missing |= dict.fromkeys(operator.outputs, reason)
    return kept, missing


def with_operators(
    data: bytes,
    graph: int,
    operators: Sequence[int],
    inputs: Sequence[int],
    outputs: Sequence[int],
) -> bytes:
    """The model with only these operators, and these tensors as its inputs and outputs.

    A vector of a flatbuffer can be shortened in place, and one of numbers can be written anew at
    the end of the file, so that nothing else of the model changes. ``graph`` is the position of
    the SubGraph table; the model has been verified.
    """
    edited = bytearray(data)

    def number(position: int, code: str = "<I") -> int:
        value: int = struct.unpack_from(code, data, position)[0]
        return value

    def field(slot: int) -> int:
        vtable = graph - number(graph, "<i")
        place = number(vtable + 4 + 2 * slot, "<H") if 4 + 2 * slot < number(vtable, "<H") else 0
        return graph + place if place else 0

    start = field(_OPERATORS_SLOT) + number(field(_OPERATORS_SLOT))
    struct.pack_into("<I", edited, start, len(operators))
    for place, index in enumerate(operators):
        old, new = start + 4 + 4 * index, start + 4 + 4 * place
        # An offset counts from its own place; places only move down, so that it stays positive.
        struct.pack_into("<I", edited, new, old + number(old) - new)
    for slot, indices in ((_INPUTS_SLOT, inputs), (_OUTPUTS_SLOT, outputs)):
        if not field(slot):
            # A graph without inputs need not have the field.
            continue
        edited += bytes(-len(edited) % 4)
        struct.pack_into("<I", edited, field(slot), len(edited) - field(slot))
        edited += struct.pack(f"<I{len(indices)}i", len(indices), *indices)
    return bytes(edited)
