"""Sizes and indices that a program does not state are found by calling it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from darwinn_formats.errors import ExecutionError
from darwinn_formats.tflite import TensorType
from darwinn_reference.protocol import Datum, Output, Port
from darwinn_testbench.comparison.cases import borrowed
from darwinn_testbench.comparison.sides import TfliteProgram
from darwinn_testbench.programs import probing
from darwinn_testbench.programs.probing import settled_ports, smaller_ports
from darwinn_testbench.programs.run import drawn_sizes
from tflite_graphs import model, tensor

I32, F32 = np.dtype(np.int32), np.dtype(np.float32)
ROWS = 11


@dataclass
class Program:
    """A program that faults where ``check`` raises, and counts its calls."""

    check: Callable[[Sequence[Any]], None]
    calls: list[Any] = field(default_factory=list)
    functions: tuple[str, ...] = ("f",)

    def run(
        self, inputs: Sequence[Datum], *, function: str | None = None, tap: Any = None
    ) -> tuple[Output, ...]:
        self.calls.append(inputs)
        self.check(inputs)
        return ()

    def reset(self) -> None:
        pass

    def inputs(self, function: str | None = None) -> tuple[Port, ...]:
        return ()

    def outputs(self, function: str | None = None) -> tuple[Port, ...]:
        return ()


def faults_if(condition: bool) -> None:
    if condition:
        raise ExecutionError("no")


# --- sizes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("greatest", "drawn"), [(100, 8), (5, 4), (3, 3), (1, None)])
def test_the_greatest_size_of_a_few_that_the_program_takes_is_drawn(
    greatest: int, drawn: int | None
) -> None:
    program = Program(lambda inputs: faults_if(max(each.shape[0] for each in inputs) > greatest))
    ports = [Port("x", F32, (None, 4)), Port("y", F32, (None,))]
    found = settled_ports(program, ports, None)
    assert [port.bounds for port in found] == ([(drawn, 4), (drawn,)] if drawn else [None, None])
    (first, _) = drawn_sizes(ports, found)
    assert f"drawn as {drawn or 1}x4, which the program leaves open" in first


def test_a_smaller_size_is_drawn_every_second_time() -> None:
    program = Program(lambda inputs: None)
    found = settled_ports(program, [Port("x", F32, (None, 4))], None)
    smaller = smaller_ports(program, found, None)
    assert smaller[0].shape is not None
    assert smaller[0].shape[0] == 4


def test_a_size_that_the_file_bounds_is_not_tried() -> None:
    program = Program(lambda inputs: None)
    ports = [Port("x", F32, (None,), bounds=(6,))]
    assert settled_ports(program, ports, None) == ports
    assert program.calls == []


# --- indices --------------------------------------------------------------------------------------


def test_an_index_is_drawn_below_what_the_program_faults_with() -> None:
    program = Program(lambda inputs: faults_if(bool((inputs[1] >= ROWS).any())))
    ports = [Port("x", F32, (2,)), Port("ids", I32, (5,))]
    found = settled_ports(program, ports, None)
    assert [port.limit for port in found] == [None, ROWS]
    assert drawn_sizes(ports, found) == [
        "ids (int32 5): drawn below 11: with more the program faults"
    ]
    assert len(program.calls) < 40


@pytest.mark.parametrize(
    "port",
    [
        Port("q", np.dtype(np.int8), (5,), 0.5, 0),
        Port("count", I32, ()),
        Port("known", I32, (5,), limit=4),
    ],
    ids=["quantised", "one number", "known"],
)
def test_other_integers_are_not_tried(port: Port) -> None:
    program = Program(lambda inputs: faults_if(True))
    assert settled_ports(program, [port], None) == [port]
    assert program.calls == []


def test_a_program_that_takes_any_number_has_no_limit() -> None:
    program = Program(lambda inputs: None)
    (found,) = settled_ports(program, [Port("x", I32, (5,))], None)
    assert found.limit is None
    assert len(program.calls) == 1


def test_a_program_that_faults_with_0_has_no_limit() -> None:
    program = Program(lambda inputs: faults_if(True))
    (found,) = settled_ports(program, [Port("x", I32, (5,))], None)
    assert found.limit is None


def test_a_slow_program_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probing, "_SECONDS", -1.0)
    program = Program(lambda inputs: faults_if(bool((inputs[0] >= ROWS).any())))
    (found,) = settled_ports(program, [Port("x", I32, (5,))], None)
    assert found.limit is None
    assert len(program.calls) == 2


# --- graphs of TensorFlow Lite --------------------------------------------------------------------


def test_a_graph_tells_what_its_integers_index_and_the_other_side_follows() -> None:
    data = model(
        [
            tensor("ids", (6, 1), TensorType.INT32),
            tensor("flat", (6,), TensorType.INT32),
            tensor("y", (6, 4)),
        ],
        [
            ("RESHAPE", ["ids", "sizes"], ["flat"]),
            ("GATHER", ["table", "flat"], ["y"]),
        ],
        ["y"],
        {
            "table": np.zeros((ROWS, 4), np.int8),
            "sizes": np.array([6], np.int32),
        },
    )
    (port,) = TfliteProgram(data).inputs()
    assert port.limit == ROWS
    own = Port("ids", I32, (6, 1))
    assert [each.limit for each in borrowed([own], [port])] == [ROWS]
