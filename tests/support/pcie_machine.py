"""A machine with a PCIe device and a program that has it open, all in one process."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from apex_queue import PAGE, RING, SET_UP, STATUS, descriptor
from bus_chip import BusChip
from darwinn_sim.host.mmu import EXTENDED_BIT
from darwinn_sim.host.registers import register
from darwinn_sim.pcie.function import HostFault, Memory, PcieFunction, Watcher
from darwinn_sim.pcie.kernel_driver import KernelDriver

BUFFER = EXTENDED_BIT | 0x10_0000
PROGRAM_AT, INPUT_AT, OUTPUT_AT = 0x7F00_0000_0000, 0x5500_0000_1000, 0x5600_0000_2000


class Program:
    """A program with memory at addresses of its own; its interrupts are listed."""

    def __init__(self) -> None:
        self.memory: dict[int, bytearray] = {}
        self.vectors: list[int] = []

    def at(self, address: int, size: int) -> tuple[bytearray, int]:
        for start, data in self.memory.items():
            if start <= address and address + size <= start + len(data):
                return data, address - start
        raise HostFault(f"nothing at {address:#x}")

    def read(self, address: int, size: int) -> bytes:
        data, start = self.at(address, size)
        return bytes(data[start : start + size])

    def write(self, address: int, data: bytes) -> None:
        memory, start = self.at(address, len(data))
        memory[start : start + len(data)] = data

    def interrupt(self, vector: int) -> None:
        self.vectors.append(vector)


class Machine:
    """A device that a program has opened, and set up as a user-space driver does."""

    def __init__(self, *watchers: Watcher) -> None:
        self.function = PcieFunction(self._make_chip, watchers=watchers)
        self.driver = KernelDriver(self.function)
        self.program = Program()
        self.open()

    def _make_chip(self, memory: Memory, interrupt: Callable[[int], None]) -> BusChip:
        self.chip = BusChip(memory, interrupt)
        return self.chip

    def open(self) -> None:
        self.driver.open(self.program)
        self.driver.partition(6144)
        self.coherent = np.zeros(4 * PAGE, np.uint8)
        address = self.driver.give_coherent(self.coherent)
        self.driver.map(address, RING, PAGE)
        self.driver.map(address + PAGE, STATUS, PAGE)
        for name, value in SET_UP:
            self.write(name, value)
        self.tail = 0

    def write(self, name: str, value: int) -> None:
        self.function.write(register(name).offset, value, 8)

    def read(self, name: str) -> int:
        return self.function.read(register(name).offset, 8)

    def give(self, address: int, data: bytes, device: int) -> None:
        self.program.memory[address] = bytearray(data.ljust(-(-len(data) // PAGE) * PAGE, b"\0"))
        self.driver.map(address, device, len(self.program.memory[address]))

    def queue(self, device: int, size: int) -> None:
        start = 16 * self.tail
        self.coherent[start : start + 16] = np.frombuffer(descriptor(device, size), np.uint8)
        self.tail += 1
        self.write("instruction_queue_tail", self.tail)

    @property
    def completed(self) -> int:
        """The completed head, of the status block."""
        return int(self.coherent[PAGE : PAGE + 4].view("<u4")[0])

    def work(self) -> None:
        while self.function.work():
            pass
