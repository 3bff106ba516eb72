"""The buffers of a run in the host's memory, as its driver maps them: what transfers can reach."""

from __future__ import annotations

from darwinn_formats.darwinn import Executable

from darwinn_sim.host.buffers import batches_of, buffer_sizes, layer_bytes
from darwinn_sim.host.driver import Driver
from darwinn_sim.host.interface import HostInterface
from darwinn_sim.host.memory import HostMemory
from darwinn_sim.isa.codes import DescriptorTag
from darwinn_sim.machine.lowering import LoweredProgram, patch


class HostBuffers:
    """The buffers of one run of ``executable``, with nothing in its inputs.

    Raises:
        FormatError: a field where an address belongs is none, or the buffers are too large.
        DriverError: there is no place for them.
    """

    def __init__(self, executable: Executable) -> None:
        # Before anything is allocated: a file may declare layers of any size.
        buffer_sizes(executable)
        self._memory = HostMemory()
        self._host = HostInterface(self._memory)
        driver = Driver(self._host, self._memory)
        driver.open()
        batches = batches_of(executable)
        inputs = {
            layer.name: bytes(layer_bytes(layer) * batches) for layer in executable.input_layers
        }
        self._request = driver.prepare(executable, inputs)

    def link(self, program: LoweredProgram, *, assumptions: bool) -> None:
        """Put their addresses into ``program``, the lowered executable; raises as ``patch``."""
        for number, chunk in enumerate(self._request.chunks):
            patch(program, number, chunk.region.payload.tobytes(), assumptions=assumptions)

    def transfer(self, tag: int, address: int, size: int) -> None:
        """Do what a descriptor asks for, with zeros for output; raises ``PageFault``."""
        for piece in self._host.mmu.translate(address, size):
            for part in self._memory.views(*piece) if tag == DescriptorTag.OUTPUT else ():
                part[:] = 0

    def check(self) -> None:
        """Raise ``MemoryFault`` if an output has gone beyond the buffer that it began in."""
        self._request.check_guards()
