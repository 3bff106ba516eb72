"""Whether a model cannot deadlock, where users ask for it: library, command and JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import averaging_program as sample
import pytest
from darwinn_formats.darwinn import dump
from darwinn_sim import timing
from darwinn_sim.chips.selected import selected
from darwinn_sim.errors import ChipFault, Deadlock
from darwinn_sim.machine.hazards import Access, Hazard, Kind
from darwinn_testbench.chip.completion import Completion, check_completion, confirmed
from darwinn_testbench.chip.execution import run
from darwinn_testbench.chip.hazards import Hazards
from darwinn_testbench.chip.pipeline import Pipeline
from darwinn_testbench.chip.whole import open_segment
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.comparison.verify import verify
from darwinn_testbench.compiler import compile_network, random_dense, uncompiled
from darwinn_testbench.report import Verdict

_COUNTS = {"partial_sum_producer_increment": 1}
_LOADS = ("TileFence", {"tiles": 1 << sample.TILE, "reset_flags": 1 << 2})


pytestmark = pytest.mark.usefixtures("nothing_judged")


def doubtful() -> bytes:
    """A fence loads flag 2 while the tensor unit may count it."""
    program = list(sample.changed("TensorSum", **_COUNTS))
    place = [name for name, _ in program].index("NarrowToWide")
    return sample.package([*program[:place], _LOADS, *program[place:]])


def test_a_sample_cannot_deadlock() -> None:
    network = random_dense([16, 70], 0)
    report = verify(dump(compile_network(network)), uncompiled(network), hazards=True)
    found = report.figures["completion"]
    assert report.verdict is Verdict.PROVED and found.cannot_deadlock
    assert (found.inferences, found.doubts, found.fault) == (2, (), "")
    assert report.headline.endswith("; cannot deadlock")


def test_a_doubt_is_told_with_its_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "doubtful.package"
    file.write_bytes(doubtful())
    run_command_line(["run", str(file), "--json"])
    found = json.loads(capsys.readouterr().out)["completion"]
    (doubt,) = found["doubts"]
    assert found["cannot_deadlock"] is False and doubt["reason"] == "reset"
    assert doubt["place"] == f"flag 2 (partial_sum_write) of tile {sample.TILE}"
    run_command_line(["run", str(file)])
    assert "not shown that it cannot deadlock (--schedules N tries" in capsys.readouterr().out


def test_a_fault_of_the_check_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def infer(*_: object) -> None:
        raise Deadlock(("a unit",))

    pipeline = Pipeline([open_segment(sample.package(), strict=False, seed=0, assumptions=True)])
    monkeypatch.setattr(Pipeline, "infer", infer)
    found = check_completion(pipeline, [{}])
    assert not found.cannot_deadlock and "a unit" in found.fault
    assert str(found).endswith(found.fault)


_ROOM = int(selected().host_fifo_bytes.value) // sample.INPUT_BYTES
"""Inputs that wait on the chip before it takes them."""


def asked_before(times: int, *, chunks: int = 2) -> bytes:
    """The host is asked for the input ``times`` times, and only the last chunk takes any of it."""
    ask = sample.issue(1, sample.INPUT_BYTES, sample.ADDRESS_REGISTERS[sample.INPUT])
    last = times * sample.INPUT_BYTES // 8 - 31
    watch = {"watcher_expected": [last, 0]}
    program = sample.changed("RingInfeed", **watch)
    place = [name for name, _ in program].index("PopInput")
    before = [*program[:place], *ask * (times - 1)]
    pops = [program[place]] * (times - 1)
    return sample.package([*before, *pops, *program[place:]], split=(chunks - 1) * len(before))


@pytest.mark.parametrize(("times", "chunks"), [(1, 2), (_ROOM, 2), (_ROOM + 1, 1)])
def test_what_the_host_was_asked_for_has_room_before_the_next_chunk(
    times: int, chunks: int
) -> None:
    report = run(asked_before(times, chunks=chunks), hazards=True)
    assert report.figures["completion"].cannot_deadlock and not report.verdict.failed


def test_a_chunk_that_the_host_sends_behind_what_has_no_room_never_comes() -> None:
    """Only that chunk takes what waits, so both the chip and its host wait for ever."""
    report = run(asked_before(_ROOM + 1), hazards=True)
    found = report.figures["completion"]
    assert report.verdict is Verdict.FAULT and not found.cannot_deadlock and not found.fault
    assert found.stands_still.startswith("with host link usb3: deadlock: scalar core at chunk")
    assert "host link in, 2 transfers left: bytes taken from the input FIFO" in report.headline


def test_where_the_order_of_the_host_cannot_be_tried_nothing_is_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def simulate(*_: object, **__: object) -> None:
        raise ChipFault("a unit", "a reason", 0, 0, -1, 0)

    monkeypatch.setattr(timing, "simulate", simulate)
    report = run(sample.package(), hazards=True)
    found = report.figures["completion"]
    assert not (found.cannot_deadlock or report.verdict.failed) and "a reason" in found.fault


def test_without_hazards_nothing_is_said_of_it() -> None:
    assert "completion" not in run(sample.package(), hazards=False).figures


_WRITES, _READS = (Access(name, 0, 0, 1, "unit", 0, 0) for name in ("Writes", "Reads"))
_TWICE = Hazard(Kind.READ_AFTER_WRITE, "narrow memory of tile 0", 4, _WRITES, _READS, "a flag", 2)


@pytest.mark.parametrize(
    ("redundant", "unordered", "unlisted", "proved"),
    [
        ((), (), 0, True),
        ((_TWICE,), (_TWICE,), 0, True),
        ((_TWICE,), (), 0, True),
        ((), (_TWICE,), 0, False),
        ((replace(_TWICE, words=1),), (_TWICE,), 0, False),
        ((replace(_TWICE, first=_READS),), (_TWICE,), 0, False),
        ((), (), 1, False),
    ],
)
def test_hazards_are_proved_absent_if_clocks_that_know_less_find_no_more(
    redundant: tuple[Hazard, ...], unordered: tuple[Hazard, ...], unlisted: int, proved: bool
) -> None:
    completion = Completion(True, 2, unordered=unordered, unlisted=unlisted)
    found = confirmed(Hazards(redundant=redundant), completion)
    assert (found.proved, found.verdict) == (proved, Verdict.PASS)
    assert ("not shown for every timing" in str(found)) is not proved


def test_hazards_that_were_found_stay_as_they_are() -> None:
    hazards = Hazards(found=(_TWICE,))
    assert confirmed(hazards, Completion(True, 2, unordered=(_TWICE,))) is hazards
