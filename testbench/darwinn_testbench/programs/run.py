"""Programs of other formats on the CPU: their inputs, and what a run gives."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from darwinn_formats import executorch
from darwinn_formats.errors import ExecutionError, Unavailable
from darwinn_formats.files import Source, name_of
from darwinn_formats.signatures import is_executorch_bundle
from darwinn_reference.arrays import AnyArray
from darwinn_reference.protocol import Port, Reference

from darwinn_testbench.chip.execution import RunRow, run_row
from darwinn_testbench.chip.inputs import (
    Given,
    TensorMap,
    TensorPort,
    few_runs,
    input_sets,
    origin_of,
    random_inputs,
    read_arrays,
    refuse_drawing,
)
from darwinn_testbench.engine import Engine
from darwinn_testbench.errors import InputError
from darwinn_testbench.programs.formats import DEFAULT_FUNCTIONS, format_of, open_program
from darwinn_testbench.programs.handler import REGION, Opening, Suite
from darwinn_testbench.programs.natives import load_natives
from darwinn_testbench.programs.probing import reading_port, settled_ports, smaller_ports
from darwinn_testbench.programs.stored import StoredCall, bundled_calls
from darwinn_testbench.programs.taps import ValueTaps
from darwinn_testbench.report import Report, Verdict, verdict_of
from darwinn_testbench.report.remarked import remarked
from darwinn_testbench.request.inputs import Inputs, head_of
from darwinn_testbench.request.record import takes
from darwinn_testbench.request.records import ProgramRun

_MACHINE_CODE = "machine code, which the original runtime has executed"


@remarked
def program_run(asked: ProgramRun) -> Report[RunRow]:
    """Call a function of an ExecuTorch, IREE or BEF program once for each set of inputs.

    Inputs are given as for :func:`darwinn_testbench.chip.execution.run`. Where the program leaves a
    size open, drawn ones have its upper bound, or the greatest of 8, 4, 3, 2 and 1 that it takes if
    it says none, and every second set a smaller one; a warning says which. Integers with which it
    faults are not drawn if it takes smaller ones. A bundled program (.bpte) brings its inputs, each
    of a call of a new program, unless ``runs`` or kinds of inputs are asked for. Other state that
    the program has stays from call to call. A BEF file of several functions, none of them chosen
    nor called ``main`` or ``forward``, is run as the test that it is: every function without
    arguments, in order; so is a text that says which errors it expects. What kernels print is in
    the figures. ``data`` are files of external data, ``host`` is what is said of the host of a BEF
    file.

    Raises:
        FormatError, OSError: the file is not valid or cannot be read.
        InputError: inputs that do not fit, or whose type the program does not say; taps of
            nothing.
        Unsupported, Unavailable: it needs what the engine does not have; it is named.
    """
    source, inputs, function = asked.source, asked.inputs, asked.function
    engine, taps, natives = asked.engine, asked.taps, load_natives(asked.natives)
    printed = io.StringIO()
    suite = (
        _suite_of(source, function)
        if not asked.data and inputs is None and engine is Engine.MODEL and not taps
        else None
    )
    if suite is not None:
        refuse_drawing(asked.runs, asked.inputs_kind)
        opening = Opening(natives=natives, output=printed, host=asked.host)
        return _run_suite(source, suite, opening, printed)
    program = open_program(
        source,
        function=function,
        engine=engine,
        natives=natives,
        data=asked.data,
        output=printed,
        host=asked.host,
    )
    ports = inputs_of(program, function, name_of(source))
    executed_by = _executed_by(source, program, engine)
    if taps and executed_by is Engine.ORIGINAL:
        raise Unavailable(f"{name_of(source)}: --tap: the original runtime shows no values")
    looks = ValueTaps(taps, asked.keep) if taps else None
    few, kinds = few_runs(asked.runs, asked.inputs_kind), asked.inputs_kind
    own = [] if inputs is not None or asked.runs or kinds else own_calls(source, function)
    several = inputs is None and not own and max(few or 0, len(kinds)) > 1
    before = printed.tell()
    drawn = list(ports) if inputs is not None or own else settled_ports(program, ports, function)
    smaller = smaller_ports(program, drawn, function) if several else []
    # What the calls have printed that looked for sizes is no output of the run.
    printed.seek(before)
    printed.truncate()
    sets: Sequence[Any] = own or choose_values(
        inputs, drawn, seed=asked.seed, runs=few, inputs_kind=kinds, smaller=smaller
    )
    rows: list[RunRow] = []
    fault: ExecutionError | None = None
    begin = time.perf_counter()
    try:
        for number, values in enumerate(sets):
            asked.progress(f"call {number + 1} of {len(sets)}", number, len(sets))
            if looks is not None:
                looks.begin(number)
            if isinstance(values, StoredCall):
                program.reset()
                given, called = list(values.inputs or ()), values.function
            else:
                given, called = [values[port.name] for port in ports], function
            start = time.perf_counter()
            outputs = program.run(given, function=called, tap=looks)
            seconds = time.perf_counter() - start
            names = unique([Port(each.name, None, None) for each in outputs])
            rows += [
                run_row(number, port.name, np.asarray(each.data), seconds, origin_of(sets, number))
                for port, each in zip(names, outputs, strict=True)
            ]
    except ExecutionError as error:
        fault = error
    if looks is not None and fault is None:
        looks.refuse_nothing()
    return Report(
        command="run",
        file=name_of(source),
        rows=tuple(rows),
        figures=_figures(
            printed,
            begin,
            function=function,
            engine=executed_by,
            seed=asked.seed,
            inferences=len(sets),
            random_inputs=inputs is None and not own,
            taps=[] if looks is None else looks.found,
            warnings=[
                *([] if inputs is not None or own else drawn_sizes(ports, drawn, smaller)),
                *([] if executed_by is engine else [_MACHINE_CODE]),
            ],
        ),
        decided=None if fault is None else verdict_of(fault),
        message="" if fault is None else str(fault),
    )


run_program = takes(ProgramRun, "run_program")(program_run)


def _executed_by(source: Source, program: Reference, engine: Engine) -> Engine:
    """What executes a program: the original runtime also where only that can."""
    return Engine.ORIGINAL if type(program) is _original_of(source) else engine


def _original_of(source: Source) -> object:
    found = format_of(source)
    return None if found is None else found.handler.original


def _suite_of(source: Source, function: str | None) -> Suite | None:
    """What runs a BEF file as a test; None of other programs, and where one function is meant."""
    found = format_of(source)
    if found is None or found.handler.suite is None or function is not None:
        return None
    if found.handler.only_suite(source):
        return found.handler.suite
    functions = found.handler.functions(found.handler.load(source))
    names = [each.name for each in functions if each.name != REGION and not each.native]
    return None if len(names) <= 1 or DEFAULT_FUNCTIONS.intersection(names) else found.handler.suite


def _run_suite(
    source: Source, suite: Suite, opening: Opening, printed: io.StringIO
) -> Report[RunRow]:
    complaints = io.StringIO()
    begin = time.perf_counter()
    status = suite(source, opening, complaints)
    return Report(
        command="run",
        file=name_of(source),
        figures=_figures(printed, begin, warnings=complaints.getvalue().splitlines()),
        decided=Verdict.MISMATCH if status else Verdict.PASS,
        message="not as expected: the warnings say why"
        if status
        else "every function ran as expected",
    )


def _figures(printed: io.StringIO, begin: float, **known: Any) -> dict[str, Any]:
    """The figures of ``darwinn run``: those of a chip have no value here."""
    figures: dict[str, Any] = {
        "model": None,
        "function": None,
        "engine": Engine.MODEL,
        "seed": 0,
        "inferences": 0,
        "random_inputs": False,
        "seconds": time.perf_counter() - begin,
        "stopped": False,
        "narrow_bytes": None,
        "narrow_bytes_declared": None,
        "warnings": [],
        "taps": [],
        "printed": printed.getvalue(),
    }
    return figures | known


def own_calls(source: Source, function: str | None) -> list[StoredCall]:
    """The calls that a program brings with it, of one function or of all: those of a .bpte."""
    if not is_executorch_bundle(head_of(source)):
        return []
    calls = bundled_calls(executorch.load(source, incomplete=True))
    return [call for call in calls if function in (None, call.function)]


def inputs_of(program: Reference, function: str | None, file: str) -> tuple[Port, ...]:
    """Inputs of a function, with names of their own; InputError if there is no such function."""
    try:
        return unique(program.inputs(function))
    except ExecutionError as error:
        raise InputError(f"{file}: {error}") from error


def unique(ports: Sequence[Port]) -> tuple[Port, ...]:
    """The ports with names of their own: of several of a name the later ones get their number."""
    names: dict[str, None] = {}
    found = []
    for number, port in enumerate(ports):
        name = port.name or f"value{number}"
        while name in names:
            name = f"{name}#{number}"
        names[name] = None
        found.append(replace(port, name=name))
    return tuple(found)


def choose_values(
    given: Inputs,
    ports: Sequence[Port],
    *,
    seed: int,
    runs: int | None,
    inputs_kind: Sequence[str] = (),
    smaller: Sequence[Port] = (),
) -> Sequence[TensorMap]:
    """Values by port name: from files, arrays, or drawn as ``inputs.choose_inputs`` draws them,
    every second set in the sizes of ``smaller`` if there are any.

    Raises:
        InputError: data that does not fit, a type that the program does not say, or runs or kinds
            of given data.
        OSError: a file that cannot be read.
    """
    if given is None:
        sets = random_inputs([_random_port(port) for port in ports], seed, runs, inputs_kind)
        return replace(sets, smaller=tuple(map(_random_port, smaller)))
    refuse_drawing(runs, inputs_kind)
    files = [item for item in given if not isinstance(item, Mapping)]
    if files:
        arrays = read_arrays(files, [reading_port(port) for port in ports])
        return input_sets(arrays, [_given_port(port, arrays) for port in ports])
    return list(_given_sets([item for item in given if isinstance(item, Mapping)], ports))


def _given_sets(
    items: Sequence[Mapping[str, Any]], ports: Sequence[Port]
) -> Iterator[dict[str, AnyArray]]:
    for item in items:
        arrays: dict[str, Given] = {name: np.asarray(value) for name, value in item.items()}
        yield from input_sets(arrays, [_given_port(port, arrays) for port in ports])


def _random_port(port: Port) -> TensorPort:
    if port.dtype is None or port.shape is None:
        raise InputError(f"{port}: the program does not say its type: give its data with --inputs")
    return reading_port(port)


def drawn_sizes(
    ports: Sequence[Port], drawn: Sequence[Port] = (), smaller: Sequence[Port] = ()
) -> list[str]:
    """What is to be said of the sizes that drawn inputs have where the program leaves them open,
    and of indices whose table was found by calls.

    ``ports`` are as the program declares them, ``drawn`` as ``settled_ports`` gives them.
    """
    found = []
    for number, (port, taken) in enumerate(zip(ports, drawn or ports, strict=True)):
        if taken.limit is not None and port.limit is None:
            found.append(f"{port}: drawn below {taken.limit}: with more the program faults")
        if port.shape is None or None not in port.shape:
            continue
        sizes = _sizes_text(taken)
        if port.bounds is not None:
            sizes += ", the upper bound"
        if smaller and smaller[number].shape != taken.bounds:
            sizes += f", and every second time as {_sizes_text(smaller[number])}"
        rest = "which the program leaves open: --inputs gives data of other sizes"
        found.append(f"{port}: drawn as {sizes}, {rest}")
    return found


def _sizes_text(port: Port) -> str:
    return "x".join(map(str, reading_port(port).shape))


def _given_port(port: Port, arrays: Mapping[str, Given]) -> TensorPort:
    """The port with the sizes and the type of its data where the program leaves them open."""
    known = reading_port(port)
    array = arrays.get(port.name)
    if array is None:
        return known
    is_open = port.shape is None or None in port.shape
    if is_open and port.shape is not None and not _within(array.shape, port.shape):
        raise InputError(f"{port}: the data has shape {'x'.join(map(str, array.shape))}")
    return replace(
        known,
        shape=array.shape if is_open else known.shape,
        dtype=array.dtype if port.dtype is None else known.dtype,
    )


def _within(shape: tuple[int, ...], sizes: tuple[int | None, ...]) -> bool:
    return len(shape) == len(sizes) and all(
        size in (None, actual) for actual, size in zip(shape, sizes, strict=True)
    )
