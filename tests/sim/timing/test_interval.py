"""Where a time lies: it follows from the intervals of the host's parameters, and they alone."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from darwinn_formats.darwinn import Executable
from darwinn_sim import timing
from darwinn_sim.timing.description import Confidence, HostLink, Quantity
from darwinn_testbench.compiler.network import random_convolution, random_dense
from darwinn_testbench.compiler.package import compile_network

PROGRAMS: dict[str, Executable] = {
    name: next(iter(packed.executables))
    for name, packed in {
        "dense": compile_network(random_dense([60, 200, 10], 0)),
        "large output": compile_network(random_convolution(4, 12, 12, 24, 1)),
        "large input": compile_network(random_dense([900, 8], 2)),
    }.items()
}
CHIP = timing.chip_description("beagle-max")
SURE = replace(
    timing.host_link("usb3"),
    **{
        name: replace(getattr(timing.host_link("usb3"), name), least=None, most=None)
        for name in (
            "bytes_per_second_in",
            "bytes_per_second_out",
            "fixed_seconds",
            "output_copy_seconds",
        )
    },
    scatter=Quantity(0, "a test", Confidence.LOW),
)
"""A host without any doubt."""


def doubted(name: str, factor: float) -> HostLink:
    quantity = getattr(SURE, name)
    ends = (quantity.value / factor, quantity.value * factor)
    return replace(SURE, **{name: replace(quantity, least=ends[0], most=ends[1])})


def at(name: str, factor: float) -> HostLink:
    quantity = getattr(SURE, name)
    return replace(SURE, **{name: replace(quantity, value=quantity.value * factor)})


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_doubt_leaves_no_interval(name: str) -> None:
    timed = timing.simulate(PROGRAMS[name], CHIP, SURE)
    assert timing.interval(timed) == pytest.approx((timed.seconds, timed.seconds))
    free = timing.simulate(PROGRAMS[name], CHIP, None)
    assert timing.interval(free) == (free.seconds, free.seconds)
    assert timing.shares(free).host == 0


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_shares_are_the_time(name: str) -> None:
    timed = timing.simulate(PROGRAMS[name], CHIP, timing.host_link("usb3"))
    shares = timing.shares(timed)
    assert shares.chip + shares.host == pytest.approx(timed.seconds)
    assert min(shares.chip, shares.inward, shares.outward, shares.copies, shares.fixed) >= 0
    assert shares.fixed == timed.fixed_seconds and shares.copies == timed.copy_seconds


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_fixed_cost_and_the_scatter_move_the_time_as_they_are(name: str) -> None:
    timed = timing.simulate(PROGRAMS[name], CHIP, doubted("fixed_seconds", 2))
    low, high = timing.interval(timed)
    assert high - timed.seconds == pytest.approx(timed.fixed_seconds)
    assert timed.seconds - low == pytest.approx(timed.fixed_seconds / 2)
    scattered = replace(SURE, scatter=Quantity(0.1, "a test", Confidence.LOW))
    timed = timing.simulate(PROGRAMS[name], CHIP, scattered)
    assert timing.interval(timed) == pytest.approx((0.9 * timed.seconds, 1.1 * timed.seconds))


@pytest.mark.parametrize("parameter", ["bytes_per_second_in", "bytes_per_second_out"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_interval_holds_the_times_at_both_ends_of_a_rate(name: str, parameter: str) -> None:
    low, high = timing.interval(timing.simulate(PROGRAMS[name], CHIP, doubted(parameter, 1.5)))
    slow, fast = (
        timing.simulate(PROGRAMS[name], CHIP, at(parameter, factor)).seconds
        for factor in (1 / 1.5, 1.5)
    )
    assert low <= fast * 1.02
    assert high >= slow * 0.98


def test_doubts_come_together_as_independent_errors() -> None:
    scattered = replace(
        doubted("fixed_seconds", 2), scatter=Quantity(0.5, "a test", Confidence.LOW)
    )
    timed = timing.simulate(PROGRAMS["dense"], CHIP, scattered)
    expected = math.hypot(timed.fixed_seconds, 0.5 * timed.seconds)
    assert timing.interval(timed)[1] - timed.seconds == pytest.approx(expected)


@pytest.mark.parametrize("correlation", [-1, -0.5, 0, 0.5, 1])
def test_doubts_may_go_together(correlation: float) -> None:
    """As the variance of a sum: with 1 the doubts add up, with -1 each takes from the other."""
    host = replace(
        doubted("fixed_seconds", 2),
        scatter=Quantity(0, "a test", Confidence.LOW),
        output_copy_seconds=Quantity(1e-4, "a test", Confidence.LOW, 5e-5, 2e-4),
        correlations=(("fixed_seconds", "output_copy_seconds", correlation),),
    )
    timed = timing.simulate(PROGRAMS["large output"], CHIP, host)
    fixed, copies = timed.fixed_seconds, timed.copy_seconds
    assert copies > 0
    square = fixed**2 + copies**2 + 2 * correlation * fixed * copies
    low, high = timing.interval(timed)
    assert high - timed.seconds == pytest.approx(math.sqrt(square), abs=1e-12)
    assert timed.seconds - low == pytest.approx(math.sqrt(square) / 2, abs=1e-12)


def test_a_clock_in_doubt_moves_what_the_chip_does() -> None:
    slow = Quantity(500_000_000, "a test", Confidence.LOW, 250_000_000, 500_000_000)
    timed = timing.simulate(PROGRAMS["dense"], CHIP, replace(SURE, clock=slow))
    low, high = timing.interval(timed)
    assert low == pytest.approx(timed.seconds)
    assert high - timed.seconds == pytest.approx(timing.shares(timed).chip)


def test_the_clock_of_a_host_is_the_chips() -> None:
    half = replace(SURE, clock=Quantity(250_000_000, "a test", Confidence.LOW))
    timed = timing.simulate(PROGRAMS["dense"], CHIP, half)
    std = timing.simulate(PROGRAMS["dense"], timing.chip_description("beagle-std"), SURE)
    assert (timed.cycles, timed.seconds) == (std.cycles, std.seconds)
