"""A client of PyUSB for the chip, written from the contract: firmware, open, runs, close.

It goes by the DMA hints of an executable, as the vendor's driver does, or by the descriptors that
the chip announces. Outputs are in device order, as those of ``Accelerator.run``.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any

import usb.core
import usb.util
from darwinn_formats.darwinn import (
    Buffer,
    Description,
    DmaDescriptorHint,
    Executable,
    buffer_of,
    link,
)
from darwinn_formats.darwinn.schema import Direction, InstructionHint, InterruptHint
from darwinn_sim.host.buffers import PARAMETERS, buffer_sizes, layer_bytes

BOOT = {"idVendor": 0x1A6E, "idProduct": 0x089A}
APPLICATION = {"idVendor": 0x18D1, "idProduct": 0x9302}
FIRMWARE = bytes(number * 73 % 256 for number in range(10783))
PATIENCE = 120_000
PIECE = 1 << 20

INSTRUCTIONS, INPUT, PARAMETER, OUTPUT, INTERRUPT = range(5)

# Offset and value of what is written, 64 bits each, from the run control of the scalar core on.
RUN_CONTROLS = (0x44018, 0x44158, 0x44198, 0x441D8, 0x44218)
TILE_RUN_CONTROLS = (
    *(0x400C0, 0x40150, 0x40110, 0x40250, 0x40298),
    *(0x402E0, 0x40328, 0x40190, 0x401D0, 0x40210),
)
INTERRUPT_CONTROLS = (0x4C060, 0x4C070, 0x4C080, 0x4C090, 0x4C0A0)

Backend = Any
"""A backend of PyUSB; None is the one that it finds itself."""


def find(backend: Backend, which: Mapping[str, int]) -> Any:
    return usb.core.find(backend=backend, **which)


def download(device: Any, image: bytes = FIRMWARE) -> None:
    """Firmware, and whether it is there: as the vendor's driver does."""
    blocks = [image[at : at + 256] for at in range(0, len(image), 256)]
    for number, block in enumerate([*blocks, b""]):
        device.ctrl_transfer(0x21, 1, number, 0, block)
        status = bytes(device.ctrl_transfer(0xA1, 3, 0, 0, 6))
        assert status == bytes((0, 0, 0, 0, 5 if block else 2, 0))
    read = b""
    for number in range(len(blocks) + 1):
        read += bytes(device.ctrl_transfer(0xA1, 2, number, 0, 256))
    assert read == image


def reset(device: Any) -> None:
    """A bus reset, after which the device may be another one."""
    try:
        device.reset()
    except usb.core.USBError as error:
        assert error.errno == 2
    usb.util.dispose_resources(device)


def connect(backend: Backend = None) -> Any:
    """The device in application mode, after a reset."""
    device = find(backend, BOOT)
    if device is not None:
        download(device)
        reset(device)
    device = find(backend, APPLICATION)
    assert device is not None
    reset(device)
    device = find(backend, APPLICATION)
    assert device is not None
    return device


class UsbClient:
    """A chip that is open, with all its units running.

    ``device`` has the methods of PyUSB's; without one, that of ``backend`` is connected.
    ``announced``: go by the descriptors that the chip announces instead of the hints.
    ``multiple``: by an endpoint for each kind of data.
    """

    def __init__(
        self,
        backend: Backend = None,
        *,
        announced: bool = False,
        multiple: bool = False,
        device: Any = None,
    ) -> None:
        self.device = device or connect(backend)
        self.announced = announced
        self.multiple = multiple
        self.device.set_configuration(1)
        self._open()

    # Registers.

    def read(self, offset: int) -> int:
        is_soc = offset >> 16 == 1
        size = 4 if is_soc else 8
        data = self.device.ctrl_transfer(0xC0, is_soc, offset & 0xFFFF, offset >> 16, size)
        assert len(data) == size
        return int.from_bytes(data, "little")

    def write(self, offset: int, value: int) -> None:
        is_soc = offset >> 16 == 1
        data = value.to_bytes(4 if is_soc else 8, "little")
        self.device.ctrl_transfer(0x40, is_soc, offset & 0xFFFF, offset >> 16, data)

    def change(self, offset: int, clear: int, then_set: int) -> None:
        self.write(offset, self.read(offset) & ~clear | then_set)

    def _open(self) -> None:
        self.change(0x1A30C, 0x3F00, 0)
        sleep = self.read(0x1A318)
        assert sleep >> 22 & 3 == 3
        self.write(0x1A318, sleep & ~(3 << 22 | 0xF << 28) | 2 << 22)
        assert self.read(0x1A318) >> 8 & 3 == 0
        assert self.read(0x44018) == 0
        self.write(0x4A000, 1)
        self._all_tiles()
        self.write(0x40020, 0x1E02)
        self.change(0x1A314, 3 << 18, 1 << 18)
        self.write(0x4C148, 0xFF if self.announced else 0xF0)
        self.write(0x4C160, int(self.multiple))
        self.write(0x4C058, 0x20 if self.device.speed == 3 else 0x80)
        for offset in RUN_CONTROLS:
            self.write(offset, 1)
        self._all_tiles()
        for offset in (*TILE_RUN_CONTROLS, *INTERRUPT_CONTROLS):
            self.write(offset, 1)
        self.change(0x1A0D4, 0, 1 << 31)
        self.change(0x1A704, 0x770000, 0)
        self.change(0x1A33C, 0x1C0000, 0)
        for offset, value in ((0x1A500, 1), (0x1A600, 1), (0x1A558, 3), (0x1A658, 3)):
            self.write(offset, value)
        self.change(0x1A0D8, 0, 1 << 31)

    def _all_tiles(self) -> None:
        self.write(0x48788, 0x7F)
        assert self.read(0x48788) == 0x7F

    def close(self) -> None:
        for offset in INTERRUPT_CONTROLS:
            self.write(offset, 0)
        for offset in (*RUN_CONTROLS, *TILE_RUN_CONTROLS):
            self.write(offset, 2)
        self.change(0x1A318, 0, 3 << 22)
        assert self.read(0x1A318) >> 8 & 3 == 2
        if isinstance(self.device, usb.core.Device):
            usb.util.dispose_resources(self.device)

    # Data.

    def send(self, tag: int, payload: bytes) -> None:
        """A message: its header and its payload in transfers of their own."""
        if self.multiple:
            self.send_stream(payload, 1 + tag)
            return
        self.send_stream(struct.pack("<II", len(payload), tag))
        self.send_stream(payload)

    def send_stream(self, data: bytes, endpoint: int = 1) -> None:
        for at in range(0, len(data), PIECE):
            piece = data[at : at + PIECE]
            assert self.device.write(endpoint, piece, PATIENCE) == len(piece)

    def receive(self, size: int) -> bytes:
        """Output bytes: in pieces as they come, of whole packets at most."""
        data = b""
        while len(data) < size:
            packets = min(-(-(size - len(data)) // 1024), 64)
            data += bytes(self.device.read(0x81, 1024 * packets, PATIENCE))
        assert len(data) == size
        return data

    def event(self) -> tuple[int, int, int]:
        """The next event: address, length, tag."""
        data = bytes(self.device.read(0x82, 16, PATIENCE))
        address, length, tag = struct.unpack("<QIB3x", data)
        return address, length, tag

    # Runs.

    def run(self, executable: Executable, inputs: Mapping[str, bytes]) -> dict[str, bytes]:
        """One run, with the inputs of each layer; the bytes of each output layer."""
        memory = Memory(executable, inputs)
        chunks = link(executable, memory.addresses)
        if self.announced:
            self._by_events(chunks, memory)
        else:
            self._by_hints(executable, chunks, memory)
        return {
            layer.name: b"".join(
                bytes(memory.output(layer.name, batch)[: layer_bytes(layer)])
                for batch in range(max(1, executable.batch_size))
            )
            for layer in executable.output_layers
        }

    def _by_hints(self, executable: Executable, chunks: tuple[bytes, ...], memory: Memory) -> None:
        for hint in executable.dma_hints.hints:
            match hint.any_hint:
                case InstructionHint(index):
                    self.send(INSTRUCTIONS, chunks[index])
                case InterruptHint():
                    assert self.event() == (0, 0, INTERRUPT)
                case DmaDescriptorHint(meta, offset, size):
                    place = memory.buffers[buffer_of(meta)]
                    if hint.direction is Direction.OUTFEED:
                        place[offset : offset + size] = self.receive(size)
                    else:
                        is_parameter = meta.desc is Description.BASE_ADDRESS_PARAMETER
                        tag = PARAMETER if is_parameter else INPUT
                        self.send(tag, bytes(place[offset : offset + size]))

    def _by_events(self, chunks: tuple[bytes, ...], memory: Memory) -> None:
        for chunk in chunks:
            self.send(INSTRUCTIONS, chunk)
        while True:
            address, length, tag = self.event()
            if tag == INTERRUPT:
                return
            place, offset = memory.find(address)
            if tag == OUTPUT:
                place[offset : offset + length] = self.receive(length)
            else:
                self.send(tag, bytes(place[offset : offset + length]))


class Memory:
    """The buffers of a run at addresses of a client's own, as after ASLR."""

    def __init__(self, executable: Executable, inputs: Mapping[str, bytes]) -> None:
        self.buffers: dict[Buffer, bytearray] = {}
        self.addresses: dict[Buffer, int] = {}
        address = 0x0000_7F3A_91C4_5040
        for buffer, size in buffer_sizes(executable).items():
            data = bytearray(size)
            if buffer == PARAMETERS:
                data[: len(executable.parameters)] = executable.parameters
            elif buffer.desc is Description.BASE_ADDRESS_INPUT_ACTIVATION:
                each = len(inputs[buffer.name]) // max(1, executable.batch_size)
                first = each * buffer.batch
                data[:each] = inputs[buffer.name][first : first + each]
            self.buffers[buffer] = data
            self.addresses[buffer] = address if size else 0
            address += size + 0x1F40

    def output(self, name: str, batch: int) -> bytearray:
        buffer = Buffer(Description.BASE_ADDRESS_OUTPUT_ACTIVATION, name, batch)
        return self.buffers.get(buffer, bytearray())

    def find(self, address: int) -> tuple[bytearray, int]:
        for buffer, data in self.buffers.items():
            if self.addresses[buffer] <= address < self.addresses[buffer] + len(data):
                return data, address - self.addresses[buffer]
        raise AssertionError(f"the chip announced {address:#x}, where no buffer is")


Runner = Callable[[Executable, Mapping[str, bytes]], dict[str, bytes]]
