"""Reports: one verdict from many rows, and the same facts as JSON and as JUnit XML."""

from __future__ import annotations

import io
import json
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from darwinn_formats.errors import FormatError
from darwinn_sim.errors import Deadlock, PageFault, UnsupportedInstruction
from darwinn_testbench.errors import InputError
from darwinn_testbench.report import (
    EXIT_CODES,
    Column,
    Report,
    Row,
    Verdict,
    counted,
    significant,
    table,
    to_junit,
    to_markdown,
    to_sarif,
    verdict_of,
    worst,
)
from darwinn_testbench.report.files import write_result
from darwinn_testbench.report.github import workflow_commands
from darwinn_testbench.report.result import PYTHON_ONLY
from darwinn_testbench.report.tables import cell_text
from rich.console import Console


@dataclass(frozen=True, kw_only=True)
class Sample(Row):
    value: Any = None
    array: Any = field(default=None, metadata=PYTHON_ONLY)


def report(*verdicts: Verdict, **options: Any) -> Report[Sample]:
    rows = tuple(
        Sample(name=f"row {k}", verdict=verdict, message=f"why {k}")
        for k, verdict in enumerate(verdicts)
    )
    return Report(command="verify", file="model.tflite", rows=rows, **options)


def test_the_worst_row_decides() -> None:
    assert report(Verdict.PASS, Verdict.MISMATCH, Verdict.PASS).verdict is Verdict.MISMATCH
    assert report(Verdict.REFUSED, Verdict.FAULT).verdict is Verdict.FAULT
    assert report(decided=Verdict.BAD_INPUT).verdict is Verdict.BAD_INPUT
    assert worst([]) is Verdict.PASS


def test_exit_codes_are_what_the_documentation_says() -> None:
    assert {str(verdict): code for verdict, code in EXIT_CODES.items()} == {
        "pass": 0,
        "proved": 0,
        "not-proved": 1,
        "ran": 0,
        "not-compared": 1,
        "race": 1,
        "hazard": 1,
        "mismatch": 1,
        "regression": 1,
        "fault": 1,
        "bad-input": 2,
        "refused": 3,
    }


@pytest.mark.parametrize(
    ("error", "verdict"),
    [
        (FormatError("field", "reason"), Verdict.BAD_INPUT),
        (FileNotFoundError(2, "No such file"), Verdict.BAD_INPUT),
        (InputError("shape"), Verdict.BAD_INPUT),
        (UnsupportedInstruction(9, 0, 4, "mode", 3), Verdict.REFUSED),
        (Deadlock(("tensor unit",)), Verdict.FAULT),
        (PageFault(0x1000, 64), Verdict.FAULT),
        (ZeroDivisionError(), None),
    ],
)
def test_every_error_has_its_verdict(error: Exception, verdict: Verdict | None) -> None:
    assert verdict_of(error) is verdict


def test_json_has_the_promised_keys_and_plain_values() -> None:
    values = {
        "float": float("inf"),
        "array": np.arange(3, dtype=np.int8),
        "scalar": np.float32(0.5),
        "bytes": b"\x01\xff",
        "path": Path("a/b"),
        "verdict": Verdict.BAD_INPUT,
    }
    row = Sample(name="row", verdict=Verdict.PASS, value=values, array=object())
    result: Report[Sample] = Report(
        command="run", file="model.tflite", rows=(row,), figures={"seed": np.int64(7)}
    )
    loaded = json.loads(result.to_json())
    assert loaded["verdict"] == "pass"
    assert loaded["file"] == "model.tflite"
    assert loaded["seed"] == 7
    assert loaded["rows"] == [
        {
            "name": "row",
            "verdict": "pass",
            "message": "",
            "value": {
                "float": "inf",
                "array": [0, 1, 2],
                "scalar": 0.5,
                "bytes": "01ff",
                "path": "a/b",
                "verdict": "bad-input",
            },
        }
    ]


def test_junit_has_a_case_for_each_row() -> None:
    document = report(*Verdict, figures={"seed": 3})
    suite = ElementTree.fromstring(to_junit([document])).find("testsuite")
    assert suite is not None
    assert suite.get("name") == "model.tflite"
    assert {key: suite.get(key) for key in ("tests", "failures", "errors", "skipped")} == {
        "tests": "12",
        "failures": "6",
        "errors": "2",
        "skipped": "1",
    }
    failure = suite.find("testcase/failure")
    assert failure is not None
    assert failure.get("message") == "why 4"
    ran = suite.find("testcase/system-out")
    assert ran is not None
    assert ran.text == "why 0"


def test_a_result_that_was_compared_with_nothing_says_so_in_every_form() -> None:
    row = Row(name="output", verdict=Verdict.RAN)
    result: Report[Row] = Report(command="verify", file="f", rows=(row,))
    suite = ElementTree.fromstring(to_junit([result])).find("testsuite")
    assert suite is not None
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("1", "0", "0")
    assert suite.findtext("testcase/system-out", "").startswith("ran: ")
    (found,) = json.loads(to_sarif([result]))["runs"][0]["results"]
    assert (found["ruleId"], found["level"]) == ("ran", "note")
    (notice,) = workflow_commands([result])
    assert notice.startswith("::notice file=f,title=darwinn ran::output: ")
    assert "compared with nothing" in notice
    assert "compared with nothing" in to_markdown([result]).decode()
    assert worst([Verdict.PASS, Verdict.RAN]) is Verdict.RAN
    assert worst([Verdict.RAN, Verdict.REFUSED]) is Verdict.REFUSED


@pytest.mark.parametrize("verdict", Verdict)
@pytest.mark.parametrize("rows", [(), (Verdict.PASS,)])
def test_junit_is_green_where_the_exit_code_is_0(
    verdict: Verdict, rows: tuple[Verdict, ...]
) -> None:
    decided = report(*rows, decided=verdict, message="why the whole is so")
    suite = ElementTree.fromstring(to_junit([decided])).find("testsuite")
    assert suite is not None
    red = [suite.get(kind) for kind in ("failures", "errors", "skipped")]
    assert red.count("1") == (EXIT_CODES[verdict] != 0) and red.count("0") >= 2


def test_results_are_written_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "result.bin"
    write_result(target, b"first")
    write_result(target, b"second")
    assert target.read_bytes() == b"second"
    assert [path.name for path in tmp_path.iterdir()] == ["result.bin"]
    with pytest.raises(OSError, match="missing"):
        write_result(tmp_path / "missing" / "result.bin", b"")


def test_a_result_goes_through_a_link(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    link, target = tmp_path / "link", folder / "result"
    link.symlink_to(Path("folder") / "result")
    for text in (b"first", b"again"):
        write_result(link, text)
        assert link.is_symlink()
        assert target.read_bytes() == text
        assert list(folder.iterdir()) == [target]


@pytest.mark.parametrize("leads_to", ["model", "/dev/null", "missing", "."])
def test_a_result_that_nobody_named_takes_the_place_of_a_link(
    tmp_path: Path, leads_to: str
) -> None:
    (tmp_path / "model").write_bytes(b"before")
    link = tmp_path / "link"
    link.symlink_to(leads_to)
    write_result(link, b"result", over_link=True)
    assert not link.is_symlink() and link.read_bytes() == b"result"
    assert (tmp_path / "model").read_bytes() == b"before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "model"]


def test_a_device_is_written_directly() -> None:
    write_result("/dev/null", b"gone")
    assert not Path("/dev/null").is_file()


def test_one_thing_is_no_plural() -> None:
    assert [counted(count, "layer") for count in (0, 1, 2_000)] == [
        "0 layers",
        "1 layer",
        "2,000 layers",
    ]


def test_a_figure_has_no_exponent_where_it_can_be_read() -> None:
    figures = (0.9494, 14.62, 118.4, 999.6, 1053.7, 1_234_567.0, 0.0, -2345.6)
    told = ["0.949", "14.6", "118", "1,000", "1,054", "1,234,567", "0", "-2,346"]
    assert [significant(each) for each in figures] == told
    assert [significant(each, 4) for each in (118.42, 12_345.6)] == ["118.4", "12,346"]
    assert significant(1.234e20) == "1.23e+20" and significant(1.2e-7) == "1.2e-07"
    assert cell_text(1053.7) == "1,054" and cell_text(1e20) == "1e+20"


@pytest.mark.parametrize("name", ["out", "a/name/longer/than/the/column/that/it/has"])
def test_a_narrow_table_keeps_its_last_column_whole(name: str) -> None:
    columns = (
        Column[str]("output", lambda row: row, may_shrink=True),
        Column[str]("figures", lambda row: "0" * 58),
        Column[str]("verdict", lambda row: Verdict.MISMATCH),
    )
    screen = io.StringIO()
    Console(width=80, file=screen).print(table(columns, [name]))
    lines = screen.getvalue().splitlines()
    assert len(lines) == 2
    assert lines[0].rstrip().endswith("verdict") and lines[1].endswith("mismatch")
    assert lines[1].startswith(name[:3])
