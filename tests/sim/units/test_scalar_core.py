"""Scalar core: random programs of bundles, loops and branches against a slow interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from darwinn_sim import chip
from darwinn_sim.units import scalar_core
from functional_coverage import Coverage
from hypothesis import given
from hypothesis import strategies as st
from slow_model import scalar_core as slow
from stimulus import constrained_random
from unit_bench import Bench, Operations

OPERATIONS = (
    *(f"ALU {op}" for op in sorted(slow.REGISTER_OPERATIONS | slow.PREDICATE_OPERATIONS)),
    *(f"load {op}" for op in range(1, 4)),
    *(f"store {op}" for op in range(1, 7)),
    *(f"function {op}" for op in sorted(slow.FUNCTIONS)),
)
BINS = (
    *OPERATIONS,
    "operand b is an immediate",
    "operand b is a register",
    "gated and executed",
    "gated and skipped",
    "comparison of numbers of unlike sign",
    "destination is an operand",
    "two slots in one bundle",
    "loop",
    "loop in a loop",
    "branch taken",
    "branch not taken",
)
POINTERS = (28, 29, 30)
"""Registers that hold addresses: no slot writes anything but a post-increment to them."""

WORDS = (0, 1, 2, 31, 32, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
FLOATS = tuple(slow.to_word(v) for v in (0.0, 1.0, -1.0, 0.5, 2.5, -3.5, 1e-3, 100.25, 1e10))


def words(floats: bool = False) -> st.SearchStrategy[int]:
    if floats:
        values = st.floats(-1e6, 1e6, width=32, allow_subnormal=False).map(slow.to_word)
        return st.one_of(st.sampled_from(FLOATS), values)
    return st.one_of(st.sampled_from(WORDS), st.integers(0, 2**32 - 1))


@st.composite
def bundles(draw: Any) -> dict[str, int]:
    """One scalar bundle: slots that write different registers, floats from registers 16 to 27."""
    fields: dict[str, int] = {}
    free = draw(st.permutations(range(16)))
    operation = draw(st.sampled_from([0, *slow.REGISTER_OPERATIONS, *slow.PREDICATE_OPERATIONS]))
    takes_float = operation >= 17
    gives_float = operation in (16, 18, 19, 20, 21, 22)
    low = 16 if takes_float else 0
    fields |= {
        "alu_op": operation,
        "alu_destination": 16 + free[0] % 4 if gives_float else free[0],
        "alu_a": draw(st.integers(low, low + 11)),
        "alu_immediate": draw(st.integers(0, 1)),
    }
    registers = st.integers(low, low + 11)
    immediate = words(takes_float) if operation != 17 else st.sampled_from(FLOATS[:-1])
    fields["alu_b"] = draw(immediate if fields["alu_immediate"] else registers)
    if operation == 17:
        # Products of registers may exceed what an integer holds: immediates only.
        fields |= {"alu_immediate": 1, "alu_b": draw(st.sampled_from(FLOATS[:-1]))}
    if draw(st.booleans()):
        pointer = draw(st.sampled_from(POINTERS[:2]))
        fields |= {"load_op": draw(st.integers(1, 3)), "load_register": free[1]}
        fields["load_address"] = pointer | draw(st.integers(0, 2)) << 5
    if draw(st.booleans()):
        fields |= {"store_op": draw(st.integers(1, 6)), "store_register": draw(st.integers(0, 27))}
        fields["store_address"] = POINTERS[2] | draw(st.integers(0, 2)) << 5
    if draw(st.integers(0, 3)) == 0:
        fields |= {
            "function_op": draw(st.sampled_from(list(slow.FUNCTIONS))),
            "function_source": draw(st.integers(20, 27)),
            "function_destination": 20 + free[2] % 4,
        }
    if draw(st.integers(0, 3)) == 0:
        fields |= {
            "gate": 1,
            "predicate": draw(st.integers(0, 7)),
            "polarity": draw(st.integers(0, 1)),
        }
    return fields


@st.composite
def programs(draw: Any) -> tuple[list[tuple[str, dict[str, int]]], list[int]]:
    """Bundles with loops (one within another) and forward branches, and first register values."""
    body = [("Scalar", draw(bundles())) for _ in range(draw(st.integers(1, 6)))]
    program = list(body)
    if draw(st.booleans()):
        inner = {"count": draw(st.integers(1, 4)), "body": len(body)}
        program = [("Loop", inner), *body]
        if draw(st.booleans()):
            more = [("Scalar", draw(bundles()))]
            outer = {"count": draw(st.integers(1, 3)), "body": len(program) + len(more)}
            # The inner loop ends with the outer one, or a bundle before it.
            nested = [*more, *program] if draw(st.booleans()) else [*program, *more]
            program = [("Loop", outer), *nested]
    if draw(st.booleans()):
        skipped = [("Scalar", draw(bundles()))] * draw(st.integers(0, 3))
        branch = {
            "relative": 1,
            "offset": 1 + len(skipped),
            "conditional": draw(st.integers(0, 1)),
            "branch_predicate": draw(st.integers(0, 7)),
            "branch_polarity": draw(st.integers(0, 1)),
        }
        program += [("Branch", branch), *skipped]
    integers = [draw(words()) for _ in range(16)]
    floats = [draw(words(floats=True)) for _ in range(12)]
    return program, [*integers, *floats, 100, 900, 2000, 0]


def cover(coverage: Coverage, program: list[tuple[str, dict[str, int]]]) -> None:
    names = [name for name, _ in program]
    coverage.hit("loop", when="Loop" in names)
    coverage.hit("loop in a loop", when=names.count("Loop") == 2)
    for name, fields in program:
        if name != "Scalar":
            continue
        slots = [part for part in ("alu", "load", "store", "function") if fields.get(f"{part}_op")]
        for part in slots:
            label = "ALU" if part == "alu" else part
            coverage.hit(f"{label} {fields[f'{part}_op']}")
        coverage.hit("two slots in one bundle", when=len(slots) > 1)
        immediate = fields["alu_immediate"]
        coverage.hit(f"operand b is {'an immediate' if immediate else 'a register'}")
        coverage.hit("destination is an operand", when=fields["alu_destination"] == fields["alu_a"])


def test_random_programs_compute_what_the_slow_interpreter_does() -> None:
    """Registers, predicates, memory, output, descriptors and step count agree."""
    coverage = Coverage("scalar core", BINS)

    @constrained_random(400)
    @given(programs())
    def check(case: tuple[list[tuple[str, dict[str, int]]], list[int]]) -> None:
        program, registers = case
        bench = Bench(program)
        bench.core["registers"][:] = registers
        machine = slow.Machine(bench.core["memory"].tolist())
        machine.registers = list(registers)
        machine.run(program)
        _watch_predicates(coverage, program, registers)
        bench.run()
        assert bench.fault is None and bench.core["halted"]
        assert bench.core["registers"].tolist() == machine.registers
        assert [int(p) for p in bench.core["predicates"]] == machine.predicates
        assert bench.core["memory"].tolist() == machine.memory
        assert bench.output() == machine.output
        assert bench.descriptors == machine.issued
        assert int(bench.core["steps"]) == machine.steps + 1
        cover(coverage, program)

    coverage.close(check)


def _watch_predicates(
    coverage: Coverage, program: list[tuple[str, dict[str, int]]], registers: list[int]
) -> None:
    """Note what gates and branches did, by running the straight program bundle by bundle."""
    machine = slow.Machine([0] * chip.SCALAR_MEMORY_WORDS)
    machine.registers = list(registers)
    for name, fields in program:
        if name == "Branch" and fields["conditional"]:
            taken = machine.predicates[fields["branch_predicate"]] == fields["branch_polarity"]
            coverage.hit("branch taken" if taken else "branch not taken")
        if name != "Scalar":
            continue
        if fields.get("gate"):
            runs = machine.predicates[fields["predicate"]] == fields["polarity"]
            coverage.hit("gated and executed" if runs else "gated and skipped")
        if fields["alu_op"] in (12, 13) and fields["alu_immediate"]:
            unlike = (machine.registers[fields["alu_a"]] ^ fields["alu_b"]) >> 31
            coverage.hit("comparison of numbers of unlike sign", when=unlike)
        machine.bundle(fields)


@pytest.mark.parametrize(
    ("operation", "a", "b", "expected"),
    [
        (12, 0x80000000, 0, 1),
        (12, 0, 0x80000000, 0),
        (13, 0xFFFFFFFF, 0, 0),
        (13, 5, 5, 1),
        (9, 7, 7, 1),
        (10, 7, 7, 0),
    ],
)
def test_comparisons_are_signed(operation: int, a: int, b: int, expected: int) -> None:
    """Programs test the top bit with `<` to get the carry of a 64-bit address."""
    compare = {"alu_op": operation, "alu_a": 1, "alu_immediate": 1, "alu_b": b}
    bench = Bench([("Scalar", compare | {"alu_destination": 3})])
    bench.core["registers"][1] = a
    bench.run()
    assert int(bench.core["predicates"][3]) == expected


@pytest.mark.parametrize(
    ("value", "expected"), [(0.5, 0), (1.5, 2), (2.5, 2), (-1.5, -2), (3.7, 4)]
)
def test_float_to_integer_rounds_to_nearest(value: float, expected: int) -> None:
    convert = {"alu_op": 17, "alu_immediate": 1, "alu_b": slow.to_word(value), "alu_destination": 4}
    bench = Bench([("Scalar", convert)])
    bench.run()
    assert int(bench.core["registers"][4].astype(np.int32)) == expected


def test_slots_read_the_registers_as_they_were() -> None:
    """Store, ALU and function of one bundle all use the old value of register 5."""
    old = slow.to_word(4.0)
    swap = {
        "alu_op": 15,
        "alu_immediate": 1,
        "alu_b": 77,
        "alu_destination": 5,
        "store_op": 1,
        "store_address": 50,
        "store_register": 5,
        "function_op": 2,
        "function_source": 5,
        "function_destination": 6,
    }
    bench = Bench([("Scalar", swap)])
    bench.core["registers"][5] = old
    bench.run()
    assert int(bench.core["registers"][5]) == 77
    assert int(bench.core["memory"][50]) == old
    assert int(bench.core["registers"][6]) == slow.to_word(0.25)


@pytest.mark.parametrize("count", [1, 2, 1002, 65535])
def test_a_loop_runs_its_body_as_often_as_it_says(count: int) -> None:
    """The count is exact, not minus 1."""
    add = {"alu_op": 1, "alu_a": 1, "alu_immediate": 1, "alu_b": 1, "alu_destination": 1}
    bench = Bench([("Loop", {"count": count, "body": 1}), ("Scalar", add)])
    bench.run()
    assert int(bench.core["registers"][1]) == count


def test_a_backward_branch_repeats_until_its_predicate_turns() -> None:
    add = {"alu_op": 1, "alu_a": 1, "alu_immediate": 1, "alu_b": 3, "alu_destination": 1}
    compare = {"alu_op": 12, "alu_a": 1, "alu_immediate": 1, "alu_b": 20, "alu_destination": 2}
    back = {"relative": 1, "conditional": 1, "branch_predicate": 2, "branch_polarity": 1}
    bench = Bench([("Scalar", add), ("Scalar", compare), ("Branch", back | {"offset": -2})])
    bench.run()
    assert int(bench.core["registers"][1]) == 21


@pytest.mark.parametrize("slot", ["load", "store"])
@pytest.mark.parametrize("address", [chip.SCALAR_MEMORY_WORDS, 0xFFFFFFFF])
def test_an_address_outside_scalar_memory_is_a_fault(slot: str, address: int) -> None:
    bench = Bench([("Scalar", {}), ("Scalar", {f"{slot}_op": 2, f"{slot}_address": 7})])
    bench.core["registers"][7] = address
    assert bench.run() == scalar_core.FAULT
    assert bench.fault == ("scalar memory", "address outside the memory")
    assert (int(bench.core["fault_pc"]), int(bench.core["fault_tile"])) == (2, -1)


@pytest.mark.parametrize("offset", [-5, 200, 3])
def test_a_program_counter_that_leaves_the_program_is_a_fault(offset: int) -> None:
    """Outside the chunk, or inside an instruction of several bundles."""
    branch = {"relative": 1, "offset": offset}
    bench = Bench([("Branch", branch), ("Scalar", {}), ("ScalarFence", {})])
    assert bench.run() == scalar_core.FAULT
    assert bench.fault == ("scalar core", "the program counter leaves the chunk")


def test_more_nested_loops_than_the_core_holds_are_a_fault() -> None:
    loops: Operations = [("Loop", {"count": 2, "body": 200 - k}) for k in range(40)]
    bench = Bench(loops)
    assert bench.run() == scalar_core.FAULT
    assert bench.fault == ("scalar core", "too many nested hardware loops")


def test_output_that_the_host_does_not_take_holds_the_core_back() -> None:
    pushes = chip.HOST_FIFO_BYTES // 4 + 5
    bench = Bench(
        [("Loop", {"count": pushes, "body": 1}), ("Scalar", {"store_op": 4, "store_register": 1})]
    )
    assert bench.run() == scalar_core.BLOCKED
    bench.core["output"]["length"] = 0
    bench.run()
    assert len(bench.output()) == 20 and bench.core["halted"]
