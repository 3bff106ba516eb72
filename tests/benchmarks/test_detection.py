"""The score of verification: outcomes are kept, and faults are judged as they should be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from equivalence import Truth
from executable_faults import KINDS, drawn
from sample_files import sample

from benchmarks import detection
from benchmarks.detection import JUDGES, Judge, Model, Outcome, Task, known_outcomes


def outcome(
    known: Truth, *found_by: str, kind: str = "weight", why: str = "", otherwise: str = "pass"
) -> Outcome:
    verdicts = {each.name: "mismatch" if each.name in found_by else otherwise for each in JUDGES}
    wrong = "verify" in found_by and kind != "function table"
    return Outcome("k", "m", kind, "there", known, why, verdicts, found_by, wrong, ("LSTM",), 0.1)


def test_what_a_judge_finds_is_different() -> None:
    assert outcome(Truth.UNDECIDED).counted is Truth.UNDECIDED
    assert outcome(Truth.UNDECIDED, "verify").counted is Truth.DIFFERENT
    assert not outcome(Truth.UNDECIDED, "verify").contradicts
    assert not outcome(Truth.EQUIVALENT).contradicts
    assert outcome(Truth.EQUIVALENT, "verify").remark == "CONTRADICTION"
    of_a_table = outcome(Truth.EQUIVALENT, "verify", kind="function table")
    assert of_a_table.remark == "equivalent, found by verify"
    assert outcome(Truth.DIFFERENT).remark == "not found, sampled: LSTM"
    assert outcome(Truth.DIFFERENT, "five samples").remark == "not found, sampled: LSTM"
    assert outcome(Truth.DIFFERENT, "verify").remark == ""


def test_a_proof_of_a_program_that_is_different_is_a_contradiction() -> None:
    assert outcome(Truth.DIFFERENT, otherwise="proved").remark == "CONTRADICTION"
    assert not outcome(Truth.UNDECIDED, otherwise="proved").contradicts
    assert not outcome(Truth.EQUIVALENT, otherwise="proved").contradicts


def test_the_table_has_a_row_for_each_kind_and_a_column_for_each_judge(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(detection, "JUDGES", (*JUDGES, Judge("another")))
    found = [
        outcome(Truth.EQUIVALENT, why="a; b"),
        outcome(Truth.DIFFERENT, "another"),
        outcome(Truth.UNDECIDED),
        outcome(Truth.DIFFERENT, "verify", "another", kind="bias"),
    ]
    lines = detection.table(found)
    assert len(lines) == 2 + len(KINDS) + 1
    assert lines[0].endswith("| verify | five samples | another |")
    assert "| weight | 3 | 1 | 1 | 1 | 0 (0.0 %) | 0 (0.0 %) | 1 (100.0 %) |" in lines
    assert lines[-1] == "| all | 4 | 1 | 2 | 1 | 1 (50.0 %) | 0 (0.0 %) | 2 (100.0 %) |"


def test_a_judge_finds_a_bias_and_no_padding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sample(tmp_path)
    monkeypatch.setattr(detection, "JUDGES", (Judge("verify", {"runs": 2}),))
    places = detection.places([tmp_path / "convolution_edgetpu.tflite"], tmp_path)
    (name, (path, reference)), *_ = places.items()
    model = Model(name, path, reference)
    outcomes = {
        kind.name: model.outcome(fault, kind)
        for kind in KINDS
        if kind.name in ("bias", "padding", "producer lost")
        for fault in drawn(model.subject, kind, "3", 1)
    }
    assert outcomes["padding"].known is Truth.EQUIVALENT
    assert outcomes["padding"].found_by == ()
    assert outcomes["bias"].counted is not Truth.EQUIVALENT
    # No argument is known of synchronisation, and a lost count shows in some order or in none.
    assert outcomes["producer lost"].known is not Truth.EQUIVALENT


def test_outcomes_are_kept_and_the_same_command_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "detection.jsonl"
    monkeypatch.setattr(detection, "get_context", lambda method: _Here)
    looked_at: list[str] = []

    def look_at(arguments: tuple[Task, detection.Places]) -> Outcome:
        task, _ = arguments
        looked_at.append(task.key)
        verdicts = {"verify": "pass"}
        return Outcome(
            *(task.key, task.model, task.kind, "there", Truth.DIFFERENT, "", verdicts, (), False),
            *((), 0.1),
        )

    monkeypatch.setattr(detection, "_look_at", look_at)
    tasks = [Task("m", "weight", number, 0) for number in range(3)]
    first = list(detection.outcomes_of(tasks, {}, file, 1, None))
    # The last line was not written to its end: that fault is made again, and no other one.
    lines = file.read_text().splitlines()
    file.write_text("\n".join([*lines[:-1], lines[-1][:20]]) + "\n")
    looked_at.clear()
    again = list(detection.outcomes_of(tasks, {}, file, 1, None))
    assert looked_at == [tasks[-1].key]
    assert {each.key for each in again} == {each.key for each in first}
    assert all(each.missed for each in known_outcomes(file).values())
    assert [json.loads(line)["key"] for line in file.read_text().splitlines()[-1:]] == looked_at


class _Here:
    """A pool without processes."""

    def __init__(self, jobs: int) -> None:
        pass

    def __enter__(self) -> _Here:
        return self

    def __exit__(self, *details: object) -> None:
        pass

    imap_unordered = staticmethod(map)

    Pool: type[_Here]


_Here.Pool = _Here
