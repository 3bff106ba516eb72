"""Results for servers: SARIF, Markdown and GitHub's workflow commands say what did not pass."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.report import Report, Row, Verdict, to_junit, to_markdown, to_sarif
from darwinn_testbench.report.github import SUMMARY_VARIABLE, append_summary, workflow_commands

GREEN: Report[Row] = Report(
    command="verify", file="good.tflite", rows=(Row(name="out", verdict=Verdict.PASS),)
)
RED: Report[Row] = Report(
    command="cycles",
    file="folder/bad, very: bad.tflite",
    rows=(
        Row(name="a|b", verdict=Verdict.REGRESSION, message="12 %\nworse"),
        Row(name="c", verdict=Verdict.PASS),
        Row(name="d", verdict=Verdict.REFUSED, message="no such unit"),
    ),
)
FAULT: Report[Row] = Report(
    command="verify", file="f", decided=Verdict.FAULT, message="deadlock of tile 3"
)


def test_sarif_has_a_result_for_each_row_that_did_not_pass() -> None:
    document = json.loads(to_sarif([GREEN, RED, FAULT]))
    assert document["version"] == "2.1.0"
    (run,) = document["runs"]
    rules = {rule["id"] for rule in run["tool"]["driver"]["rules"]}
    found = [
        (
            result["ruleId"],
            result["level"],
            result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"],
        )
        for result in run["results"]
    ]
    assert found == [
        ("regression", "error", RED.file),
        ("refused", "note", RED.file),
        ("fault", "error", "f"),
    ]
    assert {rule for rule, _, _ in found} <= rules
    assert run["results"][2]["message"]["text"] == "verify: deadlock of tile 3"


def test_sarif_of_passes_is_an_empty_list_of_results() -> None:
    assert json.loads(to_sarif([GREEN]))["runs"][0]["results"] == []


def test_markdown_counts_files_and_lists_failures_in_cells_that_hold() -> None:
    lines = to_markdown([GREEN, RED]).decode().splitlines()
    assert lines[0] == "### darwinn: ❌ regression"
    assert "| good.tflite | ✅ pass | 1 |  |" in lines
    assert r"| folder/bad, very: bad.tflite | a\|b | ❌ regression | 12 % worse |" in lines
    assert not any("| c |" in line for line in lines)


def test_markdown_marks_each_verdict_by_what_it_means() -> None:
    for verdict in Verdict:
        row = Row(name="r", verdict=verdict)
        first = to_markdown([Report(command="verify", file="f", rows=(row,))]).decode()
        mark = first.split()[2]
        assert (mark == "✅") == verdict.passed, verdict
        assert (mark == "❌") == (verdict.failed and verdict is not Verdict.REFUSED), verdict


def test_markdown_ends_after_many_rows() -> None:
    rows = tuple(Row(name=f"row{k}", verdict=Verdict.MISMATCH) for k in range(70))
    text = to_markdown([Report(command="verify", file="f", rows=rows)]).decode()
    assert text.count("❌ mismatch |") == 1 + 50
    assert text.endswith("and 20 more\n")


def test_github_escapes_what_would_end_the_command() -> None:
    assert workflow_commands([GREEN, RED]) == [
        "::error file=folder/bad%2C very%3A bad.tflite,title=darwinn regression::"
        r"a|b: 12 %25\nworse",
        "::notice file=folder/bad%2C very%3A bad.tflite,title=darwinn refused::d: no such unit",
    ]


def test_the_summary_is_appended_only_where_a_step_wants_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv(SUMMARY_VARIABLE, raising=False)
    assert not append_summary([RED])
    target = tmp_path / "summary.md"
    target.write_text("before\n")
    monkeypatch.setenv(SUMMARY_VARIABLE, str(target))
    assert append_summary([RED])
    assert target.read_text().startswith("before\n### darwinn: ❌ regression")


def test_a_regression_fails_in_junit() -> None:
    assert b"<failure" in to_junit([RED])


def test_bad_input_is_in_every_form(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:

    code = run_command_line(
        [
            "verify",
            str(tmp_path / "missing.tflite"),
            f"--sarif={tmp_path / 'r.sarif'}",
            "--markdown",
            str(tmp_path / "r.md"),
            "--github",
        ]
    )
    assert code == 2
    assert json.loads((tmp_path / "r.sarif").read_text())["runs"][0]["results"]
    assert "bad-input" in (tmp_path / "r.md").read_text()
    assert capfd.readouterr().out.startswith("::error file=")
