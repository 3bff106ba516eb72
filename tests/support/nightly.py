"""Random tests in two sizes: few cases in the gate, always the same, and many new ones nightly.

What a nightly run draws follows from one seed, which ``tests/conftest.py`` prints with what ran;
with that seed in the environment variable the same is drawn again.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any
from zlib import crc32

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from stimulus import PHASES

from tests.nightly.deadline import is_over

SEED_VARIABLE = "DARWINN_NIGHTLY_SEED"
"""Environment variable: the seed, a number; one is drawn where it is not set."""

CASES = 1000
"""Cases of each random test, nightly."""

nightly_too = pytest.mark.parametrize(
    "nightly", [False, pytest.param(True, marks=pytest.mark.nightly)], ids=["gate", "nightly"]
)
"""A test with argument ``nightly``, in both sizes."""

_ran: list[tuple[str, int, int]] = []


def nightly_seed() -> int:
    """The seed of this run."""
    return int(os.environ[SEED_VARIABLE])


def note(what: str, cases: int, chosen: int) -> None:
    """Remember for the summary that so many random cases ran, drawn from a seed."""
    _ran.append((what, cases, chosen))


def take_notes() -> list[tuple[str, int, int]]:
    """What was noted since the last call."""
    taken = _ran.copy()
    _ran.clear()
    return taken


def check_cases(
    what: str,
    cases: st.SearchStrategy[Any],
    check: Callable[[Any], None],
    examples: int,
    *,
    nightly: bool,
    nightly_examples: int = CASES,
    added: int = 0,
) -> None:
    """Check ``examples`` cases; nightly ``nightly_examples``, from the seed plus ``added``, and
    none after the time of the night.

    In the gate the seed is one of ``what``, so that no two units have the same cases; and all are
    checked, as what a night tries on them, a fault or a mutant, would seem to pass.
    """
    ran = 0

    def counted(case: Any) -> None:
        nonlocal ran
        if nightly and is_over():
            return
        ran += 1
        check(case)

    test = settings(
        max_examples=nightly_examples if nightly else examples,
        database=None,
        deadline=None,
        phases=PHASES,
        print_blob=True,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )(given(cases)(counted))
    chosen = (nightly_seed() if nightly else crc32(what.encode())) + added
    seed(chosen)(test)()
    if nightly:
        note(what, ran, chosen)
