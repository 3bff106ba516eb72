"""LiteRT: every tensor of real models, what it lacks by name, and damaged models as one error."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from darwinn_formats import flatbuffer, tflite
from darwinn_formats.errors import FormatError
from darwinn_formats.files import Content
from darwinn_reference.errors import ModelError
from darwinn_reference.tflite import litert
from darwinn_reference.tflite.litert import LiteRtReference
from darwinn_reference.tflite.litert_worker import Frame
from darwinn_reference.tflite.model import CpuModel


def model(*operators: tuple[str, int, int], outputs: tuple[int, ...]) -> bytes:
    """Float tensors and operators between them: (RELU or a custom name, input, output)."""
    count = 1 + max(max(source, target) for _, source, target in operators)
    relu = tflite.BuiltinOperator.RELU
    codes = tuple(
        tflite.OperatorCode(relu, "", 1, relu)
        if name == "RELU"
        else tflite.OperatorCode(
            tflite.BuiltinOperator.CUSTOM, name, 1, tflite.BuiltinOperator.CUSTOM
        )
        for name, _, _ in operators
    )
    nodes = tuple(
        tflite.Operator(opcode_index=index, inputs=(source,), outputs=(target,))
        for index, (_, source, target) in enumerate(operators)
    )
    tensors = tuple(tflite.Tensor(shape=(3,), buffer=0, name=f"t{k}") for k in range(count))
    graph = tflite.SubGraph(tensors, (0,), outputs, nodes, "main")
    whole = tflite.Model(
        version=3, operator_codes=codes, subgraphs=(graph,), buffers=(tflite.Buffer(),)
    )
    return flatbuffer.write(whole)


VALUES = np.array([-1, 2, -3], np.float32)


def test_all_tensors_of_a_chain() -> None:
    reference = LiteRtReference(model(("RELU", 0, 1), ("RELU", 1, 2), outputs=(2,)))
    values = reference.run([VALUES])
    assert values[1].tolist() == values[2].tolist() == [0, 2, 0]
    assert reference.outputs([VALUES])[0].tolist() == [0, 2, 0]
    assert reference.custom_operators == ()


@pytest.mark.parametrize("outputs", [(3,), (2, 3), (4, 3, 2)])
def test_operators_around_a_custom_one_still_run(outputs: tuple[int, ...]) -> None:
    data = model(("RELU", 0, 1), ("Mystery", 1, 2), ("RELU", 2, 3), ("RELU", 1, 4), outputs=outputs)
    reference = LiteRtReference(data, file="chain.tflite")
    values = reference.run([VALUES])
    assert values[4].tolist() == [0, 2, 0]
    assert reference.custom_operators == ("Mystery",)
    assert "custom operator 'Mystery'" in values.missing[2]
    assert "depends on tensor 2" in values.missing[3]
    with pytest.raises(ModelError, match=r"chain\.tflite: output [23]"):
        reference.outputs([VALUES])


def test_a_model_of_custom_operators_alone_is_refused_by_their_names() -> None:
    with pytest.raises(ModelError, match="custom operator 'Mystery': nothing can run"):
        LiteRtReference(model(("Mystery", 0, 1), outputs=(1,)))


def test_inputs_are_checked() -> None:
    reference = LiteRtReference(model(("RELU", 0, 1), outputs=(1,)))
    with pytest.raises(ModelError, match=r"tensor 0 \(t0\) is float32 \(3,\), not int8 \(3,\)"):
        reference.run([VALUES.astype(np.int8)])
    with pytest.raises(ModelError, match="1 inputs, not 2"):
        reference.run([VALUES, VALUES])
    with pytest.raises(ModelError, match="tensor 1 is no variable"):
        reference.run([VALUES], {1: VALUES})


def test_bytes_that_are_no_model_are_a_format_error() -> None:
    with pytest.raises(FormatError, match=r"mine\.tflite"):
        LiteRtReference(b"nothing of the kind" * 9, file="mine.tflite")


def test_what_litert_refuses_is_one_error() -> None:
    """The operator reads a tensor that nothing writes: valid as a file, not as a network."""
    with pytest.raises(ModelError, match=r"model: LiteRT"):
        LiteRtReference(model(("RELU", 1, 2), outputs=(2,))).run([VALUES])


def test_a_request_that_takes_too_long_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(litert, "WORKER", (sys.executable, "-c", "import time; time.sleep(60)"))
    with pytest.raises(ModelError, match=r"did not finish within 0\.5 s"):
        LiteRtReference(model(("RELU", 0, 1), outputs=(1,)), time_limit=0.5)


def test_a_crash_of_litert_is_one_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(litert, "WORKER", (sys.executable, "-c", "import os; os.abort()"))
    with pytest.raises(ModelError, match=r"LiteRT crashed \(status -6\)"):
        LiteRtReference(model(("RELU", 0, 1), outputs=(1,)))


def process_of(reference: LiteRtReference) -> int:
    """The number of the process that answers it."""
    return reference._process.running.process.pid


def test_the_process_of_a_model_serves_its_next_owner() -> None:
    data = model(("RELU", 0, 1), outputs=(1,))
    first = process_of(LiteRtReference(data))
    second, third = LiteRtReference(data), LiteRtReference(data)
    assert process_of(second) == first != process_of(third)
    assert second.outputs([VALUES])[0].tolist() == third.outputs([VALUES])[0].tolist() == [0, 2, 0]
    assert process_of(LiteRtReference(model(("RELU", 0, 2), outputs=(2,)))) != first


def test_a_process_that_was_interrupted_serves_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    data = model(("RELU", 0, 1), ("RELU", 1, 2), outputs=(1,))
    reference = LiteRtReference(data)
    interrupted = process_of(reference)

    def interrupt(stream: object) -> Frame:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(litert, "receive", interrupt)
        reference.run([VALUES])
    del reference
    after = LiteRtReference(data)
    assert process_of(after) != interrupted
    assert after.outputs([-VALUES])[0].tolist() == [1, 0, 3]


def test_few_processes_wait_for_an_owner_and_can_be_ended() -> None:
    each = [LiteRtReference(model(("RELU", 0, k), outputs=(k,))) for k in range(1, 6)]
    running = [one._process.running.process for one in each]
    while each:
        del each[0]
    assert [process.returncode is None for process in running] == [False] * 3 + [True] * 2
    litert.end_idle()
    assert all(process.returncode is not None for process in running)


def test_litert_runs_again_after_a_crash(corpus: Path) -> None:
    """Its softmax aborts when 4096 equal exponentials overflow a sum of 12 integer bits."""
    reference = LiteRtReference(corpus / "tflite" / "bright_64x64.tflite")
    with pytest.raises(ModelError, match="crashed"):
        reference.run([np.full((1, 64, 64, 1), 255, np.uint8)])
    image = np.zeros((1, 64, 64, 1), np.uint8)
    image[0, 5, 7] = 255
    assert len(reference.run([image])) == len(reference.network.tensors)


def test_the_invalid_model_of_the_corpus_is_refused(corpus: Path) -> None:
    path = corpus / "tflite" / "model_invoking_error.tflite"
    with pytest.raises((FormatError, ModelError), match=r"model_invoking_error\.tflite: "):
        LiteRtReference(path)


def test_a_model_with_a_custom_decoder_gives_the_decoders_inputs(corpus: Path) -> None:
    name = "posenet_mobilenet_v1_075_353_481_16_quant_decoder.tflite"
    reference = LiteRtReference(corpus / "tflite" / name)
    assert reference.custom_operators == ("PosenetDecoderOp",)
    values = reference.run([np.full((1, 353, 481, 3), 100, np.uint8)])
    decoder = reference.network.operators[-1]
    assert all(index in values for index in decoder.inputs)
    assert set(values.missing) == set(decoder.outputs)


def test_variables_start_anew_or_as_they_are_given(corpus: Path) -> None:
    reference = LiteRtReference(corpus / "tflite" / "keras_lstm_mnist_ptq.tflite")
    image = np.arange(28 * 28).astype(np.uint8).reshape(1, 28, 28)
    first, second = reference.run([image]), reference.run([image])
    states = {index: first[index] for index in (17, 18)}
    assert all(reference.network.tensors[index].variable for index in states)
    assert np.array_equal(first[24], second[24])
    continued = reference.run([image], states)
    assert not np.array_equal(first[24], continued[24])


@pytest.mark.parametrize("name", ["gabor_64x64_7k_4o_2s", "bright_16x16", "dense_256"])
def test_both_kernels_agree_where_they_round_alike(corpus: Path, name: str) -> None:
    path = corpus / "tflite" / f"{name}.tflite"
    plain, optimised = LiteRtReference(path), LiteRtReference(path, kernels="builtin")
    tensor = plain.network.tensors[plain.network.inputs[0]]
    image = np.random.default_rng(5).integers(0, 256, tensor.shape).astype(np.uint8)
    for left, right in zip(plain.outputs([image]), optimised.outputs([image]), strict=True):
        assert np.array_equal(left, right)


def test_a_refused_model_is_not_given_to_litert_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each inference asks for it, and LiteRT's process takes longer to start than most of them."""
    asked = CpuModel.load(Content(model(("Mystery", 0, 1), outputs=(1,)), "model.tflite"))
    for _ in range(2):
        with pytest.raises(ModelError, match="nothing can run"):
            _ = asked.litert
        monkeypatch.setattr("darwinn_reference.tflite.model.LiteRtReference", None)
