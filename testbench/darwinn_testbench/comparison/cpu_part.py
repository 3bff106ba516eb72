"""Expected outputs of the operators on the CPU: the model before compilation, in LiteRT."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from darwinn_formats import tflite
from darwinn_reference.arrays import AnyArray
from darwinn_reference.tflite.chip_arithmetic import ChipArithmetic
from darwinn_reference.tflite.litert import TIME_LIMIT, LiteRtProcess

from darwinn_testbench.chip.inputs import TensorMap, TensorPort
from darwinn_testbench.chip.operators.custom_operator import CustomOperator, PlacedOperator
from darwinn_testbench.chip.operators.parts import PartedGraph, Values
from darwinn_testbench.chip.whole import REFERENCE_KERNELS, refuse_unknown
from darwinn_testbench.comparison.expectation import Expectation, References
from darwinn_testbench.errors import InputError

FROM_ORACLE = "the chip arithmetic, then the CPU operators of the reference in LiteRT"
FROM_CHIP = "the chip's own bytes, then the CPU operators of the reference in LiteRT"
"""What the outputs of a whole model are compared with, byte for byte."""


class CpuExpectation:
    """The outputs of a whole model that the CPU gives, by the reference's own CPU operators.

    ``outputs`` are those outputs; of the reference they are the outputs of their names, as maps say
    them, or else of their places. Its CPU operators are all but those that the chip computes.
    ``further`` is the reference looked at through each further executable of the graph, in the
    order in which they run.

    Raises:
        InputError: the reference has other outputs.
        ModelError, Unavailable: LiteRT cannot run one of its operators.
    """

    def __init__(
        self,
        references: References,
        outputs: Sequence[TensorPort],
        places: Mapping[str, int],
        further: Sequence[References] = (),
    ) -> None:
        self.references, self.further = references, tuple(further)
        self.file = references.cpu.file
        self._model = tflite.load(references.cpu.data)
        self.outputs = {port.name: self._output(port, places[port.name]) for port in outputs}
        self._parts: dict[str, PartedGraph] = {}

    def _output(self, port: TensorPort, place: int) -> int:
        network = self.references.cpu.network
        name = self.references.name(port.name)
        named = [k for k in network.outputs if network.tensors[k].name == name]
        if named:
            return named[0]
        if place >= len(network.outputs):
            raise InputError(f"{port}: {self.file} has no such output: is it the same model?")
        return network.outputs[place]

    def missing(self, expectation: Expectation | None, names: Sequence[str]) -> str:
        """Why the chip's outputs ``names`` cannot be had from the oracle; empty if they can.

        Without an expectation, why they are no tensors of the reference.
        """
        for name in names:
            if name not in self.references.outputs:
                return f"the reference has no tensor {name}"
            reason = "" if expectation is None else expectation.find_chip(name)[1]
            if reason:
                return reason
        return next(filter(None, (_unmatched(each) for each in self.further)), "")

    def by_oracle(self, given: TensorMap, sent: Values) -> tuple[dict[str, AnyArray], str]:
        """The outputs by name, from the graph's inputs and what the chip ``sent``, by tensor.

        What further executables send is computed by the oracle, each from what is known then.
        Without arithmetic for one of them there are no outputs, but the reason.

        Raises:
            ModelError: an operator fails in LiteRT.
        """
        known = dict(sent)
        for each in self.further:
            self.run(FROM_ORACLE, given, known)
            found, reason = _computed(each, self._parts[FROM_ORACLE].values, given)
            if reason:
                return {}, reason
            known |= found
        return self.run(FROM_ORACLE, given, known), ""

    def run(self, usage: str, given: TensorMap, sent: Values) -> dict[str, AnyArray]:
        """The outputs by name, from the graph's inputs and what the chip ``sent``, by tensor.

        Variables go from one call to the next of a ``usage``.

        Raises:
            ModelError: an operator fails in LiteRT.
        """
        if usage not in self._parts:
            self._parts[usage] = self._prepared()
        parts, references = self._parts[usage], self.references
        network = references.cpu.network
        for port, index in zip(references.ports, network.inputs, strict=True):
            parts.values[index] = given[port.name]
        for index, value in sent.items():
            parts.values[index] = value.reshape(network.tensors[index].shape)
        parts.run()
        return {name: parts.values[index] for name, index in self.outputs.items()}

    def _prepared(self) -> PartedGraph:
        references = self.references
        network = references.cpu.network
        pieces = (references, *self.further)
        computed = frozenset[int]().union(*(each.on_chip - each.inputs for each in pieces))
        only = [each.index for each in network.operators if computed.isdisjoint(each.outputs)]
        refuse_unknown(self.file, self._model, only)
        parts = PartedGraph(
            references.cpu.data,
            self._model,
            self.file,
            _none_on_chip,
            LiteRtProcess(self.file, TIME_LIMIT),
            {"kernels": REFERENCE_KERNELS, "threads": 1, "preserve": False},
            # Further executables read tensors that no output is.
            every_tensor=bool(self.further),
            only=only,
        )
        parts.prepare()
        for each in self.further:
            # Until it is known what they send: what follows from it is computed again then.
            tensors = (network.tensors[index] for index in each.outputs.values())
            parts.values |= {one.index: np.zeros(one.shape, one.dtype) for one in tensors}
        return parts


def _unmatched(piece: References) -> str:
    """Why the outputs of a further executable cannot be had from the oracle."""
    if piece.bound.states:
        return "a further executable keeps states"
    names = (output.port.name for output in piece.bound.outputs)
    absent = (name for name in names if name not in piece.outputs)
    return next((f"the reference has no tensor {name}" for name in absent), "")


def _computed(piece: References, values: Values, given: TensorMap) -> tuple[Values, str]:
    """The tensors that a further executable sends, by the oracle; or why it cannot compute one."""
    inputs = [given[port.name] for port in piece.ports]
    own = piece.on_chip - piece.inputs
    known = {index: value for index, value in values.items() if index not in own}
    network = piece.cpu.network
    members = tuple(each for each in network.operators if not own.isdisjoint(each.outputs))
    chip = ChipArithmetic(replace(network, operators=members), piece.cpu.chip.choices)
    found = chip.run(inputs, known)
    wanted = piece.outputs.values()
    lost = [found.missing[index] for index in wanted if index in found.missing]
    return {index: found[index] for index in wanted if index in found}, lost[0] if lost else ""


def _none_on_chip(place: PlacedOperator) -> CustomOperator:
    raise InputError(f"{place.file}: operator {place.index} is compiled for the chip")
