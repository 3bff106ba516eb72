"""`darwinn cycles` and `darwinn accuracy`: figures, descriptions and their errors."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import averaging_program as sample
import pytest
from darwinn_formats.errors import FormatError
from darwinn_sim import timing
from darwinn_testbench.accuracy import AccuracyRow, load
from darwinn_testbench.accuracy.document import page, verdict_text
from darwinn_testbench.chip import cycles
from darwinn_testbench.chip.cycles import CyclesRow, measure, time_executable
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.compiler.network import random_dense
from darwinn_testbench.compiler.package import compile_network, edgetpu_model
from darwinn_testbench.errors import InputError
from darwinn_testbench.report import Report, Verdict, to_markdown
from sample_runs import change, flip_parameter
from whole_models import segments, whole_model


@pytest.fixture(scope="module")
def model() -> bytes:
    network = random_dense((64, 64), 1)
    return edgetpu_model(network, compile_network(network))


def test_a_run_is_timed_with_its_conditions(model: bytes) -> None:
    report = measure(model, host="usb2", chip="beagle-std")
    assert report.verdict is Verdict.PASS
    assert "cycle-approximate, beagle-std at 250 MHz, host link usb2" in report.message
    for row in report.rows:
        assert row.cycles is not None and row.lower_bound is not None
        assert row.milliseconds is not None and row.device_milliseconds is not None
        assert row.fixed_share is not None
        assert 0 < row.lower_bound <= row.cycles
        assert row.device_milliseconds == pytest.approx(row.cycles / 250e3)
        fixed = row.milliseconds - row.device_milliseconds
        copying = 1e3 * row.timing.copy_seconds if row.timing else 0.0
        assert fixed - copying == pytest.approx(row.fixed_share * row.milliseconds)
        assert fixed - copying == pytest.approx(report.figures["fixed_milliseconds"])
        assert row.least_milliseconds is not None and row.most_milliseconds is not None
        assert row.least_milliseconds < row.milliseconds < row.most_milliseconds
        assert row.host_milliseconds is not None and row.host_share is not None
        assert fixed < row.host_milliseconds <= row.milliseconds
        assert row.milliseconds_text == (
            f"{row.milliseconds:.3g} ({row.least_milliseconds:.3g} to {row.most_milliseconds:.3g})"
        )
        assert sum(row.waiting.values()) == pytest.approx(1)


def test_a_program_that_comes_again_is_timed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its parameters may differ, and with them everything but its time."""
    network = random_dense((64, 64), 1)
    package = compile_network(network)
    other = change(package, 1, flip_parameter(300))
    longer = compile_network(random_dense((64, 128), 1))
    timed: list[str] = []
    time = cycles.time_executable

    def counted(*arguments: Any) -> CyclesRow:
        row = time(*arguments)
        timed.append(row.type)
        return row

    monkeypatch.setattr(cycles, "time_executable", counted)
    files = [edgetpu_model(network, each) for each in (package, other, longer)]
    rows = cycles.measure_files(files).rows
    assert timed == ["EXECUTION_ONLY", "PARAMETER_CACHING"] * 2
    alone = [row for file in files for row in measure(file).rows]
    assert [(row.cycles, row.milliseconds) for row in rows] == [
        (row.cycles, row.milliseconds) for row in alone
    ]
    assert rows[0].first_milliseconds == rows[2].first_milliseconds
    assert rows[0].cycles != rows[4].cycles


def test_the_first_inference_loads_the_parameters(model: bytes) -> None:
    """In one request, so the host's fixed cost counts once."""
    report = measure(model)
    inference, loading = report.rows
    assert loading.type == "PARAMETER_CACHING" and loading.first_milliseconds is None
    assert inference.first_milliseconds is not None
    both = (inference.milliseconds or 0) + (loading.milliseconds or 0)
    assert inference.first_milliseconds == pytest.approx(
        both - report.figures["fixed_milliseconds"]
    )
    (alone,) = measure(model, executable=0).rows
    assert alone.first_milliseconds is None


def test_the_first_inference_is_told(
    model: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(model)
    inference = measure(model).rows[0]
    assert run_command_line(["cycles", str(path)]) == 0
    told = f"executable 0: {inference.first_milliseconds:.3g} ms for the first inference"
    assert told in " ".join(capsys.readouterr().out.split())
    # A clock without a length in seconds has no milliseconds.
    assert run_command_line(["cycles", str(path), "--chip", "harness"]) == 0
    assert "first inference" not in capsys.readouterr().out


def test_a_link_of_endless_speed_costs_nothing(model: bytes) -> None:
    (row, *_) = measure(model, host="none").rows
    assert row.fixed_share == 0
    assert row.milliseconds == row.device_milliseconds
    assert (row.cycles or 0) < (measure(model, host="usb2").rows[0].cycles or 0)


@pytest.mark.parametrize(("chip", "host"), [("beagle-max", "harness"), ("harness", "usb3")])
def test_the_link_of_the_harness_belongs_to_the_harness(model: bytes, chip: str, host: str) -> None:
    with pytest.raises(InputError, match=f"chip {chip} and host link {host}"):
        measure(model, chip=chip, host=host)


def test_the_clock_of_the_harness_is_nominal(
    model: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(model)
    assert run_command_line(["cycles", str(path), "--chip", "harness"]) == 0
    out = capsys.readouterr().out
    assert "harness at nominal 1 MHz" in " ".join(out.split())
    assert out.splitlines()[1].split()[4] == "-"


def test_descriptions_extend_others(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        'extends = "beagle-max"\n[clock]\nvalue = 1e8\nunit = "Hz"\nsource = "x"\n'
        'confidence = "low"\n'
    )
    mine, known = timing.chip_description(str(path)), timing.chip_description("beagle-max")
    assert mine.clock.value == 1e8
    assert mine.name == "mine"
    assert replace(mine, name=known.name, clock=known.clock) == known


CLOCK = (
    'extends = "beagle-max"\n[clock]\nvalue = {value}\nunit = "{unit}"\nsource = "{source}"\n'
    'confidence = "{known}"\n'
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('extends = "beagle-max"\nclock = 5', "has exactly"),
        ("[speed]\nvalue = 1", "no such parameter"),
        ("", "is missing"),
        ('extends = "beagle-max"\nextends = 1', "not TOML"),
        ("clock = " + "[" * 100_000, "not TOML"),
        ('extends = "beagle-max"\nhost = 5', "not the name of a host link"),
        ('extends = "nothing"', "neither a TOML file nor one of"),
        (CLOCK.format(value="true", unit="Hz", source="x", known="low"), "not a number"),
        (CLOCK.format(value=1, unit="Hz", source="x", known="low"), "not within"),
        (
            CLOCK.format(value=1.5, unit="rows", source="x", known="low").replace(
                "clock", "ring_fifo_rows"
            ),
            "1.5 is not a whole number",
        ),
        (CLOCK.format(value="nan", unit="Hz", source="x", known="low"), "not"),
        (CLOCK.format(value=1e6, unit="MHz", source="x", known="low"), "the unit is Hz"),
        (CLOCK.format(value=1e6, unit="Hz", source="", known="low"), "source is missing"),
        (CLOCK.format(value=1e6, unit="Hz", source="x", known="sure"), "confidence is one of"),
    ],
)
def test_a_wrong_description_is_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(FormatError, match=message) as caught:
        timing.chip_description(str(path))
    assert caught.value.file == str(path)


def test_points_of_users_are_checked(tmp_path: Path) -> None:
    path = tmp_path / "points.toml"
    path.write_text('[[measurements]]\nsource = "me"\nhost = "desk"\nmilliseconds = {}\n')
    with pytest.raises(InputError, match="there is no host 'desk'"):
        load(path)
    path.write_text("hosts = " + "[" * 100_000)
    with pytest.raises(InputError, match="not a file of points"):
        load(path)
    path.write_text("[hosts]\ndesk = 5\n")
    with pytest.raises(InputError, match="not a file of points"):
        load(path)


def test_the_page_says_which_goal_is_missed_and_why() -> None:
    def row(model: str, error: float, published: float) -> AccuracyRow:
        return AccuracyRow(
            name=model,
            verdict=Verdict.PASS,
            model=model,
            host="desk",
            source="me",
            published=f"{published}",
            predicted=published * (1 + error),
            error=error,
            simulated=1.0,
            fixed=0.5,
            mac_error=-0.9,
            roofline_error=0.3,
        )

    figures: dict[str, Any] = {
        "chip": "beagle-max",
        "worst_error": 0.08,
        "mean_error": 0.05,
        "mean_mac_error": 0.9,
        "mean_roofline_error": 0.3,
    }
    rows = (row("one", 0.08, 2.0), row("two", -0.02, 2.3))
    report = Report(command="accuracy", file="", rows=rows, figures=figures)
    assert "goal 5%: missed" in verdict_text(figures)
    text = page(report)
    assert "| one | desk | me | 2.0 |" in text
    assert "on desk: there the published times of the two models differ\nby 0.30 ms" in text
    assert json.loads(report.to_json())["rows"][0]["error"] == 0.08


def test_markdown_has_the_figures_of_each_executable(model: bytes) -> None:
    report = measure(model)
    refused = CyclesRow(name="other", type="EXECUTION_ONLY", verdict=Verdict.REFUSED)
    lines = to_markdown([replace(report, rows=(*report.rows, refused))]).decode().splitlines()
    assert "| case | type | cycles | ms |" in lines
    for row in report.rows:
        assert f"| {row.name} | {row.type} | {row.cycles:,} | {row.milliseconds_text} |" in lines
    assert "| other | EXECUTION_ONLY | - | - |" in lines


def test_what_cannot_be_timed_has_no_time_and_is_not_advised(
    model: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "none").mkdir()
    for name, content in (("a", b"no model"), ("none/b", b"no model"), ("b", model)):
        (tmp_path / f"{name}.tflite").write_bytes(content)
    files = [str(tmp_path / f"{name}.tflite") for name in ("a", "none/b", "b")]
    assert run_command_line(["cycles", *files]) == 2
    out = capsys.readouterr().out
    assert out.splitlines()[1].split() == ["a.tflite", "-", "-", "-", "bad-input"]
    assert f"next: darwinn profile {files[2]} shows" in out
    assert run_command_line(["cycles", *files, "--json"]) == 2
    row, *_, timed = json.loads(capsys.readouterr().out)["rows"]
    assert [row[key] for key in ("cycles", "milliseconds", "utilisation")] == [None] * 3
    assert timed["cycles"] > 0


def test_nothing_is_advised_of_standard_input(
    model: bytes, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(model)))
    assert run_command_line(["cycles", "-"]) == 0
    assert "next:" not in capsys.readouterr().out


def test_of_several_files_the_time_on_the_cpu_says_whose_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [tmp_path / f"{name}.tflite" for name in "ab"]
    for file in files:
        file.write_bytes(whole_model(segments()))
    assert run_command_line(["cycles", *map(str, files)]) == 0
    out = capsys.readouterr().out
    for file in files:
        assert f"{file.name}: on the CPU: " in out


def test_what_fails_names_its_assumptions_too() -> None:
    operations = [each for each in sample.changed("TensorSum", trace=1) if each[0] != "RingInfeed"]
    chip = timing.chip_description("beagle-max")
    row = time_executable(sample.executable(operations), "averages", chip, None)
    assert row.verdict is Verdict.FAULT
    assert "deadlock" in row.message
    assert ("TensorSum", "trace") in [(each.instruction, each.field) for each in row.assumed]
