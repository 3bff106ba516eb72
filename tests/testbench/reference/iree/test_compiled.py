"""Compiled functions against the interpreter: results, memory, errors and work counted."""

from __future__ import annotations

import itertools
import signal
import struct
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from darwinn_formats.errors import ExecutionError
from darwinn_formats.iree import load
from darwinn_formats.iree.opcodes import BY_MNEMONIC, Field
from darwinn_formats.limits import Limits, limited
from darwinn_reference.iree import IreeReference
from darwinn_reference.iree.blocks import COVERED
from darwinn_reference.iree.branches import LEAVES
from darwinn_reference.iree.budget import Budget
from darwinn_reference.iree.compiled import Ranges, Touched, code_of
from darwinn_reference.iree.compiled.loops import MAXIMUM_INSTRUCTIONS
from darwinn_reference.iree.machine import Machine
from darwinn_reference.iree.memory import Buffer, VmList
from darwinn_reference.iree.semantics import PURE
from darwinn_reference.protocol import Intermediate
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from iree_modules import IMPORT, FunctionSource, Source, imports, module, ref, rodata

CELLS, REFERENCES = 12, 4
LOOP: tuple[Source, ...] = ("loop", ("br", ["loop", []]))
"""A loop that nothing leads to: what has one is compiled."""
LETTERS = {"i": "i", "l": "I", "f": "i", "d": "I"}
"""Conventions by register type: floats are passed as the integers of the same bits."""
BLOCKS = 300
DEPTH = 3
"""Of lists within lists that are compared."""

FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, 0.1, 1e-30, 1e30, 16777217.0, 2147483648.0)
SPECIAL32 = (0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00001, 0x7F800001, 0xFFBFFFFF, 1, 0x80000001)
_HIGH = (0x7FF00000, 0xFFF80000, 0x7FF80000, 0x43E00000, 0x41E00000)
SPECIAL64 = (
    *(value << 32 | 3 for value in _HIGH),
    *(value << 48 for value in (0x7FF0, 0xFFF0, 0x43E0, 0xC3E0)),
    1,
)


def signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) else value


def edges(*values: int, bits: int) -> list[int]:
    return [signed(value & ((1 << bits) - 1), bits) for value in values]


INTEGERS32 = edges(*range(-2, 5), 31, 32, 33, 127, 128, 255, 65535, 1 << 31, bits=32)
INTEGERS64 = edges(*range(-2, 5), 31, 63, 64, 1 << 31, 1 << 32, 1 << 40, 1 << 63, bits=64)
BITS32 = edges(*(struct.unpack("I", struct.pack("f", v))[0] for v in FLOATS), *SPECIAL32, bits=32)
BITS64 = edges(*(struct.unpack("Q", struct.pack("d", v))[0] for v in FLOATS), *SPECIAL64, bits=64)
VALUES: dict[str, st.SearchStrategy[int]] = {
    "i": st.one_of(st.sampled_from(INTEGERS32), st.integers(-(1 << 31), (1 << 31) - 1)),
    "l": st.one_of(st.sampled_from(INTEGERS64), st.integers(-(1 << 63), (1 << 63) - 1)),
    "f": st.one_of(st.sampled_from(BITS32), st.integers(-(1 << 31), (1 << 31) - 1)),
    "d": st.one_of(st.sampled_from(BITS64), st.integers(-(1 << 63), (1 << 63) - 1)),
}


def outcome(
    data: bytes,
    arguments: Sequence[int],
    *,
    compiled: bool,
    blocks: int = BLOCKS,
    ranges: Ranges | None = None,
) -> tuple[Any, ...]:
    """All that a call of function 0 does: what it gives or raises, and what it leaves behind."""
    loaded = load(data).module
    assert code_of(loaded.functions[0]) is not None
    budget = Budget(blocks)
    known = {("host.f", CONVENTION): host}
    machine = Machine(loaded, known, None, budget, compiled=compiled, ranges=ranges)
    buffers = [Buffer(memoryview(bytearray(range(1, 25)))), Buffer(memoryview(bytes(range(40))))]
    convention = loaded.functions[0].convention
    assert convention is not None
    taken = [*arguments, *buffers][: len(list(convention.flat_arguments()))]
    said: Any
    try:
        with np.errstate(all="ignore"):
            said = [shown(value, buffers) for value in machine.call(loaded.functions[0], taken)]
    except ExecutionError as error:
        said = type(error).__name__, str(error)
    return (
        said,
        budget.used,
        [(bytes(buffer.memory), tuple(buffer.stores)) for buffer in buffers],
        bytes(machine.state.global_memory),
        [shown(value, buffers) for value in machine.state.references],
    )


def shown(value: Any, buffers: Sequence[Buffer], depth: int = 0) -> Any:
    """A value for comparison: references by what they hold."""
    if value in buffers:
        return "buffer", buffers.index(value)
    if isinstance(value, Buffer):
        return bytes(value.memory), tuple(value.stores)
    if isinstance(value, VmList):
        items = value.items if depth < DEPTH else value.items[:0]
        return len(value.items), [shown(each, buffers, depth + 1) for each in items]
    return repr(value)


def same(data: bytes, arguments: Sequence[int], blocks: int = BLOCKS) -> tuple[Any, ...]:
    interpreted = outcome(data, arguments, compiled=False, blocks=blocks)
    for ranges in (None, Ranges()):
        found = outcome(data, arguments, compiled=True, blocks=blocks, ranges=ranges)
        assert found == interpreted
    return interpreted


# One operation.


def bits_operation(mnemonic: str) -> FunctionSource:
    """A function that takes and gives the bits of what an operation reads and writes."""
    letters, registers, cell, result = "", [], 0, ""
    for declared in BY_MNEMONIC[mnemonic].fields:
        cell += cell % 2
        registers.append(cell)
        if declared.written:
            result = LETTERS[declared.kind]
        else:
            letters += LETTERS[declared.kind]
            # Every argument gets a pair: a number of 32 bits has one that is not used behind it.
            letters += "i" * (declared.kind in "if")
        cell += 2
    source = ["start", (mnemonic, registers), ("return", [[registers[-1]]]), *LOOP]
    return FunctionSource("f", f"0{letters}_{result}", source)


@pytest.mark.parametrize("name", [name for name in PURE if not name.endswith(".ref")])
def test_an_operation_gives_the_bits_that_the_interpreter_gives(name: str) -> None:
    data = module([bits_operation(name)])
    kinds = [field.kind for field in BY_MNEMONIC[name].fields if not field.written]

    @settings(max_examples=60, deadline=None, database=None)
    @given(st.tuples(*(VALUES[kind] for kind in kinds)))
    def check(values: tuple[int, ...]) -> None:
        arguments: list[int] = []
        for kind, value in zip(kinds, values, strict=True):
            arguments += [value, 0] if kind in "if" else [value]
        same(data, arguments)

    check()


# Where code reads and writes.

COPYING: tuple[Source, ...] = (
    "start",
    ("br", ["copy", []]),
    "copy",
    ("buffer.load.i8.u", [ref(0), 0, 6]),
    ("buffer.store.i16", [ref(1), 2, 6]),
    ("const.i64", [1, 8]),
    ("add.i64", [0, 8, 0]),
    ("add.i64", [2, 8, 2]),
    ("sub.i64", [4, 8, 4]),
    ("trunc.i64.i32", [4, 10]),
    ("cond_br", [10, "copy", [], "end", []]),
    "end",
    ("return", [[]]),
)
"""Bytes of the first buffer from an index on as elements of 2 bytes of the second: cells 0 and 2
are the indices, cell 4 is how many."""


@given(st.data())
@settings(max_examples=30, deadline=None, database=None)
def test_tracked_code_knows_where_it_reads_and_writes(data: st.DataObject) -> None:
    function = FunctionSource("f", "0IIIrr_v", COPYING, cells=16)
    loaded = load(module([function])).module
    ranges = Ranges()
    machine = Machine(loaded, {}, None, Budget(10_000), ranges=ranges)
    source, target = Buffer(memoryview(bytearray(range(20)))), Buffer(memoryview(bytearray(40)))
    reads: list[int] = []
    writes: list[int] = []
    for _ in range(data.draw(st.integers(1, 3))):
        count = data.draw(st.integers(1, 5))
        first, to = data.draw(st.integers(0, 15)), data.draw(st.integers(0, 15))
        machine.call(loaded.functions[0], (first, to, count, source, target))
        reads += range(first, first + count)
        writes += range(2 * to, 2 * (to + count))
    for buffer, touched, stores, element in (
        (source, reads, False, "i8"),
        (target, writes, True, "i16"),
    ):
        start = buffer.address
        expected = Touched(start + min(touched), start + max(touched) + 1, stores, element)
        assert list(ranges.within(start, start + len(buffer))) == [expected]
    ranges.clear()
    assert not list(ranges.within(source.address, source.address + len(source)))


# Modules of a compiler.


def test_real_modules_give_what_the_interpreter_gives(corpus: Path) -> None:
    count = 0
    for path in sorted((corpus / "vmfb").rglob("*.vmfb")):
        if "llvmcpu" not in path.name and path.with_suffix(".npz").exists():
            interpreted = run_stored_calls(path, compiled=False)
            compiled = run_stored_calls(path, compiled=True)
            # Compiled code knows what of a buffer it has written, and shows that alone.
            for own, whole in zip(compiled, interpreted, strict=True):
                assert [name for name, _ in own] == [name for name, _ in whole], path
                assert all(a in b for (_, a), (_, b) in zip(own, whole, strict=True)), path
                assert [data for name, data in own if not name] == [
                    data for name, data in whole if not name
                ], path
            count += len(interpreted)
    assert count


def run_stored_calls(path: Path, *, compiled: bool) -> list[list[tuple[str, bytes]]]:
    """Names and bytes of what the calls stored beside a module show, and, without a name, give."""
    reference = IreeReference(path, compiled=compiled)
    told: list[list[tuple[str, bytes]]] = []

    def tap(entry: Intermediate) -> None:
        told[-1].append((entry.name, entry.data.tobytes()))

    with np.load(path.with_suffix(".npz")) as stored:
        for number in itertools.takewhile(lambda n: f"call{n}_fn" in stored, itertools.count()):
            names = [name for name in stored.files if name.startswith(f"call{number}_in")]
            told.append([])
            outputs = reference.run(
                [stored[name] for name in names], function=str(stored[f"call{number}_fn"]), tap=tap
            )
            told[-1] += [("", np.asarray(output.data).tobytes()) for output in outputs]
    return told


# Programs of all operations.

CONVENTION = "0iIr_iIr"
FUNCTION_CONVENTION = "0iIiIrr_iIiIr"
TYPES = "ilfdrr"


def host(_: Any, number: int, wide: int, value: Any) -> tuple[int, int, Any]:
    """The import: it changes the buffer that it gets, and fails now and then."""
    if number == 3:
        raise ExecutionError("three is too many")
    if isinstance(value, Buffer) and not value.memory.readonly:
        value.memory[0] = number & 0xFF
    return number ^ 1, wide, None if number == 4 else value


CELL = st.integers(0, CELLS - 1)
EVEN = st.integers(0, CELLS // 2 - 1).map(lambda pair: 2 * pair)
REFERENCE = st.builds(lambda o, m: ref(o, move=m), st.integers(0, REFERENCES - 1), st.booleans())
WRITTEN_REFERENCE = st.integers(0, REFERENCES - 1).map(ref)
REGISTERS = {"i": CELL, "f": CELL, "l": EVEN, "d": EVEN, "r": REFERENCE, "*": CELL | REFERENCE}
LABELS = ("b0", "b1", "b2", "b3")
LABEL = st.sampled_from(LABELS)
PAIRS = st.lists(
    st.one_of(
        st.tuples(CELL, CELL),
        st.tuples(REFERENCE, WRITTEN_REFERENCE),
    ),
    max_size=3,
) | st.builds(lambda a, b: [(a, b), (a + 1, b + 1)], EVEN, EVEN)
IMMEDIATES = {
    "i": st.sampled_from(INTEGERS32),
    "l": st.sampled_from(INTEGERS64),
    "f": st.sampled_from(BITS32).map(lambda bits: bits & 0xFFFF_FFFF),
    "d": st.sampled_from(BITS64).map(lambda bits: bits & (1 << 64) - 1),
}


def typed(kinds: str, *, written: bool = False) -> st.SearchStrategy[list[int]]:
    references = WRITTEN_REFERENCE if written else REFERENCE
    return st.tuples(*(references if k == "r" else REGISTERS[k] for k in kinds)).map(list)


def operand(mnemonic: str, field: Field) -> st.SearchStrategy[Any]:
    if field.kind in "ilfd*":
        return REGISTERS[field.kind]
    if field.kind == "r":
        return WRITTEN_REFERENCE if field.written else REFERENCE
    references = mnemonic.endswith(".ref")
    chosen: dict[str, st.SearchStrategy[Any]] = {
        "#": IMMEDIATES[field.type] if field.kind == "#" else st.nothing(),
        "G": st.integers(0, 3 if references else 7).map(lambda n: n if references else 8 * n),
        "T": st.integers(0, 1),
        "O": st.integers(0, 1),
        "S": st.just(b"text"),
        "B": LABEL,
        "M": PAIRS,
        "C": st.lists(st.tuples(LABEL, PAIRS), max_size=3),
        "F": st.just(IMPORT),
        "V": st.lists(REGISTERS.get(field.type, CELL), max_size=3),
    }
    return chosen[field.kind]


def operands(mnemonic: str) -> st.SearchStrategy[list[Any]]:
    fields = BY_MNEMONIC[mnemonic].fields
    if mnemonic.startswith("call"):
        outer = st.just(IMPORT), typed("ilr"), typed("ilr", written=True)
        inner = st.just(0), typed("ilfdrr"), typed("ilfdr", written=True)
        either = st.one_of(st.tuples(*outer), st.tuples(*inner))
        if mnemonic.endswith(".yieldable"):
            return st.builds(lambda call, label: [*call[:2], label, call[2]], either, LABEL)
        return either.map(list)
    if mnemonic == "return":
        return st.tuples(typed("ilfdr")).map(list)
    if mnemonic == "discard.refs":
        return st.tuples(st.lists(REFERENCE, max_size=3)).map(list)
    return st.tuples(*(operand(mnemonic, field) for field in fields)).map(list)


def instruction(names: Sequence[str]) -> st.SearchStrategy[tuple[str, list[Any]]]:
    return st.sampled_from(sorted(names)).flatmap(
        lambda name: st.tuples(st.just(name), operands(name))
    )


LEAVING = [name for name in LEAVES if "variadic" not in name]
STAYING = [name for name in COVERED - LEAVES.keys() if name != "block" and "variadic" not in name]
FREQUENT = [name for name in STAYING if name.startswith(("buffer.load", "buffer.store", "const"))]
BLOCK = st.tuples(
    st.lists(instruction(STAYING) | instruction(FREQUENT), max_size=5),
    instruction(LEAVING) | instruction(["br", "cond_br"]),
)
PROGRAM = st.tuples(*(BLOCK for _ in LABELS))


def program(blocks: Sequence[tuple[Sequence[Source], Source]]) -> bytes:
    source: list[Source] = []
    for label, (body, leave) in zip(LABELS, blocks, strict=True):
        source += [label, *body, leave]
    function = FunctionSource("f", FUNCTION_CONVENTION, [*source, *LOOP], CELLS, REFERENCES)
    return module(
        [function],
        rodata_segments=rodata(b"constant", bytes(32)),
        imported_functions=imports(("host.f", CONVENTION)),
    )


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("darwinn_reference.iree.memory.MAXIMUM_ALLOCATION", 1 << 12)
    monkeypatch.setattr("darwinn_reference.iree.effects.MAXIMUM_LIST", 16)
    monkeypatch.setattr("darwinn_reference.iree.machine.MAXIMUM_CALLS", 8)


@settings(
    max_examples=80,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(PROGRAM, st.tuples(*(VALUES[kind] for kind in "ilfd")), st.sampled_from([3, 17, 40, BLOCKS]))
@pytest.mark.usefixtures("small")
def test_a_program_does_what_the_interpreter_does(
    blocks: Any, arguments: Sequence[int], allowed: int
) -> None:
    same(program(blocks), arguments, allowed)


LOAD: tuple[Source, ...] = (
    ("const.i64.zero", [8]),
    ("buffer.load.i8.u", [ref(0), 8, 0]),
    ("return", [[0]]),
)
MOVED = ref(0, move=True)


@pytest.mark.parametrize(
    "before",
    [
        [("br", ["on", [(MOVED, ref(1))]]), "on"],
        [("br", ["on", [(ref(1), ref(0))]]), "on"],
        [("br", ["on", [(ref(0), ref(1))]]), "on"],
        [("assign.ref", [MOVED, ref(1)])],
        [("assign.ref", [ref(1), ref(0)])],
        [("discard.refs", [[ref(0)]])],
        [("const.ref.rodata", [0, ref(0)])],
        [("select.ref", [0, 0, MOVED, ref(1), ref(1)])],
        [("const.ref.zero", [ref(0)])],
        [("call", [IMPORT, [0, 2, MOVED], [0, 2, ref(1)]])],
        [("call.yieldable", [IMPORT, [0, 2, ref(1)], "on", [0, 2, ref(0)]]), "on"],
        [("global.store.ref", [0, 0, MOVED]), ("global.load.ref", [1, 0, ref(0)])],
    ],
)
def test_a_load_sees_what_its_reference_has_become(before: list[Source]) -> None:
    first = [("const.i64.zero", [8]), ("buffer.load.i8.u", [ref(0), 8, 10])]
    data = module(
        [FunctionSource("f", "0r_i", ["start", *first, *before, *LOAD, *LOOP], CELLS, REFERENCES)],
        rodata_segments=rodata(b"constant"),
        imported_functions=imports(("host.f", CONVENTION)),
    )
    same(data, [])


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=2, max_size=4))
@settings(max_examples=60, deadline=None)
def test_copies_of_cells_are_made_in_order(pairs: list[tuple[int, int]]) -> None:
    source: list[Source] = ["start", ("br", ["on", pairs]), "on", ("return", [[*range(6)]])]
    data = module([FunctionSource("f", "0iiiiii_iiiiii", [*source, *LOOP])])
    same(data, [1, 2, 3, 4, 5, 6])


@pytest.mark.parametrize("source", range(5))
@pytest.mark.parametrize("target", range(5))
def test_copies_of_neighbours_are_made_in_order(source: int, target: int) -> None:
    test_copies_of_cells_are_made_in_order.hypothesis.inner_test(  # type: ignore[attr-defined]
        [(source, target), (source + 1, target + 1)]
    )


# Limits.

ENDLESS = module([FunctionSource("f", "0v_v", list(LOOP))])


def test_seconds_end_a_loop_without_end() -> None:
    with (
        limited(Limits(seconds=0.1)),
        pytest.raises(ExecutionError, match=r"^f at 1: .*not ended after 0\.1 s \(--max-seconds\)"),
    ):
        IreeReference(ENDLESS).run([])


@pytest.mark.usefixtures("signals_not_ignored")
def test_an_interruption_ends_a_loop_without_end() -> None:
    ended = threading.Event()

    def interrupt() -> None:
        # Again and again, as people do: one that comes as machine code calls back can be lost.
        while not ended.wait(0.2):
            signal.raise_signal(signal.SIGINT)

    thread = threading.Thread(target=interrupt, daemon=True)
    with limited(Limits(seconds=30)), pytest.raises(KeyboardInterrupt):
        thread.start()
        try:
            IreeReference(ENDLESS).run([])
        finally:
            ended.set()
    thread.join(10)


def test_a_long_function_is_interpreted() -> None:
    def code_for(count: int) -> object:
        source: list[Source] = ["start", *[("add.i32", [0, 1, 2])] * count, ("return", [[]]), *LOOP]
        return code_of(load(module([FunctionSource("f", "0v_v", source)])).module.functions[0])

    assert code_for(MAXIMUM_INSTRUCTIONS - 5) is not None
    assert code_for(MAXIMUM_INSTRUCTIONS + 1) is None


def test_what_has_no_loop_or_calls_in_its_loop_is_interpreted() -> None:
    def code_for(*source: Source) -> object:
        data = module(
            [FunctionSource("f", "0v_v", source)],
            imported_functions=imports(("host.f", "0v_v")),
        )
        return code_of(load(data).module.functions[0])

    assert code_for("start", ("return", [[]])) is None
    assert code_for("start", ("call", [IMPORT, [], []]), ("br", ["start", []])) is None
    assert code_for("start", ("br", ["start", []])) is not None
