"""Defaults of a project: which file holds, what it changes, and what is said of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.cli.file_schemas import project_schema
from darwinn_testbench.cli.project import keys
from jsonschema import Draft202012Validator


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    inner = tmp_path / "deep" / "inside"
    inner.mkdir(parents=True)
    monkeypatch.chdir(inner)
    return tmp_path


def told(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[dict[str, Any], str]:
    assert run_command_line([*words, "--json"]) == 0
    out, err = capsys.readouterr()
    found: dict[str, Any] = json.loads(out)
    return found, err


def test_the_nearest_file_holds_and_what_it_changes_is_named(
    samples: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(samples / "dense_edgetpu.tflite")
    words = ("cycles", file)
    assert told(capsys, *words)[0]["host"] == "usb3"
    (folder / "pyproject.toml").write_text('[tool.darwinn]\nhost = "pcie"\n')
    found, said = told(capsys, *words)
    assert found["host"] == "pcie"
    assert said == f"darwinn cycles: host = pcie ({folder / 'pyproject.toml'})\n"
    (folder / "deep" / "pyproject.toml").write_text("[tool.other]\n")
    (folder / "deep" / "darwinn.toml").write_text('host = "usb2"\nchip = "beagle-max"\n')
    found, said = told(capsys, *words)
    assert found["host"] == "usb2"
    assert said == f"darwinn cycles: host = usb2 ({folder / 'deep' / 'darwinn.toml'})\n"
    # What is typed holds, and nothing is said.
    found, said = told(capsys, *words, "--host", "usb3")
    assert (found["host"], said) == ("usb3", "")
    assert run_command_line([*words, "--chip", "beagle-max", "--host", "usb3"]) == 0
    # A command that is advised is for the same chip and link, in the same folder.
    assert " --chip beagle-max --host usb3 shows" in capsys.readouterr().out


def test_a_default_is_not_refused_where_it_does_not_apply(
    samples: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "darwinn.toml").write_text(
        'host = "usb2"\nstrict = true\nhazards = false\nseed = 3\n'
    )
    found, _ = told(capsys, "run", str(samples / "dense.pte"))
    assert found["seed"] == 3
    assert run_command_line(["run", str(samples / "dense.pte"), "--strict"]) == 2
    assert "--strict: only for DarwiNN files" in capsys.readouterr().err


def test_a_flag_takes_back_what_a_project_says(
    samples: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(samples / "dense_edgetpu.tflite")
    flags = [key for key, each in keys().items() if each.plain is bool]
    assert {"hazards", "strict", "wide"} <= set(flags)
    (folder / "darwinn.toml").write_text("hazards = false\nstrict = true\n")
    found, said = told(capsys, "verify", file, "--runs", "1")
    assert (found["hazards"]["judged"], "strict = true" in said) == ("not judged", True)
    found, said = told(capsys, "verify", file, "--runs", "1", "--hazards", "--no-strict")
    assert found["hazards"]["judged"] != "not judged"
    assert said == ""
    for key in flags:
        word = f"--{key}" if keys()[key].setting.inverse else f"--no-{key}"
        assert run_command_line(["verify", file, "--runs", "1", "--no-proof", word]) == 0, word
    capsys.readouterr()
    # The last word of a command line holds.
    for flags_of_hazards, judged in (
        (["--no-hazards", "--hazards"], True),
        (["--hazards", "--no-hazards"], False),
    ):
        found, _ = told(capsys, "verify", file, "--runs", "1", *flags_of_hazards)
        assert (found["hazards"]["judged"] != "not judged") == judged, flags_of_hazards
    capsys.readouterr()
    # A file may be called like a flag.
    assert run_command_line(["verify", "--", "--hazards"]) == 2
    assert "--hazards: No such file" in capsys.readouterr().err
    # Words of a program are not the command's.
    assert run_command_line(["device", "--usb", "--no-wide", "--", "true"]) == 2
    assert "No such option: --no-wide" in capsys.readouterr().err


def test_a_chip_is_named_from_the_folder_of_the_project(
    samples: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "darwinn.toml").write_text('chip = "chips/none.toml"\n')
    assert run_command_line(["cycles", str(samples / "dense_edgetpu.tflite")]) == 2
    assert str(folder / "chips" / "none.toml") in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("hots = 1", "unknown key `hots`: is `host` meant?"),
        ("max_seconds = 1", "unknown key `max_seconds`: is `max-seconds` meant?"),
        ("q = 1", "unknown key `q`: there are assumptions, chip, "),
        ("[tool.darwinn]", "[tool.darwinn] is a table of pyproject.toml; in darwinn.toml the keys"),
        ('seed = "7"', "seed = '7': must be a whole number"),
        ("seed = -1", "seed = -1: must be at least 0"),
        ("jobs = 5000", "jobs = 5000: must be at most 1024"),
        ("wide = 1", "wide = 1: must be true or false"),
        ("cache = '/tmp'", "unknown key `cache`: "),
        ("seed = ", "Invalid value"),
        ("host = 3", "host = 3: must be a text"),
        ("policy = 'near'", "policy 'near': expected exact"),
    ],
)
def test_a_wrong_file_is_one_error(
    text: str, said: str, samples: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "darwinn.toml").write_text(text)
    assert run_command_line(["verify", str(samples / "dense_edgetpu.tflite")]) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert said in error
    if "policy" not in text:
        assert f"{folder / 'darwinn.toml'}: " in error


def test_the_schema_has_every_key_and_takes_what_is_taken() -> None:
    schema = project_schema()
    Draft202012Validator.check_schema(schema)
    assert set(schema["properties"]) == set(keys())
    assert {"chip", "host", "seed", "policy", "hazards", "max-seconds"} <= set(keys())
    good = {"chip": "mine.toml", "seed": 3, "hazards": False, "max-seconds": 1.5}
    Draft202012Validator(schema).validate(good)
    for bad in ({"seed": "3"}, {"seed": -1}, {"hots": 1}, {"wide": "yes"}):
        assert list(Draft202012Validator(schema).iter_errors(bad)), bad


@pytest.mark.parametrize("kind", ["manifest", "project"])
def test_an_editor_is_told_what_a_key_means(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["docs", "--schema", kind]) == 0
    schema = json.loads(capsys.readouterr().out)
    Draft202012Validator.check_schema(schema)
    properties = schema.get("$defs", {}).get("Keys", schema)["properties"]
    meanings = {key: told.get("description", "") for key, told in properties.items()}
    assert {"hazards", "policy"} <= set(meanings)
    assert not [key for key, text in meanings.items() if not text]
    # What turns something off says what its false does.
    assert meanings["hazards"].startswith("false: Skip the check")
    # Values are completed, and others are valid.
    policies = properties["policy"]
    assert "exact" in policies["anyOf"][0]["enum"]
    Draft202012Validator(policies).validate("lsb:3")
