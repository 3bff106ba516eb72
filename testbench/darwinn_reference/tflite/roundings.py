"""Where the oracle rounds factors, bounds and biases, and which other rules are ruled out.

A neighbour of a rule is the same formula in another order of rounding. ``told_apart_by`` names
executables that hold what the rule gives and not what the neighbour gives, ``bytes_of`` those
whose outputs equal the oracle by the rule alone; a neighbour without either is open. Computed anew
from the executables by ``tests/testbench/reference/tflite/test_roundings_corpus.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from darwinn_reference.tflite.factors import (
    MAXIMUM_WEIGHT,
    ROOT_STEPS,
    Factors,
    addition_weights,
    averaging_factor,
    constant_term,
    conversion_factor,
    fraction,
    root_unit,
    staged_factors,
)
from darwinn_reference.tflite.graph import NetworkTensor
from darwinn_reference.tflite.output_stage import bound, reciprocal

F32, F64 = np.float32, np.float64


@dataclass(frozen=True, slots=True, eq=False)
class Quantities:
    """The numbers that a rounding starts from.

    ``other`` are the scales of weights or of the second operand; ``levels`` the integers of a
    constant, less its zero point; ``extents`` the elements of a window or mean along each axis;
    ``real`` the bound of an activation.
    """

    source: np.float32
    output: NetworkTensor
    other: Factors = field(default_factory=lambda: np.ones(1, np.float32))
    levels: NDArray[np.int64] = field(default_factory=lambda: np.ones(1, np.int64))
    extents: tuple[int, ...] = (1,)
    real: float = 0.0

    @property
    def target(self) -> np.float32:
        """The output's scale."""
        return np.float32(self.output.scale[0])

    @property
    def inverse(self) -> np.float32:
        """float32(1 / s_out)."""
        return reciprocal(self.target)

    @property
    def elements(self) -> np.float32:
        """Elements of a window or mean."""
        return np.float32(int(np.prod(self.extents, dtype=np.int64)))

    @property
    def weights(self) -> tuple[np.float32, np.float32]:
        """The weights of an addition."""
        first, second, _ = addition_weights(self.source, F32(self.other[0]), self.output)
        return F32(first), F32(second)


Formula = Callable[[Quantities], Factors | np.float32]


class Field(StrEnum):
    """Where a program holds the number."""

    FACTOR = "factor"
    BOUND = "bound"
    BIAS = "bias"
    STAGES = "stages"


@dataclass(frozen=True, slots=True, eq=False)
class Neighbour:
    """Another order of rounding, and the files that rule it out: by numbers, or by bytes.

    An ``elder`` compiler rounded so: executables of its time hold this number.
    """

    text: str
    formula: Formula
    told_apart_by: tuple[str, ...] = ()
    bytes_of: tuple[str, ...] = ()
    elder: str = ""

    @property
    def open(self) -> bool:
        """No file rules it out."""
        return not self.told_apart_by and not self.bytes_of


@dataclass(frozen=True, slots=True, eq=False)
class Rounding:
    """One number that is rounded, by the rule of the oracle, and the rules beside it."""

    name: str
    text: str
    formula: Formula
    neighbours: tuple[Neighbour, ...]
    held_as: Field = Field.FACTOR

    @property
    def open_against(self) -> tuple[Neighbour, ...]:
        """Neighbours that no file tells from the rule."""
        return tuple(each for each in self.neighbours if each.open)

    def rivals(self, given: Quantities) -> dict[str, Factors]:
        """The numbers of open neighbours and of elder compilers, by their texts, where they differ
        from that of the rule."""
        by_rule = values(self.formula, given)
        others = (each for each in self.neighbours if each.open or each.elder)
        found = {each.text: values(each.formula, given) for each in others}
        return {text: each for text, each in found.items() if not np.array_equal(each, by_rule)}


def values(formula: Formula, given: Quantities) -> Factors:
    """What a formula gives, as an array of float32."""
    with np.errstate(all="ignore"):
        return np.atleast_1d(np.asarray(formula(given), np.float32))


def _exactly(number: NDArray[np.float64] | np.float64) -> Factors:
    return np.asarray(number).astype(np.float32)


_CLASSIFIERS = ("mobilenet_v1_0.25_128_quant", "mobilenet_v2_1.0_224_quant", "yamnet_spectra_in")

PRODUCTS = Rounding(
    "products",
    "(s_in * s_w) * (1 / s_out)",
    lambda q: conversion_factor(q.source, q.output, q.other),
    (
        Neighbour("(s_in * s_w) / s_out", lambda q: q.source * q.other / q.target, _CLASSIFIERS),
        Neighbour(
            "s_in * (s_w * (1 / s_out))", lambda q: q.source * (q.other * q.inverse), _CLASSIFIERS
        ),
        Neighbour(
            "(s_in * (1 / s_out)) * s_w", lambda q: q.source * q.inverse * q.other, _CLASSIFIERS
        ),
        Neighbour("(s_in / s_out) * s_w", lambda q: q.source / q.target * q.other, _CLASSIFIERS),
        Neighbour(
            "rounded once",
            lambda q: _exactly(F64(q.source) * q.other.astype(F64) / F64(q.target)),
            _CLASSIFIERS,
        ),
        Neighbour(
            "s_in * s_w * float32(1 / s_out), rounded once",
            lambda q: _exactly(F64(q.source) * q.other.astype(F64) * F64(q.inverse)),
            _CLASSIFIERS,
        ),
    ),
)
"""Sums of products: layers with weights, and products of two tensors."""

CONSTANT_FACTOR = Rounding(
    "constant factors",
    "(s_in * (c * s_c)) * (1 / s_out)",
    lambda q: conversion_factor(q.source, q.output, q.levels.astype(F32) * q.other),
    (
        Neighbour(
            "s_in * c * s_c rounded once, * (1 / s_out)",
            lambda q: _exactly(F64(q.source) * q.levels * F64(q.other[0])) * q.inverse,
            ("classifier_2022",),
        ),
        Neighbour(
            "c * ((s_in * s_c) * (1 / s_out))",
            lambda q: q.levels.astype(F32) * (q.source * q.other * q.inverse),
            ("classifier_2022",),
        ),
        Neighbour(
            "(s_in * (c * s_c)) / s_out",
            lambda q: q.source * (q.levels.astype(F32) * q.other) / q.target,
            ("classifier_2022",),
        ),
        Neighbour(
            "rounded once",
            lambda q: _exactly(F64(q.source) * q.levels * F64(q.other[0]) / F64(q.target)),
            ("classifier_2022",),
        ),
    ),
)
"""A constant of one value, or of one for each channel, is the scale of a channel."""

CONSTANT_TERM = Rounding(
    "constant terms",
    "round(c * (s_c / s_in)), in float64",
    lambda q: constant_term(q.levels, F32(q.other[0]), q.source),
    (
        Neighbour(
            "round((c * s_c) * (1 / s_in))",
            lambda q: np.rint(q.levels.astype(F32) * q.other * reciprocal(q.source)),
            bytes_of=("movenet_single_pose_lightning_ptq",),
        ),
        Neighbour(
            "round((c * s_c) / s_in)",
            lambda q: np.rint(q.levels.astype(F32) * q.other / q.source),
            bytes_of=("movenet_single_pose_lightning_ptq",),
        ),
        Neighbour(
            "round(c * (s_c / s_in))",
            lambda q: np.rint(q.levels.astype(F32) * (q.other / q.source)),
        ),
        Neighbour(
            "halves rounded up",
            lambda q: np.floor(q.levels * (float(q.other[0]) / float(q.source)) + 0.5),
        ),
    ),
    Field.BIAS,
)
"""A constant term is a bias in steps of the input."""


def _added(q: Quantities, weights: tuple[int, int]) -> np.float32:
    return q.source / F32(weights[0]) * q.inverse


def _ratio(q: Quantities) -> Fraction:
    return Fraction(float(q.source)) / Fraction(float(q.other[0]))


_ADDERS = ("deeplabv3_mnv2_dm05_pascal_quant", "mobilenet_v2_2019_retrained", "thermal_face_automl")

ADDITION = Rounding(
    "additions",
    "(s_a / w_a) * (1 / s_out)",
    lambda q: addition_weights(q.source, F32(q.other[0]), q.output)[2],
    (
        Neighbour(
            "w_a / w_b for float32(s_a / s_b)",
            lambda q: _added(q, fraction(Fraction(float(q.source / q.other[0])))),
            _ADDERS,
        ),
        Neighbour(
            "weights of 16 bits without sign",
            lambda q: _added(q, fraction(_ratio(q), 2 * MAXIMUM_WEIGHT + 1)),
            _ADDERS,
        ),
        Neighbour(
            "weights of at most 32766",
            lambda q: _added(q, fraction(_ratio(q), MAXIMUM_WEIGHT - 1)),
            ("keras_lstm_mnist_ptq",),
        ),
        Neighbour(
            "(s_b / w_b) * (1 / s_out)",
            lambda q: q.other / q.weights[1] * q.inverse,
            ("mobilenet_v2_2019_retrained", "movenet_single_pose_lightning_ptq"),
        ),
        Neighbour("(s_a / w_a) / s_out", lambda q: q.source / q.weights[0] / q.target, _ADDERS),
        Neighbour(
            "(s_a * (1 / w_a)) * (1 / s_out)",
            lambda q: q.source * reciprocal(q.weights[0]) * q.inverse,
            _ADDERS,
        ),
        Neighbour(
            "(s_a * (1 / s_out)) / w_a", lambda q: q.source * q.inverse / q.weights[0], _ADDERS
        ),
        Neighbour("(s_a / s_out) / w_a", lambda q: q.source / q.target / q.weights[0], _ADDERS),
        Neighbour("s_a / (w_a * s_out)", lambda q: q.source / (q.weights[0] * q.target), _ADDERS),
        Neighbour(
            "rounded once",
            lambda q: _exactly(F64(q.source) / F64(q.weights[0]) / F64(q.target)),
            _ADDERS,
        ),
    ),
)
"""Sums of two tensors."""

REQUANTISATION = Rounding(
    "requantisations",
    "s_in * (1 / s_out)",
    lambda q: conversion_factor(q.source, q.output),
    (
        Neighbour("s_in / s_out", lambda q: q.source / q.target),
        Neighbour(
            "1 / (s_out / s_in)",
            lambda q: F32(1) / (q.target / q.source),
            ("deeplab_mobilenet_edgetpu_slim_cityscapes_quant", "yolov8n_full_integer_quant"),
        ),
    ),
)
"""A change of the scale alone; with equal scales the factor is 1, whatever the rule."""

POOL = Rounding(
    "average pools",
    "(s * (1 / n)) * (1 / s)",
    lambda q: conversion_factor(q.source, q.output, np.atleast_1d(reciprocal(q.elements))),
    (
        Neighbour(
            "(s / n) * (1 / s)",
            lambda q: q.source / q.elements * q.inverse,
            ("mobilenet_v1_1.0_224_quant_embedding_extractor", "mobilenet_v2_1.0_224_quant"),
        ),
        Neighbour(
            "(s * (1 / s)) * (1 / n)",
            lambda q: q.source * q.inverse * reciprocal(q.elements),
            ("deeplabv3_mnv2_dm05_pascal_quant", "mobilenet_v1_0.75_192_quant"),
        ),
        Neighbour(
            "s * ((1 / n) * (1 / s))",
            lambda q: q.source * (reciprocal(q.elements) * q.inverse),
            (
                "deeplab_mobilenet_edgetpu_slim_cityscapes_quant",
                "deeplabv3_mnv2_dm05_pascal_quant",
            ),
        ),
        Neighbour(
            "(s * (1 / n)) / s",
            lambda q: q.source * reciprocal(q.elements) / q.target,
            ("mobilenet_v1_0.75_192_quant",),
        ),
        Neighbour(
            "(s / n) / s",
            lambda q: q.source / q.elements / q.target,
            ("mobilenet_v1_0.75_192_quant",),
        ),
        Neighbour(
            "1 / n",
            lambda q: reciprocal(q.elements),
            ("deeplabv3_mnv2_dm05_pascal_quant", "mobilenet_v1_0.75_192_quant"),
            elder="mobilenet_v1_0.75_192_quant of google-coral/edgetpu",
        ),
    ),
)
"""Averages of a window of n elements."""

MEAN = Rounding(
    "means",
    "(s_in / s_out) / n",
    lambda q: averaging_factor(q.source, q.target, int(q.elements)),
    (
        Neighbour(
            "(s_in * (1 / s_out)) * (1 / n)",
            lambda q: q.source * q.inverse * reciprocal(q.elements),
            ("thermal_face_automl",),
        ),
        Neighbour(
            "(s_in * (1 / s_out)) / n",
            lambda q: q.source * q.inverse / q.elements,
            ("thermal_face_automl",),
        ),
        Neighbour(
            "(s_in * (1 / n)) * (1 / s_out)",
            lambda q: q.source * reciprocal(q.elements) * q.inverse,
            ("mobilenet_v2_2019_retrained", "thermal_face_automl"),
        ),
        Neighbour(
            "(s_in / n) / s_out",
            lambda q: q.source / q.elements / q.target,
            ("thermal_face_automl",),
        ),
        Neighbour(
            "rounded once",
            lambda q: _exactly(F64(q.source) / F64(q.target) / F64(q.elements)),
            ("yamnet_spectra_in",),
        ),
        Neighbour(
            "(s_in / s_out) * (1 / n)", lambda q: q.source / q.target * reciprocal(q.elements)
        ),
    ),
)
"""Means in one stage."""


def _pair(first: Factors | np.float32, second: Factors | np.float32) -> Factors:
    return np.array([first, second], np.float32).reshape(-1)


def _halves(q: Quantities) -> tuple[np.float32, np.float32, np.float32]:
    """n of both axes and the step between them."""
    first, second = (F32(each) for each in q.extents)
    return first, second, F32(q.source / first)


def _stages_by(
    conversion: Callable[[np.float32, np.float32], np.float32],
    sharing: Callable[[np.float32, np.float32], np.float32],
) -> Formula:
    def formula(q: Quantities) -> Factors:
        first, second, step = _halves(q)
        return _pair(
            sharing(conversion(q.source, step), first), sharing(conversion(step, q.target), second)
        )

    return formula


def _divided(number: np.float32, by: np.float32) -> np.float32:
    return number / by


def _multiplied(number: np.float32, by: np.float32) -> np.float32:
    return number * reciprocal(by)


STAGED_MEAN = Rounding(
    "means in two stages",
    "s = s_in / n_1: (s_in / s) / n_1 and (s / s_out) / n_2",
    lambda q: _pair(*staged_factors(q.source, q.target, (q.extents[0], q.extents[1]))),
    (
        Neighbour(
            "(s_in / s) * (1 / n_1) and (s / s_out) * (1 / n_2)",
            _stages_by(_divided, _multiplied),
            ("thermal_face_automl",),
        ),
        Neighbour(
            "(s_in * (1 / s)) / n_1 and (s * (1 / s_out)) / n_2",
            _stages_by(_multiplied, _divided),
            ("thermal_face_automl",),
        ),
        Neighbour(
            "1 and (s_in / s_out) / (n_1 * n_2)",
            lambda q: _pair(F32(1), averaging_factor(q.source, q.target, int(q.elements))),
            ("thermal_face_automl",),
        ),
        Neighbour(
            "1 and (1 / n_1) * (1 / n_2)",
            lambda q: _pair(F32(1), reciprocal(F32(q.extents[0])) * reciprocal(F32(q.extents[1]))),
            ("thermal_face_automl",),
        ),
    ),
    Field.STAGES,
)
"""Means of which the program adds up one axis after the other."""


UNIT_VECTOR = Rounding(
    "unit vectors",
    "u = (1 / s_in) / 65535: (s_in * u) * (1 / s_out)",
    lambda q: conversion_factor(q.source, q.output, np.atleast_1d(root_unit(q.source))),
    (
        Neighbour(
            "u = 1 / (65535 * s_in)",
            lambda q: q.source * reciprocal(ROOT_STEPS * q.source) * q.inverse,
            ("function_7_v1",),
        ),
        Neighbour(
            "128 / 65535",
            lambda q: q.inverse / ROOT_STEPS,
            ("function_7_v1",),
        ),
        Neighbour(
            "u = (1 / s_in) * (1 / 65535)",
            lambda q: q.source * (reciprocal(q.source) * reciprocal(ROOT_STEPS)) * q.inverse,
        ),
    ),
)
"""Products of vectors with the reciprocal of their length."""


def _within(q: Quantities, real: Factors | np.float32) -> Factors:
    return np.minimum(real, F32(np.iinfo(q.output.dtype).max - int(q.output.zero_point[0])))


ACTIVATION_BOUND = Rounding(
    "bounds of activations",
    "6 * (1 / s_out)",
    lambda q: _within(q, bound(q.real, q.output)),
    (
        Neighbour("6 / s_out", lambda q: _within(q, F32(q.real) / q.target)),
        Neighbour(
            "rounded to an integer",
            lambda q: _within(q, np.rint(F32(q.real) * q.inverse)),
            ("deeplabv3_mnv2_dm05_pascal_quant",),
        ),
    ),
    Field.BOUND,
)
"""Upper bounds of RELU6 and its like. They are compared before the result is rounded to an integer,
so that another last bit gives other bytes only where a bound lies in the middle between two."""

ROUNDINGS: Mapping[str, Rounding] = {
    each.name: each
    for each in (
        PRODUCTS,
        CONSTANT_FACTOR,
        CONSTANT_TERM,
        ADDITION,
        REQUANTISATION,
        POOL,
        MEAN,
        STAGED_MEAN,
        UNIT_VECTOR,
        ACTIVATION_BOUND,
    )
}
"""Every number that the oracle rounds, by its name."""
