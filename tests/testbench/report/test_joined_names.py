"""Joined names are short wherever people read them, and whole in what programs read."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.cli.terminal import print_line
from darwinn_testbench.pages.content import Chart, Page, Part, Section, table_of
from darwinn_testbench.pages.render import render
from darwinn_testbench.report import (
    Column,
    Report,
    Row,
    Verdict,
    table,
    to_junit,
    to_markdown,
    to_sarif,
)
from darwinn_testbench.report.github import workflow_commands
from rich.console import Console

SHORT = "net/block_1/Relu6"
REST = ";net/block_1/FusedBatchNormV3;net/block_7/Conv2D"
REPORT: Report[Row] = Report(
    command="verify",
    file="m.tflite",
    rows=(Row(name=SHORT + REST, verdict=Verdict.MISMATCH, message=f"{SHORT}{REST}: 1 differs"),),
)
COLUMNS: tuple[Column[Row], ...] = (Column("name", lambda row: row.name),)


def as_table(report: Report[Row]) -> str:
    console = Console(width=200)
    with console.capture() as captured:
        console.print(table(COLUMNS, report.rows))
    return captured.get()


def as_page(report: Report[Row]) -> str:
    bars = {"mark": "bar", "encoding": {"y": {"field": "name"}}}
    chart = Chart(bars, {"name": [row.name for row in report.rows]})
    parts: list[Part] = [table_of(COLUMNS, report.rows), chart]
    return render(Page("t", None, "s", [Section("t", report.headline, parts)])).decode()


READ: dict[str, Callable[[Report[Row]], str]] = {
    "table": as_table,
    "page": as_page,
    "notebook": lambda report: report._repr_html_(),
    "junit": lambda report: to_junit([report]).decode(),
    "markdown": lambda report: to_markdown([report]).decode(),
    "github": lambda report: "\n".join(workflow_commands([report])),
}
PARSED: dict[str, Callable[[Report[Row]], str]] = {
    "json": lambda report: report.to_json(),
    "sarif": lambda report: to_sarif([report]).decode(),
}


@pytest.mark.parametrize("form", READ)
def test_they_are_short_for_people(form: str) -> None:
    text = READ[form](REPORT)
    assert SHORT in text
    assert REST not in text


@pytest.mark.parametrize("form", PARSED)
def test_they_are_whole_for_programs(form: str) -> None:
    assert SHORT + REST in PARSED[form](REPORT)


def test_they_are_short_in_errors(capsys: pytest.CaptureFixture[str]) -> None:
    print_line(f"darwinn verify: mismatch: {SHORT}{REST}: 1 of 2 differ")
    assert capsys.readouterr().err == f"darwinn verify: mismatch: {SHORT}: 1 of 2 differ\n"


KINDS = (
    "verify {compiled} --reference {model} --runs 1 --layers",
    "layers {compiled}",
    "explain {model}",
)


@pytest.mark.parametrize("words", KINDS, ids=lambda words: words.split()[0])
def test_they_are_short_of_a_real_network(
    corpus: Path, capsys: pytest.CaptureFixture[str], words: str
) -> None:
    name = "mobilenet_v1_0.25_128_quant"
    compiled, model = f"{corpus}/darwinn/{name}_edgetpu.tflite", f"{corpus}/tflite/{name}.tflite"
    asked = words.format(compiled=compiled, model=model).split()
    assert run_command_line(asked) == 0
    assert "/Relu6;" not in capsys.readouterr().out


def test_they_are_whole_in_the_json_of_a_real_network(
    corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "mobilenet_v1_0.25_128_quant"
    files = f"{corpus}/darwinn/{name}_edgetpu.tflite --reference {corpus}/tflite/{name}.tflite"
    assert run_command_line(["verify", *files.split(), "--runs", "1", "--layers", "--json"]) == 0
    tensors = json.loads(capsys.readouterr().out)["tensors"]
    assert sum("/Relu6;" in each["name"] for each in tensors) > 10
