"""Descriptor programs on the harness, each compared with the descriptor model."""

from __future__ import annotations

import os

import pyuvm
from darwinn_rtl.coverage_report import keep_bins
from darwinn_rtl.dma import coverage
from darwinn_rtl.dma.environment import MAX_BURST, DmaEnvironment, DmaTest
from darwinn_rtl.dma.programs import ProgramGenerator

CLOSING_TRANSFERS = 12
"""Transfers in a program that is made for bins that no random program has hit."""

MOST_REFUSED = 20
"""Programs of refused descriptors that are tried for a tag or an outcome that is left."""


@pyuvm.test()
class RandomPrograms(DmaTest):
    """Bytes, order, completion and status of any program are those of the model."""

    async def scenario(self, environment: DmaEnvironment) -> None:
        generator = ProgramGenerator(self.bench.random, environment.memory.word_bytes, MAX_BURST)
        count = int(os.environ["DARWINN_PROGRAMS"])
        for number in range(count):
            self.bench.note(f"program {number}")
            await environment.run_program(generator.program())
        if os.environ.get("DARWINN_COMPLETE_COVERAGE"):
            count += await self.close_coverage(environment, generator)
        self.bench.log.info("%d programs in %d cycles", count, self.bench.cycle)
        keep_bins("DMA engine", coverage.bins())

    async def close_coverage(self, environment: DmaEnvironment, generator: ProgramGenerator) -> int:
        """Programs made for the bins that chance has left out; then none may be left."""
        extra = 0
        for pressure in (False, True):
            left = [s for s in coverage.missing_transfers() if s.back_pressure is pressure]
            for first in range(0, len(left), CLOSING_TRANSFERS):
                program = generator.directed(left[first : first + CLOSING_TRANSFERS])
                await environment.run_program(program)
                extra += 1
        for _ in range(MOST_REFUSED):
            if not coverage.missing_bins(coverage.ITEMS):
                break
            await environment.run_program(generator.refused(CLOSING_TRANSFERS))
            extra += 1
        assert not coverage.missing_bins(coverage.ITEMS), (
            f"never hit: {coverage.missing_bins(coverage.ITEMS)}"
        )
        return extra
