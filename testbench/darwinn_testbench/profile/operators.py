"""Where the time of a program of another format goes: by operator, on the CPU reference."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from darwinn_formats.errors import ExecutionError

from darwinn_testbench.programs.operators import (
    OperatorRow,
    ProgramCall,
    call_figures,
    open_call,
    operator_fields,
    operators_of,
)
from darwinn_testbench.programs.recorder import Recorder
from darwinn_testbench.report import Report, counted, significant, verdict_of
from darwinn_testbench.request.record import takes
from darwinn_testbench.request.records import Calls

REFERENCE = "this project's CPU reference, on this computer"
"""What has executed the calls that are timed."""
CALLS = 5
"""Calls that are measured unless another number is asked for."""


@dataclass(frozen=True, kw_only=True)
class OperatorTimeRow(OperatorRow):
    """An operator with its time in one call, the median of those measured.

    ``seconds`` are its own, ``total_seconds`` with those of the operators within it; ``share`` is
    that of ``seconds`` in the time of all operators.
    """

    seconds: float
    total_seconds: float
    share: float

    drawn = ("seconds",)
    unit = "s"

    @property
    def duration(self) -> float:
        """Its own seconds."""
        return self.seconds


@dataclass(frozen=True)
class KindTime:
    """All operators of a kind: how many there are, how often they run in a call, their time."""

    kind: str
    operators: int
    executions: int
    seconds: float
    share: float


def operator_times(asked: Calls) -> Report[OperatorTimeRow]:
    """The time of each operator in ``calls`` calls on the same inputs, given or drawn.

    Two calls before are not measured: the first prepares what is prepared once, the second is
    looked at for what operators read and write. State that the program has stays from call to
    call. Every other call is made without looking at operators: its time is that of the whole.

    Raises as ``operators.open_call``; a program that fails is a fault.
    """
    count = CALLS if asked.calls is None else asked.calls
    call, progress = open_call(asked), asked.progress
    recorder = Recorder()
    measured = _Measured()
    fault: ExecutionError | None = None
    try:
        progress("first call", 0, count + 1)
        measured.first = _seconds(call)
        call.run(recorder)
        recorder.closely = False
        for number in range(count):
            progress(f"call {number + 1} of {count}", number + 1, count + 1)
            measured.plain.append(_seconds(call))
            call.run(recorder)
            measured.add(recorder)
    except ExecutionError as error:
        fault = error
    rows = measured.rows(recorder)
    return Report(
        command="profile",
        file=call.file,
        rows=rows,
        figures={
            **call_figures(asked, call, recorder),
            "measured_by": REFERENCE,
            "calls": len(measured.plain),
            "first_seconds": measured.first,
            "seconds": measured.seconds,
            "kinds": kinds(rows),
        },
        decided=None if fault is None else verdict_of(fault),
        message=str(fault) if fault else measured.summary(rows),
    )


profile_operators = takes(Calls, "profile_operators")(operator_times)


@dataclass
class _Measured:
    """Seconds of calls without anybody looking, and nanoseconds of operators by name."""

    first: float = 0.0
    plain: list[float] = field(default_factory=list)
    own: dict[str, list[int]] = field(default_factory=dict)
    total: dict[str, list[int]] = field(default_factory=dict)

    def add(self, recorder: Recorder) -> None:
        for each in operators_of(recorder):
            self.own.setdefault(each.operator.name, []).append(each.own)
            self.total.setdefault(each.operator.name, []).append(each.total)

    @property
    def seconds(self) -> float:
        return median(self.plain) if self.plain else 0.0

    def rows(self, recorder: Recorder) -> tuple[OperatorTimeRow, ...]:
        found = operators_of(recorder)
        own, total = (
            {each.operator.name: _median(side, each.operator.name) for each in found}
            for side in (self.own, self.total)
        )
        whole = sum(own.values()) or 1.0
        return tuple(
            OperatorTimeRow(
                **operator_fields(each),
                number=number,
                seconds=own[each.operator.name],
                total_seconds=total[each.operator.name],
                share=own[each.operator.name] / whole,
            )
            for number, each in enumerate(found)
        )

    def summary(self, rows: Sequence[OperatorTimeRow]) -> str:
        text = f"{significant(1000 * self.seconds)} ms a call on the CPU reference"
        calls = counted(len(self.plain), "call")
        return f"{text}, {counted(len(rows), 'operator')}, median of {calls}"


def _seconds(call: ProgramCall) -> float:
    start = time.perf_counter()
    call.run()
    return time.perf_counter() - start


def _median(nanoseconds: Mapping[str, Sequence[int]], name: str) -> float:
    """Seconds in the middle; of an operator that only a call that failed has reached 0."""
    return median(nanoseconds[name]) / 1e9 if name in nanoseconds else 0.0


def kinds(rows: Sequence[OperatorTimeRow]) -> tuple[KindTime, ...]:
    """The operators by kind, those of the longest time first."""
    by_kind: dict[str, list[OperatorTimeRow]] = {}
    for row in rows:
        by_kind.setdefault(row.kind, []).append(row)
    found = [
        KindTime(
            kind,
            len(of_kind),
            sum(row.executions for row in of_kind),
            sum(row.seconds for row in of_kind),
            sum(row.share for row in of_kind),
        )
        for kind, of_kind in by_kind.items()
    ]
    return tuple(sorted(found, key=lambda each: -each.seconds))
