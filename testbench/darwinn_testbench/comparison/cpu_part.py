"""Expected outputs of the operators on the CPU: the model before compilation, in LiteRT."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from darwinn_formats import tflite
from darwinn_reference.arrays import AnyArray
from darwinn_reference.tflite.litert import TIME_LIMIT, LiteRtProcess

from darwinn_testbench.chip.inputs import TensorMap, TensorPort
from darwinn_testbench.chip.operators.custom_operator import CustomOperator, PlacedOperator
from darwinn_testbench.chip.operators.parts import PartedGraph
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

    Raises:
        InputError: the reference has other outputs.
        ModelError, Unavailable: LiteRT cannot run one of its operators.
    """

    def __init__(
        self,
        references: References,
        outputs: Sequence[TensorPort],
        places: Mapping[str, int],
    ) -> None:
        self.references = references
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
        return ""

    def run(self, usage: str, given: TensorMap, sent: TensorMap) -> dict[str, AnyArray]:
        """The outputs by name, from the graph's inputs and what the chip ``sent``, by port name.

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
        for name, value in sent.items():
            tensor = network.tensors[references.outputs[name]]
            parts.values[tensor.index] = value.reshape(tensor.shape)
        parts.run()
        return {name: parts.values[index] for name, index in self.outputs.items()}

    def _prepared(self) -> PartedGraph:
        references = self.references
        network = references.cpu.network
        computed = references.on_chip - references.inputs
        only = [each.index for each in network.operators if computed.isdisjoint(each.outputs)]
        refuse_unknown(self.file, self._model, only)
        parts = PartedGraph(
            references.cpu.data,
            self._model,
            self.file,
            _none_on_chip,
            LiteRtProcess(self.file, TIME_LIMIT),
            {"kernels": REFERENCE_KERNELS, "threads": 1, "preserve": False},
            only=only,
        )
        parts.prepare()
        return parts


def _none_on_chip(place: PlacedOperator) -> CustomOperator:
    raise InputError(f"{place.file}: operator {place.index} is compiled for the chip")
