"""Cycles of an executable: an event model of the chip and its host link, without data."""

from darwinn_sim.timing.bound import StaticBound, static_bound
from darwinn_sim.timing.description import (
    ChipDescription,
    HostLink,
    built_in,
    chip_description,
    host_link,
)
from darwinn_sim.timing.event_model import simulate, simulate_linked, simulate_program
from darwinn_sim.timing.interval import Shares, interval, interval_of, shares
from darwinn_sim.timing.output_copies import output_copies
from darwinn_sim.timing.result import SPAN, LayerTiming, TimedTransfer, Timing
from darwinn_sim.timing.stations import CHIP_STATION_NAMES, TILE_STATION_NAMES, Cause

__all__ = [
    "CHIP_STATION_NAMES",
    "SPAN",
    "TILE_STATION_NAMES",
    "Cause",
    "ChipDescription",
    "HostLink",
    "LayerTiming",
    "Shares",
    "StaticBound",
    "TimedTransfer",
    "Timing",
    "built_in",
    "chip_description",
    "host_link",
    "interval",
    "interval_of",
    "output_copies",
    "shares",
    "simulate",
    "simulate_linked",
    "simulate_program",
    "static_bound",
]
