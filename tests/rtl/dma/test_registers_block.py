"""The register block that is generated from the register table."""

from __future__ import annotations

import pytest
from harness_runs import names_of_tests, shared_simulation

TESTS = names_of_tests("registers_tests")

failed = shared_simulation("registers_tests")


@pytest.mark.parametrize("test", TESTS)
def test_register_block(test: str, failed: dict[str, str]) -> None:
    assert not failed[test], failed[test]
