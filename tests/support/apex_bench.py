"""A device that copies, behind its socket, for tests of the programs that open it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from apex_connection import Connection, Reply, honest
from bus_chip import BusChip
from darwinn_sim.pcie.function import PcieFunction
from darwinn_testbench.device.pcie import messages, program_memory
from darwinn_testbench.device.pcie.server import Device, Server

DATA = bytes(range(251)) * 400
SOON = 0.3
PATIENCE = 30.0
"""Seconds that a device waits for a client: of one that is known to owe something, and of others,
since a machine may be busy."""


def wait_at_most(seconds: float) -> None:
    """How long devices wait from now on."""
    messages.SECONDS = program_memory.SECONDS = seconds


class Bench:
    """A device that copies, and what is said of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.said: list[str] = []
        self.function = PcieFunction(BusChip)
        self.device = Device(self.function, self.said.append)

    def connect(self, reply: Reply = honest) -> Connection:
        return Connection(self.folder, reply)

    def opened(self, stack: ExitStack, reply: Reply = honest) -> Connection:
        """A client that gets the device as soon as the one before it has gone, or lost it."""
        connection = stack.enter_context(self.connect(reply))
        assert connection.open() == 0
        return connection

    def serves_the_next(self) -> None:
        """Another client gets right results."""
        wait_at_most(PATIENCE)
        with ExitStack() as stack:
            assert self.opened(stack).copy(DATA) == DATA


@contextmanager
def bench_in(folder: Path) -> Iterator[Bench]:
    bench = Bench(folder)
    with Server(bench.device, folder):
        yield bench
