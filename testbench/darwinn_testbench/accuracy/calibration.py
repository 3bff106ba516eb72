"""Fit a host's parameters to times that were measured with it.

The event model says what each model's time is made of, close to given parameters: three runs tell
how it changes with each rate, and as it only depends on ratios of the rates and the clock, how it
changes with the clock. A fit gives better parameters, at which the model is asked again. That is
done for each clock that the vendor's runtime sets, and for a free one where neither fits: the one
that predicts each model best from the others is taken.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from darwinn_formats.darwinn import Executable
from darwinn_sim import timing
from darwinn_sim.machine.lowering import lower_executable
from darwinn_sim.timing.description import ChipDescription, Confidence, HostLink, Quantity

from darwinn_testbench.accuracy import fitting
from darwinn_testbench.accuracy.fitting import Fit, Spread, Vector

PARAMETERS = (
    "fixed_seconds",
    "bytes_per_second_in",
    "bytes_per_second_out",
    "output_copy_seconds",
    "clock",
)
"""What is fitted, in the order of the vectors. Of rates and clock the reciprocals are."""

_IS_RATE = np.array([False, True, True, False, True])
_CLOCK = PARAMETERS.index("clock")

_DOUBTS = (1.0, 0.5, 0.7, 1.0, 1.0)
"""Standard deviations of the logarithms where a host's description has no interval."""

_LEAST = {"fixed_seconds": 1e-5, "output_copy_seconds": 2e-8}
"""Where the fit begins with a parameter that is 0 in the description."""

CLOCKS = (500e6, 250e6)
"""Clocks that the vendor's runtime sets: at its maximum, and by default."""

_NUDGE = 1.1
_ROUNDS = 6
_SETTLED = 0.01
_FARTHEST = math.log(2.5)
"""How far a step may go from where the model was asked."""
_FEW = 2
_SURE = math.log(1.5)
_CLOCK_DOUBT = 0.7
_ENOUGH = 3
"""Degrees of freedom from which on a scatter says something."""
_POOR = 0.06
"""A scatter from which on a clock between those of the runtime is tried: a hot chip slows down."""
_MOST = math.log(1e12)
"""The end of an interval without a bound: more than any parameter may be."""
_UNRELATED = 0.01
"""A correlation between that and 0 moves no interval by as much as a hundredth."""
_SAME = 2.7
"""Two clocks whose misfits differ by less are both within the nine times out of ten."""


@dataclass(frozen=True)
class Calibration:
    """What was fitted.

    Attributes:
        link: the host's description, with intervals, scatter and clock.
        predicted: seconds of each model by the fit.
        left_out: the error of each model, as a share, by a fit to the others alone; NaN where
            there are too few.
        clocks: the scatter of a time with each of the clocks that were tried, by their Hz.
        told: whether the times tell the clock.
        found: what the fit says of the models, for further questions.
    """

    link: HostLink
    predicted: Vector
    left_out: Vector
    clocks: dict[float, float]
    told: bool
    found: Settled


@dataclass(frozen=True)
class Timed:
    """A model that can be timed: ``cycles`` behind a link, and the host's ``copies`` of outputs."""

    cycles: Callable[[HostLink], float]
    copies: int


def timed(executable: Executable, chip: ChipDescription) -> Timed:
    """The model of an executable, on ``chip``; raises as ``lower_executable``."""
    program = lower_executable(executable, addresses=False)

    def cycles(link: HostLink) -> float:
        return timing.simulate(executable, chip, link, program=program).cycles

    return Timed(cycles, timing.output_copies(executable))


def calibrate(
    models: Sequence[Timed],
    seconds: Sequence[float],
    base: HostLink,
    clock: float,
    *,
    source: str,
    progress: Callable[[int], None] = lambda done: None,
) -> Calibration:
    """Fit a host to the times of models.

    Args:
        models: one for each time.
        seconds: of one inference each, as an application sees it.
        base: a description of the same kind of host: how the link works, and what is known of the
            parameters.
        clock: of the chip that the models are timed on.
        source: what the parameters' source is to be.
        progress: told the number of simulations so far.

    Raises as ``timing.simulate``.
    """
    runs = Runs(models, clock, base, progress)
    measured = np.array(seconds, np.float64)
    tried = [_settle(runs, measured, base, each) for each in CLOCKS]
    enough = max(each.fit.freedom for each in tried) >= _ENOUGH
    scatter = min(each.fit.scatter for each in tried)
    misfits = [each.misfit(measured, scatter) for each in tried]
    told = enough and max(misfits) - min(misfits) > _SAME
    found = tried[int(np.argmin(misfits)) if told else CLOCKS.index(_nearest(clock))]
    if enough and found.fit.scatter > _POOR:
        free = _settle(runs, measured, base, found.clock, held=False)
        if free.slower_than(max(CLOCKS)) and free.mean_left_out(measured) < found.mean_left_out(
            measured
        ):
            found, told = free, True
    out, spread = np.full(len(measured), math.nan), found.fit.spread
    if len(measured) > _FEW:
        out = found.left_out(measured)
        spread = fitting.spread(found.parts, found.fit, out, found.between_hosts)
    link = _described(found, base, spread, source)
    if not told:
        link = replace(link, clock=replace(link.clock, least=min(CLOCKS), most=max(CLOCKS)))
    scatters = {each.clock: each.fit.scatter for each in tried}
    return Calibration(
        link, fitting.times(found.parts, found.fit.values), out, scatters, told, found
    )


def _nearest(clock: float) -> float:
    """That of the runtime's clocks which is nearest to the one of a description."""
    return min(CLOCKS, key=lambda each: abs(math.log(each / clock)))


@dataclass(frozen=True)
class Settled:
    """Parameters at which the model says what the fit said; ``parts`` is what it says there."""

    clock: float
    parts: Vector
    known: Vector
    doubts: Vector
    fit: Fit

    @property
    def between_hosts(self) -> Vector:
        """Standard deviations of the parameters between hosts; of the clock also if it is held."""
        deviations = self.doubts.copy()
        deviations[_CLOCK] = _CLOCK_DOUBT
        return deviations

    def misfit(self, measured: Vector, scatter: float) -> float:
        """How badly they fit, if times are off by ``scatter``."""
        return fitting.misfit(
            self.parts, measured, self.known, self.doubts, self.fit.values, scatter
        )

    def left_out(self, measured: Vector) -> Vector:
        """The error of each model, as a share, by a fit to the others."""
        return fitting.left_out(self.parts, measured, self.known, self.doubts)

    def left_out_spans(self, measured: Vector) -> Vector:
        """Half the width of each model's interval, as a share, by a fit to the others."""
        return fitting.left_out_spans(
            self.parts, measured, self.known, self.doubts, self.between_hosts
        )

    def mean_left_out(self, measured: Vector) -> float:
        """The mean of these errors."""
        return float(np.abs(self.left_out(measured)).mean())

    def slower_than(self, clock: float) -> bool:
        """Whether the clock that was found is below ``clock``."""
        return float(self.fit.values[_CLOCK]) > -math.log(clock)


def _settle(
    runs: Runs, measured: Vector, base: HostLink, clock: float, *, held: bool = True
) -> Settled:
    """Fit and ask the model again, until it says the same; the clock is held or fitted."""
    known, doubts = _before(base)
    known[_CLOCK], doubts[_CLOCK] = -math.log(clock), 0.0 if held else _CLOCK_DOUBT
    values = known
    for _ in range(_ROUNDS):
        parts = runs.parts(values)
        fit = fitting.fit(parts, measured, known, doubts)
        step = np.clip(fit.values - values, -_FARTHEST, _FARTHEST)
        values = values + step
        if np.abs(step[_IS_RATE]).max() < _SETTLED:
            break
    return Settled(clock, parts, known, doubts, fit)


def values_of(link: HostLink, clock: float) -> Vector:
    """The logarithms of a host's parameters, ``clock`` where it sets none."""
    values, _ = _before(link)
    values[_CLOCK] = -math.log(link.clock.value or clock)
    return values


def shares_of(parts: Vector, values: Vector) -> timing.Shares:
    """What the time of one model is spent on."""
    fixed, inward, outward, copies, chip = (float(each) for each in parts * np.exp(values))
    return timing.Shares(chip, inward, outward, copies, fixed)


def _before(base: HostLink) -> tuple[Vector, Vector]:
    """What a description says of the parameters, as logarithms with their deviations."""
    known, doubts = np.zeros(len(PARAMETERS)), np.array(_DOUBTS)
    for place, name in enumerate(PARAMETERS[:_CLOCK]):
        quantity: Quantity = getattr(base, name)
        value = quantity.value or _LEAST.get(name, 1.0)
        least, most = quantity.interval
        known[place] = -math.log(value) if _IS_RATE[place] else math.log(value)
        if 0 < least < most:
            doubts[place] = math.log(most / least) / (2 * fitting.NINE_OF_TEN)
    return known, doubts


class Runs:
    """The event model's times of models, each kept."""

    def __init__(
        self,
        models: Sequence[Timed],
        clock: float,
        base: HostLink,
        progress: Callable[[int], None] = lambda done: None,
    ) -> None:
        self._models = models
        self._clock, self._base, self._progress = clock, base, progress
        self._cycles: dict[tuple[int, float, float], float] = {}

    def parts(self, values: Vector) -> Vector:
        """What each parameter is multiplied with in the time of each executable, close to values.

        Raises as ``timing.simulate``.
        """
        inwards, outwards, clock = (math.exp(-values[place]) for place in np.flatnonzero(_IS_RATE))
        rows = np.zeros((len(self._models), len(PARAMETERS)))
        for number, row in enumerate(rows):
            here = self._at(number, inwards / clock, outwards / clock) / clock
            bytes_in, bytes_out = (
                max(0.0, (here - self._at(number, a / clock, b / clock) / clock) / saved)
                for a, b, saved in (
                    (inwards * _NUDGE, outwards, (1 - 1 / _NUDGE) / inwards),
                    (inwards, outwards * _NUDGE, (1 - 1 / _NUDGE) / outwards),
                )
            )
            cycles = max(0.0, here - bytes_in / inwards - bytes_out / outwards) * clock
            row[:] = 1.0, bytes_in, bytes_out, self._models[number].copies, cycles
        return rows

    def _at(self, number: int, inwards: float, outwards: float) -> float:
        """Cycles of a model at bytes for a cycle of the link."""
        key = (number, round(inwards, 6), round(outwards, 6))
        if key not in self._cycles:
            link = replace(
                self._base,
                bytes_per_second_in=_assumed(inwards * self._clock),
                bytes_per_second_out=_assumed(outwards * self._clock),
                clock=_assumed(0),
            )
            self._cycles[key] = self._models[number].cycles(link)
            self._progress(len(self._cycles))
        return self._cycles[key]


def _assumed(value: float) -> Quantity:
    return Quantity(value, "tried", Confidence.LOW)


def _described(found: Settled, base: HostLink, spread: Spread, source: str) -> HostLink:
    """The host's description with what was fitted, each parameter with its interval."""
    fitted: dict[str, Any] = {}
    for place, name in enumerate(PARAMETERS):
        sign = -1 if _IS_RATE[place] else 1
        middle = sign * found.fit.values[place]
        around = fitting.NINE_OF_TEN * spread.deviations[place]
        rule = HostLink.parameters()[name]
        value = _rounded(math.exp(middle), rule.whole)
        least, most = (
            min(max(_rounded(math.exp(min(end, _MOST)), rule.whole), rule.least), rule.most)
            for end in (middle - around, middle + around)
        )
        sure = Confidence.MEDIUM if around < _SURE else Confidence.LOW
        fitted[name] = Quantity(value, source, sure, least, most)
    errors = Quantity(_rounded(spread.scatter, False), source, Confidence.MEDIUM)
    correlations = tuple(
        (PARAMETERS[one], PARAMETERS[other], round(float(value), 4))
        for (one, other), value in np.ndenumerate(spread.correlations)
        if one < other and abs(value) > _UNRELATED
    )
    return replace(base, **fitted, scatter=errors, correlations=correlations)


def _rounded(value: float, whole: bool) -> float:
    """Four digits, which is more than is known."""
    text = float(f"{value:.4g}")
    return int(text) if whole else text
