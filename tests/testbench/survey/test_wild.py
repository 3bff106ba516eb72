"""Executables of strangers, by the survey's own tasks: each shows a rule that others rest on, too.

The quick ones run in the gate; nightly every file of all folders does.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from darwinn_testbench.report import Verdict
from darwinn_testbench.survey.plan import plan
from darwinn_testbench.survey.run import survey
from darwinn_testbench.survey.task import SurveyRow
from strangers import stranger

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
    "conv_chain_two_32": "convolutions of 32 channels that no activation bounds",
    "conv_chain_five_100": "five of them, spread over tiles in several passes",
    "thermal_face_automl": "means whose factor is float32(1/n)",
}
"""Files with the model before compilation, which all outputs must equal, and what they show."""

SLOW = {"mobilenet_v2_2019_retrained", "conv_chain_five_100", "thermal_face_automl"}

ALONE = {
    "testconv1": "a compiler that says its version",
    "voice_commands_v0.8": "maxima of one byte plane a step",
    "yolov5n_int8_160": "the nearest neighbour",
    "teachable_machine": "a head that was trained in a browser",
    "function_7_v1": "a range reduction of the argument of a table, by analogy",
    "one_layer_layer1_CONV_F16_S2_KS7_Actrelu_Paddingsame": "a window of 7 x 7",
    "one_layer_layer1_DC_S1_KS7_ActNone_Paddingsame": "the same, of each channel alone",
    "one_layer_layer1_FC_Nodes900_ActNone": "a dense layer of an image",
    "one_layer_layer1_avgpool_S2_PS2_Paddingsame": "averages of 2 x 2",
}
"""Files without one, which must run to their end with the DMA that they announce."""

REASONS = {
    "truncated_ssd_edgetpu.tflite": (Verdict.BAD_INPUT, "leads out of the 540422 bytes"),
    "mnist_lenet_quant": (Verdict.BAD_INPUT, "is not the model before compilation"),
    "inception_0": (Verdict.BAD_INPUT, "incomplete: "),
    "teachable_other_calibration": (Verdict.BAD_INPUT, "is not the model before compilation"),
    "teachable_other_calibration_2": (Verdict.BAD_INPUT, "is not the model before compilation"),
}
"""Files that neither pass nor run, and why."""

UNALIGNED = {
    "yolo_unaligned_vectors": Verdict.PASS,
    "yolo_unaligned_itself": Verdict.RAN,
}
"""Files with 8-byte vectors that are aligned to 4, or whose model before compilation has them."""

CALIBRATED_OTHERWISE = "yolov8n_pallets_640"
"""Its reference has the same weights and other scales, of the input too; large, so by night."""


def files(names: Iterable[str]) -> list[object]:
    """The parameters of a test: slow files are for the night."""
    return [
        pytest.param(name, marks=[pytest.mark.nightly] if name in SLOW else []) for name in names
    ]


def row_of(name: str) -> SurveyRow:
    """What the survey finds of one file."""
    found = plan([stranger(name)])
    (row,) = [*(task.perform() for task in found.tasks), *found.unread]
    assert row.name in (name, f"{name}_edgetpu.tflite")
    return row


@pytest.mark.parametrize("name", files(QUICK))
def test_every_byte_is_right(name: str) -> None:
    row = row_of(name)
    assert row.verdict.passed, row.message
    assert "sampled: operator " not in row.message or name == "classifier_2022"
    assert EQUAL in row.message
    assert row.refused == ()
    assert row.cycles


@pytest.mark.parametrize("name", files(ALONE))
def test_it_runs_to_its_end(name: str) -> None:
    row = row_of(name)
    assert row.verdict is Verdict.RAN, row.message
    assert "DMA as hinted" in row.message
    assert row.refused == ()
    assert row.cycles


@pytest.mark.parametrize("name", files(REASONS))
def test_what_is_wrong_is_said(name: str) -> None:
    verdict, message = REASONS[name]
    row = row_of(name)
    assert row.verdict is verdict
    assert message in row.message


@pytest.mark.nightly
@pytest.mark.parametrize("name", files(UNALIGNED))
def test_vectors_may_be_aligned_to_four_bytes(name: str) -> None:
    row = row_of(name)
    assert row.verdict is UNALIGNED[name], row.message


def test_segments_follow_one_another(wild: Path) -> None:
    segments = sorted((wild / "darwinn").glob("*_segment_*_edgetpu.tflite"))
    (task,) = [each for each in plan(segments).tasks if each.row.kind == "pipeline"]
    assert task.row.name == "ssd_mobilenet_v1_segment_*_of_3"
    row = task.perform()
    assert row.verdict is Verdict.RAN, row.message


@pytest.mark.nightly
def test_all_of_all_folders(corpus: Path, wild: Path, wild2: Path, tmp_path: Path) -> None:
    report = survey([wild2, wild, corpus], tmp_path)
    others = {row.name: row.verdict for row in report.rows if row.verdict.failed}
    expected = {k: verdict for k, (verdict, _) in REASONS.items()}
    assert others == expected | {CALIBRATED_OTHERWISE: Verdict.BAD_INPUT}, [
        row.message for row in report.rows if row.verdict.failed
    ]
    assert not [each for each in report.figures["fields"] if each.grade == "refused"]
