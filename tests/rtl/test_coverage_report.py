"""Merging of Verilator's counts and of functional bins, and the report made of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from darwinn_rtl.coverage_report import main, merge_bins, missed_bins, write_report
from darwinn_rtl.line_coverage import lcov, merge, read_counts

SOURCE = "module a;\n  if (x)\n    y = 1;\n  else\n    y = 0;\nendmodule\n"


def entry(count: int, *, file: str = "/rtl/a.sv", **fields: str) -> str:
    text = "".join(f"\x01{key}\x02{value}" for key, value in {"f": file, **fields}.items())
    return f"C '{text}' {count}\n"


def counts(if_arm: int, else_arm: int, rises: int) -> str:
    return "# SystemC::Coverage-3\n" + "".join(
        (
            entry(if_arm, l="2", n="3", t="branch", o="if", S="2-3", h="TOP.a"),
            entry(else_arm, l="2", n="4", t="branch", o="else", S="2,5", h="TOP.a"),
            entry(rises, l="3", n="5", t="toggle", o="y:0->1", h="TOP.a"),
            entry(9, file="/rtl/generated.sv", l="1", n="1", t="line", o="block", S="1"),
        )
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "rtl").mkdir()
    (tmp_path / "rtl" / "a.sv").write_text(SOURCE)
    (tmp_path / "one.dat").write_text(counts(3, 0, 0))
    (tmp_path / "two.dat").write_text(counts(4, 0, 1))
    for name, hits in (("x", 2), ("y", 0)):
        bins = {"unit": {"item": {"low": hits, "high": 0}}}
        (tmp_path / f"{name}.bins.json").write_text(json.dumps(bins))
    return tmp_path


def test_counts_of_simulations_add_up(folder: Path) -> None:
    merged = merge(sorted(folder.glob("*.dat")), ["a.sv"])
    assert merged["a.sv"].lines == {2: 7, 3: 7, 5: 0}
    assert merged["a.sv"].branches == {(2, "if"): 7, (2, "else"): 0}
    assert merged["a.sv"].toggles == {(3, "y:0->1"): 1}


def test_lcov_names_each_place(folder: Path) -> None:
    text = lcov(merge(sorted(folder.glob("*.dat")), ["a.sv"]), {"a.sv": Path("/rtl/a.sv")})
    assert text == (
        "TN:\nSF:/rtl/a.sv\nBRDA:2,0,else,0\nBRDA:2,0,if,7\nBRDA:3,0,y:0->1,1\nBRF:3\nBRH:2\n"
        "DA:2,7\nDA:3,7\nDA:5,0\nLF:3\nLH:2\nend_of_record\n"
    )


def test_missed_bins_are_named(folder: Path) -> None:
    bins = merge_bins(sorted(folder.glob("*.bins.json")))
    assert bins == {"unit": {"item": {"low": 2, "high": 0}}}
    assert [(missed.name, missed.reason) for missed in missed_bins(bins)] == [("high", "")]


def test_the_page_shows_what_was_never_reached(folder: Path) -> None:
    write_report(folder, folder / "rtl")
    page = (folder / "index.html").read_text()
    assert '<span class="never">         0    5      y = 0;</span>' in page
    assert "never: else" in page
    assert "66.7 % (2 of 3)" in page
    assert "high" in page


@pytest.mark.parametrize("text", [None, "not an entry\n"])
def test_what_is_no_coverage_is_refused(
    text: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if text:
        (tmp_path / "bad.dat").write_text(text)
        with pytest.raises(ValueError, match="line 1"):
            list(read_counts(tmp_path / "bad.dat"))
    assert main([str(tmp_path)]) == 2
    assert "coverage" in capsys.readouterr().err
