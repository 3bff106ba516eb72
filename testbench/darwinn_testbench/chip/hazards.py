"""Find hazards: accesses to memories of the chip that nothing in the program orders.

A checker beside the chip finds them (``darwinn_sim.machine.hazards``). It finds accesses that
another timing could change, even if no tried schedule does. The findings hold for every input, and
are kept (:mod:`any_timing`, :mod:`kept`). If data decide the course of a program, it is judged for
the given inputs only, whose inferences are repeated.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from darwinn_formats.brief import brief
from darwinn_sim.accelerator import compile_kernels
from darwinn_sim.errors import SimulationError
from darwinn_sim.machine.hazards import Hazard
from darwinn_sim.machine.hazards import Hazards as Found

from darwinn_testbench.chip import kept
from darwinn_testbench.chip.any_timing import ENOUGH, TOO_LONG, Judged, judge
from darwinn_testbench.chip.inputs import TensorMap
from darwinn_testbench.chip.pipeline import Pipeline
from darwinn_testbench.report import Verdict, counted, one_line
from darwinn_testbench.report.progress import ProgressCallback, silent

MOST_GIVEN = 8
"""Number of given inputs that are kept and judged, if a program can be judged for these alone."""


class Judgement(StrEnum):
    """Whether hazards were looked for."""

    JUDGED = "judged"
    KEPT = "kept from before"
    NOT_JUDGED = "not judged"


@brief
@dataclass(frozen=True)
class Hazards:
    """The hazards, parameters included, and the inputs for which they hold.

    ``every_input``: they hold for all inputs. Otherwise ``only`` names what was judged only for the
    inputs of this run, of which ``inferences`` were repeated. ``redundant`` are unordered writes
    that leave the word as it is. ``more`` accesses are not listed. A ``fault`` ended the check.
    ``reason`` says why nothing was ``judged``. ``unsure`` names what may be a hazard that the check
    has missed (``chip.completion``).
    """

    inferences: int = 0
    seconds: float = 0.0
    found: tuple[Hazard, ...] = ()
    redundant: tuple[Hazard, ...] = ()
    more: int = 0
    fault: str = ""
    judged: Judgement = Judgement.JUDGED
    reason: str = ""
    every_input: bool = True
    only: tuple[str, ...] = ()
    unsure: str = ""

    @property
    def verdict(self) -> Verdict:
        """HAZARD if there are any, or the check did not come to its end."""
        return Verdict.HAZARD if self.found or self.fault else Verdict.PASS

    @property
    def proved(self) -> bool:
        """Every legal timing gives the same bytes, with every input."""
        judged = self.judged is not Judgement.NOT_JUDGED
        return judged and self.every_input and not (self.found or self.fault or self.unsure)

    def __str__(self) -> str:
        number = len(self.found)
        if self.judged is Judgement.NOT_JUDGED:
            # Of a fault, or a run that was stopped, the report says enough.
            return f"hazards not judged: {self.reason}" if self.reason == _OPTION else ""
        if self.fault:
            return f"hazard check stopped: {self.fault}"
        if not number:
            return f"no hazards{self._limits}"
        counted_text = counted(number, "hazard") + (" or more" if self.more else "")
        advice = "; fix the first one first: later ones often follow from it"
        return f"{counted_text}: {self.found[0]}{advice if number > 1 else ''}{self._limits}"

    @property
    def _limits(self) -> str:
        only = f"; judged for this input only: {'; '.join(self.only)}" if self.only else ""
        unsure = f"; not shown for every timing: {self.unsure}" if self.unsure else ""
        return only + unsure


_OPTION = "--no-hazards"


def not_judged(reason: str) -> Hazards:
    """The record for a check that was not made, with the reason."""
    return Hazards(judged=Judgement.NOT_JUDGED, reason=reason, every_input=False)


LEFT_OUT = not_judged(_OPTION)
AFTER_A_FAULT = not_judged("the run ended in a fault")
STOPPED = not_judged("the run was stopped before its end")


_MOST_LINES = 10
"""Hazards that tables list one by one; the JSON has all."""


def hazard_lines(hazards: Hazards | None) -> list[str]:
    """The lines of tables about hazards after the first one."""
    if hazards is None:
        return []
    lines = []
    if later := hazards.found[1:]:
        lines.append("further hazards (the verdict names the first):")
        lines += [f"  {each}" for each in later[:_MOST_LINES]]
        if (rest := len(later) - _MOST_LINES) > 0:
            lines.append(f"  {rest} more")
    if hazards.redundant:
        pairs = counted(len(hazards.redundant), "pair")
        lines.append(
            f"{pairs} of unordered instructions write the same value: {hazards.redundant[0]}"
        )
    return lines


def check_hazards(
    pipeline: Pipeline,
    done: Sequence[TensorMap],
    progress: ProgressCallback = silent,
    *,
    alone: Pipeline | None = None,
) -> Hazards:
    """Judge the models of a pipeline, or take the judgement that is kept.

    If data decide the course of a program, the inferences of the first inputs ``done`` are
    repeated: in the pipeline, or in the part ``alone`` that they are inputs of. The chips are
    powered up if anything is judged.
    """
    begin = time.perf_counter()
    path = kept.path_of_models("order", pipeline)
    known = kept.kept(path, Judged)
    judged = known or judge(pipeline, progress)
    if known is None and judged.holds:
        kept.keep(path, judged)
    if judged.depends:
        return _of_given(alone or pipeline, done[:MOST_GIVEN], judged, progress, begin)
    return replace(
        _told(pipeline, [judged.found]),
        seconds=time.perf_counter() - begin,
        fault=judged.fault,
        judged=Judgement.JUDGED if known is None else Judgement.KEPT,
        every_input=not judged.only,
        only=judged.only,
    )


def _told(pipeline: Pipeline, seen: Sequence[Sequence[Found]]) -> Hazards:
    """All that was found, of several with the names of files."""
    told = [named(pipeline, each) for each in seen]
    return Hazards(
        found=_each_once([[each.found for each in found] for found in told]),
        redundant=_each_once([[each.redundant for each in found] for found in told]),
        more=sum(each.more for found in told for each in found),
    )


def _of_given(
    pipeline: Pipeline,
    done: Sequence[TensorMap],
    judged: Judged,
    progress: ProgressCallback,
    begin: float,
) -> Hazards:
    """Make the inferences of inputs ``done`` again, parameters included, and look for hazards.

    The chips are powered up before and after, and in between where the clocks run out.
    """
    compile_kernels(hazards=True)
    _look(pipeline, hazards=True)
    fault = ""
    seen: list[list[Found]] = []
    try:
        for number, inputs in enumerate(done):
            progress(f"hazards: inference {number + 1} of {len(done)}", number, len(done))
            pipeline.infer(inputs)
            now = found_by(pipeline)
            if max(each.used for each in now) >= 1:
                fault = TOO_LONG
            elif max(each.used for each in now) > ENOUGH:
                seen.append(now)
                _look(pipeline, hazards=True)
    except SimulationError as error:
        fault = one_line(error)
    seen.append(found_by(pipeline))
    _look(pipeline, hazards=False)
    return replace(
        _told(pipeline, seen),
        inferences=len(done),
        seconds=time.perf_counter() - begin,
        fault=fault,
        every_input=False,
        only=(judged.depends,),
    )


def found_by(pipeline: Pipeline) -> list[Found]:
    """What each chip has found since it was powered up."""
    return [accelerator.found_hazards() for accelerator in pipeline.accelerators]


def named(pipeline: Pipeline, found: Sequence[Found]) -> list[Found]:
    """What chips have found, of several with the names of files."""
    files = _files(pipeline)
    return list(found) if len(set(files)) == 1 else list(map(_with_file, found, files))


def _with_file(found: Found, file: str) -> Found:
    named, redundant = (
        tuple(replace(each, file=file) for each in hazards)
        for hazards in (found.found, found.redundant)
    )
    return replace(found, found=named, redundant=redundant)


def _each_once(found: Sequence[Sequence[Sequence[Hazard]]]) -> tuple[Hazard, ...]:
    """Each pair of instructions of a chip once; after power-up it may have been found again."""
    once = {
        (chip, each.kind, each.first, each.second): each
        for of_chips in found
        for chip, hazards in enumerate(of_chips)
        for each in hazards
    }
    return tuple(once.values())


def _look(pipeline: Pipeline, *, hazards: bool) -> None:
    for accelerator in pipeline.accelerators:
        accelerator.hazards = hazards
    pipeline.power_up()


def _files(pipeline: Pipeline) -> list[str]:
    """What each of the chips runs."""
    names: dict[int, list[str]] = {}
    for each in pipeline.sessions:
        names.setdefault(id(each.accelerator), []).append(each.file)
    return [" or ".join(dict.fromkeys(of_chip)) for of_chip in names.values()]
