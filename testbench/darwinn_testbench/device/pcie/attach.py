"""A simulated chip on a PCIe bus."""

from __future__ import annotations

from collections.abc import Callable

from darwinn_sim.device.chip import behind_pcie
from darwinn_sim.pcie.function import PcieFunction, Seen


def new_function(watchers: tuple[Callable[[Seen], None], ...] = ()) -> PcieFunction:
    """The device after power-up, without anything that computes yet.

    Args:
        watchers: see what passes on the bus.
    """
    return PcieFunction(behind_pcie, watchers=watchers)
