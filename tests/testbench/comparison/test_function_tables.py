"""Tables that a program loads are compared with their functions at every argument."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from darwinn_formats.darwinn import Executable, InstructionBitstream, load
from darwinn_sim.isa.codec import decode, encode_operations
from darwinn_testbench.comparison import function_tables
from darwinn_testbench.comparison.function_tables import FunctionTable, FunctionTables
from darwinn_testbench.comparison.verify import verify
from darwinn_testbench.compiler.stages.tables import FUNCTIONS, table_of, two_slopes
from darwinn_testbench.report import Verdict
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.polynomial import Chebyshev, Polynomial
from program_faults import Change, Kind, Mutation, mutated_stream

Fields = dict[str, int | list[int]]


class Table:
    """Eight polynomials of degree 4 through a function, and the instruction that uses them."""

    def __init__(
        self, function: Callable[[float], float], amplitude: float, edges: list[float], bits: int
    ) -> None:
        self.edges, self.bits = edges, bits
        self.polynomials = [
            Chebyshev.interpolate(
                lambda x: amplitude * np.vectorize(function)(x), 4, domain=[low, high]
            ).convert(kind=Polynomial)
            for low, high in itertools.pairwise(edges)
        ]

    def fields(self) -> tuple[Fields, Fields]:
        """Of the table, and of its user."""
        constants = [float(each) for p in self.polynomials for each in p.coef]
        clip = (-math.inf, math.inf) if self.bits & 2 else (self.edges[0], self.edges[-1])
        return (
            {"coefficient": words(*constants), "lower_bound": words(*self.edges[1:-1])},
            {
                "function": self.bits,
                "low_clip": words(clip[0])[0],
                "high_clip": words(clip[1])[0],
            },
        )


def words(*values: float) -> list[int]:
    return [int(each) for each in np.array(values, np.float32).view(np.uint32)]


def geometric(low: float, high: float) -> list[float]:
    return [float(each) for each in np.geomspace(low, high, 9)]


TABLES = {
    "exponential": Table(math.exp, 65535, [-13, -8, -5.5, -4, -2.7, -1.75, -0.92, -0.2, 0], 1),
    "tanh": Table(math.tanh, 127.5, [0, 0.35, 0.75, 1.2, 1.7, 2.3, 3.2, 4.4, 5.5], 1),
    "sigmoid": Table(
        lambda x: 1 / (1 + math.exp(-x)), 255, [-8, -5, -3, -1.4, 0.1, 1.8, 3.5, 5, 8], 1
    ),
    "inverse root": Table(lambda x: 1 / math.sqrt(x), 46340, geometric(1, 4), 3),
}


def found(*fields: tuple[Fields, Fields]) -> tuple[FunctionTable, ...]:
    operations = [
        each
        for table, user in fields
        for each in (("CoefficientTable", table), ("TensorMac", user))
    ]
    stream = encode_operations(operations)
    executable = Executable(instruction_bitstreams=(InstructionBitstream(bitstream=stream),))
    return FunctionTables.of(executable).tables


@pytest.mark.parametrize("name", TABLES)
def test_a_good_table_is_right(name: str) -> None:
    (table,) = found(TABLES[name].fields())
    assert (table.function, table.problem) == (name, ""), table
    assert 0 < table.error < 1e-4


def test_each_table_is_named_by_its_place() -> None:
    good, other = TABLES["tanh"].fields(), TABLES["exponential"].fields()
    first, second, third = found(good, other, good)
    assert (first.pc, third.function) == (0, "tanh") and 0 < second.pc < third.pc
    assert (first.error, first.argument) == (third.error, third.argument)


@given(st.sampled_from(sorted(TABLES)), st.integers(0, 7), st.data())
def test_a_wrong_coefficient_is_found_where_it_shows(
    name: str, piece: int, data: st.DataObject
) -> None:
    """Against the polynomial itself: how far the change moves it within its piece."""
    table, user = TABLES[name].fields()
    low, high = TABLES[name].edges[piece : piece + 2]
    power = data.draw(st.integers(0, 4))
    factor = data.draw(st.sampled_from((-1, 0.9, 1.1, 2)))
    constants = table["coefficient"]
    assert isinstance(constants, list)
    place = 5 * piece + power
    before = float(np.array(constants[place], np.uint32).view(np.float32))
    x = np.linspace(low, high, 50)
    amplitude = {"exponential": 65535, "tanh": 127.5, "sigmoid": 255, "inverse root": 46340}[name]
    moved = np.abs((factor - 1) * before * x**power).max() / amplitude
    assume(moved > 1e-3)
    changed = [*constants]
    (changed[place],) = words(factor * before)
    (wrong,) = found(({**table, "coefficient": changed}, user))
    assert wrong.function == name
    assert f"differs from the {name} by " in wrong.problem
    assert low - 1e-6 <= wrong.argument <= high
    assert wrong.error == pytest.approx(moved, rel=0.2)


@pytest.mark.parametrize("name", TABLES)
def test_a_bound_that_moves_is_found(name: str) -> None:
    table, user = TABLES[name].fields()
    edges = TABLES[name].edges
    bounds = [*edges[1:4], (edges[4] + 4 * edges[5]) / 5, *edges[5:-1]]
    (wrong,) = found(({**table, "lower_bound": words(*bounds)}, user))
    assert wrong.problem and edges[4] <= wrong.argument <= bounds[3]


@pytest.mark.parametrize(("amplitude", "bit"), [(None, 1), (3.7, 4), (12345.6, 4)])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_compilers_own_tables_are_right_and_known(
    name: str, amplitude: float | None, bit: int
) -> None:
    """Also times the factor of another scale, which a last bit may not tell from a near one."""
    function, table = FUNCTIONS[name], table_of(name, amplitude)
    fields: Fields = {
        "coefficient": table.coefficients.reshape(-1).view(np.uint32).tolist(),
        "lower_bound": table.bounds.view(np.uint32).tolist(),
        "degree": 3,
    }
    first = -function.last if function.odd else function.first
    clips = (-math.inf, math.inf) if function.reduced else (first, function.last)
    user: Fields = {
        "function": 1 + 2 * function.reduced,
        "low_clip": words(clips[0])[0],
        "high_clip": words(clips[1])[0],
        "symmetric_function": int(function.odd),
        "odd_function": int(function.odd),
    }
    (right,) = found((fields, user))
    assert (right.function, right.problem, right.public) == (name, "", True)
    constants = fields["coefficient"]
    assert isinstance(constants, list)
    (wrong,) = found(({**fields, "coefficient": [constants[0] ^ bit, *constants[1:]]}, user))
    assert wrong.problem == f"is the {name} of this compiler, except segment 0"


def test_lines_through_0_are_for_the_network_to_judge() -> None:
    table = two_slopes(np.float32(0.1), np.float32(1))
    fields: Fields = {
        "coefficient": table.coefficients.reshape(-1).view(np.uint32).tolist(),
        "lower_bound": table.bounds.view(np.uint32).tolist(),
        "degree": 3,
    }
    clips: Fields = {"low_clip": words(-255)[0], "high_clip": words(255)[0]}
    (right,) = found((fields, {"function": 1, **clips}))
    assert (right.function, right.problem, right.public) == ("lines through 0", "", True)


def test_bounds_out_of_order_are_wrong() -> None:
    table, user = TABLES["exponential"].fields()
    edges = TABLES["exponential"].edges
    bounds = words(*edges[2:0:-1], *edges[3:-1])
    (wrong,) = found(({**table, "lower_bound": bounds}, user))
    assert wrong.problem == "its bounds are not in order"


def test_what_is_no_number_is_wrong() -> None:
    table, user = TABLES["sigmoid"].fields()
    constants = table["coefficient"]
    assert isinstance(constants, list)
    (wrong,) = found(({**table, "coefficient": [*constants[:-5], *words(math.nan) * 5]}, user))
    assert wrong.function == "sigmoid" and wrong.problem


def test_what_a_clip_keeps_out_does_not_matter() -> None:
    table, user = TABLES["exponential"].fields()
    constants = table["coefficient"]
    assert isinstance(constants, list)
    broken = {**table, "coefficient": [*words(1, 2, 3, 4, 5), *constants[5:]]}
    (wrong,) = found((broken, user))
    assert wrong.problem
    (right,) = found((broken, {**user, "low_clip": words(-8)[0]}))
    assert (right.function, right.problem) == ("exponential", "")


def test_functions_that_nobody_knows_are_not_judged() -> None:
    """Neither another function, nor a coarse approximation: a compiler may have its reasons."""
    cubic = Table(lambda x: x**3 - x, 10, [-4, -3, -2, -1, 0, 1, 2, 3, 4], 1)
    fields, user = TABLES["tanh"].fields()
    constants = fields["coefficient"]
    assert isinstance(constants, list)
    coarse = [value if k % 5 else words(0.3 * (-1) ** k)[0] for k, value in enumerate(constants)]
    tables = found(cubic.fields(), ({**fields, "coefficient": coarse}, user))
    for table in tables:
        assert (table.function, table.problem) == ("", "")
        assert "follows no known function" in str(table)


def test_a_table_that_no_public_program_holds_keeps_a_program_from_being_proved(
    corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, name = corpus / "darwinn", "bright_16x16"
    files = folder / f"{name}_edgetpu.tflite", corpus / "tflite" / f"{name}.tflite"
    assert verify(*files, runs=1).verdict is Verdict.PROVED
    known = function_tables._FUNCTIONS
    others = {key: replace(each, public=()) for key, each in known.items()}
    monkeypatch.setattr(function_tables, "_FUNCTIONS", others)
    report = verify(*files, runs=1)
    assert report.verdict is Verdict.PASS
    assert "sampled: a function table that no public program holds" in report.message
    assert "but no public program holds it" in report.figures["functions"].remarks[0]


@pytest.mark.parametrize(
    ("added", "said"), [(1 << 8, "differs from the exponential"), (1, "except segment 4")]
)
def test_a_wrong_table_is_a_mismatch_of_its_program(corpus: Path, added: int, said: str) -> None:
    """The oracle takes tables from the program: the bytes agree, whatever the table holds. In the
    segment from -2.70 to -1.76: 2e-4 of the amplitude, far below what is recognised; and a last
    bit, which only the tables of other programs show."""
    folder, name = corpus / "darwinn", "bright_16x16"
    data = (folder / f"{name}_edgetpu.tflite").read_bytes()
    (model,) = load(data).models
    stream = bytes(model.inference.instruction_bitstreams[0].bitstream)
    (table, _) = FunctionTables.of(model.inference).tables
    at = 5 * 4
    change = Change("coefficient", at, 0, word_of(stream, table.pc, at) + added)
    place = Mutation(0, 0, table.pc, "CoefficientTable", (change,), Kind.TABLE)
    wrong = mutated_stream(stream, place)
    assert data.count(stream) == 1
    reference = corpus / "tflite" / f"{name}.tflite"
    report = verify(data.replace(stream, wrong), reference, runs=2)
    assert report.verdict is Verdict.MISMATCH
    assert all(row.verdict is Verdict.PASS for row in report.rows)
    assert "1 function table wrong" in report.message
    (found_wrong,) = report.figures["functions"].wrong
    assert found_wrong.pc == table.pc and said in found_wrong.problem
    alone = verify(data.replace(stream, wrong), runs=1)
    assert alone.verdict is Verdict.MISMATCH


def word_of(stream: bytes, pc: int, place: int) -> int:
    """A coefficient of the table at ``pc``."""
    program = decode(stream)
    operation = program[program.pc.tolist().index(pc)]
    return int(operation.many("coefficient")[place])
