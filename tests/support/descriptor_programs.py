"""Programs of chosen descriptors for the DMA engine."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

from darwinn_rtl.dma.descriptor_model import Descriptor, Window
from darwinn_rtl.dma.programs import GUARD_BYTES, MEMORY_BYTES, DescriptorProgram
from darwinn_sim.isa.codes import DescriptorTag

WINDOW = Window(1 << 63, MEMORY_BYTES - GUARD_BYTES)
"""The window of all of them."""


def program(random: Random, descriptors: list[Descriptor], **others: Any) -> DescriptorProgram:
    """A program of chosen descriptors, memory and output random."""
    size = sum(d.size for d in descriptors if d.is_data and d.tag == DescriptorTag.OUTPUT)
    return DescriptorProgram(
        descriptors, WINDOW, random.randbytes(MEMORY_BYTES), random.randbytes(size), **others
    )


POLLS = 200
"""Reads of a register that is awaited, at the most."""


async def becomes_paused(read: Callable[[str], Awaitable[int]], polls: int = POLLS) -> None:
    """Wait until DMA is paused; ``read`` gives the value of a register.

    Raises ``AssertionError`` if that does not come.
    """
    for _ in range(polls):
        if await read("dma_paused"):
            return
    raise AssertionError("dma_paused does not become 1")
