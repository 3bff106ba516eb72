"""The chip-arithmetic oracle: an uncompiled network computed as the chip would compute it.

Independent of the simulator and of the compiled file: it reads the tensors of the uncompiled
model and applies the chip's output arithmetic to each operator. Operators whose arithmetic is not
known are named, with the reason, and so is everything that depends on them; nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain

import numpy as np
from darwinn_formats import tflite
from darwinn_sim.matrix_threads import one_matrix_thread

from darwinn_reference.arrays import AnyArray
from darwinn_reference.tflite.call import Call, CompilerChoices, Operand
from darwinn_reference.tflite.graph import (
    ABSENT,
    Network,
    NetworkTensor,
    Operator,
    TensorValues,
)
from darwinn_reference.tflite.graph import network as network_of
from darwinn_reference.tflite.output_stage import NotComputableError
from darwinn_reference.tflite.rules import rule_of

Supply = Callable[[Operator, Mapping[int, AnyArray], tuple[str, ...]], Mapping[int, AnyArray]]
"""Asked for outputs of an operator that cannot be computed: gives those that it knows.

It is told all values so far and the reasons, each of which names an operator.
"""

_REASONS = 3
"""Operators that a reason names, at most."""


class ChipArithmetic:
    """Computes a network, or the network of a TensorFlow Lite model, in the chip's arithmetic.

    Raises:
        ModelError: see :func:`darwinn_reference.tflite.graph.network`.
    """

    def __init__(
        self, model: tflite.Model | Network, choices: CompilerChoices | None = None
    ) -> None:
        self.network = model if isinstance(model, Network) else network_of(model)
        self.choices = choices or CompilerChoices()

    def run(
        self,
        inputs: Sequence[AnyArray],
        given: Mapping[int, AnyArray] | None = None,
        supply: Supply | None = None,
    ) -> TensorValues:
        """Values of all tensors for ``inputs`` (in the order of the network's inputs).

        ``given`` holds values of further tensors, by index: initial states (variables start at
        their zero point), or tensors to go on from in place of computing them. The final value
        of a state tensor is returned under its index. ``supply`` may give tensors that cannot be
        computed when their turn comes. What is missing names the operators that begin it.

        Raises:
            ModelError: an input or a given tensor of another shape or dtype than the network's.
        """
        network = self.network
        network.check_inputs(inputs)
        values = {
            each.index: each.constant for each in network.tensors if each.constant is not None
        }
        known = dict(zip(network.inputs, inputs, strict=True)) | dict(given or {})
        for index, value in known.items():
            network.check(index, value)
            values[index] = value
        fixed = frozenset(index for index in known if not network.tensors[index].variable)
        causes: dict[int, tuple[str, ...]] = {}
        assumed: dict[int, str] = {}
        for operator in network.operators:
            if fixed.issuperset(operator.outputs):
                continue
            computed, reasons = self._attempt(operator, values, causes, assumed)
            if reasons and supply is not None:
                computed |= supply(operator, values, reasons)
            values |= {index: each for index, each in computed.items() if index not in fixed}
            unknown = {index for index in _targets(network, operator) if index not in values}
            causes |= dict.fromkeys(unknown, reasons)
        missing = {index: _because(reasons) for index, reasons in causes.items()}
        return TensorValues(values, missing, assumed)

    def run_operator(
        self, operator: Operator, values: Mapping[int, AnyArray]
    ) -> dict[int, AnyArray]:
        """Outputs of one operator from the given values of its inputs (and the constants).

        Raises:
            NotComputableError: its arithmetic on the chip is not known.
        """
        return self._run(operator, values)[0]

    def _run(
        self, operator: Operator, values: Mapping[int, AnyArray]
    ) -> tuple[dict[int, AnyArray], list[str]]:
        """Outputs of one operator, and the assumptions behind them."""
        rule = rule_of(self.network, operator)
        if rule is None:
            raise NotComputableError("no chip arithmetic is known for this operator")
        if operator.unread_options:
            raise NotComputableError(f"options {operator.unread_options} are not read")
        call = Call(
            operator,
            tuple(self._operand(index, values) for index in operator.inputs),
            tuple(self.network.tensors[index] for index in operator.outputs),
            self.choices,
        )
        if rule.assumption:
            call.assume(rule.assumption)
        # A file may hold scales of any size: what overflows is clipped, as on the chip.
        with np.errstate(all="ignore"), one_matrix_thread():
            result = rule.function(call)
        arrays = result if isinstance(result, tuple) else (result,)
        targets = _targets(self.network, operator)
        for index, array in zip(targets, arrays, strict=True):
            _check_result(self.network.tensors[index], array)
        return dict(zip(targets, arrays, strict=True)), call.assumptions

    def _attempt(
        self,
        operator: Operator,
        values: Mapping[int, AnyArray],
        causes: Mapping[int, tuple[str, ...]],
        assumed: dict[int, str],
    ) -> tuple[dict[int, AnyArray], tuple[str, ...]]:
        """Values of the operator's outputs, or the operators because of which there are none."""
        lost = [causes[index] for index in operator.inputs if index in causes]
        if lost:
            return {}, tuple(dict.fromkeys(chain.from_iterable(lost)))
        try:
            computed, assumptions = self._run(operator, values)
            if assumptions:
                assumed[operator.index] = "; ".join(assumptions)
            return computed, ()
        except NotComputableError as fault:
            reason = f"operator {operator.index} {operator.name}: {fault}"
        except (ArithmeticError, LookupError, MemoryError, TypeError, ValueError) as fault:
            # Attributes and shapes of a hostile model that contradict each other.
            reason = f"operator {operator.index} {operator.name} is malformed: {fault}"
        return {}, (reason,)

    def _operand(self, index: int, values: Mapping[int, AnyArray]) -> Operand | None:
        if index == ABSENT:
            return None
        tensor = self.network.tensors[index]
        value = values.get(index, tensor.constant)
        if value is None and tensor.variable and tensor.quantised:
            value = np.full(tensor.shape, tensor.zero_point[0], tensor.dtype)
        if value is None:
            raise NotComputableError(f"tensor {index} ({tensor.name}) has no value")
        return Operand(tensor, value)


def _because(reasons: Sequence[str]) -> str:
    """Why a tensor is missing, in one line."""
    rest = len(reasons) - _REASONS
    more = f"; {rest} more" if rest > 0 else ""
    return "; ".join(reasons[:_REASONS]) + more


def _targets(network: Network, operator: Operator) -> tuple[int, ...]:
    """The tensors that an operator writes: its outputs, then the states that it updates."""
    rule = rule_of(network, operator)
    states = [] if rule is None else [k for k in rule.state_inputs if k < len(operator.inputs)]
    return operator.outputs + tuple(operator.inputs[position] for position in states)


def _check_result(tensor: NetworkTensor, array: AnyArray) -> None:
    if array.shape != tensor.shape or array.dtype != tensor.dtype:
        raise NotComputableError(
            f"tensor {tensor.index} ({tensor.name}) is {tensor.dtype} {tensor.shape}, "
            f"the operator gives {array.dtype} {array.shape}"
        )
