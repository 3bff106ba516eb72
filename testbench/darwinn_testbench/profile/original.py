"""Where the time of a program of another format goes in its original runtime."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from statistics import median
from typing import Any

from darwinn_formats.errors import ExecutionError
from darwinn_formats.files import name_of
from darwinn_reference.protocol import NotingReference

from darwinn_testbench.engine import Engine
from darwinn_testbench.profile.imported import import_times
from darwinn_testbench.profile.operators import CALLS, OperatorTimeRow
from darwinn_testbench.programs.formats import format_of, open_program
from darwinn_testbench.programs.operators import inputs_of_call
from darwinn_testbench.report import Report, significant, verdict_of
from darwinn_testbench.request.record import takes
from darwinn_testbench.request.records import Calls
from darwinn_testbench.request.scope import Scope, only_for

ORIGINAL = "the original runtime, on this computer"
"""What has executed the calls that are timed."""


def original_times(asked: Calls) -> Report[OperatorTimeRow]:
    """The time of ``calls`` calls in the original runtime, after one that is not measured: of each
    operator where the runtime notes that (ExecuTorch), else of calls as a whole.

    Raises as ``profile_operators``, and Unavailable: there is no original runtime, or it is not
    installed, or it refuses the program.
    """
    only_for(Scope.REFERENCE, ["--natives"] if asked.natives else [])
    count = CALLS if asked.calls is None else asked.calls
    source, function, inputs = asked.source, asked.function, asked.inputs
    program = open_program(source, function=function, data=asked.data, engine=Engine.ORIGINAL)
    file, found = name_of(source), format_of(source)
    values, warnings = inputs_of_call(program, function, file, inputs, asked.seed)
    own: dict[str, Any] = {
        "format": "" if found is None else found.name,
        "function": function,
        "seed": asked.seed,
        "random_inputs": inputs is None,
        "measured_by": ORIGINAL,
    }
    asked.progress("the original runtime", 0, None)
    try:
        if isinstance(program, NotingReference):
            dump = program.noted(values, function=function, calls=count + 1)
            report = import_times([dump], source, inputs, data=asked.data, function=function)
            notes = [*warnings, *report.figures["warnings"]]
            figures = {**report.figures, **own, "warnings": notes}
            return replace(report, command="profile", file=file, figures=figures)
        taken = []
        for _ in range(count + 1):
            start = time.perf_counter()
            program.run(values, function=function)
            taken.append(time.perf_counter() - start)
    except ExecutionError as error:
        return Report(
            command="profile",
            file=file,
            figures={**own, "warnings": warnings, **_no_operators([0.0])},
            decided=verdict_of(error),
            message=str(error),
        )
    seconds = median(taken[1:])
    return Report(
        command="profile",
        file=file,
        figures={**own, "warnings": warnings, **_no_operators(taken)},
        message=f"{significant(1000 * seconds)} ms a call; the runtime shows no operators",
    )


profile_original = takes(Calls, "profile_original")(original_times)


def _no_operators(taken: Sequence[float]) -> dict[str, Any]:
    """The figures of calls as a whole, the first of which is not measured."""
    return {
        "ports": (),
        "calls": len(taken) - 1,
        "first_seconds": taken[0],
        "seconds": median(taken[1:] or taken),
        "kinds": (),
    }
