"""The player in plain Verilog and its host memory give to a chip in each cycle what a program says.

A random list says what the chip does. The program and that list decide what comes to each of its
inputs.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from darwinn_rtl.chip.recording import PROGRAM, Operation
from darwinn_rtl.harness import HarnessDescription
from darwinn_sim.isa.codes import DescriptorTag
from host_memory_model import HostMemory, Kind, Region
from plain_chip import MEMORY_BYTES, REGIONS, compiled_player, ports
from second_simulator import require_icarus, simulated

OPERATIONS = 400
INPUTS, OUTPUTS = ports("input"), ports("output")
MEMORY = "m_axi_"
WORDS = "words"
"""Scalar memory, which is written down like the inputs."""

BODY = f"""\
  reg [{sum(OUTPUTS.values())}-1:0] given, next;
  integer from, to, fields;
  assign {{{", ".join(OUTPUTS)}}} = given;
  initial begin
    from = $fopen("outputs.txt", "r");
    to = $fopen("inputs.txt", "w");
    fields = $fscanf(from, "%b\\n", given);
  end
  always @(posedge clk) begin
    $fdisplay(to, "%b", {{{", ".join(INPUTS)}, chip.memory.words[1], chip.memory.words[0]}});
    fields = $fscanf(from, "%b\\n", next);
    given <= next;
  end
"""
"""A chip with what the list says at its outputs, which writes down its inputs."""

_CONSTANT = {"s_axil_wstrb": 0xFF, "s_axil_bready": 1, "s_axil_rready": 1}
_IDLE = {
    name: (1 << OUTPUTS[name]) - 1
    for name in ("queue2monitor_idle", "units2monitor_idle", "tiles2monitor_idle")
}
_VALIDS = (
    *("s_axil_awvalid", "s_axil_wvalid", "s_axil_arvalid", "core2queue_chunk_valid"),
    *("core2units_instruction_valid", "core2dma_descriptor_valid", "core2output_word_valid"),
)
_DONE = 1 << 3
"""The completion that the player counts."""


class Script:
    """A program, what a chip does meanwhile, and what that chip gets."""

    def __init__(self, random: Random, folder: Path) -> None:
        harness = HarnessDescription()
        kind = Kind(OUTPUTS["m_axi_wstrb"], harness.memory_latency, harness.memory_requests)
        self._random, self._folder = random, folder
        self._memory = HostMemory(kind, [None] * MEMORY_BYTES, [])
        self._pins = dict.fromkeys((each for each in INPUTS if MEMORY not in each), 0) | _CONSTANT
        self._words: list[int | None] = [None, None]
        self._stream = bytearray()
        self._cycles = self._issued = self._done = self._files = 0
        self.program: list[tuple[int, ...]] = []
        self.outputs: list[str] = []
        self.inputs: list[dict[str, str | None]] = []
        self.compared = self.unknown = 0

    def _bits(self, name: str) -> int:
        """Any number that an input can have."""
        return self._random.getrandbits(INPUTS[name])

    def _says(self, operation: Operation, *fields: int) -> None:
        self.program.append((operation, *fields, *(0,) * (4 - len(fields)), self._cycles))

    # What the chip does.

    def _cycle(self, **forced: int) -> dict[str, int]:
        """A cycle in which the chip gives what is drawn, and what is ``forced``."""
        given = self._drawn() | forced
        memory = {f"{MEMORY}{name}": bits for name, bits in self._memory.outputs().items()}
        driven = {name: f"{value:0{INPUTS[name]}b}" for name, value in self._pins.items()}
        words = ("x" * 32 if word is None else f"{word:032b}" for word in reversed(self._words))
        self.outputs.append("".join(f"{given[name]:0{width}b}" for name, width in OUTPUTS.items()))
        self.inputs.append(memory | driven | {WORDS: "".join(words)})
        asked = {name.removeprefix(MEMORY): value for name, value in given.items()}
        self._memory = self._memory.after(asked | {"rst_n": self._pins["rst_n"]})
        if self._pins["rst_n"]:
            if given["dma2core_instruction_valid"]:
                data = given["dma2core_instruction_data"].to_bytes(8, "little")
                self._stream += data[: given["dma2core_instruction_count"]]
            self._done += given["dma2monitor_done_valid"] & _DONE != 0
        self._cycles += 1
        return given

    def _drawn(self) -> dict[str, int]:
        random = self._random
        values = {name: random.getrandbits(width) for name, width in OUTPUTS.items()}
        values |= {name: idle for name, idle in _IDLE.items() if random.random() < 0.6}
        values["dma2core_instruction_count"] = random.randrange(9)
        values["dma2core_instruction_valid"] = int(random.random() < 0.2)
        values["dma2monitor_start_outcome"] *= 1 - values["dma2monitor_start_valid"]
        if self._done >= self._issued:
            values["dma2monitor_done_valid"] &= ~_DONE
        return values | self._requests()

    def _requests(self) -> dict[str, int]:
        """The chip asks for bytes of host memory, within the regions."""
        random, memory = self._random, self._memory
        if not memory.regions:
            return {f"{MEMORY}arvalid": 0, f"{MEMORY}awvalid": 0}
        first, writes, last = memory.regions
        reads = random.choice((first, last))
        words = random.choice((0, 0, 1, 5))
        end = writes.start + writes.size
        ends = memory.writing is not None and memory.writing[1] + 16 > end
        return {
            "m_axi_arlen": words,
            "m_axi_araddr": random.randrange(reads.start, reads.start + reads.size - 8 * words),
            "m_axi_awaddr": random.randrange(writes.start, end - 8),
            "m_axi_wlast": int(ends or random.random() < 0.5),
        }

    # What the program says.

    def begin(self) -> None:
        """A reset, and a memory of other regions and bytes."""
        self._pins |= dict.fromkeys((*_VALIDS, "rst_n"), 0)
        for _ in range(4):
            self._cycle()
        self._pins["rst_n"] = 1
        self._cycles = self._issued = self._done = 0
        self._stream.clear()
        self._says(Operation.RESET)
        self._says(Operation.FORGET)
        self._memory.regions.clear()
        for place in range(REGIONS):
            start = self._random.getrandbits(39) << 1
            region = Region(start, 160 + self._random.randrange(60), 300 * place)
            self._memory.regions.append(region)
            self._says(Operation.MAP, *region)
        loaded = self._random.randrange(MEMORY_BYTES // 2, MEMORY_BYTES - 50)
        self._memory.bytes[:loaded] = self._random.randbytes(loaded)
        self._says(Operation.LOAD, self._written(loaded), loaded)

    def _written(self, size: int) -> int:
        """The number of a file with so many bytes of memory."""
        self._files += 1
        lines = (f"{byte or 0:02x}\n" for byte in self._memory.bytes[:size])
        (self._folder / f"memory_{self._files}.hex").write_text("".join(lines))
        return self._files

    def compare(self) -> None:
        """Memory, up to some byte."""
        size = self._random.randrange(1, MEMORY_BYTES + 1)
        self.compared += size
        self.unknown += self._memory.bytes[:size].count(None)
        self._says(Operation.COMPARE, self._written(size), size)

    def write(self) -> None:
        """A register: address and data are taken in any order, then comes the answer."""
        address, data = self._bits("s_axil_awaddr"), self._bits("s_axil_wdata")
        self._pins |= {"s_axil_awaddr": address, "s_axil_wdata": data}
        self._pins |= {"s_axil_awvalid": 1, "s_axil_wvalid": 1}
        while self._pins["s_axil_awvalid"] or self._pins["s_axil_wvalid"]:
            given = self._cycle(s_axil_bvalid=0)
            for channel in ("aw", "w"):
                if given[f"s_axil_{channel}ready"]:
                    self._pins[f"s_axil_{channel}valid"] = 0
        self._waits("s_axil_bvalid")
        self._cycle(s_axil_bvalid=1, s_axil_bresp=0)
        self._says(Operation.WRITE, address, data)

    def read(self) -> None:
        """A register: the address is taken, then comes the answer."""
        self._pins |= {"s_axil_araddr": self._bits("s_axil_araddr"), "s_axil_arvalid": 1}
        while self._pins["s_axil_arvalid"]:
            if self._cycle(s_axil_rvalid=0)["s_axil_arready"]:
                self._pins["s_axil_arvalid"] = 0
        self._waits("s_axil_rvalid")
        given = self._cycle(s_axil_rvalid=1, s_axil_rresp=0)
        self._says(Operation.READ, self._pins["s_axil_araddr"], given["s_axil_rdata"])

    def _waits(self, ready: str) -> None:
        for _ in range(self._random.randrange(4)):
            self._cycle(**{ready: 0})

    def _taken(self, channel: str, *payload: str) -> dict[str, int]:
        """The outputs with which the chip takes these inputs, with anything at them."""
        self._pins |= {f"{channel}_{name}": self._bits(f"{channel}_{name}") for name in payload}
        self._pins[f"{channel}_valid"] = 1
        if channel == "core2dma_descriptor":
            self._issued += self._is_output()
        self._waits(f"{channel}_ready")
        given = self._cycle(**{f"{channel}_ready": 1})
        self._pins[f"{channel}_valid"] = 0
        return given

    def chunk(self) -> None:
        """A chunk, of which the chip says the size."""
        given = self._taken("core2queue_chunk")
        self._says(Operation.CHUNK, given["queue2core_chunk_size"])

    def fetch(self) -> None:
        """Bytes of the instruction stream."""
        size = self._random.choice((0, 1, 7, 8, 40))
        self._cycle()
        while len(self._stream) < size:
            self._cycle()
        self._says(Operation.FETCH, size, zlib.adler32(self._stream[:size]))
        del self._stream[:size]

    def hand_over(self) -> None:
        """An instruction."""
        names = ("tiles", "base_valid", "base", "bits")
        channel = "core2units_instruction"
        self._taken(channel, *names)
        self._says(Operation.HAND_OVER, *(self._pins[f"{channel}_{name}"] for name in names))

    def descriptor(self) -> None:
        """A descriptor, whose completion is counted if it is an output or an interrupt."""
        channel = "core2dma_descriptor"
        self._taken(channel, "fence", "tag", "size", "address")
        fence, tag, size, address = (
            self._pins[f"{channel}_{name}"] for name in ("fence", "tag", "size", "address")
        )
        self._says(Operation.DESCRIPTOR, fence << 4 | tag, size, address)

    def _is_output(self) -> bool:
        pins = self._pins
        tag = pins["core2dma_descriptor_tag"]
        return not pins["core2dma_descriptor_fence"] and tag >= DescriptorTag.OUTPUT

    def push(self) -> None:
        """A word."""
        self._taken("core2output_word", "data")
        self._says(Operation.PUSH, self._pins["core2output_word_data"])

    def settle(self) -> None:
        """Until all is idle and all is written."""
        while True:
            given = self._cycle()
            idle = all(given[name] == value for name, value in _IDLE.items())
            if idle and self._done == self._issued:
                break
        self._says(Operation.SETTLE)

    def scalar_word(self) -> None:
        """A word of scalar memory."""
        place, word = self._random.randrange(2), self._random.getrandbits(32)
        self._words[place] = word
        self._says(Operation.SCALAR_WORD, place, word)

    def run(self) -> None:
        """Some cycles."""
        for _ in range(self._random.randrange(6)):
            self._cycle()
        self._says(Operation.RUN)

    def operations(self) -> list[Callable[[], None]]:
        """All that a program may do after its beginning."""
        registers = [self.write, self.read]
        core = [self.chunk, self.fetch, self.hand_over, self.descriptor, self.push]
        return [*registers, *core, self.settle, self.scalar_word, self.run, self.compare]


@pytest.mark.parametrize("seed", [1, 2])
def test_the_chip_gets_what_the_program_says(seed: int, tmp_path: Path) -> None:
    require_icarus()
    random = Random(f"plain pins {seed}")
    script = Script(random, tmp_path)
    for number in range(OPERATIONS):
        if number % 80 == 0:
            script.begin()
        random.choice(script.operations())()
    program = (" ".join(f"{field:x}" for field in line) + "\n" for line in script.program)
    (tmp_path / PROGRAM).write_text("".join(program))
    (tmp_path / "outputs.txt").write_text("\n".join(script.outputs) + "\n")
    printed = simulated(compiled_player(BODY, tmp_path), tmp_path, seconds=120)
    found = (tmp_path / "inputs.txt").read_text().splitlines()
    widths = {**INPUTS, WORDS: 64}
    for cycle, (line, wanted) in enumerate(zip(found, script.inputs, strict=False)):
        place = 0
        for name, width in widths.items():
            value, place = line[place : place + width], place + width
            # Until the first reset has taken effect memory says nothing.
            if (cycle > 0 or MEMORY not in name) and wanted[name] is not None:
                assert value == wanted[name], f"cycle {cycle}: {name}"
    known = script.compared - script.unknown
    assert printed.splitlines()[-1] == (
        f"pass  {len(script.inputs)} cycles, each operation in the cycle that it took in "
        f"Verilator; {known} bytes of host memory equal, {script.unknown} unknown"
    )
