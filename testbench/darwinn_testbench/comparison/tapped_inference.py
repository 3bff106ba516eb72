"""One inference of the chip beside what the references expect, from its outputs to each layer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property

from darwinn_reference.arrays import AnyArray
from darwinn_reference.tflite.graph import TensorValues
from darwinn_sim.machine.lowering import LoweredProgram

from darwinn_testbench.chip.inputs import TensorMap
from darwinn_testbench.chip.session import Inference
from darwinn_testbench.comparison.expectation import Expectation
from darwinn_testbench.comparison.operator_coverage import cover
from darwinn_testbench.layers.candidates import Candidates, find_candidates
from darwinn_testbench.layers.check import Finding, LayerCheck, TensorRow
from darwinn_testbench.layers.localise import Divergence, localise_layers
from darwinn_testbench.layers.taken_tensors import TakenTensor, TensorTaker
from darwinn_testbench.policy import Policy


class TappedInference:
    """An inference and its expectation, gone on from what the chip has where the oracle could not.

    Args:
        expectation: what the references say.
        program: what has run; with ``layer_taps`` if the expectation is incomplete, or for
            :meth:`localise` and :meth:`check_layers`.
        inference: what came of it.
        tensors: inputs of the uncompiled graph, by port name.
        run: number of the inference.
        policy: how far a taken tensor may be from LiteRT's.
        makers: asked for the layers of tensors (``LayerCheck.makers``) once something differs.
    """

    def __init__(
        self,
        expectation: Expectation,
        program: LoweredProgram,
        inference: Inference,
        tensors: TensorMap,
        run: int,
        policy: Policy | None,
        makers: Callable[[], Mapping[int, frozenset[int]]] = dict,
    ) -> None:
        self.references = expectation.references
        self.program, self.inference, self.run = program, inference, run
        self._makers = makers
        self.given = [tensors[port.name] for port in self.references.ports]
        outputs = self.references.outputs
        self.sent = {outputs[k]: value for k, value in inference.outputs.items() if k in outputs}
        self.expectation = self._completed(expectation, policy)

    @cached_property
    def candidates(self) -> Candidates:
        """What the taps have copied, put together."""
        return find_candidates(self.program, self.inference.result.tapped)

    def _completed(self, expectation: Expectation, policy: Policy | None) -> Expectation:
        references, values = self.references, expectation.chip
        taken: Mapping[int, TakenTensor] = {}
        rows: tuple[TensorRow, ...] = ()
        if expectation.incomplete:
            chip, estimate = references.cpu.chip, references.parts.estimate
            taker = TensorTaker(chip, self.candidates, self.sent, references.on_chip, estimate)
            values = chip.run(self.given, expectation.variables, taker.supply)
            taken = taker.taken
            rows = self._compare(values, taken)
        coverage = cover(
            references.cpu.network,
            values,
            references.on_chip,
            references.inputs,
            self.sent,
            taken,
            rows,
            references.parts,
            policy,
            expectation.variables,
        )
        return replace(expectation, chip=values, coverage=coverage)

    def localise(self) -> list[Divergence]:
        """The tensors that the chip computes wrongly, each from what it was given itself."""
        taken = self.expectation.coverage.taken
        supplied = {index: each.value for index, each in taken.items()}
        supplied |= self.expectation.variables

        def check(given: Mapping[int, AnyArray]) -> tuple[TensorRow, ...]:
            expected = self.references.cpu.chip.run(self.given, {**supplied, **given})
            return self._compare(expected, taken)

        return localise_layers(check, self.run)

    def check_layers(self) -> tuple[TensorRow, ...]:
        """Every tensor that the chip computes on the way."""
        return self._compare(self.expectation.chip, self.expectation.coverage.taken)

    def _compare(
        self, expected: TensorValues, taken: Mapping[int, TakenTensor]
    ) -> tuple[TensorRow, ...]:
        rows = self._found(expected, taken, {})
        if not any(row.finding is Finding.DIFFERS for row in rows):
            return rows
        makers = self._makers()
        return self._found(expected, taken, makers) if makers else rows

    def _found(
        self,
        expected: TensorValues,
        taken: Mapping[int, TakenTensor],
        makers: Mapping[int, frozenset[int]],
    ) -> tuple[TensorRow, ...]:
        network, inputs = self.references.cpu.network, self.references.inputs
        found = network, expected, self.candidates, inputs, self.sent, self.run, taken, makers
        return LayerCheck(*found).rows()
