"""Conditions and handshakes of the host's side that come together: programs are drawn towards the
pairs that are missing, on a narrow bus with small queues.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

import coincidences
import pytest
from coincidences import Knobs, drawn, possible, reason
from harness_runs import require_toolchain, run
from nightly import nightly_seed, note

GATE = 12
NIGHT = 600
"""Programs of a run."""


def run_towards(least: float, programs: int, seed: int, work: Path) -> None:
    run(
        *(coincidences.small_host(), "coincidences_tests", "Coincidences", work),
        seed=seed,
        DARWINN_PROGRAMS=programs,
        DARWINN_LEAST=least,
    )


def test_whatever_comes_together_changes_no_byte(tmp_path: Path) -> None:
    run_towards(0.35, GATE, 1, tmp_path)


@pytest.mark.nightly
def test_everything_that_may_come_together_has_come_together(tmp_path: Path) -> None:
    chosen = nightly_seed()
    run_towards(0.97, NIGHT, chosen, tmp_path)
    note("programs towards conditions and handshakes of the host's side", NIGHT, chosen)


def test_lint_of_the_bench_that_counts_is_clean() -> None:
    require_toolchain()
    from darwinn_rtl.lint import verilator

    assert verilator(coincidences.small_host()) == ""


def test_every_reason_is_needed_and_every_name_is_one() -> None:
    """A pattern that matches nothing argues nothing away; recipes are for names that there are."""
    everything = [
        (condition, shake)
        for condition in coincidences.conditions()
        for shake in coincidences.handshakes()
    ]
    needed = {reason(pair) for pair in everything} - {""}
    assert needed == {why for _, _, why in coincidences.IMPOSSIBLE}
    assert len(possible()) == sum(not reason(pair) for pair in everything)
    names = {condition.partition(" ")[0] for condition, _ in everything}
    assert set(coincidences.RECIPES) <= names | {shake for _, shake in everything}


def test_the_bits_that_are_counted_have_their_names() -> None:
    last = (coincidences.conditions()[-1], coincidences.handshakes()[-1])
    assert last == ("error_answered", "host_told")
    assert coincidences.pairs_of(1) == {last}
    first = 1 << len(coincidences.conditions()) * len(coincidences.handshakes()) - 1
    assert coincidences.pairs_of(first) == {("pause begins", "descriptor_taken")}


def test_programs_are_drawn_towards_what_is_missing() -> None:
    """Of a pair, both recipes are followed, but where one knob serves both or is drawn anew."""
    chosen = [drawn(Random(seed), [("reset", "register_read")]) for seed in range(40)]
    aimed = [each for each in chosen if each.reset and each.accesses == 0.7]
    assert len(aimed) >= 20
    assert any(not each.reset for each in chosen)
    assert drawn(Random(1), []) != Knobs()
