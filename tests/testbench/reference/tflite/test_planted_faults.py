"""A rule that is wrong would prove itself: LiteRT notices each fault that is planted in a rule.

Random operators of each kind are computed by the rules and by LiteRT. As they are, no element
differs by more than a step of the output; with a fault some do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from darwinn_formats import tflite
from darwinn_formats.tflite import BuiltinOperator as Name
from darwinn_reference.tflite import call as calls
from darwinn_reference.tflite import (
    constant_operands,
    layers,
    moves,
    operators,
    output_stage,
    reductions,
    resize,
    rules,
)
from darwinn_reference.tflite.call import Call
from darwinn_reference.tflite.chip_arithmetic import ChipArithmetic
from darwinn_reference.tflite.litert import LiteRtReference
from litert_kinds import KINDS
from one_operator import Array, f32, tensor
from tiny_models import tiny_model


@cache
def litert(name: str) -> Array:
    kind = KINDS[name]
    return LiteRtReference(kind.model).run(kind.given)[kind.output].astype(np.int64)


def farthest(name: str) -> int:
    """How far an element is from LiteRT, in steps; -1 if the rules refuse."""
    kind = KINDS[name]
    values = ChipArithmetic(tflite.load(kind.model)).run(kind.given)
    if kind.output in values.missing:
        return -1
    return int(np.abs(values[kind.output].astype(np.int64) - litert(name)).max())


@pytest.mark.parametrize("name", KINDS)
def test_the_rules_are_litert_s_but_for_a_step(name: str) -> None:
    assert 0 <= farthest(name) <= 1
    assert len(np.unique(litert(name))) > 2


# --- faults --------------------------------------------------------------------------------------

Patch = Callable[[pytest.MonkeyPatch], None]


def attribute(module: Any, name: str, make: Callable[[Any], Any]) -> Patch:
    """Another function in the place of one, made from it."""
    return lambda patched: patched.setattr(module, name, make(getattr(module, name)))


def _axis_with(**changes: Any) -> Callable[[Any], Any]:
    """Padding that is split the other way, or a dilation that is none."""

    def make(right: Any) -> Any:
        def wrong(size: int, kernel: int, stride: int, dilation: int, padding: str) -> Any:
            if "dilation" in changes:
                dilation = changes["dilation"]
            found = right(size, kernel, stride, dilation, padding)
            if "turned" in changes:
                return replace(found, before=found.after, after=found.before)
            if "stride" in changes:
                reach = found.before + found.after
                return replace(found, before=reach, after=0)
            return found

        return wrong

    return make


def _scaled(times: float) -> Callable[[Any], Any]:
    return lambda right: lambda *given, **named: right(*given, **named) * f32(times)


def _multiplied_order(right: Any) -> Any:
    """The channels of a multiplier lie apart."""

    def wrong(array: Any, repeats: int, axis: int) -> Any:
        return np.concatenate([array] * repeats, axis=axis)

    return wrong


class _Numpy:
    """NumPy with another function in the place of one."""

    def __init__(self, **others: Any) -> None:
        self._others = others

    def __getattr__(self, name: str) -> Any:
        return self._others.get(name) or getattr(np, name)


def _nearest_above(right: Any) -> Any:
    return lambda call, size, outputs: np.minimum(right(call, size, outputs) + 1, size - 1)


def _turned_weights(right: Any) -> Any:
    def wrong(call: Call, position: int, channel_axis: int) -> Any:
        found = right(call, position, channel_axis)
        return found.T if found.ndim == 2 else found[:, ::-1, ::-1]

    return wrong


def _without_points(right: Any) -> Any:
    return lambda call, position, channel_axis: call.operand(position).value.astype(np.float64)


def _unclipped(right: Any) -> Any:
    return lambda output, activation="NONE": right(output, "NONE")


def _counts_all(right: Any) -> Any:
    """The border of a pool counts as the image."""

    def wrong(x: Any, height: Any, width: Any, value: int = 0) -> Any:
        return right(x, height, width, 1 if x.shape[-1] == 1 else value)

    return wrong


FAULTS: Mapping[str, tuple[str, Patch]] = {
    "padding is split the other way": (
        "convolution",
        attribute(layers, "_axis", _axis_with(turned=True)),
    ),
    "all padding is before the image": (
        "max pool",
        attribute(layers, "_axis", _axis_with(stride=True)),
    ),
    "dilation is ignored": ("dilated", attribute(layers, "_axis", _axis_with(dilation=1))),
    "kernels are turned": ("convolution", attribute(layers, "_weights", _turned_weights)),
    "kernels of a spread image are turned": (
        "transposed",
        attribute(layers, "_weights", _turned_weights),
    ),
    "a matrix is transposed": ("dense", attribute(layers, "_weights", _turned_weights)),
    "the weights' zero point is ignored": (
        "unsigned",
        attribute(layers, "_weights", _without_points),
    ),
    "the bias is dropped": (
        "convolution",
        attribute(layers, "_bias", lambda right: lambda call, k, channels: np.zeros(channels)),
    ),
    "the bias of a spread image is dropped": (
        "transposed",
        attribute(layers, "_bias", lambda right: lambda call, k, channels: np.zeros(channels)),
    ),
    "the bound of RELU6 is none": (
        "convolution",
        attribute(output_stage, "clip_bounds", _unclipped),
    ),
    "multiplied channels lie apart": (
        "depthwise",
        lambda patched: patched.setattr(layers, "np", _Numpy(repeat=_multiplied_order(None))),
    ),
    "scales of channels are those of the first": (
        "convolution",
        attribute(
            layers,
            "conversion_factor",
            lambda right: lambda s, o, w=None: right(s, o, None if w is None else w[:1]),
        ),
    ),
    "the border of a pool counts": ("average pool", attribute(layers, "_padded", _counts_all)),
    "a pool's border wins": (
        "max pool",
        attribute(
            layers,
            "_padded",
            lambda right: lambda x, height, width, value=0: right(x, height, width, 127),
        ),
    ),
    "a mean over another axis": (
        "mean",
        attribute(Call, "constant", lambda right: lambda call, k: right(call, k) % 2 + 1),
    ),
    "a greatest over another axis": (
        "greatest",
        attribute(reductions, "axes_of", lambda right: lambda call: (2,)),
    ),
    "a mean is not divided": (
        "mean",
        attribute(layers, "_mean_factor", _scaled(2)),
    ),
    "weights of an addition are exchanged": (
        "addition",
        attribute(
            operators,
            "addition_weights",
            lambda right: (
                lambda one, other, output: (
                    *right(one, other, output)[1::-1],
                    right(one, other, output)[2],
                )
            ),
        ),
    ),
    "a difference is a sum": (
        "difference",
        lambda patched: patched.setitem(rules.RULES, "SUB", rules.RULES["ADD"]),
    ),
    "a product has the scale of one operand": (
        "product",
        attribute(
            operators,
            "product_factor",
            lambda right: lambda call, left, other: right(call, left, left),
        ),
    ),
    "a constant term is in its own steps": (
        "constant term",
        attribute(
            constant_operands, "constant_term", lambda right: lambda levels, scale, unit: levels
        ),
    ),
    "a concatenation along another axis": (
        "concatenation",
        lambda patched: patched.setattr(
            operators,
            "np",
            _Numpy(
                concatenate=lambda parts, axis: np.concatenate(parts, axis=1).reshape(1, 4, 8, 4)
            ),
        ),
    ),
    "what is padded is 0": (
        "padding",
        lambda patched: patched.setattr(
            moves,
            "np",
            _Numpy(pad=lambda value, amounts, **_: np.pad(value, amounts)),
        ),
    ),
    "an image begins at the corner": (
        "bilinear",
        attribute(
            resize,
            "_step",
            lambda right: lambda call, size, outputs: (right(call, size, outputs)[0], 0),
        ),
    ),
    "the steps of a resize are half as long": (
        "bilinear",
        attribute(resize, "_whole", lambda right: lambda call, step: right(call, step) // 2),
    ),
    "the nearest pixel is the next": ("nearest", attribute(resize, "_nearest", _nearest_above)),
    "the zero point of the result is not added": (
        "quantisation",
        attribute(
            output_stage,
            "requantise",
            lambda right: (
                lambda total, factor, bounds, point, dtype: right(total, factor, bounds, 0, dtype)
            ),
        ),
    ),
    "the zero point of operands is ignored": (
        "addition",
        attribute(
            calls.Operand,
            "centred",
            lambda right: lambda operand, dtype=np.int64: operand.value.astype(dtype),
        ),
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_a_rule_is_noticed(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, plant = FAULTS[fault]
    litert(name)
    plant(monkeypatch)
    assert farthest(name) > 1


def test_halves_that_go_up_are_noticed_at_ties(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a step alone, as LiteRT's: only values of the chip tell these apart."""
    tensors = [tensor(0, (1, 256), "u1", 0.5), tensor(1, (1, 256), "u1", 1.0)]
    model = tiny_model(Name.QUANTIZE, tensors, (0,), (1,))
    every = np.arange(256, dtype=np.uint8)[None]
    right = ChipArithmetic(tflite.load(model)).run([every])[1].astype(int)
    assert right.tolist() == [[round(each / 2) for each in range(256)]]

    def upwards(values: Any, out: Any) -> None:
        np.floor(values + f32(0.5), out=out)

    monkeypatch.setattr(output_stage, "np", _Numpy(rint=upwards))
    wrong = ChipArithmetic(tflite.load(model)).run([every])[1].astype(int)
    assert np.count_nonzero(wrong - right) == 64
