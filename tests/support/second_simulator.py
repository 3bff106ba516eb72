"""Designs in a second simulator: Icarus Verilog, on the plain Verilog that yosys makes of the
sources, with the inputs that a run in Verilator had.

Icarus knows unknown values: what reset leaves alone, and memory that nobody has written, is x until
somebody does. Verilator has random bits there.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from subprocess import PIPE

import pytest
from darwinn_rtl import bounded
from darwinn_rtl.build import Design, design_sources, simulation_argument
from darwinn_rtl.export import plain_verilog
from darwinn_rtl.source_files import source

from tests.formal.yosys import folders

INPUTS, OUTPUTS = "inputs.txt", "outputs.txt"
"""Files of a run: a line for each cycle, with the bits of all ports in the order of the source."""

RESET_CYCLES = 2
"""Until the first reset has taken effect nothing is known."""

PORT = re.compile(r"^ +(input|output) .*?(\w+),? *(?://.*)?$", re.MULTILINE)
"""The way of a port, and its name."""

_VALID = {"queue2core_chunk_size": "queue2core_chunk_waits"}
"""What says that a payload means something, where that is not named like it."""

_TOP = """\
module replay;
  reg clk = 0;
  reg [{inputs}-1:0] given;
  wire [{outputs}-1:0] found;
  integer from, to;
  {top} dut (.clk(clk), {connections});
  initial begin
    from = $fopen("{given}", "r");
    to = $fopen("{found}", "w");
    while ($fscanf(from, "%b\\n", given) == 1) begin
      #1 $fdisplay(to, "%b", found);
      #1 clk = 1;
      #1 clk = 0;
    end
    $fclose(to);
    $finish;
  end
endmodule
"""


@dataclass(frozen=True)
class Port:
    """A port of a top module but its clock; bits are counted in the lines of a run."""

    name: str
    is_input: bool


@cache
def ports(top: str) -> tuple[Port, ...]:
    """Ports of a top module but its clock, in order."""
    found = PORT.findall(header_of(top))
    return tuple(Port(name, way == "input") for way, name in found if name != "clk")


def header_of(top: str) -> str:
    """The source of a module, up to the end of its ports."""
    text = source(f"{top}.sv").read_text()
    return text[: text.index("\n);")]


def require_second_simulator() -> None:
    """Skip the test, with the way to get it, where something is missing."""
    pytest.importorskip("pyosys", reason="no yosys: pip install 'darwinn-testbench[dev]'")
    require_icarus()


def require_icarus() -> None:
    """Skip the test, with the way to get it, where there is no Icarus Verilog."""
    if shutil.which("iverilog") is None:
        pytest.skip("no Icarus Verilog: apt-get install iverilog")


def netlist_of(design: Design, work: Path) -> Path:
    """``design`` as plain Verilog, in ``work``."""
    netlist = work / f"{design.top}.v"
    # Without Verilator's waivers; yosys finds the other modules by their names.
    sources = [str(path) for path in design_sources(design, work)[1:]]
    found_by_name = [f"-y {folder}" for folder in folders()]
    plain_verilog([*sources, *found_by_name, "-Y .sv"], design, netlist)
    return netlist


def replay(design: Design, widths: dict[str, int], work: Path) -> list[str]:
    """The outputs of each cycle in Icarus, as ``OUTPUTS`` has those of the run in ``work`` whose
    ports are so wide."""
    netlist = netlist_of(design, work)
    bench, found = work / "replay.v", work / "icarus.txt"
    connections, sizes = [], {True: 0, False: 0}
    for port in reversed(ports(design.top)):
        low, width = sizes[port.is_input], widths[port.name]
        vector = "given" if port.is_input else "found"
        connections.append(f".{port.name}({vector}[{low}+:{width}])")
        sizes[port.is_input] += width
    bench.write_text(
        _TOP.format(
            inputs=sizes[True],
            outputs=sizes[False],
            top=design.top,
            connections=", ".join(connections),
            given=work / INPUTS,
            found=found,
        )
    )
    icarus("replay", [bench, netlist], work)
    return found.read_text().splitlines()


def icarus(top: str, sources: Sequence[Path], work: Path) -> str:
    """What module ``top`` prints in Icarus, run in the folder ``work``."""
    return simulated(compiled(top, sources, work), work)


def compiled(top: str, sources: Sequence[Path], work: Path) -> Path:
    """The simulation of module ``top``, which is compiled into ``work``."""
    program = work / top
    _run(work, "iverilog", "-g2005", f"-I{work}", "-s", top, "-o", program, *sources)
    return program


def simulated(program: Path, work: Path, *arguments: str, seconds: int | None = None) -> str:
    """What a simulation prints that reads its files in ``work``, and ends within ``seconds``."""
    further = filter(None, [simulation_argument(), *arguments])
    return _run(work, "vvp", "-n", program, *further, seconds=seconds)


def _run(work: Path, *command: str | Path, seconds: int | None = None) -> str:
    done = bounded.run(command, seconds=seconds, cwd=work, stdout=PIPE, stderr=PIPE, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return str(done.stdout)


def check_outputs(top: str, widths: dict[str, int], work: Path, icarus: list[str]) -> int:
    """Each output is in ``icarus`` what it is in the run in ``work``, in every cycle after reset;
    the number of these cycles."""
    verilator = (work / OUTPUTS).read_text().splitlines()[RESET_CYCLES:]
    found = list(islice(differences(top, widths, verilator, icarus[RESET_CYCLES:]), 10))
    assert not found, "\n".join(found)
    return len(verilator)


def differences(
    top: str, widths: dict[str, int], verilator: list[str], icarus: list[str]
) -> Iterator[str]:
    """Where the outputs of two runs differ, in words.

    A bit that Icarus does not know differs as well, unless it is of a payload whose valid is 0.
    """
    outputs = [port.name for port in ports(top) if not port.is_input]
    if len(verilator) != len(icarus):
        yield f"{len(verilator)} cycles in Verilator, {len(icarus)} in Icarus"
    for cycle, lines in enumerate(zip(verilator, icarus, strict=False)):
        if lines[0] == lines[1]:
            continue
        first, second = (_split(line, outputs, widths) for line in lines)
        for name in outputs:
            if first[name] != second[name] and not _is_idle(name, second, first[name]):
                values = f"{first[name]} in Verilator, {second[name]} in Icarus"
                yield f"cycle {cycle}: {name} is {values}"


def _split(line: str, names: list[str], widths: dict[str, int]) -> dict[str, str]:
    values, place = {}, 0
    for name in names:
        values[name] = line[place : place + widths[name]]
        place += widths[name]
    return values


def _is_idle(name: str, values: dict[str, str], other: str) -> bool:
    """Whether the bits of ``name`` that are not known are of payloads that are not valid, and the
    others are those of the ``other`` simulator."""
    if any(bit not in ("x", was) for bit, was in zip(values[name], other, strict=True)):
        return False
    starts = (name[:end] for end in range(len(name) - 1, 0, -1))
    named = next((start for start in starts if f"{start}valid" in values), None)
    valid = _VALID.get(name) or f"{named}valid"
    if valid not in values or name.endswith("valid"):
        return False
    # A payload may be several, side by side, with a valid each.
    each = len(values[name]) // len(values[valid])
    return all(
        bit == "0" or "x" not in values[name][place * each : (place + 1) * each]
        for place, bit in enumerate(values[valid])
    )
