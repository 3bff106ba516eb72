"""The page of `darwinn explain`: it says what the tables and --json say."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest
from darwinn_formats.tflite import BuiltinOperator
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.compiler import compile_network, edgetpu_model, random_dense, uncompiled
from darwinn_testbench.explain.explain import ExplainRow, explain
from darwinn_testbench.explain.page import page_of
from darwinn_testbench.explain.placement import Place
from darwinn_testbench.profile.network import laid_out
from darwinn_testbench.report import Report
from whole_models import segments, whole_model, with_floats

NETWORK = random_dense([256, 256, 64], 1)
BEFORE = with_floats(uncompiled(NETWORK), BuiltinOperator.ABS)
COMPILED = with_floats(edgetpu_model(NETWORK, compile_network(NETWORK)), BuiltinOperator.ABS)


def sections(report: Report[ExplainRow]) -> dict[str, str]:
    """The parts of the page by title, as text with marks."""
    text = unescape(page_of(report).decode())
    assert len(text) < 1_500_000
    return dict(re.findall(r"<section id=\"s\d+\">\s*<h2>(.*?)</h2>(.*?)</section>", text, re.S))


def rows_of(section: str) -> list[list[str]]:
    """The cells of its tables."""
    rows = re.findall(r"<tr[^>]*>(<td.*?)</tr>", section, re.S)
    return [re.findall(r"<td[^>]*>(.*?)</td>", row, re.S) for row in rows]


def test_operators_are_there_with_their_reasons_and_what_to_change() -> None:
    report = explain(BEFORE, COMPILED)
    page = sections(report)
    cells = rows_of(page["Operators"])
    rows = sorted(report.rows, key=lambda row: row.place is Place.CHIP)
    assert (rows[0].place, rows[-1].place) == (Place.CPU, Place.CHIP)
    assert [row[:4] for row in cells] == [
        [str(row.number), row.operator, row.result, row.place.value] for row in rows
    ]
    for row, shown in zip(rows, cells, strict=True):
        assert any(row.reason in cell for cell in shown)
        assert not row.advice or row.advice in shown
    for table in re.findall(r"<table>.*?</table>", page["Operators"], re.S):
        assert all(any(column) for column in zip(*rows_of(table), strict=True)), "empty columns"
    changes = rows_of(page["What to change"])
    assert [row[:2] for row in changes] == [
        [each.what, each.change] for each in report.figures["advice"]
    ]


def test_transfers_and_parameters_are_there_with_their_bytes() -> None:
    for report in (explain(BEFORE), explain(BEFORE, COMPILED), explain(whole_model(segments()))):
        page = sections(report)
        pieces = report.figures["pieces"]
        moved = [each for piece in pieces for each in piece.crossings]
        link = page[f"Over the host link {report.figures['host']}"]
        assert [row[1:4] for row in rows_of(link)] == [
            [each.what, each.direction, f"{each.bytes:,}"] for each in moved
        ]
        assert [row[:3] for row in rows_of(page["Parameters"])] == [
            [str(each.number), f"{each.cached:,}", f"{each.streamed:,}"] for each in pieces
        ]


def test_the_network_is_drawn_by_what_operators_read() -> None:
    report = explain(BEFORE, COMPILED)
    assert [row.reads for row in report.rows] == [(), (0,), (1,), (2,), (3,)]
    if laid_out([], {}) is None:
        pytest.skip("the layout of graphs (igraph) is not installed")
    page = sections(report)
    keys = [f"operator:{row.number}" for row in report.rows]
    assert re.findall(r'<g data-key="(.*?)"', page["Network"]) == keys
    assert sorted(re.findall(r'<tr data-key="(.*?)"', page["Operators"])) == keys
    assert page["Network"].count("<polyline") == 4


def test_a_place_has_one_colour_whatever_comes_first() -> None:
    if laid_out([], {}) is None:
        pytest.skip("the layout of graphs (igraph) is not installed")
    report = explain(BEFORE, COMPILED)
    colours = set()
    for rows in (report.rows, report.rows[::-1]):
        network = sections(replace(report, rows=rows))["Network"]
        legend = dict(re.findall(r'<span style="--kind:(#\w+)">(.*?)</span>', network))
        assert set(legend.values()) == {"chip", "CPU"}
        colours.add(tuple(sorted(legend.items())))
        boxes = re.findall(r'data-key="operator:(\d+)".*?--kind:(#\w+)', network)
        assert len(boxes) == len(rows)
        places = {str(row.number): row.place.value for row in rows}
        assert all(legend[colour] == places[number] for number, colour in boxes)
    assert len(colours) == 1


def test_the_summary_has_the_time_of_an_inference() -> None:
    report = explain(BEFORE, COMPILED)
    (piece,) = report.figures["pieces"]
    summary = dict(rows_of(sections(report)["Summary"]))
    assert summary["inference on the chip, ms"] == f"{piece.milliseconds:.3f}"
    assert "inference on the chip, ms" not in dict(rows_of(sections(explain(BEFORE))["Summary"]))


def test_a_network_that_is_too_large_to_be_drawn_is_a_table_alone() -> None:
    report = explain(BEFORE)
    many = tuple(replace(report.rows[0], number=number) for number in range(1501))
    page = sections(replace(report, rows=many))
    assert "Network" not in page
    assert len(rows_of(page["Operators"])) == len(many)


def test_the_command_writes_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("model.tflite").write_bytes(BEFORE)
    Path("model_edgetpu.tflite").write_bytes(COMPILED)
    command = ["explain", "model.tflite", "model_edgetpu.tflite", "--html"]
    assert run_command_line([*command, "page.html"]) == 0
    assert "next: open page.html in a browser" in capsys.readouterr().out
    assert Path("page.html").read_bytes() == page_of(
        explain("model.tflite", "model_edgetpu.tflite")
    )
    assert run_command_line([*command, "-"]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("<!DOCTYPE html>")
    assert "pass" in printed.err
    assert run_command_line([*command, "-", "--json"]) == 2
    assert run_command_line([*command, "absent/page.html"]) == 2
