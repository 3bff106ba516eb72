"""Take tensors from the chip where the oracle cannot compute them, and continue from there.

If the arithmetic of an operator on the chip is not known, the comparison must not end there. Its
output comes from the tiles, or as it was sent to the host, and everything downstream is computed
from it, byte for byte. The tensor is identified in this order:

- A tensor that is sent to the host is known by its name.
- Otherwise the candidates are layers that hold as many bytes with its zero point, are no other
  tensor, and come after the layers that the tensor is computed from.
- The right candidate is the one from which the next tensor that a layer holds, or that is sent,
  follows (on most of its bytes, so that one wrong byte there is found and not lost). If nothing
  that follows can be examined, the only remaining candidate is taken, or the one nearest to
  LiteRT's result for the same bytes.

If no layer holds the tensor, because the compiler fused its operator into the next ones, the first
one after it that is held is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from darwinn_reference.arrays import AnyArray
from darwinn_reference.tflite.chip_arithmetic import ChipArithmetic
from darwinn_reference.tflite.graph import NetworkTensor, Operator
from darwinn_reference.tflite.output_stage import NotComputableError

from darwinn_testbench.layers.candidates import (
    Candidate,
    Candidates,
    as_tensor,
    find_equal,
    find_matches,
    zero_point_of,
)
from darwinn_testbench.layers.on_chip import same_bytes
from darwinn_testbench.policy import absolute_difference
from darwinn_testbench.report.result import PYTHON_ONLY

_STEPS_AHEAD = 24
"""Operators behind a tensor that are computed to see what follows from it, at most."""

_FOLLOWS = 0.5
"""A tensor follows from another if more than this share of its bytes does."""

_CHOICES = 12
"""Layers that are tried for one tensor, at most."""


@dataclass(frozen=True)
class TakenTensor:
    """A tensor that was taken from the chip because its operator cannot be computed.

    ``reasons`` name the operators that cannot; ``layers`` hold it (none: it was sent to the host);
    ``identified`` says how it was found.
    """

    tensor: int
    operator: int
    reasons: tuple[str, ...]
    layers: tuple[int, ...]
    identified: str
    value: AnyArray = field(repr=False, compare=False, metadata=PYTHON_ONLY)


Estimate = Callable[[int, Operator, Mapping[int, AnyArray]], AnyArray | None]
"""About what a tensor is, from the operator that computes it and the values so far, if known."""


@dataclass(frozen=True, eq=False)
class _Choice:
    """What layers hold, read as the tensor, and how much of what follows from it is there.

    ``wrong`` is the share of the bytes of tensor ``witness`` that differ; None if nothing that
    follows from it can be looked at.
    """

    layers: tuple[int, ...]
    value: AnyArray
    wrong: float | None = None
    witness: str = ""


@dataclass(eq=False)
class TensorTaker:
    """Supplies the tensors that ``chip`` cannot compute, in the order of its operators.

    Attributes:
        chip: the oracle.
        candidates: what may be tensors (``find_candidates``).
        sent: tensors that were sent to the host, by index.
        on_chip: the tensors that the chip computes.
        estimate: LiteRT's result of one operator.
    """

    chip: ChipArithmetic
    candidates: Candidates
    sent: Mapping[int, AnyArray]
    on_chip: frozenset[int]
    estimate: Estimate

    def __post_init__(self) -> None:
        self.network = self.chip.network
        self.groups = same_bytes(self.network)
        self.sent = {member: value for k, value in self.sent.items() for member in self.groups[k]}
        self.makers = {k: each for each in self.network.operators for k in each.outputs}
        self.taken: dict[int, TakenTensor] = {}
        self._held: dict[int, tuple[int, ...]] = {}
        self._claimed: set[int] = set()

    def supply(
        self, operator: Operator, values: Mapping[int, AnyArray], reasons: tuple[str, ...]
    ) -> Mapping[int, AnyArray]:
        """Those outputs of ``operator`` that can be taken from the chip (see ``Supply``)."""
        found = {}
        for index in operator.outputs:
            if index in self.on_chip and index not in values:
                taken = self._take(self.network.tensors[index], operator, values, reasons)
                if taken is not None:
                    self.taken[index] = taken
                    found[index] = taken.value
        return found

    def _take(
        self,
        tensor: NetworkTensor,
        operator: Operator,
        values: Mapping[int, AnyArray],
        reasons: tuple[str, ...],
    ) -> TakenTensor | None:
        sent = self.sent.get(tensor.index)
        if sent is not None:
            value = as_tensor(sent, tensor)
            return TakenTensor(tensor.index, operator.index, reasons, (), "sent to the host", value)
        if tensor.dtype.itemsize != 1 or not tensor.size:
            return None
        self._look_at(values)
        choice, identified = self._choose(tensor, operator, values)
        if choice is None:
            return None
        self._claimed.update(choice.layers)
        return TakenTensor(
            tensor.index, operator.index, reasons, choice.layers, identified, choice.value
        )

    def _look_at(self, values: Mapping[int, AnyArray]) -> None:
        """Find the layers of tensors that have been computed since: they are no others."""
        for index in sorted(self.on_chip.intersection(values).difference(self._held)):
            tensor = self.network.tensors[index]
            self._held[index] = ()
            if tensor.constant is None and tensor.dtype.itemsize == 1 and tensor.size:
                equal = find_equal(tensor, values[index], self.candidates)
                self._claimed.update(number for each in equal for number in each.layers)
                if equal:
                    self._held[index] = equal[0].layers

    def _choose(
        self, tensor: NetworkTensor, operator: Operator, values: Mapping[int, AnyArray]
    ) -> tuple[_Choice | None, str]:
        after = self._first_possible(operator)
        choices: dict[bytes, _Choice] = {}
        shapes = [self.network.tensors[k] for k in self.groups[tensor.index]]
        for copies in (False, True):

            def allowed(each: Candidate, copies: bool = copies) -> bool:
                free = self._claimed.isdisjoint(each.layers) and min(each.layers) > after
                return free and each.copies == copies

            for like in shapes:
                nothing = np.zeros(like.shape, like.dtype)
                for match in find_matches(like, nothing, self.candidates, allowed):
                    value = match.value(like)
                    choices.setdefault(
                        value.tobytes(),
                        _Choice(match.candidate.layers, as_tensor(value, tensor)),
                    )
            if choices:
                break
        if not choices or len(choices) > _CHOICES:
            return None, ""
        followed = [self._followed(each, tensor, values) for each in choices.values()]
        best, why = _best(followed, alone=not self._rivals(tensor, values))
        if best is not None or any(each.wrong is not None for each in followed):
            return best, why
        return _best(self._estimated(followed, tensor, operator, values), alone=False)

    def _estimated(
        self,
        choices: Sequence[_Choice],
        tensor: NetworkTensor,
        operator: Operator,
        values: Mapping[int, AnyArray],
    ) -> list[_Choice]:
        """The choices, with how far they are from LiteRT's result for the same bytes."""
        estimate = self.estimate(tensor.index, operator, values)
        if estimate is None:
            return list(choices)
        near = [absolute_difference(each.value, estimate) <= 1 for each in choices]
        return [
            replace(each, wrong=float(np.mean(~close)), witness="LiteRT's result is nearest to it")
            for each, close in zip(choices, near, strict=True)
        ]

    def _rivals(self, tensor: NetworkTensor, values: Mapping[int, AnyArray]) -> bool:
        """Whether the same layers may be another tensor that is not known yet."""
        return any(
            other.size == tensor.size and zero_point_of(other) == zero_point_of(tensor)
            for other in (self.network.tensors[k] for k in self.on_chip.difference(values))
            if other.index not in self.groups[tensor.index]
        )

    def _first_possible(self, operator: Operator) -> int:
        """The last layer that any of the operator's sources must come before."""
        last = -1
        waiting, seen = list(operator.inputs), set[int]()
        while waiting:
            index = waiting.pop()
            if index in seen or index not in self.on_chip:
                continue
            seen.add(index)
            taken = self.taken.get(index)
            layers = taken.layers if taken is not None else self._held.get(index, ())
            if layers:
                last = max(last, min(layers))
            elif index in self.makers:
                waiting += self.makers[index].inputs
        return last

    def _followed(
        self, choice: _Choice, tensor: NetworkTensor, values: Mapping[int, AnyArray]
    ) -> _Choice:
        """The choice, with how the next tensor that can be looked at follows from it."""
        known = dict(values) | {tensor.index: choice.value}
        touched = {tensor.index}
        own = set(choice.layers)
        steps = 0
        for operator in self.network.operators:
            if steps == _STEPS_AHEAD:
                break
            if all(index in known or index not in self.on_chip for index in operator.outputs):
                continue
            try:
                computed = self.chip.run_operator(operator, known)
            except (NotComputableError, ArithmeticError, LookupError, TypeError, ValueError):
                continue
            steps += 1
            known |= computed
            if touched.isdisjoint(operator.inputs):
                continue
            touched.update(computed)
            for index in operator.outputs:
                wrong = self._share_wrong(index, known[index], own)
                if wrong is not None and index not in self.groups[tensor.index]:
                    what = f"operator {operator.index} {operator.name} follows from it"
                    return replace(choice, wrong=wrong, witness=what)
        return choice

    def _share_wrong(self, index: int, value: AnyArray, but: Collection[int]) -> float | None:
        """Share of a tensor's bytes that differ from the closest layers, ``but`` some."""
        tensor = self.network.tensors[index]
        if not tensor.size or np.ptp(value.astype(np.int64)) == 0:
            # A constant image follows from anything.
            return None
        if index in self.sent:
            return float(np.mean(as_tensor(self.sent[index], tensor) != value))
        if tensor.dtype.itemsize != 1:
            return None

        def allowed(each: Candidate) -> bool:
            return not each.copies and not set(but).intersection(each.layers)

        found = [each.differing for each in find_matches(tensor, value, self.candidates, allowed)]
        return min(found) / tensor.size if found else None


def _best(choices: Sequence[_Choice], *, alone: bool) -> tuple[_Choice | None, str]:
    """The choice that is the tensor, and why; None if that is not sure.

    ``alone`` says that no other tensor can be what the only choice is.
    """
    judged = sorted(
        (each for each in choices if each.wrong is not None), key=lambda each: each.wrong or 0.0
    )
    if not judged:
        if len(choices) > 1 or not alone:
            return None, ""
        return choices[0], "the only layer of its size, zero point and place"
    best = judged[0]
    wrong = best.wrong or 0.0
    others = [each.wrong or 0.0 for each in judged[1:]]
    sure = wrong < _FOLLOWS and all(each > max(2 * wrong, 0.0) for each in others)
    return (best, best.witness) if sure else (None, "")
