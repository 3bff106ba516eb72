"""A drawn data set through a classifier of colours, on the chip and in LiteRT.

What it is right about says nothing of any real model: the classes are the colours that there is
most of, and the network adds them up.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from darwinn_testbench.chip.session import Session
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.compiler import compile_network, edgetpu_model, random_convolution
from darwinn_testbench.compiler.network import Quantisation
from darwinn_testbench.errors import InputError
from darwinn_testbench.evaluation import task
from darwinn_testbench.evaluation.dataset import Sample, read_dataset
from darwinn_testbench.evaluation.page import page_of
from darwinn_testbench.evaluation.run import Confusion, evaluate
from darwinn_testbench.evaluation.task import Setting
from darwinn_testbench.report import Verdict
from darwinn_testbench.vision.labels import name_of_class
from picture_models import COLOURS, colour_folders, colour_models, colour_network
from PIL import Image

COUNT = 4
"""Pictures of each colour."""
LABELS = dict(enumerate(COLOURS))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A data set with one picture in a wrong folder and a damaged one; models, of which ``swapped``
    takes red for green."""
    data = tmp_path / "data"
    colour_folders(data, COUNT)
    (data / "red" / "0.png").rename(data / "blue" / "misplaced.png")
    (data / "green" / "damaged.png").write_bytes(b"no picture")
    network = colour_network()
    (layer,) = network.layers
    other = replace(network, layers=(replace(layer, weights=layer.weights[[1, 0, 2]]),))
    for name, model in (("model", network), ("swapped", other)):
        compiled, before = colour_models(model)
        (tmp_path / f"{name}_edgetpu.tflite").write_bytes(compiled)
        (tmp_path / f"{name}.tflite").write_bytes(before)
    return tmp_path


def setting(folder: Path, reference: str | None = "model") -> Setting:
    before = None if reference is None else str(folder / f"{reference}.tflite")
    return Setting(str(folder / "model_edgetpu.tflite"), before)


def test_both_are_counted_and_one_bad_picture_costs_its_row(folder: Path) -> None:
    report = evaluate(folder / "data", setting(folder), folder / "out", labels=LABELS, jobs=1)
    chip, litert = report.figures["chip_accuracy"], report.figures["reference_accuracy"]
    assert (chip.pictures, chip.top1, chip.top5) == (3 * COUNT, 3 * COUNT - 1, 3 * COUNT)
    assert litert == chip
    assert report.figures["agreement"] == 3 * COUNT
    assert report.figures["confusion"] == ()
    assert report.verdict is Verdict.BAD_INPUT
    (bad,) = [row for row in report.rows if row.message]
    assert bad.name.endswith("damaged.png")
    assert bad.message.startswith("not a readable image")
    for row in report.rows:
        if not row.message:
            with Image.open(row.name) as image:
                sums = np.asarray(image).reshape(-1, 3).sum(axis=0)
            assert row.chip[0] == int(np.argmax(sums))


def test_a_picture_is_read_and_prepared_once_for_both(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Inputs that differ by their quantisation are given pixels of their own."""
    calls: list[str] = []
    for name in ("open_image", "prepare"):
        original = getattr(task, name)

        def counted(*given: Any, name: str = name, original: Any = original) -> Any:
            calls.append(name)
            return original(*given)

        monkeypatch.setattr(task, name, counted)
    picture = sorted((folder / "data" / "blue").iterdir())[0]
    sample = Sample(str(picture), 2)
    (row,) = task.Task("key", (sample,), setting(folder), 60.0).perform().rows
    assert row.verdict is Verdict.PASS
    assert sorted(calls) == ["open_image", "prepare"]
    finer = replace(colour_network(), input=Quantisation(np.float32(1 / 128), -128))
    (folder / "finer.tflite").write_bytes(colour_models(finer)[1])
    calls.clear()
    (row,) = task.Task("key", (sample,), setting(folder, "finer"), 60.0).perform().rows
    assert sorted(calls) == ["open_image", "prepare", "prepare"]


def test_seconds_are_those_of_the_inference_on_the_chip(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without what comes before it, once or for several pictures together."""
    infer = Session.infer
    monkeypatch.setattr(
        Session, "infer", lambda *given, **more: replace(infer(*given, **more), seconds=1234.5)
    )
    sample = Sample(str(sorted((folder / "data" / "blue").iterdir())[0]), 2)
    (row,) = task.Task("key", (sample,), setting(folder, None), 60.0).perform().rows
    assert (row.verdict, row.seconds) == (Verdict.PASS, 1234.5)


@pytest.mark.usefixtures("tasks_performed_here")
def test_what_both_confuse_and_where_they_differ_most(folder: Path) -> None:
    report = evaluate(
        folder / "data", setting(folder, "swapped"), folder / "out", labels=LABELS, jobs=1
    )
    assert set(report.figures["confusion"]) == {Confusion(0, 1, COUNT), Confusion(1, 0, COUNT)}
    assert report.figures["agreement"] == COUNT
    differences = [row.difference or 0 for row in report.rows]
    (first, *_) = report.figures["worst"]
    assert max(report.rows, key=lambda row: row.difference or 0).name == first
    assert max(differences) > 0.3
    page = page_of(report, LABELS).decode()
    assert page.count("data:image/jpeg;base64,") == len(report.figures["worst"])
    assert "green" in page
    titles = re.findall(r"<h2>([^<]*)</h2><p>([^<]*)</p>", page.replace("\n", ""))
    named = {row.name: row for row in report.rows}
    pictures = [(title, says) for title, says in titles if says.startswith("Is ")]
    assert [title for title, _ in pictures] == [
        Path(name).relative_to(folder / "data").as_posix() for name in report.figures["worst"]
    ]
    assert "/" in first.removeprefix(str(folder / "data") + "/"), "a folder for each class"
    for (_, says), name in zip(pictures, report.figures["worst"], strict=True):
        assert says.startswith(f"Is {name_of_class(LABELS, named[name].truth)}: chip ")


@pytest.mark.usefixtures("tasks_performed_here")
def test_wrong_answers_are_named_without_a_reference(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, data, page = folder / "model_edgetpu.tflite", folder / "data", folder / "page.html"
    (data / "green" / "damaged.png").unlink()
    (folder / "labels.txt").write_text("\n".join(COLOURS))
    words = ["evaluate", str(model), str(data), "--journal", str(folder / "out"), "--jobs", "1"]
    words += ["--labels", str(folder / "labels.txt"), "--html", str(page)]
    assert run_command_line(words) == 0
    (line,) = [each for each in capsys.readouterr().out.splitlines() if "misplaced.png" in each]
    assert line.split()[1:3] == ["blue", "red"]
    text = page.read_text()
    assert "1 picture that the chip takes for another class." in text
    plain = text.replace("\n", "")
    assert re.search(r"<h2>blue/misplaced.png</h2><p>Is blue: chip red \d\.\d+</p>", plain)
    assert text.count("data:image/jpeg;base64,") == 1


@pytest.mark.usefixtures("tasks_performed_here")
def test_it_goes_on_where_it_was_killed(folder: Path) -> None:
    data, out = folder / "data", folder / "out"
    first = evaluate(data, setting(folder), out, labels=LABELS, jobs=1)
    assert (first.figures["tasks"], first.figures["taken_from_journal"]) == (2, 0)
    journal = out / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(lines[0] + lines[1][:100])
    again = evaluate(data, setting(folder), out, labels=LABELS, jobs=1)
    assert again.figures["taken_from_journal"] == 1
    assert [replace(row, seconds=0) for row in again.rows] == [
        replace(row, seconds=0) for row in first.rows
    ]
    other = evaluate(data, setting(folder, None), out, labels=LABELS, jobs=1)
    assert other.figures["taken_from_journal"] == 0
    assert "reference_accuracy" not in other.figures


def test_a_task_that_failed_is_tried_again(folder: Path) -> None:
    data, out = folder / "data", folder / "out"
    hurried = evaluate(data, setting(folder), out, labels=LABELS, jobs=1, timeout=0.001)
    assert {row.verdict for row in hurried.rows} == {Verdict.FAULT}
    again = evaluate(data, setting(folder), out, labels=LABELS, jobs=1)
    assert again.figures["taken_from_journal"] == 0
    assert again.figures["chip_accuracy"].pictures == 3 * COUNT
    third = evaluate(data, setting(folder), out, labels=LABELS, jobs=1)
    assert third.figures["taken_from_journal"] == 2


def test_a_model_that_cannot_be_asked_is_said_once(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "none.tflite").write_bytes(b"no model")
    words = ["evaluate", str(folder / "model_edgetpu.tflite"), str(folder / "data")]
    for reference, why in (("none", "identifier"), ("missing", "No such file")):
        named = [
            "--reference",
            str(folder / f"{reference}.tflite"),
            "--journal",
            str(folder / "out"),
        ]
        assert run_command_line([*words, *named, "--json"]) == 2
        found = json.loads(capsys.readouterr().out)
        assert why in found["message"] and not found["rows"]
    assert not (folder / "out").exists()


@pytest.mark.usefixtures("tasks_performed_here")
def test_a_reference_of_other_classes_is_compared_with_nothing(folder: Path) -> None:
    network = colour_network()
    (layer,) = network.layers
    fewer = replace(
        layer,
        weights=layer.weights[:2],
        weight_scales=layer.weight_scales[:2],
        bias=layer.bias[:2],
    )
    (folder / "fewer.tflite").write_bytes(colour_models(replace(network, layers=(fewer,)))[1])
    report = evaluate(
        folder / "data", setting(folder, "fewer"), folder / "out", labels=LABELS, jobs=1
    )
    assert report.verdict is Verdict.BAD_INPUT
    assert report.figures["chip_accuracy"].pictures == 3 * COUNT
    assert report.figures["reference_accuracy"].pictures == 0
    assert any("2 classes in the reference" in row.message for row in report.rows)


@pytest.mark.usefixtures("tasks_performed_here")
def test_names_of_any_bytes_and_files_of_any_kind(folder: Path) -> None:
    data, out = folder / "data", folder / "out"
    (data / "red" / "1.png").rename(data / "red" / os.fsdecode(b"odd\xff.png"))
    os.mkfifo(data / "red" / "pipe.png")
    report = evaluate(data, setting(folder), out, labels=LABELS, jobs=1)
    odd = [row for row in report.rows if "odd" in row.name]
    assert [row.verdict for row in odd] == [Verdict.PASS]
    (pipe,) = [row for row in report.rows if "pipe" in row.name]
    assert pipe.message == "no regular file"
    again = evaluate(data, setting(folder), out, labels=LABELS, jobs=1)
    assert again.figures["taken_from_journal"] == again.figures["tasks"]


@pytest.mark.usefixtures("tasks_performed_here")
def test_a_cluster_does_the_same(folder: Path) -> None:
    distributed = pytest.importorskip("distributed", reason="Dask is not installed")
    data = folder / "data"
    here = evaluate(data, setting(folder), folder / "here", labels=LABELS, jobs=1)
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None
    ) as cluster:
        there = evaluate(
            data,
            setting(folder),
            folder / "there",
            labels=LABELS,
            scheduler=cluster.scheduler_address,
        )
    assert [replace(row, seconds=0) for row in there.rows] == [
        replace(row, seconds=0) for row in here.rows
    ]


def test_data_sets_of_all_forms(tmp_path: Path) -> None:
    colour_folders(tmp_path / "named", 1)
    named = read_dataset(tmp_path / "named", LABELS)
    assert [each.truth for each in named] == [2, 1, 0]
    assert [each.truth for each in read_dataset(tmp_path / "named", {})] == [0, 1, 2]
    longer = {7: "Red, a colour", 8: "green", 9: "blue"}
    assert sorted(each.truth for each in read_dataset(tmp_path / "named", longer)) == [7, 8, 9]
    table = tmp_path / "data.csv"
    table.write_text("label,image\nred,named/red/0.png\n2,named/blue/0.png\n")
    assert read_dataset(table, LABELS) == (
        Sample(str(tmp_path / "named/red/0.png"), 0),
        Sample(str(tmp_path / "named/blue/0.png"), 2),
    )
    for text, why in (
        ("image\nx\n", "line 1: 'image': needs a header"),
        ("a.png,red\nb.png,red\n", "line 1: 'a.png,red': needs a header"),
        ("image,label\nx\n", "line 2: needs an image and a label"),
        ("image,label\nx,mauve\n", "line 2: no label is called 'mauve'; the first is red; or give"),
        ("image,label\nx,gren\n", "line 2: no label is called 'gren'; near it: green; or give"),
        ('image,label\n"x', "unexpected end"),
        (f"image,label\nx,{'9' * 5000}\n", "line 2: no label is called '999"),
        ("image,label\n", "no picture in its rows"),
    ):
        table.write_text(text)
        with pytest.raises(InputError, match=why):
            read_dataset(table, LABELS)
    table.write_text("image,label\nx,mauve\n")
    with pytest.raises(InputError, match="give --labels"):
        read_dataset(table, {})
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="no picture"):
        read_dataset(tmp_path / "empty", {})
    with pytest.raises(InputError, match="no label is called 'empty'"):
        read_dataset(tmp_path, LABELS)


def test_what_is_no_data_set_is_told_what_it_is(tmp_path: Path) -> None:
    colour_folders(tmp_path / "named", 2)
    picture = tmp_path / "named" / "red" / "0.png"
    for path, why in (
        (picture, "0.png: a picture, and no data set: `darwinn classify` names its class"),
        (picture.parent, r"2 pictures without a class; `darwinn classify` names classes"),
        (tmp_path / "model", "neither a folder nor a CSV file with image,label: MODEL comes first"),
    ):
        (tmp_path / "model").write_bytes(b"\xff\x00TFL3")
        with pytest.raises(InputError, match=why):
            read_dataset(path, LABELS)


def test_numbers_among_other_folders_are_neither(tmp_path: Path) -> None:
    """By the order of all of them the numbers would be other classes."""
    for name in ("2", "7"):
        colour_folders(tmp_path / name, 1)
        (tmp_path / name / "red" / "0.png").rename(tmp_path / name / "0.png")
    assert [each.truth for each in read_dataset(tmp_path, {})] == [2, 7]
    (tmp_path / "x").mkdir()
    with pytest.raises(InputError, match="folder 2 has the number of a class, 'x' has not"):
        read_dataset(tmp_path, {})
    assert [each.truth for each in read_dataset(tmp_path, {0: "x"})] == [2, 7]


def test_what_is_no_classifier_is_refused_before_the_first_picture(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    colour_folders(tmp_path / "data", 1)
    network = random_convolution(8, 8, 4, 6, 1, kernel=3)
    (tmp_path / "m.tflite").write_bytes(edgetpu_model(network, compile_network(network)))
    words = ["evaluate", str(tmp_path / "m.tflite"), str(tmp_path / "data"), "--json"]
    assert run_command_line([*words, "--journal", str(tmp_path / "out")]) == 2
    found = json.loads(capsys.readouterr().out)
    assert found["rows"] == [] and "one vector of scores" in found["message"]
    assert found["message"].endswith("try darwinn segment")
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("tasks_performed_here")
@pytest.mark.parametrize("count", [3, 2])
def test_folders_in_place_of_classes_are_shown_and_doubted(
    folder: Path, capsys: pytest.CaptureFixture[str], count: int
) -> None:
    (folder / "data" / "green" / "damaged.png").unlink()
    if count == 2:
        shutil.rmtree(folder / "data" / "red")
    words = ["evaluate", str(folder / "model_edgetpu.tflite"), str(folder / "data")]
    words += ["--journal", str(folder / "out"), "--jobs", "1"]
    assert run_command_line(words) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "classes by the order of folders: 0 blue, 1 green" in shown
    assert ("2 folders, the model has 3 classes" in shown) == (count == 2)
    assert run_command_line([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["folders"] == ["blue", "green", "red"][:count]
    assert len(found["warnings"]) == (count == 2)


@pytest.mark.usefixtures("tasks_performed_here")
def test_a_picture_to_mend_is_the_next_step(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damaged = folder / "data" / "green" / "damaged.png"
    words = ["evaluate", str(folder / "model_edgetpu.tflite"), str(folder / "data")]
    words += ["--journal", str(folder / "out"), "--jobs", "1"]
    assert run_command_line(words) == 2
    assert f"next: mend {damaged}, or its class; the same command" in capsys.readouterr().out
    damaged.unlink()
    assert run_command_line(words) == 0
    assert "next: --reference" in capsys.readouterr().out


@pytest.mark.usefixtures("tasks_performed_here")
def test_labels_that_do_not_fit_are_doubted(folder: Path) -> None:
    longer = {**LABELS, 3: "white"}
    report = evaluate(folder / "data", setting(folder, None), folder / "out", labels=longer)
    (warning,) = report.figures["warnings"]
    assert "labels for 4 classes, the model has 3" in warning
    assert report.figures["folders"] == []


@pytest.mark.usefixtures("tasks_performed_here")
def test_the_command_tells_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "data" / "green" / "damaged.png").unlink()
    (folder / "labels.txt").write_text("\n".join(COLOURS))
    words = ["evaluate", str(folder / "model_edgetpu.tflite"), str(folder / "data")]
    words += [
        "--labels",
        str(folder / "labels.txt"),
        "--journal",
        str(folder / "out"),
        "--jobs",
        "1",
    ]
    words += ["--reference", str(folder / "swapped.tflite")]
    assert run_command_line([*words, "--html", str(folder / "page.html")]) == 0
    shown = capsys.readouterr().out
    assert "top-1" in shown and "LiteRT says" in shown
    assert "<img" in (folder / "page.html").read_text()
    assert "earlier" not in shown
    assert run_command_line(words) == 0
    assert "2 of 2 tasks were finished earlier" in capsys.readouterr().out
    assert run_command_line([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["chip_accuracy"] == {
        "pictures": 3 * COUNT,
        "top1": 3 * COUNT - 1,
        "top5": 3 * COUNT,
    }
    assert found["taken_from_journal"] == found["tasks"] == 2
