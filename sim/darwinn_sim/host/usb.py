"""The host interface of the chip, attached by USB: three streams that the host pushes.

The chip reads no host memory here. The host sends instruction chunks, input bytes and parameters
as it thinks that the program will ask for them, and takes the outputs as they come; the addresses
of descriptors mean nothing. The chip's side is that of :class:`HostInterface`.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from darwinn_sim.host.attachment import Hold, at_once
from darwinn_sim.host.descriptors import STREAMS, DescriptorFault, Owed, check, waiting_texts
from darwinn_sim.host.interrupts import InterruptController
from darwinn_sim.host.register_file import RegisterFile
from darwinn_sim.host.run_controls import install_run_controls, scalar_core_runs
from darwinn_sim.isa.codes import DescriptorTag

MAX_DESCRIPTORS = 1 << 16
"""Descriptors of the scalar core that may wait for bytes: a program that issues more is ended."""

CHUNK_OVERHEAD = 128
"""Bytes that a chunk counts for besides its own, so that tiny ones are bounded too."""


class HostSide(Protocol):
    """Who takes what the chip sends by USB."""

    def take_output(self, data: bytes) -> None:
        """Bytes of one output, or of a part of one, in order."""

    def take_event(self, tag: int, address: int, size: int) -> None:
        """The chip has come to a descriptor: 1 input, 2 parameters, 3 output, 4+n interrupt n."""


class UsbInterface:
    """Moves bytes between what the host has pushed and the chip, and signals the host.

    Args:
        registers: those of the chip.
        host: who takes outputs and events.
    """

    def __init__(self, registers: RegisterFile, host: HostSide) -> None:
        self.registers = registers
        self.interrupts = InterruptController(registers, lambda _: None)
        self.host = host
        self.hold: Hold = at_once
        install_run_controls(registers)
        self.clear()

    def clear(self) -> None:
        """Nothing has been pushed and nothing is owed, as after a reset."""
        self._chunks: deque[bytes] = deque()
        self.held_chunks = 0
        """Bytes of instruction chunks that the host has pushed and the chip has not taken."""
        self._pushed = {tag: bytearray() for tag in STREAMS}
        self._wanted: dict[DescriptorTag, deque[int]] = {tag: deque() for tag in STREAMS}
        self._owed: deque[Owed] = deque()
        self._outputs = bytearray()

    def forget(self) -> None:
        """Begin a new trace of interrupts."""
        self.interrupts.forget()

    # The host's side.

    def push_chunk(self, chunk: bytes) -> None:
        """A whole instruction chunk, patched with addresses."""
        self._chunks.append(chunk)
        self.held_chunks += len(chunk) + CHUNK_OVERHEAD

    def push_data(self, tag: DescriptorTag, data: bytes | memoryview) -> None:
        """Further bytes of the stream of inputs or of parameters."""
        self._pushed[tag] += data

    def held_data(self, tag: DescriptorTag) -> int:
        """Bytes of a stream that the host has pushed and the chip has not taken."""
        return len(self._pushed[tag])

    # The chip's side.

    def fetch_chunk(self) -> bytes | None:
        """The next instruction chunk, or None if there is none or the scalar core does not run."""
        if not self._chunks or not scalar_core_runs(self.registers):
            return None
        chunk = self._chunks.popleft()
        self.held_chunks -= len(chunk) + CHUNK_OVERHEAD
        return chunk

    def chunk_done(self) -> None:
        """The chip has taken in a chunk: by USB nobody is told."""

    def issue(self, tag: int, address: int, size: int) -> None:
        """Take a descriptor from the scalar core, and announce it to the host.

        Outputs and interrupts leave in the order of their descriptors.
        Raises ``DescriptorFault`` for what the chip cannot carry out.
        """
        check(self.interrupts, tag, address, size)
        if len(self._owed) + sum(map(len, self._wanted.values())) >= MAX_DESCRIPTORS:
            reason = f"more than {MAX_DESCRIPTORS} descriptors wait for bytes"
            raise DescriptorFault(tag, address, size, reason)
        if tag < DescriptorTag.INTERRUPT_0:
            self.host.take_event(tag, address, size)
        if tag in STREAMS:
            self._wanted[DescriptorTag(tag)].append(size)
            return
        self._owed.append(Owed.of(tag, address, size))
        self._deliver()

    def pull(self, tag: int, limit: int) -> NDArray[np.uint8]:
        """Up to ``limit`` next bytes of the stream of ``tag`` (1 or 2), shape ``(n,)``.

        Fewer, or none, come where descriptors ask for no more, or the host has pushed no more.
        """
        pushed, wanted = self._pushed[DescriptorTag(tag)], self._wanted[DescriptorTag(tag)]
        taken = bytearray()
        while wanted and len(pushed) and len(taken) < limit:
            count = min(limit - len(taken), wanted[0], len(pushed))
            taken += memoryview(pushed)[:count]
            del pushed[:count]
            wanted[0] -= count
            if not wanted[0]:
                wanted.popleft()
        return np.frombuffer(taken, np.uint8)

    def next_known(self, tag: int, limit: int) -> None:
        """Which of the next bytes follow from written ones: of pushed bytes nothing is known."""

    def push(self, data: NDArray[np.uint8], known: NDArray[np.bool_] | None = None) -> None:
        """Bytes (uint8, one axis) of the output stream, for the output descriptors in order."""
        self._outputs += data.tobytes()
        self._deliver()

    def _deliver(self) -> None:
        """Send outputs and interrupts as far as descriptors and bytes allow."""
        while self._owed:
            owed = self._owed[0]
            if owed.interrupt is not None:
                self.hold(partial(self._interrupt, owed.interrupt), 0)
            else:
                count = min(owed.size, len(self._outputs))
                if not count:
                    return
                data = bytes(memoryview(self._outputs)[:count])
                self.hold(partial(self.host.take_output, data), count)
                del self._outputs[:count]
                owed.advance(count)
                if owed.size:
                    return
            self._owed.popleft()

    def _interrupt(self, number: int) -> None:
        self.interrupts.raise_host_interrupt(number)
        self.host.take_event(DescriptorTag.INTERRUPT_0 + number, 0, 0)

    @property
    def awaits_host(self) -> bool:
        """Descriptors wait for bytes that the host has not pushed."""
        return any(self._wanted[tag] and not self._pushed[tag] for tag in STREAMS)

    @property
    def owes_output(self) -> bool:
        """Output descriptors wait for bytes, or interrupts behind them."""
        return bool(self._owed)

    @property
    def output_pending(self) -> bool:
        """Output bytes wait for a descriptor."""
        return bool(self._outputs)

    def fence(self) -> None:
        """The scalar core passed a DMA fence."""

    def waiting(self) -> tuple[str, ...]:
        """What the host interface waits for, one text each; empty when it is idle."""
        wanted = {tag: sum(sizes) for tag, sizes in self._wanted.items()}
        return waiting_texts(wanted, len(self._outputs), self._owed)
