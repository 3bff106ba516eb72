"""Random programs on the harness whose ports are recorded in every cycle, for another simulator."""

from __future__ import annotations

import json
import os
from pathlib import Path

import cocotb
import pyuvm
from cocotb.triggers import RisingEdge
from darwinn_rtl.dma.environment import MAX_BURST, DmaEnvironment, DmaTest
from darwinn_rtl.dma.programs import ProgramGenerator
from second_simulator import INPUTS, OUTPUTS, ports


@pyuvm.test()
class RecordedPrograms(DmaTest):
    """As ``RandomPrograms``; ``DARWINN_TRACE`` is the folder of what is recorded."""

    async def scenario(self, environment: DmaEnvironment) -> None:
        self.folder = Path(os.environ["DARWINN_TRACE"])
        recording = cocotb.start_soon(self.record())
        generator = ProgramGenerator(self.bench.random, environment.memory.word_bytes, MAX_BURST)
        for _ in range(int(os.environ["DARWINN_PROGRAMS"])):
            await environment.run_program(generator.program())
        recording.cancel()

    async def record(self) -> None:
        """What is on the ports before each edge of the clock."""
        dut = self.bench.dut
        handles = [(port, getattr(dut, port.name)) for port in ports("harness")]
        widths = {port.name: len(handle) for port, handle in handles}
        (self.folder / "widths.json").write_text(json.dumps(widths))
        inputs = [handle for port, handle in handles if port.is_input]
        outputs = [handle for port, handle in handles if not port.is_input]
        edge = RisingEdge(dut.clk)
        with (self.folder / INPUTS).open("w") as given, (self.folder / OUTPUTS).open("w") as found:
            while True:
                await edge
                given.write("".join(str(handle.value) for handle in inputs) + "\n")
                found.write("".join(str(handle.value) for handle in outputs) + "\n")
                given.flush()
                found.flush()
