"""The kinds of bytes in a program's parameters, as part of a verification: counts, by tensor."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from darwinn_formats.brief import brief
from darwinn_reference.tflite.graph import Network, Operator
from darwinn_sim.errors import SimulationError
from darwinn_sim.lifting.walk import NotLifted
from numpy.typing import NDArray

from darwinn_testbench.chip import kept
from darwinn_testbench.chip.hazards import Judgement
from darwinn_testbench.chip.session import Session
from darwinn_testbench.proof.attribution import Attribution, Kind, attribute
from darwinn_testbench.proof.prove import Uncompiled, path_of
from darwinn_testbench.proof.windows import LAYERS
from darwinn_testbench.report import Verdict, one_line
from darwinn_testbench.report.progress import ProgressCallback

_MOST_LISTED = 1000
"""Changed elements, and spans of bytes, that are listed."""
_MOST_TOLD = 3
_WORD = 4
_ELSEWHERE = {
    Kind.WEIGHT: "found in no sum of the chip",
    Kind.BIAS: "in no parameters: instructions hold them, or they are 0",
}


@dataclass(frozen=True)
class ConstantBytes:
    """A constant of an operator, weights or biases for instance: how many of its ``elements`` are
    ``found`` in ``bytes`` of the parameters. ``reason``: why they were not looked for."""

    operator: int
    operator_name: str
    tensor: str
    elements: int
    found: int = 0
    bytes: int = 0
    reason: str = ""


@dataclass(frozen=True)
class ChangedElement:
    """An element of which the executable holds another value: ``byte`` of the parameters of
    ``executable``. Values are those of the network's file: a byte of the chip is 128 higher than
    one of int8."""

    operator: int
    operator_name: str
    tensor: str
    index: tuple[int, ...]
    executable: str
    byte: int
    here: int
    there: int

    def __str__(self) -> str:
        where = ", ".join(map(str, self.index))
        return (
            f"operator {self.operator} {self.operator_name}, ({where}) of {self.tensor} "
            f"is {self.here}, the executable holds {self.there}"
        )


@dataclass(frozen=True)
class ByteSpan:
    """Some bytes of the parameters of an executable that follow each other."""

    executable: str
    begin: int
    end: int


@brief
@dataclass(frozen=True)
class Parameters:
    """The kinds of all ``bytes`` of the parameters.

    ``weight_bytes`` and ``bias_bytes`` are ``found`` of the ``elements`` of the network's
    ``constants``. ``scale_bytes`` are words of factors and zero points of channels.
    ``absent_bytes`` are zero points whose operand an element does not have. Nothing depends on
    ``padding_bytes``. The first of the ``unexplained_bytes`` are ``unexplained``. ``changes``
    counts changed elements; the first are in ``changed``. ``reason`` says why there is no result.
    """

    bytes: int = 0
    elements: int = 0
    found: int = 0
    weight_bytes: int = 0
    bias_bytes: int = 0
    scale_bytes: int = 0
    absent_bytes: int = 0
    padding_bytes: int = 0
    unexplained_bytes: int = 0
    constants: tuple[ConstantBytes, ...] = ()
    changes: int = 0
    changed: tuple[ChangedElement, ...] = ()
    unexplained: tuple[ByteSpan, ...] = ()
    reason: str = ""
    judged: Judgement = Judgement.JUDGED
    seconds: float = 0.0

    @property
    def verdict(self) -> Verdict:
        """PASS: the proof decides about functions."""
        return Verdict.PASS

    def __str__(self) -> str:
        if self.reason and not self.bytes:
            return f"parameters not attributed: {self.reason}"
        parts = [
            f"{self.weight_bytes + self.bias_bytes:,} are {self.found:,} of {self.elements:,} "
            "weights and biases",
            f"{self.scale_bytes:,} factors and zero points",
            f"{self.absent_bytes:,} zeros beside weights",
            f"{self.padding_bytes:,} padding",
            f"{self.unexplained_bytes:,} unexplained",
        ]
        told = f"parameters: {self.bytes:,} bytes: {', '.join(parts)}"
        if self.reason:
            told += f" ({self.reason})"
        more = self.changes - _MOST_TOLD
        changes = [*map(str, self.changed[:_MOST_TOLD]), *([f"{more:,} more"] if more > 0 else [])]
        return "; ".join([told, *changes])


def parameters_of(
    session: Session, uncompiled: Uncompiled, progress: ProgressCallback
) -> Parameters:
    """Find the kinds of the bytes, or take the findings that are kept for the same files.

    The chip is left as after another inference, or powered up.
    """
    begin = time.perf_counter()
    path = path_of("parameters", session, uncompiled)
    found, judged = kept.kept(path, Parameters), Judgement.KEPT
    if found is None:
        progress("parameters: what each byte is", 0, 1)
        found, judged = _tried(session, uncompiled), Judgement.JUDGED
        if not found.reason:
            kept.keep(path, found)
    return replace(found, judged=judged, seconds=time.perf_counter() - begin)


def _tried(session: Session, uncompiled: Uncompiled) -> Parameters:
    try:
        return summary(attribute(session, uncompiled), session, uncompiled)
    except MemoryError as error:
        return Parameters(reason=one_line(error) or "too little memory")
    except NotLifted as reason:
        return Parameters(reason=str(reason))
    except SimulationError as error:
        session.accelerator.power_up()
        return Parameters(reason=one_line(error))


def without(reason: str) -> Parameters:
    """The record for a search that was not tried, with the reason."""
    return Parameters(reason=reason, judged=Judgement.NOT_JUDGED)


def summary(found: Attribution, session: Session, uncompiled: Uncompiled) -> Parameters:
    """The figures of what was found."""
    caching = session.model.compiled.caching
    cached = 0 if caching is None else len(caching.parameters)
    constants = tuple(_constants(found, uncompiled))
    sizes = {kind: int(np.count_nonzero(found.kind == kind)) for kind in Kind}
    changed = list(_changed(found, uncompiled.network, cached))
    spans = list(_spans(found.kind == Kind.UNEXPLAINED, cached))
    return Parameters(
        bytes=len(found.data),
        elements=sum(each.elements for each in constants),
        found=sum(each.found for each in constants),
        weight_bytes=sizes[Kind.WEIGHT],
        bias_bytes=sizes[Kind.BIAS],
        scale_bytes=sizes[Kind.FACTOR] + sizes[Kind.ZERO_POINT],
        absent_bytes=sizes[Kind.ABSENT],
        padding_bytes=sizes[Kind.PADDING],
        unexplained_bytes=sizes[Kind.UNEXPLAINED],
        constants=constants,
        changes=len(changed),
        changed=tuple(changed[:_MOST_LISTED]),
        unexplained=tuple(spans[:_MOST_LISTED]),
        reason=found.reason,
    )


def _constants(found: Attribution, uncompiled: Uncompiled) -> Iterator[ConstantBytes]:
    """All constants of the chip's part whose elements may be bytes of the parameters."""
    kinds, seen = found.constants(), set[int]()
    for operator in found.network.operators:
        if set(operator.outputs).isdisjoint(uncompiled.on_chip):
            continue
        for index in operator.inputs:
            if index in seen or not _has_values(found.network, operator, index):
                continue
            seen.add(index)
            tensor = found.network.tensors[index]
            place = operator.index, operator.name, tensor.name, tensor.size
            if index not in kinds:
                reason = (
                    "its operator has no proof"
                    if operator.name in LAYERS
                    else "its operator is no layer"
                )
                yield ConstantBytes(*place, reason=reason)
                continue
            octets = found.found(index, kinds[index]).reshape(tensor.size, -1)
            places = found.places(index, kinds[index])
            reason = "" if len(places) else _ELSEWHERE[kinds[index]]
            yield ConstantBytes(*place, int(octets.all(axis=1).sum()), len(places), reason)


def _has_values(network: Network, operator: Operator, index: int) -> bool:
    """A constant is of values, and no shape or list of axes."""
    if index < 0 or network.tensors[index].constant is None:
        return False
    return len(network.tensors[index].scale) > 0 or operator.name in LAYERS


def _changed(found: Attribution, network: Network, cached: int) -> Iterator[ChangedElement]:
    kinds = found.constants()
    for operator in found.layers:
        for index in operator.inputs[1:]:
            kind = kinds.pop(index, None)
            if kind is None:
                continue
            tensor = network.tensors[index]
            raised = 128 if tensor.dtype == np.int8 else 0
            size = 1 if kind is Kind.WEIGHT else _WORD
            places = found.changed(index, kind)
            elements, which = np.unique(found.element[places] // size, return_index=True)
            for element, place in zip(elements.tolist(), places[which].tolist(), strict=True):
                begin = place - int(found.element[place]) % size
                held = found.data[begin : begin + size]
                yield ChangedElement(
                    *(operator.index, operator.name, tensor.name),
                    tuple(int(k) for k in np.unravel_index(element, tensor.shape)),
                    *_where(begin, cached),
                    _value(found.octets(index)[size * element : size * (element + 1)]) - raised,
                    _value(held) - raised,
                )


def _value(octets: NDArray[np.uint8]) -> int:
    return int(octets[0]) if len(octets) == 1 else int(octets.copy().view(np.int32)[0])


def _where(place: int, cached: int) -> tuple[str, int]:
    return ("parameter-caching", place) if place < cached else ("inference", place - cached)


def _spans(which: NDArray[np.bool_], cached: int) -> Iterator[ByteSpan]:
    for first, part in ((0, which[:cached]), (cached, which[cached:])):
        steps = np.flatnonzero(np.diff(part, prepend=False, append=False))
        for begin, end in steps.reshape(-1, 2).tolist():
            yield ByteSpan(_where(first, cached)[0], begin, end)
