"""Each condition on an operator that keeps it, and on one that does not."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from darwinn_formats import tflite
from darwinn_formats.tflite import (
    ActivationFunctionType,
    Conv2DOptions,
    TensorType,
)
from darwinn_formats.tflite.enums import WeightsFormat
from darwinn_formats.tflite.options import (
    ConcatenationOptions,
    FullyConnectedOptions,
    PackOptions,
    Pool2DOptions,
    StridedSliceOptions,
)
from darwinn_testbench.explain.conditions import (
    OPERATOR_CONDITIONS,
    UNSUPPORTED,
    WRONG_TYPE,
    objections,
)
from darwinn_testbench.explain.evidence import EVIDENCE
from darwinn_testbench.explain.graph import graph_of
from tflite_graphs import Constants, ints, model, tensor

FLOAT, INT8, INT32 = TensorType.FLOAT32, TensorType.INT8, TensorType.INT32
PICTURE = (1, 8, 8, 4)
RELU = ActivationFunctionType.RELU
WEIGHTS = np.ones((4, 1, 1, 4), np.int8)


@dataclass
class One:
    """A model of one operator ``name``: shapes of what it reads and gives, its constants."""

    name: str
    reads: tuple[tuple[int, ...], ...]
    gives: tuple[tuple[int, ...], ...] = (PICTURE,)
    constants: Constants = field(default_factory=dict)
    options: Any = None
    kind: TensorType = INT8
    given: TensorType | None = None
    signature: tuple[int, ...] = ()
    order: tuple[str, ...] = ()

    def found(self) -> list[tuple[str, str, bool]]:
        """Name and words of what conditions find of it, and whether it is sure."""
        inputs = [f"in{k}" for k in range(len(self.reads))]
        outputs = [f"out{k}" for k in range(len(self.gives))]
        tensors = [
            tensor(name, shape, self.kind, self.signature)
            for name, shape in zip(inputs, self.reads, strict=True)
        ]
        tensors += [
            tensor(name, shape, self.given or self.kind)
            for name, shape in zip(outputs, self.gives, strict=True)
        ]
        read = self.order or (*inputs, *self.constants)
        data = model(
            tensors, [(self.name, read, outputs)], outputs, self.constants, {0: self.options}
        )
        (node,) = graph_of(tflite.load(data)).nodes
        return [(each.condition.name, each.text, each.condition.sure) for each in objections(node)]


def conv(**changed: Any) -> One:
    constants: Constants = {"weights": WEIGHTS, "bias": ints(0, 0, 0, 0)}
    usual = One("CONV_2D", (PICTURE,), constants=constants, options=Conv2DOptions())
    return replace(usual, **changed)


PAIRS: dict[str, tuple[One, One, str]] = {
    "type": (conv(kind=FLOAT), conv(), "float32 data"),
    "wider": (One("ADD", (PICTURE,) * 2, kind=INT32), One("ADD", (PICTURE,) * 2), "int32 data"),
    "batch": (
        conv(reads=((2, 8, 8, 4),), gives=((2, 8, 8, 4),)),
        conv(reads=((1, 8, 8, 4),)),
        "batch 2",
    ),
    "five dimensions": (
        One("ADD", ((2, 1, 8, 8, 4),) * 2),
        One("ADD", ((1, 1, 8, 8, 4),) * 2),
        "5 dimensions",
    ),
    "dynamic": (
        conv(signature=(1, -1, -1, 4)),
        conv(signature=(-1, 8, 8, 4)),
        "dynamic shape",
    ),
    "weights": (
        One("CONV_2D", (PICTURE, (4, 1, 1, 4)), constants={"bias": ints(0, 0, 0, 0)}),
        conv(),
        "parameters are computed",
    ),
    "dilation": (
        conv(options=Conv2DOptions(dilation_h_factor=2)),
        conv(options=Conv2DOptions(dilation_h_factor=2, dilation_w_factor=2)),
        "dilation 2x1",
    ),
    "pool": (
        One("MAX_POOL_2D", (PICTURE,), options=Pool2DOptions(fused_activation_function=RELU)),
        One("MAX_POOL_2D", (PICTURE,), options=Pool2DOptions()),
        "fused RELU",
    ),
    "constant part": (
        One("CONCATENATION", (PICTURE,), constants={"part": np.ones(PICTURE, np.int8)}),
        One("CONCATENATION", (PICTURE,), constants={"part": np.zeros(PICTURE, np.int8)}),
        "a constant that is not 0",
    ),
    "several parts": (
        One("CONCATENATION", (PICTURE,) * 2, constants={"part": np.zeros(PICTURE, np.int8)}),
        One("CONCATENATION", (PICTURE,) * 3, options=ConcatenationOptions()),
        "a constant among several inputs",
    ),
    "weights format": (
        One(
            "FULLY_CONNECTED",
            ((1, 4),),
            ((1, 4),),
            {"weights": np.ones((4, 4), np.int8)},
            FullyConnectedOptions(weights_format=WeightsFormat.SHUFFLED4X16INT8),
        ),
        One("FULLY_CONNECTED", ((1, 4),), ((1, 4),), {"weights": np.ones((4, 4), np.int8)}),
        "weights SHUFFLED4X16INT8",
    ),
    "result": (
        One("FULLY_CONNECTED", ((5, 4),), ((5, 4),), {"weights": np.ones((4, 4), np.int8)}),
        One("FULLY_CONNECTED", ((1, 4),), ((1, 4),), {"weights": np.ones((4, 4), np.int8)}),
        "result of 2 dimensions",
    ),
    "channels": (
        One("MEAN", ((1, 8, 8, 6),), constants={"axes": ints(3)}),
        One("MEAN", ((1, 8, 8, 8),), constants={"axes": ints(-1)}),
        "over 6 channels",
    ),
    "large mean": (
        One("MEAN", ((1, 256, 128, 4),), ((1, 4),), {"axes": ints(1, 2)}),
        One("MEAN", ((1, 7, 7, 1280),), ((1, 1280),), {"axes": ints(1, 2)}),
        "means of 32,768 elements",
    ),
    "batch axis": (
        One("REDUCE_MAX", (PICTURE,), constants={"axes": ints(0)}),
        One("REDUCE_MAX", (PICTURE,), constants={"axes": ints(1, 2)}),
        "along the batch",
    ),
    "packed": (
        One("PACK", ((8, 8, 4),) * 1, options=PackOptions(1, 0)),
        One("PACK", ((1, 8, 4),), options=PackOptions(1, 1)),
        "along the batch",
    ),
    "padded": (
        One("PAD", (PICTURE,), constants={"sizes": ints((0, 1), (0, 0), (0, 0), (0, 0))}),
        One("PAD", (PICTURE,), constants={"sizes": ints((0, 0), (1, 1), (1, 1), (2, 2))}),
        "pads the batch",
    ),
    "alpha": (
        One("PRELU", (PICTURE,), constants={"alpha": np.ones((1, 8, 8, 4), np.int8)}),
        One("PRELU", (PICTURE,), constants={"alpha": np.ones((1, 1, 4), np.int8)}),
        "alpha of several dimensions",
    ),
    "split": (
        One("SPLIT", (PICTURE,), (PICTURE,) * 2, {"axis": ints(0)}, order=("axis", "in0")),
        One("SPLIT", (PICTURE,), (PICTURE,) * 2, {"axis": ints(2)}, order=("axis", "in0")),
        "splits the batch",
    ),
    "split into one": (
        One("SPLIT", (PICTURE,), (PICTURE,) * 2, {"axis": ints(0)}, order=("axis", "in0")),
        One("SPLIT", (PICTURE,), (PICTURE,), {"axis": ints(0)}, order=("axis", "in0")),
        "splits the batch",
    ),
    "strides": (
        One(
            "STRIDED_SLICE",
            (PICTURE,),
            constants={"a": ints(0, 0), "b": ints(1, 8), "c": ints(1, 2)},
        ),
        One(
            "STRIDED_SLICE",
            (PICTURE,),
            constants={"a": ints(0, 0), "b": ints(1, 8), "c": ints(1, 1)},
        ),
        "strides 1x2",
    ),
    "new axes": (
        One(
            "STRIDED_SLICE",
            (PICTURE,),
            constants={"a": ints(0), "b": ints(1), "c": ints(1)},
            options=StridedSliceOptions(new_axis_mask=1),
        ),
        One(
            "STRIDED_SLICE",
            (PICTURE,),
            constants={"a": ints(0), "b": ints(1), "c": ints(1)},
            options=StridedSliceOptions(begin_mask=1),
        ),
        "a mask for new axes",
    ),
    "softmax": (
        One("SOFTMAX", ((1, 6, 4),)),
        One("SOFTMAX", ((1, 1, 24),)),
        "input of 2 dimensions",
    ),
    "long softmax": (
        One("SOFTMAX", ((1, 16_001),)),
        One("SOFTMAX", ((1, 16_000),)),
        "16,001 elements",
    ),
    "enlarged": (
        One("RESIZE_BILINEAR", ((1, 1, 1, 4),), ((1, 33, 33, 4),), {"size": ints(33, 33)}),
        One("RESIZE_BILINEAR", ((1, 2, 2, 4),), ((1, 4, 4, 4),), {"size": ints(4, 4)}),
        "enlarged 33 times",
    ),
    "large": (
        One(
            "RESIZE_NEAREST_NEIGHBOR",
            ((1, 512, 512, 3),),
            ((1, 1024, 1024, 3),),
            {"size": ints(1024, 1024)},
        ),
        One(
            "RESIZE_NEAREST_NEIGHBOR",
            ((1, 64, 64, 32),),
            ((1, 128, 128, 32),),
            {"size": ints(128, 128)},
        ),
        "result of 3,145,728 bytes",
    ),
    "transposed": (
        One("TRANSPOSE", ((1, 20, 20, 256),), ((1, 256, 20, 20),), {"p": ints(0, 3, 1, 2)}),
        One("TRANSPOSE", ((1, 20, 20, 144),), ((1, 144, 20, 20),), {"p": ints(0, 3, 1, 2)}),
        "102,400 bytes transposed",
    ),
    "floats": (
        One("QUANTIZE", (PICTURE,), kind=FLOAT, given=INT8),
        One("QUANTIZE", (PICTURE,), kind=TensorType.UINT8, given=INT8),
        "float32 data",
    ),
}


@pytest.mark.parametrize("case", PAIRS)
def test_a_condition_finds_what_is_against_it_and_nothing_else(case: str) -> None:
    against, within, words = PAIRS[case]
    found = against.found()
    assert words in [text for _, text, sure in found if sure], found
    assert [text for _, text, sure in within.found() if sure] == []


@pytest.mark.parametrize(("pixels", "broadcast"), [(1, True), (2, False)])
def test_an_enlarged_pixel_is_a_broadcast(pixels: int, broadcast: bool) -> None:
    """It can be left out; steps of 2 would make the same values in many operators."""
    tensors = [tensor("in", (1, pixels, pixels, 4), INT8), tensor("out", (1, 66, 66, 4), INT8)]
    data = model(
        tensors,
        [("RESIZE_BILINEAR", ("in", "size"), ["out"])],
        ["out"],
        {"size": ints(66, 66)},
        {0: None},
    )
    (node,) = graph_of(tflite.load(data)).nodes
    first = objections(node)[0]
    assert first.condition.sure
    assert ("broadcasts" in first.condition.advice) == broadcast
    assert ("steps of 2" in first.condition.advice) != broadcast


@pytest.mark.parametrize(
    ("one", "words"),
    [
        (
            One("RESIZE_BILINEAR", ((1, 2, 2, 4),), ((1, 8, 8, 4),), {"size": ints(8, 8)}),
            "enlarged 4 times?",
        ),
        (
            One("TRANSPOSE", ((1, 24, 24, 144),), ((1, 144, 24, 24),), {"p": ints(0, 3, 1, 2)}),
            "82,944 bytes transposed?",
        ),
        (
            One("RESHAPE", ((1, 40, 40, 144),), ((1, 1600, 144),), {"shape": ints(1, 1600, 144)}),
            "230,400 bytes reshaped?",
        ),
        (One("MEAN", ((1, 8, 8, 8),), constants={"axes": ints(-1)}), "over channels?"),
        (
            One("MEAN", ((1, 128, 128, 4),), ((1, 4),), {"axes": ints(1, 2)}),
            "means of 16,384 elements?",
        ),
        (
            One("MUL", ((1, 1024, 1024, 16),) * 2, ((1, 1024, 1024, 16),)),
            "tensor of 16,777,216 bytes?",
        ),
        (
            One("PAD", (PICTURE,), constants={"sizes": ints((0, 0), (1, 1), (1, 1), (2, 2))}),
            "pads channels?",
        ),
        (One("SQUEEZE", ((1, 5, 1, 10),), ((1, 5, 10),)), "drops inner dimensions?"),
        (One("SUM", (PICTURE,), constants={"axes": ints(1, 2)}), "not seen on the chip?"),
    ],
)
def test_where_nothing_at_hand_says_it_there_is_a_doubt(one: One, words: str) -> None:
    assert [(text, sure) for _, text, sure in one.found()] == [(words, False)]


@pytest.mark.parametrize(
    "one",
    [
        One("MEAN", ((1, 8, 8, 6),), constants={"axes": ints(1, 2)}),
        # Of 98,304 bytes and more: the parts of issue 461, and what public executables have.
        One("MEAN", ((1, 64, 128, 3),), ((1, 3),), {"axes": ints(1, 2)}),
        One("MEAN", ((1, 64, 64, 72),), ((1, 72),), {"axes": ints(1, 2)}),
        One("MEAN", ((1, 32, 32, 480),), ((1, 1, 1, 480),), {"axes": ints(1, 2)}),
        One("PAD", (PICTURE,), constants={"sizes": ints((0, 0), (1, 1), (1, 1), (0, 0))}),
        One("SQUEEZE", ((1, 1, 1, 10),), ((1, 10),)),
        One("SQUEEZE", ((1, 1, 5, 10),), ((1, 5, 10),)),
        One("SQUEEZE", ((),), ((),)),
        One("ADD", (PICTURE,) * 2),
    ],
)
def test_what_the_table_of_2019_has_leaves_no_doubt(one: One) -> None:
    assert one.found() == []


@pytest.mark.parametrize("name", ["ARG_MAX", "GATHER", "HARD_SWISH"])
def test_what_is_not_in_the_table_is_not_supported(name: str) -> None:
    assert One(name, (PICTURE,)).found() == [("operator", "not supported", True)]


def test_a_custom_operator_is_the_cpus_even_with_a_builtin_name_of_the_table() -> None:
    data = model([tensor("a", PICTURE), tensor("b", PICTURE)], [("Add", ["a"], ["b"])], ["b"])
    (node,) = graph_of(tflite.load(data)).nodes
    (found,) = objections(node)
    assert (found.text, found.condition.message) == ("a custom operator", UNSUPPORTED)


def test_unsupported_operators_on_floats_are_called_as_the_compiler_calls_them() -> None:
    shape = (1, 4)
    tensors = [tensor("a", shape), tensor("b", shape, FLOAT)]
    (node,) = graph_of(tflite.load(model(tensors, [("DEQUANTIZE", ["a"], ["b"])], ["b"]))).nodes
    assert objections(node)[0].condition.message == WRONG_TYPE


def test_bytes_without_a_scale_are_not_quantised() -> None:
    bare = tflite.Tensor((1, 4), INT8, 0, "a")
    data = model([bare, tensor("b", (1, 4))], [("LOGISTIC", ["a"], ["b"])], ["b"])
    (node,) = graph_of(tflite.load(data)).nodes
    assert [each.text for each in objections(node)] == ["8 bits without a scale"]


def test_every_operator_of_the_table_is_one() -> None:
    assert set(OPERATOR_CONDITIONS) <= set(tflite.BuiltinOperator.__members__)
    assert set(OPERATOR_CONDITIONS) == set(EVIDENCE)
    for conditions in OPERATOR_CONDITIONS.values():
        assert all(each.advice and each.source and each.message for each in conditions)
