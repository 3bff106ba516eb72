"""A chip that sends back what it reads; how it is attached, and what its chunks are, is added."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from darwinn_sim import chip
from darwinn_sim.errors import SimulationError
from darwinn_sim.host.attachment import Attachment
from darwinn_sim.host.descriptors import STREAMS


class CopyingChip:
    """What is read for inputs and parameters is the output. ``resets`` counts them."""

    host: Attachment

    def __init__(self) -> None:
        self.fault: SimulationError | None = None
        self.resets = 0
        self.descriptors: deque[tuple[int, int, int]] = deque()

    def descriptors_of(self, chunk: bytes) -> Iterable[tuple[int, int, int]]:
        """The program that a chunk is: tag, size, device address of each descriptor."""
        raise NotImplementedError

    def reset(self) -> None:
        self.resets += 1
        self.fault = None
        self.descriptors.clear()

    def advance(self) -> bool:
        if self.fault is not None:
            return False
        try:
            return self._advance()
        except SimulationError as error:
            self.fault = error
            raise

    def _advance(self) -> bool:
        moved = False
        while (chunk := self.host.fetch_chunk()) is not None:
            self.descriptors += self.descriptors_of(chunk)
            self.host.chunk_done()
            moved = True
        while self.descriptors:
            tag, size, address = self.descriptors.popleft()
            self.host.issue(tag, address, size)
            moved = True
        for tag in STREAMS:
            data = self.host.pull(tag, chip.HOST_FIFO_BYTES)
            self.host.push(data)
            moved |= bool(data.size)
        return moved
