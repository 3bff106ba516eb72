"""Waves: the simulator's dump, with a save file that shows its signals in named groups.

The save file (``.gtkw``) beside a dump opens it in GTKWave; Surfer reads the dump itself. Every
simulation leaves both in the folder that ``DARWINN_RTL_WAVES`` names.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from darwinn_sim.kernel.state import UNIT_NAMES
from darwinn_sim.machine.diagnosis import SCALAR_FLAG_NAMES, TILE_FLAG_NAMES


def _channel(prefix: str, *payload: str) -> tuple[str, ...]:
    return tuple(f"{prefix}{name}" for name in ("valid", "ready", *payload))


GROUPS: dict[str, tuple[str, ...]] = {
    "clock and reset": ("clk", "rst_n"),
    "descriptors": _channel("core2dma_descriptor_", "fence", "tag", "size", "address"),
    "beginning and completion": (
        *(f"dma2monitor_start_{name}" for name in ("valid", "index", "outcome")),
        *(f"dma2monitor_done_{name}" for name in ("valid", "index")),
    ),
    "interrupts": (
        "dma2interrupts_raise_valid",
        "dma2interrupts_raise_data",
        "dma2host_interrupt",
    ),
    "instruction stream": _channel("dma2core_instruction_", "count", "data"),
    "input stream": _channel("dma2input_activation_", "count", "data"),
    "parameter stream": _channel("dma2input_parameter_", "count", "data"),
    "output stream": _channel("outfeed2dma_output_", "count", "data"),
    "AXI read address": _channel("m_axi_read.ar", "id", "addr", "len"),
    "AXI read data": _channel("m_axi_read.r", "id", "data", "resp", "last"),
    "AXI write address": _channel("m_axi_write.aw", "addr", "len"),
    "AXI write data": _channel("m_axi_write.w", "data", "strb", "last"),
    "AXI write response": _channel("m_axi_write.b", "resp"),
    "registers": (
        *_channel("s_axil_aw", "addr"),
        *_channel("s_axil_w", "data"),
        *_channel("s_axil_b", "resp"),
        *_channel("s_axil_ar", "addr"),
        *_channel("s_axil_r", "data", "resp"),
    ),
}
"""Groups of a save file with signals of the top module; those that a top lacks are left out."""


WAVES_VARIABLE = "DARWINN_RTL_WAVES"
"""Environment variable: folder for the waves of every simulation."""


def kept_waves(work: Path, top: str, test: str) -> Path:
    """The file that keeps the waves of a simulation in folder ``work``."""
    return Path(os.environ.get(WAVES_VARIABLE, work)) / f"{top}-{test}.fst"


def unfinished(dump: Path) -> Path:
    """The file for waves until they are complete, so that a reader never sees half of them."""
    return dump.with_name(f".{dump.name}.{os.getpid()}")


def keep_waves(work: Path, top: str, test: str) -> None:
    """Move the dump of the simulation in ``work`` to where it is kept, with its save file."""
    target = kept_waves(work, top, test)
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(work / "dump.fst", target)
    write_save_file(target, top)


def write_save_file(dump: Path, top: str) -> Path:
    """Write the GTKWave save file of ``dump``, a file beside it; return its path."""
    named = {
        group: {f"{top}.{signal}": "" for signal in signals} for group, signals in GROUPS.items()
    }
    return _write_groups(dump, named)


CHIP_GROUPS: dict[str, tuple[str, ...]] = {
    "clock and reset": ("clk", "rst_n"),
    "registers": GROUPS["registers"],
    "instruction queue of the host": (
        "queue2core_chunk_waits",
        *_channel("core2queue_chunk_"),
        "queue2core_chunk_size",
        "chip.host.queue_enabled",
        "chip.host.queue2monitor_idle",
    ),
    "instructions handed over": _channel(
        "core2units_instruction_", "tiles", "base_valid", "base", "bits"
    ),
    "instruction queues": tuple(
        f"chip.core2{unit}_instruction_{what}"
        for unit in ("activation", "parameter", "infeed", "outfeed", "fence", "tiles")
        for what in ("valid", "ready")
    ),
    **{
        group: tuple(f"{scope}{name}" for name in GROUPS[group])
        for group, scope in (
            ("descriptors", ""),
            ("beginning and completion", "chip.host."),
            ("interrupts", "chip.host."),
            ("instruction stream", "chip.host."),
            ("input stream", "chip.host."),
            ("parameter stream", "chip.host."),
            ("output stream", "chip.host."),
            ("AXI read address", ""),
            ("AXI read data", ""),
            ("AXI write address", ""),
            ("AXI write data", ""),
            ("AXI write response", ""),
        )
    },
    "ring bus": (
        *_channel("chip.infeed2ring_row_"),
        "chip.tiles2ring_row_valid",
        "chip.tiles2ring_row_ready",
        *_channel("chip.ring2outfeed_row_"),
        "chip.ring2tiles_row_valid",
        "chip.ring2tiles_row_ready",
        "chip.ring_words",
        "chip.ring2tiles_token_valid",
    ),
    "units of the scalar core (idle)": ("units2monitor_idle",),
}
"""Groups of the whole chip, below ``chip_player``; then come the flags, and each tile."""


def write_chip_save_file(dump: Path, tiles: int) -> Path:
    """Write the save file of a dump of the whole chip: its groups, then one for each tile."""
    top = "chip_player"
    groups = {
        group: {f"{top}.{signal}": "" for signal in signals}
        for group, signals in CHIP_GROUPS.items()
    }
    groups["flags of the scalar core"] = _named(f"{top}.scalar_flags", SCALAR_FLAG_NAMES)
    for tile in range(tiles):
        scope = f"{top}.gen_tile_view[{tile}]"
        groups[f"tile {tile}"] = {
            **_named(f"{scope}.idle", [f"{unit} idle" for unit in UNIT_NAMES]),
            **_named(f"{scope}.flags", [f"{flag} flag" for flag in TILE_FLAG_NAMES]),
        }
    return _write_groups(dump, groups)


def _named(array: str, names: Sequence[str]) -> dict[str, str]:
    """The elements of an array, each with its shown name."""
    return {f"{array}.[{number}]": name for number, name in enumerate(names)}


def _write_groups(dump: Path, groups: Mapping[str, Mapping[str, str]]) -> Path:
    """Write the save file: each group has signals by full name, shown under that or another name.

    Signals that the dump lacks are left out.
    """
    from pywellen import Waveform
    from vcd.gtkw import GTKWSave

    widths = {variable.full_name: variable.bitwidth for variable in Waveform(str(dump)).all_vars()}
    path = dump.with_suffix(".gtkw")
    with path.open("w") as file:
        save = GTKWSave(file)
        save.dumpfile(dump.name, abspath=False)
        for group, signals in groups.items():
            present = {name: shown for name, shown in signals.items() if name in widths}
            if present:
                with save.group(group, closed=group.startswith("tile ")):
                    for name, shown in present.items():
                        width = widths[name]
                        full = name if width == 1 else f"{name}[{width - 1}:0]"
                        save.trace(full, alias=shown or None)
    return path
