"""Chips and host links of random rates and latencies: all of them are legal timings."""

from __future__ import annotations

from random import Random

from darwinn_sim import timing
from darwinn_sim.timing import ChipDescription, HostLink
from darwinn_sim.timing.description import Confidence, Quantity

_RANGES = {
    "ring_bytes_per_cycle": (4, 8, 16, 32, 64, 128, 256),
    "ring_row_cycles": (1, 2, 7, 64, 96, 300),
    "ring_sender_waits": (0, 1),
    "ring_room_at_once": (0, 1),
    "narrow_to_wide_words_per_cycle": (1, 2, 3, 64),
    "wide_to_narrow_words_per_cycle": (1, 2, 3, 64),
    "mesh_words_per_cycle": (1, 2, 4),
    "result_words_per_cycle": (1, 2, 16),
    "result_queue_words": (16, 20, 64, 200),
    "result_cycles": (0, 1, 20),
    "drain_cycles": (0, 1, 30),
    "row_write_cycles": (0, 1),
    "instruction_start": (0, 1, 40),
    "scalar_unit_start": (0, 1, 40),
    "link_word_bytes": (8, 40, 64),
    "reads_apart": (0, 1),
    "read_cycles": (0, 1, 100, 2000),
    "write_cycles": (0, 5, 500),
    "write_gap_cycles": (0, 2, 30),
    "unanswered_writes": (1, 4),
    "interrupt_cycles": (1, 100),
    "write_burst_bytes": (1, 24, 128),
    "scalar_bundle_cycles": (1, 2, 50),
}
"""Values of rates and latencies: no good program depends on them. Sizes of queues are not among
them: a program may rely on there being room."""


def chip_of(**values: int) -> ChipDescription:
    """beagle-max with other values."""
    known = timing.chip_description("beagle-max")
    changed = {name: Quantity(value, "test", Confidence.LOW) for name, value in values.items()}
    return ChipDescription(**{**vars(known), **changed})


def host_of(into: float, out: float, *, on_request: bool) -> HostLink:
    """A link with ``into`` and ``out`` bytes a cycle at 500 MHz."""
    known = timing.host_link("usb3")
    values = (into * 5e8, out * 5e8, 0.0, float(on_request))
    names = ("bytes_per_second_in", "bytes_per_second_out", "fixed_seconds", "on_request")
    changed = {
        name: Quantity(value, "test", Confidence.LOW)
        for name, value in zip(names, values, strict=True)
    }
    return HostLink(**{**vars(known), **changed})


def random_chip(random: Random, **sizes: int) -> ChipDescription:
    """A chip whose rates and latencies are drawn."""
    return chip_of(**{name: random.choice(values) for name, values in _RANGES.items()}, **sizes)


def random_link(random: Random) -> HostLink:
    """A link whose bandwidths are drawn, of either kind."""
    into, out = (random.choice((0.3, 1.7, 13.7, 64)) for _ in range(2))
    return host_of(into, out, on_request=random.random() < 0.5)
