"""What pages show of a terminal can be typed as it stands there, and prints what they say."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from darwinn_formats import darwinn
from darwinn_formats.tflite import BuiltinOperator
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.compiler import (
    compile_network,
    compile_stand_alone,
    edgetpu_model,
    random_dense,
    uncompiled,
)
from darwinn_testbench.explain.conditions import OPERATOR_CONDITIONS
from darwinn_testbench.explain.evidence import EVIDENCE
from shown_output import calls_of
from whole_models import with_floats

DOCUMENTS = Path(__file__).parents[3] / "docs"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the models that the pages call by name."""
    network = random_dense([256, 256, 64], 1)
    package = compile_network(network)
    compiled = edgetpu_model(network, package)
    for name, model in (
        ("model.tflite", with_floats(uncompiled(network), BuiltinOperator.ABS)),
        ("model_edgetpu.tflite", with_floats(compiled, BuiltinOperator.ABS)),
        ("network.tflite", uncompiled(network)),
        ("cached_edgetpu.tflite", compiled),
        ("cached.package", darwinn.dump(package)),
        ("streamed_edgetpu.tflite", edgetpu_model(network, compile_stand_alone(network))),
    ):
        (tmp_path / name).write_bytes(model)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    return tmp_path


@pytest.mark.parametrize(("page", "least"), [("explain.md", 4), ("diff.md", 5)])
def test_commands_of_a_page_print_what_it_shows(
    page: str, least: int, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    calls = list(calls_of((DOCUMENTS / page).read_text()))
    assert len(calls) >= least
    for command, shown in calls:
        code = run_command_line(shlex.split(command))
        printed = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
        assert code == int(any(line.startswith("mismatch") for line in printed)), command
        if shown.strip():
            assert printed == [line.rstrip() for line in shown.splitlines()], command


def test_the_first_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    ((make, _), (verify, shown)) = calls_of((DOCUMENTS / "install.md").read_text())
    assert run_command_line(shlex.split(make)) == 0
    capsys.readouterr()
    command, _, start = verify.partition(" | grep ^")
    assert run_command_line(shlex.split(command)) == 0
    printed = capsys.readouterr().out.splitlines()
    assert [line for line in printed if line.startswith(start)] == shown.splitlines()


def test_the_page_has_every_condition() -> None:
    text = (DOCUMENTS / "explain.md").read_text()
    for operator, conditions in OPERATOR_CONDITIONS.items():
        names = ", ".join(dict.fromkeys(each.name for each in conditions)) or "-"
        sources = ", ".join(EVIDENCE[operator]) or "not confirmed"
        assert f"| `{operator}` | {names} | {sources} |" in text
