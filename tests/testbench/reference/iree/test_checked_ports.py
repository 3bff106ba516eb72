"""Ports of modules that declare none: what a function checks, before it branches, is their type."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from darwinn_formats.iree import load
from darwinn_reference.iree import IreeReference
from darwinn_reference.protocol import Port
from iree_modules import FunctionSource, Source, imports, module, ref, rodata

CHECK = ("hal.buffer_view.assert", "0rriiCID_v")
SIZE = ("hal.buffer_view.dim", "0ri_I")
MESSAGE = ref(6)


def check(view: int, element_type: int, sizes: Sequence[int]) -> Source:
    """A check of a view by the registers that hold its element type and sizes."""
    marks = [0xFFFF] * 4 + [len(sizes)]
    return ("call.variadic", [0x8000_0000, marks, [view, MESSAGE, element_type, 1, *sizes], []])


def taking(*source: Source, convention: str = "0rr_v") -> bytes:
    """A module whose function has this body, and returns nothing."""
    body: list[Source] = ["start", ("const.ref.rodata", [0, MESSAGE]), ("const.i32", [1, 1])]
    function = FunctionSource("main", convention, [*body, *source, ("return", [[]])])
    return module(
        [function], rodata_segments=rodata(b"input"), imported_functions=imports(CHECK, SIZE)
    )


def inputs(data: bytes) -> tuple[Port, ...]:
    return IreeReference(load(data)).inputs()


FLOAT: Source = ("const.i32", [0x21000020, 0])


def test_element_type_and_sizes_are_constants() -> None:
    found = inputs(
        taking(
            FLOAT,
            ("const.i64", [3, 2]),
            ("const.i64", [4, 4]),
            check(ref(0), 0, [2, 4]),
            ("const.i32", [0x12000008, 0]),
            check(ref(1, move=True), 0, []),
        )
    )
    assert found == (
        Port("input0", np.dtype(np.float32), (3, 4)),
        Port("input1", np.dtype(np.uint8), ()),
    )


def test_a_size_that_the_argument_gives_is_open() -> None:
    size: Source = ("call", [0x8000_0001, [ref(0), 6], [2]])
    found = inputs(
        taking(FLOAT, ("const.i64", [4, 4]), size, check(ref(0), 0, [2, 4]), convention="0r_v")
    )
    assert found == (Port("input0", np.dtype(np.float32), (None, 4)),)


@pytest.mark.parametrize(
    "overwriting",
    [
        ("const.i64.zero", [0]),
        ("const.ref.zero", [ref(0)]),
        ("add.i32", [1, 1, 0]),
    ],
)
def test_what_is_overwritten_is_not_known(overwriting: Source) -> None:
    unknown = Port("input0", None, None)
    assert inputs(taking(FLOAT, overwriting, check(ref(0), 0, []), convention="0r_v")) == (unknown,)


def test_half_of_a_wide_constant_is_overwritten() -> None:
    halved: list[Source] = [FLOAT, ("const.i64", [4, 4]), ("const.i32", [9, 5])]
    found = inputs(taking(*halved, check(ref(0), 0, [4]), convention="0r_v"))
    assert found == (Port("input0", np.dtype(np.float32), (None,)),)


def test_checks_behind_a_branch_do_not_count() -> None:
    source: list[Source] = [FLOAT, ("br", ["next", []]), "next", check(ref(0), 0, [])]
    assert inputs(taking(*source, convention="0r_v")) == (Port("input0", None, None),)


def test_drawn_arrays_pass_the_check() -> None:
    data = taking(
        ("const.i32", [0x22000010, 0]),
        ("const.i64", [2, 2]),
        check(ref(0), 0, [2]),
        convention="0r_v",
    )
    (port,) = inputs(data)
    assert port.dtype is not None
    assert IreeReference(data).run([np.ones(2, port.dtype)]) == ()
