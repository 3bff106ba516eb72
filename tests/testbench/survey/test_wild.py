"""Executables of strangers, by the survey's own tasks: each shows a rule that others rest on, too.

The quick ones run in the gate; nightly every file of both folders does.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from corpus_models import by_night
from darwinn_testbench.report import Verdict
from darwinn_testbench.survey.plan import plan
from darwinn_testbench.survey.run import survey
from darwinn_testbench.survey.task import SurveyRow

EQUAL = "equal the chip arithmetic on every byte"

QUICK = {
    "padding_2x2x3": "tile fences that await the count of a producer's flag; a stand-alone program",
    "stride_64x64x3": "the same, with cached parameters",
    "padding_256x256x3": "the same, in many passes",
    "dense_2x2x3x100x200": "the same, with fully connected layers",
    "classifier_2022": "the same, in a whole network",
    "lane_nav": "a regression, of the last compilers",
    "mobilenet_v1_0.75_192_quant": "an average pool whose factor is no float32(1/n)",
    "mobilenet_v2_2019_retrained": "an average pool, residual additions",
    "yamnet_spectra_in": "a float32 input that the host quantises",
    "movenet_single_pose_lightning_ptq": "a normalisation of several operators in one instruction",
}
"""Files with the model before compilation, which all outputs must equal, and what they show."""

LARGEST = "mobilenet_v2_2019_retrained"

ALONE = {
    "testconv1": "a compiler that says its version",
    "voice_commands_v0.8": "maxima of one byte plane a step",
    "yolov5n_int8_160": "the nearest neighbour",
    "teachable_machine": "a head that was trained in a browser",
}
"""Files without one, which must run to their end with the DMA that they announce."""

REASONS = {
    "truncated_ssd_edgetpu.tflite": (Verdict.BAD_INPUT, "leads out of the 540422 bytes"),
    "mnist_lenet_quant": (Verdict.BAD_INPUT, "is not the model before compilation"),
    "inception_0": (Verdict.BAD_INPUT, "incomplete: "),
}
"""Files that neither pass nor run, and why."""

CALIBRATED_OTHERWISE = "yolov8n_pallets_640"
"""Its reference has the same weights and other scales, of the input too; large, so by night."""


def compiled(wild: Path, name: str) -> Path:
    """A file of the folder by the name that its row has."""
    places = (f"darwinn/{name}_edgetpu.tflite", f"darwinn/{name}", f"{name}.coral")
    return next(wild / place for place in places if (wild / place).exists())


def row_of(wild: Path, name: str) -> SurveyRow:
    """What the survey finds of one file."""
    found = plan([compiled(wild, name)])
    (row,) = [*(task.perform() for task in found.tasks), *found.unread]
    assert row.name == name
    return row


@pytest.mark.parametrize("name", by_night(QUICK, {LARGEST}))
def test_every_byte_is_right(wild: Path, name: str) -> None:
    row = row_of(wild, name)
    assert row.verdict is Verdict.PASS, row.message
    assert EQUAL in row.message
    assert row.refused == ()
    assert row.cycles


@pytest.mark.parametrize("name", ALONE)
def test_it_runs_to_its_end(wild: Path, name: str) -> None:
    row = row_of(wild, name)
    assert row.verdict is Verdict.RAN, row.message
    assert "DMA as hinted" in row.message
    assert row.refused == ()
    assert row.cycles


@pytest.mark.parametrize("name", REASONS)
def test_what_is_wrong_is_said(wild: Path, name: str) -> None:
    verdict, message = REASONS[name]
    row = row_of(wild, name)
    assert row.verdict is verdict
    assert message in row.message


def test_segments_follow_one_another(wild: Path) -> None:
    segments = sorted((wild / "darwinn").glob("*_segment_*_edgetpu.tflite"))
    (task,) = [each for each in plan(segments).tasks if each.row.kind == "pipeline"]
    assert task.row.name == "ssd_mobilenet_v1_segment_*_of_3"
    row = task.perform()
    assert row.verdict is Verdict.RAN, row.message


@pytest.mark.nightly
def test_all_of_both_folders(corpus: Path, wild: Path, tmp_path: Path) -> None:
    report = survey([wild, corpus], tmp_path)
    others = {row.name: row.verdict for row in report.rows if row.verdict.failed}
    expected = {name: verdict for name, (verdict, _) in REASONS.items()}
    assert others == expected | {CALIBRATED_OTHERWISE: Verdict.BAD_INPUT}, [
        row.message for row in report.rows if row.verdict.failed
    ]
    assert not [each for each in report.figures["fields"] if each.grade == "refused"]
