"""Modules with calls, control flow and queued work print exactly what the original prints."""

from __future__ import annotations

import re

import pytest
from bef_flow_cases import FLOW
from bef_lifetime_cases import Flow
from bef_run import run


def printed(case: Flow, **options: object) -> list[str]:
    lines = run(case[1], **options).lines
    kept = [line for line in lines if not line.startswith("--- Not running")]
    # Times are never the same.
    return [re.sub(r"^(BM:.*: )\d+$", r"\1", line) for line in kept]


@pytest.mark.parametrize("case", FLOW, ids=lambda case: case[0])
def test_flow(case: Flow) -> None:
    assert printed(case) == case[2]


@pytest.mark.parametrize("case", FLOW, ids=lambda case: case[0])
def test_flow_with_threads(case: Flow) -> None:
    assert printed(case, threads=4) == case[2]


@pytest.mark.parametrize("case", FLOW, ids=lambda case: case[0])
def test_only_expected_errors_are_reported(case: Flow) -> None:
    outcome = run(case[1])
    assert outcome.log == []
    assert outcome.status == int(case[0] == "lost memory")
