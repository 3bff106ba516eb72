"""The host memory in plain Verilog does in each cycle what its description says."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from darwinn_rtl.source_files import source
from host_memory_model import BYTES, CYCLES, KINDS, REGIONS, HostMemory, Kind, drawn
from second_simulator import compiled, require_icarus, simulated

MEMORY = "plain_memory"

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
    before = [random.randrange(256) for _ in range(BYTES)]
    model = HostMemory(kind, [*before], [*REGIONS])
    (tmp_path / "before.hex").write_text("\n".join(f"{byte:02x}" for byte in before))
    inputs, expected = [], []
    for cycle in range(CYCLES):
        given = drawn(random, kind, cycle)
        inputs.append(bits(given, kind.inputs))
        expected.append(model.outputs())
        model = model.after(given)
    (tmp_path / "inputs.txt").write_text("\n".join(inputs) + "\n")
    simulated(compiled_bench(kind, tmp_path), tmp_path, seconds=120)
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
