"""A small program is verified on further inputs, of which only those that fail leave rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from darwinn_testbench.chip.inputs import FURTHER_SETS, FURTHER_WORK, SEED_STEP, further_runs
from darwinn_testbench.chip.model import open_models
from darwinn_testbench.chip.schedules import Schedules
from darwinn_testbench.chip.session import Inference, Session
from darwinn_testbench.comparison import check
from darwinn_testbench.comparison.check import OutputRow
from darwinn_testbench.comparison.verify import verify
from darwinn_testbench.report import Report, Verdict
from darwinn_testbench.request.inputs import InputKind
from sample_files import sample

KINDS = len(InputKind)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("samples")
    sample(folder)
    return folder


def verified(folder: Path, **options: Any) -> Report[OutputRow]:
    """Without a proof: what is proved needs no further inputs."""
    asked = {"proof": False, **options}
    return verify(folder / "dense_edgetpu.tflite", folder / "dense.tflite", **asked)


@pytest.mark.parametrize(
    ("work", "sets"),
    [
        (0, FURTHER_SETS),
        (FURTHER_WORK // FURTHER_SETS, FURTHER_SETS),
        (FURTHER_WORK // FURTHER_SETS + 1, FURTHER_SETS - 1),
        (FURTHER_WORK, 1),
        (FURTHER_WORK + 1, 0),
    ],
)
def test_the_more_a_program_does_the_fewer_sets(work: int, sets: int) -> None:
    assert further_runs(work) == sets


def test_those_that_pass_leave_their_number(folder: Path) -> None:
    report = verified(folder)
    assert report.verdict is Verdict.PASS
    assert [row.run for row in report.rows] == list(range(KINDS))
    assert report.figures["inferences"] == KINDS
    assert report.figures["further_inferences"] == FURTHER_SETS
    assert len(report.figures["dma"]) == 1 + KINDS
    assert f"outputs of {FURTHER_SETS} further input sets pass as well" in report.message


def test_there_are_none_where_all_is_proved(folder: Path) -> None:
    report = verified(folder, proof=True)
    assert report.verdict is Verdict.PROVED
    assert report.figures["further_inferences"] == 0 and "further" not in report.message


@pytest.mark.parametrize(
    "options",
    [{"runs": KINDS}, {"inputs_kind": ("noise",)}, {"layers": True}, {"localise": True}],
    ids=str,
)
def test_there_are_none_where_somebody_says_which(folder: Path, options: dict[str, Any]) -> None:
    report = verified(folder, **options)
    assert report.verdict is Verdict.PASS
    assert report.figures["further_inferences"] == 0 and "further" not in report.message


def test_there_are_none_without_a_reference_or_of_given_inputs(folder: Path) -> None:
    alone = verify(folder / "dense_edgetpu.tflite")
    assert alone.figures["further_inferences"] == 0
    (port,) = {row.name for row in alone.rows}
    given = [{name: np.zeros(shape, np.int8) for name, shape in ports_of(folder)}]
    assert port and verified(folder, inputs=given).figures["further_inferences"] == 0


def ports_of(folder: Path) -> list[tuple[str, tuple[int, ...]]]:
    (bound,) = open_models(folder / "dense_edgetpu.tflite")
    return [(port.name, port.shape) for port in bound.ports]


def wrong_in(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the inference of this number, counted from 0, give one wrong byte."""
    infer: Callable[..., Inference] = Session.infer
    made: list[int] = []

    def other(self: Session, *arguments: Any, **options: Any) -> Inference:
        found = infer(self, *arguments, **options)
        if len(made) == number:
            for tensor in found.outputs.values():
                tensor.flat[0] ^= 1
        made.append(number)
        return found

    monkeypatch.setattr(Session, "infer", other)


@pytest.mark.parametrize("number", [KINDS, KINDS + 7, KINDS + FURTHER_SETS - 1])
def test_one_that_fails_is_a_row_with_what_it_was_drawn_from(
    number: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong_in(number, monkeypatch)
    report = verified(folder)
    assert report.verdict is Verdict.MISMATCH
    (row,) = [each for each in report.rows if each.run >= KINDS]
    assert (row.run, row.verdict) == (number, Verdict.MISMATCH)
    kind, seed = list(InputKind)[number % KINDS], SEED_STEP * number
    assert row.origin == f"{kind} {seed}"
    assert report.figures["further_inferences"] == FURTHER_SETS
    assert "further" not in report.message
    monkeypatch.undo()
    again = verified(folder, seed=seed, runs=1, inputs_kind=(kind,))
    assert again.verdict is Verdict.PASS and again.rows[0].origin == row.origin


def test_there_are_none_where_the_others_fail(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong_in(KINDS - 1, monkeypatch)
    report = verified(folder)
    assert report.verdict is Verdict.MISMATCH
    assert report.figures["further_inferences"] == 0
    assert len(report.rows) == KINDS


def test_orders_are_tried_with_the_first_sets_alone(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def tried(pipeline: object, done: list[object], *_: object) -> Schedules:
        asked.append(len(done))
        return Schedules(1, 0, 0.0, ())

    monkeypatch.setattr(check, "check_schedules", tried)
    report = verified(folder, schedules=1)
    assert report.verdict is Verdict.PASS
    assert report.figures["further_inferences"] == FURTHER_SETS
    assert asked == [KINDS]
