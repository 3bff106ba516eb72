"""Waves: the simulator's dump, with a save file that shows its signals in named groups.

The save file (``.gtkw``) beside a dump opens it in GTKWave; Surfer reads the dump itself. Every
simulation leaves both in the folder that ``DARWINN_RTL_WAVES`` names.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path


def _channel(prefix: str, *payload: str) -> tuple[str, ...]:
    return tuple(f"{prefix}{name}" for name in ("valid", "ready", *payload))


GROUPS: dict[str, tuple[str, ...]] = {
    "clock and reset": ("clk", "rst_n", "go", "running", "cycle"),
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
    "read streams": _channel("stream_", "count", "data"),
    "instruction stream": _channel("dma2core_instruction_", "count", "data"),
    "input stream": _channel("dma2input_activation_", "count", "data"),
    "parameter stream": _channel("dma2input_parameter_", "count", "data"),
    "output stream": _channel("outfeed2dma_output_", "count", "data"),
    "AXI read address": _channel("m_axi_ar", "id", "addr", "len"),
    "AXI read data": _channel("m_axi_r", "id", "data", "resp", "last"),
    "AXI write address": _channel("m_axi_aw", "addr", "len"),
    "AXI write data": _channel("m_axi_w", "data", "strb", "last"),
    "AXI write response": _channel("m_axi_b", "resp"),
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
    """Where the waves of a simulation in folder ``work`` are kept."""
    return Path(os.environ.get(WAVES_VARIABLE, work)) / f"{top}-{test}.fst"


def keep_waves(work: Path, top: str, test: str) -> None:
    """Move the dump of the simulation in ``work`` to where it is kept, with its save file."""
    target = kept_waves(work, top, test)
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(work / "dump.fst", target)
    write_save_file(target, top)


def write_save_file(dump: Path, top: str) -> Path:
    """Write the GTKWave save file of ``dump``, a file beside it; return its path."""
    from pywellen import Waveform
    from vcd.gtkw import GTKWSave

    widths = {variable.full_name: variable.bitwidth for variable in Waveform(str(dump)).all_vars()}
    path = dump.with_suffix(".gtkw")
    with path.open("w") as file:
        save = GTKWSave(file)
        save.dumpfile(dump.name, abspath=False)
        for group, signals in GROUPS.items():
            present = [name for signal in signals if (name := f"{top}.{signal}") in widths]
            if present:
                with save.group(group):
                    for name in present:
                        width = widths[name]
                        save.trace(name if width == 1 else f"{name}[{width - 1}:0]")
    return path
