"""Values that a module loads from files of parameters, and writes."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from darwinn_formats.errors import ExecutionError, FormatError
from darwinn_formats.iree import load_parameters, schema
from darwinn_reference.errors import Unsupported
from darwinn_reference.iree import IreeReference
from darwinn_reference.iree.hal import HalBuffer
from darwinn_reference.iree.memory import Buffer
from darwinn_reference.iree.parameter_store import ParameterStore
from darwinn_reference.iree.parameters import PARAMETERS
from darwinn_testbench.cli.application import run_command_line
from iree_modules import FunctionSource, Source, imports, module, ref, rodata
from iree_parameters import Entry, archive

LOAD = "0rIrrrIiirrr_r"
VALUES = np.arange(8, dtype=np.float32)
ENTRIES = [
    Entry("weight", VALUES.tobytes()),
    Entry("bias", b"\1\2\3\4", splat=16),
    Entry("far", path="other.bin"),
]
FILE = archive(ENTRIES)
FLOAT32, DENSE = 0x21000020, 1
IMPORTED, NULL = 0x8000_0000, ref(7)


def key_table(*names: str) -> tuple[bytes, bytes]:
    """Where each name is in the text of all, and that text."""
    lengths = [len(name) for name in names]
    starts = [sum(lengths[:at]) for at in range(len(names))]
    pairs = zip(starts, lengths, strict=True)
    return b"".join(struct.pack("<2I", *pair) for pair in pairs), "".join(names).encode()


def loading(scope: str, name: str) -> bytes:
    """A module whose function gives elements 2 to 4 of a parameter."""
    source: list[Source] = [
        "start",
        *(("const.ref.rodata", [segment, ref(segment)]) for segment in range(4)),
        (
            "call",
            [
                IMPORTED,
                [NULL, 0, NULL, NULL, ref(0), 0, 2, 2, ref(1), ref(2), ref(3)],
                [ref(4)],
            ],
        ),
        ("list.get.ref", [ref(4), 2, 0, ref(5)]),
        ("const.i64", [12, 4]),
        ("const.i32", [FLOAT32, 6]),
        ("const.i32", [DENSE, 7]),
        ("const.i64", [3, 8]),
        (
            "call.variadic",
            [IMPORTED | 1, [0xFFFF] * 5 + [1], [ref(5), 0, 4, 6, 7, 8], [ref(6)]],
        ),
        ("return", [[ref(6)]]),
    ]
    return module(
        [FunctionSource("main", "0v_r", source)],
        types=(schema.TypeDefinition("!hal.buffer"),),
        rodata_segments=rodata(scope.encode(), *key_table(name), struct.pack("<3Q", 8, 0, 12)),
        imported_functions=imports(
            ("io_parameters.load", LOAD), ("hal.buffer_view.create", "0rIIiiCID_r")
        ),
    )


def test_a_program_loads_a_range_of_a_parameter() -> None:
    reference = IreeReference(loading("model", "weight"), parameters=[FILE])
    np.testing.assert_array_equal(reference.run([])[0].data, VALUES[2:5], strict=True)


@pytest.mark.parametrize("name", ["program", "model"])
def test_the_command_takes_parameters(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program, file = tmp_path / "program.vmfb", tmp_path / f"{name}.irpa"
    program.write_bytes(loading("model", "weight"))
    file.write_bytes(FILE)
    # A file of the program's name beside it need not be named.
    data = [] if name == "program" else ["--data", str(file)]
    assert run_command_line(["run", str(program), *data]) == 0
    assert "float32 3" in capsys.readouterr().out
    file.unlink()
    assert run_command_line(["run", str(program)]) == 2
    assert "parameter model::weight: the program asks for it" in capsys.readouterr().err


def test_the_command_shows_parameters(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "model.irpa"
    file.write_bytes(FILE)
    assert run_command_line(["inspect", str(file)]) == 0
    assert "name weight, kind data, bytes 32" in capsys.readouterr().out
    for command in ("run", "disasm"):
        assert run_command_line([command, str(file)]) == 2
        assert "parameters (.irpa)" in capsys.readouterr().err


@dataclass
class FakeHost:
    """The part of a host that these imports need."""

    parameters: ParameterStore = field(
        default_factory=lambda: ParameterStore([load_parameters(FILE)])
    )

    def call(self, name: str, convention: str, *values: Any) -> Any:
        """An import of the module; None is null."""
        given = [Buffer(memoryview(each)) if isinstance(each, bytes) else each for each in values]
        return PARAMETERS.functions[f"io_parameters.{name}", convention](self, *given)

    def moved(self, name: str, buffer: HalBuffer, key: str, span: tuple[int, int, int]) -> None:
        """Gather a parameter into a buffer, or scatter a buffer into it."""
        pair = [b"model", buffer] if name == "gather" else [buffer, b"model"]
        tables = [*key_table(key), struct.pack("<3Q", *span)]
        self.call(name, "0rIrrrrrrr_v", None, 0, None, None, *pair, *tables)


def memory(size: int) -> HalBuffer:
    """Device memory of zeros."""
    return HalBuffer(Buffer(memoryview(bytearray(size))))


def test_what_is_scattered_is_gathered_until_reset() -> None:
    host = FakeHost()
    source = HalBuffer(Buffer(memoryview(bytearray(b"abcdefgh"))))
    for key, before in (("weight", VALUES.tobytes()[4:12]), ("bias", b"\1\2\3\4\1\2\3\4")):
        host.moved("scatter", source, key, (4, 0, 8))
        target = memory(10)
        host.moved("gather", target, key, (4, 2, 8))
        assert bytes(target.contents.memory) == b"\0\0abcdefgh"
        host.parameters.reset()
        host.moved("gather", target, key, (4, 2, 8))
        assert bytes(target.contents.memory[2:]) == before


@pytest.mark.parametrize("start", range(5))
def test_a_range_of_a_pattern_starts_anywhere(start: int) -> None:
    whole = b"\1\2\3\4" * 4
    buffer = FakeHost().parameters.read("", "bias", start, 9)
    assert bytes(buffer.memory) == whole[start : start + 9]


def test_the_first_release_loads_one_parameter_at_a_time() -> None:
    host, queue = FakeHost(), [None, 0, None, None]
    args = [*queue, b"model", b"weight", 4, 0, 0, 0, 8]
    found = host.call("load", "0rIrrrrIIiiI_r", *args)
    assert bytes(found.contents.memory) == VALUES.tobytes()[4:12]
    host.call("write", "0rIrrrrIrII_v", *queue, b"model", b"weight", 4, found, 4, 4)
    host.call("read", "0rIrrrrIrII_v", *queue, b"model", b"weight", 4, found, 0, 4)
    assert bytes(found.contents.memory) == VALUES.tobytes()[8:12] * 2


def test_ranges_outside_of_a_parameter_are_errors() -> None:
    store = FakeHost().parameters
    for name, offset, length in (("weight", 30, 3), ("bias", 16, 1), ("bias", 0, 17)):
        with pytest.raises(ExecutionError, match=f"bytes {offset} to {offset + length} are not"):
            store.read("model", name, offset, length)
    with pytest.raises(Unsupported, match=r"far in another file, other\.bin"):
        store.read("model", "far", 0, 1)


def test_a_file_of_the_scope_comes_first(tmp_path: Path) -> None:
    files = []
    for name in ("left", "right"):
        path = tmp_path / f"{name}.irpa"
        path.write_bytes(archive([Entry("weight", name.encode()), Entry(f"of {name}", b"own")]))
        files.append(load_parameters(path))
    store = ParameterStore(files)
    assert bytes(store.read("right", "weight", 0, 5).memory) == b"right"
    assert bytes(store.read("other", "of left", 0, 3).memory) == b"own"
    with pytest.raises(FormatError, match=r"other::weight: several files have it: .*left.*right"):
        store.read("other", "weight", 0, 4)
    with pytest.raises(FormatError, match=r"model::gone: .* no file of parameters has it"):
        store.read("model", "gone", 0, 1)
