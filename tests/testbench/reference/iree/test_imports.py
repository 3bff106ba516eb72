"""Imports that the modules of the corpus do not use: ``vmvx`` kernels, and the rest of ``hal``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from darwinn_formats.errors import ExecutionError
from darwinn_reference.errors import Unsupported
from darwinn_reference.iree import IMPORTS, hal, vmvx
from darwinn_reference.iree.declaration import parse_declaration
from darwinn_reference.iree.element_types import (
    dtype_of,
    element_type_of,
    spelled_dtype,
)
from darwinn_reference.iree.memory import Buffer
from darwinn_reference.protocol import Port

DTYPES: dict[str, type[np.generic]] = {
    "f32": np.float32,
    "i32": np.int32,
    "u32": np.uint32,
    "i8": np.int8,
    "i16": np.int16,
    "i64": np.int64,
}


def buffer_of(array: Any) -> Buffer:
    return Buffer(memoryview(bytearray(np.ascontiguousarray(array).tobytes())))


def array_of(buffer: Buffer, dtype: Any) -> Any:
    return np.frombuffer(buffer.memory, dtype)


def kernel(name: str) -> Any:
    (found,) = (function for (key, _), function in IMPORTS.items() if key == f"vmvx.{name}")
    return found


def drawn(dtype: Any, size: int) -> Any:
    random = np.random.default_rng(size)
    if dtype is np.float32:
        return random.uniform(0.5, 4, size).astype(np.float32)
    return random.integers(1, 100, size).astype(dtype)


@pytest.mark.parametrize("name", vmvx.UNARY_KERNELS)
def test_a_kernel_of_one_operand_reads_and_writes_strided(name: str) -> None:
    function, element = vmvx.UNARY_KERNELS[name]
    dtype = DTYPES[element]
    source = drawn(dtype, 40)
    target = buffer_of(np.zeros(30, dtype))
    # Three rows of four: read from element 1 in steps of 2, rows 10 apart; written transposed.
    kernel(name)(None, buffer_of(source), 1, 10, 2, target, 2, 1, 5, 3, 4)
    expected = np.zeros(30, dtype)
    for row in range(3):
        for column in range(4):
            value = function(source[1 + 10 * row + 2 * column : 2 + 10 * row + 2 * column])
            expected[2 + row + 5 * column] = value[0]
    np.testing.assert_array_equal(array_of(target, dtype), expected)


@pytest.mark.parametrize("name", vmvx.BINARY_KERNELS)
def test_a_kernel_of_two_operands_broadcasts_by_strides(name: str) -> None:
    function, element = vmvx.BINARY_KERNELS[name]
    dtype = DTYPES[element]
    left, right = drawn(dtype, 12), drawn(dtype, 4) % 31 + 1
    target = buffer_of(np.zeros(12, dtype))
    kernel(name)(
        None,
        buffer_of(left),
        0,
        4,
        1,
        buffer_of(right.astype(dtype)),
        0,
        0,
        1,
        target,
        0,
        4,
        1,
        3,
        4,
    )
    expected = function(left.reshape(3, 4), right.astype(dtype)[None, :])
    np.testing.assert_array_equal(array_of(target, dtype).reshape(3, 4), expected)


def test_integer_kernels_follow_the_scalar_operations() -> None:
    values = np.array([-7, 7, -(1 << 31), 1], np.int32)
    for name, expected in (
        ("divs.2d.i32", [-3, 3, -(1 << 30), 0]),
        ("divu.2d.i32", [2147483644, 3, 1 << 30, 0]),
        ("shrs.2d.i32", [-2, 1, -(1 << 29), 0]),
        ("shru.2d.i32", [1073741822, 1, 1 << 29, 0]),
    ):
        target = buffer_of(np.zeros(4, np.int32))
        two = buffer_of(np.full(1, 2, np.int32))
        kernel(name)(None, buffer_of(values), 0, 4, 1, two, 0, 0, 0, target, 0, 4, 1, 1, 4)
        assert array_of(target, np.int32).tolist() == expected
    target = buffer_of(np.zeros(4, np.int32))
    zeros = buffer_of(np.array([0, 1, -1, 255], np.int32))
    kernel("ctlz.2d.i32")(None, zeros, 0, 4, 1, target, 0, 4, 1, 1, 4)
    assert array_of(target, np.int32).tolist() == [32, 31, 0, 24]
    with pytest.raises(ExecutionError, match="by zero"):
        kernel("divs.2d.i32")(None, zeros, 0, 4, 1, zeros, 0, 4, 1, target, 0, 4, 1, 1, 4)


@pytest.mark.parametrize(("flags", "operand", "result"), [(1, "f4", "f4"), (2, "i1", "i4")])
@pytest.mark.parametrize("accumulate", [0, 0x100])
def test_a_tiled_product_is_a_product(
    flags: int, operand: str, result: str, accumulate: int
) -> None:
    random = np.random.default_rng(flags)
    m, n, k, m0, n0, k0 = 2, 3, 4, 2, 5, 3
    left = random.integers(-9, 9, (m * m0, k * k0)).astype(operand)
    right = random.integers(-9, 9, (n * n0, k * k0)).astype(operand)
    tiled_left = left.reshape(m, m0, k, k0).transpose(0, 2, 1, 3)
    tiled_right = right.reshape(n, n0, k, k0).transpose(0, 2, 1, 3)
    target = buffer_of(np.ones(m * n * m0 * n0, result))
    vmvx.tiled_product(
        *(buffer_of(tiled_left), 0, k * m0 * k0),
        *(buffer_of(tiled_right), 0, k * n0 * k0),
        *(target, 0, n * m0 * n0),
        *(m, n, k, m0, n0, k0, flags | accumulate),
    )
    product = left.astype(result) @ right.astype(result).T + (1 if accumulate else 0)
    tiles = array_of(target, result).reshape(m, n, m0, n0).transpose(0, 2, 1, 3)
    np.testing.assert_array_equal(tiles.reshape(m * m0, n * n0), product)


def test_a_tiled_product_of_other_types_is_refused_by_name() -> None:
    empty = buffer_of(np.zeros(0, np.int8))
    with pytest.raises(Unsupported, match=r"vmvx\.mmt4d.*0x7"):
        vmvx.tiled_product(empty, 0, 0, empty, 0, 0, empty, 0, 0, 0, 0, 0, 1, 1, 1, 7)


def test_a_fill_writes_words_between_its_bounds() -> None:
    target = buffer_of(np.zeros(12, np.int32))
    vmvx.fill(-3, target, 1, 4, 2, 3)
    assert array_of(target, np.int32).tolist() == [0, -3, -3, -3, 0, -3, -3, -3, 0, 0, 0, 0]
    with pytest.raises(ExecutionError, match="element 12 of 12 elements"):
        vmvx.fill(1, target, 2, 4, 3, 3)
    with pytest.raises(ExecutionError, match="negative"):
        vmvx.fill(1, target, -1, 4, 1, 3)
    with pytest.raises(ExecutionError, match="read-only"):
        vmvx.fill(1, Buffer(memoryview(bytes(8))), 0, 1, 1, 1)


class Recorder:
    """A host that remembers, and an executable that does."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def look(self) -> None:
        pass

    def at(self, position: int) -> None:
        pass

    def fills(self, operation: str) -> None:
        pass

    def filled(self, operation: str, target: memoryview, source: memoryview | None = None) -> None:
        self.seen.append((operation, bytes(target)))

    def lookup(self, name: str) -> int:
        return len(name)

    def dispatch(self, entry: int, workgroups: Any, constants: Any, bindings: Any) -> None:
        self.seen.append((entry, workgroups, constants, [bytes(part) for part in bindings]))


def call(host: Recorder, name: str, *arguments: Any, convention: str = "") -> Any:
    found = [
        function
        for (key, text), function in IMPORTS.items()
        if key == f"hal.{name}" and convention in ("", text)
    ]
    return found[0](host, *arguments)


def device_buffer(*values: int) -> hal.HalBuffer:
    return hal.HalBuffer(Buffer(memoryview(bytearray(values))))


def test_the_device_writes_to_its_constants_and_not_to_the_data_of_the_program() -> None:
    host: Any = Recorder()
    data = Buffer(memoryview(bytes(range(12))))
    constants = call(host, "allocator.import", None, 1, 0, 0, 0, data, 4, 8)
    assert constants.contents.memory.readonly
    (part,) = [call(host, "buffer.subspan", constants, 2, 4)]
    hal.transfers.fill(host, part.contents.memory, 7, 2)
    assert bytes(constants.contents.memory) == bytes([4, 5, 7, 0, 7, 0, 10, 11])
    Buffer(part.contents.memory, on_device=True).stores["i32"][0] = -1
    assert bytes(constants.contents.memory) == bytes([4, 5, 255, 255, 255, 255, 10, 11])
    assert bytes(data.memory) == bytes(range(12))
    with pytest.raises(ExecutionError, match="a store to read-only data"):
        _ = Buffer(data.memory, on_device=True).stores["i8"]
    with pytest.raises(ExecutionError, match="a copy to read-only data"):
        hal.transfers.copy(host, part.contents.memory, data.memory[:4])


def test_commands_take_what_is_bound_to_their_slots() -> None:
    host = Recorder()
    commands = call(host, "command_buffer.create", None, 0, 0, 0, 0)
    counts = device_buffer(*np.array([9, 2, 3, 4], np.uint32).tobytes())
    update = Buffer(memoryview(b"abcd"))
    bindings = [(0, 1, None, 2, 2), (0, 0, counts, 0, 1)]
    call(host, "command_buffer.update_buffer", commands, update, 1, None, 3, 2, 1, 0)
    call(
        host,
        "command_buffer.dispatch.indirect",
        *(commands, host, 5, 0, None, 4, 0, [(7,), (8,)], bindings),
    )
    call(host, "command_buffer.fill_buffer", commands, None, 0, 4, 1, 0x1FF, 2, 0)
    call(host, "command_buffer.copy_buffer", commands, 1, 1, None, 0, None, 4, 2, 0)
    assert host.seen == []
    target = device_buffer(*range(8))
    table = [(counts, 0, 16), (target, 1, 7)]
    call(host, "device.queue.execute.indirect", None, 0, None, None, commands, 0, table)
    assert host.seen == [
        ("copy", b"bc"),
        (5, (2, 3, 4), (7, 8), [bytes([3, ord("b")]), b"\x09"]),
        ("fill", b"\xff\x01\xff\x01"),
        ("copy", b"\xff\x01"),
    ]


def test_queues_work_at_once() -> None:
    host = Recorder()
    target = device_buffer(*bytes(8))
    call(host, "device.queue.fill", None, 0, None, None, target, 2, 4, 0x0102, 2, 0)
    assert bytes(target.contents.memory) == b"\0\0\2\1\2\1\0\0"
    source = Buffer(memoryview(b"xyz"))
    call(host, "device.queue.update", None, 0, None, None, source, 1, target, 6, 2, 0)
    call(host, "device.queue.copy", None, 0, None, None, target, 6, target, 0, 2, 0)
    assert bytes(target.contents.memory) == b"yz\2\1\2\1yz"
    with pytest.raises(ExecutionError, match="a pattern of 2 bytes does not fill 3"):
        call(host, "device.queue.fill", None, 0, None, None, target, 0, 3, 1, 2, 0)
    rodata = call(host, "ex.file.from_memory", None, 0, 0, source, 0, -1, 0)
    with pytest.raises(ExecutionError, match="read-only"):
        call(host, "device.queue.fill", None, 0, None, None, rodata, 0, 2, 1, 2, 0)


def test_slots_and_ranges_are_checked() -> None:
    host = Recorder()
    commands = call(host, "command_buffer.create", None, 0, 0, 0, 0)
    call(host, "command_buffer.fill_buffer", commands, None, 0, 4, 1, 0, 1, 0)
    with pytest.raises(ExecutionError, match="slot 1 of 0 that are bound"):
        call(host, "device.queue.execute", None, 0, None, None, commands, 0)
    with pytest.raises(ExecutionError, match="bytes 4 to 12 are not in a buffer of 8"):
        device_buffer(*range(8)).range(4, 8)
    assert bytes(device_buffer(*range(4)).range(1, -1)) == bytes([1, 2, 3])
    with pytest.raises(ExecutionError, match="a buffer is null"):
        call(host, "buffer.length", None)


def test_views_tell_their_shape_and_type() -> None:
    host = Recorder()
    view = call(
        host, "buffer_view.create", device_buffer(*range(8)), 0, 8, 0x10000010, 1, [(2,), (2,)]
    )
    assert call(host, "buffer_view.rank", view) == 2
    assert call(host, "buffer_view.dim", view, 1) == 2
    assert call(host, "buffer_view.element_type", view) == 0x10000010
    assert call(host, "buffer_view.encoding_type", view) == 1
    with pytest.raises(ExecutionError, match="dimension 2 of 2"):
        call(host, "buffer_view.dim", view, 2)
    message = Buffer(memoryview(b"input"))
    with pytest.raises(ExecutionError, match="input: element type 0x10000010, not 0x21000020"):
        call(host, "buffer_view.assert", view, message, 0x21000020, 1, [(2,), (2,)])
    with pytest.raises(ExecutionError, match=r"input: shape \(2, 2\), not \(4,\)"):
        call(host, "buffer_view.assert", view, message, 0x10000010, 1, [(4,)])


@pytest.mark.parametrize(
    ("spelling", "dtype", "element_type"),
    [
        ("i8", np.int8, 0x10000008),
        ("si16", np.int16, 0x11000010),
        ("ui8", np.uint8, 0x12000008),
        ("i1", np.bool_, 0x13000008),
        ("f16", np.float16, 0x21000010),
        ("f64", np.float64, 0x21000040),
        ("bf16", np.float32, 0x22000010),
    ],
)
def test_element_types_have_three_names(spelling: str, dtype: Any, element_type: int) -> None:
    assert spelled_dtype(spelling) == np.dtype(dtype)
    assert dtype_of(element_type) == np.dtype(dtype)
    assert element_type_of(np.dtype(dtype), spelling) == element_type


def test_element_types_that_numpy_lacks_are_refused_by_name() -> None:
    assert spelled_dtype("f8E4M3FN") is None
    with pytest.raises(Unsupported, match="0x24000008"):
        dtype_of(0x24000008)


def test_declarations_are_read() -> None:
    found = parse_declaration(
        "sync func @f(%a: tensor<1x?x3xui8>, %b: tensor<f32>, %c: i64 {x = 1})"
        " -> (%y: tensor<4xi1>)"
    )
    assert found is not None
    arguments, results = found
    assert [entry.port for entry in arguments] == [
        Port("a", np.dtype(np.uint8), (1, None, 3)),
        Port("b", np.dtype(np.float32), ()),
        Port("c", np.dtype(np.int64), ()),
    ]
    assert results[0].port.dtype == np.bool_
    assert parse_declaration("nothing of the kind") is None


@pytest.mark.parametrize("length, value", [(1, 0x80), (2, 0x8001), (4, -2)])
def test_numbers_of_buffers_are_stored_and_loaded(length: int, value: int) -> None:
    load, store = (
        next(each for (key, _), each in IMPORTS.items() if key == f"hal.buffer.{name}")
        for name in ("load", "store")
    )
    whole = np.full(12, 7, np.uint8)
    buffer = hal.objects.HalBuffer(buffer_of(whole))
    store(None, value, buffer, 5, length)
    assert load(None, buffer, 5, length) == value
    expected = bytearray(whole)
    expected[5 : 5 + length] = (value % 2**32).to_bytes(4, "little")[:length]
    assert bytes(buffer.contents.memory) == bytes(expected)
    for offset, size in ((12 - length + 1, length), (0, 3), (-1, length)):
        with pytest.raises(ExecutionError):
            load(None, buffer, offset, size)
        with pytest.raises(ExecutionError):
            store(None, value, buffer, offset, size)
