"""The verdicts, what each means, which exception means which, and the exit code of each."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from darwinn_formats.errors import ExecutionError, FormatError, TextError, Unavailable
from darwinn_formats.extras import advice
from darwinn_formats.limits import MEMORY, SECONDS
from darwinn_reference.errors import ModelError, Unsupported
from darwinn_sim.errors import IncompleteProgram, SimulationError, UnsupportedInstruction
from darwinn_sim.isa.codec import DecodeError

from darwinn_testbench.errors import InputError, PolicyError


class Verdict(StrEnum):
    """Verdict of a row or a whole report, from best to worst."""

    PROVED = "proved"
    """Every output is right for every input and in every legal timing, by proof."""
    PASS = "pass"
    """Every output that was compared is right; what is only sampled is named."""
    RAN = "ran"
    """It ran to its end, and there was nothing to compare with."""
    REFUSED = "refused"
    """Something the model of the chip does not implement; named in the message."""
    NOT_COMPARED = "not-compared"
    """RAN where a comparison was asked for (``--require-reference``)."""
    NOT_PROVED = "not-proved"
    """PASS or RAN where a proof was asked for (``--require-proof``)."""
    RACE = "race"
    """Its results are others in another legal order of the chip's units (``--schedules``)."""
    HAZARD = "hazard"
    """Nothing orders two accesses to a memory of the chip, one of them a write; or an output
    follows from memory that nothing has written."""
    MISMATCH = "mismatch"
    """It ran, and a result differs from what was expected."""
    REGRESSION = "regression"
    """A figure differs, for better or worse, by more than its reviewed baseline allows."""
    FAULT = "fault"
    """The simulated program failed: deadlock, page fault, read of unwritten memory."""
    BAD_INPUT = "bad-input"
    """A file or an argument is invalid."""

    @property
    def passed(self) -> bool:
        """Whether everything that was asked is right."""
        return self in (Verdict.PROVED, Verdict.PASS)

    @property
    def failed(self) -> bool:
        """Whether the command does not end with exit code 0."""
        return EXIT_CODES[self] != 0


class _Kind(NamedTuple):
    """The exit code of a verdict, its style in a terminal, and what it means in a sentence."""

    exit_code: int
    style: str
    meaning: str


_KINDS = {
    Verdict.PROVED: _Kind(
        0, "bold green", "Every output is right for every input and in every legal timing."
    ),
    Verdict.PASS: _Kind(0, "green", ""),
    Verdict.RAN: _Kind(0, "cyan", "It ran to its end; the result was compared with nothing."),
    Verdict.REFUSED: _Kind(
        3, "yellow", "The simulator does not implement something that the program uses."
    ),
    Verdict.NOT_COMPARED: _Kind(
        1, "bold red", "A comparison is required, and the result was compared with nothing."
    ),
    Verdict.NOT_PROVED: _Kind(
        1, "bold red", "A proof is required, and something is only sampled, or not compared."
    ),
    Verdict.RACE: _Kind(
        1, "bold red", "Another legal order of the chip's units gives another result."
    ),
    Verdict.HAZARD: _Kind(
        1, "bold red", "Nothing in the program orders two accesses to a memory of the chip."
    ),
    Verdict.MISMATCH: _Kind(1, "bold red", "A result differs from what is expected."),
    Verdict.REGRESSION: _Kind(
        1, "bold red", "A figure differs by more than its reviewed baseline allows."
    ),
    Verdict.FAULT: _Kind(1, "bold red", "The simulated program failed."),
    Verdict.BAD_INPUT: _Kind(2, "bold red", "A file or an argument is invalid."),
}

EXIT_CODES = {verdict: kind.exit_code for verdict, kind in _KINDS.items()}
"""Exit code of the command for each verdict of the report."""

STYLES = {verdict: kind.style for verdict, kind in _KINDS.items()}
"""How a terminal shows the word of each verdict."""

MEANINGS = {verdict: kind.meaning for verdict, kind in _KINDS.items() if kind.meaning}
"""What each verdict but PASS means."""

UNJUDGED = frozenset((Verdict.REFUSED, Verdict.FAULT, Verdict.BAD_INPUT))
"""Verdicts of what did not get as far as a result that could be judged."""

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


_OF_THE_MACHINE = (MemoryError, OSError, Unavailable)
"""Exceptions that say more of the machine than of the program: another time it may have what is
missing."""


_BEGINNING, _ENDING = 1500, 500
"""Characters of an error that are said: a file may hold any number of names, of any length."""


def verdict_of(error: BaseException) -> Verdict | None:
    """The verdict that an exception stands for; None if it is a defect of this program."""
    if advice(error):
        return Verdict.REFUSED
    return next((verdict for kind, verdict in _VERDICTS if isinstance(error, kind)), None)


def is_of_the_machine(error: BaseException) -> bool:
    """Whether the machine and not the program is to blame for an exception."""
    return bool(advice(error)) or isinstance(error, _OF_THE_MACHINE) or passed_limit(str(error))


def passed_limit(text: str) -> bool:
    """Whether what is said of a failure names a limit of the command line, which may be raised."""
    return SECONDS in text or MEMORY in text


def judged(error: BaseException) -> tuple[Verdict, str]:
    """The verdict that an exception stands for, a defect of this program being a fault, and why."""
    verdict, text = verdict_of(error), one_line(error)
    if verdict is None:
        return Verdict.FAULT, f"internal error: {type(error).__name__}: {text}"
    return verdict, text


def one_line(error: BaseException) -> str:
    """The text of an exception in one readable line; for errors of the operating system without the
    number.
    """
    text = " ".join((advice(error) or str(error)).split())
    if isinstance(error, OSError) and error.strerror is not None:
        # Whatever a file's name holds belongs to it: who prints it escapes it.
        text = error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"
    left_out = len(text) - _BEGINNING - _ENDING
    if left_out <= 0:
        return text
    return f"{text[:_BEGINNING]} ... ({left_out} characters) ... {text[-_ENDING:]}"


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The most severe of ``verdicts``; PASS if there is none."""
    return max(verdicts, key=_SEVERITY.__getitem__, default=Verdict.PASS)
