"""Synthesises the RTL for a generic FPGA and says how large it is.

    python -m tests.formal.area [NAME...] [--json]

Logic is mapped to look-up tables of six inputs by yosys and ABC, multiplications to blocks of 27 by
18 bits, memories to block RAM of 36 Kbit (a port that writes and one that reads, with a clock) or
to RAM of look-up tables (one that reads without). Nothing is placed or timed.

Exits with 1 if a design cannot be synthesised, with 2 if there is no such design or no yosys.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from darwinn_rtl.build import Design, design_sources
from darwinn_rtl.parameters import RATIO
from darwinn_rtl.yosys import DesignRefused, is_installed, read_command, run_script
from darwinn_sim import chip

from benchmarks.figures import keep_figures
from tests.formal.yosys import folders

PARTS = {
    "host": Design("harness", registers=True),
    "tile": Design("tile", sizes={RATIO: 7}),
}
"""What is synthesised, by name: the host interface with its registers and the DMA engine, and a
tile with its memories in block RAM."""

_OPTIONS = {"tile": "--keep-hierarchy"}
"""Of a tile each module is synthesised by itself, and said how large it is."""

_LIBRARY = """\
ram block $__block_ram {
  abits 15;
  widths 1 2 4 9 18 36 72 per_port;
  byte 9;
  cost 64;
  init any;
  port sw "W" { clock posedge; wrtrans all old; }
  port sr "R" { clock posedge; rden; }
}
ram distributed $__lut_ram {
  option "DEPTH" 32 { abits 5; width 6; }
  option "DEPTH" 64 { abits 6; width 3; }
  cost 4;
  init any;
  port sw "W" { clock posedge; }
  port ar "R" { }
}
"""

_SCRIPT = """\
hierarchy -top {top}
proc
opt_expr
opt_clean
opt -nodffe -nosdff
wreduce
peepopt
opt_clean
techmap -map +/mul2dsp.v -D DSP_A_MAXWIDTH=27 -D DSP_B_MAXWIDTH=18 -D DSP_A_MINWIDTH=2 \
-D DSP_B_MINWIDTH=2 -D DSP_Y_MINWIDTH=9 -D DSP_SIGNEDONLY=1 -D DSP_NAME=$__dsp
chtype -set $mul t:$__soft_mul
alumacc
opt_merge
opt_dff
opt_clean
memory -nomap
memory_libmap -lib {library}
memory_map
opt_clean
techmap
opt_clean
abc -lut 6 -script +strash;&get,-n;&fraig,-x;&put;dc2;if
opt_clean
tee -o {statistics} stat -json
"""


@dataclass(frozen=True)
class Area:
    """How large a part is, all ``instances`` of it together: look-up tables, those of them that are
    RAM, flip-flops, multipliers, block RAM."""

    name: str
    instances: int
    luts: int
    lut_rams: int
    flip_flops: int
    multipliers: int
    block_rams: int

    def line(self) -> str:
        """As it is printed."""
        return (
            f"{self.name:<18} {self.instances:>3} x {self.luts:>9,} LUT6 (RAM {self.lut_rams:,}) "
            f"{self.flip_flops:>8,} flip-flops {self.multipliers:>5,} multipliers "
            f"{self.block_rams:>4} block RAM"
        )


_LUTS_OF_A_RAM = 4


def _area(name: str, instances: int, cells: Mapping[str, int]) -> Area:
    rams = _LUTS_OF_A_RAM * cells.get("$__lut_ram", 0)
    return Area(
        name,
        instances,
        cells.get("$lut", 0) + rams,
        rams,
        sum(count for kind, count in cells.items() if re.fullmatch(r"\$_\w*FF\w*_", kind)),
        cells.get("$__dsp", 0),
        cells.get("$__block_ram", 0),
    )


def _cells(modules: Mapping[str, Any], name: str) -> Counter[str]:
    """Cells of a module and of all below it, by their kinds."""
    found: Counter[str] = Counter()
    for kind, count in _local(modules, name).items():
        if kind in modules:
            for below, number in _cells(modules, kind).items():
                found[below] += count * number
        else:
            found[kind] += count
    return found


def _local(modules: Mapping[str, Any], name: str) -> dict[str, int]:
    module = modules[name]
    kinds = module["num_cells_by_type"] | module.get("num_submodules_by_type", {})
    return {kind.removeprefix("\\"): count for kind, count in kinds.items()}


def areas(statistics: str, top: str) -> Iterator[Area]:
    """From what ``stat -json`` says: the modules of which ``top`` is made, and last ``top``."""
    table = json.loads(statistics[statistics.index("{") :])["modules"]
    modules = {name.removeprefix("\\"): module for name, module in table.items()}
    parts: dict[str, Counter[str]] = {}
    instances: Counter[str] = Counter()
    for kind, count in _local(modules, top).items():
        if kind in modules:
            name = kind.partition("$")[0]
            instances[name] += count
            for _ in range(count):
                parts.setdefault(name, Counter()).update(_cells(modules, kind))
    yield from (_area(name, instances[name], parts[name]) for name in sorted(parts))
    yield _area(top, 1, _cells(modules, top))


def synthesise(name: str) -> tuple[list[Area], float]:
    """Areas of the part with that name, and the seconds of processor time that they took.

    Raises :class:`DesignRefused`.
    """
    design = PARTS[name]
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        # Verilator's waivers come first, and are not read.
        sources = design_sources(design, work)[1:]
        options = _OPTIONS.get(name, "")
        read = read_command(design.top, sources, folders=folders(), options=options)
        library, statistics, script = work / "library.txt", work / "stat.json", work / "script.ys"
        library.write_text(_LIBRARY)
        passes = _SCRIPT.format(top=design.top, library=library, statistics=statistics)
        script.write_text(f"{read}\n{passes}")
        _, seconds = run_script(script)
        return list(areas(statistics.read_text(), design.top)), round(seconds, 1)


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
    if not is_installed():
        print("no yosys: pip install 'darwinn-testbench[dev]'", file=sys.stderr)
        return 2
    unknown = [name for name in options.names if name not in PARTS]
    if unknown:
        print(f"there is no {unknown[0]}, but {', '.join(PARTS)}", file=sys.stderr)
        return 2
    found: list[Area] = []
    for name in options.names or PARTS:
        try:
            parts, seconds = synthesise(name)
        except DesignRefused as refused:
            print(f"{name} cannot be synthesised:\n{refused}", file=sys.stderr)
            return 1
        found += parts
        if not options.json:
            print("\n".join(each.line() for each in parts))
            print(f"{seconds} s of processor time", flush=True)
    if not options.json and found[-1].name == "tile":
        last = asdict(found[-1])
        times = {key: value * chip.TILES for key, value in last.items() if key != "name"}
        print(Area("tiles of a chip", **times).line())
    keep_figures({f"{each.name}, LUT6": each.luts for each in found})
    if options.json:
        print(json.dumps([asdict(each) for each in found], indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
