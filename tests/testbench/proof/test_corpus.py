"""A real model is proved, and none of its faulty ones but those that compute the same."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from darwinn_sim.errors import SimulationError
from darwinn_testbench.chip.model import open_models
from darwinn_testbench.comparison.function_tables import FunctionTables
from executable_faults import KINDS
from fixed_faults import FIRST, FixedFault, fixed_faults
from proofs import proof_of

OPERATORS = 31


def test_every_operator_of_a_mobilenet_is_proved(corpus: Path) -> None:
    (bound,) = open_models(corpus / "darwinn" / f"{FIRST}_edgetpu.tflite")
    found = proof_of(bound, corpus / "tflite" / f"{FIRST}.tflite")
    assert found.proved
    assert found.operators == OPERATORS
    assert not found.sampled
    assert not found.refuted


def verdict_of(fault: FixedFault) -> str:
    (bound,) = open_models(fault.data)
    try:
        found = proof_of(bound, fault.reference)
    except SimulationError:
        return "fails"
    if FunctionTables.of(bound.compiled.inference).wrong:
        # Proofs take the tables of the program: another check looks at these.
        return "tables"
    if found.proved:
        return "proved"
    return "refuted" if found.refuted else "sampled"


@pytest.mark.nightly
def test_faults_that_are_not_equivalent_are_not_proved(corpus: Path) -> None:
    """Nor is what is equivalent called another function."""
    found: Counter[tuple[str, str, str]] = Counter()
    wrong = []
    for fault in fixed_faults(corpus, FIRST):
        verdict = verdict_of(fault)
        known = {True: "equivalent", False: "different", None: "undecided"}[fault.equivalent]
        found[fault.kind, known, verdict] += 1
        if (verdict == "proved") > (fault.equivalent is not False):
            wrong.append(f"proved, but {fault.why}: {fault.kind}, {fault.where}")
        if verdict == "refuted" and fault.equivalent:
            wrong.append(f"refuted, but {fault.why}: {fault.kind}, {fault.where}")
    for (kind, known, verdict), count in sorted(found.items()):
        print(f"{kind:25} {known:11} {verdict:8} {count:3}")
    assert {kind for kind, _, _ in found} <= {kind.name for kind in KINDS}
    assert not wrong
