"""Imports that the user gives: what they get, what they may give, and what is said if they fail."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from darwinn_formats.errors import ExecutionError
from darwinn_reference.errors import Unsupported
from darwinn_reference.iree import IreeReference
from darwinn_testbench.cli.application import run_command_line
from iree_modules import FunctionSource, Source, imports, module, ref, rodata

MIX = "0iIfF_FfIi"


def calling(convention: str, arguments: list[int], results: list[int], own: str = "") -> bytes:
    """A module whose function hands its arguments to the import and gives what that gives."""
    source: list[Source] = [
        "start",
        ("call", [0x8000_0000, arguments, results]),
        ("return", [results]),
    ]
    return module(
        [FunctionSource("f", own or convention, source)],
        imported_functions=imports(("custom.native", convention)),
    )


NUMBERS = calling(MIX, [0, 2, 4, 6], [8, 10, 12, 14])
TENSOR = calling("0r_r", [ref(0)], [ref(1)])


def run(data: bytes, native: Callable[..., Any], *inputs: Any) -> list[Any]:
    outputs = IreeReference(data, natives={"custom.native": native}).run(list(inputs))
    return [output.data for output in outputs]


def test_numbers_go_in_and_out_by_their_letters() -> None:
    seen: list[Any] = []

    def native(*values: Any) -> tuple[Any, ...]:
        seen.extend(values)
        return values[::-1]

    found = run(NUMBERS, native, -3, 1 << 40, 0.1, 0.1)
    assert seen == [-3, 1 << 40, float(np.float32(0.1)), 0.1]
    expected: list[Any] = [np.float64(0.1), np.float32(0.1), np.int64(1 << 40), np.int32(-3)]
    for value, wanted in zip(found, expected, strict=True):
        assert value == wanted
        assert value.dtype == wanted.dtype


def test_tensors_are_arrays_of_every_rank() -> None:
    rows = np.arange(6, dtype=np.float32).reshape(2, 3)
    (found,) = run(TENSOR, lambda array: array.T * 2, rows)
    np.testing.assert_array_equal(found, rows.T * 2)
    # A NumPy scalar is a tensor without dimensions, as input and as result.
    (found,) = run(TENSOR, lambda array: array[()] + np.int8(1), np.int8(4))
    assert found.shape == ()
    assert found.dtype == np.int8
    assert found == 5
    (found,) = run(TENSOR, lambda nothing: nothing, None)
    assert found is None


def test_buffers_are_memory_and_references_pass_through() -> None:
    def native(memory: memoryview) -> int:
        assert memory.readonly
        return sum(memory)

    source: list[Source] = [
        "start",
        ("const.ref.rodata", [0, ref(0)]),
        ("call", [0x8000_0000, [ref(0)], [0]]),
        ("return", [[0]]),
    ]
    data = module(
        [FunctionSource("f", "0v_i", source)],
        rodata_segments=rodata(b"\1\2\3"),
        imported_functions=imports(("custom.native", "0r_i")),
    )
    assert run(data, native) == [6]


def test_a_tuple_that_repeats_is_a_list_of_tuples() -> None:
    source: list[Source] = [
        "start",
        ("call.variadic", [0x8000_0000, [0xFFFF, 2], [0, 0, 2, 1, 4], [6]]),
        ("return", [[6]]),
    ]
    data = module(
        [FunctionSource("f", "0iiI_i", source)],
        imported_functions=imports(("custom.native", "0iCiID_i")),
    )
    seen: list[Any] = []

    def native(*values: Any) -> int:
        seen.extend(values)
        return 1

    run(data, native, 7, 8, 0)
    assert seen == [7, [(7, 0), (8, 0)]]


@pytest.mark.parametrize(
    ("native", "reason"),
    [
        (lambda: (0, 0, 0, 0), "TypeError"),
        (lambda *_: 1 / 0, "ZeroDivisionError: division by zero"),
        (lambda *_: (1, 2), "gives 2 values, not 4"),
        (lambda *_: (0.0, 0.0, 0, 1 << 31), "gives 2147483648, which 32 bits do not hold"),
        (lambda *_: (0.0, 0.0, 0, "one"), "gives a str, not a number"),
        (lambda *_: (0.0, 0.0, 0, np.ones(2)), "gives a ndarray, not a number"),
    ],
)
def test_what_fails_is_one_error_with_place_and_name(
    native: Callable[..., Any], reason: str
) -> None:
    with pytest.raises(ExecutionError, match=f"^f at 1: custom.native: .*{reason}"):
        run(NUMBERS, native, 0, 0, 0.0, 0.0)


def test_an_import_without_a_function_is_refused_by_name() -> None:
    with pytest.raises(Unsupported, match=r"custom\.native 0r_r"):
        IreeReference(TENSOR, natives={"custom.other": abs})


def test_the_command_takes_a_module_of_natives(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program, natives, values = (tmp_path / name for name in ("p.vmfb", "natives.py", "x.npy"))
    program.write_bytes(TENSOR)
    natives.write_text("NATIVES = {'custom.native': lambda array: array + 1}\n")
    np.save(values, np.arange(3, dtype=np.int32))
    assert run_command_line(["run", str(program), "--inputs", str(values)]) == 3
    assert "--natives MODULE gives them" in " ".join(capsys.readouterr().err.split())
    given = ["run", str(program), "--inputs", str(values), "--natives", str(natives)]
    out = tmp_path / "out.npy"
    assert run_command_line([*given, "--output", str(out)]) == 0
    np.testing.assert_array_equal(np.load(out), [1, 2, 3])
    assert run_command_line([*given, "--engine", "original"]) == 2
