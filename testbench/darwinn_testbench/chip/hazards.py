"""Hazards: accesses to memories of the chip that nothing in the program orders.

The inferences are made again with a checker beside the chip (``darwinn_sim.machine.hazards``). It
finds what another timing of the units could change even where no schedule that was tried does.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from darwinn_formats.brief import brief
from darwinn_sim.accelerator import Accelerator, compile_kernels
from darwinn_sim.errors import SimulationError
from darwinn_sim.machine.hazards import Hazard
from darwinn_sim.machine.hazards import Hazards as Found

from darwinn_testbench.chip.inputs import TensorMap
from darwinn_testbench.chip.pipeline import Pipeline
from darwinn_testbench.report import Verdict, counted, one_line
from darwinn_testbench.report.progress import ProgressCallback, silent


@brief
@dataclass(frozen=True)
class Hazards:
    """What was found in ``inferences`` inferences, parameters included.

    ``redundant`` are writes that nothing orders, but that leave the word as it is. ``more``
    accesses are not listed. A ``fault`` ended the check.
    """

    inferences: int
    seconds: float
    found: tuple[Hazard, ...] = ()
    redundant: tuple[Hazard, ...] = ()
    more: int = 0
    fault: str = ""

    @property
    def verdict(self) -> Verdict:
        """HAZARD if there are any, or the check did not come to its end."""
        return Verdict.HAZARD if self.found or self.fault else Verdict.PASS

    def __str__(self) -> str:
        number = len(self.found)
        if self.fault:
            return f"check of hazards: {self.fault}"
        if not number:
            return "no hazards"
        counted_text = counted(number, "hazard") + (" or more" if self.more else "")
        advice = "; mend the first one first: later ones often follow from it"
        return f"{counted_text}: {self.found[0]}{advice if number > 1 else ''}"


_MOST_LINES = 10
"""Hazards that are told one by one; the JSON has all."""


def hazard_lines(hazards: Hazards | None) -> list[str]:
    """What tables say of hazards after the first."""
    if hazards is None:
        return []
    lines = []
    if later := hazards.found[1:]:
        lines.append("further hazards, after the first one, which the verdict names:")
        lines += [f"  {each}" for each in later[:_MOST_LINES]]
        if (rest := len(later) - _MOST_LINES) > 0:
            lines.append(f"  {rest} more")
    if hazards.redundant:
        pairs = counted(len(hazards.redundant), "pair")
        lines.append(
            f"{pairs} of instructions write the same value where nothing orders them: "
            f"{hazards.redundant[0]}"
        )
    return lines


_ENOUGH = 0.4
"""Share of the clocks after which they begin anew, between two inferences."""


def check_hazards(
    pipeline: Pipeline, done: Sequence[TensorMap], progress: ProgressCallback = silent
) -> Hazards:
    """Make the inferences of inputs ``done`` again, parameters included, and look for hazards.

    The chips are powered up before and after, and in between where the clocks run out.
    """
    begin = time.perf_counter()
    progress("hazards: kernels of their own are compiled, once", 0, len(done))
    compile_kernels(hazards=True)
    _power_up(pipeline, hazards=True)
    fault = ""
    seen: list[list[Found]] = []
    try:
        for number, inputs in enumerate(done):
            progress(f"hazards: inference {number + 1} of {len(done)}", number, len(done))
            pipeline.infer(inputs)
            now = _found(pipeline)
            if max(each.used for each in now) >= 1:
                fault = "an inference is too long to be checked to its end"
            elif max(each.used for each in now) > _ENOUGH:
                seen.append(now)
                _power_up(pipeline, hazards=True)
    except SimulationError as error:
        fault = one_line(error)
    seen.append(_found(pipeline))
    _power_up(pipeline, hazards=False)
    return Hazards(
        len(done),
        time.perf_counter() - begin,
        _each_once([[each.found for each in found] for found in seen]),
        _each_once([[each.redundant for each in found] for found in seen]),
        sum(each.more for found in seen for each in found),
        fault,
    )


def _found(pipeline: Pipeline) -> list[Found]:
    """What each chip has found since it was powered up; of several with the names of files."""
    files = _files(pipeline)
    found = [accelerator.found_hazards() for accelerator in _accelerators(pipeline)]
    return found if len(set(files)) == 1 else list(map(_named, found, files))


def _named(found: Found, file: str) -> Found:
    named, redundant = (
        tuple(replace(each, file=file) for each in hazards)
        for hazards in (found.found, found.redundant)
    )
    return replace(found, found=named, redundant=redundant)


def _each_once(found: Sequence[Sequence[Sequence[Hazard]]]) -> tuple[Hazard, ...]:
    """Each pair of instructions of a chip once; after power-up it may have been found again."""
    kept = {
        (chip, each.kind, each.first, each.second): each
        for of_chips in found
        for chip, hazards in enumerate(of_chips)
        for each in hazards
    }
    return tuple(kept.values())


def _power_up(pipeline: Pipeline, *, hazards: bool) -> None:
    for accelerator in _accelerators(pipeline):
        accelerator.hazards = hazards
        accelerator.power_up()
    for segment in pipeline.segments:
        segment.reset_states()


def _accelerators(pipeline: Pipeline) -> list[Accelerator]:
    """The chips, of which models may share one."""
    return list({id(each.accelerator): each.accelerator for each in pipeline.sessions}.values())


def _files(pipeline: Pipeline) -> list[str]:
    """What each of the chips runs."""
    names: dict[int, list[str]] = {}
    for each in pipeline.sessions:
        names.setdefault(id(each.accelerator), []).append(each.file)
    return [" or ".join(dict.fromkeys(of_chip)) for of_chip in names.values()]
