"""Programs of the virtual machine: control flow, calls, globals, buffers, lists, imports, limits.

Where the original runtime is installed, it runs the same programs and must give the same.
"""

from __future__ import annotations

import mmap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from darwinn_formats.errors import ExecutionError
from darwinn_formats.iree import schema
from darwinn_reference.errors import Unsupported
from darwinn_reference.iree import IreeReference, OriginalIree, why_not
from darwinn_reference.iree.memory import MAXIMUM_ALLOCATION, allocate
from iree_modules import IMPORT, FunctionSource, Source, imports, module, ref, rodata

TABLES = {"rodata_segments": rodata(b"\x01\x02\x03\x80\xff\xff\xff\xff", b"text")}
FUNCTION = FunctionSource

PROGRAMS: dict[str, tuple[FunctionSource, list[Any], list[Any]]] = {
    "a loop sums": (
        FUNCTION(
            "sum",
            "0i_i",
            [
                "start",
                ("const.i32.zero", [1]),
                ("br", ["test", []]),
                "test",
                ("cond_br", [0, "body", [], "end", [(1, 4)]]),
                "body",
                ("add.i32", [1, 0, 1]),
                ("const.i32", [-1, 2]),
                ("add.i32", [0, 2, 0]),
                ("br", ["test", []]),
                "end",
                ("return", [[4]]),
            ],
        ),
        [100],
        [5050],
    ),
    "copies go in order, cell by cell": (
        FUNCTION(
            "copy",
            "0Ii_Ii",
            [
                "start",
                ("br", ["next", [(0, 4), (1, 5), (2, 8)]]),
                "next",
                ("return", [[4, 8]]),
            ],
        ),
        [-(1 << 40), 7],
        [-(1 << 40), 7],
    ),
    "a table takes its case": (
        FUNCTION(
            "table",
            "0i_i",
            [
                "start",
                ("const.i32", [10, 1]),
                ("const.i32", [20, 2]),
                ("br_table", [0, "end", [(0, 3)], [("end", [(1, 3)]), ("end", [(2, 3)])]]),
                "end",
                ("return", [[3]]),
            ],
        ),
        [1],
        [20],
    ),
    "selections and switches": (
        FUNCTION(
            "select",
            "0iII_IIf",
            [
                "start",
                ("select.i64", [0, 2, 4, 6]),
                ("switch.i64", [0, 2, [2, 4], 8]),
                ("const.f32", [0x3FC00000, 10]),
                ("const.f32.zero", [11]),
                ("switch.f32", [0, 11, [11, 10], 12]),
                ("return", [[6, 8, 12]]),
            ],
        ),
        [1, 5, -6],
        [5, -6, 1.5],
    ),
    "loads extend, stores truncate": (
        FUNCTION(
            "access",
            "0v_iiiIi",
            [
                "start",
                ("const.ref.rodata", [0, ref(0)]),
                ("const.i64", [3, 0]),
                ("buffer.load.i8.u", [ref(0), 0, 4]),
                ("buffer.load.i8.s", [ref(0), 0, 5]),
                ("const.i64", [1, 0]),
                ("buffer.load.i16.s", [ref(0), 0, 6]),
                ("const.i64", [8, 2]),
                ("const.i32", [8, 7]),
                ("buffer.alloc", [2, 7, ref(1)]),
                ("const.i32", [0x1234_56F0, 8]),
                ("buffer.store.i8", [ref(1), 0, 8]),
                ("const.i64.zero", [0]),
                ("buffer.load.i64", [ref(1), 0, 10]),
                ("buffer.load.i32", [ref(1), 0, 9]),
                ("return", [[4, 5, 6, 10, 9]]),
            ],
        ),
        [],
        [128, -128, -32765, 0xF000, 0xF000],
    ),
    "buffers fill by elements and copy by bytes": (
        FUNCTION(
            "fill",
            "0v_iIiii",
            [
                "start",
                ("const.i64", [12, 0]),
                ("const.i32", [4, 2]),
                ("buffer.alloc", [0, 2, ref(0)]),
                ("const.i64", [1, 4]),
                ("const.i64", [2, 6]),
                ("const.i32", [0x01020304, 8]),
                ("buffer.fill.i32", [ref(0), 4, 6, 8]),
                ("buffer.clone", [ref(0), 6, 4, 2, ref(1)]),
                ("buffer.length", [ref(1), 10]),
                ("trunc.i64.i32", [10, 15]),
                ("buffer.length", [ref(0), 10]),
                ("const.i64.zero", [12]),
                ("buffer.load.i32", [ref(0), 4, 9]),
                ("buffer.copy", [ref(0), 6, ref(0), 12, 6]),
                ("buffer.load.i16.u", [ref(0), 12, 3]),
                ("buffer.compare", [ref(0), 12, ref(0), 6, 6, 14]),
                ("const.i64.zero", [6]),
                ("return", [[9, 10, 3, 15, 14]]),
            ],
        ),
        [],
        [0x01020304, 12, 0, 1, 1],
    ),
    "globals keep numbers of all types": (
        FUNCTION(
            "globals",
            "0ifIF_ifIF",
            [
                "start",
                ("global.store.i32", [0, 0]),
                ("global.store.f32", [4, 1]),
                ("global.store.i64", [8, 2]),
                ("global.store.f64", [16, 4]),
                ("global.load.i32", [0, 6]),
                ("global.load.f32", [4, 7]),
                ("const.i32", [8, 8]),
                ("global.load.indirect.i64", [8, 10]),
                ("global.load.f64", [16, 12]),
                ("return", [[6, 7, 10, 12]]),
            ],
        ),
        [-5, 0.25, 1 << 50, -0.125],
        [-5, 0.25, 1 << 50, -0.125],
    ),
    "lists hold numbers": (
        FUNCTION(
            "list",
            "0i_ii",
            [
                "start",
                ("const.i32", [3, 1]),
                ("list.alloc", [1, 1, ref(0)]),
                ("list.resize", [ref(0), 1]),
                ("const.i32", [2, 2]),
                ("list.set.i32", [ref(0), 2, 0]),
                ("list.get.i32", [ref(0), 2, 3]),
                ("list.size", [ref(0), 4]),
                ("return", [[3, 4]]),
            ],
        ),
        [-9],
        [-9, 3],
    ),
    "references move, are compared and dropped": (
        FUNCTION(
            "references",
            "0v_iiii",
            [
                "start",
                ("const.ref.rodata", [1, ref(0)]),
                ("assign.ref", [ref(0, move=True), ref(1)]),
                ("cmp.nz.ref", [ref(0), 0]),
                ("global.store.ref", [2, 0, ref(1)]),
                ("global.load.ref", [2, 0, ref(2)]),
                ("cmp.eq.ref", [ref(1), ref(2), 1]),
                ("discard.refs", [[ref(1)]]),
                ("cmp.ne.ref", [ref(1), ref(2), 2]),
                ("cast.any.ref", [ref(2), 0, ref(3)]),
                ("cmp.nz.ref", [ref(3), 3]),
                ("return", [[0, 1, 2, 3]]),
            ],
        ),
        [],
        [0, 1, 1, 1],
    ),
}


def program(name: str) -> bytes:
    return module([PROGRAMS[name][0]], **TABLES)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_runs(name: str) -> None:
    source, inputs, expected = PROGRAMS[name]
    outputs = IreeReference(program(name)).run(inputs, function=source.name)
    assert [output.data for output in outputs] == expected


@pytest.mark.skipif(why_not() is not None, reason=why_not() or "")
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_runs_as_in_the_original(name: str) -> None:
    source, inputs, expected = PROGRAMS[name]
    outputs = OriginalIree(program(name)).run(inputs, function=source.name)
    assert [output.data for output in outputs] == expected


FACTORIAL = FUNCTION(
    "factorial",
    "0I_I",
    [
        "start",
        ("cmp.nz.i64", [0, 8]),
        ("cond_br", [8, "more", [], "one", []]),
        "more",
        ("const.i64", [-1, 2]),
        ("add.i64", [0, 2, 2]),
        ("call", [0, [2], [4]]),
        ("mul.i64", [0, 4, 4]),
        ("return", [[4]]),
        "one",
        ("const.i64", [1, 4]),
        ("return", [[4]]),
    ],
)


def test_a_function_may_call_itself() -> None:
    reference = IreeReference(module([FACTORIAL]))
    assert reference.run([20])[0].data == 2432902008176640000
    with pytest.raises(ExecutionError, match="calls are nested 100 deep"):
        reference.run([1000])
    assert reference.run([5])[0].data == 120


def test_a_program_that_does_not_end_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("darwinn_reference.iree.reference.MAXIMUM_BLOCKS", 1000)
    reference = IreeReference(module([FUNCTION("f", "0v_v", ["start", ("br", ["start", []])])]))
    with pytest.raises(ExecutionError, match="more blocks than it may"):
        reference.run([])


def failing(*source: Any, **tables: Any) -> str:
    """Message of the error that a program without arguments ends with."""
    data = module([FUNCTION("f", "0v_v", ["start", *source, ("return", [[]])])], **tables)
    with pytest.raises(ExecutionError) as caught:
        IreeReference(data).run([])
    return str(caught.value)


def test_failures_name_function_place_and_reason() -> None:
    allocated = [("const.i64", [8, 0]), ("const.i32", [4, 2]), ("buffer.alloc", [0, 2, ref(0)])]
    assert failing(*allocated, ("buffer.load.i64", [ref(0), 0, 4])) == (
        "f at 26: element 8 of 1 elements of type i64"
    )
    assert "null is no buffer" in failing(("buffer.load.i8.u", [ref(0), 0, 4]))
    assert "read-only" in failing(
        ("const.ref.rodata", [0, ref(0)]), ("buffer.store.i8", [ref(0), 0, 4]), **TABLES
    )
    assert "bytes 0 to 9 are not in a buffer of 8" in failing(
        *allocated,
        ("const.i64", [9, 4]),
        ("const.i64.zero", [6]),
        ("buffer.clone", [ref(0), 6, 4, 2, ref(1)]),
    )
    assert "an allocation of -1 bytes" in failing(
        ("const.i64", [-1, 0]), ("buffer.alloc", [0, 2, ref(0)])
    )
    assert "the reference is null" in failing(("list.size", [ref(0), 0]))


def test_fail_gives_its_status_and_message() -> None:
    source: list[Source] = ["start", ("fail", [0, b"no luck"]), "on", ("return", [[]])]
    reference = IreeReference(module([FUNCTION("f", "0i_v", source)]))
    assert reference.run([0]) == ()
    with pytest.raises(ExecutionError, match="f at 1: not found: no luck"):
        reference.run([5])


def test_imports_that_are_missing_are_all_named() -> None:
    data = module(
        [FUNCTION("f", "0v_v", ["start", ("return", [[]])])],
        imported_functions=imports(("a.b", "0i_v"), ("hal.fence.create", "0r_r")),
    )
    with pytest.raises(Unsupported) as caught:
        IreeReference(data)
    unknown, known_otherwise = caught.value.missing
    assert unknown == "a.b 0i_v"
    assert known_otherwise.startswith("hal.fence.create 0r_r (no release from ")


def test_an_optional_import_may_be_missing() -> None:
    source: list[Source] = [
        "start",
        ("import.resolved", [IMPORT, 0]),
        ("return", [[0]]),
    ]
    entry = schema.ImportFunction("a.b", schema.FunctionSignature("0i_v"), 2)
    reference = IreeReference(module([FUNCTION("f", "0v_i", source)], imported_functions=(entry,)))
    assert reference.run([])[0].data == 0


def test_operations_that_are_missing_are_named() -> None:
    source: list[Source] = ["start", ("buffer.hash", [ref(0), 0, 2, 4]), ("return", [[]])]
    with pytest.raises(Unsupported, match=r"operations .*: buffer\.hash"):
        IreeReference(module([FUNCTION("f", "0v_v", source)]))


def test_an_initializer_runs_once_and_reset_runs_it_again() -> None:
    initializer: list[Source] = [
        "start",
        ("const.i32", [40, 0]),
        ("global.store.i32", [4, 0]),
        ("return", [[]]),
    ]
    count: list[Source] = [
        "start",
        ("global.load.i32", [4, 0]),
        ("const.i32", [1, 1]),
        ("add.i32", [0, 1, 0]),
        ("global.store.i32", [4, 0]),
        ("return", [[0]]),
    ]
    reference = IreeReference(
        module([FUNCTION("__init", "0v_v", initializer), FUNCTION("count", "0v_i", count)])
    )
    assert reference.functions == ("count",)
    assert [reference.run([])[0].data for _ in range(3)] == [41, 42, 43]
    reference.reset()
    assert reference.run([])[0].data == 41


@pytest.mark.parametrize(
    ("inputs", "reason"),
    [
        ([], "takes 2 inputs, not 0"),
        ([1.5, 1], "input0 takes an integer, not 1.5"),
        ([1, None], "input1 takes a number, not None"),
        ([1 << 32, 1], "takes 32 bits"),
        ([np.zeros(2, np.int32), 1], "input0 takes a number, not an array of int32"),
    ],
)
def test_inputs_that_do_not_fit_are_named(inputs: list[Any], reason: str) -> None:
    source = FUNCTION("f", "0if_v", ["start", ("return", [[]])])
    with pytest.raises(ExecutionError, match=reason):
        IreeReference(module([source])).run(inputs)


def test_registers_are_as_new_in_every_call() -> None:
    quiet: list[Source] = ["start", ("return", [[9]])]
    noisy: list[Source] = [
        "start",
        ("const.i32", [5, 9]),
        ("call", [0, [], [3]]),
        ("return", [[3]]),
    ]
    reference = IreeReference(
        module([FUNCTION("quiet", "0v_i", quiet), FUNCTION("noisy", "0v_i", noisy)])
    )
    for _ in range(2):
        assert reference.run([], function="noisy")[0].data == 0


def test_an_unknown_function_is_named() -> None:
    reference = IreeReference(module([FACTORIAL]))
    with pytest.raises(ExecutionError, match="no function f, only factorial"):
        reference.run([1], function="f")


@pytest.mark.parametrize(
    "state",
    [schema.ModuleState((1 << 31) - 1, 0), schema.ModuleState(0, (1 << 31) - 1)],
)
def test_memory_that_programs_ask_for_is_bounded(state: schema.ModuleState) -> None:
    data = module([FACTORIAL], module_state=state)
    with pytest.raises(ExecutionError, match=r"an allocation of|globals that are references"):
        IreeReference(data)


def test_a_dispatch_may_not_import_the_device() -> None:
    kernel = FUNCTION("k", "0rrriiiiiiiii_v", ["start", ("return", [[]])], cells=16)
    inner = module([kernel], imported_functions=imports(("hal.devices.count", "0v_i")))
    create = imports(("hal.executable.create", "0rIrrr_r"))
    source: list[Source] = [
        "start",
        ("const.ref.rodata", [0, ref(0)]),
        ("const.ref.rodata", [1, ref(1)]),
        ("call", [IMPORT, [ref(2), 0, ref(0), ref(1), ref(3)], [ref(4)]]),
        ("return", [[]]),
    ]
    data = module(
        [FUNCTION("f", "0v_v", source)],
        imported_functions=create,
        rodata_segments=rodata(b"vmvx-bytecode-fb", inner),
    )
    with pytest.raises(Unsupported, match=r"imports .*: hal\.devices\.count"):
        IreeReference(data).run([])


def test_what_is_allocated_takes_no_memory_before_it_is_written_to() -> None:
    def in_use() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE

    before = in_use()
    memory = allocate(MAXIMUM_ALLOCATION)
    memory[-1] = 1
    assert (memory[0], memory[-1], len(memory)) == (0, 1, MAXIMUM_ALLOCATION)
    assert in_use() - before < MAXIMUM_ALLOCATION // 8
