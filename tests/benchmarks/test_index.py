"""The list of benches has all that are run anywhere, and nothing that is none."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks import __main__ as index

ROOT = Path(__file__).parents[2]
Call = Callable[..., int]


def in_jobs() -> set[str]:
    """The benches that `make bench` runs."""
    (names,) = re.findall(r"for each in (record .*); do", (ROOT / "Makefile").read_text())
    return set(names.split())


def test_every_bench_is_listed_with_what_it_measures(
    call: Call, capsys: pytest.CaptureFixture[str]
) -> None:
    found = index.benches()
    named = {"against", "classifiers", "cores", "evaluate", "layers", "many_inputs", "peers"}
    assert named | in_jobs() | {"conformance", "detection", "regress"} <= set(found)
    assert not {"common", "figures", "iree_networks", "warm", "__main__"} & set(found)
    assert all(line.endswith(".") for line in found.values())
    assert call("__main__") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[: len(found)]] == list(found)
