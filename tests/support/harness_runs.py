"""Runs cocotb tests of the harness from pytest; skips where the toolchain is not installed."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import pytest
from darwinn_rtl import toolchain

if TYPE_CHECKING:
    from darwinn_rtl.build import Design

COCOTB_TESTS = tuple(
    Path(__file__).parents[1] / "rtl" / folder for folder in ("dma", "tile", "chip")
)
"""Folders of the modules that run inside of simulations."""


def require_toolchain(*, waves: bool = False) -> None:
    """Skip the test, with the way to get it, where something is missing (for waves as well)."""
    missing = toolchain.missing(waves=waves)
    if missing:
        pytest.skip("no RTL toolchain: " + "; ".join(missing))


def design(top: str = "harness", c_sources: tuple[str, ...] = (), /, **parameters: int) -> Design:
    """The harness, or another top module around it, with parameters of choice."""
    require_toolchain()
    from darwinn_rtl.build import Design

    return Design(top, parameters, registers=True, c_sources=c_sources)


def run(
    chosen: Design, module: str, test: str, work: Path, *, seed: int, **environment: object
) -> Path:
    """Run one cocotb test in a process of its own; its random choices depend on ``seed`` alone."""
    return _simulate(chosen, module, (test,), work, seed, environment)


def failures(
    chosen: Design, module: str, tests: Sequence[str], work: Path, *, seed: int
) -> dict[str, str]:
    """Run cocotb tests one after the other in one process, which takes longer to start than most of
    them do; why each has failed, empty if it has not."""
    from darwinn_rtl.build import SimulationFailed

    try:
        _simulate(chosen, module, tests, work, seed, {})
    except SimulationFailed as failure:
        results = work / f"{module}.xml"
        cases = ElementTree.parse(results).iter("testcase") if results.exists() else ()
        # A test of which nothing is said did not end.
        passed = {
            case.get("name")
            for case in cases
            if case.find("failure") is None and case.find("error") is None
        }
        return {test: "" if test in passed else str(failure) for test in tests}
    return dict.fromkeys(tests, "")


def names_of_tests(module: str) -> tuple[str, ...]:
    """The pyuvm tests of a cocotb module, in their order: their source is read, because it can be
    imported in a simulation only."""
    (path,) = (path for folder in COCOTB_TESTS for path in folder.glob(f"{module}.py"))
    return tuple(re.findall(r"^@pyuvm\.test\(\)\nclass (\w+)", path.read_text(), re.MULTILINE))


def shared_simulation(module: str, *, data_bytes: int = 8) -> Any:
    """A fixture of all tests of a cocotb module, which share a simulation: of each, why it has
    failed."""

    @pytest.fixture(scope="module")
    def failed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
        work, tests = tmp_path_factory.mktemp(module), names_of_tests(module)
        return failures(design(DataBytes=data_bytes), module, tests, work, seed=1)

    return failed


def _simulate(
    chosen: Design,
    module: str,
    tests: Sequence[str],
    work: Path,
    seed: int,
    environment: Mapping[str, object],
) -> Path:
    from darwinn_rtl.build import simulate

    sys.path += [str(folder) for folder in COCOTB_TESTS if str(folder) not in sys.path]
    text = {name: str(value) for name, value in environment.items()}
    return simulate(chosen, module, tests, seed=seed, work=work, environment=text)
