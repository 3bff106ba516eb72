"""Judge whether a model's programs end in every timing (``darwinn_sim.machine.completion``).

Random orders (``schedules``) try some timings. Here one inference shows that no timing can
deadlock, or names the first place where this is not shown. That its units wait for nothing that
another order closes is half of it; the other is that it ends with a host that serves it in order
(``standstill``).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain

from darwinn_formats.brief import brief
from darwinn_formats.errors import FormatError
from darwinn_sim.accelerator import compile_kernels
from darwinn_sim.errors import SimulationError
from darwinn_sim.isa.codec import DecodeError
from darwinn_sim.machine.completion import Doubt, Reason
from darwinn_sim.machine.hazards import Hazard

from darwinn_testbench.chip import kept
from darwinn_testbench.chip.any_timing import as_they_were
from darwinn_testbench.chip.hazards import Hazards, found_by, named
from darwinn_testbench.chip.inputs import TensorMap
from darwinn_testbench.chip.pipeline import Pipeline
from darwinn_testbench.chip.standstill import standstill
from darwinn_testbench.report import Verdict, one_line
from darwinn_testbench.report.progress import ProgressCallback, silent

_INFERENCES = 2
"""The second inference meets the leftovers of the first; nothing else differs between inferences.
"""


@brief
@dataclass(frozen=True)
class Completion:
    """Whether ``inferences`` inferences, parameters included, end in every order of the units:
    ``cannot_deadlock``, or there are ``doubts``, the first of each kind. A ``fault`` ended the
    check. ``stands_still`` says with which host a program waits for ever, and where.

    ``unordered`` are the accesses that nothing orders as far as this check knows, and ``unlisted``
    is how many it cannot list. The check knows less of a unit than the program says, so all hazards
    are among these, and some of these may be none.
    """

    cannot_deadlock: bool
    inferences: int
    seconds: float = 0.0
    doubts: tuple[Doubt, ...] = ()
    fault: str = ""
    unordered: tuple[Hazard, ...] = ()
    unlisted: int = 0
    stands_still: str = ""

    @property
    def verdict(self) -> Verdict:
        """FAULT if a program waits for ever; a doubt is no deadlock, and decides nothing."""
        return Verdict.FAULT if self.stands_still else Verdict.PASS

    def __str__(self) -> str:
        if self.stands_still:
            return f"waits for ever {self.stands_still}"
        if self.cannot_deadlock:
            return "cannot deadlock"
        why = self.fault or str(self.doubts[0])
        return f"not shown that it cannot deadlock (--schedules N tries random orders): {why}"


def check_completion(
    pipeline: Pipeline, done: Sequence[TensorMap], progress: ProgressCallback = silent
) -> Completion:
    """Repeat the first inferences of inputs ``done``, parameters included, and judge whether they
    end in every order of the units; or take the judgement that is kept.

    The chips are powered up before and after, if they are asked.
    """
    begin = time.perf_counter()
    some = done[:_INFERENCES]
    path = kept.path_of_models(f"completion{len(some)}", pipeline)
    known = kept.kept(path, Completion)
    found = known or _asked_of(pipeline, some, progress)
    if known is None and not found.fault:
        kept.keep(path, found)
    return replace(found, seconds=time.perf_counter() - begin)


def _asked_of(
    pipeline: Pipeline, some: Sequence[TensorMap], progress: ProgressCallback
) -> Completion:
    compile_kernels(hazards=True)
    fault = ""
    with _asked(pipeline):
        try:
            for number, inputs in enumerate(some):
                progress(f"deadlocks: inference {number + 1} of {len(some)}", number, len(some))
                pipeline.infer(inputs)
        except SimulationError as error:
            fault = one_line(error)
        doubts = tuple(_doubts(pipeline))
        found = named(pipeline, found_by(pipeline))
    stands_still = ""
    if not fault and all(each.reason is not Reason.DATA for each in doubts):
        progress("deadlocks: the order of the host", len(some), len(some))
        try:
            stands_still = standstill(pipeline)
        except (SimulationError, FormatError, DecodeError) as error:
            fault = one_line(error)
    return Completion(
        not (doubts or fault or stands_still),
        len(some),
        doubts=doubts,
        fault=fault,
        unordered=tuple(chain.from_iterable((*each.found, *each.redundant) for each in found)),
        unlisted=sum(each.more + each.dropped for each in found),
        stands_still=stands_still,
    )


def confirmed(hazards: Hazards, completion: Completion) -> Hazards:
    """The judgement ``hazards``, with the first access that ``completion`` adds to it.

    The checker of hazards may give a unit too much knowledge and miss an access; this check never
    gives too much. So hazards are proved absent if both find the same.
    """
    if not hazards.proved:
        return hazards
    known = {_pair(each): each.words for each in hazards.redundant}
    for each in completion.unordered:
        if each.words > known.get(_pair(each), 0):
            return replace(hazards, unsure=f"{each} (the checker may know too little)")
    if completion.unlisted:
        return replace(hazards, unsure=f"{completion.unlisted} accesses were not checked")
    return hazards


def _pair(hazard: Hazard) -> tuple[object, ...]:
    return hazard.kind, hazard.first, hazard.second, hazard.file


def _doubts(pipeline: Pipeline) -> Iterator[Doubt]:
    """What each chip doubts; of several with the names of files."""
    files: dict[int, str] = {id(each.accelerator): each.file for each in pipeline.sessions}
    for accelerator in pipeline.accelerators:
        for doubt in accelerator.found_completion().doubts:
            name = files[id(accelerator)] if len(set(files.values())) > 1 else ""
            yield replace(doubt, file=name)


@contextmanager
def _asked(pipeline: Pipeline) -> Iterator[None]:
    """The chips, powered up to be asked, and again as they are otherwise. Words of the tiles count
    as unwritten meanwhile, which strict mode would refuse in an output."""
    chips = pipeline.accelerators
    with as_they_were(pipeline):
        for chip in chips:
            chip.hazards, chip.completion, chip.strict = True, True, False
        pipeline.power_up()
        try:
            yield
        finally:
            for chip in chips:
                chip.hazards = chip.completion = False
