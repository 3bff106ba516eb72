"""`darwinn accuracy` with points of users: a binary, a host and a time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from darwinn_testbench.accuracy import AccuracyRow, check_accuracy, load
from darwinn_testbench.chip.cycles import measure
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.compiler.network import random_dense
from darwinn_testbench.compiler.package import compile_network, edgetpu_model
from darwinn_testbench.errors import InputError
from darwinn_testbench.report import Verdict

MINIMAL = """
[models.one]
binary = "one.tflite"
[models.two]
binary = "two"
[hosts.desk]
link = "mine.toml"
[[measurements]]
host = "usb3"
milliseconds = { one = 0.5 }
[[measurements]]
host = "desk"
milliseconds = { one = 0.6 }
[[measurements]]
host = "desk"
milliseconds = { two = 0.75 }
"""
SLOW = """
extends = "usb2"
[fixed_seconds]
value = 0.001
unit = "s"
source = "measured"
confidence = "medium"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two binaries, one with the name of a model, a host, and the file of points."""
    for name, sizes in (("one", (64, 64)), ("two_edgetpu", (128, 64))):
        network = random_dense(sizes, 1)
        (tmp_path / f"{name}.tflite").write_bytes(edgetpu_model(network, compile_network(network)))
    (tmp_path / "mine.toml").write_text(SLOW)
    (tmp_path / "points.toml").write_text(MINIMAL)
    return tmp_path


def predict(folder: Path, text: str = MINIMAL) -> dict[tuple[str, str], AccuracyRow]:
    path = folder / "points.toml"
    path.write_text(text)
    return {(row.model, row.host): row for row in check_accuracy([load(path)], folder).rows}


def test_a_binary_a_host_and_a_time_are_enough(folder: Path) -> None:
    rows = predict(folder)
    alone = rows["one", "usb3"]
    timed = [row for row in measure(folder / "one.tflite").rows if "CACHING" not in row.type]
    milliseconds = timed[0].milliseconds
    assert milliseconds is not None
    assert alone.predicted == pytest.approx(milliseconds)
    assert alone.error == pytest.approx(milliseconds / 0.5 - 1)
    assert alone.mac_error is not None and -1 < alone.mac_error < 0
    assert {row.verdict for row in rows.values()} == {Verdict.PASS}


def test_the_fixed_cost_comes_from_the_other_models_of_the_host(folder: Path) -> None:
    rows = predict(folder)
    one, two = rows["one", "desk"], rows["two", "desk"]
    assert one.simulated is not None and two.simulated is not None
    assert one.fixed == pytest.approx(0.75 - two.simulated)
    assert two.fixed == pytest.approx(0.6 - one.simulated)


def test_errors_are_judged_only_against_a_limit(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    points = ["accuracy", "--models", str(folder), "--points", str(folder / "points.toml")]
    text = MINIMAL.replace("one = 0.5 }", "one = 0.1 }")
    (folder / "points.toml").write_text(text)
    assert run_command_line(points) == 0
    assert "errors are not judged" in " ".join(capsys.readouterr().out.split())
    assert run_command_line([*points, "--at-most", "100", "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    rows = {row["name"]: row for row in report["rows"]}
    assert report["message"].endswith("1 of 3 points beyond 100 %")
    assert {name: row["verdict"] for name, row in rows.items()} == {
        "one, usb3": "mismatch",
        "one, desk": "pass",
        "two, desk": "pass",
    }
    assert rows["one, usb3"]["message"].endswith("%, at most 100 %")
    assert rows["one, usb3"]["fixed_from"] == "link"
    assert rows["one, desk"]["fixed_from"] == "other models"


def test_points_stand_beside_others_and_the_published_ones(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Hosts of the same name in two files are two hosts: neither fits the other's cost."""
    mine, other = folder / "points.toml", folder / "other.toml"
    other.write_text(MINIMAL.replace("two = 0.75", "two = 0.95"))
    arguments = ["accuracy", "--models", str(folder), "--json", "--points", str(mine)]
    both = [*arguments, "--points", str(other), "--points", "published"]
    assert run_command_line(both) == 2  # binaries of published points are not there
    report = json.loads(capsys.readouterr().out)
    fixed = [row["fixed"] for row in report["rows"] if row["name"] == "one, desk"]
    assert fixed[1] - fixed[0] == pytest.approx(0.2)
    assert any(row["source"].startswith("google-coral") for row in report["rows"])
    assert report["file"] == f"{mine}, {other}, published"


def test_a_time_shorter_than_simulated_gives_no_fixed_cost(folder: Path) -> None:
    rows = predict(folder, MINIMAL.replace("one = 0.6 }", "one = 0.0001 }"))
    two = rows["two", "desk"]
    assert two.predicted is None and two.verdict is Verdict.BAD_INPUT
    assert two.message.endswith("one measured faster than simulated: check host and clock")
    assert all(row.predicted is None or row.predicted > 0 for row in rows.values())


def test_what_cannot_be_used_is_left_out_and_the_rest_predicted(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DARWINN_CORPUS", raising=False)
    (folder / "two_edgetpu.tflite").write_bytes(b"no model")
    text = MINIMAL.replace('link = "mine.toml"', 'link = "gone.toml"')
    text += '[models.gone]\nbinary = "gone.tflite"\n[[measurements]]\nhost = "usb3"\n'
    text += "milliseconds = { gone = 1, two = 2 }\n"
    (folder / "points.toml").write_text(text)
    assert run_command_line(["accuracy", "--points", str(folder / "points.toml"), "--json"]) == 2
    report = json.loads(capsys.readouterr().out)
    rows = {row["name"]: row for row in report["rows"]}
    assert rows["one, usb3"]["predicted"] is not None
    left = {name: row["message"] for name, row in rows.items() if row["predicted"] is None}
    assert left.keys() == {"one, desk", "two, desk", "gone, usb3", "two, usb3"}
    assert left["gone, usb3"] == f"{folder / 'gone.tflite'}: no such binary"
    assert left["one, desk"] == f"{folder / 'gone.toml'}: No such file or directory"
    first, told = report["message"].split("; ", 1)
    assert first == f"gone, usb3: {left['gone, usb3']}"
    assert told.startswith("4 points could not be predicted; worst ")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("0.75", "-0.75", "measurement 3: two: -0.75 ms is no time"),
        ("0.75", "0", "measurement 3: two: 0.0 ms is no time"),
        ("0.75", "nan", "measurement 3: two: nan ms is no time"),
        (
            'host = "usb3"',
            'host = "usb5"',
            "there is no host 'usb5', only: desk, harness, pcie, pcie-pc, usb2, usb3",
        ),
        ("{ two", "{ three", "there is no model 'three', only: one, two"),
        ('binary = "two"', 'binari = "two"', "model 'two': .* unknown field `binari`"),
        ('binary = "two"', 'binary = "two"\nmacs = 0', "model 'two': .* >= 1 - at `.\\.macs`"),
        ("[hosts.desk]", "[hosts.desk]\nbytes_per_second_in = 0", "host 'desk': .* >= 1000"),
        ("[[measurements]]", "[[left_out]]", "left_out 1: .*"),
        ("{ two", "{ two.v1", "measurement 3: .* quote a name with a dot: .*v2_1.0"),
        ("[models.one]", "[models.one", "not a file of points"),
        (MINIMAL, "", r"there are no \[\[measurements\]\]"),
    ],
)
def test_what_is_wrong_in_a_file_is_said_with_its_place(
    folder: Path, old: str, new: str, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        predict(folder, MINIMAL.replace(old, new))


def test_the_page_of_published_points_is_not_written_from_others(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page, points = folder / "page.md", str(folder / "points.toml")
    assert run_command_line(["accuracy", "--points", points, "--document", str(page)]) == 2
    assert "not with --points" in capsys.readouterr().err
    arguments = ["accuracy", "--models", str(folder), "--document", str(page)]
    assert run_command_line(arguments) == 2
    assert "is not written: it needs every point" in capsys.readouterr().out
    assert not page.exists()
