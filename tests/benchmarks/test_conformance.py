"""The table of conformance: each outcome is the one that two runtimes gave, and nothing ends it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from darwinn_formats.errors import ExecutionError, FormatError
from darwinn_reference.errors import Unsupported
from darwinn_reference.protocol import Output, Reference

from benchmarks.conformance import run
from benchmarks.conformance.run import Row, Worker, examine
from benchmarks.conformance.subject import Call, Subject

Answer = Callable[[], Sequence[Any]]

HALVES = np.array([0.5, -1.5, 1e6], np.float32)
LESS = HALVES[:2]
UNKNOWN = np.array([np.nan, 1], np.float32)
ONES = np.ones(2, np.float32)
COUNTS = np.arange(2)


class Runtime:
    """A runtime that gives what it is told, call after call."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer

    def run(self, inputs: Sequence[Any], function: str | None = None) -> list[Output]:
        assert (list(inputs), function) == ([3], "twice")
        return [Output("out", data) for data in self.answer()]


def asked(monkeypatch: pytest.MonkeyPatch, ours: Answer, theirs: Answer, made: Any = None) -> Row:
    """The row of a program that is called twice and answers so in both runtimes."""

    def subject() -> Subject:
        if made is not None:
            raise made
        call = Call([np.asarray(3)], "twice")
        return Subject(b"program", [call, call], beside={"data.ptd": b"weights"})

    def opened(answer: Answer) -> run.Open:
        def open_it(path: Path, beside: Sequence[Path]) -> Reference:
            assert path.read_bytes() == b"program"
            assert [(file.name, file.read_bytes()) for file in beside] == [("data.ptd", b"weights")]
            return cast(Reference, Runtime(answer))

        return open_it

    entry = run.Format(lambda: {"it": subject}, opened(ours), opened(theirs), lambda: "")
    monkeypatch.setitem(run.FORMATS, "made up", entry)
    return examine("made up", "it")


def gives(*outputs: Any) -> Answer:
    return lambda: outputs


def raises(error: Exception) -> Answer:
    def answer() -> Sequence[Any]:
        raise error

    return answer


REFUSAL = Unsupported("program.pte", ["aten::new"])


@pytest.mark.parametrize(
    ("ours", "theirs", "outcome", "said"),
    [
        (gives(HALVES), gives(HALVES), run.EQUAL, ""),
        (gives(HALVES * np.float32(1 + 1e-6)), gives(HALVES), run.EQUAL, ""),
        (gives(HALVES * np.float32(1.01)), gives(HALVES), run.DIFFERENT, ""),
        (gives(COUNTS), gives(COUNTS + 1), run.DIFFERENT, ""),
        (
            gives(UNKNOWN),
            gives(UNKNOWN),
            run.EQUAL,
            "",
        ),
        (
            gives(UNKNOWN),
            gives(ONES),
            run.DIFFERENT,
            "",
        ),
        (gives(LESS), gives(HALVES), run.DIFFERENT, "float32[2] here, float32[3] there"),
        (gives(np.int8(1)), gives(np.uint8(1)), run.DIFFERENT, "int8[] here, uint8[] there"),
        (gives(HALVES), gives(HALVES, LESS), run.DIFFERENT, "1 outputs here, 2 there"),
        (gives(HALVES, LESS), gives(HALVES), run.DIFFERENT, "2 outputs here, 1 there"),
        (raises(REFUSAL), gives(HALVES), run.REFUSED, "aten::new"),
        (raises(IndexError("list")), gives(HALVES), run.BROKEN, "IndexError: list"),
        (raises(REFUSAL), raises(ExecutionError("they do not either")), run.BOTH, "they do not"),
        (gives(HALVES), raises(ExecutionError("out of memory")), run.THEIRS, "out of memory"),
    ],
)
def test_the_outcome_is_what_two_runtimes_gave(
    monkeypatch: pytest.MonkeyPatch, ours: Answer, theirs: Answer, outcome: str, said: str
) -> None:
    row = asked(monkeypatch, ours, theirs)
    assert (row.format, row.name, row.outcome) == ("made up", "it", outcome)
    assert said in row.reason
    assert (outcome == run.EQUAL) == (row.reason == "")
    assert (row.worst is None) == (outcome not in (run.EQUAL, run.DIFFERENT))


def test_the_worst_difference_is_relative_above_one(monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = np.array([0.25, 1000, -3], np.float32)
    row = asked(monkeypatch, gives(theirs + np.array([0.5, 100, 0], np.float32)), gives(theirs))
    assert row.worst == pytest.approx(0.5)
    row = asked(monkeypatch, gives(theirs + np.array([0, 100, 0], np.float32)), gives(theirs))
    assert row.worst == pytest.approx(0.1)


def test_what_no_exporter_makes_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    row = asked(monkeypatch, gives(), gives(), made=FormatError("model.operator", "no such one"))
    assert (row.outcome, row.reason) == (run.UNMADE, "FormatError: model.operator: no such one")


def _crash_or_row(kind: str, name: str) -> Row:
    if name == "crash":
        os._exit(11)
    if name == "sleep":
        time.sleep(600)
    return Row(kind, name, run.EQUAL)


def test_a_crash_and_a_program_without_end_cost_one_row() -> None:
    worker = Worker(60, _crash_or_row)
    try:
        assert worker("x", "good").outcome == run.EQUAL
        crashed = worker("x", "crash")
        assert (crashed.outcome, crashed.reason) == (
            run.UNMADE,
            "the process ended: a runtime crashed",
        )
        assert worker("x", "good").outcome == run.EQUAL
        worker.seconds = 0.2
        assert worker("x", "sleep").reason == "not done after 0.2 s"
        worker.seconds = 60
        assert worker("x", "good").outcome == run.EQUAL
    finally:
        worker.close()
