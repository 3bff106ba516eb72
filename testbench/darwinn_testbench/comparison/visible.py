"""Find an input that shows a refuted element, at an output or at the tensor of its operator.

The inferences that ran come first. If their outputs are right, they and inputs made for the element
run again, for a second or two, and the layers that compute the operator are watched.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from darwinn_reference.arrays import AnyArray
from darwinn_reference.tflite.graph import TensorValues
from darwinn_sim.machine.examine import Tap

from darwinn_testbench.chip.inputs import Origin, TensorMap
from darwinn_testbench.chip.session import Session
from darwinn_testbench.comparison.cases import Case
from darwinn_testbench.comparison.check import OutputRow
from darwinn_testbench.comparison.expectation import Expectation, References, device_inputs
from darwinn_testbench.comparison.made_inputs import Maker
from darwinn_testbench.layers.candidates import (
    Candidates,
    as_tensor,
    find_candidates,
    find_matches,
)
from darwinn_testbench.proof.prove import OperatorVerdict
from darwinn_testbench.proof.shown import MadeInput, Shown
from darwinn_testbench.request.inputs import InputKind

SECONDS = 2.0
"""Duration of the search."""


def shown_in(rows: Sequence[OutputRow]) -> Shown | None:
    """The first output of the inferences that were made which differs."""
    for row in rows:
        found = row.chip_arithmetic
        if found is not None and found.differing and not row.of_whole_model:
            assert found.first_difference is not None
            values = found.first_expected or 0.0, found.first_actual or 0.0
            kind, seed = row.inputs_kind, row.inputs_seed
            origin = None if kind is None or seed is None else Origin(InputKind(kind), seed)
            return Shown(row.name, found.first_difference, *values, True, row.run, origin)
    return None


@dataclass(frozen=True)
class Search:
    """Runs inputs again, and examines the results of a refuted operator."""

    session: Session
    references: References
    refuted: OperatorVerdict

    def shown(self, cases: Sequence[Case]) -> Shown | None:
        """An input for which a byte differs; None if none was found in time."""
        begin = time.monotonic()
        for run, case, made in self._inputs(cases, begin + SECONDS / 2):
            found = self._look(case.inputs)
            if found is not None:
                return replace(found, run=run, origin=case.origin, made=made, inputs=case.inputs)
            if time.monotonic() > begin + SECONDS:
                break
        return None

    def _inputs(
        self, cases: Sequence[Case], until: float
    ) -> Iterator[tuple[int | None, Case, tuple[MadeInput, ...]]]:
        """Those that were run, ``until`` it is time for others; then those that are made."""
        for run, case in enumerate(cases if self.refuted.layers else ()):
            yield run, case, ()
            if time.monotonic() > until:
                break
        if self.refuted.difference is None:
            return
        references = self.references
        maker = Maker(references.cpu.network, references.ports, references.cpu.chip.choices)
        for made in maker.inputs(self.refuted.difference):
            yield None, Case(self._arrays(made)), made

    def _arrays(self, made: tuple[MadeInput, ...]) -> TensorMap:
        found = {}
        for port, each in zip(self.references.ports, made, strict=True):
            array = np.full(port.elements, each.fill)
            array[list(each.places)] = each.values
            found[port.name] = array.astype(port.dtype).reshape(port.shape)
        return found

    def _look(self, inputs: TensorMap) -> Shown | None:
        references = self.references
        expected = references.cpu.chip.run([inputs[port.name] for port in references.ports])
        expectation = Expectation(references, expected, "not asked")
        given = device_inputs(self.session.ports, inputs, expectation)
        taps = tuple(Tap(layer=number) for number in self.refuted.layers)
        inference = self.session.infer(given, taps=taps)
        for name, index in references.outputs.items():
            sent = inference.outputs[name]
            if index in expected and sent.size == expected[index].size:
                found = _first(name, sent.reshape(expected[index].shape), expected[index], True)
                if found is not None:
                    return found
        candidates = find_candidates(self.session.program, inference.result.tapped)
        return self._within(expected, candidates)

    def _within(self, expected: TensorValues, candidates: Candidates) -> Shown | None:
        """In the tensor of the operator, as its layers have it."""
        network = self.references.cpu.network
        output = network.tensors[network.operators[self.refuted.index].outputs[0]]
        if output.index not in expected:
            return None
        matches = [
            (match.differing, as_tensor(match.value(like), output))
            for like in (network.tensors[k] for k in self.references.groups[output.index])
            if like.index in expected and like.dtype.itemsize == 1
            for match in find_matches(like, expected[like.index], candidates)
        ]
        if not matches:
            return None
        _, value = min(matches, key=lambda each: each[0])
        return _first(output.name, value, expected[output.index], False)


def _first(name: str, chip: AnyArray, network: AnyArray, is_output: bool) -> Shown | None:
    """The first element that differs."""
    if np.array_equal(chip, network):
        return None
    place = np.unravel_index(int(np.argmax((chip != network).reshape(-1))), network.shape)
    element = tuple(int(k) for k in place)
    return Shown(name, element, float(network[element]), float(chip[element]), is_output)
