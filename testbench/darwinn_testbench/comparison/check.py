"""The parts of every verification: the request, its rows, and the report that they make.

There are two kinds of right side: the network that a compiled model was made from
(:mod:`chip_check`), and anything else that gives outputs (:mod:`program_check`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from darwinn_reference.protocol import Datum
from darwinn_reference.tflite.graph import Network

from darwinn_testbench.chip.completion import Completion, check_completion, confirmed
from darwinn_testbench.chip.execution import TensorOutputRow, row_fields
from darwinn_testbench.chip.hazards import AFTER_A_FAULT, LEFT_OUT, Hazards, check_hazards
from darwinn_testbench.chip.pipeline import Pipeline
from darwinn_testbench.chip.schedules import Inferred, Schedules, check_schedules
from darwinn_testbench.comparison.asked import Asked
from darwinn_testbench.comparison.cases import Case, Cases
from darwinn_testbench.comparison.compare import Comparison
from darwinn_testbench.comparison.excitation import Excitation
from darwinn_testbench.comparison.sides import DeviceProgram
from darwinn_testbench.layers.localise import Divergence
from darwinn_testbench.proof.parameters import Parameters
from darwinn_testbench.proof.verdict import Proof
from darwinn_testbench.report import Report, Verdict, verdict_of, worst
from darwinn_testbench.report.progress import ProgressCallback

CHIP_ARITHMETIC = "chip arithmetic"
LITERT = "LiteRT"
RTL = "RTL"
REFERENCE = "reference"
STORED = "stored outputs"
CPU_OPERATORS = "CPU operators"
COMPLETION = "completion"
NOTHING = "nothing"
"""The references that may decide an output's verdict.

CPU_OPERATORS are those of the reference; they get the chip's own bytes if its chip arithmetic is
not known or not asked for. RTL and COMPLETION apply if there is no reference. NOTHING applies if
the references of the network do not compute the output.
"""

_OF_NETWORKS = {"json": lambda row: row.counterpart is None}
_OF_WHOLE_MODELS = {"json": lambda row: row.of_whole_model}
_OF_PROGRAMS = {"json": lambda row: row.counterpart is not None}


@dataclass(frozen=True, kw_only=True)
class OutputRow(TensorOutputRow):
    """One output of one inference or call. ``decided_by`` says what the verdict rests on.

    Against a program or stored outputs: ``counterpart`` is the output on the right side,
    ``conversion`` what was done to its values before they were compared; ``comparison`` is None
    where there was nothing to compare with.

    Against a network, whose tensors are the same (``counterpart`` is None): chip arithmetic, or
    LiteRT under ``policy``, decides. A comparison is None where it could not be made;
    ``..._missing`` then says why. ``reference_assumes`` names the operators of the chip arithmetic
    whose rule no file has shown. ``rtl`` compares what the RTL gave with the model's bytes,
    ``rtl_cycles`` is what it took.

    ``of_whole_model`` says that the CPU, or a further executable, gives the output:
    ``expected_from`` is then what ``chip_arithmetic``, or ``cpu_operators``, compares it with.

    ``seconds`` is for the whole inference or call.
    """

    counterpart: str | None = field(default=None, metadata=_OF_PROGRAMS)
    conversion: str = field(default="", metadata=_OF_PROGRAMS)
    decided_by: str = COMPLETION
    policy: str = ""
    comparison: Comparison | None = field(default=None, metadata=_OF_PROGRAMS)
    chip_arithmetic: Comparison | None = field(default=None, metadata=_OF_NETWORKS)
    chip_arithmetic_missing: str = field(default="", metadata=_OF_NETWORKS)
    reference_assumes: tuple[str, ...] = field(default=(), metadata=_OF_NETWORKS)
    litert: Comparison | None = field(default=None, metadata=_OF_NETWORKS)
    litert_missing: str = field(default="", metadata=_OF_NETWORKS)
    rtl: Comparison | None = field(default=None, metadata=_OF_NETWORKS)
    rtl_cycles: int | None = field(default=None, metadata=_OF_NETWORKS)
    of_whole_model: bool = field(default=False, metadata=_OF_WHOLE_MODELS)
    expected_from: str = field(default="", metadata=_OF_WHOLE_MODELS)
    cpu_operators: Comparison | None = field(default=None, metadata=_OF_WHOLE_MODELS)


def row_of(number: int, name: str, data: Datum, seconds: float, case: Case) -> OutputRow:
    """The row of an output that nothing has judged."""
    return OutputRow(**row_fields(number, name, np.asarray(data), seconds, case.origin))


def decided(row: OutputRow, by: str, comparison: Comparison, *reasons: str) -> OutputRow:
    """The row with the verdict of a comparison, the reasons before its own."""
    return replace(
        row,
        verdict=Verdict(comparison.verdict),
        decided_by=by,
        policy=comparison.policy,
        message="; ".join(filter(None, (*reasons, comparison.reason))),
    )


class Check(ABC):
    """The calls of one left side and what came of them; a call is of ``noun``."""

    noun: ClassVar[str]

    def __init__(self, asked: Asked, file: str, cases: Cases, network: Network | None) -> None:
        self.asked, self.file, self.cases = asked, file, cases
        self.excitation = Excitation(network)
        self.rows: list[OutputRow] = []
        self.divergences: list[Divergence] = []
        self.schedules: Schedules | None = None
        self.hazards: Hazards | None = None
        self.proof: Proof | None = None
        self.parameters: Parameters | None = None
        self.completion: Completion | None = None
        self.further = 0

    @abstractmethod
    def begin(self, progress: ProgressCallback) -> None:
        """Do what precedes the first call."""

    @abstractmethod
    def run(self, number: int, case: Case) -> None:
        """Make a call, and judge its outputs."""

    @abstractmethod
    def go_further(self, progress: ProgressCallback) -> None:
        """Make calls on further inputs, if nobody has said which, and a small program costs little:
        those that pass leave no rows, and their number in ``further``."""

    @abstractmethod
    def close(self) -> None:
        """Give back what was opened."""

    @property
    @abstractmethod
    def _device(self) -> DeviceProgram | None:
        """What runs on the simulated chip; None if nothing does."""

    def judge(self, progress: ProgressCallback, fault: Exception | None = None) -> None:
        """Judge every input and timing, as far as requested.

        After a ``fault`` there is nothing to judge, unless the fault is the chip's and may depend
        on the order.
        """
        device = self._device
        if device is None:
            return
        if fault is not None or self.asked.hazards is False:
            self.hazards = LEFT_OUT if self.asked.hazards is False else AFTER_A_FAULT
        if device.done and (fault is None or device.done[-1].fault):
            self._reorder(device, device.done, progress)
        if fault is None:
            self.proof = self.prove(progress)
            self.parameters = self.attribute(progress)

    def _reorder(
        self, device: DeviceProgram, done: Sequence[Inferred], progress: ProgressCallback
    ) -> None:
        """Make the inferences of the chip again, in other orders of its units or with an eye on
        hazards."""
        asked, pipeline = self.asked, Pipeline([device.session])
        if asked.schedules:
            seed = asked.seed if asked.schedule_seed is None else asked.schedule_seed
            self.schedules = check_schedules(pipeline, done, asked.schedules, seed, progress)
        if self.hazards is None:
            inputs = [each.inputs for each in done]
            everything = Pipeline([device.segment])
            self.hazards = check_hazards(everything, inputs, progress, alone=pipeline)
            self.completion = check_completion(pipeline, inputs, progress)
            self.hazards = confirmed(self.hazards, self.completion)

    def prove(self, progress: ProgressCallback) -> Proof | None:
        """Prove for every input what was compared for some; None if there is nothing to prove."""
        return None

    def attribute(self, progress: ProgressCallback) -> Parameters | None:
        """What the bytes of the parameters are; None if that is not asked."""
        return None

    def report(self, seconds: float, fault: Exception | None) -> Report[OutputRow]:
        """What all calls came to; a fault ended them."""
        asked = self.asked
        decided = verdict_of(fault) if fault else self._verdict()
        judged = (self.proof, self.parameters, self.schedules, self.hazards, self.completion)
        again = [each for each in judged if each is not None]
        told = str(fault) if fault else self._summary()
        # What is wrong stands first, and a fault before all else.
        wrong = [str(each) for each in again if each.verdict.failed]
        right = [str(each) for each in again if not each.verdict.failed]
        if fault:
            parts = [told, *wrong, *right]
        else:
            parts = [*wrong, told, *right, self._never_proved if asked.proof else ""]
        message = "; ".join(filter(None, parts))
        failed = [each.verdict for each in again if each.verdict.failed]
        if failed and fault:
            # What is a fault in one order and none in another is a race.
            decided = worst(failed)
        elif failed:
            found = [row.verdict for row in self.rows] if decided is None else [decided]
            decided = worst((*found, *failed))
        decided = self._strongest(decided)
        return Report(
            command="verify",
            file=self.file,
            rows=tuple(self.rows),
            figures={
                **self._sides(),
                "seed": asked.seed,
                **({} if asked.stall_seed is None else {"stall_seed": asked.stall_seed}),
                "inferences": len(self.cases),
                "further_inferences": self.further,
                "random_inputs": self.cases.drawn,
                "policy": None if asked.policy is None else str(asked.policy),
                "seconds": seconds,
                "excitation": self.excitation.figures(),
                **self._found(),
                **({} if self.proof is None else {"proof": self.proof}),
                **({} if self.parameters is None else {"parameters": self.parameters}),
                **({} if self.schedules is None else {"schedules": self.schedules}),
                **({} if self.hazards is None else {"hazards": self.hazards}),
                **({} if self.completion is None else {"completion": self.completion}),
            },
            decided=decided,
            message=message,
        )

    def _strongest(self, decided: Verdict | None) -> Verdict | None:
        """PROVED where function, order and end are proved of all that was judged; NOT_PROVED where
        that is required and not so."""
        whole = decided if decided is not None else worst(row.verdict for row in self.rows)
        if whole is Verdict.PASS and self._is_proved:
            return Verdict.PROVED
        if self.asked.require_proof and not whole.failed:
            return Verdict.NOT_PROVED
        return decided

    @property
    def _is_proved(self) -> bool:
        return False

    @property
    def _never_proved(self) -> str:
        """The parts of the comparison that are never more than sampled, in words; empty if there is
        none.
        """
        return ""

    @abstractmethod
    def _sides(self) -> dict[str, Any]:
        """What was compared with what, for the figures."""

    @abstractmethod
    def _found(self) -> dict[str, Any]:
        """What there is beside the rows, for the figures."""

    @abstractmethod
    def _verdict(self) -> Verdict | None:
        """The verdict where no fault decides it; None if it is that of the rows."""

    @abstractmethod
    def _summary(self) -> str:
        """One line: what was checked, and with what result."""
