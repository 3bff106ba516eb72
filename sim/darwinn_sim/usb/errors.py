"""What can be wrong with what a host sends."""

from __future__ import annotations

from darwinn_sim.errors import SimulationError


class Stall(Exception):
    """A request that the device does not know, or not now: the host sees a stalled endpoint."""


class ProtocolFault(SimulationError):
    """Bytes on a bulk endpoint that are no message for the chip."""
