"""Drawn inputs: every kind for any shape and dtype, the same for a seed, and finding other faults.

Each kind is looked at through what it promises: ends that are reached, channels that are one value,
neighbours that are alike.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from darwinn_formats import darwinn
from darwinn_formats.darwinn import Executable, ExecutableType
from darwinn_reference.tflite.graph import Network, NetworkTensor, Operator
from darwinn_testbench.chip.input_kinds import draw
from darwinn_testbench.chip.inputs import SEED_STEP, TensorPort, origin_of, random_inputs
from darwinn_testbench.chip.model import open_models
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.comparison.excitation import Excitation
from darwinn_testbench.comparison.expectation import References
from darwinn_testbench.comparison.verify import verify
from darwinn_testbench.compiler import compile_network, random_dense, uncompiled
from darwinn_testbench.errors import InputError
from darwinn_testbench.report import Verdict
from darwinn_testbench.request.inputs import InputKind
from hypothesis import given
from hypothesis import strategies as st
from sample_files import sample
from sample_runs import change, set_field

INTEGERS = (np.uint8, np.int8, np.int16, np.int32, np.int64, np.uint64)
DTYPES: tuple[Any, ...] = (*INTEGERS, np.float32, np.float16, np.float64, np.bool_)
IMAGE = TensorPort("image", (1, 24, 32, 3), np.dtype(np.uint8), 0.5, 100)


@given(
    st.sampled_from(InputKind),
    st.lists(st.integers(0, 9), max_size=5),
    st.sampled_from(DTYPES),
    st.integers(0, 2**32),
)
def test_every_kind_has_the_shape_and_the_dtype_that_are_asked_for(
    kind: InputKind, shape: list[int], dtype: Any, seed: int
) -> None:
    limits = (-2.0, 6.0) if np.dtype(dtype).kind == "f" else None
    drawn, again = (
        draw(kind, tuple(shape), np.dtype(dtype), np.random.default_rng(seed), limits=limits)
        for _ in range(2)
    )
    assert drawn.shape == tuple(shape)
    assert drawn.dtype == dtype
    np.testing.assert_array_equal(drawn, again)
    if limits is not None:
        assert np.isfinite(drawn).all()
        assert drawn.min(initial=0) >= -2
        assert drawn.max(initial=0) <= 6


@pytest.mark.parametrize("shape", [(1, 24, 32, 3), (24, 32, 3), (1, 40, 5), (1, 3, 24, 32)])
@pytest.mark.parametrize("seed", range(5))
def test_kinds_are_what_they_are_called(shape: tuple[int, ...], seed: int) -> None:
    def tensor(kind: InputKind) -> np.ndarray[Any, Any]:
        drawn = draw(kind, shape, np.dtype(np.uint8), np.random.default_rng(seed))
        return np.moveaxis(drawn, 1, -1) if shape[1] == 3 else drawn

    noise = tensor(InputKind.NOISE)
    extremes = tensor(InputKind.EXTREMES)
    channels = noise.shape[-1]
    assert set(np.unique(extremes)) <= {0, 255}
    constants = tensor(InputKind.CONSTANTS).reshape(-1, channels)
    assert (constants == constants[0]).all()
    gradients = tensor(InputKind.GRADIENTS).astype(int)
    longest = int(np.argmax(gradients.shape[:-1]))
    assert np.abs(np.diff(gradients, axis=longest)).max() < 64
    assert (gradients.reshape(-1, channels).max(0) > gradients.reshape(-1, channels).min(0)).any()
    edges = tensor(InputKind.EDGES).reshape(-1, channels)
    assert all(np.unique(edges[:, k]).size <= 8 for k in range(channels))
    assert all(np.unique(edges[:, k]).size >= 2 for k in range(channels))


def test_a_run_depends_on_its_seed_and_kind_and_not_on_how_many_there_are() -> None:
    few, many = random_inputs([IMAGE], 7), random_inputs([IMAGE], 7, 12)
    assert len(few) == len(InputKind)
    assert [str(origin_of(many, run)) for run in (0, 1, 6)] == [
        "noise 7",
        "gradients 1007",
        "gradients 6007",
    ]
    for run, tensors in enumerate(few):
        np.testing.assert_array_equal(tensors["image"], many[run]["image"])
    for run in range(12):
        origin = many.origin(run)
        (alone,) = random_inputs([IMAGE], origin.seed, None, [origin.kind])
        np.testing.assert_array_equal(alone["image"], many[run]["image"])
    sets = {tensors["image"].tobytes() for tensors in many}
    assert len(sets) == 12
    assert SEED_STEP > 1


def test_kinds_that_are_not_there_or_not_drawn_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(InputError, match="magic: unknown kind of inputs; the kinds are noise, "):
        random_inputs([IMAGE], 0, None, ["magic"])
    sample(tmp_path)
    file = str(tmp_path / "dense_edgetpu.tflite")
    np.save(tmp_path / "x.npy", np.zeros((1, 96), np.uint8))
    for command in ("run", "verify"):
        given_too = [command, file, "--inputs", str(tmp_path / "x.npy"), "--inputs-kind", "noise"]
        assert run_command_line(given_too) == 2
        assert "a kind applies to generated inputs, not to given ones" in capsys.readouterr().err


def test_verify_makes_a_run_of_each_kind_and_any_of_them_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sample(tmp_path)
    arguments = ["verify", str(tmp_path / "convolution_edgetpu.tflite"), "--json"]
    for reference in ("convolution.tflite", "convolution.pte"):
        command = [*arguments, "--reference", str(tmp_path / reference)]
        assert run_command_line([*command, "--seed", "3"]) == 0
        rows = json.loads(capsys.readouterr().out)["rows"]
        assert [row["inputs_kind"] for row in rows] == [each.value for each in InputKind]
        assert [row["inputs_seed"] for row in rows] == [3 + 1000 * run for run in range(5)]
        assert len({row["sha256"] for row in rows}) == 5
        again = ["--inputs-kind", "edges", "--seed", "4003"]
        assert run_command_line([*command, *again]) == 0
        (row,) = json.loads(capsys.readouterr().out)["rows"]
        assert (row["inputs_kind"], row["sha256"]) == ("edges", rows[4]["sha256"])


def test_what_run_wrote_is_what_verify_expects(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sample(tmp_path)
    file, stored = str(tmp_path / "dense_edgetpu.tflite"), str(tmp_path / "out.npz")
    for options in ([], ["--runs", "7"], ["--inputs-kind", "edges", "--inputs-kind", "noise"]):
        assert run_command_line(["run", file, "--seed", "5", *options, "--output", stored]) == 0
        same = ["verify", file, "--seed", "5", *options, "--expected", stored]
        assert run_command_line(same) == 0, options
    capsys.readouterr()


def test_a_float_input_takes_the_range_of_the_quantize_that_follows(wild: Path) -> None:
    (model,) = open_models(wild / "darwinn" / "yamnet_spectra_in_edgetpu.tflite")
    references = References(wild / "tflite" / "yamnet_spectra_in.tflite", model)
    (port,) = references.ports
    assert port.dtype == np.float32
    assert port.limits is not None
    low, high = port.limits
    drawn = np.stack([each[port.name] for each in random_inputs([port], 0, 10)])
    assert low <= drawn.min() < drawn.max() <= high
    assert drawn.min() == np.float32(low)
    assert drawn.max() == np.float32(high)


def test_noise_passes_a_wrong_limit_and_the_mix_of_kinds_finds_it(tmp_path: Path) -> None:
    network = random_dense([96, 160, 72], 0)
    reference = tmp_path / "model.tflite"
    reference.write_bytes(uncompiled(network))
    limit = set_field("TensorMac", "low_clip", int(np.float32(-123).view(np.uint32)), index=-1)
    wrong = darwinn.dump(change(compile_network(network), 0, limit))
    assert (
        verify(wrong, reference, runs=5, inputs_kind=["noise"], proof=False).verdict is Verdict.PASS
    )
    mixed = verify(wrong, reference)
    assert mixed.verdict is Verdict.MISMATCH
    (row,) = [each for each in mixed.rows if each.verdict is Verdict.MISMATCH]
    assert row.origin == "extremes 2000"
    assert "(inputs extremes 2000)" in row.why


def test_noise_passes_a_wrong_weight_of_a_colour_model_and_the_mix_of_kinds_finds_it(
    corpus: Path,
) -> None:
    """Of noise the reddest pixel wins; a weight 4 % too small moves it on a smooth picture only."""
    reference = corpus / "tflite" / "color_red_64x64.tflite"
    (package,) = darwinn.load(corpus / "darwinn" / "color_red_64x64_edgetpu.tflite").packages
    caching = [each.type for each in package.executables].index(ExecutableType.PARAMETER_CACHING)

    def weaker(executable: Executable) -> Executable:
        weights = bytearray(executable.parameters)
        assert weights[:3] == bytes([0x80 + 127, 0x80 - 64, 0x80 - 64])
        weights[0] -= 5
        return replace(executable, parameters=bytes(weights))

    wrong = darwinn.dump(change(package, caching, weaker))
    assert (
        verify(wrong, reference, runs=5, inputs_kind=["noise"], proof=False).verdict is Verdict.PASS
    )
    assert verify(wrong, reference, proof=False).verdict is Verdict.MISMATCH


def tensor(index: int, name: str, shape: tuple[int, ...], **more: Any) -> NetworkTensor:
    scale = np.ones(1, np.float32)
    return NetworkTensor(
        index, name, shape, np.dtype(np.uint8), scale, np.zeros(1, np.int64), **more
    )


def test_channels_that_never_leave_one_value_are_counted() -> None:
    network = Network(
        "f",
        (
            tensor(0, "in", (1, 2, 2, 3)),
            tensor(1, "conv", (1, 2, 2, 4)),
            tensor(2, "flat", (1, 16)),
            tensor(3, "dense", (1, 2)),
            tensor(4, "constant", (5,), constant=np.zeros(5, np.uint8)),
            tensor(5, "of constants", (5,)),
        ),
        (
            Operator(0, "CONV_2D", (0,), (1,)),
            Operator(1, "RESHAPE", (1,), (2,)),
            Operator(2, "FULLY_CONNECTED", (2,), (3,)),
            Operator(3, "RELU", (4,), (5,)),
        ),
        (0,),
        (3,),
    )
    conv = np.zeros((1, 2, 2, 4), np.uint8)
    conv[0, 1, 0, 2] = 7
    dense = np.array([[3, 5]], np.uint8)
    values = {1: conv, 2: conv.reshape(1, 16), 3: dense, 5: np.zeros(5, np.uint8)}
    found = Excitation(network)
    found.add({"out": dense}, values)
    first = found.figures()
    assert (first.channels, first.moved, first.unchanged_outputs) == (4, 1, ())
    assert str(first) == (
        "input coverage: 25 % of 4 channels varied; least: operator 0 CONV_2D 1 of 4"
    )
    assert first.warnings[0].startswith("only 1 of 4 channels")
    found.add({"out": dense}, values | {3: dense + np.array([0, 1], np.uint8)})
    second = found.figures()
    assert (second.channels, second.moved) == (6, 2)
    assert second.unchanged_outputs == ("out",)
    assert "output out is the same in all runs" in second.warnings[1]
    conv[0, 0] = [1, 2, 3, 0]
    found.add({"out": dense + 1}, values | {3: dense + 1})
    last = found.figures()
    assert (last.channels, last.moved, last.unchanged_outputs) == (6, 5, ())
    assert last.warnings == ()


def test_without_a_reference_the_outputs_are_looked_at() -> None:
    found = Excitation()
    assert "input coverage unknown" in str(found.figures())
    for value in (0, 9):
        found.add({"a": np.array([[value, 1]], np.int8), "b": np.array([np.nan])}, {})
    figures = found.figures()
    assert (figures.source, figures.channels, figures.moved) == ("outputs", 3, 1)
    assert figures.unchanged_outputs == ("b",)
    found.add({"b": np.zeros((2, 4))}, {})
    assert found.figures().channels == 7
    assert str(figures).startswith("input coverage: 33 % of 3 channels of the outputs varied")


def test_verify_tells_how_much_of_the_network_moved(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sample(tmp_path)
    command = ["verify", str(tmp_path / "dense_edgetpu.tflite")]
    command += ["--reference", str(tmp_path / "dense.tflite")]
    assert run_command_line(command) == 0
    assert "channels varied" in capsys.readouterr().out
    assert run_command_line([*command, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["excitation"]
    assert found["source"] == "network"
    assert 0 < found["moved"] <= found["channels"]
    still = sum(each["channels"] - each["moved"] for each in found["tensors"])
    assert found["channels"] - found["moved"] == still
