"""The custom operator that the chip runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from darwinn_formats.darwinn import CompiledModel, DarwinnFile, load_operator, pair
from darwinn_reference.arrays import AnyArray
from darwinn_reference.errors import ModelError

from darwinn_testbench.chip.inputs import TensorMap
from darwinn_testbench.chip.model import BoundTensor, bind_model
from darwinn_testbench.chip.operators.custom_operator import PlacedOperator
from darwinn_testbench.chip.session import Device, Inference, Session
from darwinn_testbench.errors import InputError


class ChipOperator:
    """The operator that the chip runs, by ``session``, or by ``infer`` where that is watched.

    Outputs called ``X_variable_output`` are the next values of the variable X.

    Raises:
        InputError: the session's model is another than the graph's.
    """

    on_chip = True

    def __init__(
        self,
        place: PlacedOperator,
        session: Session,
        infer: Callable[[TensorMap], Inference] | None = None,
    ) -> None:
        model = session.model
        self.outputs = place.outputs
        self.session = session
        self._infer = infer or session.infer
        self._file = place.file
        self._inputs = place.inputs
        self._taken = {item.port.name for item in model.inputs}
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
        """One inference; SimulationError if the program fails, ModelError if the operators before
        it gave an input another size than the graph says.
        """
        for port, value in zip(self._inputs, inputs, strict=True):
            if value.size != math.prod(port.shape):
                reason = f"{port} is of shape {value.shape} when the chip is to take it"
                raise ModelError(self._file, reason)
        # The chip takes bytes in their order, whatever shape the operators before it say they have.
        tensors = {
            port.name: value.reshape(port.shape)
            for port, value in zip(self._inputs, inputs, strict=True)
            if port.name in self._taken
        }
        found = self._infer(tensors).outputs
        states = {
            position: found[name].reshape(self._inputs[position].shape).copy()
            for name, position in self._states.items()
        }
        return [found[port.name] for port in self.outputs], states


def operator_on(place: PlacedOperator, device: Device) -> ChipOperator:
    """The operator with the model in its own options, on ``device``.

    Raises:
        FormatError: the operator's options are not valid.
        InputError: they hold no model, or one for several chips, or another than the graph's.
    """
    tensors = {port.name: BoundTensor(port, None) for port in (*place.inputs, *place.outputs)}
    return ChipOperator(place, Session(bind_model(_compiled(place), tensors), device=device))


def _compiled(place: PlacedOperator) -> CompiledModel:
    packages = load_operator(place.options).packages
    models = pair([DarwinnFile(place.file, "tflite", place.options.data, packages)])
    if len(models) != 1:
        reason = "exactly one, for one chip, is implemented"
        raise InputError(f"{place.file}: a custom operator with {len(models)} models: {reason}")
    return models[0]
