"""Real networks on the simulated chip: every output and every layer equals the oracle's bytes.

``pytest -s`` on this file prints what was compared. LiteRT is compared layer by layer in
test_chip_arithmetic_corpus.py, in strict mode outputs are verified in test_verify_corpus.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from corpus_models import by_night
from darwinn_testbench.chip.inputs import random_inputs
from darwinn_testbench.chip.model import open_models
from darwinn_testbench.chip.session import Session
from darwinn_testbench.comparison.check import OutputRow
from darwinn_testbench.comparison.verify import verify
from darwinn_testbench.layers.check import Finding, TensorRow
from darwinn_testbench.report import Report, Verdict

RUNS = 2
SMALL = "mobilenet_v1_0.25_128_quant"
MIDDLE = "mobilenet_v1_0.5_160_quant"


@dataclass(frozen=True)
class Expected:
    """What is known of a network's layers.

    ``equal`` tensors of ``elements`` bytes in all are right on every byte. ``absent`` are not in
    the tiles, each with the reason. ``passes`` is the number of layers of those that are not done
    in one: 0 where only the scalar core or moves give them. ``sampled`` are the operators that no
    rule proves, and why; ``partly`` says that the model ends in operators of the CPU, which are
    sampled too.
    """

    equal: int
    elements: int
    absent: Mapping[int, str] = field(default_factory=dict)
    passes: Mapping[int, int] = field(default_factory=dict)
    uncompiled: str = ""
    sampled: str = ""
    partly: bool = False


GIVEN = "as they are given"
HOST = "left to the host"
MOVED = "moves bytes to where"
FUSED = "is fused into"
STATES = "keeps states"
NOT_OF_THE_EXECUTABLE = (GIVEN, HOST)
"""Reasons of operators that compute nothing on the chip: another name for the bytes of the input,
or something that the compiler left to the host."""

MODELS: Mapping[str, Expected] = {
    "dense_256": Expected(2, 512, {2: GIVEN}),
    "dense_1024": Expected(2, 2048, {2: GIVEN}),
    "gabor_64x64_7k_4o_2s": Expected(2, 65536, {1: GIVEN}),
    "looming_64x64_3x3": Expected(8, 20507, {6: GIVEN}),
    "bright_16x16": Expected(4, 260, {4: GIVEN, 5: GIVEN}),
    "bright_64x64": Expected(4, 4100, {4: GIVEN, 5: GIVEN}),
    "color_red_64x64": Expected(6, 12292, {6: GIVEN}),
    "keras_lstm_mnist_ptq": Expected(6, 1934, sampled=STATES),
    SMALL: Expected(31, 414907),
    f"{SMALL}_2019": Expected(31, 414907, passes={87: 0}),
    f"{SMALL}_cocompiled_with_3quant": Expected(31, 414907, uncompiled=SMALL),
    f"{SMALL}_cocompiled_with_{MIDDLE}": Expected(31, 414907, uncompiled=SMALL),
    MIDDLE: Expected(31, 1289915),
    f"{MIDDLE}_cocompiled_with_{SMALL}": Expected(31, 1289915, uncompiled=MIDDLE),
    "mobilenet_v1_1.0_224_quant_embedding_extractor": Expected(28, 5043712),
    "mobilenet_v2_1.0_224_quant": Expected(66, 6898779, passes={12: 0}),
    "posenet_mobilenet_v1_075_353_481_16_quant_decoder": Expected(
        35,
        14011494,
        {64: GIVEN, 65: MOVED, **dict.fromkeys((101, 102, 103, 104), HOST)},
        {66: 2, 67: 2, 68: 2, 69: 2, 95: 0, 96: 0},
    ),
    "deeplabv3_mnv2_dm05_pascal_quant": Expected(
        64,
        21664508,
        dict.fromkeys((176, 177, 178, 180, 182, 183, 184, 185), HOST),
        {66: 2, 68: 2, 70: 2},
        partly=True,
    ),
    "deeplab_mobilenet_edgetpu_slim_cityscapes_quant": Expected(
        79,
        33467606,
        {203: MOVED, 204: FUSED, 205: MOVED, 211: HOST, 212: HOST},
        {72: 2, 74: 2, 191: 2, 193: 2, 195: 2, 198: 6},
    ),
}
LARGE = frozenset(
    {
        "deeplabv3_mnv2_dm05_pascal_quant",
        "mobilenet_v1_1.0_224_quant_embedding_extractor",
        "posenet_mobilenet_v1_075_353_481_16_quant_decoder",
        "deeplab_mobilenet_edgetpu_slim_cityscapes_quant",
    }
)
"""They take two thirds of the time of all."""

DETERMINISTIC = tuple(name for name in MODELS if not name.startswith("deeplab"))
"""Models that are run again and again: all but the slowest two."""


def compiled(corpus: Path, name: str) -> Path:
    return corpus / "darwinn" / f"{name}_edgetpu.tflite"


@pytest.mark.parametrize("name", by_night(MODELS, LARGE))
def test_every_byte_of_every_layer_equals_the_oracle(corpus: Path, name: str) -> None:
    uncompiled = corpus / "tflite" / f"{MODELS[name].uncompiled or name}.tflite"
    report = verify(compiled(corpus, name), uncompiled, runs=RUNS, seed=2, layers=True)
    check_verdict(report, MODELS[name])
    check_outputs(report.rows)
    tensors: list[TensorRow] = report.figures["tensors"]
    runs = [[row for row in tensors if row.run == run] for run in range(RUNS)]
    for rows in runs:
        check_layers(rows, MODELS[name])
    # A tensor is in the same layers whatever its values are: no match is by chance.
    places = [[(row.tensor, row.layers, row.output) for row in rows] for rows in runs]
    assert places[0] == places[1]
    if name.startswith(SMALL):
        check_smallest_mobilenet(runs[0])
    print(f"\n{name}: {MODELS[name].equal} tensors, {MODELS[name].elements} bytes equal")


def check_verdict(report: Report[OutputRow], expected: Expected) -> None:
    whole = not (expected.sampled or expected.partly)
    assert report.verdict is (Verdict.PROVED if whole else Verdict.PASS), report.message
    proof = report.figures["proof"]
    assert proof.refuted == ()
    reasons = {each.reason for each in proof.sampled} | {proof.reason} - {""}
    assert len(reasons) == bool(expected.sampled), reasons
    assert all(expected.sampled in reason for reason in reasons)


def check_outputs(rows: Sequence[OutputRow]) -> None:
    assert {row.run for row in rows} == set(range(RUNS))
    for row in rows:
        assert row.decided_by == "chip arithmetic"
        assert row.chip_arithmetic is not None
        assert row.chip_arithmetic.differing == 0


def check_layers(rows: Sequence[TensorRow], expected: Expected) -> None:
    equal = [row for row in rows if row.finding is Finding.EQUAL]
    absent = [row for row in rows if row.finding is not Finding.EQUAL]
    assert [row for row in rows if row.finding is Finding.DIFFERS] == []
    assert [row.tensor for row in absent] == list(expected.absent)
    for row in absent:
        assert expected.absent[row.tensor] in row.message
        assert not row.output
    unmatched = [k for k, why in expected.absent.items() if why not in NOT_OF_THE_EXECUTABLE]
    assert 10 * len(unmatched) <= len(equal) + len(unmatched)
    assert len(equal) == expected.equal
    assert sum(row.elements for row in equal) == expected.elements
    passes = {row.tensor: len(row.layers) for row in equal if len(row.layers) != 1}
    assert passes == expected.passes


def check_smallest_mobilenet(rows: Sequence[TensorRow]) -> None:
    """The 27 convolutions of docs/chip-facts.md: the other tensors are pool, logits, softmax."""
    names = ("CONV_2D", "DEPTHWISE_CONV_2D")
    layers = [row for row in rows if row.operator in names and row.shape[1] > 1]
    assert len(layers) == 27
    assert sum(row.elements for row in layers) == 411648
    assert all(len(row.layers) == 1 for row in layers)


@pytest.mark.parametrize("name", by_night(DETERMINISTIC, LARGE))
def test_inferences_leave_nothing_behind(corpus: Path, name: str) -> None:
    """The same input gives the same bytes after another one, without loading parameters again.

    Variables are what is to last; they begin anew each time.
    """
    (model, *_) = open_models(compiled(corpus, name))
    session = Session(model)
    first, second = random_inputs(model.ports, 5, 2)
    outputs = []
    for each in (first, second, first):
        session.reset_states()
        outputs.append(session.infer(each).outputs)
    for port in outputs[0]:
        np.testing.assert_array_equal(outputs[0][port], outputs[2][port])
    assert any((outputs[0][port] != outputs[1][port]).any() for port in outputs[0])
