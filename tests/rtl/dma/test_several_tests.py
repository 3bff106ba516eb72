"""Of several tests that share a simulation it is known which have failed."""

from __future__ import annotations

from pathlib import Path

from harness_runs import design, failures

TESTS = ("passes", "fails", "breaks", "passes_behind")


def test_which_have_failed(tmp_path: Path) -> None:
    found = failures(design(DataBytes=8), "failing_tests", TESTS, tmp_path, seed=1)
    assert [test for test in TESTS if found[test]] == ["fails", "breaks"]
    assert "it fails" in found["fails"]
