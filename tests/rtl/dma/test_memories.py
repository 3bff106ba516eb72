"""The host memories of the bench, driven cycle by cycle."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness_runs import require_toolchain, run
from host_memory_model import KINDS

FURTHER = (pytest.mark.nightly, pytest.mark.asked_of_mutants)


def perform(test: str, number: int, work: Path, **parameters: int) -> None:
    require_toolchain()
    from darwinn_rtl.build import Design

    kind = KINDS[number]
    sizes = {"DataBytes": kind.data_bytes, "Latency": kind.latency, "Requests": kind.requests}
    chosen = Design("memory_bench", sizes | parameters, c_sources=("host_memory.cpp",))
    run(chosen, "memory_tests", test, work, seed=1, DARWINN_MEMORY_KIND=number)


@pytest.mark.parametrize(
    "number", [0, *(pytest.param(number, marks=FURTHER) for number in range(1, len(KINDS)))]
)
def test_the_memory_in_order_does_as_described(number: int, tmp_path: Path) -> None:
    perform("in_order", number, tmp_path)


def test_the_unruly_memory_keeps_the_rules(tmp_path: Path) -> None:
    perform("unruly", 0, tmp_path, Unruly=1)
