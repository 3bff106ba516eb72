"""Judge whether every legal timing gives the same bytes, for every input: once for a program.

Flags, fences, tokens and queues order accesses. Data do not change this order as long as they
decide neither a branch nor an address. So two inferences on arbitrary data find the unordered
accesses of all inputs. Further inferences, on the same data but with other bytes in memory that
nothing has written, show whether such a byte reaches an output. In all of them the output stage
computes random functions (``darwinn_sim.units.any_function``), so no clip hides anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from darwinn_sim.accelerator import AnyInput, compile_kernels
from darwinn_sim.errors import SimulationError, UninitialisedRead
from darwinn_sim.host.output_check import Elements, differing_output
from darwinn_sim.machine.hazards import Hazard
from darwinn_sim.machine.hazards import Hazards as Found

from darwinn_testbench.chip.inputs import TensorMap, choose_inputs
from darwinn_testbench.chip.pipeline import Pipeline
from darwinn_testbench.chip.session import Session
from darwinn_testbench.report import one_line
from darwinn_testbench.report.progress import ProgressCallback, silent
from darwinn_testbench.request.inputs import InputKind

_ROUNDS = 2
"""Inferences of each model: the second one meets the leftovers of the first."""

ENOUGH = 0.4
"""If more than this share of the clocks is used, they start anew between two inferences."""

TOO_LONG = "an inference is too long to be checked to its end"

_INPUTS = 1
_CONTENTS, *_OTHERS = 2, 3, 0, 1
"""The seed of arbitrary data; then the contents of memory that nothing has written, first and in
the further inferences: random bytes, zeros, and ones (the greatest value).
"""

_WHERE_IT_MATTERS = "for an address, a branch or a descriptor"


@dataclass(frozen=True)
class Judged:
    """The findings for each chip, in the order of :attr:`Pipeline.accelerators`.

    ``only`` names findings that hold for the inputs of an ordinary run, and perhaps for no others.
    ``depends`` says where the course of the program depends on inputs; then nothing has been
    judged. A ``fault`` ended the check.
    """

    found: tuple[Found, ...] = ()
    only: tuple[str, ...] = ()
    depends: str = ""
    fault: str = ""

    @property
    def holds(self) -> bool:
        """Whether it is worth keeping."""
        return not (self.depends or self.fault)


def judge(pipeline: Pipeline, progress: ProgressCallback = silent) -> Judged:
    """Judge the models of ``pipeline``, one after another on their chips, parameters included.

    The chips are powered up before and after.
    """
    progress("hazards: kernels of their own are compiled, once", 0, 1)
    compile_kernels()
    compile_kernels(hazards=True)
    with as_they_were(pipeline):
        return _judge(pipeline, progress)


def _judge(pipeline: Pipeline, progress: ProgressCallback) -> Judged:
    chips = pipeline.accelerators
    progress("hazards: looking at the program, once", 0, 2)
    try:
        with _arbitrary(pipeline, _CONTENTS, hazards=True):
            first = list(_outputs(pipeline))
            found = tuple(each.found_hazards() for each in chips)
    except UninitialisedRead as error:
        return _undecided(pipeline, error)
    except SimulationError as error:
        return Judged(fault=one_line(error))
    if max(each.used for each in found) >= 1:
        return Judged(found, fault=TOO_LONG)
    progress("hazards: other bytes in memory that nothing has written", 1, 2)
    try:
        differing = _first_difference(pipeline, first)
    except SimulationError as error:
        return Judged(found, fault=one_line(error))
    if differing is None:
        return Judged(found)
    read = _unwritten_read(pipeline)
    if read is not None:
        return Judged(_with(found, *read))
    text = (
        f"{differing.number:,} elements of output {differing.name!r} use memory that nothing has "
        "written, but its contents changed no byte"
    )
    return Judged(found, only=(text,))


def _undecided(pipeline: Pipeline, error: UninitialisedRead) -> Judged:
    """The result for a program that uses data, or unwritten memory, to decide its course."""
    uses = [each.unwritten for each in pipeline.accelerators if each.unwritten is not None]
    read = _unwritten_read(pipeline)
    if read is not None:
        nothing = tuple(Found() for _ in pipeline.accelerators)
        return Judged(_with(nothing, *read))
    where = uses[0].second if uses else one_line(error)
    return Judged(depends=f"{where} uses data that follow from the input {_WHERE_IT_MATTERS}")


def _first_difference(pipeline: Pipeline, first: Sequence[dict[str, bytes]]) -> Elements | None:
    """Elements of outputs that are not as ``first`` with other bytes where nothing has written."""
    sessions = pipeline.sessions
    for contents in _OTHERS:
        with _arbitrary(pipeline, contents, hazards=False):
            for number, (one, other) in enumerate(zip(first, _outputs(pipeline), strict=False)):
                executable = sessions[number % len(sessions)].model.compiled.inference
                found = differing_output(executable, one, other)
                if found is not None:
                    return found
    return None


def _unwritten_read(pipeline: Pipeline) -> tuple[int, Hazard] | None:
    """The read of unwritten memory that ends ordinary inferences in strict mode, with the number of
    its chip; None if there is none.
    """
    chips = pipeline.accelerators
    for chip in chips:
        chip.unwritten, chip.hazards, chip.strict = None, True, True
    pipeline.power_up()
    try:
        for kind in range(len(InputKind)):
            for _ in _outputs(pipeline, kind):
                pass
    except SimulationError:
        for number, chip in enumerate(chips):
            if chip.unwritten is not None:
                return number, chip.unwritten
    finally:
        for chip in chips:
            chip.hazards, chip.strict = False, False
    return None


def _with(found: Sequence[Found], number: int, read: Hazard) -> tuple[Found, ...]:
    changed = list(found)
    changed[number] = replace(changed[number], found=(read, *changed[number].found))
    return tuple(changed)


@contextmanager
def _arbitrary(pipeline: Pipeline, contents: int, *, hazards: bool) -> Iterator[None]:
    chips = pipeline.accelerators
    for chip in chips:
        chip.hazards, chip.any_input, chip.strict = hazards, AnyInput(_INPUTS, contents), False
        chip.unwritten = None
    pipeline.power_up()
    try:
        yield
    finally:
        for chip in chips:
            chip.hazards, chip.any_input = False, None


@contextmanager
def as_they_were(pipeline: Pipeline) -> Iterator[None]:
    """The chips are as strict afterwards as they are now, and powered up."""
    chips = pipeline.accelerators
    before = [chip.strict for chip in chips]
    try:
        yield
    finally:
        for chip, strict in zip(chips, before, strict=True):
            chip.strict = strict
        pipeline.power_up()


def _outputs(pipeline: Pipeline, kind: int = 0) -> Iterator[dict[str, bytes]]:
    """The outputs of inferences of all models, round after round, while there are clocks left."""
    inputs = [_some_inputs(session, kind) for session in pipeline.sessions]
    for _ in range(_ROUNDS):
        for session, tensors in zip(pipeline.sessions, inputs, strict=True):
            yield session.infer(tensors).result.outputs
        if max(each.found_hazards().used for each in pipeline.accelerators) > ENOUGH:
            return


def _some_inputs(session: Session, kind: int) -> TensorMap:
    return choose_inputs(None, session.ports, seed=0, runs=len(InputKind))[kind]
