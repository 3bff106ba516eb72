"""Command, library, manifest and pytest fixture take the same settings and refuse the same ones.

Every setting of a verification is tried with every kind of file. A new setting is tried as well:
``VALUES`` has to say a value for it unless its type is enough.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.comparison import verify as verification
from darwinn_testbench.comparison.asked import Asked
from darwinn_testbench.engine import Engine
from darwinn_testbench.errors import InputError
from darwinn_testbench.pytest_plugin import Darwinn
from darwinn_testbench.regression import manifest
from darwinn_testbench.regression.task import Outcome, tasks_of
from darwinn_testbench.report import EXIT_CODES, judged
from darwinn_testbench.request.record import Entry, entries_of, made, words_of
from darwinn_testbench.request.records import Verification
from darwinn_testbench.survey.plan import plan
from darwinn_testbench.survey.task import Options, SurveyRow
from sample_files import sample

ENTRIES = entries_of(Verification)
KINDS: Mapping[str, Mapping[str, Any]] = {
    "dense_edgetpu.tflite": {},
    "dense_edgetpu.tflite with a network": {"reference": "dense.tflite"},
    "dense_edgetpu.tflite with a program": {"reference": "dense.pte"},
    "dense_edgetpu.tflite with stored outputs": {"expected": "expected.npz"},
    "dense.pte": {},
    "dense.pte with a network": {"reference": "dense.tflite"},
    "dense.pte with a program": {"reference": "dense.pte"},
    "start.mlir": {},
    "dense.tflite with a program": {"reference": "dense.pte"},
}
"""Files, and what each is compared with."""

VALUES: Mapping[str, Any] = {
    "reference": "dense.tflite",
    "inputs": ["input.npy"],
    "inputs_kind": ["edges"],
    "expected": "expected.npz",
    "maps": ["a=b"],
    "policy": "lsb:1",
    "companions": ["dense_edgetpu.tflite"],
    "engine": "rtl",
    "waves": "waves.fst",
    "function": "forward",
    "natives": "natives.py",
    "work_queue": "s",
    "init_function": "start",
    "require_reference": True,
}
"""A value of each setting for which its type does not give one."""

CASES = [
    *((name, VALUES.get(name)) for name in ENTRIES),
    ("engine", "original"),
    ("companions", ["data.ptd"]),
]


def value_of(entry: Entry, value: Any) -> Any:
    """What is tried of a setting: another value than the default."""
    if value is not None:
        return value
    return not entry.setting.inverse if entry.plain is bool else 1


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("everywhere")
    sample(folder)
    np.savez(folder / "expected.npz", output=np.zeros(4, np.uint8))
    np.save(folder / "input.npy", np.zeros(4, np.uint8))
    (folder / "natives.py").write_text("NATIVES = {}\n")
    (folder / "data.ptd").write_bytes(b"\0\0\0\0FT01" + bytes(64))
    (folder / "start.mlir").write_text("func @start() {\n  tfrt.return\n}\n")
    return folder


@pytest.fixture
def nothing_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is accepted ends where the work would begin."""

    def accept(*_: object) -> None:
        raise InputError("accepted")

    for name in ("ChipCheck", "ProgramCheck"):
        monkeypatch.setattr(verification, name, accept)


Said = tuple[int, str]
"""The exit code, and the message."""


def by_command(words: list[str], capsys: pytest.CaptureFixture[str]) -> Said:
    code = run_command_line(["verify", *words, "--json"])
    return code, json.loads(capsys.readouterr().out)["message"]


def by_library(file: str, plain: Mapping[str, Any]) -> Said:
    asked = made(Asked, plain, source=file)
    given = {item: getattr(asked, item) for item in vars(asked)}
    try:
        verification.verify(**given)
    except Exception as error:
        verdict, text = judged(error)
        return EXIT_CODES[verdict], text
    raise AssertionError("something was run")


def by_manifest(folder: Path, file: str, plain: Mapping[str, Any]) -> Outcome:
    told = {ENTRIES[name].key or f"{name}s": value for name, value in plain.items()}
    for name in ("seeds", "engines"):
        if name in told:
            told[name] = [told[name]]
    told["file"] = file
    lines = (f"{key} = {json.dumps(value)}" for key, value in told.items())
    (folder / "manifest.toml").write_text("\n".join(["[[case]]", *lines]))
    (task,) = tasks_of(manifest.load(folder / "manifest.toml"))
    return task.perform()


def by_fixture(folder: Path, file: str, plain: Mapping[str, Any]) -> Said:
    with pytest.raises(pytest.fail.Exception) as failure:
        Darwinn(folder, 0, []).verify(file, **plain)
    said = re.fullmatch(r"darwinn verify \S+: ([\w-]+): (.*)", str(failure.value), re.DOTALL)
    assert said is not None
    return next(code for name, code in EXIT_CODES.items() if name.value == said[1]), said[2]


def asked_of(entry: Entry, given: Any, told: Mapping[str, Any]) -> dict[str, Any]:
    """The plain values that are tried; a flag that turns something off is False."""
    off = entry.setting.inverse
    return {**told, entry.name: False if off else value_of(entry, given)}


@pytest.mark.usefixtures("nothing_is_run")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("name", "given"), CASES)
def test_what_one_refuses_all_refuse_in_the_same_words(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
    given: Any,
    kind: str,
) -> None:
    monkeypatch.chdir(folder)
    file = kind.split()[0]
    plain = asked_of(ENTRIES[name], given, KINDS[kind])
    code, message = by_command([file, *words_of(Verification, plain)], capsys)
    assert code in (2, 3), message
    said = code, message.removeprefix(f"{file}: ")
    assert by_library(file, plain) == said
    code, message = by_fixture(folder, file, plain)
    assert (code, message.replace(f"{folder}/", "")) == said
    outcome = by_manifest(folder, file, plain)
    assert (EXIT_CODES[outcome.verdict], outcome.message.replace(f"{folder}/", "")) == said
    words = shlex.split(outcome.command)
    assert words[:2] == ["darwinn", "verify"]
    assert by_command(words[2:], capsys)[0] == code


RUN = ("dense_edgetpu.tflite with a network", "dense.pte with a program", "start.mlir")


@pytest.mark.parametrize("kind", RUN)
@pytest.mark.parametrize(("name", "given"), CASES)
def test_the_command_of_a_row_gives_the_verdict_of_the_row(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
    given: Any,
    kind: str,
) -> None:
    plain = asked_of(ENTRIES[name], given, KINDS[kind])
    if plain.get("engine") == Engine.RTL:
        pytest.skip("the RTL takes a minute to build, and has tests of its own")
    monkeypatch.chdir(folder)
    outcome = by_manifest(folder, kind.split()[0], plain)
    words = shlex.split(outcome.command)
    assert run_command_line([*words[1:], "--json"]) == EXIT_CODES[outcome.verdict]
    assert json.loads(capsys.readouterr().out)["verdict"] == outcome.verdict.value


@pytest.mark.parametrize("name", [name for name in entries_of(Options) if name != "timeout"])
def test_the_command_of_a_row_of_a_survey_gives_its_verdict(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    entry = entries_of(Options)[name]
    value = False if entry.setting.inverse else value_of(entry, VALUES.get(name))
    for file in ("dense_edgetpu.tflite", "dense.tflite"):
        (tmp_path / file).symlink_to(folder / file)
    (task,) = plan([tmp_path], made(Options, {name: value})).tasks
    row = task.perform()
    assert isinstance(row, SurveyRow)
    assert run_command_line([*shlex.split(row.command)[1:], "--json"]) == EXIT_CODES[row.verdict]
    assert json.loads(capsys.readouterr().out)["verdict"] == row.verdict.value


def test_bounds_and_types_are_those_of_the_options(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, entry in ENTRIES.items():
        if entry.setting.least is None or not entry.key:
            continue
        below = int(entry.setting.least) - 1
        (folder / "manifest.toml").write_text(f'[[case]]\nfile = "f"\n{entry.key} = {below}\n')
        with pytest.raises(InputError, match=rf"\$\.{entry.key}"):
            manifest.load(folder / "manifest.toml")
        assert run_command_line(["verify", "f", entry.setting.option, str(below)]) == 2, name
        assert entry.setting.option in capsys.readouterr().err
