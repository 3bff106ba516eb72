"""The calls of a verification: inputs, and what is expected where that is stored."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from darwinn_formats import executorch
from darwinn_reference.protocol import Output, Port

from darwinn_testbench.chip.inputs import (
    Origin,
    TensorMap,
    few_runs,
    origin_of,
    random_inputs,
    refuse_drawing,
)
from darwinn_testbench.comparison.asked import Asked
from darwinn_testbench.comparison.sides import Side
from darwinn_testbench.errors import InputError
from darwinn_testbench.programs.formats import format_of
from darwinn_testbench.programs.probing import settled_ports, smaller_ports
from darwinn_testbench.programs.run import choose_values
from darwinn_testbench.programs.stored import StoredCall, bundled_calls, read_stored


@dataclass(frozen=True)
class Case:
    """A call: inputs by name, and what is expected where that is stored."""

    inputs: TensorMap
    function: str | None = None
    stored: tuple[Output, ...] | None = None
    fresh: bool = False
    origin: Origin | None = None


@dataclass(frozen=True)
class Cases:
    """Calls in order; ``drawn`` says that their inputs are random, every second time in the
    sizes of ``smaller``. ``ports`` are the inputs as they were drawn. They are made one by one.
    """

    calls: Sequence[Case] | Sequence[TensorMap]
    function: str | None = None
    drawn: bool = False
    smaller: tuple[Port, ...] = ()
    ports: tuple[Port, ...] = ()

    def __len__(self) -> int:
        return len(self.calls)

    def __iter__(self) -> Iterator[Case]:
        for number in range(len(self.calls)):
            call, origin = self.calls[number], origin_of(self.calls, number)
            yield call if isinstance(call, Case) else Case(call, self.function, origin=origin)


def cases_of(asked: Asked, left: Side, right: Side | None = None) -> Cases:
    """The calls to be made: stored ones (those of ``function``, if it is given), or of inputs.

    Stored outputs without inputs are those of the given inputs, or of the drawn ones of ``seed``,
    as ``darwinn run`` takes them: of one set, unless ``runs`` or ``inputs_kind`` says otherwise.
    For inputs whose type the left side does not say, the type of the right side's is drawn.

    Raises:
        InputError: data that does not fit.
        OSError: a file that cannot be read.
    """
    function, expected = asked.function, asked.expected
    runs = asked.runs if expected is None else few_runs(asked.runs, asked.inputs_kind)

    found: list[Port] = []
    settled: list[Port] = []

    def chosen() -> Sequence[TensorMap]:
        kinds = asked.inputs_kind
        if asked.inputs is None and left.device is not None:
            # Its own ports know from which range floats are drawn, as of `darwinn run`.
            return random_inputs(left.device.segment.ports, asked.seed, runs, kinds)
        ports: Sequence[Port] = left.inputs(function)
        known = function if right and function in right.program.functions else None
        if right is not None and asked.inputs is None:
            ports = borrowed(ports, right.inputs(known))
        drawn = asked.inputs is None and expected is None
        if asked.inputs is None:
            ports = settled_ports(left.program, ports, function)
            settled.extend(ports)
        smaller = smaller_ports(left.program, ports, function) if drawn and runs != 1 else []
        smaller = [] if right is not None and not _is_open(right, known) else smaller
        sets = choose_values(
            asked.inputs, ports, seed=asked.seed, runs=runs, inputs_kind=kinds, smaller=smaller
        )
        found.extend(smaller)
        return sets

    if expected is None:
        bundled = [] if asked.inputs is not None else _bundled(asked)
        if bundled:
            refuse_drawing(None, asked.inputs_kind)
            wanted = [call for call in bundled if function in (None, call.function)]
            return Cases([_stored_case(left, call) for call in wanted])
        sets = chosen()
        return Cases(
            sets, function, drawn=asked.inputs is None, smaller=tuple(found), ports=tuple(settled)
        )
    given = () if asked.inputs is None else chosen()
    calls = read_stored(expected, len(given) or runs or len(asked.inputs_kind))
    if asked.inputs is None and all(call.inputs is not None for call in calls):
        refuse_drawing(None, asked.inputs_kind)
        return Cases([_stored_case(left, call, function) for call in calls])
    sets = given or chosen()
    if len(calls) != len(sets):
        raise InputError(f"{os.fspath(expected)} holds {len(calls)} calls, the inputs {len(sets)}")
    together = enumerate(zip(sets, calls, strict=True))
    return Cases(
        [
            Case(values, function or call.function, call.outputs, origin=origin_of(sets, number))
            for number, (values, call) in together
        ],
        drawn=asked.inputs is None,
    )


def borrowed(ports: Sequence[Port], others: Sequence[Port]) -> list[Port]:
    """Ports, those without a type with that of the other side's at their place: the integers of one
    that is quantised.
    """
    if len(ports) != len(others):
        return list(ports)
    return [_borrowed(port, other) for port, other in zip(ports, others, strict=True)]


def _borrowed(port: Port, other: Port) -> Port:
    if other.limit is not None and port.dtype == other.dtype:
        # What one side indexes, the other has to be able to index, too.
        port = replace(port, limit=min(port.limit or other.limit, other.limit))
    if port.dtype is None:
        return replace(_integer_port(other), name=port.name)
    if port.bounds is None or other.shape is None or len(port.bounds) != len(other.shape):
        return port
    # The sizes of a side that leaves none open are the only ones that both take.
    together = zip(other.shape, port.bounds, strict=True)
    fits = all(size is not None and size <= bound for size, bound in together)
    return replace(port, shape=other.shape) if fits else port


def _is_open(side: Side, function: str | None) -> bool:
    """Whether a program leaves sizes of all its inputs open."""
    return all(port.shape is None or None in port.shape for port in side.inputs(function))


def _integer_port(port: Port) -> Port:
    if port.steps is None:
        return port
    steps = port.steps
    return Port(port.name, steps.dtype, port.shape, steps.scale, steps.zero_point)


def _bundled(asked: Asked) -> list[StoredCall]:
    found = format_of(asked.source)
    data = asked.data_of(asked.source)
    file = None if found is None else found.handler_with(data).load(asked.source)
    return bundled_calls(file) if isinstance(file, executorch.ProgramFile) else []


def _stored_case(left: Side, call: StoredCall, function: str | None = None) -> Case:
    name = call.function or function
    ports = left.inputs(name)
    values = call.inputs or ()
    if len(values) != len(ports):
        raise InputError(f"{left.file}: {len(values)} stored inputs, {len(ports)} are needed")
    names = [port.name for port in ports]
    arrays = dict(zip(names, map(np.asarray, values), strict=True))
    if left.device is None:
        return Case(arrays, name, call.outputs, call.fresh)
    # The chip takes what is quantised, in the shape of its layers.
    (fitting,) = choose_values([arrays], ports, seed=0, runs=1)
    return Case(fitting, name, call.outputs, call.fresh)
