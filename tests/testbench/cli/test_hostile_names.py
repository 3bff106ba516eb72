"""What a file calls its tensors is shown, and does nothing: no control character and no line of a
name's own reaches a terminal, a log of annotations, XML or a page."""

from __future__ import annotations

import io
import json
import xml.etree.ElementTree as ET
import zipfile
from pathlib import Path

import numpy as np
import pytest
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.cli.completed import offered
from darwinn_testbench.pages.charts import library
from darwinn_testbench.report import Report, Row, Verdict, table, to_junit, to_markdown
from darwinn_testbench.report.github import workflow_commands
from darwinn_testbench.report.tables import Column, cell_text
from sample_files import sample

# As long as "output", which it takes the place of: a line of its own, a control sequence, a bell.
HOSTILE = "o\n\x1b\x07$t"
SHOWN = r"o\n\x1b\x07$t"
"""Of which a narrow column shows the begin."""

COMMANDS = ("inspect", "disasm", "dma", "layers", "run", "verify", "cycles", "profile")


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sample whose output has a hostile name, before compilation and after."""
    folder = tmp_path_factory.mktemp("hostile")
    sample(folder)
    for path in folder.iterdir():
        path.write_bytes(path.read_bytes().replace(b"output", HOSTILE.encode()))
    return folder / "dense_edgetpu.tflite"


def harmless(text: str) -> bool:
    """Whether nothing in a text but its own lines moves anything."""
    return all(line.isprintable() and not line.startswith(r"\x1b") for line in text.split("\n"))


@pytest.mark.parametrize("command", COMMANDS)
def test_names_are_escaped_on_the_terminal(
    hostile: Path, capfd: pytest.CaptureFixture[str], command: str
) -> None:
    reference = hostile.with_name("dense.tflite")
    options = ["--reference", str(reference), "--runs", "1"] if command == "verify" else []
    run_command_line([command, str(hostile), *options])
    printed = capfd.readouterr()
    assert harmless(printed.out), printed.out
    assert harmless(printed.err), printed.err
    if command not in ("dma", "cycles", "profile"):
        # Where there is little room a name loses its middle.
        assert SHOWN[:4] in printed.out


def test_json_has_the_name_itself(hostile: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["run", str(hostile), "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["rows"][0]["name"] == HOSTILE


def test_pictures_and_pages_are_well_formed(hostile: Path, tmp_path: Path) -> None:
    graph, page = tmp_path / "graph.svg", tmp_path / "page.html"
    assert run_command_line(["layers", str(hostile), "--graph", str(graph)]) == 0
    ET.parse(graph)
    assert run_command_line(["report", str(hostile), "--output", str(page)]) == 0
    text = page.read_text()
    assert harmless(text.replace(library(), ""))
    assert SHOWN in text


BAD = Report[Row](
    command="verify",
    file="a\x1b[2Jb\n::error::c",
    rows=(Row(name=HOSTILE, verdict=Verdict.MISMATCH, message="\x00\r\n::error::\ud800\uffff"),),
    figures={"chip": "\x08"},
)


def test_junit_stays_xml() -> None:
    suite = ET.fromstring(to_junit([BAD])).find("testsuite")
    assert suite is not None
    assert suite.get("name") == r"a\x1b[2Jb\n::error::c"
    case = suite.find("testcase")
    assert case is not None
    assert case.get("name") == SHOWN
    assert harmless("".join(f"{key}{value}" for key, value in case.items()))


def test_annotations_and_markdown_have_no_control_characters() -> None:
    (annotation,) = workflow_commands([BAD])
    assert annotation.isprintable()
    assert harmless(to_markdown([BAD]).decode())


def test_a_cell_is_one_line() -> None:
    assert cell_text(HOSTILE) == SHOWN
    (column,) = table([Column[str]("name", lambda row: row)], [HOSTILE]).columns
    assert [str(cell) for cell in column.cells] == [SHOWN]


@pytest.mark.parametrize("count", [3, 5000])
def test_an_error_is_as_long_as_can_be_read(
    hostile: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], count: int
) -> None:
    """However many names a file holds: 20,000 of them were a line of 200,000 characters."""
    archive, array = tmp_path / "names.npz", io.BytesIO()
    np.save(array, np.zeros(1, np.uint8))
    with zipfile.ZipFile(archive, "w") as members:
        for number in range(count):
            members.writestr(f"a{number}.npy", array.getvalue())
    assert run_command_line(["run", str(hostile), "--inputs", str(archive)]) == 2
    error = capsys.readouterr().err
    assert "holds a0, a1, a2" in error and "none is named like an input" in error
    assert len(error) < 2500
    assert ("characters" in error) == (count > 3)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run", "{model}", "--inputs", "x=" + "y" * 300 + ".npy"], "has no input 'x'"),
        (["inspect", "y" * 4000], "characters) ..."),
    ],
    ids=["tried as a file", "a file"],
)
def test_a_word_longer_than_the_name_of_a_file_has_a_bounded_error(
    hostile: Path, capfd: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    assert run_command_line([word.format(model=hostile) for word in words]) == 2
    error = capfd.readouterr().err
    assert message in " ".join(error.split())
    assert len(error) < 3000


def test_a_shell_completes_nothing_of_a_name_that_is_too_long() -> None:
    assert offered([], ".toml")("y" * 300 + "/") == []


def test_a_manifest_names_no_files_by_a_pattern_that_is_too_long(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    manifest = tmp_path / "regression.toml"
    manifest.write_text(f'[[case]]\nfile = "{"y" * 300}*.tflite"\n')
    assert run_command_line(["regress", str(manifest)]) == 2
    assert "no file matches" in " ".join(capfd.readouterr().err.split())
