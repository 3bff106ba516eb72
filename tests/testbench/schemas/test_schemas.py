"""What every command prints with `--json` is as its schema says, to the last key."""

from __future__ import annotations

import json
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from darwinn_formats.darwinn import load
from darwinn_sim.machine.hazards import Kind
from darwinn_testbench.cli import commands
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.compiler import compile_network, edgetpu_model
from darwinn_testbench.report.result import JSON_VERSION
from darwinn_testbench.schemas import COMMANDS, schema_of
from darwinn_testbench.schemas.__main__ import main
from darwinn_testbench.schemas.types import Schemas
from sample_files import sample
from whole_models import chained

DOCUMENTS = Path(__file__).parents[3] / "docs"
WITHOUT = {"view", "delegate", "docs"}
"""Commands that print no report."""

DENSE = "dense_edgetpu.tflite"
NATIVES = ("--natives", "darwinn_testbench.compiler.natives")
REFERENCE = ("--reference", "dense.tflite")
REPORTS = (
    ("inspect", DENSE),
    ("inspect", "dense_chips.package"),
    ("inspect", "dense.pte"),
    ("inspect", "dense.bef"),
    ("inspect", DENSE, "dense.pte", "missing", "convolution.package"),
    ("inspect", "--coverage", DENSE),
    ("disasm", DENSE),
    ("disasm", "dense.bef"),
    ("dma", DENSE),
    ("dma", "--full", "convolution_edgetpu.tflite"),
    ("explain", DENSE),
    ("explain", "dense.tflite"),
    ("explain", "dense.tflite", DENSE),
    ("harness", "new", "mine"),
    ("harness", "export", "sources", "--top", "harness"),
    ("compile", "dense.tflite", "--out_dir", "compiled"),
    ("generate", "--seed", "3", "--size", "1", "--check", "--out", "networks"),
    ("diff", DENSE, "dense_stand_alone_edgetpu.tflite"),
    ("layers", "convolution_edgetpu.tflite"),
    ("layers", "convolution.pte"),
    ("run", DENSE),
    ("run", DENSE, "--tap", "layer:0", "--until", "layer:0", "--schedules", "1"),
    ("run", "dense.bef", *NATIVES),
    ("run", "dense.pte"),
    ("verify", DENSE, "--runs", "1"),
    ("verify", DENSE, *REFERENCE, "--layers", "--localise", "--schedules", "1"),
    ("verify", DENSE, *REFERENCE, "--parameters"),
    ("verify", "wrong.tflite", *REFERENCE, "--runs", "1", "--parameters"),
    ("verify", DENSE, "--reference", "convolution.tflite"),
    ("verify", DENSE, "--reference", "dense.pte"),
    ("verify", "dense.pte", "--reference", "dense.bef", *NATIVES),
    ("report", DENSE, *REFERENCE, "--output", "page.html"),
    ("cycles", DENSE),
    ("cycles", DENSE, "--host", "none"),
    ("cycles", DENSE, "missing", "dense.tflite", "dense.package"),
    ("cycles", DENSE, "--baseline", "cycles.json", "--update", "--reason", "new"),
    ("cycles", DENSE, "--baseline", "cycles.json"),
    ("cycles", "--one-chip", DENSE, "convolution_edgetpu.tflite"),
    ("cycles", "--pipeline", "chained_0.tflite", "chained_1.tflite"),
    ("profile", DENSE),
    ("profile", "convolution.pte", "--runs", "1"),
    ("accuracy",),
    ("calibrate", f"{DENSE}=0.6", "convolution_edgetpu.tflite=0.7"),
    (
        "calibrate",
        f"{DENSE}=0.6",
        "convolution_edgetpu.tflite=0.7",
        "dense_stand_alone_edgetpu.tflite=0.6",
    ),
    ("regress", "cases.toml", "--journal", "regressed", "--jobs", "1"),
    ("survey", ".", "--journal", "surveyed", "--jobs", "1"),
    ("sample", "again"),
    ("classify", "picture.ppm", "convolution_edgetpu.tflite"),
    ("classify", "picture.ppm", "missing_edgetpu.tflite"),
    ("detect", "picture.ppm", "convolution_edgetpu.tflite"),
    ("segment", "picture.ppm", "convolution_edgetpu.tflite"),
    ("pose", "picture.ppm", "convolution_edgetpu.tflite"),
    ("evaluate", "convolution_edgetpu.tflite", "missing", "--journal", "evaluated"),
    ("device", "--replay", "missing.jsonl"),
    ("warm-up", "function"),
    ("import", "missing"),
    *((command, "missing") for command in ("inspect", "run", "verify", "cycles", "layers")),
)

CASES = """
[[case]]
file = "dense_edgetpu.tflite"
reference = "dense.tflite"
seeds = 2
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("samples")
    sample(folder)
    wrong = bytearray((folder / DENSE).read_bytes())
    wrong[wrong.find(bytes(load(bytes(wrong)).executables[1].parameters)) + 20_000] ^= 1
    (folder / "wrong.tflite").write_bytes(wrong)
    (folder / "cases.toml").write_text(CASES)
    for number, network in enumerate(chained([[16, 8], [8, 4]])):
        model = edgetpu_model(network, compile_network(network))
        (folder / f"chained_{number}.tflite").write_bytes(model)
    (folder / "picture.ppm").write_bytes(b"P6 4 4 255\n" + bytes(range(48)))
    return folder


@pytest.mark.usefixtures("tasks_performed_here")
@pytest.mark.parametrize("words", REPORTS, ids=" ".join)
def test_output_is_as_the_schema_says(
    words: tuple[str, ...],
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(folder)
    run_command_line([*words, "--json"])
    printed = json.loads(capsys.readouterr().out)
    assert printed["json_version"] == JSON_VERSION
    told(printed)


def told(printed: dict[str, Any]) -> None:
    """Of its schema one kind of report fits; where none does, the error of the nearest one."""
    schema = schema_of(printed["command"], open_ended=False)
    kinds = schema["anyOf"]
    if printed["rows"]:
        kinds = kinds[:-1]
    errors = []
    for kind in kinds:
        one = {**kind, "additionalProperties": False, "$defs": schema["$defs"]}
        found = list(jsonschema.Draft202012Validator(one).iter_errors(printed))
        if not found:
            return
        errors += [f"{each.json_path}: {each.message}" for each in found]
    pytest.fail("\n".join(errors), pytrace=False)


def test_every_command_has_a_schema() -> None:
    assert set(COMMANDS) == set(commands.SUMMARIES) - WITHOUT
    assert set(COMMANDS) == {words[0] for words in REPORTS}


def test_the_noted_digests_are_those_of_the_schemas_that_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for word in (str(tmp_path), "--digests"):
        monkeypatch.setattr(sys, "argv", ["darwinn_testbench.schemas", word])
        assert main() == 0
    written = sorted(tmp_path.iterdir())
    digests = [f"{sha256(each.read_bytes()).hexdigest()}  {each.name}\n" for each in written]
    assert capsys.readouterr().out == "".join(digests)
    noted = (DOCUMENTS / "schemas.sha256").read_text()
    assert "".join(digests) == noted, "JSON has changed: `make docs`, and a fragment in changes/"


@pytest.mark.parametrize("command", ["run", "verify"])
def test_kinds_of_hazards_are_listed(command: str) -> None:
    kinds = schema_of(command)["$defs"]["Hazard"]["properties"]["kind"]["enum"]
    assert kinds == [str(each) for each in Kind]
    assert {"read after write", "count after load"} < set(kinds)


@pytest.mark.parametrize("command", COMMANDS)
def test_schemas_are_schemas_and_let_keys_be_added(command: str) -> None:
    schema = schema_of(command)
    jsonschema.Draft202012Validator.check_schema(schema)
    failed = {"command": command, "json_version": 1, "verdict": "bad-input", "file": "x"}
    valid = jsonschema.Draft202012Validator(schema).is_valid
    assert valid({**failed, "message": "", "rows": [], "new": 1})
    assert not valid({**failed, "message": "", "rows": [{"name": 1}]})
    assert not valid({**failed, "message": ""})


def test_numbers_that_json_lacks_are_words() -> None:
    valid = jsonschema.Draft202012Validator(Schemas(open_ended=True).of(float)).is_valid
    assert [valid(each) for each in (1, 1.5, "nan", "-inf", "1.5", None)] == [
        *(True, True, True, True),
        *(False, False),
    ]
