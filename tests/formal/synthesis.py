"""Compares units of the RTL with the netlists that yosys makes of them, register by register.

    python -m tests.formal.synthesis [NAME...] [--seconds S] [--json]

A unit is read twice. One copy stays what the sources say; the other is synthesised to look-up
tables of six inputs and flip-flops, as for an FPGA. Registers keep their names, so yosys pairs
them, and proves for each pair of registers and of outputs that both get the same value in every
state in which all pairs are equal.

Exits with 1 if a unit differs from its netlist or yosys cannot decide, with 2 if there is no such
unit or no yosys.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import inf
from pathlib import Path

from darwinn_rtl.build import Design
from darwinn_rtl.yosys import DesignRefused, is_installed, read_command, run_script

from benchmarks.figures import keep_figures
from tests.formal.yosys import folders, sources

_SMALL = {"MaxBurst": 4, "BufferBeats": 8, "FifoDepth": 2, "QueueDepth": 2}

UNITS = {
    "dma_engine": Design("dma_engine_flat", {"DataBytes": 4, **_SMALL}),
    "dma_engine_wide": Design("dma_engine_flat", {"DataBytes": 8, **_SMALL}),
    "sync_flags": Design("sync_flags"),
    "instruction_queue": Design("instruction_queue"),
    "tile_fence": Design("tile_fence"),
    "tile_queue": Design("tile_queue"),
    "mesh_bus": Design("mesh_bus"),
    "narrow_to_wide": Design("narrow_to_wide"),
    "wide_to_narrow": Design("wide_to_narrow"),
    "ring_producer": Design("ring_producer"),
    "ring_consumer": Design("ring_consumer"),
    "output_stage": Design("output_stage"),
}
"""What is compared, by name. The DMA engine has flat ports around it, and short queues: their
memories become registers here."""

_READ = """\
{read}
hierarchy -top {top}
proc
flatten
opt_clean
memory_map
opt_clean
"""

_SYNTHESISE = """\
opt -full
wreduce
peepopt
opt_clean
alumacc
opt
techmap
opt
abc -lut 6
opt_clean
"""

_COMPARE = """\
design -copy-from sources -as sources {top}
design -copy-from netlist -as netlist {top}
equiv_make sources netlist both
hierarchy -top both
opt_clean
async2sync
dffunmap
equiv_simple
equiv_induct -seq 2
equiv_status
"""


@dataclass(frozen=True)
class Result:
    """How many pairs of registers and outputs there are, how many are proved equal, and the seconds
    of processor time."""

    name: str
    pairs: int
    equal: int
    seconds: float

    @property
    def good(self) -> bool:
        """Whether the netlist does what the sources say."""
        return 0 < self.pairs == self.equal

    def line(self) -> str:
        """As it is printed."""
        said = "equal" if self.good else "NOT PROVED EQUAL"
        pairs = f"{self.equal:>6,} of {self.pairs:>6,} pairs"
        return f"{self.name:<18} {pairs} {said:<16} {self.seconds:7.1f} s"


def compare(name: str, changed: Mapping[str, str] | None = None) -> Result:
    """Compare a unit with its netlist, which is made of ``changed`` texts in place of sources, by
    file name. Raises :class:`DesignRefused`."""
    design = UNITS[name]
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        parts = []
        for copy, texts in (("sources", {}), ("netlist", changed or {})):
            place = work / copy
            place.mkdir()
            read = _READ.format(read=_read(design, place, texts), top=design.top)
            parts.append(f"{read}{_SYNTHESISE * (copy == 'netlist')}design -stash {copy}\n")
        script = work / "script.ys"
        script.write_text("".join(parts) + _COMPARE.format(top=design.top))
        log, seconds = run_script(script)
    found = re.findall(
        r"Found (\d+) \$equiv cells in both:\n *Of those cells (\d+) are proven", log
    )
    if not found:
        raise DesignRefused(log[-4000:])
    pairs, equal = map(int, found[-1])
    return Result(name, pairs, equal, round(seconds, 1))


def _read(design: Design, work: Path, changed: Mapping[str, str]) -> str:
    """The command that reads a design; the text of its top is one of the sources."""
    read = sources(design.top, work, changed, design.sizes)
    return read_command(design.top, read, parameters=design.parameters, folders=folders())


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare what is asked for, and print what came of it."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.formal.synthesis",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(UNITS)}; or all")
    parser.add_argument("--seconds", type=float, default=inf, help="none begins after so many")
    parser.add_argument("--json", action="store_true", help="print JSON, a list")
    options = parser.parse_args(arguments)
    if not is_installed():
        print("no yosys: pip install 'darwinn-testbench[dev]'", file=sys.stderr)
        return 2
    unknown = [name for name in options.names if name not in UNITS]
    if unknown:
        print(f"there is no {unknown[0]}, but {', '.join(UNITS)}", file=sys.stderr)
        return 2
    end, results = time.monotonic() + options.seconds, []
    for name in options.names or UNITS:
        if time.monotonic() > end:
            break
        try:
            results.append(compare(name))
        except DesignRefused as refused:
            print(f"{name} cannot be compared:\n{refused}", file=sys.stderr)
            return 1
        if not options.json:
            print(results[-1].line(), flush=True)
    keep_figures({f"{each.name}, pairs equal": each.equal for each in results})
    if options.json:
        print(json.dumps([{**asdict(each), "good": each.good} for each in results], indent=1))
    return int(not all(each.good for each in results))


if __name__ == "__main__":
    sys.exit(main())
