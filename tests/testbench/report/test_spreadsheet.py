"""Rows as lines of plain values."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from darwinn_formats.errors import Unavailable
from darwinn_testbench.report import Report, Row, Verdict


@dataclass(frozen=True)
class Item:
    number: int


@dataclass(frozen=True, kw_only=True)
class Told(Row):
    inside: Item | None
    sizes: tuple[int, ...] = ()
    shapes: tuple[tuple[int, ...], ...] = ()
    items: tuple[Item, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Spread(Told):
    spread = "items"


def report_of(kind: type[Told]) -> Report[Told]:
    told = kind(
        name="a",
        verdict=Verdict.PASS,
        message='says "no", twice',
        inside=Item(7),
        sizes=(1, 2),
        shapes=((1, 8), (3,)),
        items=(Item(1), Item(2)),
    )
    other = kind(name="b", verdict=Verdict.FAULT, inside=None)
    return Report(command="some", file="file", rows=(told, other))


def test_values_within_values_have_columns() -> None:
    assert report_of(Told).to_csv().decode() == (
        "name,inside.number,sizes,shapes,verdict,message\n"
        'a,7,1; 2,1x8; 3,pass,"says ""no"", twice"\n'
        "b,,,,fault,\n"
    )


def test_items_of_a_row_have_lines() -> None:
    lines = report_of(Spread).csv_lines
    assert [(line["name"], line.get("number")) for line in lines] == [
        ("a", 1),
        ("a", 2),
        ("b", None),
    ]


def test_a_data_frame_has_the_same_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []

    def frame(lines: Any, columns: Any) -> str:
        made.append((lines, columns))
        return "frame"

    monkeypatch.setitem(sys.modules, "pandas", SimpleNamespace(DataFrame=frame))
    report = report_of(Told)
    assert report.to_pandas() == "frame"
    header = report.to_csv().decode().split("\n", 1)[0]
    assert made == [(report.csv_lines, header.split(","))]


def test_without_pandas_one_line_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(Unavailable, match="pip install pandas"):
        report_of(Told).to_pandas()
