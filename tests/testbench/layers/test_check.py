"""What the layer check says of tensors that are right, wrong, or not in the tiles at all."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import junitparser
import numpy as np
import pytest
from darwinn_reference.tflite.graph import Network, Operator, TensorValues
from darwinn_sim.machine import layers, observer
from darwinn_sim.machine.examine import Tap, TappedBytes
from darwinn_sim.units import observation
from darwinn_testbench.chip.inputs import random_inputs
from darwinn_testbench.chip.model import open_models
from darwinn_testbench.chip.session import Session
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.comparison.verify import verify
from darwinn_testbench.errors import InputError
from darwinn_testbench.layers.candidates import find_candidates, layer_taps
from darwinn_testbench.layers.check import Finding, LayerCheck, TensorRow
from darwinn_testbench.report import Verdict, to_junit
from layer_programs import layer, one_pass_words, program, spread
from one_operator import Array, tensor
from other_weights import with_weights

MOBILENET = "mobilenet_v1_0.25_128_quant"
IMAGE = (1, 4, 8, 8)
SHIFT = 0x80

INPUT, SIGNED, FIRST, SECOND, FLAT, LOGITS, HOST = range(7)
NETWORK = Network(
    "test",
    (
        tensor(INPUT, IMAGE, "u1", 0.5, 3),
        tensor(SIGNED, IMAGE, "i1", 0.5, 3 - SHIFT),
        tensor(FIRST, IMAGE, "i1", 0.25, 10 - SHIFT),
        tensor(SECOND, IMAGE, "i1", 0.25, 20 - SHIFT),
        tensor(FLAT, (1, 256), "i1", 0.25, 20 - SHIFT),
        tensor(LOGITS, (1, 12), "i1", 0.25, 30 - SHIFT),
        tensor(HOST, (1,), "i8"),
    ),
    (
        Operator(0, "QUANTIZE", (INPUT,), (SIGNED,)),
        Operator(1, "CONV_2D", (SIGNED,), (FIRST,)),
        Operator(2, "RELU", (FIRST,), (SECOND,)),
        Operator(3, "RESHAPE", (SECOND,), (FLAT,)),
        Operator(4, "FULLY_CONNECTED", (FLAT,), (LOGITS,)),
        Operator(5, "ARG_MAX", (LOGITS,), (HOST,)),
    ),
    (INPUT,),
    (HOST,),
)
"""The chip is given the input and sends the logits."""


@pytest.fixture
def values() -> dict[int, Array]:
    generator = np.random.default_rng(7)
    values = {
        each.index: generator.integers(-100, 100, each.shape).astype(each.dtype)
        for each in NETWORK.tensors
    }
    values[INPUT] = values[INPUT] & np.uint8(0x7F)
    values[SIGNED] = (values[INPUT] ^ np.uint8(SHIFT)).view(np.int8)
    values[FLAT] = values[SECOND].reshape(1, 256)
    return values


def device(values: Array) -> Array:
    return values.view(np.uint8) ^ np.uint8(SHIFT)


def check(
    monkeypatch: pytest.MonkeyPatch,
    values: dict[int, Array],
    held: Sequence[tuple[Array, int]],
    sent: Array,
    missing: dict[int, str] | None = None,
) -> dict[int, TensorRow]:
    """The rows where layer k holds the k-th tensor with a zero point, and ``sent`` is sent."""
    generator = np.random.default_rng(8)
    parts = [spread(each[0], [1, 1, 1, 1], [2, 2, 2, 2]) for each, _ in held]
    tapped = [
        TappedBytes(Tap(layer=number), one_pass_words(part, generator))
        for number, part in enumerate(parts)
    ]
    found = tuple(
        layer(number, output_zero_point=zero_point, output_stage=(number,))
        for number, (_, zero_point) in enumerate(held)
    )
    monkeypatch.setattr(layers, "find", lambda _: found)
    writes = [2 * len(parts[0].get(tile, ())) for tile in range(16)]
    expected = TensorValues(values, missing or {})
    candidates = find_candidates(program(writes), tapped)
    rows = LayerCheck(
        NETWORK, expected, candidates, frozenset({INPUT}), outputs={LOGITS: sent}, run=4
    ).rows()
    assert [row.tensor for row in rows] == [SIGNED, FIRST, SECOND, FLAT, LOGITS, HOST]
    assert {row.run for row in rows} == {4}
    return {row.tensor: row for row in rows}


def test_equal_tensors_and_the_reasons_of_the_others(
    monkeypatch: pytest.MonkeyPatch, values: dict[int, Array]
) -> None:
    held = [(device(values[FIRST]), 10), (device(values[SECOND]), 20)]
    rows = check(monkeypatch, values, held, values[LOGITS])
    assert rows[FIRST].finding is Finding.EQUAL
    assert rows[FIRST].layers == (0,)
    assert rows[SECOND].layers == rows[FLAT].layers == (1,)
    assert rows[LOGITS].finding is Finding.EQUAL
    assert rows[LOGITS].output
    assert rows[LOGITS].layers == ()
    assert rows[SIGNED].message == "the bytes of input t0, as they are given"
    assert rows[HOST].message == "left to the host"
    absent = {k for k, row in rows.items() if row.finding is Finding.NOT_MATERIALISED}
    assert absent == {SIGNED, HOST}
    assert all(row.verdict is Verdict.PASS for row in rows.values())


def test_one_wrong_byte_is_found(monkeypatch: pytest.MonkeyPatch, values: dict[int, Array]) -> None:
    wrong = device(values[FIRST])
    wrong[0, 3, 7, 7] += np.uint8(5)
    held = [(wrong, 10), (device(values[SECOND]), 20)]
    rows = check(monkeypatch, values, held, values[LOGITS])
    assert rows[FIRST].finding is Finding.DIFFERS
    assert rows[FIRST].verdict is Verdict.MISMATCH
    assert (rows[FIRST].layers, rows[FIRST].differing, rows[FIRST].max_difference) == ((0,), 1, 5)
    assert "1 of 256 bytes differ, by up to 5" in rows[FIRST].message
    assert rows[SECOND].finding is Finding.EQUAL


def test_a_layer_of_another_zero_point_is_another_tensor(
    monkeypatch: pytest.MonkeyPatch, values: dict[int, Array]
) -> None:
    """Even if its bytes happen to be the same: the instruction says what they mean."""
    held = [(device(values[FIRST]), 11), (device(values[SECOND]), 20)]
    rows = check(monkeypatch, values, held, values[LOGITS])
    assert rows[FIRST].finding is Finding.NOT_MATERIALISED
    assert rows[FIRST].message == "no layer has its size: CONV_2D is fused into RELU"


def test_what_only_moves_bytes_has_no_layer(
    monkeypatch: pytest.MonkeyPatch, values: dict[int, Array]
) -> None:
    operators = list(NETWORK.operators)
    operators[1] = dataclasses.replace(operators[1], name="PAD")
    moving = dataclasses.replace(NETWORK, operators=tuple(operators))
    monkeypatch.setitem(globals(), "NETWORK", moving)
    held = [(device(values[FIRST]), 11), (device(values[SECOND]), 20)]
    rows = check(monkeypatch, values, held, values[LOGITS])
    assert rows[FIRST].finding is Finding.NOT_MATERIALISED
    assert rows[FIRST].message.endswith("PAD moves bytes to where RELU reads them")


def test_layers_of_equal_bytes_are_told_apart_by_their_order(
    monkeypatch: pytest.MonkeyPatch, values: dict[int, Array]
) -> None:
    values[SECOND] = values[FIRST]
    values[FLAT] = values[FIRST].reshape(1, 256)
    tensors = list(NETWORK.tensors)
    tensors[SECOND], tensors[FLAT] = (
        dataclasses.replace(tensors[k], zero_point=tensors[FIRST].zero_point)
        for k in (SECOND, FLAT)
    )
    same = dataclasses.replace(NETWORK, tensors=tuple(tensors))
    monkeypatch.setitem(globals(), "NETWORK", same)
    held = [(device(values[FIRST]), 10), (device(values[SECOND]), 10)]
    rows = check(monkeypatch, values, held, values[LOGITS])
    assert (rows[FIRST].layers, rows[SECOND].layers) == ((0,), (1,))


def test_what_is_sent_is_judged_by_itself(
    monkeypatch: pytest.MonkeyPatch, values: dict[int, Array]
) -> None:
    held = [(device(values[FIRST]), 10), (device(values[SECOND]), 20)]
    rows = check(monkeypatch, values, held, values[LOGITS] + np.int8(1))
    assert rows[LOGITS].finding is Finding.DIFFERS
    assert (rows[LOGITS].differing, rows[LOGITS].max_difference) == (12, 1)


def test_a_tensor_without_an_oracle_is_not_compared(
    monkeypatch: pytest.MonkeyPatch, values: dict[int, Array]
) -> None:
    held = [(device(values[FIRST]), 10), (device(values[SECOND]), 20)]
    rows = check(monkeypatch, values, held, values[LOGITS], {FIRST: "unknown arithmetic"})
    assert rows[FIRST].finding is Finding.NOT_MATERIALISED
    assert rows[FIRST].message == "not compared: unknown arithmetic"


# --- on a real program --------------------------------------------------------------------------

GABOR = "gabor_64x64_7k_4o_2s"


def test_a_small_tap_buffer_changes_nothing(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full tap holds the chip: tapping never changes what is computed or in which order."""
    (model, *_) = open_models(corpus / "darwinn" / "mobilenet_v1_0.25_128_quant_edgetpu.tflite")
    session = Session(model)
    taps = layer_taps(session.program)
    (inputs,) = random_inputs(model.ports, 1, 1)
    results: list[Any] = []
    for words in (1 << 20, 128):
        monkeypatch.setattr(observer, "_TAP_WORDS", words)
        results.append(session.infer(inputs, taps=taps))
    untapped = session.infer(inputs)
    for name, output in untapped.outputs.items():
        assert all(np.array_equal(output, each.outputs[name]) for each in results)
    large, small = ([each.data for each in result.result.tapped] for result in results)
    for tile in range(16):
        for one, other in zip(large, small, strict=True):
            assert one.dtype == observation.TappedWord.dtype
            assert (one[one["tile"] == tile] == other[other["tile"] == tile]).all()


def test_layers_need_a_reference(corpus: Path) -> None:
    with pytest.raises(InputError, match="give --reference"):
        verify(corpus / "darwinn" / f"{GABOR}_edgetpu.tflite", layers=True)


def test_the_command_prints_and_writes_the_layers(
    corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    compiled = str(corpus / "darwinn" / f"{GABOR}_edgetpu.tflite")
    reference = str(corpus / "tflite" / f"{GABOR}.tflite")
    arguments = ["verify", compiled, "--reference", reference, "--runs", "1"]
    assert run_command_line([*arguments, "--layers"]) == 0
    printed = capsys.readouterr().out
    assert "DEPTHWISE_CONV_2D" in printed
    assert "2 equal, 0 differs, 1 not materialised" in printed
    assert run_command_line([*arguments, "--layers", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["tensors"]
    assert [row["finding"] for row in rows] == ["not materialised", "equal", "equal"]
    assert [row["layers"] for row in rows] == [[], [2], [2]]
    assert run_command_line([*arguments, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["tensors"] == []


def test_a_wrong_parameter_shows_in_the_layers(corpus: Path) -> None:
    """The layers tell where a mismatch begins."""
    source = corpus / "darwinn" / "looming_64x64_3x3_edgetpu.tflite"
    uncompiled = corpus / "tflite" / "looming_64x64_3x3.tflite"
    data = bytearray(source.read_bytes())
    (model, *_) = open_models(source)
    assert model.compiled.caching is not None
    parameters = bytes(model.compiled.caching.parameters)
    at = bytes(data).index(parameters)
    data[at : at + len(parameters)] = bytes(len(parameters))
    report = verify(bytes(data), uncompiled, layers=True)
    assert report.verdict is Verdict.MISMATCH
    wrong = [row for row in report.figures["tensors"] if row.finding is Finding.DIFFERS]
    assert wrong
    assert wrong[0].operator == "CONV_2D"
    assert wrong[0].differing
    assert f"{len(wrong)} differs" in report.message
    assert f"; the first: {wrong[0].place}: {wrong[0].message}" in report.message


@pytest.fixture(scope="module")
def hidden(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A MobileNet in which one bit of one weight differs from what was compiled: on the first
    inputs the outputs are the same."""

    def change(weights: Array) -> Array:
        weights.reshape(-1)[9] ^= 1
        return weights

    file = tmp_path_factory.mktemp("hidden") / "changed.tflite"
    file.write_bytes(with_weights(corpus / "tflite" / f"{MOBILENET}.tflite", 24, change))
    return file


@pytest.mark.parametrize(
    ("option", "verdict"),
    [("layers", Verdict.MISMATCH), ("localise", Verdict.MISMATCH), (None, Verdict.PASS)],
)
def test_a_difference_within_is_no_pass_though_outputs_are_equal(
    corpus: Path, hidden: Path, option: str | None, verdict: Verdict
) -> None:
    source = corpus / "darwinn" / f"{MOBILENET}_edgetpu.tflite"
    report = verify(
        *(source, hidden),
        runs=1,
        layers=option == "layers",
        localise=option == "localise",
        proof=False,
    )
    assert {row.verdict for row in report.rows} == {Verdict.PASS}
    assert report.verdict is verdict
    suite = next(iter(junitparser.JUnitXml.fromstring(to_junit([report]).decode())))
    assert suite.failures == (1 if verdict.failed else 0)


def test_a_difference_within_is_the_exit_code_and_the_summary(
    corpus: Path, hidden: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = corpus / "darwinn" / f"{MOBILENET}_edgetpu.tflite"
    words = ["verify", str(source), "--reference", str(hidden), "--runs", "1", "--layers"]
    assert run_command_line(words) == 1
    (summary,) = (
        line for line in capsys.readouterr().out.splitlines() if line.startswith("mismatch")
    )
    assert "25 equal, 6 differs, 0 not materialised" in summary
    first = "run 0: MobilenetV1/MobilenetV1/Conv2d_12_pointwise/Relu6, by CONV_2D, in layer 26"
    assert f"the first: {first}: 1 of 4,096 bytes differ, by up to 1" in summary
