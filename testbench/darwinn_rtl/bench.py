"""Clock, reset and bounded waits of a simulation; every component of an environment shares one."""

from __future__ import annotations

import ctypes
import logging
import os
from collections import deque
from collections.abc import Callable
from random import Random
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.handle import Immediate
from cocotb.triggers import RisingEdge, Timer
from cocotb.utils import get_sim_steps

from darwinn_rtl.bounded import CYCLES_VARIABLE

PERIOD_NS = 2
"""Clock period; only cycles count."""

_MOST_CYCLES = 1 << 23

LAST_EVENTS = 40
"""How many of the latest events a time-out shows."""


class WaitTimeout(AssertionError):
    """A bounded wait expired, or a test took too many cycles."""


class Bench:
    """The design under test with its clock.

    Args:
        dut: the top module, with ports ``clk`` and ``rst_n``.

    ``in_reset`` is True while reset is on: components then take and give nothing. ``random`` is
    seeded by the run's seed alone.
    """

    def __init__(self, dut: Any) -> None:
        self.dut = dut
        self.clk = dut.clk
        self.log = logging.getLogger("cocotb.bench")
        self.seed = int(os.environ["COCOTB_RANDOM_SEED"])
        self.random = Random(self.seed)
        self.in_reset = True
        self.cycle = 0
        self.events: deque[str] = deque(maxlen=LAST_EVENTS)
        # At once: a clock that happens to start at 1 would be an edge at time 0, before reset.
        dut.clk.value = Immediate(0)
        dut.rst_n.value = Immediate(0)

    def start(self, *, counting: bool = True) -> None:
        """Start the clock, and log the seed; a test that takes too many cycles fails.

        Without ``counting`` Python does not wake in every cycle, and ``cycle`` stays 0.
        """
        self.log.info("seed %d", self.seed)
        # The program around the simulation makes it, if it is ours: cocotb's takes two callbacks a
        # cycle.
        program = ctypes.CDLL(None)
        if hasattr(program, "simulation_clock"):
            half = get_sim_steps(PERIOD_NS // 2, "ns")
            program.simulation_clock(ctypes.c_uint64(half))
        else:
            Clock(self.clk, PERIOD_NS, "ns").start(start_high=False)
        if counting:
            cocotb.start_soon(self._count())
        cocotb.start_soon(self._end_after(int(os.environ.get(CYCLES_VARIABLE, _MOST_CYCLES))))

    async def _end_after(self, cycles: int) -> None:
        """Fail a test that awaits what never comes, without a bound of its own."""
        await Timer(cycles * PERIOD_NS, "ns")
        raise self._timeout(f"the test did not end within the {cycles} cycles of {CYCLES_VARIABLE}")

    async def _count(self) -> None:
        edge = RisingEdge(self.clk)
        while True:
            await edge
            self.cycle += 1

    def note(self, event: str) -> None:
        """Remember an event for the message of a time-out."""
        self.events.append(f"cycle {self.cycle}: {event}")

    async def cycles(self, count: int) -> None:
        """Wait for ``count`` clock edges."""
        edge = RisingEdge(self.clk)
        for _ in range(count):
            await edge

    async def reset(self, cycles: int = 3) -> None:
        """Reset the design for ``cycles`` cycles."""
        self.in_reset = True
        self.note("reset")
        self.dut.rst_n.value = 0
        await self.cycles(cycles)
        self.dut.rst_n.value = 1
        await self.cycles(1)
        self.in_reset = False
        await self.cycles(2)

    async def until(self, condition: Callable[[], bool], what: str, limit: int) -> None:
        """Wait until ``condition()``; after ``limit`` raise a ``WaitTimeout`` that names
        ``what``."""
        edge = RisingEdge(self.clk)
        for _ in range(limit):
            if condition():
                return
            await edge
        raise self._timeout(f"waited {limit} cycles for {what}")

    def _timeout(self, why: str) -> WaitTimeout:
        latest = "\n  ".join(self.events)
        return WaitTimeout(f"{why} (seed {self.seed}); last events:\n  {latest}")


def quiet(*loggers: logging.Logger) -> None:
    """Let third-party bus models report warnings and errors only."""
    for logger in loggers:
        logger.setLevel(logging.ERROR)
