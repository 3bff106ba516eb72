"""Judge the outputs of a whole model that operators on the CPU compute.

They follow from the chip's bytes, so if these are right, the outputs are right byte for byte: the
CPU operators of the model before compilation get the chip's arithmetic, in LiteRT. If that is not
known, or a policy allows differences of the chip's bytes, they get the chip's own bytes. The
distance to a LiteRT run of the whole reference is always reported.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from darwinn_reference.arrays import AnyArray
from darwinn_reference.errors import ModelError

from darwinn_testbench.chip.cpu_operators import named_operators
from darwinn_testbench.chip.inputs import TensorMap, TensorPort
from darwinn_testbench.chip.session import Inference
from darwinn_testbench.chip.whole import (
    WholeInference,
    WholeModel,
    cpu_figures,
)
from darwinn_testbench.comparison.asked import Asked
from darwinn_testbench.comparison.cases import Case
from darwinn_testbench.comparison.check import (
    CHIP_ARITHMETIC,
    COMPLETION,
    CPU_OPERATORS,
    NOTHING,
    OutputRow,
    decided,
    row_of,
)
from darwinn_testbench.comparison.compare import Comparison, compare
from darwinn_testbench.comparison.cpu_part import FROM_CHIP, FROM_ORACLE, CpuExpectation
from darwinn_testbench.comparison.expectation import Expectation, References
from darwinn_testbench.policy import LITERT_LAYER, NAMED, Exact, LsbBudget, Policy
from darwinn_testbench.report import Verdict

_SUMMARIES = {
    CHIP_ARITHMETIC: f"equal {FROM_ORACLE}",
    CPU_OPERATORS: f"equal {FROM_CHIP}",
    COMPLETION: "were produced",
    NOTHING: "could be judged: the reference does not have what the chip sends",
}


class WholeJudge:
    """Judges what the CPU gives of ``model``, with ``references`` or without.

    Raises:
        InputError, ModelError, Unavailable: the reference has other outputs, or an operator that
            LiteRT cannot run.
    """

    def __init__(self, asked: Asked, model: WholeModel, references: References | None) -> None:
        self.asked, self.model = asked, model
        self._seconds = 0.0
        places = model.given_by_cpu
        self.ports = tuple(port for port in model.results if port.name in places)
        self._expected = (
            None if references is None else CpuExpectation(references, self.ports, places)
        )

    def judge(
        self,
        number: int,
        case: Case,
        whole: WholeInference,
        inference: Inference,
        expectation: Expectation | None,
    ) -> list[OutputRow]:
        """A row for each output that the CPU gives; ``inference`` is the chip's part."""
        self._seconds += whole.cpu_seconds
        rows = [
            replace(
                row_of(number, port.name, whole.outputs[port.name], whole.seconds, case),
                of_whole_model=True,
            )
            for port in self.ports
        ]
        if expectation is None or self._expected is None:
            return [replace(row, verdict=self.asked.uncompared) for row in rows]
        names = list(inference.outputs)
        unmatched = self._expected.missing(None, names)
        if unmatched:
            # What the reference computes on the CPU is then not known either.
            return [
                replace(row, verdict=Verdict.REFUSED, decided_by=NOTHING, message=unmatched)
                for row in rows
            ]
        missing = self._expected.missing(expectation, names)
        by_chip = bool(missing) or self.asked.policy is not None
        sent = inference.outputs if by_chip else _oracle(expectation, names)
        usage = FROM_CHIP if by_chip else FROM_ORACLE
        expected = self._expected.run(usage, case.inputs, sent)
        litert, litert_missing = self._by_litert(expectation, case.inputs, names)
        judged = []
        for row, port in zip(rows, self.ports, strict=True):
            found = _compared(row.tensor, expected[port.name], Exact(), port)
            other = litert.get(port.name)
            row = replace(
                row,
                expected_from=usage,
                cpu_operators=found if by_chip else None,
                chip_arithmetic=None if by_chip else found,
                chip_arithmetic_missing=missing,
                litert=None
                if other is None
                else _compared(row.tensor, other, _shown_policy(row.tensor), port),
                litert_missing="" if other is not None else litert_missing,
            )
            judged.append(decided(row, CPU_OPERATORS if by_chip else CHIP_ARITHMETIC, found))
        return judged

    def _by_litert(
        self, expectation: Expectation, given: TensorMap, names: Sequence[str]
    ) -> tuple[dict[str, AnyArray], str]:
        """The reference in LiteRT from its inputs on, by output; or nothing, and why."""
        values, expected = expectation.litert, self._expected
        assert expected is not None
        if isinstance(values, str):
            return {}, values
        if all(index in values for index in expected.outputs.values()):
            return {name: values[index] for name, index in expected.outputs.items()}, ""
        indices = {name: expectation.references.outputs[name] for name in names}
        lost = [values.missing[k] for k in indices.values() if k in values.missing]
        if lost:
            return {}, lost[0]
        try:
            # What LiteRT lacks is run here, from LiteRT's values.
            sent = {name: values[index] for name, index in indices.items()}
            return expected.run("LiteRT", given, sent), ""
        except ModelError as error:
            return {}, str(error)

    @property
    def figures(self) -> dict[str, Any]:
        """What the report says of the operators on the CPU."""
        return cpu_figures([self.model], self._seconds)

    def summary(self, rows: Sequence[OutputRow]) -> str:
        """How many outputs of the whole agree with what."""
        own = [row for row in rows if row.of_whole_model]
        parts = []
        for by, text in _SUMMARIES.items():
            judged = [row for row in own if row.decided_by == by]
            passed = sum(not row.verdict.failed for row in judged)
            if judged:
                parts.append(f"{passed} of {len(judged)} outputs of the whole model {text}")
        return "; ".join([*parts, f"on the CPU: {named_operators(self.model.operators)}"])


def _oracle(expectation: Expectation, names: Sequence[str]) -> dict[str, AnyArray]:
    """What the chip should send, by port name."""
    found = {name: expectation.find_chip(name)[0] for name in names}
    return {name: value for name, value in found.items() if value is not None}


def _shown_policy(tensor: AnyArray) -> Policy:
    """The policy of a comparison that decides nothing."""
    return NAMED["float32"] if tensor.dtype.kind == "f" else LITERT_LAYER


def _compared(tensor: AnyArray, expected: AnyArray, policy: Policy, port: TensorPort) -> Comparison:
    if expected.size == tensor.size:
        expected = expected.reshape(tensor.shape)
    if isinstance(policy, LsbBudget) and tensor.dtype.kind not in "iub":
        policy = Exact()
    return compare(tensor, expected, policy, zero_point=port.zero_point)
