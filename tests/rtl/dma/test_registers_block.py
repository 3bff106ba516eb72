"""The register block that is generated from the register table."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness_runs import design, run


@pytest.mark.parametrize(
    "test", ["ResetValues", "AccessRules", "UnknownOffsets", "PageTable", "UnitStates"]
)
def test_register_block(test: str, tmp_path: Path) -> None:
    run(design(DataBytes=8), "registers_tests", test, tmp_path, seed=1)
