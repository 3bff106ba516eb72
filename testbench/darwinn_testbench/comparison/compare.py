"""The one place where an output is compared with its reference, and a tolerance is applied.

:func:`compare` judges one array by a declared policy and reports enough to find the fault: where
the first difference is, how the differences are distributed, whether values saturate, whether NaN
and infinities agree, and the figures that are reported but never decide (top-1 and top-5
agreement, signal to noise ratio, cosine). docs/comparison.md describes the rules.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from darwinn_reference.arrays import AnyArray
from numpy.typing import ArrayLike, NDArray

from darwinn_testbench.policy import Exact, LsbBudget, Policy, difference, identical, within

_OWN_BINS = 8
"""Integer differences up to this magnitude have a histogram bin of their own."""

_TOP = 5


@dataclass(frozen=True, slots=True)
class HistogramBin:
    """``count`` elements whose difference lies from ``low`` to ``high``, both included.

    Integer outputs: signed differences, one bin each up to 8, then powers of two. Float outputs:
    magnitudes of the finite differences, one bin for 0 and then one for each decade.
    """

    low: float
    high: float
    count: int


@dataclass(frozen=True, slots=True)
class ChannelDifference:
    """The channel (index along the last axis) that holds the greatest difference."""

    channel: int
    differing: int
    max_difference: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """What :func:`compare` found. ``verdict`` alone decides; the rest says why and where.

    ``differing`` counts elements that are not identical, ``outside`` those that the policy does not
    accept. ``first_difference`` is the index of the first differing element in row-major order.
    ``max_difference`` is over finite elements. Saturated elements are those at an end of the
    integer dtype's range. ``top1`` and ``top5`` are shares (0 to 1) over the rows along the last
    axis: of rows whose greatest elements agree, and of the five greatest that agree (ties are
    broken in favour); None for rows of fewer than 2 and 6 elements, or with elements that are not
    finite. ``snr_db`` is None when nothing differs or there is no signal; ``cosine`` is None when a
    side is all zero.
    """

    verdict: Literal["pass", "mismatch"]
    policy: str
    reason: str
    shape: tuple[int, ...]
    expected_shape: tuple[int, ...]
    dtype: str
    expected_dtype: str
    elements: int = 0
    differing: int = 0
    outside: int = 0
    first_difference: tuple[int, ...] | None = None
    first_actual: float | None = None
    first_expected: float | None = None
    max_difference: float = 0
    worst_channel: ChannelDifference | None = None
    histogram: tuple[HistogramBin, ...] = ()
    saturated: int = 0
    expected_saturated: int = 0
    nan: int = 0
    expected_nan: int = 0
    infinite: int = 0
    expected_infinite: int = 0
    non_finite_equal: bool = True
    top1: float | None = None
    top5: float | None = None
    snr_db: float | None = None
    cosine: float | None = None

    @property
    def passed(self) -> bool:
        """True if the policy accepts the output."""
        return self.verdict == "pass"

    def to_json(self) -> dict[str, Any]:
        """Plain values for :func:`json.dumps`; numbers that JSON lacks become strings."""
        plain: dict[str, Any] = _plain(dataclasses.asdict(self))
        return plain


def compare(
    actual: ArrayLike, expected: ArrayLike, policy: Policy, *, zero_point: int = 0
) -> Comparison:
    """Judge ``actual`` by ``expected`` under ``policy``.

    Shape and dtype must agree, else the verdict is ``mismatch`` and no figures are computed.
    ``zero_point`` is subtracted from both sides for the signal to noise ratio and the cosine only.

    Raises:
        PolicyError: the policy does not apply to this dtype (an LSB budget on floats).
    """
    left, right = np.asarray(actual), np.asarray(expected)
    frame: dict[str, Any] = {
        "policy": str(policy),
        "shape": left.shape,
        "expected_shape": right.shape,
        "dtype": str(left.dtype),
        "expected_dtype": str(right.dtype),
    }
    reason = _incomparable(left, right)
    if reason:
        return Comparison(verdict="mismatch", reason=reason, **frame)
    if left.dtype.kind == "b":
        left, right = left.astype(np.uint8), right.astype(np.uint8)
    differing = ~identical(left, right)
    outside = int(np.count_nonzero(~within(policy, left, right)))
    count = int(np.count_nonzero(differing))
    first = _first_difference(left, right, differing)
    reason = _reason(policy, left.size, count, outside)
    if reason:
        place = list(first["first_difference"])
        reason += (
            f"; the first at {place}: {first['first_actual']} instead of {first['first_expected']}"
        )
    return Comparison(
        verdict="mismatch" if reason else "pass",
        reason=reason,
        **frame,
        elements=left.size,
        differing=count,
        outside=outside,
        **first,
        **_distribution(left, right, differing),
        **_special_values(left, right),
        **_rankings(left, right),
        **_signal(left, right, zero_point),
    )


def _incomparable(actual: AnyArray, expected: AnyArray) -> str:
    if actual.shape != expected.shape:
        return f"shape {actual.shape}, expected {expected.shape}"
    if actual.dtype != expected.dtype:
        return f"dtype {actual.dtype}, expected {expected.dtype}"
    if actual.dtype.kind not in "iufb":
        return f"dtype {actual.dtype} cannot be compared"
    return ""


def _reason(policy: Policy, elements: int, differing: int, outside: int) -> str:
    if outside:
        allowed = "differ" if isinstance(policy, Exact) else f"differ by more than {policy} allows"
        return f"{outside:,} of {elements:,} elements {allowed}"
    if isinstance(policy, LsbBudget) and differing * 100 > policy.percent * elements:
        share = 100 * differing / elements
        return f"{differing:,} of {elements:,} elements differ ({share:.3g}%), more than {policy}"
    return ""


def _first_difference(
    actual: AnyArray, expected: AnyArray, differing: NDArray[np.bool_]
) -> dict[str, Any]:
    if not differing.any():
        return {}
    index = tuple(int(i) for i in np.unravel_index(int(np.argmax(differing)), actual.shape))
    return {
        "first_difference": index,
        "first_actual": actual[index].item(),
        "first_expected": expected[index].item(),
    }


def _distribution(
    actual: AnyArray, expected: AnyArray, differing: NDArray[np.bool_]
) -> dict[str, Any]:
    if not actual.size:
        return {}
    signed = difference(actual, expected)
    if actual.dtype.kind == "f":
        magnitude = np.where(np.isfinite(signed), np.abs(signed), 0.0)
        histogram = _float_histogram(np.abs(signed[np.isfinite(signed)]))
    else:
        magnitude = np.abs(signed)
        histogram = _integer_histogram(signed)
    return {
        "max_difference": _number(magnitude.max()),
        "histogram": histogram,
        "worst_channel": _worst_channel(magnitude, differing),
    }


def _worst_channel(magnitude: AnyArray, differing: NDArray[np.bool_]) -> ChannelDifference | None:
    if magnitude.ndim == 0 or not differing.any():
        return None
    channels = magnitude.shape[-1]
    greatest = magnitude.reshape(-1, channels).max(axis=0)
    counts = np.count_nonzero(differing.reshape(-1, channels), axis=0)
    # Among channels of equal difference the one with most differing elements is the worst; a
    # channel that differs by an infinity or NaN only counts with its elements.
    worst = max(range(channels), key=lambda channel: (greatest[channel], counts[channel]))
    return ChannelDifference(worst, int(counts[worst]), _number(greatest[worst]))


def _integer_histogram(signed: AnyArray) -> tuple[HistogramBin, ...]:
    values, counts = np.unique(signed, return_counts=True)
    bins: dict[tuple[int, int], int] = {}
    for value, count in zip(values.tolist(), counts.tolist(), strict=True):
        span = _integer_bin(int(value))
        bins[span] = bins.get(span, 0) + int(count)
    return tuple(HistogramBin(low, high, bins[low, high]) for low, high in sorted(bins))


def _integer_bin(value: int) -> tuple[int, int]:
    magnitude = abs(value)
    if magnitude <= _OWN_BINS:
        return value, value
    high = 1 << (magnitude - 1).bit_length()
    span = (high // 2 + 1, high)
    return span if value > 0 else (-span[1], -span[0])


def _float_histogram(magnitudes: NDArray[np.float64]) -> tuple[HistogramBin, ...]:
    zero = int(np.count_nonzero(magnitudes == 0))
    bins = [HistogramBin(0.0, 0.0, zero)] if zero else []
    exponents = np.floor(np.log10(magnitudes[magnitudes > 0])).astype(np.int64)
    for exponent, count in zip(*np.unique(exponents, return_counts=True), strict=True):
        low = 10.0 ** int(exponent)
        bins.append(HistogramBin(low, 10 * low, int(count)))
    return tuple(bins)


def _special_values(actual: AnyArray, expected: AnyArray) -> dict[str, Any]:
    if actual.dtype.kind != "f":
        return {"saturated": _saturated(actual), "expected_saturated": _saturated(expected)}
    special = ~(np.isfinite(actual) & np.isfinite(expected))
    return {
        "nan": int(np.isnan(actual).sum()),
        "expected_nan": int(np.isnan(expected).sum()),
        "infinite": int(np.isinf(actual).sum()),
        "expected_infinite": int(np.isinf(expected).sum()),
        "non_finite_equal": bool(identical(actual[special], expected[special]).all()),
    }


def _saturated(values: AnyArray) -> int:
    limits = np.iinfo(values.dtype)
    return int(np.count_nonzero((values == limits.min) | (values == limits.max)))


def _rankings(actual: AnyArray, expected: AnyArray) -> dict[str, Any]:
    if actual.ndim == 0 or actual.size == 0 or actual.shape[-1] < 2:
        return {}
    left = actual.reshape(-1, actual.shape[-1])
    right = expected.reshape(left.shape)
    if left.dtype.kind == "f" and not (np.isfinite(left).all() and np.isfinite(right).all()):
        return {}
    found: dict[str, Any] = {"top1": float((_best_overlap(left, right, 1) > 0).mean())}
    if left.shape[1] > _TOP:
        found["top5"] = float(_best_overlap(left, right, _TOP).mean() / _TOP)
    return found


def _best_overlap(actual: AnyArray, expected: AnyArray, top: int) -> NDArray[np.int64]:
    """How many of the ``top`` greatest of each row agree when ties are broken in favour.

    An element above the ``top``-th greatest value is certainly among them; of those equal to it,
    as many as there are places left.
    """
    sure_actual, tied_actual = _certain_and_tied(actual, top)
    sure_expected, tied_expected = _certain_and_tied(expected, top)
    places_actual = top - np.count_nonzero(sure_actual, axis=1)
    places_expected = top - np.count_nonzero(sure_expected, axis=1)

    def both(a: NDArray[np.bool_], b: NDArray[np.bool_]) -> NDArray[np.int64]:
        count: NDArray[np.int64] = np.count_nonzero(a & b, axis=1)
        return count

    # An element tied on one side takes one place, tied on both sides it takes two: serve it last.
    from_expected = np.minimum(both(sure_actual, tied_expected), places_expected)
    from_actual = np.minimum(both(tied_actual, sure_expected), places_actual)
    remaining = np.minimum(places_expected - from_expected, places_actual - from_actual)
    from_both = np.minimum(both(tied_actual, tied_expected), remaining)
    overlap: NDArray[np.int64] = both(sure_actual, sure_expected) + from_expected
    overlap += from_actual + from_both
    return overlap


def _certain_and_tied(values: AnyArray, top: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    last = np.partition(values, -top, axis=1)[:, -top, None]
    return values > last, values == last


def _signal(actual: AnyArray, expected: AnyArray, zero_point: int) -> dict[str, Any]:
    left = actual.astype(np.float64).reshape(-1) - zero_point
    right = expected.astype(np.float64).reshape(-1) - zero_point
    if not (np.isfinite(left).all() and np.isfinite(right).all()):
        return {}
    # Scaled to at most 1, so that no square of a finite element overflows.
    scale = max(float(np.abs(left).max(initial=0)), float(np.abs(right).max(initial=0)))
    if scale == 0:
        return {}
    left, right = left / scale, right / scale
    noise = float(np.square(left - right).sum())
    energy = float(right @ right)
    norms = math.sqrt(float(left @ left) * energy)
    return {
        "snr_db": 10 * math.log10(energy / noise) if noise > 0 and energy > 0 else None,
        "cosine": float(left @ right) / norms if norms > 0 else None,
    }


def _number(value: Any) -> float:
    number: float = value.item() if isinstance(value, np.generic) else value
    return number


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
