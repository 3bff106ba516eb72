"""--max-seconds and --max-memory: every command that reads a file has them and holds to them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import endless
import pytest
from darwinn_formats import darwinn
from darwinn_formats.darwinn import Executable
from darwinn_formats.limits import Limits, limited
from darwinn_sim.device.chip import Chip
from darwinn_testbench.cli import commands
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.device.usb.attach import new_function
from sample_files import sample
from sample_runs import change

WITHOUT = {"accuracy", "delegate", "docs", "harness", "sample", "warm-up"}
SHORT = ["--max-seconds", "0.05"]


def without_end(executable: Executable) -> Executable:
    (stream,) = endless.executable("one infeed").instruction_bitstreams
    return replace(executable, instruction_bitstreams=(replace(stream, field_offsets=()),))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("limits")
    sample(found)
    (package,) = darwinn.load(found / "dense_edgetpu.tflite").packages
    for which in range(len(package.executables)):
        package = change(package, which, without_end)
    (found / "endless.package").write_bytes(darwinn.dump(package))
    return found


@pytest.mark.parametrize("name", commands.SUMMARIES)
def test_commands_have_the_options(name: str) -> None:
    names = {option for each in commands.load(name).params for option in each.opts}
    assert ({"--max-seconds", "--max-memory"} <= names) == (name not in WITHOUT)


@pytest.mark.parametrize("command", ["run", "verify", "cycles", "profile"])
def test_a_program_without_end_is_a_fault(
    command: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(folder / "endless.package")
    assert run_command_line([command, file, *SHORT, "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["verdict"] == "fault"
    assert "--max-seconds" in told["message"] and "chunk 0, pc" in told["message"]


@pytest.mark.parametrize("command", ["run", "verify", "cycles"])
def test_what_to_try_next_is_a_larger_limit(
    command: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line([command, str(folder / "endless.package"), *SHORT]) == 1
    assert "next: the same with a larger --max-seconds S allows more" in capsys.readouterr().out


def test_a_regression_hands_the_limits_to_its_processes(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    manifest = folder / "regression.toml"
    manifest.write_text('[[case]]\nname = "endless"\nfile = "endless.package"\n')
    out = str(folder / "regression")
    assert run_command_line(["regress", str(manifest), "--journal", out, *SHORT, "--json"]) == 1
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert row["verdict"] == "fault" and "--max-seconds" in row["message"]


def test_a_device_has_the_limits_in_the_thread_that_computes() -> None:
    wanted = Limits(seconds=7, memory=1 << 24)
    with limited(wanted):
        function = new_function()
    assert isinstance(function.chip, Chip) and function.chip.limits == wanted
