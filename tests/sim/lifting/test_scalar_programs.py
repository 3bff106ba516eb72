"""Random programs whose scalar core computes with data: lifted they give what runs give."""

from __future__ import annotations

import numpy as np
import pytest
from darwinn_formats.darwinn import Executable
from darwinn_sim import chip
from darwinn_sim.accelerator import Accelerator
from darwinn_sim.host.output_check import differing_output
from darwinn_sim.isa.builder import Values
from darwinn_sim.isa.codes import AluOperation, LoadOperation, StoreOperation
from darwinn_sim.lifting.program import LiftedProgram, lift
from darwinn_sim.lifting.stage import Made
from darwinn_sim.lifting.walk import NotLifted
from darwinn_sim.units import identities, scalar_alu
from functional_coverage import Coverage
from hypothesis import given
from nightly import CASES, check_cases, nightly_too
from scalar_programs import (
    DATA,
    FLOAT,
    FUNCTIONS,
    INTEGER,
    ScalarProgram,
    alu,
    load,
    programs,
    store,
)
from stimulus import constrained_random

COMPUTING = [each for each in (*INTEGER, *FLOAT) if each != AluOperation.MOVE]
BINS = (
    *(f"ALU {AluOperation(each).name}" for each in COMPUTING),
    *(f"function {each}" for each in FUNCTIONS),
    "between sums",
)
"""Operations that are steps of a lifted program, which moves are not."""


def inputs() -> list[dict[str, bytes]]:
    random = np.random.default_rng(0)
    drawn = [random.bytes(chip.ROW_BYTES) for _ in range(3)]
    return [{"image": each} for each in (*drawn, b"\xff" * chip.ROW_BYTES, bytes(chip.ROW_BYTES))]


def lifted(executable: Executable) -> LiftedProgram:
    """A program that gives what runs of it give, of one input or several."""
    accelerator = Accelerator()
    plain = [accelerator.run(executable, each).outputs for each in inputs()]
    found = lift(accelerator, executable)
    made = [*found.run(inputs()), *found.run(inputs()[:1])]
    for one, other in zip([*plain, plain[0]], made, strict=True):
        assert differing_output(executable, one, other) is None
    return found


def operations_of(program: LiftedProgram) -> list[int]:
    return [int(each) for each in program._plan.operations["operation"]]


@nightly_too
def test_lifted_operations_give_what_runs_give(*, nightly: bool) -> None:
    """All of them are lifted."""
    coverage = Coverage("lifted operations", BINS)
    names = {int(each): f"ALU {AluOperation(each).name}" for each in COMPUTING}
    names |= {scalar_alu.FUNCTION + each: f"function {each}" for each in FUNCTIONS}

    def check(program: ScalarProgram) -> None:
        found = lifted(program.executable())
        for operation in operations_of(found):
            coverage.hit(names[operation])
        coverage.hit("between sums", when=(found._plan.steps["how"] == Made.OPERATIONS).sum() > 1)

    if nightly:
        check_cases("lifted operations", programs(), check, CASES, nightly=True)
        coverage.finish()
    else:
        coverage.close(constrained_random(12)(given(programs())(check)))


ADD, AND, OR, MOVE = (AluOperation[name] for name in ("ADD", "AND", "OR", "MOVE"))
SHIFT = AluOperation.SHIFT_LEFT
FIRST, SECOND, OTHER, PREDICATE, STALE = 1, 2, 12, 5, 90
"""Registers that hold data, and one that holds a number; a predicate; a word of scalar memory that
nothing writes."""


def test_bytes_that_are_put_together_and_taken_apart_are_no_operations() -> None:
    """Also into a word that nothing has written, of which nothing is left in the end."""
    bundles = [
        alu(AND, FIRST, FIRST, 0xFF00FF, immediate=True),
        alu(SHIFT, SECOND, SECOND, 24, immediate=True),
        alu(OR, 3, FIRST, SECOND, immediate=False),
        load(4, DATA),
        load(5, STALE),
        alu(AND, 5, 5, 0xFFFF0000, immediate=True),
        alu(AND, 4, 4, 0xFFFF, immediate=True),
        alu(OR, 5, 4, 5, immediate=False),
        alu(AND, 5, 5, 0xFFFF, immediate=True),
        alu(MOVE, 6, 0, 5, immediate=False),
    ]
    assert operations_of(lifted(ScalarProgram(bundles).executable())) == []


def test_operations_that_no_output_needs_are_no_steps() -> None:
    bundles = [
        alu(ADD, 7, FIRST, SECOND, immediate=False),
        alu(MOVE, 7, 0, 3, immediate=True),
        alu(ADD, 8, 7, OTHER, immediate=False),
        alu(ADD, 9, 8, FIRST, immediate=False),
    ]
    assert operations_of(lifted(ScalarProgram(bundles).executable())) == [ADD]


@pytest.mark.parametrize("source", [FIRST, OTHER])
def test_of_two_results_for_a_register_the_later_counts(source: int) -> None:
    """Of a bundle, that of the function, be it of data or a number."""
    both = alu(ADD, 7, FIRST, SECOND, immediate=False)
    both |= {"function_op": 2, "function_source": source, "function_destination": 7}
    found = operations_of(lifted(ScalarProgram([both]).executable()))
    assert found == [scalar_alu.FUNCTION + 2] * (source == FIRST)


def test_what_is_known_of_data_may_decide() -> None:
    """Its upper bytes are 0, so that it is no 256."""
    bundles = [
        alu(AND, FIRST, FIRST, 0xFF, immediate=True),
        alu(AluOperation.EQUAL, PREDICATE, FIRST, 0x100, immediate=True),
        alu(ADD, SECOND, SECOND, 1, immediate=True) | gate(1),
        alu(ADD, 3, 3, 1, immediate=True) | gate(0),
    ]
    assert operations_of(lifted(ScalarProgram(bundles).executable())) == [ADD]


def gate(polarity: int) -> dict[str, int]:
    """Fields of an instruction that a predicate lets pass."""
    return {"gate": 1, "predicate": PREDICATE, "polarity": polarity}


COMPARED = [alu(AluOperation.LESS, PREDICATE, FIRST, 7, immediate=True)]
PLACE = [alu(AND, FIRST, FIRST, 7, immediate=True), alu(ADD, FIRST, FIRST, DATA, immediate=True)]
"""Data become the address of data."""

LOADED = {"load_op": LoadOperation.INDIRECT, "load_register": 9, "load_address": FIRST}
LOADED_ON = LOADED | {"load_op": LoadOperation.POST_INCREMENT}
STORED = {"store_op": StoreOperation.INDIRECT, "store_register": OTHER, "store_address": FIRST}
STORED_ON = STORED | {"store_op": StoreOperation.POST_INCREMENT}
DESCRIBED = {"store_op": StoreOperation.DESCRIPTOR, "store_register": FIRST, "store_address": 2}
BRANCH = {"relative": 1, "conditional": 1, "branch_predicate": PREDICATE, "offset": 1}
MOVES = {"wide_write_base": 30, "row_loop": 1}
DECIDING: dict[str, tuple[list[dict[str, int]], dict[str, Values]]] = {
    "a gate": ([*COMPARED, alu(ADD, 9, OTHER, 1, immediate=True) | gate(0)], {}),
    "a gate of a fence": (COMPARED, {"ScalarFence": gate(1)}),
    "a gate of a tile's instruction": (COMPARED, {"TileFence": gate(0) | {"tiles": 1}}),
    "a branch": (COMPARED, {"Branch": BRANCH}),
    "an address to load from": ([*PLACE, LOADED], {}),
    "an address to load from that goes on": ([*PLACE, LOADED_ON], {}),
    "an address to store at": ([*PLACE, STORED], {}),
    "an address to store at that goes on": ([*PLACE, STORED_ON], {}),
    "a descriptor": ([DESCRIBED], {}),
    "tiles": (
        PLACE,
        {"NarrowToWide": MOVES | {"tiles": 1, "tiles_override": 1, "tiles_register": FIRST}},
    ),
    "a base address": (
        PLACE,
        {"NarrowToWide": MOVES | {"tiles": 1, "base_override": 1, "base_register": FIRST}},
    ),
}


@pytest.mark.parametrize("what", DECIDING)
def test_data_that_decide_anything_are_refused(what: str) -> None:
    bundles, more = DECIDING[what]
    executable, accelerator = ScalarProgram(bundles).executable(*more.items()), Accelerator()
    accelerator.run(executable, inputs()[0])
    with pytest.raises(NotLifted, match="its course may depend on data"):
        lift(accelerator, executable)


def test_numbers_may_decide_what_data_may_not() -> None:
    """The same with a register that is the same in all runs."""
    for bundles, more in DECIDING.values():
        known = [alu(MOVE, FIRST, 0, 4, immediate=True), *bundles]
        lifted(ScalarProgram(known).executable(*more.items()))


@pytest.mark.parametrize("operation", [MOVE, ADD])
def test_an_output_that_follows_from_scalar_memory_is_refused(operation: int) -> None:
    """Of what a run before has left there, as it is or computed with."""
    bundles = [load(8, STALE), alu(operation, 8, FIRST, 8, immediate=False), store(8, STALE)]
    executable, accelerator = ScalarProgram(bundles).executable(), Accelerator()
    accelerator.run(executable, inputs()[0])
    with pytest.raises(NotLifted, match="what memories held beforehand"):
        lift(accelerator, executable)


def test_a_register_that_nothing_has_written_is_no_number() -> None:
    bundles = [alu(MOVE, 8, 0, 29, immediate=False)]
    executable, accelerator = ScalarProgram(bundles).executable(), Accelerator()
    accelerator.run(executable, inputs()[0])
    with pytest.raises(NotLifted, match="what memories held beforehand"):
        lift(accelerator, executable)


def test_operations_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    bundles = [alu(ADD, 7, 7, FIRST, immediate=False)] * 3
    executable, accelerator = ScalarProgram(bundles).executable(), Accelerator()
    accelerator.run(executable, inputs()[0])
    monkeypatch.setattr(identities, "MAX_OPERATIONS", 3)
    assert operations_of(lift(accelerator, executable)) == [ADD] * 3
    monkeypatch.setattr(identities, "MAX_OPERATIONS", 2)
    with pytest.raises(NotLifted, match="computes with data in more than 2 operations"):
        lift(accelerator, executable)


def test_the_chip_does_not_note_afterwards() -> None:
    """Nor does it hold anything else than before."""
    program = ScalarProgram([alu(ADD, 7, FIRST, SECOND, immediate=False)]).executable()
    accelerator = Accelerator()
    accelerator.run(program, inputs()[0])
    before = accelerator.chip.contents()
    lift(accelerator, program)
    assert np.array_equal(accelerator.chip.contents().core, before.core)
    assert accelerator.chip.core["noting"] == 0
