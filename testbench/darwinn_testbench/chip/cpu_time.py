"""Measure the time of the operators on the CPU on this machine."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from darwinn_formats.brief import brief
from darwinn_formats.darwinn import DarwinnFile, load
from darwinn_formats.errors import ExecutionError, FormatError
from darwinn_formats.files import Source, content_of
from darwinn_reference.arrays import AnyArray
from darwinn_reference.errors import ModelError
from darwinn_reference.tflite.rules import RULES
from darwinn_sim.errors import SimulationError

from darwinn_testbench.chip.cpu_operators import CpuOperator, cpu_operators, named_operators
from darwinn_testbench.chip.inputs import TensorMap, random_inputs
from darwinn_testbench.chip.model import bind_file
from darwinn_testbench.chip.operators.custom_operator import PlacedOperator
from darwinn_testbench.chip.operators.kinds import OWN_CODE
from darwinn_testbench.chip.session import Device, Inference, Session
from darwinn_testbench.chip.whole import FAST_KERNELS, WholeModel, whole_of
from darwinn_testbench.errors import InputError
from darwinn_testbench.report import one_line

MEASUREMENTS = 5
"""Inferences of which the median is taken, after one that is not timed."""

_OFF_CHIP = frozenset(
    (
        *("ABS", "ADD_N", "ARG_MAX", "ARG_MIN", "BATCH_MATMUL", "CAST", "CEIL", "DEQUANTIZE"),
        *("DIV", "ELU", "EXP", "FLOOR", "HARD_SWISH", "LOG", "LOG_SOFTMAX", "NEG", "POW", "ROUND"),
        *("SHAPE", "SQRT", "SQUARE"),
    )
)
SAME_TIME = RULES.keys() | _OFF_CHIP
"""Operators that take as long whatever the values are, as all do that the chip can run.

Boxes, tables and conditions do not.
"""


@brief
@dataclass(frozen=True)
class CpuTime:
    """The operators on the CPU of one model, and their time here.

    ``milliseconds`` is the median of ``measurements`` inferences, in LiteRT with the kernels that
    an application gets and one thread; of operators that LiteRT lacks in this program's own code.
    It is None where they could not be run; ``message`` says why.
    """

    file: str
    operators: tuple[CpuOperator, ...]
    milliseconds: float | None
    measurements: int
    message: str = ""

    def __str__(self) -> str:
        if self.milliseconds is None:
            names = named_operators(self.operators)
            return f"on the CPU: {names}: not measured: {self.message}"
        own = OWN_CODE.intersection(each.name for each in self.operators)
        where = "".join(f", {name} in Python" for name in sorted(own))
        return (
            f"on the CPU: {named_operators(self.operators)}: {self.milliseconds:.3f} ms, measured "
            f"on this machine (median of {self.measurements}, LiteRT, one thread{where})"
        )


def cpu_times(source: Source) -> tuple[CpuTime, ...]:
    """The time of a file's operators on the CPU; none where nothing is left to it."""
    return (cpu_time(source),) if cpu_operators(load(source)) else ()


def cpu_time(source: Source, *, assumptions: bool = True) -> CpuTime:
    """Run the operators of a whole model that the CPU has on noise, again and again.

    The chip's part is run once, also on noise, if the time of an operator depends on what it gives;
    otherwise noise takes its place. What cannot be run is not measured: that says so, and is no
    error of the chip's part.

    Raises:
        FormatError, OSError: the file is not valid or cannot be read.
    """
    file = load(source)
    operators = cpu_operators(file)
    try:
        if all(each.name in SAME_TIME for each in operators):
            whole = _with_noise(source, file)
        else:
            whole = _with_chip(source, file, assumptions)
        (tensors,) = random_inputs(whole.ports, 0, 1)
        whole.infer(tensors)
        seconds: Sequence[float] = [whole.infer(tensors).cpu_seconds for _ in range(MEASUREMENTS)]
    except (ExecutionError, FormatError, InputError, ModelError, SimulationError) as error:
        return CpuTime(file.file, operators, None, 0, one_line(error))
    return CpuTime(file.file, operators, 1e3 * statistics.median(seconds), MEASUREMENTS)


class _Noise:
    """Stands for the operator that the chip runs: the same noise each time."""

    on_chip = True

    def __init__(self, place: PlacedOperator) -> None:
        self.outputs = place.outputs
        (self._drawn,) = random_inputs(place.outputs, 0, 1)

    def prepare(self) -> None:
        """There is nothing to prepare."""

    def run(self, inputs: Sequence[AnyArray]) -> tuple[list[AnyArray], dict[int, AnyArray]]:
        """The noise; variables keep the values that they have."""
        return [self._drawn[port.name] for port in self.outputs], {}


def _with_noise(source: Source, file: DarwinnFile) -> WholeModel:
    assert file.shell is not None
    return WholeModel(
        content_of(source), file.shell, file.file, {}, kernels=FAST_KERNELS, stand_in=_Noise
    )


def _with_chip(source: Source, file: DarwinnFile, assumptions: bool) -> WholeModel:
    bounds = bind_file(file)
    made: dict[int, Inference] = {}

    def once(session: Session, tensors: TensorMap) -> Inference:
        """The chip's part is the same each time: it is run once."""
        number = session.model.number
        if number not in made:
            made[number] = session.infer(tensors, as_far_as_it_goes=True)
        return made[number]

    session = Session(bounds[0], device=Device(assumptions=assumptions))
    return whole_of(source, file, bounds, session, once, FAST_KERNELS)
