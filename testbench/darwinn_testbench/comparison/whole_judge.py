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
    LITERT,
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
    LITERT: "are within the policy of LiteRT",
    COMPLETION: "were produced",
    NOTHING: "could be judged: the reference does not have what the chip sends",
}


class WholeJudge:
    """Judges the outputs of ``model`` that its executable ``number`` does not send, with
    ``references`` or without: what the CPU gives, and what further executables send.

    ``further`` are the same references for the further executables of the model's graph, in order.

    Raises:
        InputError, ModelError, Unavailable: the reference has other outputs, or an operator that
            LiteRT cannot run.
    """

    def __init__(
        self,
        asked: Asked,
        model: WholeModel,
        number: int,
        references: References | None,
        further: Sequence[References] = (),
    ) -> None:
        self.asked, self.model = asked, model
        self._seconds = 0.0
        own, others = model.sent_by(number), (each.model.number for each in model.sessions)
        self._elsewhere = model.sent_by(*others) - own
        places = {port.name: place for place, port in enumerate(model.results)}
        self.ports = tuple(port for port in model.results if port.name not in own)
        self._expected = (
            None if references is None else CpuExpectation(references, self.ports, places, further)
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
        if not by_chip:
            sent = _oracle(expectation, names)
            expected, missing = self._expected.by_oracle(case.inputs, sent)
            by_chip = bool(missing)
        if by_chip:
            own = self._sent(expectation.references, inference, whole)
            expected = self._expected.run(FROM_CHIP, case.inputs, own)
        usage = FROM_CHIP if by_chip else FROM_ORACLE
        litert, litert_missing = self._by_litert(expectation, case.inputs)
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
            if by_chip and port.name in self._elsewhere:
                judged.append(self._by_policy(row, other, port, missing or litert_missing))
            else:
                judged.append(decided(row, CPU_OPERATORS if by_chip else CHIP_ARITHMETIC, found))
        return judged

    def _by_policy(
        self, row: OutputRow, expected: AnyArray | None, port: TensorPort, missing: str
    ) -> OutputRow:
        """The row of what a further executable sends, if its own bytes say nothing."""
        row = replace(row, cpu_operators=None, expected_from="")
        if self.asked.policy is None or expected is None:
            return replace(row, verdict=Verdict.REFUSED, decided_by=NOTHING, message=missing)
        found = _compared(row.tensor, expected, self.asked.policy, port)
        return decided(replace(row, litert=found), LITERT, found)

    def _sent(
        self, references: References, inference: Inference, whole: WholeInference
    ) -> dict[int, AnyArray]:
        """The values that the chip has sent in an inference, by tensor of the reference."""
        assert self._expected is not None
        others = [done for done in whole.on_chip if done is not inference]
        pieces = [(references, inference), *zip(self._expected.further, others, strict=True)]
        return {
            index: done.outputs[name]
            for piece, done in pieces
            for name, index in piece.outputs.items()
        }

    def _by_litert(
        self, expectation: Expectation, given: TensorMap
    ) -> tuple[dict[str, AnyArray], str]:
        """The reference in LiteRT from its inputs on, by output; or nothing, and why."""
        values, expected = expectation.litert, self._expected
        assert expected is not None
        if isinstance(values, str):
            return {}, values
        if all(index in values for index in expected.outputs.values()):
            return {name: values[index] for name, index in expected.outputs.items()}, ""
        pieces = (expectation.references, *expected.further)
        indices = [index for piece in pieces for index in piece.outputs.values()]
        lost = [values.missing[index] for index in indices if index in values.missing]
        if lost:
            return {}, lost[0]
        try:
            # What LiteRT lacks is run here, from LiteRT's values.
            sent = {index: values[index] for index in indices}
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


def _oracle(expectation: Expectation, names: Sequence[str]) -> dict[int, AnyArray]:
    """The values that the chip should send, by tensor of the reference."""
    indices = expectation.references.outputs
    found = {indices[name]: expectation.find_chip(name)[0] for name in names}
    return {index: value for index, value in found.items() if value is not None}


def _shown_policy(tensor: AnyArray) -> Policy:
    """The policy of a comparison that decides nothing."""
    return NAMED["float32"] if tensor.dtype.kind == "f" else LITERT_LAYER


def _compared(tensor: AnyArray, expected: AnyArray, policy: Policy, port: TensorPort) -> Comparison:
    if expected.size == tensor.size:
        expected = expected.reshape(tensor.shape)
    if isinstance(policy, LsbBudget) and tensor.dtype.kind not in "iub":
        policy = Exact()
    return compare(tensor, expected, policy, zero_point=port.zero_point)
