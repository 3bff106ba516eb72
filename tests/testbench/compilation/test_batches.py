"""Dilated convolutions as TensorFlow has them: between operators that make batches of an image."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from darwinn_formats import tflite
from darwinn_formats.files import Content
from darwinn_formats.flatbuffer import write
from darwinn_formats.tflite import BuiltinOperator
from darwinn_formats.tflite import options as o
from darwinn_reference.tflite.chip_arithmetic import ChipArithmetic
from darwinn_reference.tflite.litert import LiteRtReference
from darwinn_testbench.compilation.compile import CompileOptions, compile_model, compile_models
from darwinn_testbench.compiler.random_networks import RandomNetwork
from darwinn_testbench.compiler.random_networks import _Value as Value
from darwinn_testbench.compiler.stages.build import Asked, build_together
from darwinn_testbench.report import Verdict

_SPACE = BuiltinOperator.SPACE_TO_BATCH_ND
_BATCH = BuiltinOperator.BATCH_TO_SPACE_ND


def moved(
    network: RandomNetwork,
    source: Value,
    kind: BuiltinOperator,
    shape: tuple[int, ...],
    block: tuple[int, int],
    amounts: list[list[int]],
) -> Value:
    """One of the two operators."""
    result = network._value(shape, source.scale, source.zero_point)
    numbers = [network._constant(np.array(each, np.int32)) for each in (block, amounts)]
    return network._operate(kind, (source.index, *numbers), result)


@pytest.mark.parametrize("seed", range(1, 4))
def test_a_convolution_of_batches_is_a_dilated_one(seed: int) -> None:
    """Of any blocks, padding and crops; depthwise, too."""
    network = RandomNetwork(seed, (1, 9, 11, 5), signed=bool(seed % 2))
    network.dilated(network.layer(network.values[0], 6, 3))
    network.dilated(network.values[-1])
    result = compile_model(Content(network.finish(), "dilated.tflite"), CompileOptions())
    assert [row.piece for row in result.report.rows] == [0] * 7
    assert result.report.verdict is Verdict.PROVED, result.report.headline


def test_both_operators_move_bytes_as_litert_does() -> None:
    network = RandomNetwork(2, (1, 5, 4, 3), signed=True)
    batches = moved(network, network.values[0], _SPACE, (6, 4, 2, 3), (2, 3), [[1, 2], [0, 2]])
    moved(network, batches, _BATCH, (1, 7, 3, 3), (2, 3), [[0, 1], [2, 1]])
    network.show(batches)
    data = network.finish()
    given = np.random.default_rng(1).integers(-128, 128, (1, 5, 4, 3), np.int8)
    expected = LiteRtReference(Content(data, "moves.tflite")).run([given])
    found = ChipArithmetic(tflite.load(data)).run([given])
    for value in network.outputs:
        np.testing.assert_array_equal(found[value.index], expected[value.index])


def _with_options(data: bytes) -> bytes:
    """The same model as converters write it that give these operators tables without fields."""
    read = tflite.load(data)
    (graph,) = read.subgraphs
    tables = {_SPACE: o.SpaceToBatchNDOptions(), _BATCH: o.BatchToSpaceNDOptions()}
    operators = [
        replace(each, builtin_options=tables.get(read.code(each).operator, each.builtin_options))
        for each in graph.operators
    ]
    return write(replace(read, subgraphs=(replace(graph, operators=tuple(operators)),)))


def test_options_without_fields_change_nothing() -> None:
    network = RandomNetwork(1, (1, 9, 11, 5), signed=True)
    network.dilated(network.values[0])
    data = _with_options(network.finish())
    result = compile_model(Content(data, "dilated.tflite"), CompileOptions(check=False))
    assert [row.piece for row in result.report.rows] == [0] * 3


def test_the_reason_is_not_that_the_operator_is_unknown() -> None:
    """The vendor's compiler does not know it, ours says what its own condition is."""
    network = RandomNetwork(4, (1, 8, 8, 4), signed=True)
    network.leaky(network.layer(network.values[0], 4, 3))
    batches = moved(network, network.values[0], _SPACE, (4, 4, 4, 4), (2, 2), [[0, 0], [0, 0]])
    network.show(batches)
    result = compile_model(Content(network.finish(), "m.tflite"), CompileOptions(check=False))
    assert "no convolution alone" in result.report.rows[-1].reason


def _strided(network: RandomNetwork, batches: Value) -> Value:
    return network.window(batches, 8, 1, (2, 2))


def _read_twice(network: RandomNetwork, batches: Value) -> Value:
    network.leaky(batches)
    return network.window(batches, 8, 1)


@pytest.mark.parametrize(
    ("layer", "shape", "reason"),
    [
        (_strided, (1, 4, 4, 8), "a stride between batches"),
        (_read_twice, (1, 8, 8, 8), "no convolution alone reads"),
        (lambda network, batches: network.leaky(batches), (1, 8, 8, 4), "no convolution alone"),
    ],
)
def test_other_batches_stay_on_the_cpu_by_name(
    layer: Callable[[RandomNetwork, Value], Value], shape: tuple[int, ...], reason: str
) -> None:
    network = RandomNetwork(4, (1, 8, 8, 4), signed=True)
    batches = moved(network, network.values[0], _SPACE, (4, 4, 4, 4), (2, 2), [[0, 0], [0, 0]])
    moved(network, layer(network, batches), _BATCH, shape, (2, 2), [[0, 0], [0, 0]])
    (built,) = build_together([Asked(tflite.load(network.finish()), "batches")])
    assert reason in built.fates[0].reason
    assert not built.data


def test_a_cut_into_segments_leaves_it_whole() -> None:
    network = RandomNetwork(5, (1, 12, 12, 4), signed=True)
    network.dilated(network.values[0])
    network.layer(network.dilated(network.values[-1]), 8, 3)
    options = CompileOptions(check=True, num_segments=2)
    for result in compile_models([Content(network.finish(), "dilated.tflite")], options):
        assert result.report.verdict is Verdict.PROVED, result.report.headline
