"""What docs/explain.md shows can be typed as it stands there, and prints what it says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from darwinn_formats.tflite import BuiltinOperator
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.compiler import compile_network, edgetpu_model, random_dense, uncompiled
from darwinn_testbench.explain.conditions import OPERATOR_CONDITIONS
from whole_models import with_floats

PAGE = Path(__file__).parents[3] / "docs" / "explain.md"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the models that the page calls by name."""
    network = random_dense([256, 256, 64], 1)
    for name, model in (
        ("model_edgetpu", edgetpu_model(network, compile_network(network))),
        ("model", uncompiled(network)),
    ):
        path = tmp_path / f"{name}.tflite"
        path.write_bytes(with_floats(model, BuiltinOperator.ABS))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    return tmp_path


def test_commands_of_the_page_print_what_it_shows(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    blocks = re.findall(r"```console\n(.*?)```", PAGE.read_text(), re.S)
    calls = [call for block in blocks for call in re.split(r"^\$ darwinn ", block, flags=re.M)[1:]]
    assert len(calls) >= 4
    for call in calls:
        command, _, shown = call.partition("\n")
        assert run_command_line(shlex.split(command)) == 0, command
        printed = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
        if shown.strip():
            assert printed == [line.rstrip() for line in shown.splitlines()], command


def test_the_page_has_every_condition() -> None:
    text = PAGE.read_text()
    for operator, conditions in OPERATOR_CONDITIONS.items():
        names = ", ".join(dict.fromkeys(each.name for each in conditions)) or "-"
        assert f"| `{operator}` | {names} |" in text
