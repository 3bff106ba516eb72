"""``--csv`` of the commands that print a table: the rows of ``--json``, line by line."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from darwinn_testbench.cli import commands
from darwinn_testbench.cli.application import run_command_line
from sample_files import sample

WITHOUT = {"delegate", "device", "disasm", "docs", "report", "view"}
LINES = (
    "inspect dense_edgetpu.tflite",
    "dma dense_edgetpu.tflite",
    "explain dense.tflite dense_edgetpu.tflite",
    "layers dense_edgetpu.tflite",
    "run dense_edgetpu.tflite",
    "verify dense_edgetpu.tflite --reference dense.tflite --runs 2",
    "cycles dense_edgetpu.tflite",
    "profile dense_edgetpu.tflite",
    "diff dense_edgetpu.tflite dense_edgetpu.tflite --only cycles",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rows")
    sample(folder)
    return folder


@pytest.fixture(autouse=True)
def _there(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


def test_every_command_with_a_table_has_it() -> None:
    having = {
        name
        for name in commands.SUMMARIES
        if any("--csv" in each.opts for each in commands.load(name).params)
    }
    assert having == set(commands.SUMMARIES) - WITHOUT


@pytest.mark.parametrize("line", LINES)
def test_lines_are_the_rows(line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "rows.csv"
    assert run_command_line([*line.split(), "--json", "--csv", str(target)]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    with target.open(newline="") as stream:
        lines = list(csv.DictReader(stream))
    assert rows
    for row, found in zip(rows, lines, strict=True):
        for key, value in row.items():
            if isinstance(value, str | int) and not isinstance(value, bool):
                assert found[key] == str(value), key
    assert list(lines[0])[-2:] == ["verdict", "message"]


def test_answers_of_a_picture_have_a_line_each(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    image = pytest.importorskip("PIL.Image")
    picture = tmp_path / "red.png"
    image.new("RGB", (16, 16), "red").save(picture)
    words = ["classify", str(picture), "classifier_edgetpu.tflite", "--csv", "-", "--top", "3"]
    assert run_command_line(words) == 0
    out, err = capsys.readouterr()
    lines = list(csv.DictReader(io.StringIO(out)))
    assert [line["name"] for line in lines] == [str(picture)] * len(lines)
    assert len({line["number"] for line in lines}) == len(lines) > 1
    assert "pass  classifier_edgetpu.tflite" in err


def test_standard_output_takes_one_result(capsys: pytest.CaptureFixture[str]) -> None:
    for more in (["--json"], ["--junit", "-"]):
        words = ["cycles", "dense_edgetpu.tflite", "--csv", "-", *more]
        assert run_command_line(words) == 2
        assert f"{more[0]}" in capsys.readouterr().err


def test_a_place_without_a_folder_is_refused_before_the_work(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run_command_line(["cycles", "no such file", "--csv", "nowhere/rows.csv"]) == 2
    assert "nowhere/rows.csv" in capsys.readouterr().err
