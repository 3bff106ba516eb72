"""Tables at the width of a terminal: names lose their middle, verdicts and numbers nothing."""

from __future__ import annotations

import io
from typing import Any

import pytest
from darwinn_testbench.cli import console
from darwinn_testbench.report import Column, Verdict, table
from darwinn_testbench.report.shortened import shortened
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

Line = tuple[str, str, int, Verdict]
LINES: list[Line] = [
    (
        f"folder/of/models/mobilenet_v2_1.0_224_quant_{number}_edgetpu.tflite",
        "dma " * number,
        number,
        verdict,
    )
    for number, verdict in enumerate(Verdict)
]
COLUMNS: tuple[Column[Line], ...] = (
    Column("file", lambda line: line[0]),
    Column("what was found", lambda line: line[1], may_shrink=True),
    Column("cycles", lambda line: 10 ** line[2], "right"),
    Column("verdict", lambda line: line[3]),
)


def printed(columns: Any, rows: Any, width: int) -> list[str]:
    stream = io.StringIO()
    Console(file=stream, width=width).print(table(columns, rows))
    return stream.getvalue().splitlines()


@pytest.mark.parametrize("width", [60, 80, 120])
def test_tables_fit_and_no_verdict_is_cut(width: int) -> None:
    head, *lines = printed(COLUMNS, LINES, width)
    assert len(lines) == len(LINES)
    for line, (name, _, number, verdict) in zip(lines, LINES, strict=True):
        assert len(line) <= width
        assert line.split()[-1] == verdict.value
        assert f"{10**number:,}" in line
        shown = line.split()[0]
        assert shown == name or (name.startswith(shown.partition("…")[0]) and "…" in shown)
        assert shown.endswith("flite"), "what tells names apart stands at their end"
    assert head.split()[-1] == "verdict"


def test_nothing_is_cut_where_there_is_room() -> None:
    lines = printed(COLUMNS, LINES, 400)
    assert not any("…" in line for line in lines)
    assert all(line[0] in printed for line, printed in zip(LINES, lines[1:], strict=True))


def test_columns_without_room_are_named() -> None:
    columns: list[Column[int]] = [
        Column(f"number {k}", lambda line: 10**9 + line, "right") for k in range(8)
    ]
    columns.append(Column("verdict", lambda _: Verdict.MISMATCH))
    lines = printed(columns, [1, 2], 60)
    assert all(len(line) <= 60 for line in lines[:3])
    assert all(line.rstrip().endswith("mismatch") for line in lines[1:3])
    told = " ".join(lines[3:])
    assert told.startswith("no room for: number 3, number 4")
    assert "--wide" in told


@given(
    rows=st.lists(
        st.tuples(
            st.text(max_size=90), st.text(max_size=90), st.integers(), st.sampled_from(Verdict)
        ),
        max_size=6,
    ),
    width=st.integers(40, 130),
)
def test_any_names_fit(rows: list[Line], width: int) -> None:
    columns = [*COLUMNS[:2], Column("number", lambda line: line[2] % 10**6, "right"), COLUMNS[3]]
    lines = printed(columns, rows, width)
    assert all(cell_len(line) <= width for line in lines)
    assert [line.split()[-1] for line in lines[1 : 1 + len(rows)]] == [row[3].value for row in rows]


@given(st.text(max_size=60), st.integers(0, 70))
def test_a_shortened_name_keeps_its_ends(name: str, most: int) -> None:
    short = shortened(name, most)
    assert len(short) <= max(most, 0)
    if len(name) <= most:
        assert short == name
    elif most >= 2:
        begin, _, end = (
            short.rpartition("…")
            if "…" not in name
            else (short[: most - 1 - most // 2], "", short[-(most // 2) :])
        )
        assert name.startswith(begin)
        assert name.endswith(end)
        assert 0 <= len(end) - len(begin) <= 1


@pytest.mark.parametrize(
    ("environment", "wide", "width"),
    [
        ({}, False, console._UNBOUNDED),
        ({"CI": "true"}, False, console._LOG),
        ({"CI": "true", "COLUMNS": "80"}, False, 80),
        ({"CI": "true", "COLUMNS": "80"}, True, console._WIDEST),
    ],
)
def test_the_width_of_what_is_printed_on(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], wide: bool, width: int
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with console.full_names(wide):
        assert console._console().width == width
