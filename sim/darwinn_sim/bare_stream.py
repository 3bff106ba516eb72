"""Bare instruction streams: an executable made from what the stream itself does.

Nothing around a bare stream says what it reads and writes. Its scalar core does: run alone, it
issues the descriptors, and a scalar move whose zero immediate, when changed, shifts the address of
a descriptor and nothing else is a field that a linker fills in. So the stream becomes a STAND_ALONE
executable whose layers are the buffers of its descriptors, ready for any driver.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from darwinn_formats.darwinn import (
    Description,
    Executable,
    ExecutableType,
    FieldOffset,
    InputLayer,
    InstructionBitstream,
    Layer,
    Meta,
    OutputLayer,
    Position,
)
from darwinn_formats.darwinn.bundle import (
    BUNDLE_BITS,
    BUNDLE_BYTES,
    IMMEDIATE_BIT,
    relocation_fault,
)
from darwinn_formats.limits import Clock
from numpy.typing import NDArray

from darwinn_sim.accelerator import Accelerator, ModelEngine
from darwinn_sim.errors import NotEnded, SimulationError
from darwinn_sim.host.interface import HostInterface
from darwinn_sim.host.memory import HostMemory
from darwinn_sim.isa.codes import DescriptorTag
from darwinn_sim.machine.programs import Programs

WORK_LIMIT = 1 << 26
"""Work that the scalar core may do while a stream is looked at, a bundle being 1; known ones take
400 bundles and a few descriptors."""

_PROBE = 1 << 16
"""Added to an immediate to see which addresses move: no known size or count reaches it."""

_PREFIXES = {
    DescriptorTag.INPUT: "input",
    DescriptorTag.PARAMETERS: "parameters",
    DescriptorTag.OUTPUT: "output",
}


class StreamError(ValueError):
    """A bare stream whose inputs and outputs cannot be told."""


class Descriptor(NamedTuple):
    """What the scalar core asks the host to move: ``size`` bytes at a device address."""

    tag: int
    address: int
    size: int


class _Field(NamedTuple):
    """A 32-bit field of a chunk that holds one half of an address."""

    chunk: int
    offset_bit: int
    position: Position


class _ListeningHost(HostInterface):
    """Notes the descriptors and moves nothing, so that no address need be mapped."""

    def __init__(self, memory: HostMemory) -> None:
        super().__init__(memory)
        self.descriptors: list[Descriptor] = []

    def issue(self, tag: int, address: int, size: int) -> None:
        self.descriptors.append(Descriptor(tag, address, size))
        if tag >= DescriptorTag.INTERRUPT_0:
            super().issue(tag, address, size)

    def pull(self, tag: int, limit: int) -> NDArray[np.uint8]:
        return np.empty(0, np.uint8)

    def push(self, data: NDArray[np.uint8], known: NDArray[np.bool_] | None = None) -> None:
        pass


class _Listener:
    """A chip whose scalar core runs alone, attached to a host that only listens."""

    def __init__(self) -> None:
        engine = ModelEngine(_ListeningHost)
        self._accelerator = Accelerator(dma_only=True, work_limit=WORK_LIMIT, engine=engine)
        # Chunks with another immediate are the same program, which is lowered once.
        self._programs = Programs(dma_only=True)

    def listen(self, chunks: Sequence[bytes]) -> list[Descriptor]:
        """The descriptors that ``chunks`` issue, interrupts included."""
        # After an incomplete program the chip is powered up anew, with another host.
        host = self._accelerator.host
        assert isinstance(host, _ListeningHost)
        host.descriptors.clear()
        program = self._programs.find(chunks)
        executable = _executable(chunks, (), (), ())
        self._accelerator.run(executable, {}, program=program, as_far_as_it_goes=True)
        return list(host.descriptors)


def descriptors(chunks: Sequence[bytes]) -> list[Descriptor]:
    """The descriptors that a stream issues, in order, with the addresses that stand in it.

    Raises:
        SimulationError: its scalar core does not come to an end.
        DecodeError: the chunks are no instruction streams.
    """
    return _Listener().listen(chunks)


def executable_of(chunks: Sequence[bytes]) -> Executable:
    """A STAND_ALONE executable that does what a bare stream does.

    Inputs are called ``input0``, ``input1`` ... in the order in which their descriptors are issued,
    outputs ``output0`` ..., streamed parameters ``parameters0`` ... (they are inputs as well).
    Each is a vector of bytes.

    Raises:
        StreamError: an address that no linker could fill in, or a buffer that is read and written.
        SimulationError, DecodeError: see :func:`descriptors`.
    """
    clock = Clock()
    listener = _Listener()
    issued = listener.listen(chunks)
    fields_of: list[list[_Field]] = [[] for _ in issued]
    for chunk, stream in enumerate(chunks):
        for bit in range(IMMEDIATE_BIT, len(stream) * 8, BUNDLE_BITS):
            if passed := clock.passed():
                raise NotEnded(passed, ("its immediates were tried one after another",))
            if relocation_fault(stream, bit) is None:
                _probe(listener, chunks, issued, fields_of, chunk, bit)
    layers: dict[str, int] = {}
    names: dict[tuple[_Field, ...], tuple[int, str]] = {}
    for descriptor, fields in zip(issued, fields_of, strict=True):
        if descriptor.tag not in _PREFIXES:
            # An interrupt has no buffer; of any other a run says what is wrong with it.
            continue
        tag, name = names.setdefault(
            _checked(descriptor, fields), (descriptor.tag, _next_name(descriptor.tag, layers))
        )
        if tag != descriptor.tag:
            raise StreamError(f"{name} is read and written: scratch memory cannot be told apart")
        layers[name] = max(layers.get(name, 0), descriptor.address + descriptor.size)
    linked = {field: name for fields, (_, name) in names.items() for field in fields}
    if len(linked) != sum(map(len, names)):
        raise StreamError("a relocated immediate is part of several addresses")
    outputs = tuple(_layer(n, size) for n, size in layers.items() if n.startswith("output"))
    inputs = tuple(_layer(n, size) for n, size in layers.items() if not n.startswith("output"))
    return _executable(chunks, tuple(linked.items()), inputs, outputs)


def _probe(
    listener: _Listener,
    chunks: Sequence[bytes],
    issued: Sequence[Descriptor],
    fields_of: Sequence[list[_Field]],
    chunk: int,
    bit: int,
) -> None:
    """Add the field at ``bit`` to the descriptors whose address it is a half of."""
    changed = list(chunks)
    changed[chunk] = _with_immediate(chunks[chunk], bit, _PROBE)
    try:
        probed = listener.listen(changed)
    except SimulationError:
        return
    if [(d.tag, d.size) for d in probed] != [(d.tag, d.size) for d in issued]:
        return
    moved = [after.address - before.address for before, after in zip(issued, probed, strict=True)]
    halves = {_PROBE: Position.LOWER_32BIT, _PROBE << 32: Position.UPPER_32BIT}
    found = set(moved) - {0}
    if len(found) != 1 or not found <= halves.keys():
        return
    field = _Field(chunk, bit, halves[found.pop()])
    for fields, distance in zip(fields_of, moved, strict=True):
        if distance:
            fields.append(field)


def _with_immediate(stream: bytes, bit: int, value: int) -> bytes:
    start = bit // BUNDLE_BITS * BUNDLE_BYTES
    bundle = int.from_bytes(stream[start : start + BUNDLE_BYTES], "little")
    patched = (bundle | value << IMMEDIATE_BIT).to_bytes(BUNDLE_BYTES, "little")
    return stream[:start] + patched + stream[start + BUNDLE_BYTES :]


def _checked(descriptor: Descriptor, fields: Sequence[_Field]) -> tuple[_Field, ...]:
    positions = sorted(field.position for field in fields)
    if positions != sorted(Position):
        raise StreamError(
            f"the address {descriptor.address:#x} of a descriptor with tag {descriptor.tag} is not "
            "made of two immediates that a linker could fill in"
        )
    return tuple(fields)


def _next_name(tag: int, layers: dict[str, int]) -> str:
    prefix = _PREFIXES[DescriptorTag(tag)]
    return f"{prefix}{sum(name.startswith(prefix) for name in layers)}"


def _layer(name: str, size: int) -> Layer:
    kind = OutputLayer() if name.startswith("output") else InputLayer()
    return Layer(name=name, size_bytes=size, y_dim=1, x_dim=1, z_dim=size, any_layer=kind)


def _executable(
    chunks: Sequence[bytes],
    linked: Sequence[tuple[_Field, str]],
    inputs: tuple[Layer, ...],
    outputs: tuple[Layer, ...],
) -> Executable:
    return Executable(
        name="stream",
        batch_size=1,
        type=ExecutableType.STAND_ALONE,
        instruction_bitstreams=tuple(
            InstructionBitstream(stream, _offsets(number, linked))
            for number, stream in enumerate(chunks)
        ),
        input_layers=inputs,
        output_layers=outputs,
    )


def _offsets(chunk: int, linked: Sequence[tuple[_Field, str]]) -> tuple[FieldOffset, ...]:
    return tuple(
        FieldOffset(Meta(_description(name), 0, name, field.position), field.offset_bit)
        for field, name in sorted(linked)
        if field.chunk == chunk
    )


def _description(name: str) -> Description:
    if name.startswith("output"):
        return Description.BASE_ADDRESS_OUTPUT_ACTIVATION
    return Description.BASE_ADDRESS_INPUT_ACTIVATION
