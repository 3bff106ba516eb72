"""The description of the SystemVerilog harness, as far as the timing of its DMA depends on it.

``harness_pkg`` has the sizes that the RTL is built with. It is generated from this module and from
the harness's chip description (``chips/harness.toml``), which has the values that both need.
Facts: docs/rtl-dma.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from darwinn_sim.chips.description import ChipDescription, read_chip
from darwinn_sim.chips.selected import selected

NAME: Final = "harness"
"""The harness among chip descriptions, and its host link: a chip on this link is in the harness."""


def harness_chip() -> ChipDescription:
    """Times and queues of the RTL: those of the chip that this process simulates if it is in the
    harness, else those of ``harness``. The sizes of the chip are in ``chip_pkg``."""
    return selected() if selected().host == NAME else read_chip(NAME)


_CHIP: Final = harness_chip()
_WORD: Final = int(_CHIP.link_word_bytes.value)
_LONGEST_BURST: Final = int(_CHIP.write_burst_bytes.value) // _WORD
"""Words of the longest burst of the engine."""


@dataclass(frozen=True)
class HarnessDescription:
    """Sizes and latencies of the DMA engine and of the host memory behind it.

    ``data_bytes`` are the bytes of a bus word. Bursts and each read stream's buffer are counted in
    words; a burst is at most ``burst_words`` long and crosses no multiple of ``boundary`` bytes
    (AMBA AXI A3.4.1). Queues are counted in descriptors: the queue before the engine, the one
    before each stream, and the descriptors whose words may be pending together. ``memory_latency``
    is in cycles, from the last word of a request to the first of its answer. Memory holds
    ``memory_requests`` bursts.
    """

    data_bytes: int = _WORD
    burst_words: int = _LONGEST_BURST
    boundary: int = 4096
    buffer_words: int = 32
    fifo_depth: int = 16
    queue_depth: int = 16
    expected_transfers: int = 4
    outstanding_reads: int = 4
    outstanding_writes: int = int(_CHIP.unanswered_writes.value)
    memory_latency: int = 4
    memory_requests: int = 4

    @property
    def output_bytes(self) -> int:
        """Bytes of output that wait in the engine: two of its longest bursts, rounded up to a
        power of two (``dma_writer.sv``, ``Capacity``; the burst limiter does not change it)."""
        return 1 << (2 * _LONGEST_BURST * self.data_bytes - 1).bit_length()

    def limited(self, words: int) -> HarnessDescription:
        """The same with ``dma_burst_limiter`` set to ``words``; 0 means no limit."""
        return replace(self, burst_words=min(words or self.burst_words, self.burst_words))
