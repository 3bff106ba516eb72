"""The register block that is generated from the register table."""

from __future__ import annotations

import pytest
from harness_runs import shared_simulation

TESTS = (
    "ResetValues",
    "AccessRules",
    "UnknownOffsets",
    "PageTable",
    "UnitStates",
    "AnyHost",
)

failed = shared_simulation("registers_tests", TESTS)


@pytest.mark.parametrize("test", TESTS)
def test_register_block(test: str, failed: dict[str, str]) -> None:
    assert not failed[test], failed[test]
