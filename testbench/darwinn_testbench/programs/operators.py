"""The operators of a program, as one call of a function executes them."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from darwinn_formats.errors import ExecutionError, Unavailable
from darwinn_formats.files import name_of
from darwinn_reference.errors import Unsupported
from darwinn_reference.observation import INPUT, OUTPUT
from darwinn_reference.protocol import Datum, ObservableReference, Output, Reference

from darwinn_testbench.errors import InputError
from darwinn_testbench.programs.formats import format_of, open_program
from darwinn_testbench.programs.handler import Opening
from darwinn_testbench.programs.natives import load_natives
from darwinn_testbench.programs.probing import settled_ports
from darwinn_testbench.programs.recorder import Recorder, Seen
from darwinn_testbench.programs.run import choose_values, drawn_sizes, inputs_of
from darwinn_testbench.report import Report, Row, Verdict, counted, verdict_of
from darwinn_testbench.request.inputs import Inputs
from darwinn_testbench.request.record import takes
from darwinn_testbench.request.records import Call


@dataclass(frozen=True, kw_only=True)
class OperatorRow(Row):
    """An operator of a program: an instruction, a node of a delegate, a function, a dispatch or a
    kernel.

    ``kind`` is the operation, ``location`` where in the sources; ``depth`` says how many operators
    it is a part of, and ``has_parts`` whether others are parts of it. ``executions`` counts those
    of one call. ``inputs`` are names of the operators and inputs whose values it reads,
    ``input_tensors`` and ``output_tensors`` the values of its first execution, as types and sizes;
    ``constant_bytes`` is what it reads of the program's own data.
    """

    number: int
    kind: str
    location: str
    depth: int
    has_parts: bool
    executions: int
    inputs: tuple[str, ...]
    input_tensors: tuple[str, ...]
    output_tensors: tuple[str, ...]
    constant_bytes: int


@dataclass(frozen=True)
class ProgramPort:
    """An input or output of the function: ``operators`` are those whose values an output is."""

    name: str
    direction: str
    tensors: tuple[str, ...]
    operators: tuple[str, ...]

    def __str__(self) -> str:
        """The port for people."""
        source = f" of {', '.join(self.operators)}" if self.operators else ""
        return f"{self.direction} {self.name}: {', '.join(self.tensors) or 'no tensor'}{source}"


@dataclass(frozen=True, eq=False)
class ProgramCall:
    """A program with the inputs of a call.

    Attributes:
        program: what executes it.
        file: its name.
        format: the name of its format.
        function: the function, or None for the only one.
        values: the inputs, in the order of the function.
        warnings: what is to be said of them.
        printed: takes what kernels print.
    """

    program: ObservableReference
    file: str
    format: str
    function: str | None
    values: Sequence[Datum]
    warnings: Sequence[str]
    printed: io.StringIO

    def run(self, recorder: Recorder | None = None) -> tuple[Output, ...]:
        """Make the call.

        Raises:
            ExecutionError: it fails.
        """
        if recorder is None:
            return self.program.run(self.values, function=self.function)
        recorder.begin_call()
        return self.program.run(self.values, function=self.function, observer=recorder)


NOT_EXECUTED = "not executed, so that values are not those of the program"
"""How a warning begins that names what does nothing in a call that only shows operators."""
_PLACEHELD = frozenset({"operators", "delegates", "executables"})
"""What may be missing of a program that is only looked at."""


def open_call(asked: Call, *, sketch: bool = False) -> ProgramCall:
    """Open a program of another format, with inputs as for :func:`run.run_program`.

    A ``sketch`` is a call of a program of which operators, delegates or executables are missing,
    which a warning names: they do nothing.

    Raises:
        FormatError, OSError: the file is not valid or cannot be read.
        InputError: inputs that do not fit, or whose type the program does not say.
        Unsupported, Unavailable: what is missing here, by name; of machine code, which shows no
            operators, too.
    """
    source, function = asked.source, asked.function
    found = format_of(source)
    printed = io.StringIO()
    file, natives, missing = name_of(source), load_natives(asked.natives), ""
    try:
        program = open_program(
            source, function=function, natives=natives, data=asked.data, output=printed
        )
    except Unsupported as error:
        handler = None if found is None else found.handler_with(asked.data)
        shown = sketch and _PLACEHELD.issuperset(error.kinds)
        if not shown or handler is None or not handler.sketch:
            raise
        program = handler.sketch(source, Opening(function, natives, printed))
        missing = f"{NOT_EXECUTED}: {error}"
    if sketch and found is not None and not isinstance(program, ObservableReference):
        handler = found.handler_with(asked.data)
        if handler.sketch is not None:
            program = handler.sketch(source, Opening(function, natives, printed))
            missing = f"{NOT_EXECUTED}: machine code"
    if found is None or not isinstance(program, ObservableReference):
        raise Unavailable(
            f"{file}: machine code: the original runtime shows no operators of it "
            "(profile --engine original times whole calls)"
        )
    values, warnings = inputs_of_call(program, function, file, asked.inputs, asked.seed)
    warnings += [missing] if missing else []
    return ProgramCall(program, file, found.name, function, values, warnings, printed)


def inputs_of_call(
    program: Reference, function: str | None, file: str, inputs: Inputs, seed: int
) -> tuple[list[Datum], list[str]]:
    """The values that one call takes, given or drawn, and what is to be said of them.

    Raises:
        InputError: inputs that do not fit, or of several calls, or whose type is not known.
        OSError: a file of them cannot be read.
    """
    ports = inputs_of(program, function, file)
    drawn = settled_ports(program, ports, function) if inputs is None else list(ports)
    sets = choose_values(inputs, drawn, seed=seed, runs=1)
    if len(sets) != 1:
        raise InputError(f"{file}: {counted(len(sets), 'set')} of inputs: one call takes one")
    values: list[Datum] = [sets[0][port.name] for port in ports]
    return values, drawn_sizes(ports, drawn) if inputs is None else []


def operators_in(asked: Call) -> Report[OperatorRow]:
    """The operators of a program, found by one call on ``inputs``, or on drawn ones.

    Operators that the call does not reach are not among them. Raises as :func:`open_call`; a call
    that fails is a fault, with the operators before it.
    """
    call = open_call(asked, sketch=True)
    asked.progress("running", 0, None)
    recorder = Recorder()
    fault: ExecutionError | None = None
    try:
        call.run(recorder)
    except ExecutionError as error:
        fault = error
    rows = tuple(
        OperatorRow(**operator_fields(each), number=number)
        for number, each in enumerate(operators_of(recorder))
    )
    return Report(
        command="layers",
        file=call.file,
        rows=rows,
        figures=call_figures(asked, call, recorder),
        decided=None if fault is None else verdict_of(fault),
        message=counted(len(rows), "operator") if fault is None else str(fault),
    )


view_operators = takes(Call, "view_operators")(operators_in)


def operators_of(recorder: Recorder) -> list[Seen]:
    """What has run in the last call, without what stands for inputs and outputs."""
    return [
        each
        for each in recorder.seen.values()
        if each.executions and each.operator.kind not in (INPUT, OUTPUT)
    ]


def operator_fields(seen: Seen) -> dict[str, Any]:
    """The fields of the row of an operator, but for its number."""
    return {
        "name": seen.operator.name,
        "verdict": Verdict.PASS,
        "kind": seen.operator.kind,
        "location": seen.operator.location,
        "depth": seen.depth,
        "has_parts": seen.is_nesting,
        "executions": seen.executions,
        "inputs": tuple(seen.sources),
        "input_tensors": tuple(map(str, seen.reads)),
        "output_tensors": tuple(map(str, seen.writes)),
        "constant_bytes": seen.constants,
    }


def call_figures(asked: Call, call: ProgramCall, recorder: Recorder) -> dict[str, Any]:
    """What a report says of the program and of the call as a whole."""
    ports = [each for each in recorder.seen.values() if each.operator.kind in (INPUT, OUTPUT)]
    return {
        "format": call.format,
        "function": call.function,
        "seed": asked.seed,
        "random_inputs": asked.inputs is None,
        "warnings": list(call.warnings),
        "ports": tuple(map(_port, ports)),
    }


def _port(seen: Seen) -> ProgramPort:
    name, kind = seen.operator.name, seen.operator.kind
    tensors = tuple(map(str, seen.writes or seen.reads))
    return ProgramPort(name, kind, tensors, tuple(seen.sources))
