"""The verdicts, what each means, which exception means which, and the exit code of each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum

from darwinn_formats.errors import FormatError, TextError
from darwinn_sim.errors import IncompleteProgram, SimulationError, UnsupportedInstruction
from darwinn_sim.isa.codec import DecodeError

from darwinn_testbench.errors import (
    ExecutionError,
    InputError,
    ModelError,
    PolicyError,
    Unavailable,
    Unsupported,
)


class Verdict(StrEnum):
    """What a row or a whole report says, from best to worst."""

    PASS = "pass"
    RAN = "ran"
    """It ran to its end, and there was nothing to compare with."""
    REFUSED = "refused"
    """Something the model of the chip does not implement; named in the message."""
    NOT_COMPARED = "not-compared"
    """RAN where a comparison was asked for (``--require-reference``)."""
    MISMATCH = "mismatch"
    """It ran, and a result differs from what was expected."""
    REGRESSION = "regression"
    """A figure differs, for better or worse, by more than its reviewed baseline allows."""
    FAULT = "fault"
    """The simulated program failed: deadlock, page fault, read of unwritten memory."""
    BAD_INPUT = "bad-input"
    """A file or an argument is invalid."""

    @property
    def failed(self) -> bool:
        """Whether the command does not end with exit code 0."""
        return EXIT_CODES[self] != 0


EXIT_CODES = {
    Verdict.PASS: 0,
    Verdict.RAN: 0,
    Verdict.NOT_COMPARED: 1,
    Verdict.MISMATCH: 1,
    Verdict.REGRESSION: 1,
    Verdict.FAULT: 1,
    Verdict.BAD_INPUT: 2,
    Verdict.REFUSED: 3,
}
"""Exit code of the command for each verdict of the report."""

UNJUDGED = frozenset((Verdict.REFUSED, Verdict.FAULT, Verdict.BAD_INPUT))
"""Verdicts of what did not get as far as a result that could be judged."""

MEANINGS: Mapping[Verdict, str] = {
    Verdict.RAN: "It ran to its end; the result was compared with nothing.",
    Verdict.REFUSED: "The simulator does not implement something that the program uses.",
    Verdict.NOT_COMPARED: "A comparison is required, and the result was compared with nothing.",
    Verdict.MISMATCH: "A result differs from what is expected.",
    Verdict.REGRESSION: "A figure is worse than its reviewed baseline allows.",
    Verdict.FAULT: "The simulated program failed.",
    Verdict.BAD_INPUT: "A file or an argument is invalid.",
}
"""What each verdict but PASS means, in a sentence."""

_SEVERITY = {verdict: rank for rank, verdict in enumerate(Verdict)}


_VERDICTS: tuple[tuple[type[Exception], Verdict], ...] = (
    (FormatError, Verdict.BAD_INPUT),
    (InputError, Verdict.BAD_INPUT),
    (PolicyError, Verdict.BAD_INPUT),
    (OSError, Verdict.BAD_INPUT),
    (MemoryError, Verdict.BAD_INPUT),
    (ModelError, Verdict.BAD_INPUT),
    (TextError, Verdict.BAD_INPUT),
    (Unsupported, Verdict.REFUSED),
    (Unavailable, Verdict.REFUSED),
    (ExecutionError, Verdict.FAULT),
    (DecodeError, Verdict.REFUSED),
    (UnsupportedInstruction, Verdict.REFUSED),
    (IncompleteProgram, Verdict.BAD_INPUT),
    (SimulationError, Verdict.FAULT),
)


def verdict_of(error: BaseException) -> Verdict | None:
    """The verdict that an exception stands for; None if it is a defect of this program."""
    return next((verdict for kind, verdict in _VERDICTS if isinstance(error, kind)), None)


def one_line(error: BaseException) -> str:
    """What an exception says, in one line; of the operating system's errors without the number."""
    if isinstance(error, OSError) and error.strerror is not None:
        return error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"
    return " ".join(str(error).split())


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The most severe of ``verdicts``; PASS if there is none."""
    return max(verdicts, key=_SEVERITY.__getitem__, default=Verdict.PASS)
