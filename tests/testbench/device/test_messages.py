"""Tables of messages: a C compiler lays them out as Python does; other content is refused."""

from __future__ import annotations

import shutil
import socket
import struct
import subprocess
from pathlib import Path
from types import ModuleType
from typing import Annotated

import pytest
from darwinn_testbench.device import native, wire
from darwinn_testbench.device.delegate import messages as delegate
from darwinn_testbench.device.pcie import messages as pcie
from darwinn_testbench.device.usb import messages as usb
from darwinn_testbench.device.wire import U8, U32, Content, MessageError, Numbered, Record
from darwinn_testbench.errors import InputError

TABLES = (delegate, pcie, usb)
LAYOUTS: dict[type[Record], str] = {
    delegate.Header: "I I Q",
    pcie.Message: "I I 5Q",
    pcie.MapWords: "Q Q Q Q",
    pcie.CoherentWords: "Q Q Q Q",
    pcie.MemoryRequest: "I I Q",
    pcie.MemoryAnswer: "I I",
    usb.Request: "I I I I I",
    usb.Reply: "I I i I I",
    usb.DeviceReply: "B B B B B 18s",
}
"""Fields of all records of numbers, written a second time."""

STREAMED = {delegate.SentTensor, delegate.SentOperator, delegate.Opening}

BEFORE = {delegate: f'#include "{Path(delegate.__file__).parent}/source/chip_process.h"\n'}
"""What the header of a table needs in front of it."""


def values_in_c(table: ModuleType, expressions: list[str], folder: Path) -> list[int]:
    """Values of expressions in a program that includes the header of a table."""
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    (folder / "messages.h").write_text(wire.header(table)["messages.h"])
    includes = "#include <stddef.h>\n#include <stdio.h>\n" + BEFORE.get(table, "")
    printed = "".join(f'printf("%lld\\n", (long long)({each}));\n' for each in expressions)
    source, program = folder / "values.c", folder / "values"
    source.write_text(f'{includes}#include "messages.h"\nint main(void) {{\n{printed}}}\n')
    command = ["cc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", f"-I{folder}", "-o", str(program)]
    subprocess.run([*command, str(source)], check=True)
    done = subprocess.run([program], check=True, capture_output=True, text=True)
    return [int(each) for each in done.stdout.split()]


@pytest.mark.parametrize("table", TABLES)
def test_c_has_the_sizes_offsets_and_numbers_of_a_table(table: ModuleType, tmp_path: Path) -> None:
    expected = {name: value for name, value in vars(table).items() if isinstance(value, int)}
    for each in vars(table).values():
        if not isinstance(each, type) or each.__module__ != table.__name__:
            continue
        name = "".join(f"_{c.lower()}" if c.isupper() else c for c in each.__name__)[1:]
        if issubclass(each, Numbered):
            expected |= {f"{name.upper()}_{member.name}": member.value for member in each}
        elif each in LAYOUTS:
            at = 0
            for field, code in zip(each.fields, LAYOUTS[each].split(), strict=True):
                expected[f"offsetof(struct {name}, {field})"] = at
                at += struct.calcsize(f"={code}")
            expected[f"sizeof(struct {name})"] = at
            assert each.layout.size == at
        else:
            assert each in STREAMED or not issubclass(each, Record)
    assert values_in_c(table, list(expected), tmp_path) == list(expected.values())


class Padded(Record, frozen=True):
    """Of which C has more bytes than Python."""

    first: Annotated[U8, "one byte"]
    second: Annotated[U32, "four"]


def test_a_record_that_c_pads_is_not_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "source.c").write_text('#include "messages.h"\n')
    table = ModuleType("table")
    vars(table)["Padded"] = Padded
    with pytest.raises(InputError, match="struct padded has padding"):
        native.library(tmp_path, "libpadded.so", headers=wire.header(table))


def test_half_a_message_by_pcie_is_named() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(pcie.Message(pcie.Operation.READ).pack()[:20])
        ours.close()
        with pytest.raises(pcie.BrokenMessage, match=r"^20 of 48 bytes of a message$"):
            pcie.receive(theirs)


@pytest.mark.parametrize("size", range(4 + 3 + 8 + 4))
def test_content_that_ends_too_early_is_refused_in_a_line(size: int) -> None:
    """Wherever it ends: in a number, a name, or between fields."""
    whole = struct.pack("=I3sQI", 3, b"abc", 0, 0) + struct.pack("=I", 0)
    record = delegate.SentOperator.read(Content(whole))
    assert record == delegate.SentOperator("abc", b"", (), ())
    with pytest.raises(MessageError, match=f"^the message ends at byte {size}, within a field$"):
        delegate.SentOperator.read(Content(whole[:size]))
