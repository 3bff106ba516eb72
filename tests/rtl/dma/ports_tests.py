"""Whoever is around the harness breaks a rule of its port, one after another; the simulation goes
on behind that, if it is told to."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import cocotb
from cocotb.triggers import RisingEdge
from darwinn_rtl.bench import Bench
from darwinn_sim.isa.codes import DescriptorTag

LIMIT = 400
"""Cycles after which whoever takes something has no more room."""

VALIDS = (
    *("s_axil_aw", "s_axil_w", "s_axil_ar", "m_axi_r", "m_axi_b"),
    *("core2dma_descriptor_", "core2queue_chunk_", "outfeed2dma_output_"),
)
READYS = (
    *("s_axil_b", "s_axil_r", "m_axi_ar", "m_axi_aw", "m_axi_w"),
    *("dma2core_instruction_", "dma2input_activation_", "dma2input_parameter_"),
)


async def offers(dut: Any, port: str, **fields: int) -> None:
    """Offer something for a cycle."""
    for name, value in {**fields, "valid": 1}.items():
        getattr(dut, f"{port}{name}").value = value
    await RisingEdge(dut.clk)
    getattr(dut, f"{port}valid").value = 0


async def takes_back(dut: Any, port: str, **fields: int) -> None:
    """Offer something until there is no more room for it, and then no more."""
    for name, value in {**fields, "valid": 1}.items():
        getattr(dut, f"{port}{name}").value = value
    for _ in range(LIMIT):
        await RisingEdge(dut.clk)
        if not getattr(dut, f"{port}ready").value:
            break
    else:
        raise AssertionError(f"{port} takes all")
    # It may have been taken at this edge; at the next one it is not.
    await RisingEdge(dut.clk)
    getattr(dut, f"{port}valid").value = 0


BREAKS: tuple[Callable[[Any], Awaitable[None]], ...] = (
    *(lambda dut, of=of: offers(dut, "m_axi_r", id=of, last=1, resp=0, data=0) for of in range(4)),
    *(lambda dut, of=of: offers(dut, "m_axi_b", id=of, resp=0) for of in range(4)),
    lambda dut: takes_back(dut, "s_axil_ar", addr=0x4F000, prot=0),
    lambda dut: takes_back(
        dut,
        "core2dma_descriptor_",
        fence=0,
        tag=int(DescriptorTag.INPUT),
        size=8,
        address=1 << 63,
    ),
    lambda dut: takes_back(dut, "outfeed2dma_output_", data=7, count=1),
)


@cocotb.test()
async def all_rules(dut: Any) -> None:
    """Each of them, from reset on."""
    bench = Bench(dut)
    for port in VALIDS:
        getattr(dut, f"{port}valid").value = 0
    for port in READYS:
        getattr(dut, f"{port}ready").value = 0
    bench.start()
    for breaks in BREAKS:
        await bench.reset()
        await breaks(dut)
        await bench.cycles(3)
