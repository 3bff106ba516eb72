"""Programs, streams and register accesses at random: each is carried out or a fault, never more."""

from __future__ import annotations

import random
import struct
from contextlib import suppress
from pathlib import Path

import pytest
from darwinn_sim.accelerator import compile_kernels
from darwinn_sim.usb.endpoints import Transfer
from darwinn_sim.usb.errors import Stall
from darwinn_sim.usb.function import UsbFunction
from darwinn_sim.usb.requests import Setup
from darwinn_testbench.chip.model import BoundModel, open_models
from darwinn_testbench.device.usb.attach import new_function
from sample_files import sample

REGISTERS = (
    *(0x44018, 0x44258, 0x46008, 0x48568, 0x485A8, 0x486D8, 0x486F0, 0x48788, 0x50000),
    *(0x1A314, 0x1A318, 0x4C058, 0x4C148, 0x4C150, 0x4C160, 0x12345),
)

DETACHES = 0x21
"""Type of the request that leads back to boot mode."""

NIGHTLY = 99
"""The seed of many more."""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> BoundModel:
    folder = tmp_path_factory.mktemp("samples")
    sample(folder)
    compile_kernels()
    return open_models(Path(folder) / "dense_edgetpu.tflite")[0]


def message(tag: int, payload: bytes) -> bytes:
    return struct.pack("<II", len(payload), tag) + payload


def run_control(function: UsbFunction) -> None:
    function.control(Setup(0x40, 0, 0x4018, 4, 8), (1).to_bytes(8, "little"))


def send(function: UsbFunction, data: bytes) -> None:
    function.submit(Transfer(1, lambda transfer: None, data=data))
    while function.work():
        pass


def flip(drawn: random.Random, data: bytes, bits: int) -> bytes:
    changed = bytearray(data)
    for bit in (drawn.randrange(8 * len(data)) for _ in range(bits)):
        changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def program(drawn: random.Random, chunk: bytes) -> bytes:
    """A program that is damaged, or never was one."""
    match drawn.randrange(4):
        case 0:
            return flip(drawn, chunk, drawn.choice([1, 1, 20]))
        case 1:
            at = drawn.randrange(len(chunk) - 16)
            return chunk[:at] + drawn.randbytes(16) + chunk[at + 16 :]
        case 2:
            return chunk[: drawn.randrange(1, len(chunk))]
    return drawn.randbytes(drawn.choice([1, 16, 1001, 4096]))


def access(drawn: random.Random, function: UsbFunction) -> None:
    offset = drawn.choice([*REGISTERS, drawn.randrange(1 << 20)])
    narrow, to_host = drawn.randrange(2), drawn.randrange(2)
    size = 8 >> narrow
    setup = Setup(0x40 | 0x80 * to_host, narrow, offset & 0xFFFF, offset >> 16, size)
    answer = function.control(setup, b"" if to_host else drawn.randbytes(size))
    assert len(answer) == size * to_host


def request(drawn: random.Random, function: UsbFunction) -> None:
    setup = Setup(*(drawn.randrange(256) for _ in range(2)), *(drawn.randrange(9) for _ in "123"))
    if setup.type == DETACHES:
        return
    with suppress(Stall):
        assert len(function.control(setup, drawn.randbytes(setup.length))) <= setup.length


@pytest.mark.parametrize("seed", [*range(4), pytest.param(NIGHTLY, marks=pytest.mark.nightly)])
def test_whatever_a_client_does_the_next_one_is_served(model: BoundModel, seed: int) -> None:
    drawn = random.Random(seed)
    function = new_function(boot=False)
    compiled = model.compiled.caching or model.compiled.inference
    chunk = bytes(compiled.instruction_bitstreams[0].bitstream)
    faults = 0
    for _ in range(4000 if seed == NIGHTLY else 40):
        function.reset()
        run_control(function)
        if drawn.random() < 0.3:
            for _ in range(20):
                drawn.choice([access, request])(drawn, function)
        stream = b"".join(message(tag, drawn.randbytes(4096)) for tag in (1, 2))
        stream += message(0, program(drawn, chunk))
        send(function, stream if drawn.random() < 0.8 else flip(drawn, stream, 5))
        assert "internal error" not in str(function.fault)
        faults += function.fault is not None
    assert faults > 10
    function.reset()
    run_control(function)
    # The parameters are loaded, which ends with an interrupt.
    send(function, message(0, chunk) + message(2, bytes(compiled.parameters)))
    assert function.fault is None
    assert function.unread(0x82) == 16
