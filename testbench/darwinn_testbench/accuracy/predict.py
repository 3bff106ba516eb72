"""Predicted against published latencies, with nothing fitted on the model that is predicted.

The host's fixed cost of a request is what the simulation lacks of the published time. It is fitted
on the other models of the same host; bandwidths come from elsewhere; nothing else is fitted. Two
baselines get the same: the multiplications at the chip's peak alone, and a roofline with the same
bandwidth and a fixed cost fitted in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean

from darwinn_formats.darwinn import load
from darwinn_sim import chip, layers, timing
from darwinn_sim.program import LoweredProgram, lower
from darwinn_sim.timing.description import Confidence, Quantity

from darwinn_testbench.accuracy.points import Host, Measurement, Model, Points
from darwinn_testbench.report import InputError, Report, Row, Verdict
from darwinn_testbench.report.progress import ProgressCallback, silent

GOAL_PER_POINT = 0.05
"""Error of each prediction for MobileNet v1 and v2 over five hosts that the project aims at."""

GOAL_MEAN = 0.10
"""Mean absolute error over all points, each predicted without its own model."""

_PRODUCTS_PER_CYCLE = chip.TILES * chip.LANES * 4


@dataclass(frozen=True, kw_only=True)
class AccuracyRow(Row):
    """A published latency and what is predicted for it; errors are shares of the published time.

    ``simulated`` is the time without the host's fixed cost ``fixed``, both in ms. ``calibration``
    says what the point itself calibrates. ``mac_error`` and ``roofline_error`` are those of the
    baselines. A point that is left out has no prediction, and
    the reason as its message.
    """

    model: str
    host: str
    source: str
    published: str
    predicted: float | None = None
    error: float | None = None
    simulated: float | None = None
    fixed: float | None = None
    calibration: str = ""
    mac_error: float | None = None
    roofline_error: float | None = None


@dataclass(frozen=True)
class _Times:
    """Times of a point in ms: published, and what each method gives without a fixed cost."""

    published: float
    simulated: float
    mac: float
    roofline: float


def check_accuracy(
    points: Points,
    folder: Path,
    *,
    chip_name: str = "beagle-max",
    progress: ProgressCallback = silent,
) -> Report[AccuracyRow]:
    """Predict every point whose binary is in ``folder``.

    Args:
        points: what was published, or measured by the user.
        folder: holds ``NAME_edgetpu.tflite``; a binary may also be given by its path.
        chip_name: a built-in chip description or a TOML file.
        progress: told what is being done.

    Raises:
        InputError: a binary is missing.
        FormatError, OSError, SimulationError: a binary cannot be loaded or timed.
    """
    description = timing.chip_description(chip_name)
    binaries = _Binaries(folder)
    rows: list[AccuracyRow] = []
    for number, measurement in enumerate(points.measurements):
        progress(measurement.host, number, len(points.measurements))
        rows += _measured(measurement, points, description, binaries)
    rows += [
        AccuracyRow(
            name=model,
            verdict=Verdict.PASS,
            message=left.reason,
            model=model,
            host="",
            source=left.source,
            published=left.milliseconds if len(left.models) == 1 else "",
        )
        for left in points.left_out
        for model in left.models
    ]
    figures = _figures(rows)
    return Report(
        command="accuracy",
        file=str(folder),
        rows=tuple(rows),
        figures={"chip": description.name, **figures},
        message=verdict_text(figures),
    )


def verdict_text(figures: Mapping[str, float]) -> str:
    """The goals, and whether they are met."""
    if not figures:
        return "no point could be predicted"
    worst, average = figures["worst_error"], figures["mean_error"]
    return (
        f"worst {worst:.3%} (goal {GOAL_PER_POINT:.0%}: {_met(worst <= GOAL_PER_POINT)}), "
        f"mean {average:.1%} (goal {GOAL_MEAN:.0%}: {_met(average <= GOAL_MEAN)}); multiplications "
        f"at peak {figures['mean_mac_error']:.1%}, roofline {figures['mean_roofline_error']:.1%}"
    )


def _met(holds: bool) -> str:
    return "met" if holds else "missed"


def _figures(rows: list[AccuracyRow]) -> dict[str, float]:
    """Mean and worst absolute errors over the points that were predicted."""
    errors = [abs(row.error) for row in rows if row.error is not None]
    if not errors:
        return {}
    return {
        "points": len(errors),
        "worst_error": max(errors),
        "mean_error": mean(errors),
        "mean_mac_error": mean(abs(row.mac_error) for row in rows if row.mac_error is not None),
        "mean_roofline_error": mean(
            abs(row.roofline_error) for row in rows if row.roofline_error is not None
        ),
    }


def _measured(
    measurement: Measurement,
    points: Points,
    description: timing.ChipDescription,
    binaries: _Binaries,
) -> Iterator[AccuracyRow]:
    link = _link(points.hosts[measurement.host])
    times = {
        model: _times(points.models[model], published, description, link, binaries)
        for model, published in measurement.milliseconds.items()
    }
    for model, own in times.items():
        others = [other for name, other in times.items() if name != model]
        fallback = 1e3 * link.fixed_seconds.value
        fixed = _fixed(others, lambda each: each.simulated, fallback)
        roofline_fixed = _fixed(others, lambda each: each.roofline, fallback)
        predicted = own.simulated + fixed
        yield AccuracyRow(
            name=f"{model}, {measurement.host}",
            verdict=Verdict.PASS,
            model=model,
            host=measurement.host,
            source=measurement.source,
            published=f"{own.published:g}",
            predicted=predicted,
            error=predicted / own.published - 1,
            simulated=own.simulated,
            fixed=fixed,
            calibration="fixed cost, for the other model" if others else "",
            mac_error=own.mac / own.published - 1,
            roofline_error=(own.roofline + roofline_fixed) / own.published - 1,
        )


def _fixed(others: list[_Times], of: Callable[[_Times], float], fallback: float) -> float:
    """Fixed cost in ms: what a method lacks of the published times of ``others``, on average."""
    return mean(each.published - of(each) for each in others) if others else fallback


def _link(host: Host) -> timing.HostLink:
    link = timing.host_link(host.link)
    if host.bytes_per_second_in is None:
        return link
    source = host.bandwidth_source or "given with the point"
    bandwidth = Quantity(host.bytes_per_second_in, source, Confidence.MEDIUM)
    return replace(link, bytes_per_second_in=bandwidth)


def _times(
    model: Model,
    published: float,
    description: timing.ChipDescription,
    link: timing.HostLink,
    binaries: _Binaries,
) -> _Times:
    seconds = _cycles(model, description, link, binaries) / description.clock.value
    computing = model.macs / (_PRODUCTS_PER_CYCLE * description.clock.value)
    moving = model.bytes / link.bytes_per_second_in.value
    return _Times(published, 1e3 * seconds, 1e3 * computing, 1e3 * max(computing, moving))


def _cycles(
    model: Model,
    description: timing.ChipDescription,
    link: timing.HostLink,
    binaries: _Binaries,
) -> float:
    """Cycles of an inference behind ``link``."""
    program, size = binaries.get(model.binary)
    tail = model.tail
    if tail is None:
        return binaries.time(model.binary, size, description, link).cycles
    other, other_size = binaries.get(tail.binary)
    end = binaries.time(tail.binary, other_size, description, None)
    cut, pool = end.layers[-tail.tail_layers - 1].end, end.layers[-tail.tail_layers].end
    tail_bytes = other_size - _bytes_up_to(other, tail.tail_layers)
    loaded = _bytes_up_to(program, tail.layers) + tail_bytes
    own = binaries.time(model.binary, loaded, description, link)
    begun = own.layers[-tail.layers - 1].end
    return begun + (pool - cut) * tail.pool_scale + (end.cycles - pool)


def _bytes_up_to(program: LoweredProgram, without: int) -> int:
    """Bytes of the instructions up to the end of the layer before the last ``without`` ones."""
    last = layers.find(program.chunks)[-without - 1].last
    return 16 * int(program.tables.pc[last + 1])


class _Binaries:
    """Programs of the inferences of compiled models, each with the bytes of its only chunk."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._loaded: dict[str, tuple[LoweredProgram, int]] = {}
        self._timed: dict[tuple[str, int, object], timing.Timing] = {}

    def time(
        self, name: str, size: int, chip: timing.ChipDescription, link: timing.HostLink | None
    ) -> timing.Timing:
        """A run with ``size`` bytes of instructions; the same run is simulated once."""
        speeds = link and (link.bytes_per_second_in.value, link.bytes_per_second_out.value)
        key = (name, size, (speeds, link and link.on_request.value))
        if key not in self._timed:
            program, _ = self.get(name)
            self._timed[key] = timing.simulate_program(program, [size], chip, link)
        return self._timed[key]

    def get(self, name: str) -> tuple[LoweredProgram, int]:
        """The program; raises ``InputError`` if the file is missing or has several chunks."""
        if name not in self._loaded:
            given = name.endswith(".tflite")
            path = Path(name) if given else self._folder / f"{name}_edgetpu.tflite"
            if not path.is_file():
                raise InputError(f"{path}: no such binary; DARWINN_CORPUS or --models names others")
            (model,) = load(path).models
            chunks = [bytes(each.bitstream) for each in model.inference.instruction_bitstreams]
            if len(chunks) != 1:
                raise InputError(
                    f"{path}: programs of one chunk can be compared, not {len(chunks)}"
                )
            self._loaded[name] = lower(chunks), len(chunks[0])
        return self._loaded[name]
