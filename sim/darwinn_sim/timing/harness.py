"""The description of the SystemVerilog harness, as far as its timing depends on it.

Every parameter carries its unit and the place in ``rtl/`` that it describes. Facts: docs/rtl.md.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields, replace


def _parameter(default: int, unit: str, source: str) -> int:
    value: int = field(default=default, metadata={"unit": unit, "source": source})
    return value


@dataclass(frozen=True)
class HarnessDescription:
    """Sizes and latencies of the DMA engine and of the host memory behind it."""

    data_bytes: int = _parameter(8, "bytes", "harness.sv DataBytes")
    burst_words: int = _parameter(16, "bus words", "harness.sv MaxBurst, dma_burst_limiter")
    boundary: int = _parameter(4096, "bytes", "dma_pkg.sv BurstBoundary")
    buffer_words: int = _parameter(32, "bus words", "harness.sv BufferBeats")
    fifo_depth: int = _parameter(16, "descriptors", "harness.sv FifoDepth")
    queue_depth: int = _parameter(16, "descriptors", "harness.sv QueueDepth")
    expected_transfers: int = _parameter(4, "descriptors", "read_stream.sv Transfers")
    outstanding_reads: int = _parameter(4, "bursts", "harness.sv OutstandingReads")
    outstanding_writes: int = _parameter(4, "bursts", "harness.sv OutstandingWrites")
    memory_latency: int = _parameter(4, "cycles", "host_memory.sv Latency")
    memory_requests: int = _parameter(4, "bursts", "host_memory.sv Requests")

    @property
    def output_bytes(self) -> int:
        """Bytes of output that wait in the engine: two of its longest bursts, rounded up to a
        power of two (``dma_writer.sv``, ``Capacity``; the burst limiter does not change it)."""
        return 1 << (2 * _LONGEST_BURST * self.data_bytes - 1).bit_length()

    def limited(self, words: int) -> HarnessDescription:
        """The same with ``dma_burst_limiter`` set to ``words``; 0 means no limit."""
        return replace(self, burst_words=min(words or self.burst_words, self.burst_words))

    def text(self) -> str:
        """The description as JSON, for another process."""
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> HarnessDescription:
        """Read what ``text`` has written."""
        return cls(**json.loads(text))

    def parameters(self) -> list[tuple[str, int, str, str]]:
        """Name, value, unit and source of every parameter."""
        return [
            (item.name, getattr(self, item.name), item.metadata["unit"], item.metadata["source"])
            for item in fields(self)
        ]


_LONGEST_BURST = 16
"""Words of the longest burst that the engine is built for (``harness.sv``, ``MaxBurst``)."""
