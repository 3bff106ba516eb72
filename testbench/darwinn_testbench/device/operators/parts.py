"""A model in parts that run one after another: its custom operators, and LiteRT for the others.

A part is a row of operators, as long as the order of execution allows. Tensors have the indices of
the whole model in every part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from darwinn_formats import tflite
from darwinn_formats.errors import FormatError

from darwinn_testbench.chip.model import port_of
from darwinn_testbench.chip.session import Device
from darwinn_testbench.device.operators.custom_operator import CustomOperator, PlacedOperator
from darwinn_testbench.device.operators.kinds import NAMES, make
from darwinn_testbench.errors import InputError, ModelError
from darwinn_testbench.policy import AnyArray
from darwinn_testbench.reference.tflite.litert import LiteRtProcess, with_operators

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

    def run(self, values: Values) -> None:
        """Put what the operators write into ``values``; SimulationError if a program fails."""
        for operator, inputs, outputs in self.operators:
            results, states = operator.run([values[index] for index in inputs])
            values.update(zip(outputs, results, strict=True))
            values.update((inputs[position], value) for position, value in states.items())


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

    def run(self, values: Values) -> None:
        """Put the targets into ``values``; ModelError if LiteRT fails."""
        given = [values[index] for index in self._sources]
        reply, arrays = self._process.exchange(self._request, given)
        for index, reason in reply["lacking"]:
            raise ModelError(self._process.file, f"LiteRT: tensor {index}: {reason}")
        # In LiteRT too, a caller can write into what it looks at.
        values.update((k, each.copy()) for k, each in zip(reply["indices"], arrays, strict=True))


@dataclass(frozen=True)
class Run:
    """Operators of a graph that run together: custom ones, or LiteRT's.

    ``sources`` are the tensors that the others give them, ``targets`` what they give the others.
    """

    custom: bool
    operators: tuple[int, ...]
    sources: tuple[int, ...]
    targets: tuple[int, ...]


def runs_of(model: tflite.Model, file: str, *, every_tensor: bool = False) -> tuple[Run, ...]:
    """The first graph of a model, cut into runs; targets are ``every_tensor``, or what is needed.

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
            range(len(graph.operators)), lambda k: _is_custom(model, graph.operators[k])
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
    return tuple(reversed(runs))


def _comes(model: tflite.Model, index: int) -> bool:
    """Whether LiteRT has to be given a tensor: it has constants and variables itself."""
    if index < 0:
        return False
    tensor = model.subgraphs[0].tensors[index]
    return not (tensor.is_variable or model.buffers[tensor.buffer].data)


def _is_custom(model: tflite.Model, operator: tflite.Operator) -> bool:
    code = model.code(operator)
    return code.operator is tflite.BuiltinOperator.CUSTOM and code.custom_code in NAMES


def custom_part(
    model: tflite.Model, run: Run, file: str, device: Callable[[], Device]
) -> CustomPart:
    """The custom operators of a run, each on the chip that ``device`` gives.

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
        )
        try:
            placed.append((make(place, device), operator.inputs, operator.outputs))
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
