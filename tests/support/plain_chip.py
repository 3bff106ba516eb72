"""Chips in plain Verilog that have the ports of the real one and nothing within, for the player."""

from __future__ import annotations

from pathlib import Path

from darwinn_rtl.export import CHIP, export_player
from second_simulator import PORT, compiled, header_of

PLAYER = "plain_player"

MEMORY_BYTES, REGIONS = 1024, 3

_WIDE = {
    **dict.fromkeys(("s_axil_awaddr", "s_axil_araddr"), 19),
    **dict.fromkeys(("s_axil_awprot", "s_axil_arprot"), 3),
    **dict.fromkeys(("s_axil_wdata", "s_axil_rdata", "core2dma_descriptor_address"), 64),
    **dict.fromkeys(("s_axil_bresp", "s_axil_rresp", "tiles2monitor_idle"), 2),
    "s_axil_wstrb": 8,
    "dma2host_interrupt": 6,
    **dict.fromkeys(("queue2core_chunk_size", "core2units_instruction_base"), 32),
    **dict.fromkeys(("core2dma_descriptor_size", "core2output_word_data"), 32),
    "core2units_instruction_tiles": 5,
    "core2units_instruction_bits": 70,
    "core2dma_descriptor_tag": 4,
    **dict.fromkeys(("dma2core_instruction_data", "m_axi_rdata", "m_axi_wdata"), 64),
    **dict.fromkeys(("dma2core_instruction_count", "units2monitor_idle"), 4),
    "tiles2monitor_units": 2 * 8,
    "dma2monitor_start_outcome": 3,
    "dma2monitor_done_valid": 5,
    **dict.fromkeys(("m_axi_arid", "m_axi_rid", "m_axi_awid", "m_axi_bid"), 2),
    **dict.fromkeys(("m_axi_rresp", "m_axi_bresp", "m_axi_arburst", "m_axi_awburst"), 2),
    **dict.fromkeys(("m_axi_araddr", "m_axi_awaddr"), 40),
    **dict.fromkeys(("m_axi_arlen", "m_axi_awlen", "m_axi_wstrb"), 8),
    **dict.fromkeys(("m_axi_arsize", "m_axi_awsize"), 3),
}
"""Bits of the ports that have more than one here and that the player knows."""


def ports(way: str) -> dict[str, int]:
    """Bits of each port that is an ``input`` or an ``output``, but of the clock."""
    found = PORT.findall(header_of(CHIP))
    return {name: _WIDE.get(name, 1) for is_way, name in found if is_way == way and name != "clk"}


def compiled_player(body: str, folder: Path) -> Path:
    """The player beside a chip with this body and two words of scalar memory, compiled."""
    inputs, outputs = ports("input"), ports("output")
    declared = {
        **{name: f"input [{width - 1}:0]" for name, width in inputs.items()},
        **{name: f"output [{width - 1}:0]" for name, width in outputs.items()},
    }
    stub = folder / f"{CHIP}.v"
    stub.write_text(
        "module words; reg [31:0] words[0:1]; endmodule\n"
        "module core; words memory(); endmodule\n"
        f"module {CHIP}({', '.join(['clk', *declared])});\n  input clk;\n"
        + "".join(f"  {declaration} {name};\n" for name, declaration in declared.items())
        + f"  core chip();\n{body}endmodule\n"
    )
    export_player(folder, stub, memory_bytes=MEMORY_BYTES, regions=REGIONS)
    return compiled(PLAYER, sorted(folder.glob("*.v")), folder)
