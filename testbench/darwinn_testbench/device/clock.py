"""Which clock the time-outs of a client go by."""

from __future__ import annotations

import time
from collections.abc import Callable
from enum import StrEnum

from darwinn_sim.usb.function import UsbFunction

LOOK_SECONDS = 0.02
"""Between two looks at a clock that may stand still: who waits for it does not spin meanwhile."""


class Clock(StrEnum):
    """Clocks of time-outs."""

    CHIP = "chip"
    """It stands still while the simulation computes: to the client, programs take the time that
    results are held back (``--timed``), else none."""
    WALL = "wall"
    """That of this machine."""


def seconds_of(clock: Clock, function: UsbFunction) -> Callable[[], float]:
    """The clock, in seconds, of a client of a device."""
    return function.computing.idle_seconds if clock is Clock.CHIP else time.monotonic
