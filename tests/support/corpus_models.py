"""Compiled models of the corpus by name: a few that are quick to run, and all others nightly."""

from __future__ import annotations

from collections.abc import Container, Iterable
from pathlib import Path

import pytest
from darwinn_testbench.chip.model import BoundModel, open_models

QUICK = (
    "bright_16x16",
    "color_red_64x64",
    "dense_256",
    "gabor_64x64_7k_4o_2s",
    "keras_lstm_mnist_ptq",
    "looming_64x64_3x3",
    "mobilenet_v1_0.25_128_quant",
)
SLOW = (
    "bright_64x64",
    "deeplab_mobilenet_edgetpu_slim_cityscapes_quant",
    "deeplabv3_mnv2_dm05_pascal_quant",
    "dense_1024",
    "mobilenet_v1_0.25_128_quant_2019",
    "mobilenet_v1_0.25_128_quant_cocompiled_with_3quant",
    "mobilenet_v1_0.25_128_quant_cocompiled_with_mobilenet_v1_0.5_160_quant",
    "mobilenet_v1_0.5_160_quant",
    "mobilenet_v1_0.5_160_quant_cocompiled_with_mobilenet_v1_0.25_128_quant",
    "mobilenet_v1_1.0_224_quant_embedding_extractor",
    "mobilenet_v2_1.0_224_quant",
    "posenet_mobilenet_v1_075_353_481_16_quant_decoder",
    "ssd_mobilenet_v1_coco_quant_postprocess_segment_0_of_2",
    "ssd_mobilenet_v1_coco_quant_postprocess_segment_1_of_2",
)


def by_night(names: Iterable[str], slow: Container[str]) -> list[object]:
    """The parameters of a test: those of ``names`` that are ``slow`` are for the night."""
    return [pytest.param(name, marks=pytest.mark.nightly if name in slow else ()) for name in names]


MODELS = by_night((*QUICK, *SLOW), SLOW)
"""For parametrised tests."""


def path_of(corpus: Path, name: str) -> Path:
    return corpus / "darwinn" / f"{name}_edgetpu.tflite"


def model_of(corpus: Path, name: str) -> BoundModel:
    (model,) = open_models(path_of(corpus, name))
    return model
