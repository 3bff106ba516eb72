"""The custom operators that LiteRT lacks: what the chip runs, and what the vendor's library adds.

A model of the Edge TPU compiler has the part for the chip as a custom operator; the operators
around it are LiteRT's. Whoever runs such a model (:class:`~darwinn_testbench.Interpreter`, the
delegate) hands tensors to the operators here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from darwinn_formats.darwinn import (
    CompiledModel,
    DarwinnFile,
    load_operator,
    pair,
)
from darwinn_formats.darwinn.loader import CUSTOM_OPERATOR
from darwinn_formats.flatbuffer import Span

from darwinn_testbench.chip.inputs import TensorPort
from darwinn_testbench.chip.model import BoundTensor, bind_model
from darwinn_testbench.chip.session import Device, Session
from darwinn_testbench.errors import InputError
from darwinn_testbench.policy import AnyArray


@dataclass(frozen=True)
class Place:
    """A custom operator between its tensors; ``file`` is the model's name for messages."""

    name: str
    options: Span
    inputs: tuple[TensorPort, ...]
    outputs: tuple[TensorPort, ...]
    file: str = "model"


class CustomOperator(Protocol):
    """A custom operator that is ready to run.

    ``outputs`` are its output tensors, whose shapes the operator decides.
    """

    outputs: tuple[TensorPort, ...]

    def prepare(self) -> None:
        """Whatever takes long and happens once."""

    def run(self, inputs: Sequence[AnyArray]) -> tuple[list[AnyArray], dict[int, AnyArray]]:
        """The outputs, and the next values of inputs that are variables, by their position."""


class ChipOperator:
    """The operator that the chip runs.

    Outputs called ``X_variable_output`` are the next values of the variable X.

    Raises:
        FormatError: the operator's options are not valid.
        InputError: they hold no model, or one for several chips, or another than the graph's.
    """

    def __init__(self, place: Place, device: Device) -> None:
        model = bind_model(
            _compiled(place),
            {port.name: BoundTensor(port, None) for port in (*place.inputs, *place.outputs)},
        )
        self.outputs = place.outputs
        self.session = Session(model, device=device)
        self._inputs = place.inputs
        taken = {port.name for port in model.ports}
        given = {item.port.name for item in model.outputs}
        positions = {port.name: position for position, port in enumerate(place.inputs)}
        for name in sorted(taken - positions.keys()):
            raise InputError(f"{place.file}: the executable takes {name}, which the graph lacks")
        for port in place.outputs:
            if port.name not in given:
                raise InputError(f"{place.file}: the executable does not give {port}")
        self._states = {
            name: positions[variable.port.name] for name, variable in model.states.items()
        }

    def prepare(self) -> None:
        """Load the program, its kernels and its parameters; SimulationError as of an inference."""
        self.session.prepare()

    def run(self, inputs: Sequence[AnyArray]) -> tuple[list[AnyArray], dict[int, AnyArray]]:
        """One inference; SimulationError if the program fails."""
        tensors = {port.name: value for port, value in zip(self._inputs, inputs, strict=True)}
        found = self.session.infer(tensors).outputs
        states = {
            position: found[name].reshape(self._inputs[position].shape)
            for name, position in self._states.items()
        }
        return [found[port.name] for port in self.outputs], states


def _compiled(place: Place) -> CompiledModel:
    packages = load_operator(place.options).packages
    models = pair([DarwinnFile(place.file, "tflite", "", len(place.options), packages)])
    if len(models) != 1:
        reason = "one for one chip is what is implemented"
        raise InputError(f"{place.file}: a custom operator with {len(models)} models: {reason}")
    return models[0]


_KINDS = {CUSTOM_OPERATOR: ChipOperator}

NAMES = frozenset(_KINDS)
"""Names of the custom operators that are there."""


def make(place: Place, device: Device) -> CustomOperator:
    """The custom operator at ``place``, on ``device`` if it is one of the chip.

    Raises:
        FormatError, InputError: options or tensors that are not valid.
    """
    return _KINDS[place.name](place, device)
