"""Registers that the SystemVerilog harness adds to those of the chip.

They replace the part that the harness leaves out (the page table's translation), and report errors
for which the chip's registers have no bits. Their offsets are free in the chip's table. Facts:
docs/rtl-host.md.
"""

from __future__ import annotations

from darwinn_sim.host.registers import Access, Register, RegisterField

HARNESS = "the harness; not a register of the chip"

DMA_ERRORS = (
    RegisterField("malformed_descriptor", 0, 1, "unknown tag, or fields that must be 0 are not"),
    RegisterField("read_response", 1, 1, "error response to a read burst"),
    RegisterField("write_response", 2, 1, "error response to a write burst"),
)
"""Fields of ``harness_dma_error``."""

HARNESS_REGISTERS: tuple[Register, ...] = (
    Register(
        "harness_window_base",
        0x4F000,
        "first device address that the harness can reach; it is bus address 0",
        HARNESS,
        reset=1 << 63,
    ),
    Register(
        "harness_window_size",
        0x4F008,
        "bytes that the harness can reach, from the first on",
        HARNESS,
        reset=1 << 32,
    ),
    Register(
        "harness_dma_error",
        0x4F010,
        "errors of the DMA engine that the chip's error register has no bit for",
        HARNESS,
        access=Access.WRITE_ZERO_TO_CLEAR,
        fields=DMA_ERRORS,
    ),
    Register(
        "harness_dma_error_descriptor",
        0x4F018,
        "the last descriptor with an error: its place in the order of all, from 0 after reset",
        HARNESS,
        access=Access.READ_ONLY,
    ),
    Register(
        "harness_dma_completed",
        0x4F020,
        "descriptors completed since reset, fences and interrupts included, bad ones not",
        HARNESS,
        access=Access.READ_ONLY,
    ),
)
"""Every register of the harness that the chip does not have."""
