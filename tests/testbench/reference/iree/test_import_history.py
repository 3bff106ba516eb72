"""Imports of every release: each is implemented or refused, and each generation does the same."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from darwinn_formats.errors import ExecutionError, FormatError
from darwinn_formats.iree import load
from darwinn_formats.iree.calling_convention import parse
from darwinn_formats.iree.versions import READ, VERSIONS
from darwinn_reference.errors import Unsupported
from darwinn_reference.iree import IreeReference
from darwinn_reference.iree.hal import EXECUTABLE_FORMAT, BufferView, HalBuffer
from darwinn_reference.iree.import_history import DECLARED, REFUSED, RELEASES, why_refused
from darwinn_reference.iree.memory import Buffer
from darwinn_reference.iree.reference import IMPORTS
from darwinn_reference.iree.vmvx_packing import TRANSPOSE_INNER, TRANSPOSE_OUTER
from iree_modules import FunctionSource, imports, module


def test_every_import_is_implemented_or_refused_with_a_reason() -> None:
    known = {(entry.name, entry.convention) for entry in DECLARED}
    assert len(known) == len(DECLARED)
    assert set(IMPORTS) <= known
    for entry in DECLARED:
        place = RELEASES.index(entry.first), RELEASES.index(entry.last)
        assert place[0] <= place[1]
        assert parse(entry.convention).text == entry.convention
        refused = any(entry.name.startswith(beginning) for beginning in REFUSED)
        assert refused != ((entry.name, entry.convention) in IMPORTS), entry


def test_a_refusal_says_what_the_import_is_for() -> None:
    def refused(name: str, convention: str) -> str:
        function = FunctionSource("f", "0v_v", ["start", ("return", [[]])])
        data = module([function], imported_functions=imports((name, convention)))
        with pytest.raises(Unsupported) as caught:
            IreeReference(data)
        return str(caught.value)

    assert "(several devices that work together)" in refused("hal.channel.split", "0riii_r")
    assert "no release from 20230209.425 to" in refused("hal.fence.join", "0rrr_r")
    assert refused("custom.f", "0v_v").endswith("custom.f 0v_v")
    assert why_refused("custom.f", "0v_v") == ""


def test_versions_follow_each_other_and_others_are_refused() -> None:
    majors = [entry.major for entry in VERSIONS]
    assert majors == list(range(majors[0], majors[-1] + 1))
    written = [entry for entry in VERSIONS if entry.first or entry.last]
    for before, after in pairwise(written):
        assert RELEASES.index(after.first) == RELEASES.index(before.last) + 1
    function = FunctionSource("f", "0v_v", ["start", ("return", [[]])])
    for major in (*majors, majors[-1] + 1):
        data = module([function], bytecode_version=major << 16)
        if major in READ:
            assert load(data).module.bytecode_version == (major, 0)
        else:
            with pytest.raises(FormatError, match=rf"bytecode version {major}\.0 is none"):
                load(data)


def test_the_schema_before_the_versions_that_are_read_is_named() -> None:
    # A root table whose field 11 is a version, as it was before signatures were a field.
    fields = bytes(2 * 11) + struct.pack("<H", 4)
    vtable = struct.pack("<HH", 4 + len(fields), 8) + fields
    flat = struct.pack("<I4s", 8 + len(vtable), b"IREE") + vtable
    flat += struct.pack("<iI", len(vtable), 13 << 16)
    with pytest.raises(FormatError, match=r"version 13\.0 .* another schema"):
        load(struct.pack("<I", len(flat)) + flat)


@dataclass
class FakeExecutable:
    """An executable that adds a constant to the bytes of its bindings, and notes its calls."""

    calls: list[tuple[int, tuple[int, int, int]]] = field(default_factory=list)

    def lookup(self, name: str) -> int:
        return len(name)

    def dispatch(
        self,
        entry: int,
        workgroups: tuple[int, int, int],
        constants: Sequence[int],
        bindings: Sequence[memoryview],
    ) -> None:
        self.calls.append((entry, workgroups))
        for binding in bindings:
            binding[0] += constants[0]


class FakeHost:
    """The part of a host that these imports need."""

    def __init__(self) -> None:
        self.executable = FakeExecutable()
        self.inline: list[Buffer] = []

    def takes(self, format_name: str) -> bool:
        return format_name == EXECUTABLE_FORMAT

    def look(self) -> None: ...

    def at(self, position: int) -> None: ...

    def fills(self, operation: str) -> None: ...

    def filled(self, *_: Any) -> None: ...

    def allocated(self, buffer: Buffer) -> None:
        self.inline.append(buffer)

    def create_executable(self, name: str, data: Buffer, constants: Any) -> FakeExecutable:
        return self.executable

    def call(self, name: str, convention: str, *values: Any) -> Any:
        """An import by name and convention."""
        return IMPORTS[name, convention](self, *values)


def memory(*contents: int) -> HalBuffer:
    return HalBuffer(Buffer(memoryview(bytearray(contents))))


def contents(buffer: HalBuffer) -> list[int]:
    return list(buffer.contents.memory)


GENERATIONS = {
    "20230209.425": {
        "create": "0riii_r",
        "fill": "0rrIIii_v",
        "copy": "0rrIrII_v",
        "execute": "0rIrrCrD_v",
    },
    "20240828.999": {
        "create": "0riiIi_r",
        "fill": "0rrIIiii_v",
        "copy": "0riirIrII_v",
        "update": "0rrIrIIi_v",
        "dispatch": "0rriiiiICiDCiirIID_v",
        "indirect": "0rriirIICiDCiirIID_v",
        "execute": "0rIrrrCrIID_v",
    },
    "3.13.0": {
        "create": "0riiIi_r",
        "fill": "0rrIIiIiI_v",
        "copy": "0riirIrIII_v",
        "update": "0rrIrIIiI_v",
        "dispatch": "0rrIiiiICiDCiirIID_v",
        "indirect": "0rrIirIICiDCiirIID_v",
        "execute": "0rIrrrICrIID_v",
    },
}


@pytest.mark.parametrize("release", GENERATIONS)
def test_command_buffers_of_every_generation_do_the_same(release: str) -> None:
    conventions, host = GENERATIONS[release], FakeHost()
    oldest, newest = release == "20230209.425", release == "3.13.0"
    target, source, counts = memory(*[0] * 8), memory(1, 2, 3, 4), memory(2, *[0] * 11)
    flags = [0] if newest else []
    create = [None, 0, 0, *([0] if oldest else [0, 1])]
    commands = host.call("hal.command_buffer.create", conventions["create"], *create)

    def record(name: str, kind: str, *values: Any) -> None:
        host.call(f"hal.command_buffer.{name}", conventions[kind], commands, *values)

    if oldest:
        record("fill_buffer", "fill", target, 0, 8, 7, 1)
        record("copy_buffer", "copy", source, 1, target, 2, 2)
        host.call("hal.command_buffer.push_constants", "0rriCiD_v", commands, None, 0, [(5,)])
        bound = [(0, 0, target, 4, 1)]
        push = "hal.command_buffer.push_descriptor_set", "0rriCiirIID_v"
        host.call(*push, commands, None, 0, bound)
        dispatch = "hal.command_buffer.dispatch", "0rriiii_v"
        host.call(*dispatch, commands, host.executable, 3, 1, 1, 2)
        indirect = "hal.command_buffer.dispatch.indirect", "0rrirI_v"
        host.call(*indirect, commands, host.executable, 4, counts, 0)
        queue: list[Any] = [None, 0, None, None, [(commands,)]]
    else:
        # Slot 0 is the target, which is bound when the buffer runs.
        fill = [None, 0, 8, 0, 7, 1, *flags]
        record("fill_buffer", "fill", *fill)
        record("copy_buffer", "copy", 0, 0, source, 1, None, 2, 2, *flags)
        data = Buffer(memoryview(b"\x09\x0a"))
        record("update_buffer", "update", data, 1, None, 0, 1, 0, *flags)
        bindings = [(0, 0, None, 4, 1)]
        record("dispatch", "dispatch", host.executable, 3, 1, 1, 2, 0, [(5,)], bindings)
        where = [host.executable, 4, 0, counts, 0, 0, [(5,)], bindings]
        record("dispatch.indirect", "indirect", *where)
        queue = [None, 0, None, None, commands, *flags, [(target, 0, 8)]]
    execute = "execute" if oldest else "execute.indirect"
    host.call(f"hal.device.queue.{execute}", conventions["execute"], *queue)
    first = 7 if oldest else 10
    assert contents(target) == [first, 7, 2, 3, 17, 7, 7, 7]
    assert host.executable.calls == [(3, (1, 1, 2)), (4, (2, 0, 0))]


def test_a_command_buffer_runs_within_another() -> None:
    host, target = FakeHost(), memory(*[0] * 4)
    inner, outer = (
        host.call("hal.command_buffer.create", "0riii_r", None, 0, 0, 0) for _ in range(2)
    )
    host.call("hal.command_buffer.fill_buffer", "0rrIIiii_v", inner, None, 1, 2, 0, 9, 1)
    within = "hal.command_buffer.execute.commands", "0rrCrIID_v"
    host.call(*within, outer, inner, [(target, 0, 4)])
    assert contents(target) == [0, 0, 0, 0]
    host.call("hal.ex.submit_and_wait", "0rr_v", None, outer)
    assert contents(target) == [0, 9, 9, 0]


def test_files_are_read_and_written_in_both_generations() -> None:
    for convention in ("0rIrrrIrIIi_v", "0rIrrrIrIII_v"):
        for name in ("read", "write"):
            host, target = FakeHost(), memory(0, 0, 0)
            values = [None, 0, None, None, memory(1, 2, 3), 1, target, 0, 2, 0]
            host.call(f"hal.device.queue.{name}", convention, *values)
            assert contents(target) == [2, 3, 0]


def test_fences_and_devices_have_one_answer() -> None:
    host = FakeHost()
    for convention, values in (("0CrD_r", [[]]), ("0ICrD_r", [0, []])):
        assert host.call("hal.fence.join", convention, *values).what == "fence"
    with pytest.raises(ExecutionError, match="failed, with status 13"):
        host.call("hal.fence.fail", "0ri_v", None, 13)
    device = object()
    choices = [(device, 5), (object(), 6)]
    found = host.call("hal.allocator.select", "0iiICrID_rI", 0, 0, 0, choices)
    assert found == (device, 5)
    with pytest.raises(ExecutionError, match="among no devices"):
        host.call("hal.allocator.select", "0iiICrID_rI", 0, 0, 0, [])
    category, key = (Buffer(memoryview(text)) for text in (b"hal.device.id", b"local*"))
    assert host.call("hal_inline.device.query.i64", "0rr_iI", category, key) == (1, 1)
    assert host.call("hal.executable.create", "0rrrr_r", None, category, key, None)


def test_inline_modules_make_and_share_memory() -> None:
    host, data = FakeHost(), Buffer(memoryview(bytearray(b"abcdef")))
    made = host.call("hal_inline.buffer.allocate.initialized", "0irII_rr", 16, data, 1, 3)
    assert bytes(made[1].memory) == b"bcd"
    assert made[0].contents is made[1] is host.inline[0]
    wrapped = host.call("hal_inline.buffer.wrap", "0rII_r", data, 2, 4)
    part = host.call("hal_inline.buffer.subspan", "0rII_r", wrapped, 1, 2)
    part.contents.memory[0] = ord("!")
    assert bytes(data.memory) == b"abc!ef"
    assert host.call("hal_inline.buffer.length", "0r_I", part) == 2
    view = BufferView(part, (2, 1), 0x10000008, 1)
    asked = {"rank": 2, "element_type": 0x10000008, "encoding_type": 1}
    for name, answer in asked.items():
        assert host.call(f"hal_inline.buffer_view.{name}", "0r_i", view) == answer
    host.call("hal_inline.buffer_view.trace", "0rCrD_v", data, [(view,)])


@pytest.mark.parametrize("convention", ["0riiiiCiDCrIID_v", "0rIiiiCiDCrIID_v"])
def test_inline_modules_load_and_run_executables(convention: str) -> None:
    host, data = FakeHost(), Buffer(memoryview(bytearray(4)))
    formats = {b"vmvx-bytecode-fb": 1, b"embedded-elf-x86_64": 0}
    for name, supported in formats.items():
        text = Buffer(memoryview(name))
        assert host.call("hal_loader.executable.query_support", "0r_i", text) == supported
    executable = host.call("hal_loader.executable.load", "0rrr_r", text, data, None)
    look_up = "hal_loader.executable.lookup.function", "0rr_I"
    assert host.call(*look_up, executable, Buffer(memoryview(b"entry"))) == 5
    values = [executable, 5, 1, 2, 3, [(6,)], [(data, 1, 2), (data, 3, 1)]]
    host.call("hal_loader.executable.dispatch", convention, *values)
    assert list(data.memory) == [0, 6, 0, 6]
    assert host.executable.calls == [(5, (1, 2, 3))]


PACK = {
    1: ("0rIIrIIIIIIIIIi_v", "0rIIrIIIIIIIIi_v"),
    2: ("0rIIIrIIIIIIIIIIi_v", "0rIIIrIIIIIIIIIi_v"),
}


@pytest.mark.parametrize("steps", PACK)
@pytest.mark.parametrize("transposes", [0, TRANSPOSE_INNER, TRANSPOSE_OUTER, 0x300])
@pytest.mark.parametrize(("kind", "dtype"), [(1, "<f4"), (3, "<i4")])
def test_a_matrix_is_packed_in_tiles_and_unpacked(
    steps: int, transposes: int, kind: int, dtype: str
) -> None:
    host, flags = FakeHost(), kind | transposes
    rows, columns, height, width = 5, 7, 4, 3
    down, right = 2, 3
    matrix = np.arange(100, 100 + rows * columns).astype(dtype).reshape(rows, columns)
    outer = (right, down) if transposes & TRANSPOSE_OUTER else (down, right)
    inner = (width, height) if transposes & TRANSPOSE_INNER else (height, width)
    target = Buffer(memoryview(bytearray(4 * down * right * height * width)))
    source = Buffer(memoryview(bytearray(matrix.tobytes())))
    stride, tile = outer[1] * height * width, height * width
    padding = int(np.array([-1], dtype).view("<u4")[0])
    one, two = (1,) * (steps - 1), (tile,) * (steps - 1)
    where = [source, 0, columns, *one, target, 0, stride, *two]
    sizes = [*outer, *inner]
    host.call("vmvx.pack", PACK[steps][0], *where, rows, columns, *sizes, padding, flags)
    tiles = np.frombuffer(target.memory, dtype).reshape(*outer, *inner)
    for row in range(down * height):
        for column in range(right * width):
            at = (row // height, column // width), (row % height, column % width)
            out, within = (
                at[0][::-1] if transposes & TRANSPOSE_OUTER else at[0],
                at[1][::-1] if transposes & TRANSPOSE_INNER else at[1],
            )
            inside = row < rows and column < columns
            assert tiles[out + within] == (matrix[row, column] if inside else -1)
    again = Buffer(memoryview(bytearray(matrix.nbytes)))
    back = [target, 0, stride, *two, again, 0, columns, *one]
    host.call("vmvx.unpack", PACK[steps][1], *back, *sizes, rows, columns, flags)
    assert bytes(again.memory) == matrix.tobytes()


def test_packing_beyond_the_tiles_and_other_types_are_refused() -> None:
    host, data = FakeHost(), Buffer(memoryview(bytearray(64)))
    where = [data, 0, 4, data, 0, 4]
    with pytest.raises(ExecutionError, match="do not hold 3 x 2 elements"):
        host.call("vmvx.pack", PACK[1][0], *where, 3, 2, 1, 1, 2, 2, 0, 1)
    with pytest.raises(Unsupported, match=r"vmvx\.unpack.*0x4"):
        host.call("vmvx.unpack", PACK[1][1], *where, 1, 1, 2, 2, 2, 2, 4)
    sizes = [
        host.call("vmvx.query_tile_sizes.2d", "0IIi_II", 9, 9, 0x100 | role) for role in (1, 2, 3)
    ]
    (m, k), (n, also_k), result = sizes
    assert k == also_k
    assert result == (m, n)
    with pytest.raises(Unsupported, match="0x104"):
        host.call("vmvx.query_tile_sizes.2d", "0IIi_II", 9, 9, 0x104)
