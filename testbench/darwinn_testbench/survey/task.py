"""One row of a survey: what a file says of itself, its verdict, and its cycles."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from darwinn_formats.darwinn import Executable
from darwinn_sim import timing
from darwinn_sim.isa import grading
from darwinn_sim.isa.fields import Grade
from darwinn_sim.isa.grading import Assumption

from darwinn_testbench.chip.cycles import link_of, time_executable
from darwinn_testbench.chip.execution import ChipRun, chip_run
from darwinn_testbench.chip.model import open_models
from darwinn_testbench.comparison.excitation import ExcitationFigures
from darwinn_testbench.comparison.operator_coverage import How, OperatorFigures
from darwinn_testbench.engine import Engine
from darwinn_testbench.regression.pool import ChipWork
from darwinn_testbench.regression.task import Task, command_of, is_conclusive, told, verified
from darwinn_testbench.report import Row, Verdict, is_of_the_machine, judged
from darwinn_testbench.report.result import PYTHON_ONLY
from darwinn_testbench.request.record import command_line, plain_of
from darwinn_testbench.request.records import Run
from darwinn_testbench.request.surveying import Options as Options
from darwinn_testbench.request.timing import DEFAULT_CHIP
from darwinn_testbench.survey.field_values import FieldValues, field_values, uses_of

PIPELINE = "pipeline"
"""The kind of a row that is no file."""


@dataclass(frozen=True, kw_only=True)
class SurveyRow(Row):
    """One model of one file, or a whole pipeline.

    Attributes:
        key: changes with anything that the row depends on.
        file: the compiled model.
        model: which of the file.
        kind: ``tflite``, ``package``, ``stream`` or ``pipeline``; empty of what cannot be read.
        reference: the model before compilation that it was compared with; None without one.
        companions: files that cache its parameters, or the further segments of a pipeline.
        runtime: least version of the runtime that can load it; None if it does not say.
        compiler: what it says of its compiler; empty if nothing.
        executables: their types, in the order in which they run.
        assumptions: values of fields that are executed by an assumed rule.
        refused: values of fields that are not executed, with the reason.
        reference_assumes: operators that the oracle computes by a rule that no file has shown.
        operators: how many operators of the reference were compared byte for byte (``exact``), by
            policy only and not at all; None if that is not known.
        cycles, milliseconds: of an inference on the chip, approximate, the host's fixed cost not
            among the cycles; None where it cannot be timed, for the reason in ``untimed``.
        excited: share of the channels, of the reference's tensors or without one of the outputs,
            that took more than one value; None where there was none to look at.
        warnings: what makes a pass doubtful.
        inferences: how many were run.
        conclusive: False where the machine and not the program is to blame (too little time or
            memory, something that is not installed): the row is made again in the next call.
        seconds: that all of it took on this machine.
        command: the command that does the row alone.
    """

    key: str
    file: str
    model: int = 0
    kind: str = ""
    reference: str | None = None
    companions: tuple[str, ...] = ()
    runtime: int | None = None
    compiler: str = ""
    executables: tuple[str, ...] = ()
    assumptions: tuple[Assumption, ...] = ()
    refused: tuple[str, ...] = ()
    reference_assumes: tuple[str, ...] = ()
    operators: dict[str, int] | None = None
    cycles: int | None = None
    milliseconds: float | None = None
    untimed: str = ""
    excited: float | None = None
    warnings: tuple[str, ...] = ()
    inferences: int = 0
    conclusive: bool = True
    seconds: float = 0.0
    command: str = ""
    values: tuple[FieldValues, ...] = field(default=(), metadata=PYTHON_ONLY)

    drawn = ("cycles",)
    unit = "cycles"

    @property
    def duration(self) -> float:
        """Seconds of the row."""
        return self.seconds

    @property
    def last_file(self) -> str:
        """The compiled model; of a pipeline the last segment."""
        return self.companions[-1] if self.kind == PIPELINE else self.file

    @property
    def exact_share(self) -> float | None:
        """Share of the operators that were compared byte for byte; None if that is not known."""
        if not self.operators:
            return None
        return self.operators["exact"] / max(sum(self.operators.values()), 1)

    @property
    def cells(self) -> Mapping[str, str]:
        """What a list of rows shows beside the verdict."""
        share = self.exact_share
        return {
            "runtime": "" if self.runtime is None else str(self.runtime),
            "byte for byte": "" if share is None else f"{100 * share:.0f} %",
            "cycles": "" if self.cycles is None else f"{self.cycles:,}",
            "verdict": self.verdict.value,
        }


@dataclass(frozen=True)
class _RowTask(ChipWork, ABC):
    """A row to be made: ``row`` holds what is known of it before, and the key of the task."""

    row: SurveyRow

    @property
    def key(self) -> str:
        """Of what is done, and of this kind of task."""
        return self.row.key

    def perform(self) -> SurveyRow:
        """Do it; whatever goes wrong is a verdict, never an exception."""
        begin = time.perf_counter()
        found: dict[str, Any] = {"command": self._command()}
        for work in self._works():
            found |= _attempt(work)
        return replace(self.row, **found, seconds=round(time.perf_counter() - begin, 3))

    def failed(self, message: str) -> SurveyRow:
        """The row where the process that did it gave none."""
        return replace(
            self.row,
            verdict=Verdict.FAULT,
            message=message,
            command=self._command(),
            conclusive=False,
        )

    @abstractmethod
    def _works(self) -> tuple[Callable[[], dict[str, Any]], ...]:
        """What gives the fields of the row."""

    @abstractmethod
    def _command(self) -> str:
        """The command that does the row alone."""


@dataclass(frozen=True)
class ModelTask(_RowTask):
    """A model to be verified and timed."""

    task: Task

    @property
    def timeout(self) -> float:
        """Seconds that it may take."""
        return self.task.timeout

    def _works(self) -> tuple[Callable[[], dict[str, Any]], ...]:
        return self._judged, self._described

    def _command(self) -> str:
        return command_of(self.task)

    def _described(self) -> dict[str, Any]:
        case = self.task.case
        compiled = open_models(case.file, case.companions)[case.model].compiled
        order = [each for each in (compiled.caching, compiled.inference) if each is not None]
        programs = [
            [bytes(part.bitstream) for part in each.instruction_bitstreams] for each in order
        ]
        uses = [uses_of(chunks) for chunks in programs]
        return {
            "executables": tuple(each.type.name for each in order),
            "values": field_values(chain.from_iterable(programs)),
            "assumptions": grading.merged(map(grading.assumptions, uses)),
            "refused": tuple(
                f"{use.instruction}.{use.field} {use.value}: {use.rule}"
                for use in chain.from_iterable(uses)
                if use.grade is Grade.REFUSED
            ),
            **_timed(compiled.inference, case.assumptions),
        }

    def _judged(self) -> dict[str, Any]:
        report = verified(self.task.case, Engine.MODEL, self.task.seed)
        seen: ExcitationFigures = report.figures["excitation"]
        compared: OperatorFigures = report.figures["operators"]
        assumed = (each for row in report.rows for each in getattr(row, "reference_assumes", ()))
        return {
            "verdict": report.verdict,
            "message": told(report),
            "conclusive": is_conclusive(report.verdict, told(report)),
            "reference_assumes": tuple(dict.fromkeys(assumed)),
            "operators": {how.value: getattr(compared, how.value) for how in How}
            if compared.records
            else None,
            "excited": round(seen.moved / seen.channels, 4) if seen.channels else None,
            "warnings": seen.warnings,
            "inferences": report.figures["inferences"],
        }


@dataclass(frozen=True)
class PipelineTask(_RowTask):
    """Segments to be run one after another, each on a chip of its own: ``row.file``, then
    ``row.companions``."""

    options: Options

    @property
    def timeout(self) -> float:
        """Seconds that it may take."""
        return self.options.timeout

    def _works(self) -> tuple[Callable[[], dict[str, Any]], ...]:
        return (self._judged,)

    def _judged(self) -> dict[str, Any]:
        options = self.options
        report = chip_run(options.part(ChipRun, source=self.row.file, then=self.row.companions))
        ran = Verdict.NOT_COMPARED if options.require_reference else Verdict.RAN
        return {
            "verdict": report.verdict if report.verdict.failed else ran,
            "message": report.message,
            "conclusive": is_conclusive(report.verdict, report.headline),
            "assumptions": report.assumptions,
            "inferences": report.figures["inferences"],
        }

    def _command(self) -> str:
        plain = {**plain_of(self.options), "then": self.row.companions}
        return command_line("run", self.row.file, Run, plain, always=("seed",))


def _attempt(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What ``work`` finds, or the verdict that its exception stands for."""
    try:
        return work()
    except Exception as error:
        verdict, text = judged(error)
        return {"verdict": verdict, "message": text, "conclusive": not is_of_the_machine(error)}


def _timed(inference: Executable, assumptions: bool) -> dict[str, Any]:
    chip = timing.chip_description(DEFAULT_CHIP)
    link = link_of(chip, None)
    row = time_executable(inference, "inference", chip, link, assumptions=assumptions)
    if row.milliseconds is None:
        return {"untimed": row.message}
    return {"cycles": row.cycles, "milliseconds": round(row.milliseconds, 3)}
