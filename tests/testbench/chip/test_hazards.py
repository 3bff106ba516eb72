"""Accesses that nothing orders, where users ask for them: library, command, manifest, fixture."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import averaging_program as sample
import pytest
from darwinn_formats.darwinn import Package, dump, load
from darwinn_sim.kernel import clocks
from darwinn_sim.machine.examine import StopPoint
from darwinn_testbench.chip import hazards
from darwinn_testbench.chip.any_timing import Judged
from darwinn_testbench.chip.execution import run
from darwinn_testbench.chip.hazards import Hazards, Judgement, hazard_lines
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.comparison.verify import verify
from darwinn_testbench.compiler import compile_network, random_convolution, random_dense, uncompiled
from darwinn_testbench.errors import InputError
from darwinn_testbench.pytest_plugin import Darwinn
from darwinn_testbench.regression.run import regress
from darwinn_testbench.report import Report, Verdict
from program_faults import Change, Kind, Mutation, mutated_model, programs_of

pytestmark = pytest.mark.usefixtures("nothing_judged")


HAZARDOUS = sample.package(sample.changed("RingInfeed", watcher_stride=[0, 0]))
"""The infeed waits for the first unit of the input, and not for the others; in the fixed order all
are there."""

ORDERED = sample.package()
MISSING = "flag 0 (av_pop) of the scalar core"


def found(report: Report[Any]) -> Hazards:
    figure = report.figures["hazards"]
    assert isinstance(figure, Hazards)
    return figure


@pytest.mark.parametrize(
    "network", [random_dense([16, 70], 0), random_convolution(16, 64, 8, 20, 0)]
)
def test_samples_have_none(network: Any) -> None:
    model = dump(compile_network(network))
    report = verify(model, uncompiled(network), strict=True, hazards=True)
    assert report.verdict is Verdict.PROVED, report.headline
    assert report.headline.endswith("; no hazards; cannot deadlock")
    assert (found(report).every_input, found(report).found, found(report).fault) == (True, (), "")


def test_a_weak_watcher_is_a_hazard_although_the_bytes_are_right() -> None:
    for report in (verify(HAZARDOUS, runs=1, hazards=True), run(HAZARDOUS, hazards=True)):
        assert report.verdict is Verdict.HAZARD
        assert report.rows[0].verdict is not Verdict.HAZARD
        assert f"nothing orders PopInput at pc {found(report).found[0].first.pc}" in report.headline
        assert MISSING in report.headline


def test_schedules_and_hazards_together() -> None:
    report = verify(HAZARDOUS, runs=1, schedules=20, hazards=True)
    assert report.figures["schedules"].differences and found(report).found
    assert report.verdict is Verdict.HAZARD


def test_a_fault_of_the_check_is_no_pass() -> None:
    """The tensor unit may not read the row before it is there."""
    program = sample.changed("TensorSum", watcher_valid=[0] * 6)
    report = run(sample.package(program), hazards=True)
    assert report.verdict is Verdict.HAZARD


def test_clocks_begin_anew_before_they_run_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """With clocks that are nearly used up after each inference, what one has is found, once; what
    is between two inferences is not."""
    monkeypatch.setattr(hazards, "judge", lambda *_: Judged(depends="it"))
    expected = found(run(HAZARDOUS, runs=1)).found
    monkeypatch.setattr(hazards, "ENOUGH", 0.0)
    again = found(run(HAZARDOUS, runs=3))
    assert [(each.first, each.second) for each in again.found] == [
        (each.first, each.second) for each in expected
    ]
    assert again.fault == ""


def test_an_inference_that_is_too_long_is_no_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clocks, "CLOCK_MASK", 10)
    report = run(ORDERED, hazards=True)
    assert report.verdict is Verdict.HAZARD and "too long" in report.headline


def test_what_is_left_out_is_said() -> None:
    for report in (verify(HAZARDOUS, runs=1, hazards=False), run(HAZARDOUS, hazards=False)):
        assert not report.verdict.failed
        assert found(report) == Hazards(
            judged=Judgement.NOT_JUDGED, reason="--no-hazards", every_input=False
        )
        assert report.headline.endswith("hazards not judged: --no-hazards")


def test_a_stopped_run_is_refused() -> None:
    with pytest.raises(InputError, match="hazards"):
        run(ORDERED, until=StopPoint.parse("layer:0"), hazards=True)


@pytest.mark.parametrize("command", ["run", "verify"])
@pytest.mark.parametrize("option", [[], ["--schedules", "20"]])
def test_what_comes_next(
    command: str, option: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "hazardous.package"
    file.write_bytes(HAZARDOUS)
    assert run_command_line([command, str(file), *option]) == 1
    assert f"next: darwinn disasm {file} shows what waits" in capsys.readouterr().out


def emptied_fence(executable: int) -> bytes:
    """A model; the last scalar fence for tiles in one of its executables awaits nothing."""
    file = load(dump(compile_network(random_dense([16, 70], 0))))
    program = programs_of(file.models[0])[executable][0]
    operations = [program[k] for k in range(len(program))]
    fence = [each for each in operations if each.values.get("tile_fence_valid")][-1]
    changes = tuple(
        Change(name, -1, int(fence[name]), 0) for name in ("wait_idle", "tile_fence_valid")
    )
    mutation = Mutation(executable, 0, fence.pc, "ScalarFence", changes, Kind.FENCE_EMPTIED)
    model = mutated_model(file.models[0], mutation)
    assert model.caching is not None
    return dump(Package.of(model.inference, model.caching))


@pytest.mark.parametrize("executable", [0, 1])
def test_executables_have_the_numbers_of_the_file(
    executable: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Parameter caching is the second in the file, and runs first. A fence that clears a flag too
    early has to wait itself: nothing else helps."""
    file = tmp_path / "emptied.package"
    file.write_bytes(emptied_fence(executable))
    assert run_command_line(["run", str(file), "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    first = report["hazards"]["found"][0]
    load, count = first["first"], first["second"]
    assert first["kind"] == "count after load"
    assert (load["instruction"], count["instruction"]) == ("ScalarFence", "TileFence")
    assert load["executable"] == count["executable"] == executable
    assert first["missing"] == (
        f"a wait of ScalarFence at pc {load['pc']} for tile fence of tile {count['tile']}, "
        "before it loads the flag,"
    )
    assert (
        f"nothing orders TileFence at pc {count['pc']} of executable {executable} (tile fence of "
        f"tile {count['tile']}) before ScalarFence at pc {load['pc']} of executable {executable} "
    ) in report["message"]


def test_a_pair_is_told_once_for_each_chip() -> None:
    (one,) = found(run(HAZARDOUS, hazards=True)).found
    assert hazards._each_once([[(one,), ()], [(one,), ()]]) == (one,)
    assert hazards._each_once([[(one,), ()], [(), (one,)]]) == (one, one)


def test_in_a_pipeline_hazards_name_their_file(tmp_path: Path) -> None:
    first, second = tmp_path / "ordered.package", tmp_path / "hazardous.package"
    first.write_bytes(ORDERED)
    # It takes what the first one takes, and gives something else.
    second.write_bytes(HAZARDOUS.replace(b"averages", b"averaged"))
    (one,) = found(run(first, then=[second], hazards=True)).found
    assert one.file == str(second)
    assert str(one).startswith(f"{second}: nothing orders PopInput")
    (alone,) = found(run(HAZARDOUS, hazards=True)).found
    assert (alone.file, alone.first) == ("", one.first)


def test_further_hazards_are_listed_as_such() -> None:
    (one,) = found(run(HAZARDOUS, hazards=True)).found
    assert hazard_lines(Hazards(1, 0.0, (one,))) == []
    assert "mend the first" not in str(Hazards(1, 0.0, (one,)))
    for number in (2, 11, 12):
        several = Hazards(1, 0.0, (one,) * number)
        assert str(several).startswith(f"{number} hazards: nothing orders PopInput")
        assert str(several).endswith("fix the first one first: later ones often follow from it")
        heading, *lines = hazard_lines(several)
        assert heading.startswith("further hazards")
        assert len(lines) == min(number - 1, 11)
    assert lines[-1].strip() == "1 more"


@pytest.mark.parametrize("command", ["run", "verify"])
def test_the_command(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "hazardous.package"
    file.write_bytes(HAZARDOUS)
    assert run_command_line([command, str(file), "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["verdict"] == "hazard"
    first = report["hazards"]["found"][0]
    assert (first["kind"], first["memory"]) == ("read after write", "activation buffer")
    assert (first["first"]["instruction"], first["second"]["instruction"]) == (
        "PopInput",
        "RingInfeed",
    )
    assert first["missing"] == MISSING
    assert run_command_line([command, str(file)]) == 1
    assert MISSING in " ".join(capsys.readouterr().out.split())


@pytest.mark.usefixtures("tasks_performed_here")
def test_a_manifest_looks_for_hazards_unless_it_says_so(tmp_path: Path) -> None:
    for name, data in {"hazardous": HAZARDOUS, "ordered": ORDERED}.items():
        (tmp_path / f"{name}.package").write_bytes(data)
    manifest = tmp_path / "manifest.toml"
    manifest.write_text('[[case]]\nfile = "*.package"\nruns = 1\n')
    rows = {row.name: row for row in regress(manifest, tmp_path / "out", jobs=1).rows}
    assert rows["hazardous"].verdict is Verdict.HAZARD and MISSING in rows["hazardous"].message
    assert rows["ordered"].verdict is Verdict.RAN
    manifest.write_text('[[case]]\nfile = "hazardous.package"\nruns = 1\nhazards = false\n')
    (left_out,) = regress(manifest, tmp_path / "out", jobs=1).rows
    assert left_out.verdict is Verdict.RAN and "--no-hazards" in left_out.command


def test_the_fixture_fails_a_test(tmp_path: Path) -> None:
    fixture = Darwinn(tmp_path, 0, [])
    for name, data in {"hazardous": HAZARDOUS, "ordered": ORDERED}.items():
        (tmp_path / f"{name}.package").write_bytes(data)
    fixture.verify("ordered.package", runs=1)
    with pytest.raises(pytest.fail.Exception, match=r"hazard: .*nothing orders PopInput"):
        fixture.verify("hazardous.package", runs=1)
    fixture.verify("hazardous.package", runs=1, hazards=False)
