"""What libraries in C and the device say to each other has the same numbers on both sides."""

from __future__ import annotations

import re
from enum import IntEnum
from pathlib import Path

import darwinn_testbench.device as room
import pytest
from darwinn_testbench.device.pcie import messages
from darwinn_testbench.device.usb import socket_server

ROOM = Path(room.__file__).parent


@pytest.mark.parametrize(
    ("header", "prefix", "operations"),
    [
        ("usb/libusb/stand_in.h", "OP_", socket_server.Operation),
        ("pcie/shim/shim.h", "", messages.Operation),
    ],
)
def test_operations_have_their_numbers(header: str, prefix: str, operations: type[IntEnum]) -> None:
    text = re.sub(r"/\*.*?\*/", "", (ROOM / header).read_text(), flags=re.DOTALL)
    (members,) = re.findall(r"enum operation \{(.*?)\};", text, re.DOTALL)
    numbers: dict[str, int] = {}
    for member in members.split(","):
        name, _, value = member.partition("=")
        numbers[name.strip()] = int(value) if value else max(numbers.values(), default=-1) + 1
    assert numbers == {prefix + each.name: each.value for each in operations}
