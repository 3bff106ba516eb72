"""Synthesises the RTL for a generic FPGA and says how large it is.

    python -m tests.formal.area [NAME...] [--json]

Logic is mapped to look-up tables of six inputs by yosys and ABC. Memories stay memories, as each
target has its own: what reads in the same cycle or has many ports is no block RAM. Nothing is
placed or timed.

Exits with 1 if a design cannot be synthesised, with 2 if there is no such design or no yosys.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path

from darwinn_testbench.rtl.build import Design, design_sources

from benchmarks.figures import keep_figures
from tests.formal.yosys import DesignRefused, folders, run_script

TILE_PARTS = (
    *("tile_queue", "sync_flags", "ring_producer", "ring_consumer", "mesh_bus"),
    *("narrow_to_wide", "wide_to_narrow"),
)
"""Modules of a tile, of one instance each; narrow and wide memory are none of them."""

PARTS = {
    "host": Design("harness", registers=True),
    **{name: Design(name) for name in TILE_PARTS},
}
"""What is synthesised, by name: the host interface with its registers and the DMA engine, and the
units of a tile that move words."""

_SCRIPT = """\
hierarchy -top {top}
synth -top {top} -run begin:fine
opt -fast -full
techmap
opt -fast
abc -lut 6
opt_clean
stat
dump t:$mem_v2
"""


@dataclass(frozen=True)
class Area:
    """How large a part is: look-up tables, flip-flops, memories and their bits; and the seconds of
    processor time that synthesis took."""

    name: str
    luts: int
    flip_flops: int
    memories: int
    memory_bits: int
    seconds: float

    def line(self) -> str:
        """As it is printed."""
        return (
            f"{self.name:<14} {self.luts:>9,} LUT6 {self.flip_flops:>8,} flip-flops "
            f"{self.memories:>4} memories of {self.memory_bits:,} bits  {self.seconds:6.1f} s"
        )


def _count(pattern: str, statistics: str) -> int:
    return sum(map(int, re.findall(rf"^ +(\d+) +{pattern}$", statistics, re.MULTILINE)))


def area(name: str) -> Area:
    """Synthesise the part with that name. Raises :class:`DesignRefused`."""
    design = PARTS[name]
    top = design.top
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        # Verilator's waivers come first, and are not read.
        sources = design_sources(design, work)[1:]
        words = [
            *("read_slang -j 1 -D SYNTHESIS --top", top),
            *map(str, sources),
            *(f"-y {each}" for each in folders()),
            "-Y .sv",
        ]
        script = work / "script.ys"
        script.write_text(" ".join(words) + "\n" + _SCRIPT.format(top=top))
        log, seconds = run_script(script)
    statistics = log.rpartition("Printing statistics.")[2]
    memories = re.findall(r"cell \$mem_v2.*?\n  end", statistics, re.DOTALL)
    bits = [
        int(re.findall(r"parameter \\SIZE (\d+)", each)[0])
        * int(re.findall(r"parameter \\WIDTH (\d+)", each)[0])
        for each in memories
    ]
    return Area(
        name,
        _count(r"\$lut", statistics),
        _count(r"\$_\w*FF\w*_", statistics),
        len(bits),
        sum(bits),
        round(seconds, 1),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Synthesise what is asked for, and print how large it is."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.formal.area",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(PARTS)}; or all")
    parser.add_argument("--json", action="store_true", help="print JSON, a list")
    options = parser.parse_args(arguments)
    if find_spec("pyosys") is None:
        print("no yosys: pip install 'darwinn-testbench[dev]'", file=sys.stderr)
        return 2
    unknown = [name for name in options.names if name not in PARTS]
    if unknown:
        print(f"there is no {unknown[0]}, but {', '.join(PARTS)}", file=sys.stderr)
        return 2
    areas = []
    for name in options.names or PARTS:
        try:
            areas.append(area(name))
        except DesignRefused as refused:
            print(f"{name} cannot be synthesised:\n{refused}", file=sys.stderr)
            return 1
        if not options.json:
            print(areas[-1].line(), flush=True)
    keep_figures({f"{each.name}, LUT6": each.luts for each in areas})
    if options.json:
        print(json.dumps([asdict(each) for each in areas], indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
