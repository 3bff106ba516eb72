"""Proof of function as a part of a verification: tried once for a pair of files, and kept."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

from darwinn_formats.brief import brief
from darwinn_formats.limits import limited, limits
from darwinn_sim.errors import SimulationError

from darwinn_testbench.chip import kept
from darwinn_testbench.chip.hazards import Judgement
from darwinn_testbench.chip.session import Session
from darwinn_testbench.proof.prove import FunctionProof, OperatorVerdict, Uncompiled, path_of, prove
from darwinn_testbench.proof.shown import NOT_SHOWN, Shown
from darwinn_testbench.proof.terms import NOT_REACHED
from darwinn_testbench.report import Verdict, counted, one_line
from darwinn_testbench.report.progress import ProgressCallback

_SLOWER = 10
"""A run on value numbers may compute so many times as long as one on values."""

_MOST_NAMED = 3
"""Operators that a line names."""


@brief
@dataclass(frozen=True)
class Proof(FunctionProof):
    """The result of a proof, and whether it was ``judged`` now.

    ``every_output``: every byte of every output is the same function of the inputs as in the
    network. ``shown``: an input for which a refuted element differs, if one was found.
    """

    judged: Judgement = Judgement.JUDGED
    seconds: float = 0.0
    every_output: bool = False
    shown: Shown | None = None

    @property
    def verdict(self) -> Verdict:
        """MISMATCH if an element is another function. PASS says nothing about sampled operators."""
        return Verdict.MISMATCH if self.refuted else Verdict.PASS

    @property
    def number_proved(self) -> int:
        """Operators that are proved."""
        return self.operators - len(self.sampled) - len(self.refuted)

    def __str__(self) -> str:
        if self.judged is Judgement.NOT_JUDGED:
            return f"function not proved: {self.reason}"
        if self.reason:
            return f"function sampled: {self.reason}"
        parts = [f"another function: {each}" for each in self.refuted]
        if self.refuted:
            parts.append(NOT_SHOWN if self.shown is None else str(self.shown))
        operators = counted(self.operators, "operator")
        parts.append(f"{self.number_proved} of {operators} proved for every input")
        behind = [each for each in self.sampled if each.reason == NOT_REACHED]
        sampled = [each for each in self.sampled if each.reason != NOT_REACHED]
        if sampled:
            parts.append(f"sampled: {_named(sampled)}")
        if behind:
            parts.append(f"{counted(len(behind), 'downstream operator')} not proved")
        return "; ".join(parts)


def _named(operators: Sequence[OperatorVerdict]) -> str:
    told = "; ".join(map(str, operators[:_MOST_NAMED]))
    rest = len(operators) - _MOST_NAMED
    return told + (f"; {rest} more" if rest > 0 else "")


LEFT_OUT = Proof(reason="--no-proof", judged=Judgement.NOT_JUDGED)


def proof_of(session: Session, uncompiled: Uncompiled, progress: ProgressCallback) -> Proof:
    """Prove as much as possible, or take the proof that is kept for the same files.

    The chip is left as after another inference, or powered up.
    """
    begin = time.perf_counter()
    path = path_of("function", session, uncompiled)
    known = kept.kept(path, FunctionProof)
    if known is None:
        progress("proof: the program as functions of its inputs", 0, 1)
        found, keeps = _tried(session, uncompiled)
        if keeps:
            kept.keep(path, found)
    else:
        found = known
    values = {each.name: getattr(found, each.name) for each in fields(FunctionProof)}
    return Proof(
        **values,
        judged=Judgement.JUDGED if known is None else Judgement.KEPT,
        seconds=time.perf_counter() - begin,
        every_output=found.proved,
    )


def _tried(session: Session, uncompiled: Uncompiled) -> tuple[FunctionProof, bool]:
    """What is proved, and whether another try would give the same."""
    allowed = limits()
    try:
        # The program has ended on values, so that it ends on numbers, only later.
        with limited(replace(allowed, seconds=_SLOWER * allowed.seconds)):
            return prove(session, uncompiled), True
    except MemoryError as error:
        return FunctionProof(reason=one_line(error) or "too little memory"), False
    except SimulationError as error:
        session.accelerator.power_up()
        return FunctionProof(reason=one_line(error)), False


def without(reason: str) -> Proof:
    """The record for a proof that was not tried, with the reason."""
    return replace(LEFT_OUT, reason=reason)
