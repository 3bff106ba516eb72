"""What an inference takes of energy on a USB stick: an estimate from published power, with bounds.

No public measurement of an inference's energy was at hand, so that nothing is calibrated: the
estimate follows from figures of power alone. Of other boards there are none, and so no estimate.
"""

from __future__ import annotations

from dataclasses import dataclass

from darwinn_sim import timing
from darwinn_sim.timing import Timing

from darwinn_testbench.report import significant

STICKS = ("usb2", "usb3")
"""Host links of USB sticks, of which power is published."""


@dataclass(frozen=True)
class Power:
    """A published figure of power, in watts of the stick's 5 V."""

    watts: float
    source: str


AWAKE = Power(0.95, "0.9 to 1.0 W awake without an inference, by shunt (google-coral/edgetpu 109)")
LEAST = Power(0.9, AWAKE.source)
PEAK = Power(2.0, "2 W at 4 TOPS (Coral USB Accelerator datasheet 1.4)")
MOST = Power(4.5, "peak current of 900 mA at 5 V (Coral USB Accelerator datasheet)")
PEAK_PRODUCTS = 2e12
"""Products a second of 4 TOPS: each is a multiplication and an addition."""

SOURCES = tuple(dict.fromkeys(each.source for each in (AWAKE, PEAK, MOST)))


@dataclass(frozen=True)
class Energy:
    """An estimate of an inference's energy on a USB stick, in millijoules, without its host.

    ``millijoules`` are the power of a stick that is awake for the whole time, and for each product
    what is left of the vendor's figure at peak. The true value is between ``least_millijoules``, a
    stick that is only awake, and ``most_millijoules``, one at its peak current all the time.
    ``sources`` are those of the figures.
    """

    millijoules: float
    least_millijoules: float
    most_millijoules: float
    sources: tuple[str, ...] = SOURCES

    def __str__(self) -> str:
        given = (self.millijoules, self.least_millijoules, self.most_millijoules)
        middle, least, most = map(significant, given)
        return (
            f"{middle} mJ of a USB stick, a rough estimate ({least} to {most}; darwinn docs "
            "timing#energy)"
        )


def energy_of(timed: Timing) -> Energy | None:
    """The energy of a run; None if it is not at a USB stick's link."""
    if timed.host is None or timed.host.name not in STICKS:
        return None
    products = sum(layer.products for layer in timed.layers)
    each = (PEAK.watts - AWAKE.watts) / PEAK_PRODUCTS
    least, most = timing.interval(timed)
    return Energy(
        millijoules=1e3 * (AWAKE.watts * timed.seconds + each * products),
        least_millijoules=1e3 * LEAST.watts * least,
        most_millijoules=1e3 * MOST.watts * most,
    )
