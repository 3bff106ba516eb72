"""Measure the time of the operators on the CPU on this machine."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial

import numpy as np
from darwinn_formats.brief import brief
from darwinn_formats.darwinn import DarwinnFile, load
from darwinn_formats.errors import ExecutionError, FormatError
from darwinn_formats.files import Source, content_of
from darwinn_reference.arrays import AnyArray
from darwinn_reference.errors import ModelError
from darwinn_reference.tflite.litert import TIME_LIMIT, LiteRtProcess
from darwinn_reference.tflite.rules import RULES
from darwinn_sim.errors import SimulationError

from darwinn_testbench.chip.cpu_operators import CpuOperator, cpu_operators, named_operators
from darwinn_testbench.chip.inputs import TensorPort, random_inputs
from darwinn_testbench.chip.operators.custom_operator import PlacedOperator
from darwinn_testbench.chip.operators.kinds import OWN_CODE
from darwinn_testbench.chip.whole import FAST_KERNELS, WholeModel
from darwinn_testbench.errors import InputError
from darwinn_testbench.report import one_line

MEASUREMENTS = 5
"""Inferences of which the median is taken, after one that is not timed."""

_OFF_CHIP = frozenset(
    (
        *("ABS", "ADD_N", "ARG_MAX", "ARG_MIN", "BATCH_MATMUL", "CAST", "CEIL", "DEQUANTIZE"),
        *("DIV", "ELU", "EXP", "FLOOR", "FLOOR_DIV", "FLOOR_MOD", "GATHER", "GATHER_ND"),
        *("HARD_SWISH", "LOG", "LOG_SOFTMAX", "NEG", "POW", "ROUND", "SHAPE", "SQRT", "SQUARE"),
    )
)
SAME_TIME = RULES.keys() | _OFF_CHIP
"""Operators that take as long whatever the values are, as all do that the chip can run.

Boxes, poses, tables and conditions do not.
"""


class Course(Enum):
    """Values that stand for the outputs of the chip while the operators on the CPU are measured."""

    LOWEST = auto()
    """Each value is the lowest of its type: nothing is found."""
    NOISE = auto()
    """Each value is drawn by itself."""
    HIGHEST = auto()
    """Each value is the highest of its type: all is found."""


_NO_MATTER, _ANY, _OWN_CODE = (Course.NOISE,), tuple(Course), (Course.LOWEST,)
"""Courses to measure: if the time depends on no value, if it does, and if an operator runs in this
program's own code. That takes up to a thousand times as long if there is much to be found, which
says nothing of the vendor's code."""


@brief
@dataclass(frozen=True)
class CpuTime:
    """The operators on the CPU of one model, and their time here.

    ``milliseconds`` is the median of ``measurements`` inferences, in LiteRT with the kernels that
    an application gets and one thread; of operators that LiteRT lacks in this program's own code.
    If the time depends on the outputs of the chip, it is measured for each :class:`Course` of them:
    ``milliseconds`` is then the middle one, and the others are ``least_milliseconds`` and
    ``most_milliseconds``, which is None if that is not known. ``milliseconds`` is None where the
    operators could not be run; ``message`` says why.
    """

    file: str
    operators: tuple[CpuOperator, ...]
    milliseconds: float | None
    measurements: int
    message: str = ""
    least_milliseconds: float | None = None
    most_milliseconds: float | None = None

    def __str__(self) -> str:
        names = named_operators(self.operators)
        if self.milliseconds is None:
            return f"on the CPU: {names}: not measured: {self.message}"
        own = OWN_CODE.intersection(each.name for each in self.operators)
        where = "".join(f", {name} in Python" for name in sorted(own))
        return (
            f"on the CPU: {names}: {self.milliseconds_text}, measured on this machine (median of "
            f"{self.measurements}, LiteRT, one thread{where})"
        )

    @property
    def milliseconds_text(self) -> str:
        """The time for people."""
        least, most = self.least_milliseconds, self.most_milliseconds
        if most is None:
            return f"{self.milliseconds:.3f} ms or more, depending on the chip's outputs"
        if least == most:
            return f"{self.milliseconds:.3f} ms"
        return (
            f"{self.milliseconds:.3f} ms ({least:.3f} to {most:.3f}, depending on the chip's "
            "outputs)"
        )


def cpu_times(source: Source) -> tuple[CpuTime, ...]:
    """The time of a file's operators on the CPU; none where nothing is left to it."""
    file = load(source)
    return (CpuTimer().time(source, file),) if cpu_operators(file) else ()


class CpuTimer:
    """Measures operators on the CPU of one model after another.

    All of them use the same process of LiteRT: it takes longer to start than most operators to run.
    Each model that LiteRT ends with it is tried again in a process of its own.
    """

    def __init__(self) -> None:
        self._process: LiteRtProcess | None = None

    def time(self, source: Source, file: DarwinnFile) -> CpuTime:
        """Run the operators of a whole model that the CPU has, again and again.

        The program of the chip is not run: a :class:`Course` stands for its outputs. If LiteRT
        cannot run an operator, nothing is measured; the result says so, and the chip has no fault.

        Raises:
            FormatError, OSError: the file is not valid or cannot be read.
        """
        operators = cpu_operators(file)
        measured: list[float] = []
        message = ""
        for course in _courses(operators):
            try:
                measured.append(1e3 * self._seconds(source, file, course))
            except (ExecutionError, FormatError, InputError, ModelError, SimulationError) as error:
                message = message or one_line(error)
        if not measured:
            return CpuTime(file.file, operators, None, 0, message)
        in_full = _courses(operators) is not _OWN_CODE
        return CpuTime(
            file.file,
            operators,
            statistics.median_low(measured),
            MEASUREMENTS,
            least_milliseconds=min(measured),
            most_milliseconds=max(measured) if in_full else None,
        )

    def _seconds(self, source: Source, file: DarwinnFile, course: Course) -> float:
        shared = self._process is not None
        try:
            return self._median(source, file, course)
        except ModelError:
            if not (shared and self._process is not None and self._process.ended):
                raise
        return self._median(source, file, course)

    def _median(self, source: Source, file: DarwinnFile, course: Course) -> float:
        assert file.shell is not None
        process = self._process
        if process is None or process.ended:
            process = self._process = LiteRtProcess(file.file, TIME_LIMIT)
        process.file = file.file
        process.exchange({"request": "forget"}, [])
        whole = WholeModel(
            content_of(source),
            file.shell,
            file.file,
            {},
            kernels=FAST_KERNELS,
            stand_in=partial(_StandIn, course=course),
            process=process,
        )
        (tensors,) = random_inputs(whole.ports, 0, 1)
        whole.infer(tensors)
        return statistics.median(whole.infer(tensors).cpu_seconds for _ in range(MEASUREMENTS))


def _courses(operators: Sequence[CpuOperator]) -> tuple[Course, ...]:
    names = {each.name for each in operators}
    if names <= SAME_TIME:
        return _NO_MATTER
    return _OWN_CODE if names & OWN_CODE else _ANY


class _StandIn:
    """Stands for the operator that the chip runs: it gives the same values each time."""

    on_chip = True

    def __init__(self, place: PlacedOperator, course: Course) -> None:
        self.outputs = place.outputs
        (drawn,) = random_inputs(place.outputs, 0, 1)
        self._values = [_values(port, drawn[port.name], course) for port in self.outputs]

    def prepare(self) -> None:
        """There is nothing to prepare."""

    def run(self, inputs: Sequence[AnyArray]) -> tuple[list[AnyArray], dict[int, AnyArray]]:
        """The values of the course; variables keep the values that they have."""
        return self._values, {}


def _values(port: TensorPort, drawn: AnyArray, course: Course) -> AnyArray:
    if course is Course.NOISE or port.dtype.kind not in "iu":
        return drawn
    ends = np.iinfo(port.dtype)
    return np.full(port.shape, ends.min if course is Course.LOWEST else ends.max, port.dtype)
