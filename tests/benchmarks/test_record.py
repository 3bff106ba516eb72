"""The record of speed: what is compared with what, what is kept, and what is said to be lost."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.record import __main__ as command
from benchmarks.record.history import (
    ALLOWED,
    BUSY,
    LOOP,
    UNSTEADY,
    Change,
    Entry,
    Line,
    append,
    busier,
    change,
    read,
)
from benchmarks.record.measures import MEASURES
from benchmarks.record.page import page_of

HERE, THERE = "a machine", "another machine"
entries = st.builds(Entry, st.floats(1e-6, 100), st.floats(1e-3, 1))
lines = st.builds(
    Line,
    st.just("2026-01-01"),
    st.sampled_from(["", "abc1234"]),
    st.sampled_from([HERE, THERE]),
    st.dictionaries(st.sampled_from("abc"), entries),
    st.sampled_from([LOOP, LOOP, "another loop"]),
)


def slow_change(known: list[Line], name: str, entry: Entry) -> Change:
    """As the documents have it: the last of this machine, else the last of any; of this loop."""
    best: Line | None = None
    for line in known:
        if line.loop != LOOP:
            continue
        if name in line.measures and (line.machine == HERE or not best or best.machine != HERE):
            best = line
    return Change(name, entry, best.measures[name] if best else None)


@given(st.lists(lines, max_size=6), st.sampled_from("abcd"), entries)
def test_a_measure_is_compared_with_the_last_of_its_machine(
    known: list[Line], name: str, entry: Entry
) -> None:
    assert change(known, HERE, name, entry) == slow_change(known, name, entry)


@pytest.mark.parametrize(("times", "lost"), [(0.5, False), (1.09, False), (1.11, True)])
def test_a_loss_is_of_the_ratio_to_the_calibration_loop(times: float, lost: bool) -> None:
    before = Entry(seconds=2.0, calibration=0.5)
    # The machine is half as fast as it was, which is no loss.
    found = Change("a", Entry(4.0 * times, 1.0), before)
    assert found.times == pytest.approx(times)
    assert found.lost is lost
    assert not Change("new", before, None).lost


@given(st.lists(lines, max_size=4))
def test_what_is_kept_is_read_again(
    tmp_path_factory: pytest.TempPathFactory, kept: list[Line]
) -> None:
    path = tmp_path_factory.mktemp("record") / "history.jsonl"
    for line in kept:
        append(path, line)
    assert read(path) == kept


def test_a_damaged_line_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "history.jsonl"
    append(path, Line("2026-01-01", "abc", HERE, {}))
    path.write_bytes(path.read_bytes() + b'{"when": 3}\n')
    assert command.main(["--history", str(path)]) == 2
    assert f"{path}:2: not a line of the record" in capsys.readouterr().err


def test_the_record_of_the_repository_is_read_and_drawn() -> None:
    kept = read(command.HISTORY)
    names = {measure.name for measure in MEASURES}
    assert kept and set(kept[-1].measures) == names
    page = page_of([*kept, replace(kept[-1], machine=THERE)]).decode()
    assert all(name in page for name in names) and THERE in page


@pytest.fixture
def sampled(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[float]]:
    """Seconds that each measure takes, measured again and again; the loop takes 1."""
    monkeypatch.delenv("DARWINN_CORPUS", raising=False)
    monkeypatch.setattr(command, "machine", lambda: HERE)
    turns: dict[str, list[float]] = {}

    def alone(_function: Any, number: int, _repeat: int) -> tuple[float, float]:
        return 1.0, turns.get(MEASURES[number].name, [1.0]).pop(0)

    monkeypatch.setattr(command, "alone", alone)
    return turns


def test_a_loss_is_measured_again_before_it_fails(
    tmp_path: Path, sampled: dict[str, list[float]], capsys: pytest.CaptureFixture[str]
) -> None:
    history = tmp_path / "history.jsonl"
    asked = ["--history", str(history)]
    assert command.main([*asked, "--append"]) == 0
    (line,) = read(history)
    free = [measure.name for measure in MEASURES if measure.can_be()]
    assert dict(line.measures) == dict.fromkeys(free, Entry(1.0, 1.0))
    assert command.main(asked) == 0

    sampled["sample: load"] = [2.0, 1.8, 1.05]
    sampled["sample: cycles"] = [1.3, 1.4, ALLOWED + 0.02, 1.5]
    capsys.readouterr()
    assert command.main([*asked, "--json"]) == 1
    said = json.loads(capsys.readouterr().out)
    assert said["lost"] == ["sample: cycles"]
    seconds = {each["name"]: each["entry"]["seconds"] for each in said["changes"]}
    assert (seconds["sample: load"], seconds["sample: cycles"]) == (1.05, ALLOWED + 0.02)

    # What is kept on purpose is no failure, and counts from then on.
    sampled["sample: cycles"] = [1.5] * 4
    assert command.main([*asked, "--append", "--only", "cycles"]) == 0
    sampled["sample: cycles"] = [1.5]
    assert command.main([*asked, "--only", "cycles"]) == 0
    assert len(read(history)) == 2


def test_a_line_of_a_busy_machine_is_not_kept(
    tmp_path: Path, sampled: dict[str, list[float]], capsys: pytest.CaptureFixture[str]
) -> None:
    quiet = Line("2026-01-01", "abc", HERE, {"sample: load": Entry(1.0, 1 / (1.01 * BUSY))}, LOOP)
    append(tmp_path / "history.jsonl", quiet)
    assert command.main(["--history", str(tmp_path / "history.jsonl"), "--append"]) == 2
    assert "busy: the calibration loop takes 1.3 times" in capsys.readouterr().err
    assert read(tmp_path / "history.jsonl") == [quiet]
    # Another machine, or calibration loop, has other figures.
    assert (
        change([replace(quiet, loop="another")], HERE, "sample: load", Entry(1, 1)).before is None
    )
    assert busier([replace(quiet, machine=THERE)], HERE, quiet.measures) == 1


def test_a_line_of_a_machine_that_changes_its_speed_is_not_kept(
    tmp_path: Path,
    sampled: dict[str, list[float]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    history = tmp_path / "history.jsonl"
    beside_the_first = 1.0

    def alone(_measured: Any, number: int, _repeat: int) -> tuple[float, float]:
        return 1.0 if number else beside_the_first, 1.0

    monkeypatch.setattr(command, "alone", alone)
    asked = ["--history", str(history), "--append"]
    beside_the_first = UNSTEADY - 0.01
    assert command.main(asked) == 0
    (line,) = read(history)
    beside_the_first = UNSTEADY + 0.01
    assert command.main(asked) == 2
    assert "changes its speed: the calibration loop takes 1.2 times" in capsys.readouterr().err
    assert read(history) == [line]


def test_nothing_to_measure_or_to_draw_is_said(
    tmp_path: Path, sampled: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    history = str(tmp_path / "none.jsonl")
    for only, said in (
        ("mobilenet_v1", "real models need DARWINN_CORPUS"),
        ("x86", "sample: load"),
    ):
        with pytest.raises(SystemExit) as end:
            command.main(["--history", history, "--only", only])
        assert end.value.code == 2
        assert said in capsys.readouterr().err
    assert command.main(["--history", history, "--page", str(tmp_path / "page.html")]) == 2
    assert not (tmp_path / "page.html").exists()


def test_a_page_is_said_to_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.html"
    assert command.main(["--page", str(page)]) == 0
    assert capsys.readouterr().out.startswith(f"{page} is written")
