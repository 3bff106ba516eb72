"""The score of judges: faults that are equivalent, found, or of which nothing is known."""

from __future__ import annotations

from pathlib import Path

import pytest
from darwinn_testbench.compiler.files import sample
from equivalence import Truth
from executable_faults import KINDS, drawn

from benchmarks import faults
from benchmarks.faults import JUDGES, Judge, Model, Outcome


def outcome(known: Truth, *found_by: str, kind: str = "weight", why: str = "") -> Outcome:
    verdicts = {each.name: "mismatch" if each.name in found_by else "pass" for each in JUDGES}
    wrong = "verify" in found_by and kind != "function table"
    return Outcome("m", kind, "there", known, why, verdicts, found_by, wrong, 0.1)


def test_what_a_judge_finds_is_different() -> None:
    assert outcome(Truth.UNDECIDED).counted is Truth.UNDECIDED
    assert outcome(Truth.UNDECIDED, "verify").counted is Truth.DIFFERENT
    assert not outcome(Truth.UNDECIDED, "verify").contradicts
    assert not outcome(Truth.EQUIVALENT).contradicts
    assert outcome(Truth.EQUIVALENT, "verify").remark == "CONTRADICTION"
    of_a_table = outcome(Truth.EQUIVALENT, "verify", kind="function table")
    assert of_a_table.remark == "equivalent, found by verify"
    assert outcome(Truth.EQUIVALENT, "--layers").remark == "equivalent, found by --layers"
    assert outcome(Truth.DIFFERENT).remark == "not found"
    assert outcome(Truth.DIFFERENT, "--layers").remark == ""


def test_the_table_has_a_row_for_each_kind_and_a_column_for_each_judge(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(faults, "JUDGES", (*JUDGES, Judge("another")))
    found = [
        outcome(Truth.EQUIVALENT, why="a; b"),
        outcome(Truth.DIFFERENT, "another"),
        outcome(Truth.UNDECIDED),
        outcome(Truth.DIFFERENT, "verify", "another", kind="bias"),
    ]
    lines = faults.table(found)
    assert len(lines) == 2 + len(KINDS) + 1
    assert lines[0].endswith(
        "| verify | --no-proof | --no-proof --layers | --no-proof --schedules | another | all |"
    )
    assert "| weight | 3 | 1 | 1 | 1 | 0 | 0 | 0 | 0 | 1 | 1 |" in lines
    assert lines[-1] == "| all | 4 | 1 | 2 | 1 | 1 | 0 | 0 | 0 | 2 | 2 |"


def test_a_judge_finds_a_bias_and_no_padding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sample(tmp_path)
    monkeypatch.setattr(faults, "JUDGES", (Judge("verify", {"runs": 2}),))
    places = faults.places([tmp_path / "convolution_edgetpu.tflite"], tmp_path)
    (name, (path, reference)), *_ = places.items()
    model = Model(name, path, reference)
    outcomes = {
        kind.name: model.outcome(fault)
        for kind in KINDS
        if kind.name in ("bias", "padding")
        for fault in drawn(model.subject, kind, "3", 1)
    }
    assert outcomes["padding"].known is Truth.EQUIVALENT
    assert outcomes["padding"].found_by == ()
    assert outcomes["bias"].counted is not Truth.EQUIVALENT
