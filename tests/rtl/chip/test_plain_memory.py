"""The host memory in plain Verilog does in each cycle what its description says."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest
from darwinn_rtl.source_files import source
from second_simulator import compiled, require_icarus, simulated

MEMORY = "plain_memory"
CYCLES = 3000
OKAY, SLAVE_ERROR = 0, 2

_BENCH = """\
module bench;
  reg clk;
  reg [{inputs}-1:0] given;
  wire [{outputs}-1:0] found;
  integer from, to;
  {memory} memory (.clk(clk), {connections});
  initial begin
    clk = 0;
    #1 {maps}
    $readmemh("before.hex", memory.bytes);
    from = $fopen("inputs.txt", "r");
    to = $fopen("outputs.txt", "w");
    while ($fscanf(from, "%b\\n", given) == 1) begin
      #1 $fdisplay(to, "%b", found);
      #1 clk = 1;
      #1 clk = 0;
    end
    $fclose(to);
    $writememh("after.hex", memory.bytes);
    $finish;
  end
endmodule
"""


class Region(NamedTuple):
    """``size`` bytes from a bus address on, which stand from ``place`` on."""

    start: int
    size: int
    place: int


@dataclass(frozen=True)
class Kind:
    """A memory with buses so wide that answers so many cycles later and holds so many requests."""

    data_bytes: int
    latency: int
    requests: int

    @property
    def inputs(self) -> dict[str, int]:
        """Bits of each input."""
        return {
            **dict.fromkeys(("rst_n", "arvalid", "rready", "awvalid", "wvalid", "bready"), 1),
            **dict.fromkeys(("araddr", "awaddr"), 40),
            **dict.fromkeys(("arid", "awid"), 2),
            "arlen": 8,
            "wdata": 8 * self.data_bytes,
            "wstrb": self.data_bytes,
            "wlast": 1,
        }

    @property
    def outputs(self) -> dict[str, int]:
        """Bits of each output."""
        return {
            **dict.fromkeys(("arready", "rvalid", "rlast", "awready", "wready", "bvalid"), 1),
            **dict.fromkeys(("rid", "rresp", "bid", "bresp"), 2),
            "rdata": 8 * self.data_bytes,
        }


KINDS = (Kind(8, 4, 3), Kind(4, 0, 1), Kind(32, 9, 16))

READ = (Region(0x1000, 100, 0), Region(0x1050, 64, 100))
"""The second begins before the end of the first, which has what both have."""
WRITTEN = (Region(0xFF_0000_0010, 256, 200), Region(0x8000, 1, 199))
REGIONS, BYTES = (*READ, *WRITTEN), 456
"""Of a byte that is read and written in one cycle nothing is said."""


class Request(NamedTuple):
    """A read that waits for the cycle ``due``; ``words`` is less one."""

    due: int
    id: int
    words: int
    address: int


@dataclass
class Model:
    """Host memory, as it is described."""

    kind: Kind
    bytes: list[int]
    now: int = 0
    reads: deque[Request] = field(default_factory=deque)
    given: int = 0
    """Words of the first read that have been given."""
    word: tuple[int, str, int, int] | None = None
    """What the read channel has: identifier, bits, response, and whether it is the last."""
    writing: tuple[int, int, bool] | None = None
    """The burst that comes: its identifier, the next address, and whether it has failed."""
    answers: deque[tuple[int, int, bool]] = field(default_factory=deque)
    """The cycle from which on, the identifier, and whether the burst has failed."""
    answer: tuple[int, int] | None = None
    """What the answer channel has."""

    def outputs(self) -> dict[str, str | None]:
        """Bits of each output; None where it has no meaning."""
        identifier, data, response, last = self.word or (None,) * 4
        answered, outcome = self.answer or (None,) * 2
        numbers = {
            "arready": len(self.reads) < self.kind.requests,
            "rvalid": self.word is not None,
            "rid": identifier,
            "rresp": response,
            "rlast": last,
            "awready": self.writing is None and len(self.answers) < self.kind.requests,
            "wready": self.writing is not None,
            "bvalid": self.answer is not None,
            "bid": answered,
            "bresp": outcome,
        }
        widths = self.kind.outputs
        found = {
            name: None if value is None else f"{value:0{widths[name]}b}"
            for name, value in numbers.items()
        }
        return found | {"rdata": data}

    def after(self, given: dict[str, int]) -> Model:
        """The memory after a cycle with these inputs."""
        if not given["rst_n"]:
            return Model(self.kind, self.bytes)
        outputs = self.outputs()
        read_asked, write_asked, word_written = (
            given[f"{channel}valid"] and outputs[f"{channel}ready"] == "1"
            for channel in ("ar", "aw", "w")
        )
        self._read(rready=bool(given["rready"]))
        self._answer(bready=bool(given["bready"]))
        if read_asked:
            due = self.now + self.kind.latency
            self.reads.append(Request(due, given["arid"], given["arlen"], given["araddr"]))
        if word_written:
            self._write(given)
        if write_asked:
            self.writing = given["awid"], given["awaddr"], False
        self.now += 1
        return self

    def _read(self, *, rready: bool) -> None:
        if self.word is not None and not rready:
            return
        self.word = None
        if not self.reads or self.now < self.reads[0].due:
            return
        first = self.reads[0]
        size, last = self.kind.data_bytes, self.given == first.words
        places = [place_of(first.address + size * self.given + lane) for lane in range(size)]
        known = ["x" * 8 if at is None else f"{self.bytes[at]:08b}" for at in reversed(places)]
        response = OKAY if any(at is not None for at in places) else SLAVE_ERROR
        self.word = first.id, "".join(known), response, last
        self.given = 0 if last else self.given + 1
        if last:
            self.reads.popleft()

    def _answer(self, *, bready: bool) -> None:
        if self.answer is not None and not bready:
            return
        self.answer = None
        if self.answers and self.now >= self.answers[0][0]:
            _, identifier, failed = self.answers.popleft()
            self.answer = identifier, SLAVE_ERROR if failed else OKAY

    def _write(self, given: dict[str, int]) -> None:
        assert self.writing is not None
        identifier, address, failed = self.writing
        for lane in range(self.kind.data_bytes):
            if given["wstrb"] >> lane & 1:
                place = place_of(address + lane)
                failed |= place is None
                if place is not None:
                    self.bytes[place] = given["wdata"] >> 8 * lane & 0xFF
        self.writing = identifier, address + self.kind.data_bytes, failed
        if given["wlast"]:
            self.answers.append((self.now + self.kind.latency, identifier, failed))
            self.writing = None


def place_of(address: int) -> int | None:
    """Where the byte of a bus address stands, if it is in a region."""
    for region in REGIONS:
        if region.start <= address < region.start + region.size:
            return region.place + address - region.start
    return None


def drawn(random: Random, kind: Kind, cycle: int) -> dict[str, int]:
    """Inputs of a cycle, with addresses around both ends of regions. For a while much is asked for
    and little is taken, then the other way round."""
    busy = cycle // 64 % 2

    def address(regions: tuple[Region, ...]) -> int:
        region = random.choice(regions)
        end = random.choice((region.start, region.start + region.size))
        return end + random.randrange(-3 * kind.data_bytes, 2 * kind.data_bytes)

    values = {name: random.getrandbits(width) for name, width in kind.inputs.items()}
    return values | {
        "rst_n": int(cycle > 1 and random.random() > 0.01),
        "araddr": address(READ),
        "arlen": random.choice((0, 1, 2, 5, values["arlen"] % 20)),
        "arvalid": int(random.random() < (0.1, 0.6)[busy]),
        "rready": int(random.random() < (0.9, 0.5)[busy]),
        "awaddr": address(WRITTEN),
        "wstrb": random.choice(((1 << kind.data_bytes) - 1, values["wstrb"], 0, 1)),
        "wlast": int(random.random() < 0.4),
        "bready": int(random.random() < (0.9, 0.2)[busy]),
    }


def bits(values: dict[str, int], widths: dict[str, int]) -> str:
    return "".join(f"{values[name]:0{width}b}" for name, width in widths.items())


def compiled_bench(kind: Kind, work: Path) -> Path:
    """The memory, whose ports are in a vector each, and which has the regions."""
    connections = []
    for vector, widths in (("given", kind.inputs), ("found", kind.outputs)):
        low = sum(widths.values())
        for name, width in widths.items():
            low -= width
            connections.append(f".{name}({vector}[{low}+:{width}])")
    sizes = {
        "DATA_BYTES": kind.data_bytes,
        "ADDRESS_BITS": kind.inputs["araddr"],
        "MEMORY_LATENCY": kind.latency,
        "MEMORY_REQUESTS": kind.requests,
        "REGIONS": len(REGIONS),
        "MEMORY_BYTES": BYTES,
    }
    lines = (f"`define PLAIN_{name} {value}\n" for name, value in sizes.items())
    (work / "plain_sizes.vh").write_text("".join(lines))
    maps = (f"memory.map(64'd{each.start}, {each.size}, {each.place});" for each in REGIONS)
    (work / "bench.v").write_text(
        _BENCH.format(
            inputs=sum(kind.inputs.values()),
            outputs=sum(kind.outputs.values()),
            memory=MEMORY,
            connections=", ".join(connections),
            maps=" ".join(maps),
        )
    )
    return compiled("bench", [work / "bench.v", source(f"{MEMORY}.v")], work)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind.data_bytes} bytes")
def test_the_memory_does_what_its_description_says(kind: Kind, tmp_path: Path) -> None:
    require_icarus()
    random = Random(f"plain memory {kind}")
    model = Model(kind, [random.randrange(256) for _ in range(BYTES)])
    (tmp_path / "before.hex").write_text("\n".join(f"{byte:02x}" for byte in model.bytes))
    inputs, expected = [], []
    for cycle in range(CYCLES):
        given = drawn(random, kind, cycle)
        inputs.append(bits(given, kind.inputs))
        expected.append(model.outputs())
        model = model.after(given)
    (tmp_path / "inputs.txt").write_text("\n".join(inputs) + "\n")
    simulated(compiled_bench(kind, tmp_path), tmp_path)
    found = (tmp_path / "outputs.txt").read_text().splitlines()
    assert len(found) == CYCLES
    for cycle, (line, wanted) in enumerate(zip(found, expected, strict=True)):
        place = 0
        for name, width in kind.outputs.items():
            value, place = line[place : place + width], place + width
            # Until the first reset has taken effect nothing is known.
            if cycle > 0 and wanted[name] is not None:
                assert value == wanted[name], f"cycle {cycle}: {name}"
    after = (tmp_path / "after.hex").read_text().splitlines()
    assert [int(line, 16) for line in after if not line.startswith("//")] == model.bytes
