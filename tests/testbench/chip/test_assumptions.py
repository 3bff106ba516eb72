"""Assumptions are named by every command that depends on them, or refused by name."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from darwinn_formats.darwinn import load
from darwinn_sim.isa.codec import decode
from darwinn_sim.isa.table import BY_NAME
from darwinn_testbench.cli.application import run_command_line
from sample_files import sample

RULE = "a trace request has no effect on results"
TRACE = 1 << 5


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, int]:
    """A model with a trace request in a ring infeed, the model before compilation, and the pc."""
    folder = tmp_path_factory.mktemp("samples")
    sample(folder)
    whole = bytearray((folder / "dense_edgetpu.tflite").read_bytes())
    inference = load(folder / "dense_edgetpu.tflite").models[0].inference
    chunk = bytes(inference.instruction_bitstreams[0].bitstream)
    program = decode(chunk)
    pc = int(program.pc[program.opcode == BY_NAME["RingInfeed"].opcode][0])
    assert whole.count(chunk) == 1
    whole[whole.find(chunk) + 16 * pc] |= TRACE
    changed = folder / "traced_edgetpu.tflite"
    changed.write_bytes(whole)
    return changed, folder / "dense.tflite", pc


def _commands(files: tuple[Path, Path, int], folder: Path) -> list[list[str]]:
    file, reference, _ = files
    manifest = folder / "manifest.toml"
    manifest.write_text(f'[[case]]\nfile = "{file}"\nreference = "{reference}"\n')
    return [
        ["run", str(file)],
        ["verify", str(file), "--reference", str(reference)],
        ["layers", str(file)],
        ["cycles", str(file)],
        ["profile", str(file)],
        ["dma", str(file), "--full"],
        ["report", str(file), "--output", str(folder / "page.html")],
        ["regress", str(manifest), "--journal", str(folder / "work")],
    ]


@pytest.mark.parametrize("number", range(8))
def test_a_command_names_what_it_assumes_or_refuses_it(
    files: tuple[Path, Path, int],
    number: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    command = _commands(files, tmp_path)[number]
    assert run_command_line([*command, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    (assumption,) = found["assumptions"]
    assert assumption == {
        "instruction": "RingInfeed",
        "field": "trace",
        "value": 1,
        "rule": RULE,
        "count": 1,
        "chunk": 0,
        "pc": files[2],
        "rtl": True,
    }
    assert "under 1 assumption" in found["message"]
    assert run_command_line([*command, "--no-assumptions", "--json"]) == 3
    printed = capsys.readouterr()
    refused = json.loads(printed.out)
    assert refused["verdict"] == "refused"
    assert "trace = 1 is an assumption" in printed.err + json.dumps(refused)


def test_a_verdict_is_told_with_its_assumptions_in_every_form(
    files: tuple[Path, Path, int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, reference, pc = files
    names = ("junit", "sarif", "markdown")
    forms = [word for name in names for word in (f"--{name}", str(tmp_path / name))]
    command = ["verify", str(file), "--reference", str(reference), *forms]
    assert run_command_line(command) == 0
    text = " ".join(capsys.readouterr().out.split())
    line = f"RingInfeed.trace 1: {RULE} (1 instruction; first chunk 0, pc {pc})"
    assert f"assumed: {line}" in text and "under 1 assumption" in text
    properties = ElementTree.parse(tmp_path / "junit").iter("property")
    assert line in {each.get("value") for each in properties}
    run = json.loads((tmp_path / "sarif").read_text())["runs"][0]
    assert [(each["ruleId"], each["level"]) for each in run["results"]] == [("assumed", "note")]
    assert "assumed" in {rule["id"] for rule in run["tool"]["driver"]["rules"]}
    assert line in (tmp_path / "markdown").read_text()


def test_known_values_are_no_assumption(
    files: tuple[Path, Path, int], capsys: pytest.CaptureFixture[str]
) -> None:
    plain = files[0].with_name("dense_edgetpu.tflite")
    assert run_command_line(["run", str(plain), "--no-assumptions", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["assumptions"] == [] and "assumption" not in found["message"]


def test_a_listing_marks_the_instruction(
    files: tuple[Path, Path, int], capsys: pytest.CaptureFixture[str]
) -> None:
    file, _, pc = files
    mark = f"assumed: trace 1: {RULE}"
    assert run_command_line(["disasm", str(file)]) == 0
    assert f"! {mark}" in " ".join(capsys.readouterr().out.split())
    assert run_command_line(["disasm", str(file), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    marked = [each for row in rows for each in row["instructions"] if "grades" in each]
    assert [(each["pc"], each["grades"]) for each in marked] == [(pc, [mark])]
