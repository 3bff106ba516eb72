"""Find the element and the term in which a program computes another function than its network.

The sums of the program's results are computed once more. If the sum equals the network's and the
result does not, the output stage differs. If the sum differs by a multiple of one operand, a weight
differs. If it differs by a constant, a bias differs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from darwinn_reference.tflite.graph import Network, NetworkTensor, Operator
from darwinn_sim.kernel.field import CONSTANTS, MODULUS
from darwinn_sim.kernel.numbering import Made
from darwinn_sim.kernel.structure import Records, join
from darwinn_sim.numbering import kernels
from numpy.typing import NDArray

from darwinn_testbench.proof.number_set import NumberSet
from darwinn_testbench.proof.terms import Elements, StageTerms
from darwinn_testbench.proof.windows import LAYERS, window

_MOST_ELEMENTS = 16
"""Elements of which the term is looked for."""
_MOST_SUMS = 1 << 16
"""Sums of the program that are looked at for each."""
_MOST_WEIGHT = 1 << 17
_MOST_BIAS = 1 << 33
_LARGEST_SUM = 2**31 - 1
"""Greatest difference that counts as one of a weight or a bias."""


class Surplus:
    """Collects the results of a program that are not among its network's."""

    def __init__(self, known: NumberSet) -> None:
        self._known = known
        self._parts: list[Records[Made]] = []

    def take(self, made: Records[Made]) -> None:
        """Keep those that are not known."""
        found = self._known.have(np.ascontiguousarray(made["number"]))
        self._parts.append(made[~found].copy())

    def forget(self) -> None:
        """Begin anew."""
        self._parts.clear()

    def made(self) -> Records[Made]:
        """All of them."""
        return join(self._parts) if self._parts else Made.zeros(0)


@dataclass(frozen=True)
class TermDifference:
    """What differs in an ``element`` of a tensor, in words; of a constant its name, the place and
    both values. ``factor`` is what the network multiplies the element's sum with."""

    operator: int
    operator_name: str
    tensor: str
    element: tuple[int, ...]
    text: str
    constant: str = ""
    place: tuple[int, ...] = ()
    here: float | None = None
    there: float | None = None
    factor: float | None = None

    def __str__(self) -> str:
        where = ", ".join(map(str, self.element))
        return f"operator {self.operator} {self.operator_name}, element ({where}): {self.text}"


def difference(
    network: Network,
    operator: Operator,
    numbers: Mapping[int, Elements],
    missing: NDArray[np.int64],
    stage: StageTerms,
    surplus: Records[Made],
) -> TermDifference | None:
    """What differs in one of the ``missing`` elements (flat indices) of an operator's output;
    None if no single term is found."""
    found = _of_stage(network, operator, missing, stage, surplus)
    found = found or _of_sum(network, operator, numbers, missing, stage, surplus)
    if found is None:
        return None
    shape = network.tensors[operator.outputs[0]].shape
    flat = np.ravel_multi_index(found.element, shape) if shape else 0
    return replace(found, factor=float(stage.factors.reshape(-1)[flat]))


def _named(
    network: Network, operator: Operator, flat: int, text: str, **more: object
) -> TermDifference:
    tensor = network.tensors[operator.outputs[0]]
    element = tuple(int(k) for k in np.unravel_index(flat, tensor.shape))
    return TermDifference(
        operator.index,
        operator.name,
        tensor.name,
        element,
        text,
        **more,  # type: ignore[arg-type]
    )


# --- output stages -------------------------------------------------------------------------------


def _of_stage(
    network: Network,
    operator: Operator,
    missing: NDArray[np.int64],
    stage: StageTerms,
    surplus: Records[Made],
) -> TermDifference | None:
    totals, factors = stage.totals.reshape(-1), stage.factors.reshape(-1)
    for flat in missing[:_MOST_ELEMENTS].tolist():
        same = surplus[surplus["total"] == totals[flat]]
        if not len(same):
            continue
        there = np.uint32(same["scale"][0]).view(np.float32)
        here = factors[flat]
        if there != here:
            text = f"the factor is {here!s}, the executable holds {there!s}"
            return _named(network, operator, flat, text, here=float(here), there=float(there))
        return _named(network, operator, flat, "the bounds or the zero point of the result differ")
    return None


class Results:
    """Collects the results of a program, by their sums."""

    def __init__(self) -> None:
        self._parts: list[Records[Made]] = []
        self._known = NumberSet()
        self._made: Records[Made] | None = None

    def take(self, made: Records[Made]) -> None:
        """Keep each result once."""
        self._parts.append(made[self._known.enter(np.ascontiguousarray(made["number"]))])

    def forget(self) -> None:
        """Begin anew."""
        self._parts.clear()
        self._known.forget()

    def with_sums(self, totals: Elements) -> tuple[Records[Made], NDArray[np.int64]]:
        """All of them, and which have one of these sums."""
        made = self._sorted()
        return made, np.flatnonzero(np.isin(made["total"], totals))

    def harmless(
        self, network: Network, operator: Operator, missing: NDArray[np.int64], stage: StageTerms
    ) -> dict[int, np.uint64]:
        """The elements of ``missing`` that the program computes with the same result, with its
        numbers.

        Its factor gives the same for every possible sum. Or its sum differs by a multiple of 2^32,
        since biases have 32 bits, and either factor gives the same of all sums.
        """
        made = self._sorted()
        if not len(made):
            return {}
        totals, factors = stage.totals.reshape(-1)[missing], stage.factors.reshape(-1)[missing]
        totals_there = np.ascontiguousarray(made["total"])
        agree = _Agreement(network, operator, stage)
        accepted: dict[int, np.uint64] = {}
        for turns in (0, 1, -1, 2, -2):
            wanted = (totals.astype(object) + (turns << 32)) % MODULUS if turns else totals
            wanted = np.asarray(wanted, np.uint64)
            at = np.minimum(np.searchsorted(totals_there, wanted), len(made) - 1)
            met = np.flatnonzero(totals_there[at] == wanted)
            there = made["scale"][at[met]].view(np.float32)
            equal = agree.on(factors[met], there, wraps=turns != 0)
            equal &= _of_form(made[at[met]], stage.form)
            for k in met[equal].tolist():
                accepted.setdefault(int(missing[k]), np.uint64(made["number"][at[k]]))
        return accepted

    def _sorted(self) -> Records[Made]:
        if self._made is None:
            made = join(self._parts) if self._parts else Made.zeros(0)
            self._made = made[np.argsort(made["total"])]
            self._parts.clear()
        return self._made


class _Agreement:
    """Whether two factors give the same in an output stage."""

    def __init__(self, network: Network, operator: Operator, stage: StageTerms) -> None:
        self._stage, self._reach = stage, _reach(network, operator)
        self._known: dict[tuple[float, float, bool], bool] = {}

    def on(
        self, here: NDArray[np.float32], there: NDArray[np.float32], *, wraps: bool
    ) -> NDArray[np.bool_]:
        """Which pairs agree; where the sum ``wraps``, those that give the same of all sums."""
        pairs = np.stack([here, there], axis=1)
        kinds, which = np.unique(pairs, axis=0, return_inverse=True)
        agree = [self._of(float(one), float(other), wraps) for one, other in kinds]
        return np.array(agree, np.bool_)[which.reshape(-1)]

    def _of(self, here: float, there: float, wraps: bool) -> bool:
        key = (here, there, wraps)
        if key not in self._known:
            if wraps:
                self._known[key] = _only(self._stage, here) == _only(self._stage, there) != _NONE
            else:
                self._known[key] = here != there and _agree(self._stage, here, there, self._reach)
        return self._known[key]


def _of_form(made: Records[Made], form: np.uint64) -> NDArray[np.bool_]:
    """Which results have these bounds and this zero point."""
    found = np.empty(len(made), np.uint64)
    totals = np.ascontiguousarray(made["total"])
    kernels.results(totals, np.ascontiguousarray(made["scale"]).view(np.float32), form, found)
    same: NDArray[np.bool_] = found == made["number"]
    return same


def _reach(network: Network, operator: Operator) -> int:
    """A bound of the magnitude of the operator's sums."""
    if operator.name not in LAYERS:
        return _LARGEST_SUM
    bound, point = 0.0, int(network.tensors[operator.inputs[0]].zero_point[0])
    span = float(max(abs(point), abs(CONSTANTS - 1 - point)))
    for tensor in (network.tensors[index] for index in operator.inputs[1:] if index >= 0):
        if tensor.constant is None:
            return _LARGEST_SUM
        values = tensor.constant.astype(np.int64)
        if tensor.constant.dtype.itemsize == 1:
            points = int(tensor.zero_point.min()), int(tensor.zero_point.max())
            weights = np.maximum(*(np.abs(values - point) for point in points))
            bound += span * float(weights.sum())
        else:
            bound += float(np.abs(values).max(initial=0))
    return int(min(bound, _LARGEST_SUM))


def _agree(stage: StageTerms, one: float, other: float, reach: int) -> bool:
    """Whether two factors give the same result for every sum.

    Results with bounds grow with the sum, so it is enough to know where each result begins. For
    other results there is no answer.
    """
    if not (stage.bounded and 0 < one < np.inf and 0 < other < np.inf):
        return False
    return bool(np.array_equal(_begins(stage, one, reach), _begins(stage, other, reach)))


_NONE = -1


def _only(stage: StageTerms, factor: float) -> int:
    """The result that a factor gives of every sum of 32 bits; ``_NONE`` if there are several."""
    if not (stage.bounded and 0 < factor < np.inf):
        return _NONE
    ends = np.array([-_LARGEST_SUM - 1, _LARGEST_SUM])
    low, high = stage.values(ends, np.full(2, factor, np.float32)).tolist()
    return int(low) if low == high else _NONE


def _begins(stage: StageTerms, factor: float, reach: int) -> NDArray[np.int64]:
    """Of each result the least sum that gives it or more; one beyond ``reach`` if none does."""
    results = np.arange(1, CONSTANTS)
    factors = np.full(results.size, factor, np.float32)
    low, high = np.full(results.size, -reach), np.full(results.size, reach + 1)
    while (low < high).any():
        middle = np.minimum((low + high) >> 1, reach)
        there = stage.values(middle, factors) >= results
        low, high = (
            np.where(there | (low >= high), low, middle + 1),
            np.where(there, np.minimum(middle, high), high),
        )
    return high


# --- sums ----------------------------------------------------------------------------------------


def _of_sum(
    network: Network,
    operator: Operator,
    numbers: Mapping[int, Elements],
    missing: NDArray[np.int64],
    stage: StageTerms,
    surplus: Records[Made],
) -> TermDifference | None:
    totals = stage.totals.reshape(-1)
    made = np.unique(surplus["total"][:_MOST_SUMS])
    for flat in missing[:_MOST_ELEMENTS].tolist():
        deltas = _subtracted(made, totals[flat])
        small = np.flatnonzero((deltas < _MOST_BIAS) | (deltas > MODULUS - _MOST_BIAS))
        if len(small):
            change = _signed(int(deltas[small[0]]))
            return _of_bias(network, operator, flat, change)
        terms = sum_terms(network, operator, flat)
        if terms is None:
            continue
        of = numbers[operator.inputs[0]].reshape(-1)[terms.sources]
        varying = np.flatnonzero(of >= CONSTANTS)
        # A weight multiplies a byte less its zero point.
        centred = _subtracted(of[varying], _point(network.tensors[operator.inputs[0]]))
        place, change = single_multiple(deltas, centred)
        if place >= 0:
            return _of_weight(network, operator, flat, terms, int(varying[place]), change)
    return None


def _point(tensor: NetworkTensor) -> np.uint64:
    """The zero point of the chip's bytes, as an element."""
    return np.uint64(int(tensor.zero_point[0]) - int(np.iinfo(tensor.dtype).min))


def _signed(element: int) -> int:
    return element - MODULUS if element > MODULUS // 2 else element


def _subtracted(made: Elements, total: np.uint64) -> Elements:
    found = np.empty(made.size, np.uint64)
    kernels.subtracted(made, total, found)
    return found


def single_multiple(deltas: Elements, operands: Elements) -> tuple[int, int]:
    """The operand of which one of the differences is a small multiple, and the factor; -1, 0."""
    found = np.zeros(2, np.int64)
    kernels.multiple_of_one(deltas, operands, _MOST_WEIGHT, found)
    return int(found[0]), int(found[1])


def _of_bias(network: Network, operator: Operator, flat: int, change: int) -> TermDifference:
    tensor = network.tensors[operator.outputs[0]]
    channel = flat % tensor.shape[-1] if tensor.shape else 0
    biases = [network.tensors[k] for k in operator.inputs[2:3] if k >= 0]
    if biases and biases[0].constant is not None and biases[0].size == tensor.shape[-1]:
        here = int(biases[0].constant.reshape(-1)[channel])
        text = f"bias ({channel}) is {here}, the executable adds {here + change}"
        return _named(
            *(network, operator, flat, text),
            constant=biases[0].name,
            place=(channel,),
            here=here,
            there=here + change,
        )
    return _named(network, operator, flat, f"the executable's sum has {change:+} more")


def _of_weight(
    network: Network, operator: Operator, flat: int, terms: SumTerms, k: int, change: int
) -> TermDifference:
    tensor = network.tensors[operator.inputs[1]]
    assert tensor.constant is not None
    place = tuple(int(each) for each in np.unravel_index(int(terms.weights[k]), tensor.shape))
    here = int(tensor.constant[place])
    text = f"weight {place} is {here}, the executable multiplies with {here + change}"
    return _named(
        *(network, operator, flat, text),
        constant=tensor.name,
        place=place,
        here=here,
        there=here + change,
    )


@dataclass(frozen=True)
class SumTerms:
    """Flat indices of the operands of a sum in the first input, and of their weights."""

    sources: NDArray[np.int64]
    weights: NDArray[np.int64]


def sum_terms(network: Network, operator: Operator, flat: int) -> SumTerms | None:
    """The terms of an element of a layer with weights; None of other operators."""
    if operator.name not in LAYERS:
        return None
    row, channel = divmod(flat, network.tensors[operator.outputs[0]].shape[-1])
    each = window(network, operator, row)
    group, within = divmod(channel, each.channels)
    return SumTerms(each.sources[group], each.weights[group] + within * each.step)
