"""A model in parts that run one after another: its custom operators, and LiteRT for the others.

A part is a row of operators, as long as the order of execution allows. Tensors have the indices of
the whole model in every part.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from darwinn_formats import tflite
from darwinn_formats.errors import FormatError
from darwinn_reference.arrays import AnyArray
from darwinn_reference.errors import ModelError
from darwinn_reference.tflite.graph import check_size
from darwinn_reference.tflite.litert import LiteRtProcess, with_operators

from darwinn_testbench.chip.model import initial_value, port_of
from darwinn_testbench.chip.operators.custom_operator import CustomOperator, PlacedOperator
from darwinn_testbench.chip.operators.kinds import NAMES, OnChip, make
from darwinn_testbench.errors import InputError

Values = dict[int, AnyArray]
"""Tensors by index."""


class CustomPart:
    """Custom operators in their order, each with the indices of its inputs and outputs."""

    def __init__(
        self, operators: Sequence[tuple[CustomOperator, Sequence[int], Sequence[int]]]
    ) -> None:
        self.operators = tuple(operators)

    @property
    def shapes(self) -> dict[int, tuple[int, ...]]:
        """Shapes of what the operators write, by index."""
        return {
            index: port.shape
            for operator, _, outputs in self.operators
            for index, port in zip(outputs, operator.outputs, strict=True)
        }

    def prepare(self) -> None:
        """Whatever takes long and happens once; SimulationError if the chip cannot do it."""
        for operator, _, _ in self.operators:
            operator.prepare()

    def run(self, values: Values) -> float:
        """Put what the operators write into ``values``; the seconds of those of the host.

        Raises:
            SimulationError: a program fails.
        """
        seconds = 0.0
        for operator, inputs, outputs in self.operators:
            begin = time.perf_counter()
            results, states = operator.run([values[index] for index in inputs])
            seconds += 0.0 if operator.on_chip else time.perf_counter() - begin
            values.update(zip(outputs, results, strict=True))
            values.update((inputs[position], value) for position, value in states.items())
        return seconds


class HostPart:
    """Operators in LiteRT: part ``number`` of its process, ``data`` without the other operators.

    Args:
        process: LiteRT's process.
        number: of the part; a process holds several.
        data: the model with these operators alone.
        sources: tensors that the part is given.
        targets: tensors that it gives.
        options: of the process's request "prepare".

    Raises:
        ModelError: LiteRT refuses the operators.
    """

    def __init__(
        self,
        process: LiteRtProcess,
        number: int,
        data: bytes,
        sources: Sequence[int],
        targets: Sequence[int],
        options: dict[str, object],
    ) -> None:
        self._process = process
        self._sources = tuple(sources)
        self._request = {
            "request": "run",
            "part": number,
            "stateful": True,
            "indices": list(sources),
            "wanted": list(targets),
        }
        request = {"request": "prepare", "part": number, **options}
        reply, _ = process.exchange(request, [np.frombuffer(data, np.uint8)])
        shapes = {index: tuple(shape) for index, shape in reply["shapes"]}
        self.shapes = {index: shapes[index] for index in targets if index in shapes}

    def run(self, values: Values) -> float:
        """Put the targets into ``values``; LiteRT's seconds. ModelError if it fails."""
        given = [values[index] for index in self._sources]
        reply, arrays = self._process.exchange(self._request, given)
        for index, reason in reply["lacking"]:
            raise ModelError(self._process.file, f"LiteRT: tensor {index}: {reason}")
        # In LiteRT too, a caller can write into what it looks at.
        values.update((k, each.copy()) for k, each in zip(reply["indices"], arrays, strict=True))
        seconds: float = reply["seconds"]
        return seconds


@dataclass(frozen=True)
class Run:
    """Operators of a graph that run together: custom ones, or LiteRT's.

    ``sources`` are the tensors that the others give them, ``targets`` what they give the others.
    """

    custom: bool
    operators: tuple[int, ...]
    sources: tuple[int, ...]
    targets: tuple[int, ...]


def runs_of(
    model: tflite.Model,
    file: str,
    *,
    every_tensor: bool = False,
    only: Collection[int] | None = None,
) -> tuple[Run, ...]:
    """The first graph of a model, or ``only`` these operators, cut into runs.

    Targets are ``every_tensor``, or what is needed.

    Raises:
        InputError: no graph, or a custom operator in a graph that another one calls.
    """
    if not model.subgraphs:
        raise InputError(f"{file}: the model has no graph")
    graph, *called = model.subgraphs
    for operator in (each for other in called for each in other.operators):
        if _is_custom(model, operator):
            name = model.code(operator).custom_code
            raise InputError(f"{file}: {name} in a graph that another one calls")
    cut = [
        (custom, tuple(indices))
        for custom, indices in groupby(
            range(len(graph.operators)) if only is None else sorted(only),
            lambda k: _is_custom(model, graph.operators[k]),
        )
    ]
    runs: list[Run] = []
    needed = set(range(len(graph.tensors)) if every_tensor else graph.outputs)
    for custom, indices in reversed(cut):
        operators = [graph.operators[index] for index in indices]
        written = dict.fromkeys(index for each in operators for index in each.outputs)
        read = dict.fromkeys(index for each in operators for index in each.inputs)
        sources = tuple(k for k in read if k not in written and (custom or _comes(model, k)))
        targets = tuple(index for index in written if index in needed)
        runs.append(Run(custom, indices, sources, targets))
        needed.update(sources)
    found = tuple(reversed(runs))
    if only is None:
        _check_order(model, file)
    return found


def _check_order(model: tflite.Model, file: str) -> None:
    """Raise ``InputError`` for a tensor that is read, or an output, before anything gives it."""
    graph = model.subgraphs[0]
    known = set(graph.inputs) | {k for k in range(len(graph.tensors)) if not _comes(model, k)}
    for operator in graph.operators:
        _check_known(graph, file, operator.inputs, known)
        known.update(operator.outputs)
    _check_known(graph, file, graph.outputs, known)


def _check_known(
    graph: tflite.SubGraph, file: str, wanted: Sequence[int], known: Collection[int]
) -> None:
    for index in wanted:
        if 0 <= index < len(graph.tensors) and index not in known:
            name = graph.tensors[index].name
            raise InputError(
                f"{file}: tensor {index} ({name}) is read before an operator computes it"
            )


def _comes(model: tflite.Model, index: int) -> bool:
    """Whether LiteRT has to be given a tensor: it has constants and variables itself."""
    if index < 0:
        return False
    tensor = model.subgraphs[0].tensors[index]
    return not (tensor.is_variable or model.buffers[tensor.buffer].data)


def _is_custom(model: tflite.Model, operator: tflite.Operator) -> bool:
    code = model.code(operator)
    return code.operator is tflite.BuiltinOperator.CUSTOM and code.custom_code in NAMES


def custom_part(model: tflite.Model, run: Run, file: str, on_chip: OnChip) -> CustomPart:
    """The custom operators of a run, those of the chip made by ``on_chip``.

    Raises:
        FormatError, InputError: options or tensors of one that are not valid.
    """
    graph = model.subgraphs[0]
    placed = []
    for index in run.operators:
        operator = graph.operators[index]
        path = f"Model.subgraphs[0].operators[{index}].custom_options"
        if operator.custom_options is None:
            reason = "the options are absent"
            raise FormatError(path, reason, offset=operator.file_offset, file=file)
        if min(operator.inputs, default=0) < 0:
            raise InputError(f"{file}: operator {index} goes without one of its inputs")
        place = PlacedOperator(
            model.code(operator).custom_code,
            operator.custom_options,
            tuple(port_of(graph.tensors[k]) for k in operator.inputs),
            tuple(port_of(graph.tensors[k]) for k in operator.outputs),
            file,
            index,
        )
        try:
            placed.append((make(place, on_chip), operator.inputs, operator.outputs))
        except FormatError as error:
            raise error.within(path).with_file(file) from None
    return CustomPart(placed)


def host_part(
    model: tflite.Model,
    data: bytes,
    run: Run,
    process: LiteRtProcess,
    number: int,
    options: dict[str, object],
) -> HostPart:
    """LiteRT's operators of a run: see :class:`HostPart`."""
    position = model.subgraphs[0].file_offset
    part = with_operators(data, position, run.operators, run.sources, run.targets)
    return HostPart(process, number, part, run.sources, run.targets, options)


class PartedGraph:
    """The first graph of a model, or some of its operators, part after part.

    ``values`` are tensors by index: what is to be computed is put into it, and read from it.

    Args:
        data: the model's file.
        model: what is in it.
        file: its name for messages.
        on_chip: makes the operators of the chip.
        process: LiteRT's.
        options: of its request "prepare".
        every_tensor: keep all tensors between LiteRT's operators too.
        only: indices of the operators, if not all of them are to run.

    Raises:
        FormatError, InputError: graph, options or tensors that are not valid.
        ModelError: a shape that is not static, or too many elements.
    """

    def __init__(
        self,
        data: bytes,
        model: tflite.Model,
        file: str,
        on_chip: OnChip,
        process: LiteRtProcess,
        options: dict[str, object],
        *,
        every_tensor: bool = False,
        only: Collection[int] | None = None,
    ) -> None:
        self.runs = runs_of(model, file, every_tensor=every_tensor, only=only)
        check_size(model.subgraphs[0], file)
        self.values: Values = {}
        self._data, self._model = data, model
        self._process, self._options = process, options
        self._custom = {
            run: custom_part(model, run, file, on_chip) for run in self.runs if run.custom
        }
        self._parts: list[CustomPart | HostPart] = []

    @property
    def has_custom_operators(self) -> bool:
        """Whether something of it runs elsewhere than in LiteRT."""
        return bool(self._custom)

    @property
    def targets(self) -> list[int]:
        """The tensors that the parts give."""
        return [index for run in self.runs for index in run.targets]

    def prepare(self) -> dict[int, tuple[int, ...]]:
        """Make the parts and what they need once; shapes of what they give, by tensor index.

        Raises:
            ModelError: LiteRT refuses an operator.
            SimulationError: the chip's program is refused, or the loading of its parameters fails.
        """
        parts: list[CustomPart | HostPart] = [
            self._custom.get(run)
            or host_part(self._model, self._data, run, self._process, number, self._options)
            for number, run in enumerate(self.runs)
        ]
        for custom in self._custom.values():
            custom.prepare()
        for index, tensor in enumerate(self._model.subgraphs[0].tensors):
            constant = None if tensor.is_variable else self._model.constant(tensor)
            if constant is not None:
                self.values[index] = constant
        self._parts = parts
        self.reset()
        return {index: shape for part in parts for index, shape in part.shapes.items()}

    def reset(self) -> None:
        """Give variables the value that they have before the first inference."""
        self._process.exchange({"request": "reset"}, [])
        for index, tensor in enumerate(self._model.subgraphs[0].tensors):
            if tensor.is_variable:
                self.values[index] = initial_value(port_of(tensor))

    def run(self) -> float:
        """Compute what follows from ``values``; the seconds of the operators that the host runs.

        Raises:
            ModelError: an operator fails in LiteRT.
            SimulationError: the chip's program fails.
        """
        return sum(part.run(self.values) for part in self._parts)
