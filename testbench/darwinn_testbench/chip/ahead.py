"""Inferences on a lifted program: many at a time if many are expected, else one by one.

A lifted program (``darwinn_sim.lifting``) gives the same bytes as runs, in a fraction of the time.
Lifting costs about as much as 36 runs. Lifted programs are kept for other processes, which use them
from their second inference on. While one process lifts a program, others run it.
"""

from __future__ import annotations

import multiprocessing
import operator
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from darwinn_formats.darwinn import Executable
from darwinn_formats.limits import limits
from darwinn_sim.accelerator import Accelerator, RunResult
from darwinn_sim.errors import SimulationError
from darwinn_sim.lifting.kept import alone, keep, kept
from darwinn_sim.lifting.program import LiftedProgram, lift
from darwinn_sim.lifting.walk import NotLifted

from darwinn_testbench.chip.inputs import TensorMap
from darwinn_testbench.chip.model import BoundModel
from darwinn_testbench.errors import InputError

LEAST_INPUTS = 32
"""Lifting starts at this number of inferences, made and expected."""

REPEATED = 64
"""After this number of inferences in a row, with nothing else on the chip, a program is lifted for
the next ones. They took longer than lifting takes, so lifting at most doubles the whole time. For
MobileNets of 224 x 224, lifting takes as long as 30 to 36 runs.
"""

_MOST_LIFTED = 2
"""Most times that a program is lifted, if others change the chip meanwhile."""

_SHARE = 8
"""Share of a run's memory limit that values of lifted inferences may take."""

Octets = Mapping[str, bytes]


@dataclass(frozen=True)
class Lifted:
    """The result of lifting: the number of ``inferences`` on the lifted program.

    ``seconds`` is the time that lifting took. ``reason`` says why the program was not lifted, or
    why that was not tried although many inferences are expected.
    """

    inferences: int = 0
    seconds: float = 0.0
    reason: str = ""

    def __str__(self) -> str:
        """One line."""
        if self.reason:
            return f"each inference by itself: {self.reason}"
        what = "inference" if self.inferences == 1 else "inferences"
        return f"{self.inferences} {what} on the lifted program, ready in {self.seconds:.1f} s"


class Ahead:
    """Inferences of ``model`` on ``accelerator``, of which some may be expected."""

    def __init__(self, model: BoundModel, accelerator: Accelerator) -> None:
        self._model, self._accelerator = model, accelerator
        self._expected: Sequence[TensorMap] = ()
        self._next = 0
        self._plain = self._alone = self._more = 0
        self._last: tuple[Octets, RunResult] | None = None
        self._program: LiftedProgram | None = None
        self._at = self._before = (0, 0, 0)
        self._times = 0
        self._looked = False
        self._made: deque[tuple[Octets, Octets, float]] = deque()
        self.are_many = False
        """Whether as many are expected as a program is lifted for."""
        self.lifted = Lifted()

    def expect(self, sets: Sequence[TensorMap], more: int = 0) -> None:
        """Inferences on ``sets`` follow, in this order, and behind them about so many ``more``, on
        inputs that nobody knows, in this process or in others."""
        self._expected, self._more = sets, more
        self.are_many = self._are_many(len(sets))
        self._next = 0
        self._made.clear()

    def take(self, inputs: Octets) -> tuple[RunResult, float] | None:
        """What an inference on these inputs gives, and seconds; None if it has to be run."""
        if self._last is None or self.lifted.reason:
            return None
        try:
            found = self._found(inputs)
        except MemoryError:
            self._give_up("the lifted program takes more memory than there is")
            return None
        if found is None:
            return None
        outputs, seconds = found
        model, last = self._model.compiled, self._last[1]
        self._accelerator.defer(model.inference, inputs, model.number)
        self._at = self._now
        self.lifted = replace(self.lifted, inferences=self.lifted.inferences + 1)
        return _copied(last, dict(outputs)), seconds

    def _found(self, inputs: Octets) -> tuple[Octets, float] | None:
        """What the lifted program gives for these inputs, and seconds; None if there is none."""
        self._require_alone(self._now)
        if not self._made:
            self._make(inputs)
        if self._made and self._made[0][0] == inputs:
            _, outputs, seconds = self._made.popleft()
            return outputs, seconds
        worth = self._at == self._now and self._alone + self._more >= REPEATED
        return self._make_one(inputs) if self._is_lifted(worth) else None

    def ran(self, inputs: Octets, result: RunResult) -> None:
        """An inference has been run."""
        self._plain += 1
        if result.stopped or result.incomplete:
            self._give_up("its program stops before its end")
        # A copy: the result is the caller's, who may write into it.
        self._last = inputs, _copied(result, dict(result.outputs))
        self._require_alone(self._before)
        self._alone += 1
        self._at = self._now
        if self._is_next(inputs):
            self._next += 1

    def begins(self) -> None:
        """An inference is about to be run."""
        self._before = self._now

    @property
    def _now(self) -> tuple[int, int, int]:
        chip = self._accelerator
        return chip.power_ups, chip.runs, chip.preloads

    def _is_next(self, inputs: Octets) -> bool:
        return next(self._following(), None) == inputs

    def _following(self) -> Iterator[Octets]:
        """Inputs of those that are expected next, up to one that is none: who makes that inference
        is told."""
        for k in range(self._next, len(self._expected)):
            try:
                octets = self._model.to_device(self._expected[k])
            except Exception:
                # Whatever a sequence that reads its sets may raise.
                return
            yield octets

    def _give_up(self, reason: str) -> None:
        self._expected, self._program = (), None
        self._made.clear()
        self.lifted = replace(self.lifted, reason=reason)

    def _is_lifted(self, worth: bool) -> bool:
        """Whether the program is lifted: it is if it is ``worth`` it; what another session has
        lifted is looked for once in any case. An inference has to have been run since somebody
        else has used the chip: what is lifted is compared with it."""
        self._require_alone(self._now)
        if self._program is None and self._alone and (worth or not self._looked):
            self._looked = True
            self._find(worth)
        return self._program is not None

    def _require_alone(self, at: tuple[int, int, int]) -> None:
        """Forget what follows from the memories of the chip, if somebody else has used it since:
        they may hold other parameters."""
        if self._at != at:
            self._program, self._alone = None, 0
            self._next -= len(self._made)
            self._made.clear()

    def _make(self, inputs: Octets) -> None:
        """Make the next inferences, if these are the inputs of the first of them."""
        left = len(self._expected) - self._next
        if left <= 0 or not self._is_next(inputs):
            return
        if not self._is_lifted(self._are_many(left)):
            return
        assert self._program is not None
        threads = _threads()
        count = self._program.inputs_at_once(left, limits().memory // _SHARE, threads)
        octets = list(islice(self._following(), count))
        begin = time.perf_counter()
        found = self._program.run(octets, threads)
        seconds = (time.perf_counter() - begin) / len(octets)
        pairs = zip(octets, found, strict=True)
        self._made.extend((each, outputs, seconds) for each, outputs in pairs)
        self._next += len(octets)

    def _are_many(self, known: int) -> bool:
        """Whether a program is worth being lifted if inferences on so many known inputs follow."""
        many = self._plain + known
        return many >= LEAST_INPUTS or many + self._more >= REPEATED

    def _make_one(self, inputs: Octets) -> tuple[Octets, float]:
        """An inference that was not expected."""
        assert self._program is not None
        begin = time.perf_counter()
        (outputs,) = self._program.run([inputs])
        return outputs, time.perf_counter() - begin

    def _find(self, worth: bool) -> None:
        """Use what others have lifted, or lift the program if it is ``worth`` it."""
        executable = self._model.compiled.inference
        begin = time.perf_counter()
        try:
            if self._is_kept(executable, begin) or not worth:
                return
            with alone(executable) as is_alone:
                # Who had it until now may have kept what it has found.
                if is_alone and not self._is_kept(executable, begin):
                    self._lift(executable, begin)
        except (NotLifted, SimulationError) as error:
            self._give_up(str(error))

    def _is_kept(self, executable: Executable, begin: float) -> bool:
        """Whether somebody has lifted it before: that is used."""
        program = kept(self._accelerator, executable)
        if program is None or not self._gives_the_same(program):
            return False
        self._use(program, begin)
        return True

    def _lift(self, executable: Executable, begin: float) -> None:
        """Lift the program, and see that it gives what the last inference gave."""
        if self._times == _MOST_LIFTED:
            self._give_up("other programs change the chip meanwhile")
            return
        program = lift(self._accelerator, executable)
        if not self._gives_the_same(program):
            raise NotLifted("the lifted program differs from a run; please report that")
        self._use(program, begin)
        # Only now: who interrupts it, or fails meanwhile, has not changed the chip.
        self._times += 1
        keep(executable, program)

    def _use(self, program: LiftedProgram, begin: float) -> None:
        self._program, self._at = program, self._now
        seconds = self.lifted.seconds + time.perf_counter() - begin
        self.lifted = replace(self.lifted, seconds=seconds)

    def _gives_the_same(self, program: LiftedProgram) -> bool:
        """As the last inference that was run; elements are equal, what is between them may be
        anything."""
        assert self._last is not None
        inputs, result = self._last
        (outputs,) = program.run([inputs])
        tensors = self._model.from_device(outputs), self._model.from_device(result.outputs)
        return all(
            tensors[0][name].tobytes() == each.tobytes() for name, each in tensors[1].items()
        )


def what_follows(
    sets: object, require: Callable[[object], TensorMap]
) -> tuple[Sequence[TensorMap], int]:
    """Sets of inputs that follow, and how many inferences on unknown ones: one of the two.

    ``require`` refuses what is no set of inputs, by InputError. All sets of a list or a tuple are
    looked at; of another sequence, which may read or draw a set when it is asked for it, the first
    one.

    Raises:
        InputError: neither a sequence of sets nor a count; a set that ``require`` refuses.
    """
    if not isinstance(sets, Sequence) or isinstance(sets, str | bytes | bytearray | memoryview):
        return (), number_of(sets)
    for number, tensors in enumerate(sets if isinstance(sets, list | tuple) else islice(sets, 1)):
        try:
            require(tensors)
        except InputError as error:
            raise InputError(f"set {number} of those expected: {error}") from None
    return sets, 0


def number_of(value: object) -> int:
    """``value`` as a number of inferences; InputError if it is none."""
    try:
        count = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        wanted = "a list (or another sequence) of sets of inputs, or a number of inferences"
        parts = isinstance(value, Iterable) and not isinstance(value, Sequence | Mapping)
        hint = "; if memory does not hold all sets, give a list of some at a time" if parts else ""
        raise InputError(f"expected {wanted}, got {type(value).__name__}{hint}") from None
    if count < 0:
        raise InputError(f"number of expected inferences must be >= 0, got {count}")
    return count


def _copied(result: RunResult, outputs: dict[str, bytes]) -> RunResult:
    """The same with ``outputs``, lists and dicts of its own, and nothing that was tapped."""
    return replace(
        result,
        outputs=outputs,
        transfers=list(result.transfers),
        interrupts=list(result.interrupts),
        statistics=dict(result.statistics),
        tapped=[],
    )


def _threads() -> int:
    """Threads that make inferences: one for each core, but in one of several processes."""
    return 1 if multiprocessing.parent_process() else len(os.sched_getaffinity(0))
