"""The register block that is generated from the register table."""

from __future__ import annotations

import pytest
from harness_runs import design, failures

TESTS = (
    "ResetValues",
    "AccessRules",
    "UnknownOffsets",
    "PageTable",
    "UnitStates",
)


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Of each test, why it has failed; all share a simulation."""
    work = tmp_path_factory.mktemp("registers_tests")
    return failures(design(DataBytes=8), "registers_tests", TESTS, work, seed=1)


@pytest.mark.parametrize("test", TESTS)
def test_register_block(test: str, failed: dict[str, str]) -> None:
    assert not failed[test], failed[test]
