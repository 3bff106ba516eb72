"""Compares the DMA engine with the descriptor model, event by event and byte by byte."""

from __future__ import annotations

from typing import Any

from darwinn_sim.isa.codes import DescriptorTag
from pyuvm import uvm_component

from darwinn_rtl.dma.coverage import sample_descriptor, sample_transfer
from darwinn_rtl.dma.descriptor_model import (
    READ_TAGS,
    DescriptorModel,
    Outcome,
    Performed,
)
from darwinn_rtl.dma.monitors import Accepted, DmaEvent, Done, Raised, Started
from darwinn_rtl.dma.programs import (
    DescriptorProgram,
    TransferSample,
    alignment,
    size_class,
)
from darwinn_rtl.dma.stream_agent import Beat
from darwinn_rtl.environment import Subscriber

WRITER_EVENT = len(READ_TAGS)
FENCE_EVENT = WRITER_EVENT + 1


class Mismatch(AssertionError):
    """The RTL differs from the model."""


class Scoreboard(uvm_component):
    """Checks order, bytes and completion of one program at a time.

    ``expect`` names the program; events and beats come from the monitors. ``done`` holds the
    indices of completed descriptors. ``complete`` says whether everything has happened, and
    ``missing`` lists the rest. ``check`` compares the remaining state.
    """

    def build_phase(self) -> None:
        """Create the subscribers."""
        self.events = Subscriber("events", self, self._event)
        self.beats = Subscriber("beats", self, self._beat)
        self.program: DescriptorProgram | None = None

    def expect(self, program: DescriptorProgram, word_bytes: int, burst_words: int) -> None:
        """Compare the following events with ``program``, on a design that has just been reset."""
        self.program = program
        self.word_bytes = word_bytes
        self.burst_words = burst_words
        self.model = DescriptorModel(
            bytearray(program.memory), program.window, word_bytes, program.bad_words
        )
        self._outputs = program.output_of()
        self._started: list[int] = []
        self.done: set[int] = set()
        self._received = dict.fromkeys(READ_TAGS, 0)
        self._raised: list[int] = []

    def forget(self) -> None:
        """Check nothing until the next ``expect``: the design is being reset."""
        self.program = None

    # Events.

    def _event(self, event: DmaEvent) -> None:
        if self.program is None:
            return
        match event:
            case Accepted():
                self._accepted(event)
            case Started():
                self._begun(event)
            case Done():
                self._completed(event)
            case Raised():
                self._raised.append(event.number)

    def _accepted(self, event: Accepted) -> None:
        assert self.program is not None
        index = len(self.model.performed)
        issued = self.program.descriptors[index]
        self._require(event.descriptor == issued, f"descriptor {index} arrived as {event}")
        self.model.perform(event.descriptor, self._outputs[index])

    def _begun(self, event: Started) -> None:
        self._require(event.index == len(self._started), f"{event} out of order")
        self._started.append(event.index)
        performed = self._performed(event.index)
        self._require(
            event.outcome == performed.outcome,
            f"{event}: the model says {performed.outcome.name} of {performed.descriptor}",
        )
        fences = [
            before.index
            for before in self.model.performed[: event.index]
            if before.descriptor.fence and before.outcome is Outcome.STARTED
        ]
        if fences:
            self._require(fences[-1] in self.done, f"{event} before fence {fences[-1]}")

    def _completed(self, event: Done) -> None:
        performed = self._performed(event.index)
        descriptor = performed.descriptor
        self._require(event.index in self._started, f"{event} before its beginning")
        self._require(event.index not in self.done, f"{event} for the second time")
        self._require(performed.outcome is Outcome.STARTED, f"{event} of a refused descriptor")
        own = event.event == self._event_of(performed)
        self._require(own, f"{event} is not the event of {descriptor}")
        if descriptor.fence:
            self._require_done(event, lambda before: True)
        elif descriptor.is_interrupt:
            self._require_done(event, lambda before: self._event_of(before) == WRITER_EVENT)
            number = descriptor.tag - DescriptorTag.INTERRUPT_0
            self._require(self._raised[-1:] == [number], f"{event} without interrupt {number}")
        else:
            same = self._event_of(performed)
            self._require_done(event, lambda before: self._event_of(before) == same)
        self.done.add(event.index)

    def _require_done(self, event: Done, concerned: Any) -> None:
        """Every earlier descriptor that is ``concerned`` has been completed."""
        for before in self.model.performed[: event.index]:
            if before.outcome is Outcome.STARTED and concerned(before):
                self._require(before.index in self.done, f"{event} before {before.index}")

    def _event_of(self, performed: Performed) -> int:
        descriptor = performed.descriptor
        if descriptor.fence:
            return FENCE_EVENT
        return WRITER_EVENT if descriptor.tag >= DescriptorTag.OUTPUT else descriptor.tag

    def _performed(self, index: int) -> Performed:
        self._require(index < len(self.model.performed), f"descriptor {index} was never issued")
        return self.model.performed[index]

    def _beat(self, beat: Beat) -> None:
        if self.program is None:
            return
        start = self._received[beat.tag]
        expected = bytes(self.model.streams[beat.tag][start : start + len(beat.data)])
        self._require(
            beat.data == expected,
            f"{beat.tag.name} stream byte {start}: {beat.data.hex()} instead of {expected.hex()}",
        )
        self._received[beat.tag] += len(beat.data)

    def _require(self, condition: bool, what: str) -> None:
        if not condition:
            raise Mismatch(what)

    # The end of a program.

    def complete(self) -> bool:
        """True when every descriptor has been refused or completed."""
        assert self.program is not None
        return (
            len(self._started) == len(self.program.descriptors) and len(self.done) == self._good()
        )

    def _good(self) -> int:
        return sum(done.outcome is Outcome.STARTED for done in self.model.performed)

    def missing(self) -> str:
        """The events that have not happened yet."""
        assert self.program is not None
        open_ones = [
            f"{done.index} ({done.descriptor})"
            for done in self.model.performed
            if done.outcome is Outcome.STARTED and done.index not in self.done
        ]
        return (
            f"{len(self._started)} of {len(self.program.descriptors)} descriptors begun, "
            f"not completed: {', '.join(open_ones[:8]) or 'none'}"
        )

    def check(self, memory: bytes, registers: dict[str, int]) -> None:
        """Compare memory (guards included), streams and registers; count coverage.

        Raises ``Mismatch``.
        """
        for tag, stream in self.model.streams.items():
            self._require(
                self._received[tag] == len(stream),
                f"{tag.name} stream ended after {self._received[tag]} of {len(stream)} bytes",
            )
        if memory != self.model.memory:
            place = next(
                at
                for at, pair in enumerate(zip(memory, self.model.memory, strict=True))
                if pair[0] != pair[1]
            )
            raise Mismatch(
                f"host memory {place:#x} holds {memory[place]:#x}, "
                f"not {self.model.memory[place]:#x}"
            )
        for name, value in self.model.status().items():
            found = registers[name]
            self._require(found == value, f"register {name} holds {found:#x}, not {value:#x}")
        self._cover()

    def _cover(self) -> None:
        assert self.program is not None
        behind_fence = False
        for done in self.model.performed:
            descriptor = done.descriptor
            sample_descriptor(done.outcome.name, descriptor.fence, descriptor.tag)
            if done.outcome is Outcome.STARTED and descriptor.is_data:
                start = descriptor.address - self.program.window.base
                sample_transfer(
                    TransferSample(
                        size_class(descriptor.size, self.word_bytes, self.burst_words),
                        alignment(start, descriptor.size, self.word_bytes),
                        descriptor.tag == DescriptorTag.OUTPUT,
                        behind_fence,
                        bool(self.program.pressure),
                        done.response_error,
                    )
                )
            behind_fence = descriptor.fence and done.outcome is Outcome.STARTED
