"""Where the time of a request lies, nine times out of ten: what follows from the parameters.

Each parameter of the host has an interval. What of the time depends on it changes with it; what the
parameters leave open comes together as independent errors do, or as the host's ``correlations``
say. How much depends on the link's rates
is told from one simulation: what was waited for the link, at most as long as its transfers took.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from darwinn_sim.host.dma_trace import TransferDirection, TransferKind
from darwinn_sim.timing import stations
from darwinn_sim.timing.description import HostLink, Quantity
from darwinn_sim.timing.result import Timing
from darwinn_sim.timing.stations import Cause

_FOR_DATA = (Cause.PARAMETERS, Cause.ACTIVATIONS, Cause.RING, Cause.HOST_LINK)
"""What a tensor unit waits for while data that come from the host are on their way."""


@dataclass(frozen=True, slots=True)
class Shares:
    """Seconds of a request: on the chip; exposed transfers in and out, during which the chip does
    nothing else; copies of outputs; the host's fixed cost."""

    chip: float
    inward: float
    outward: float
    copies: float
    fixed: float

    @property
    def host(self) -> float:
        """Seconds that the chip is not the reason of."""
        return self.inward + self.outward + self.copies + self.fixed


def shares(timed: Timing) -> Shares:
    """What the time of a request is spent on."""
    clock = timed.chip.clock.value
    exposed = _exposed(timed, timed.host) if timed.host else (0.0, 0.0)
    inward, outward = (cycles / clock for cycles in exposed)
    chip = timed.device_seconds - inward - outward
    return Shares(chip, inward, outward, timed.copy_seconds, timed.fixed_seconds)


def interval(timed: Timing) -> tuple[float, float]:
    """Least and most seconds of a request, nine times out of ten."""
    seconds = timed.seconds
    if timed.host is None:
        return seconds, seconds
    return interval_of(shares(timed), timed.host)


def interval_of(spent: Shares, host: HostLink) -> tuple[float, float]:
    """The same, of a time that is spent on this."""
    seconds = spent.chip + spent.host
    low, high = (_deviation(spent, host, seconds, end) for end in (_shortest, _longest))
    return max(seconds - low, 0.0), seconds + high


_End = Callable[[Quantity, bool], float]


def _deviation(spent: Shares, host: HostLink, seconds: float, end: _End) -> float:
    """How far the time may be from the predicted one, on one side."""
    parts = {
        "clock": spent.chip * (end(host.clock, True) - 1),
        "bytes_per_second_in": spent.inward * (end(host.bytes_per_second_in, True) - 1),
        "bytes_per_second_out": spent.outward * (end(host.bytes_per_second_out, True) - 1),
        "output_copy_seconds": spent.copies * (end(host.output_copy_seconds, False) - 1),
        "fixed_seconds": spent.fixed * (end(host.fixed_seconds, False) - 1),
        "scatter": seconds * host.scatter.value,
    }
    together = sum(
        2 * correlation * parts.get(one, 0) * parts.get(other, 0)
        for one, other, correlation in host.correlations
    )
    return math.sqrt(max(sum(part * part for part in parts.values()) + together, 0))


def _shortest(quantity: Quantity, is_rate: bool) -> float:
    """The factor of a part of the time at that end of a parameter's interval that makes it least;
    a rate divides, anything else multiplies."""
    least, most = quantity.interval
    return _factor(quantity.value, most if is_rate else least, is_rate)


def _longest(quantity: Quantity, is_rate: bool) -> float:
    """The same, at the other end."""
    least, most = quantity.interval
    return _factor(quantity.value, least if is_rate else most, is_rate)


def _factor(value: float, end: float, is_rate: bool) -> float:
    if not value or not end:
        return 1.0
    return value / end if is_rate else end / value


def _exposed(timed: Timing, host: HostLink) -> tuple[float, float]:
    """Cycles of transfers from and to the host during which the chip only waits for them, at most.

    Instructions are loaded before anything is executed. What tensor units wait for data is at most
    the time in which the link brings data; the rest, and what follows the last tensor instruction,
    at most that in which it takes output.
    """
    bytes_of = dict.fromkeys(TransferKind, 0)
    arrived = 0
    for each in timed.transfers:
        bytes_of[each.kind] += each.size
        if each.direction is TransferDirection.INFEED:
            arrived = max(arrived, each.end)
    clock = timed.chip.clock.value
    inwards, outwards = (
        clock / rate.value for rate in (host.bytes_per_second_in, host.bytes_per_second_out)
    )
    usage = timed.tile_usage[:, stations.TENSOR].mean(axis=0)
    waited = float(usage[list(_FOR_DATA)].sum())
    loading = min(bytes_of[TransferKind.INSTRUCTION] * inwards, timed.cycles)
    data = (bytes_of[TransferKind.INPUT] + bytes_of[TransferKind.PARAMETER]) * inwards
    inward = min(loading + min(waited, data), timed.cycles)
    computed = max((layer.end for layer in timed.layers), default=0)
    behind = max(timed.cycles - max(computed, arrived), 0) + max(waited - data, 0)
    outward = min(bytes_of[TransferKind.OUTPUT] * outwards, behind, timed.cycles - inward)
    return inward, outward
