"""The suite notices faults: each deliberate fault of the RTL makes its test fail."""

from __future__ import annotations

import pytest
from harness_runs import require_toolchain
from mutations import CONTROL, MUTATIONS, declared, how_caught, row, run_with

IN_THE_GATE = ("FenceIgnored", "StrobeDropped", "OneMoreOutstanding")
"""Faults that show as a broken assertion, as wrong bytes, and as wrong cycles only."""


def check(name: str) -> None:
    require_toolchain()
    mutation = next(mutation for mutation in MUTATIONS if mutation.name == name)
    print(row(mutation, how_caught(mutation)))


def test_every_fault_has_a_test() -> None:
    assert sorted(mutation.name for mutation in MUTATIONS) == sorted(declared())


@pytest.mark.parametrize("name", IN_THE_GATE)
def test_fault_is_caught(name: str) -> None:
    check(name)


@pytest.mark.nightly
@pytest.mark.parametrize(
    "name", [mutation.name for mutation in MUTATIONS if mutation.name not in IN_THE_GATE]
)
def test_every_fault_is_caught(name: str) -> None:
    check(name)


@pytest.mark.nightly
@pytest.mark.parametrize("test", sorted({mutation.test for mutation in MUTATIONS}))
def test_nothing_is_caught_without_a_fault(test: str) -> None:
    require_toolchain()
    passes, output = run_with(CONTROL, test)
    assert passes, output
