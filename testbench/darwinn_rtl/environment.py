"""Base classes of the pyuvm environments: agents, monitors, and the life of a test."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import cocotb
from cocotb.triggers import RisingEdge
from pyuvm import (
    ConfigDB,
    uvm_agent,
    uvm_analysis_port,
    uvm_component,
    uvm_driver,
    uvm_env,
    uvm_monitor,
    uvm_sequencer,
    uvm_subscriber,
    uvm_test,
)

from darwinn_rtl.bench import Bench


class SequencedAgent(uvm_agent):
    """A sequencer and the driver that it feeds."""

    driver_class: ClassVar[type[uvm_driver]]

    def build_phase(self) -> None:
        """Create the parts."""
        self.sequencer = uvm_sequencer.create("sequencer", self)
        self.driver = self.driver_class.create("driver", self)

    def connect_phase(self) -> None:
        """Connect the driver to the sequencer."""
        self.driver.seq_item_port.connect(self.sequencer.seq_item_export)


class EventMonitor(uvm_monitor):
    """Announces on ``events``, in order, the events that a subclass sees in cycles outside
    reset."""

    def build_phase(self) -> None:
        """Create the port."""
        self.bench: Bench = ConfigDB().get(self, "", "BENCH")
        self.events = uvm_analysis_port("events", self)

    async def run_phase(self) -> None:
        """Watch every cycle."""
        edge = RisingEdge(self.bench.clk)
        while True:
            await edge
            if not self.bench.in_reset:
                self.watch()

    def watch(self) -> None:
        """Announce the events of this cycle."""
        raise NotImplementedError

    def announce(self, event: Any) -> None:
        """Announce it to every listener, and keep it for the message of a time-out."""
        self.bench.note(str(event))
        self.events.write(event)


class Subscriber(uvm_subscriber):
    """Passes each announced event to a function at once, so that a mismatch stops the run there."""

    def __init__(self, name: str, parent: uvm_component, take: Callable[[Any], None]) -> None:
        super().__init__(name, parent)
        self._take = take

    def write(self, tt: Any) -> None:
        """Pass ``tt`` on."""
        self._take(tt)


class EnvironmentTest(uvm_test):
    """Builds the environment; a subclass describes the test in ``scenario``."""

    environment_class: ClassVar[type[uvm_env]]

    def build_phase(self) -> None:
        """Create bench and environment."""
        self.bench = Bench(cocotb.top)
        ConfigDB().set(None, "*", "BENCH", self.bench)
        self.environment = self.environment_class.create("environment", self)

    async def run_phase(self) -> None:
        """Start the clock and play the scenario."""
        self.raise_objection()
        self.bench.start()
        await self.scenario(self.environment)
        self.drop_objection()

    async def scenario(self, environment: Any) -> None:
        """The test itself."""
        raise NotImplementedError
