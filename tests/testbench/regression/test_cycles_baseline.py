"""`darwinn cycles --baseline` on executables that really change."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from darwinn_formats import darwinn
from darwinn_sim import timing
from darwinn_sim.timing import Cause
from darwinn_testbench.chip.model import open_models
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.compiler import compile_network, random_dense
from darwinn_testbench.regression import baseline
from darwinn_testbench.regression.cycles import unit_names


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "dense_edgetpu.tflite"
    path.write_bytes(darwinn.dump(compile_network(random_dense([40, 200, 72], 0))))
    return path


@pytest.fixture
def path(tmp_path: Path, model: Path) -> Path:
    target = tmp_path / "cycles.json"
    command = ["cycles", str(model), "--baseline", str(target), "--update", "--reason", "first"]
    assert run_command_line(command) == 0
    return target


def check(
    model: Path, path: Path, capfd: pytest.CaptureFixture[str], *options: str
) -> tuple[int, dict[str, object]]:
    capfd.readouterr()
    code = run_command_line(["cycles", str(model), "--baseline", str(path), "--json", *options])
    printed: dict[str, object] = json.loads(capfd.readouterr().out)
    return code, printed


def test_nothing_has_changed(model: Path, path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code, printed = check(model, path, capfd)
    assert (code, printed["verdict"]) == (0, "pass")


def test_an_update_without_changes_leaves_the_file_as_it_is(
    model: Path, path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    before = path.read_bytes()
    code, _ = check(model, path, capfd, "--update", "--reason", "again")
    assert code == 0
    assert path.read_bytes() == before


def test_another_executable_of_the_same_name_is_named_with_its_first_layer(
    model: Path, path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    model.write_bytes(darwinn.dump(compile_network(random_dense([40, 260, 72], 0))))
    code, printed = check(model, path, capfd)
    assert (code, printed["verdict"]) == (1, "regression")
    rows = printed["rows"]
    assert isinstance(rows, list)
    worse = [row for row in rows if row["metric"] == "cycles" and row["verdict"] == "regression"]
    assert worse
    assert {row["cause"] for row in worse} == {"executable"}
    assert all(row["where"] for row in worse)


def test_another_chip_description_is_told_from_another_executable(
    model: Path, path: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A description that now lets everything begin a cycle later."""
    mine = tmp_path / "mine.toml"
    mine.write_text('extends = "beagle-max"\n')
    check(model, path, capfd, "--chip", str(mine), "--update", "--reason", "mine")
    mine.write_text(
        'extends = "beagle-max"\n[instruction_start]\nvalue = 5\nunit = "cycle"\n'
        'source = "a test"\nconfidence = "low"\n'
    )
    code, printed = check(model, path, capfd, "--chip", str(mine))
    assert code == 1
    rows = printed["rows"]
    assert isinstance(rows, list)
    changed = [row for row in rows if row["verdict"] == "regression"]
    assert {row["metric"] for row in changed} == {"cycles"}
    assert {row["cause"] for row in changed} == {"model"}
    assert all("wait" in row["where"] or "busy" in row["where"] for row in changed)


def test_a_tolerance_written_into_the_file_holds(
    model: Path, path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    document = json.loads(path.read_text())
    for entry in document["entries"]:
        metric = entry["metrics"]["cycles"]
        metric.update(value=metric["value"] + 10, tolerance=0.05)
    path.write_text(json.dumps(document))
    code, printed = check(model, path, capfd)
    assert code == 0
    rows = printed["rows"]
    assert isinstance(rows, list)
    assert all("5 % allowed" in row["message"] for row in rows if row["metric"] == "cycles")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--update"], "--update needs --reason"),
        (["--executable", "9"], "9"),
    ],
)
def test_wrong_use_is_said(
    model: Path, path: Path, capfd: pytest.CaptureFixture[str], options: list[str], said: str
) -> None:
    assert run_command_line(["cycles", str(model), "--baseline", str(path), *options]) == 2
    assert said in capfd.readouterr().err


def test_two_files_of_one_name_are_refused(
    model: Path, path: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    before = path.read_bytes()
    other = tmp_path / "other" / model.name
    other.parent.mkdir()
    other.write_bytes(model.read_bytes())
    command = ["cycles", str(model), str(other), "--baseline", str(path)]
    for options in ([], ["--update", "--reason", "x"]):
        assert run_command_line([*command, *options]) == 2
        assert f"{model} and {other}" in capfd.readouterr().err
    assert path.read_bytes() == before


@pytest.mark.parametrize(("option", "name"), [("--chip", "beagle-max"), ("--host", "usb3")])
def test_a_description_with_the_name_of_a_built_in_one_is_refused(
    model: Path, path: Path, capfd: pytest.CaptureFixture[str], option: str, name: str
) -> None:
    mine = path.parent / f"{name}.toml"
    mine.write_text(f'extends = "{name}"\n')
    command = ["cycles", str(model), "--baseline", str(path), option]
    assert run_command_line([*command, str(mine)]) == 2
    assert f"{mine}: has the name of a built-in description" in capfd.readouterr().err
    assert run_command_line([*command, name]) == 0


def test_a_baseline_is_needed(model: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["cycles", str(model), "--baseline", "none.json"]) == 2
    assert "none.json: no such file; --update --reason TEXT writes it" in capfd.readouterr().err
    assert run_command_line(["cycles", str(model), "--update", "--reason", "x"]) == 2
    assert "--baseline" in capfd.readouterr().err
    assert run_command_line(["cycles", "-", "--baseline", "none.json"]) == 2
    assert "standard input" in capfd.readouterr().err


def test_parts_share_out_every_busy_cycle_of_the_units(model: Path, path: Path) -> None:
    (bound,) = open_models(model)
    timed = timing.simulate(
        bound.compiled.inference, timing.chip_description("beagle-max"), timing.host_link("usb3")
    )
    units, numbers = unit_names(timed.program)
    busy = np.bincount(numbers, timed.instructions[:, Cause.BUSY], len(units))
    whole = {unit: int(cycles) for unit, cycles in zip(units, busy, strict=True) if cycles}
    entries = [entry for entry in baseline.load(path) if entry.metrics["cycles"].value]
    totals: list[dict[str, int]] = []
    for entry in entries:
        total: dict[str, int] = {}
        for part in entry.layers:
            for unit, cycles in part.units.items():
                total[unit] = total.get(unit, 0) + cycles
        totals.append(total)
    assert whole in totals
