"""`darwinn survey`: one row for each program of the chip, whatever else and whatever damage."""

from __future__ import annotations

import json
import shutil
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from darwinn_formats.darwinn import load
from darwinn_formats.darwinn.loader import CUSTOM_OPERATOR
from darwinn_sim.isa.codec import decode
from darwinn_sim.isa.grading import Assumption
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.report import Verdict
from darwinn_testbench.survey import plan as plans
from darwinn_testbench.survey.content import CompiledFile
from darwinn_testbench.survey.field_values import FieldValues, field_values, of_files, of_one_file
from darwinn_testbench.survey.page import page_of
from darwinn_testbench.survey.run import survey
from darwinn_testbench.survey.task import Options, PipelineTask, SurveyRow
from sample_files import sample
from whole_models import segments, whole_model


@pytest.fixture(scope="module")
def zoo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with its reference in a sister folder, one without, duplicates, damage and others."""
    everything = tmp_path_factory.mktemp("samples")
    sample(everything)
    zoo = tmp_path_factory.mktemp("zoo")
    for folder, names in (
        ("darwinn", ("dense_edgetpu.tflite", "dense_stand_alone_edgetpu.tflite")),
        ("tflite", ("dense.tflite", "convolution.tflite")),
        ("more", ("dense_chips.package", "dense.pte")),
    ):
        (zoo / folder).mkdir()
        for name in names:
            shutil.copy(everything / name, zoo / folder)
    shutil.copy(everything / "dense_edgetpu.tflite", zoo / "a_copy.bin")
    whole = (everything / "dense_edgetpu.tflite").read_bytes()
    (zoo / "broken_edgetpu.tflite").write_bytes(whole[:2000])
    (zoo / "README.md").write_text("A zoo.\n")
    return zoo


def surveyed(
    zoo: Path, out: Path, capfd: pytest.CaptureFixture[str], *more: str
) -> tuple[int, dict[str, Any]]:
    command = ["survey", str(zoo), "--journal", str(out), "--jobs", "1", "--json", *more]
    code = run_command_line(command)
    return code, json.loads(capfd.readouterr().out)


def test_each_model_is_a_row_and_every_other_file_is_named(
    zoo: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    html, junit = tmp_path / "zoo.html", tmp_path / "zoo.xml"
    out = tmp_path / "out"
    written = ["--html", str(html), "--junit", str(junit)]
    code, first = surveyed(zoo, out, capfd, *written)
    rows = {row["name"]: row for row in first["rows"]}
    assert {name: row["verdict"] for name, row in rows.items()} == {
        "broken_edgetpu.tflite": "bad-input",
        "dense": "proved",
        "dense_stand_alone": "ran",
        "dense_chips model 0": "ran",
        "dense_chips model 1": "ran",
    }
    assert (code, first["verdict"]) == (2, "bad-input")
    dense = rows["dense"]
    assert dense["file"] == str(zoo / "darwinn" / "dense_edgetpu.tflite")
    assert dense["reference"] == str(zoo / "tflite" / "dense.tflite")
    assert dense["executables"] == ["PARAMETER_CACHING", "EXECUTION_ONLY"]
    assert (dense["runtime"], dense["kind"], dense["inferences"]) == (14, "tflite", 5)
    assert dense["cycles"] > 0
    assert 0 < dense["excited"] <= 1
    assert dense["operators"] == {"exact": 2, "policy": 0, "missing": 0}
    assert dense["seconds"] > 0
    assert f"--reference {zoo}/tflite/dense.tflite" in dense["command"]
    assert rows["dense_chips model 1"]["model"] == 1
    assert "leads out of" in rows["broken_edgetpu.tflite"]["message"]
    reasons = {Path(each["file"]).name: each["reason"] for each in first["left_out"]}
    assert reasons == {
        "README.md": "text",
        "a_copy.bin": f"same content as {zoo / 'darwinn' / 'dense_edgetpu.tflite'}",
        "dense.pte": "ExecuTorch program",
        "dense.tflite": "model before compilation, the reference of a row",
        "convolution.tflite": "model before compilation",
    }
    assert first["verdicts"] == {"proved": 1, "ran": 3, "bad-input": 1}
    assert (
        first["message"]
        == "5 rows of 4 files: 1 proved, 3 ran, 1 bad-input; 5 other files left out"
    )

    text = html.read_text()
    assert 'class="chart"' in text
    assert all(row["name"] in text and row["message"] in text for row in first["rows"])
    assert all(each["file"] in text for each in first["left_out"])
    assert junit.read_text().count("<testcase") == 5

    lines = (out / "journal.jsonl").read_bytes()
    _, second = surveyed(zoo, out, capfd)
    assert second["taken_from_journal"] == 4
    assert second["rows"] == first["rows"]
    assert second["fields"] == first["fields"]
    assert (out / "journal.jsonl").read_bytes() == lines


@pytest.mark.usefixtures("tasks_performed_here")
def test_the_text_fits_and_says_what_to_do_next(
    zoo: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(zoo)
    command = ["survey", "darwinn", "README.md", "--journal", str(tmp_path), "--no-reference"]
    assert run_command_line([*command, "--jobs", "1"]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[-2] == ("ran  darwinn, README.md: 2 rows of 2 files: 2 ran; 1 other file left out")
    assert lines[-1] == "next: --html FILE shows it all as one page"
    assert "left out, text: README.md" in lines


def test_what_is_required_is_missed_and_a_time_limit_is_a_fault(zoo: Path, tmp_path: Path) -> None:
    file = zoo / "darwinn" / "dense_stand_alone_edgetpu.tflite"
    (row,) = survey([file], tmp_path, Options(require_reference=True), jobs=1).rows
    assert row.verdict is Verdict.NOT_COMPARED
    (row,) = survey([file], tmp_path, Options(timeout=0.01), jobs=1).rows
    assert (row.verdict, row.message) == (Verdict.FAULT, "not finished within 0.01 s")


def test_a_row_that_was_not_finished_in_time_is_made_again(
    zoo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def late(tasks: Sequence[Any], jobs: int | None = None) -> Iterator[SurveyRow]:
        return (each.failed("not finished within 600 s") for each in tasks)

    monkeypatch.setattr("darwinn_testbench.survey.run.perform_here", late)
    model = zoo / "darwinn" / "dense_edgetpu.tflite"
    for _ in range(2):
        report = survey([model], tmp_path)
        assert (report.verdict, report.figures["taken_from_journal"]) == (Verdict.FAULT, 0)


def test_without_a_program_it_is_bad_input(
    zoo: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    code, found = surveyed(zoo / "tflite", tmp_path, capfd)
    assert (code, found["rows"]) == (2, [])
    assert found["message"] == "no file holds a program of the chip (2 files left out)"


def test_standard_input_is_refused(capfd: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["survey", "-"]) == 2
    assert "standard input holds one file" in capfd.readouterr().err


def test_what_cannot_be_read_is_a_row(
    zoo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(path: Path) -> CompiledFile | str:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(plans, "look_at", denied)
    report = survey([zoo / "README.md", zoo / "none"], tmp_path)
    assert [(row.verdict, row.message) for row in report.rows] == [
        (Verdict.BAD_INPUT, f"{zoo / 'README.md'}: Permission denied"),
        (Verdict.BAD_INPUT, f"{zoo / 'none'}: No such file or directory"),
    ]


@pytest.mark.usefixtures("tasks_performed_here")
def test_the_name_with_a_reference_is_kept_of_equal_files(zoo: Path, tmp_path: Path) -> None:
    """Also where another name comes first."""
    shutil.copy(zoo / "darwinn" / "dense_edgetpu.tflite", tmp_path / "a.tflite")
    shutil.copy(zoo / "darwinn" / "dense_edgetpu.tflite", tmp_path / "z_edgetpu.tflite")
    shutil.copy(zoo / "tflite" / "dense.tflite", tmp_path / "z.tflite")
    (tmp_path / "link").symlink_to(tmp_path / "a.tflite")
    report = survey([tmp_path], tmp_path / "out", jobs=1)
    assert [(row.name, row.verdict) for row in report.rows] == [("z", Verdict.PROVED)]
    left_out = {Path(each.file).name: each.reason for each in report.figures["left_out"]}
    assert left_out["a.tflite"] == left_out["link"]
    assert left_out["link"] == f"same content as {tmp_path / 'z_edgetpu.tflite'}"


def test_names_are_as_long_as_they_have_to_be() -> None:
    paths = [
        "a/net_edgetpu.tflite",
        "a/net.package",
        "b/two_edgetpu.tflite",
        "c/two_edgetpu.tflite",
    ]
    paths += ["x/d/three.coral", "y/d/three.coral"]
    names = plans.names_of([Path(path) for path in paths])
    assert list(names.values()) == [
        "net_edgetpu.tflite",
        "net.package",
        "b/two",
        "c/two",
        "x/d/three.coral",
        "y/d/three.coral",
    ]


def test_a_pipeline_says_which_segment_is_wrong(zoo: Path) -> None:
    """Two models that are none of one pipeline: a verdict, not an exception."""
    files = [zoo / "darwinn" / f"{name}_edgetpu.tflite" for name in ("dense", "dense_stand_alone")]
    row = SurveyRow(
        name="both", verdict=Verdict.PASS, key="", file=str(files[0]), companions=(str(files[1]),)
    )
    found = PipelineTask(row, Options(timeout=60.0)).perform()
    assert found.verdict is Verdict.BAD_INPUT
    assert found.command == f"darwinn run {files[0]} --seed 0 --then {files[1]}"


@pytest.mark.usefixtures("tasks_performed_here")
def test_the_part_of_the_cpu_can_be_left_out(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    zoo = tmp_path / "zoo"
    zoo.mkdir()
    unknown = whole_model(segments(), names=(CUSTOM_OPERATOR, "Unheard"))
    (zoo / "model_edgetpu.tflite").write_bytes(unknown)
    code, found = surveyed(zoo, tmp_path / "out", capfd)
    assert (code, found["rows"][0]["verdict"]) == (3, "refused")
    assert "Unheard" in found["rows"][0]["message"]
    code, found = surveyed(zoo, tmp_path / "out", capfd, "--chip-only")
    assert (code, found["rows"][0]["verdict"]) == (0, "ran")
    assert "--chip-only" in found["rows"][0]["command"]


def test_values_are_those_of_every_instruction(zoo: Path) -> None:
    """Counted one by one, in two files that have most of them in common."""
    held: dict[tuple[str, str], set[int]] = defaultdict(set)
    count: dict[tuple[str, str], int] = defaultdict(int)
    files: dict[tuple[str, str], set[Path]] = defaultdict(set)
    merged = []
    for name in ("darwinn/dense_edgetpu.tflite", "more/dense_chips.package"):
        parts = []
        for executable in load(zoo / name).executables:
            chunks = [bytes(part.bitstream) for part in executable.instruction_bitstreams]
            parts.append(field_values(chunks))
            for program in map(decode, chunks):
                for place in range(len(program)):
                    operation = program[place]
                    for field, value in operation.values.items():
                        key = (operation.instruction.name, field)
                        held[key] |= {value} if isinstance(value, int) else {*value}
                        count[key] += 1
                        files[key].add(zoo / name)
        merged.append(of_one_file(parts))
    found = {(each.instruction, each.field): each for each in of_files(merged)}
    assert found.keys() == held.keys()
    for key, each in found.items():
        assert (each.lowest, each.highest) == (min(held[key]), max(held[key]))
        assert each.values in ((), tuple(sorted(held[key])))
        assert bool(each.values) == (len(held[key]) <= 24)
        assert (each.instructions, each.files) == (count[key], len(files[key]))


@pytest.mark.usefixtures("tasks_performed_here")
def test_a_page_shows_what_depends_on_values_that_are_not_known(zoo: Path, tmp_path: Path) -> None:
    report = survey([zoo / "darwinn"], tmp_path, jobs=1)
    strange = FieldValues(
        instruction="TensorMac",
        field="hiccup",
        grade="assumed",
        values=(3,),
        lowest=3,
        highest=3,
        instructions=2,
    )
    assumption = Assumption("TensorMac", "hiccup", 3, "a rule of this test", 2, 0, 1, False)
    changed = tuple(
        replace(
            row, values=(strange,), assumptions=(assumption,), operators={"exact": 3, "policy": 1}
        )
        for row in report.rows
    )
    page = page_of(
        replace(report, rows=changed, figures={**report.figures, "fields": (strange,)})
    ).decode()
    assert "TensorMac.hiccup" in page
    assert '<td class="right" data-by="75">75</td>' in page
    assert "a rule of this test" in page
    assert "Rows that hold values which are not known" in page
