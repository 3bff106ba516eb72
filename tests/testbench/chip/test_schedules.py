"""Programs in random orders of the chip's units: a synchronisation that is missing is a race."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import averaging_program as sample
import pytest
from darwinn_formats.darwinn import dump
from darwinn_sim.machine.examine import StopPoint
from darwinn_testbench.chip.execution import run
from darwinn_testbench.chip.schedules import Difference, Schedules, schedule_lines
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.comparison.verify import verify
from darwinn_testbench.compiler import compile_network, random_convolution, random_dense, uncompiled
from darwinn_testbench.errors import InputError
from darwinn_testbench.regression.run import regress
from darwinn_testbench.report import Report, Verdict

RACE = sample.package(sample.changed("RingInfeed", watcher_stride=[0, 0]))
"""The infeed waits for the first unit of the input, and not for the others; in the fixed order all
are there."""

ORDERED = sample.package()


def _reset_too_early() -> bytes:
    """A fence resets the flag that the producer waits for, as soon as nothing but narrow-to-wide
    moves: in the fixed order before the producer has looked."""
    program = sample.operations()
    at = [name for name, _ in program].index("RingProducer")
    fields = {"tiles": 0xFFFF, "wait_idle": 0x3DF, "reset_flags": (1 << 19) - 1}
    return sample.package([*program[: at - 1], ("TileFence", fields), *program[at - 1 :]])


DEADLOCK = _reset_too_early()


def test_further_schedules_are_listed_as_such() -> None:
    differences = [Difference(seed, 0, fault="a fault") for seed in range(7)]
    for number in (1, 2, 6, 7):
        lines = schedule_lines(Schedules(20, 0, 0.0, tuple(differences[:number])))
        assert bool(lines) == (number > 1)
        assert len(lines[1:]) == min(number - 1, 6)
        assert not lines or lines[0].startswith("further schedules")
    assert lines[-1].strip() == "1 more"


def found(report: Report[Any]) -> Schedules:
    schedules = report.figures["schedules"]
    assert isinstance(schedules, Schedules)
    return schedules


@pytest.mark.parametrize(
    "network", [random_dense([16, 70], 0), random_convolution(16, 64, 8, 20, 0)]
)
def test_samples_give_the_same_bytes_in_every_order(network: Any) -> None:
    model = dump(compile_network(network))
    report = verify(
        model, uncompiled(network), strict=True, schedules=6, schedule_seed=9, hazards=False
    )
    assert report.verdict is Verdict.PASS, report.headline
    assert "; 6 schedules from seed 9: the same bytes; " in report.headline
    assert (found(report).count, found(report).seed, found(report).differences) == (6, 9, ())


def test_a_weak_watcher_is_a_race_that_can_be_repeated() -> None:
    assert verify(RACE, runs=2, hazards=False).verdict is Verdict.RAN
    report = verify(RACE, runs=2, seed=3, schedules=20, hazards=False)
    assert report.verdict is Verdict.RACE
    assert [row.verdict for row in report.rows] == [Verdict.RAN] * 2
    first = found(report).differences[0]
    assert 3 <= first.schedule < 23 and first.output == "averages"
    told = f"schedule {first.schedule}, run {first.run}, output averages: byte {first.byte:#x}"
    assert told in report.headline
    assert f"--schedules 1 --schedule-seed {first.schedule} repeats it" in report.headline
    options: dict[str, Any] = {"schedules": 1, "schedule_seed": first.schedule}
    again = verify(RACE, runs=2, seed=3, hazards=False, **options)
    assert found(again).differences == (first,)
    alone = run(RACE, runs=2, seed=3, hazards=False, **options)
    assert alone.verdict is Verdict.RACE and found(alone).differences == (first,)


def test_the_first_byte_that_differs_is_told() -> None:
    """Units that are not there yet are what the buffer held before: zeros."""
    report = run(RACE, schedules=20, hazards=False)
    expected = report.rows[0].tensor.tobytes()
    for each in found(report).differences:
        assert each.byte is not None and each.expected == expected[each.byte] != each.actual
        assert each.size == len(expected) and 0 < each.differing <= each.size


@pytest.mark.parametrize("check", [run, verify])
def test_a_fault_of_the_fixed_order_alone_is_a_race(check: Any) -> None:
    assert check(DEADLOCK, runs=1).verdict is Verdict.FAULT
    report = check(DEADLOCK, runs=1, schedules=13)
    assert report.verdict is Verdict.RACE
    assert report.message.startswith("deadlock: ")
    assert "1 of 13 schedules from seed 0 differ: schedule 12, run 0: no fault" in report.headline
    assert found(report).fault.startswith("deadlock: ")
    (difference,) = found(report).differences
    assert (difference.schedule, difference.output, difference.fault) == (12, None, "")


@pytest.mark.parametrize("check", [run, verify])
def test_a_fault_of_every_order_is_a_fault(check: Any) -> None:
    report = check(sample.package(sample.without("NarrowToWide")), runs=2, schedules=5)
    assert report.verdict is Verdict.FAULT
    assert report.headline.endswith("; 5 schedules from seed 0: a fault in each")
    assert not found(report).differences


@pytest.mark.parametrize("check", [run, verify])
def test_what_is_refused_is_so_once(check: Any) -> None:
    refused = sample.package(sample.changed("TensorSum", opcode=63))
    report = check(refused, runs=1, schedules=5)
    assert report.verdict is Verdict.REFUSED and "schedules" not in report.figures


def test_strict_mode_finds_the_fault_itself() -> None:
    report = verify(RACE, strict=True, runs=1, schedules=20, hazards=False)
    assert report.verdict is Verdict.RACE
    assert "averages" in found(report).differences[0].fault


def test_without_schedules_nothing_is_said_of_them() -> None:
    assert "schedules" not in verify(ORDERED).figures
    assert "schedules" not in run(ORDERED).figures


def test_a_stopped_run_is_refused() -> None:
    with pytest.raises(InputError, match="a stopped run has none"):
        run(ORDERED, until=StopPoint.parse("layer:0"), schedules=2)


@pytest.mark.parametrize("command", ["run", "verify"])
def test_the_command_says_it(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "race.package"
    file.write_bytes(RACE)
    assert (
        run_command_line([command, str(file), "--schedules", "20", "--no-hazards", "--json"]) == 1
    )
    report = json.loads(capsys.readouterr().out)
    assert report["verdict"] == "race"
    schedules = report["schedules"]
    assert (schedules["count"], schedules["seed"]) == (20, 0)
    first = schedules["differences"][0]
    assert first["output"] == "averages" and first["expected"] != first["actual"]
    assert run_command_line([command, str(file), "--schedules", "20", "--no-hazards"]) == 1
    shown = capsys.readouterr().out
    assert f"schedule {schedules['differences'][1]['schedule']}, run" in shown
    assert run_command_line([command, str(file), "--schedule-seed", "1"]) == 2
    assert "--schedules N" in capsys.readouterr().err


def test_a_manifest_asks_for_schedules(tmp_path: Path) -> None:
    for name, data in {"race": RACE, "ordered": ORDERED}.items():
        (tmp_path / f"{name}.package").write_bytes(data)
    manifest = tmp_path / "all.toml"
    manifest.write_text(
        '[[case]]\nfile = "*.package"\nschedules = 20\nhazards = false\nseeds = [5]\n'
    )
    rows = {row.name: row for row in regress(manifest, tmp_path / "out", jobs=1).rows}
    assert rows["ordered"].verdict is Verdict.RAN
    assert rows["race"].verdict is Verdict.RACE and "schedule" in rows["race"].message
    assert "--schedules 20" in rows["race"].command and "--seed 5" in rows["race"].command
