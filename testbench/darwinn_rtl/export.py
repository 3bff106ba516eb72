"""The sources of a design for other tools: a folder with a file list and a FuseSoC core file.

The folder needs nothing of this project. It has our sources, the generated ones, ``files.f``
(every source after those that it needs, which Verilator, slang and most simulators read), and
``TOP.core`` (CAPI2, which FuseSoC and Edalize read).
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from darwinn_rtl.build import Design, generate
from darwinn_rtl.harness import HarnessDescription
from darwinn_rtl.source_files import own_folder, source, source_files, source_folder
from darwinn_rtl.source_order import in_order
from darwinn_rtl.yosys import DesignRefused, is_installed, read_command, run_script

GENERATED = "generated"
"""Folder of the generated sources."""

FILE_LIST = "files.f"

WAIVERS = "waivers.vlt"
"""Warnings of Verilator that are waived, each with its reason."""


_NOT_ALONE = (
    *("axi_bench", "axi_check", "axi_lite", "axi_read", "axi_write", "memory_bench"),
    *("coincidence_counter", "host_coincidences", "tile_coincidences", "core_coincidences"),
)
"""Interfaces, and modules that are parts of a test or of a port that is an interface."""


CHIP = "chip_pins"
"""The chip with flat ports."""

_PLAYER = ("plain_memory.v", "plain_player.v")
PLAIN_SIZES = "plain_sizes.vh"
"""The header that both of them include."""
_PORT = re.compile(r"^ *(?:input|output) (?:\[(\d+):0\] )?(\w+) *;", re.MULTILINE)


class ExportFailed(Exception):
    """The design cannot be exported; the message says why."""


def tops() -> tuple[str, ...]:
    """Names of the modules of the chip and the harness that can be exported."""
    return tuple(
        path.stem
        for path in source_files()
        if not path.stem.endswith("_pkg") and path.stem not in _NOT_ALONE
    )


def export(folder: Path, top: str, *, plain: bool = False) -> list[Path]:
    """Write what module ``top`` needs to ``folder``, which is made; return the files in order.

    ``plain``: one more file, ``TOP.v``, is the same design as plain Verilog (IEEE 1364-2005)
    without assertions, which Icarus reads. Its sizes are those of the chip that this process
    simulates.

    Raises:
        ExportFailed: no module is called so, or yosys is not installed or refuses the design.
        OSError: the files cannot be written.
    """
    if top not in tops():
        raise ExportFailed(f"no module is called {top}; there are {', '.join(tops())}")
    with tempfile.TemporaryDirectory() as work:
        # Nothing is half written if it is refused or interrupted, and yosys takes no odd paths.
        whole = Path(work, "whole")
        names = _write_sources(whole, top)
        written = [*names, WAIVERS, FILE_LIST, f"{top}.core"]
        if plain:
            written.append(_plain(whole, top, names).name)
        put_in_place(whole, folder)
    return [folder / name for name in written]


def put_in_place(whole: Path, folder: Path) -> None:
    """Copy the files of a folder to another one, which is made; what else is there stays."""
    for path in filter(Path.is_file, sorted(whole.rglob("*"))):
        target = folder / path.relative_to(whole)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)


def _write_sources(folder: Path, top: str) -> list[str]:
    """Write the sources of ``top`` and the lists of them; return the sources in order."""
    with tempfile.TemporaryDirectory() as work:
        made = generate(Path(work), Design(top, registers=True))
        needed = in_order([*made, *source_files()], top)
        names = [_name(path, Path(work)) for path in needed]
        for path, name in zip(needed, names, strict=True):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(path.read_text())
    (folder / WAIVERS).write_text(source(WAIVERS).read_text())
    (folder / FILE_LIST).write_text("".join(f"{name}\n" for name in names))
    (folder / f"{top}.core").write_text(_core(top, names))
    return names


def _name(path: Path, generated: Path) -> str:
    for root, name in ((generated, GENERATED), (own_folder(), "own"), (source_folder(), "")):
        if root is not None and root in path.parents:
            return str(Path(name, path.relative_to(root)))
    raise AssertionError(f"{path} is in none of the folders of sources")


def _core(top: str, names: Sequence[str]) -> str:
    """A FuseSoC core file. JSON is YAML, and needs no library."""
    core = {
        "name": f"darwinn-testbench::{top}:0",
        "description": f"{top} of the darwinn-testbench harness",
        "filesets": {
            "rtl": {"files": list(names), "file_type": "systemVerilogSource"},
            "waivers": {"files": [WAIVERS], "file_type": "vlt"},
        },
        "targets": {
            "default": {"filesets": ["rtl"], "toplevel": top},
            "lint": {
                "filesets": ["waivers", "rtl"],
                "toplevel": top,
                "default_tool": "verilator",
                "tools": {"verilator": {"mode": "lint-only", "verilator_options": ["-Wall"]}},
            },
        },
    }
    return "CAPI=2:\n" + json.dumps(core, indent=2) + "\n"


def plain_verilog(sources: Sequence[str | Path], design: Design, target: Path) -> None:
    """Write ``design`` to ``target`` as yosys writes it back: modules without assertions.

    Modules stay apart as far as their ports are no interfaces: Icarus takes very long for a flat
    chip. Nothing is cleaned up, since a port whose value is constant would lose its net.

    Raises ``ExportFailed`` if yosys is not installed or refuses it.
    """
    options = "--best-effort-hierarchy"
    read = read_command(design.top, sources, parameters=design.parameters, options=options)
    passes = ["proc -noopt", "bwmuxmap", f"write_verilog -noattr {target}"]
    lines = [read, f"hierarchy -top {design.top}", *passes, ""]
    if not is_installed():
        raise ExportFailed("plain Verilog needs yosys with its slang front end: pip install pyosys")
    with tempfile.NamedTemporaryFile("w", suffix=".ys") as script:
        script.write("\n".join(lines))
        script.flush()
        try:
            run_script(Path(script.name))
        except DesignRefused as reason:
            raise ExportFailed(f"yosys refuses {design.top}: {reason}") from None


def export_player(folder: Path, netlist: Path, memory_bytes: int, regions: int) -> list[Path]:
    """Write the player of recorded programs and its host memory, in plain Verilog, beside
    ``netlist``, the plain Verilog of ``chip_pins``; return the files.

    ``memory_bytes`` and ``regions`` are what host memory needs (``chip/recording.py``).
    """
    header = folder / PLAIN_SIZES
    header.write_text(plain_sizes(port_widths(netlist, CHIP), memory_bytes, regions))
    copies = [folder / name for name in _PLAYER]
    for copy in copies:
        copy.write_text(source(copy.name).read_text())
    return [header, *copies]


def plain_sizes(widths: Mapping[str, int], memory_bytes: int, regions: int) -> str:
    """The header of the player and its host memory, for a chip whose ports have so many bits."""
    tiles = widths["tiles2monitor_idle"]
    harness = HarnessDescription()
    sizes = {
        "DATA_BYTES": widths["m_axi_wstrb"],
        "ADDRESS_BITS": widths["m_axi_araddr"],
        "COUNT_BITS": widths["dma2core_instruction_count"],
        "INSTRUCTION_BITS": widths["core2units_instruction_bits"],
        "TILES": widths["core2units_instruction_tiles"],
        "BUILT_TILES": tiles,
        "TILE_UNITS": widths["tiles2monitor_units"] // tiles,
        "SCALAR_UNITS": widths["units2monitor_idle"],
        "DONE_EVENTS": widths["dma2monitor_done_valid"],
        "MEMORY_LATENCY": harness.memory_latency,
        "MEMORY_REQUESTS": harness.memory_requests,
        "MEMORY_BYTES": memory_bytes,
        "REGIONS": regions,
    }
    lines = (f"`define PLAIN_{name} {value}\n" for name, value in sizes.items())
    return "// Generated for the recorded program.\n" + "".join(lines)


def port_widths(netlist: Path, module: str) -> dict[str, int]:
    """Bits of each port of a module of plain Verilog that yosys has written."""
    _, _, text = netlist.read_text().partition(f"module {module}(")
    body, _, _ = text.partition("endmodule")
    return {name: int(last or 0) + 1 for last, name in _PORT.findall(body)}


def _plain(folder: Path, top: str, names: Sequence[str]) -> Path:
    target = folder / f"{top}.v"
    plain_verilog([folder / name for name in names], Design(top), target)
    return target
