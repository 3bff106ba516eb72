"""Predicted against published latencies, with nothing fitted on the model that is predicted.

The host's fixed cost of a request is what the simulation lacks of the published time. It is fitted
on the other models of the same host; bandwidths come from elsewhere; nothing else is fitted. Two
baselines get the same: the multiplications at the chip's peak alone, and a roofline with the same
bandwidth and a fixed cost fitted in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean

from darwinn_formats.darwinn import Executable, load
from darwinn_sim import chip, timing
from darwinn_sim.host.dma_trace import TransferKind
from darwinn_sim.machine import layers
from darwinn_sim.machine.lowering import LoweredProgram, lower_executable
from darwinn_sim.timing.description import Confidence, Quantity

from darwinn_testbench.accuracy.points import Host, Model, Points
from darwinn_testbench.chip.cycles import check_pair
from darwinn_testbench.errors import InputError
from darwinn_testbench.report import Report, Row, Verdict, counted, one_line, verdict_of
from darwinn_testbench.report.progress import ProgressCallback, silent
from darwinn_testbench.request.timing import DEFAULT_CHIP

_PRODUCTS_PER_CYCLE = chip.TILES * chip.LANES * 4
_DATA = (TransferKind.INPUT, TransferKind.OUTPUT, TransferKind.PARAMETER)


@dataclass(frozen=True, kw_only=True)
class AccuracyRow(Row):
    """A published latency and what is predicted for it; errors are shares of the published time.

    ``simulated`` is the time without the host's fixed cost ``fixed``, both in ms; ``fixed_from``
    says what gave that cost: ``other models`` of the host, or its ``link``. ``calibration`` says
    what the point itself calibrates. ``mac_error`` and ``roofline_error`` are those of the
    baselines. A point that is left out has no prediction, and the reason as its message.
    """

    model: str
    host: str
    source: str
    published: str
    predicted: float | None = None
    error: float | None = None
    simulated: float | None = None
    fixed: float | None = None
    fixed_from: str = ""
    calibration: str = ""
    mac_error: float | None = None
    roofline_error: float | None = None


@dataclass(frozen=True)
class _Point:
    """A time in ms that was measured of a model behind a host."""

    model: str
    host: str
    source: str
    published: float


@dataclass(frozen=True)
class _Times:
    """Times of a point in ms: published, and what each method gives without a fixed cost.

    ``fallback`` is the link's own fixed cost, for hosts without another model.
    """

    published: float
    simulated: float
    mac: float
    roofline: float
    fallback: float


def check_accuracy(
    tables: Sequence[Points],
    folder: Path | None,
    *,
    chip_name: str = DEFAULT_CHIP,
    at_most: float | None = None,
    progress: ProgressCallback = silent,
) -> Report[AccuracyRow]:
    """Predict every point. One whose binary or host cannot be used is left out, with the reason.

    Args:
        tables: what was published, or measured by the user; each is predicted by itself.
        folder: holds ``NAME_edgetpu.tflite``; a binary may also be given by its path. None: the
            folder of each table.
        chip_name: a built-in chip description or a TOML file.
        at_most: percent; a larger error is a mismatch. Without it errors are not judged.
        progress: told what is being done.

    Raises:
        FormatError, OSError: the chip description is not valid or cannot be read.
    """
    description = timing.chip_description(chip_name)
    rows: list[AccuracyRow] = []
    for points in tables:
        binaries = _Binaries(points, folder or points.folder)
        rows += _of_table(Simulations(points, binaries, description), at_most, progress)
    figures = _figures(rows)
    return Report(
        command="accuracy",
        file="" if folder is None else str(folder),
        rows=tuple(rows),
        figures={"chip": description.name, **figures},
        message=_summary(rows, figures, at_most),
    )


def _of_table(
    simulated: Simulations, at_most: float | None, progress: ProgressCallback
) -> Iterator[AccuracyRow]:
    """The points of a table, then those that it leaves out itself."""
    by_host: dict[str, list[_Point]] = {}
    for point in _points(simulated.points):
        by_host.setdefault(point.host, []).append(point)
    for number, (host, measured) in enumerate(by_host.items()):
        progress(host, number, len(by_host))
        yield from (_judged(row, at_most) for row in _of_host(measured, simulated))
    for left in simulated.points.left_out:
        for model in left.models:
            yield AccuracyRow(
                name=model,
                verdict=Verdict.PASS,
                message=left.reason,
                model=model,
                host="",
                source=left.source,
                published=left.milliseconds if len(left.models) == 1 else "",
            )


def _summary(rows: Sequence[AccuracyRow], figures: Mapping[str, float], limit: float | None) -> str:
    """How far predictions are off, and what of that was judged."""
    unusable = sum(row.predicted is None and row.verdict is not Verdict.PASS for row in rows)
    left = f"{counted(unusable, 'point')} could not be predicted; " if unusable else ""
    if not figures:
        return f"{left}no point could be predicted"
    wrong = sum(row.verdict is Verdict.MISMATCH for row in rows)
    judged = (
        "errors are not judged (--at-most PERCENT does)"
        if limit is None
        else f"{wrong} of {counted(int(figures['points']), 'point')} beyond {limit:g} %"
    )
    return (
        f"{left}worst error {figures['worst_error']:.3%}, mean {figures['mean_error']:.1%}; "
        f"multiplications at peak {figures['mean_mac_error']:.1%}, "
        f"roofline {figures['mean_roofline_error']:.1%}; {judged}"
    )


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


def _points(points: Points) -> Iterator[_Point]:
    for measurement in points.measurements:
        for model, published in measurement.milliseconds.items():
            yield _Point(model, measurement.host, measurement.source, published)


def _of_host(measured: Sequence[_Point], simulated: Simulations) -> Iterator[AccuracyRow]:
    """The points of one host, each with the fixed cost that its other models give."""
    times: dict[_Point, _Times] = {}
    unusable: dict[_Point, Exception] = {}
    for point in measured:
        try:
            times[point] = simulated.times(point)
        except Exception as error:
            if verdict_of(error) is None:
                raise
            unusable[point] = error
    for point in measured:
        if point in unusable:
            yield _left_out(point, unusable[point])
            continue
        others = {other: own for other, own in times.items() if other.model != point.model}
        try:
            yield _predicted(point, times[point], others)
        except InputError as error:
            yield _left_out(point, error)


def _judged(row: AccuracyRow, at_most: float | None) -> AccuracyRow:
    """The row, a mismatch if its error is larger than ``at_most`` percent."""
    if at_most is None or row.error is None or abs(row.error) <= at_most / 100:
        return row
    message = f"error {row.error:+.1%}, at most {at_most:g} %"
    return replace(row, verdict=Verdict.MISMATCH, message=message)


def _left_out(point: _Point, error: Exception) -> AccuracyRow:
    verdict = verdict_of(error) or Verdict.FAULT
    return replace(_row(point), verdict=verdict, message=one_line(error))


def _row(point: _Point) -> AccuracyRow:
    return AccuracyRow(
        name=f"{point.model}, {point.host}",
        verdict=Verdict.PASS,
        model=point.model,
        host=point.host,
        source=point.source,
        published=f"{point.published:g}",
    )


def _predicted(point: _Point, own: _Times, others: Mapping[_Point, _Times]) -> AccuracyRow:
    """Raises ``InputError`` where ``others`` give a fixed cost below 0: none is so cheap."""
    known = list(others.values())
    fixed = _fixed(known, lambda each: each.simulated, own.fallback)
    roofline_fixed = _fixed(known, lambda each: each.roofline, own.fallback)
    if fixed < 0:
        fast = ", ".join(each.model for each, ms in others.items() if ms.published < ms.simulated)
        raise InputError(
            f"the fixed cost would be {fixed:.3f} ms: {fast} measured faster than simulated: "
            "check host and clock"
        )
    predicted = own.simulated + fixed
    return replace(
        _row(point),
        predicted=predicted,
        error=predicted / point.published - 1,
        simulated=own.simulated,
        fixed=fixed,
        fixed_from="other models" if others else "link",
        calibration=_calibration(len(others)),
        mac_error=own.mac / point.published - 1,
        roofline_error=(own.roofline + roofline_fixed) / point.published - 1,
    )


def _calibration(others: int) -> str:
    """What a point calibrates, whose own fixed cost is that of ``others`` points."""
    return f"fixed cost, for the other model{'s' if others > 1 else ''}" if others else ""


def _fixed(others: Sequence[_Times], of: Callable[[_Times], float], fallback: float) -> float:
    """Fixed cost in ms: what a method lacks of the published times of ``others``, on average."""
    return mean(each.published - of(each) for each in others) if others else fallback


def _link(host: Host) -> timing.HostLink:
    link = timing.host_link(host.link)
    if host.bytes_per_second_in is None:
        return link
    source = host.bandwidth_source or "given with the point"
    bandwidth = Quantity(host.bytes_per_second_in, source, Confidence.MEDIUM)
    return replace(link, bytes_per_second_in=bandwidth)


@dataclass(frozen=True)
class Simulations:
    """What each method gives for the points of a file, on one chip."""

    points: Points
    binaries: _Binaries
    description: timing.ChipDescription

    @staticmethod
    def of(points: Points, folder: Path, chip: timing.ChipDescription) -> Simulations:
        """The models of ``points``, whose binaries are in ``folder``."""
        return Simulations(points, _Binaries(points, folder), chip)

    def times(self, point: _Point) -> _Times:
        """The times of a point.

        Raises:
            InputError: a binary that cannot stand for a model.
            FormatError, OSError, SimulationError: what cannot be loaded or timed.
        """
        link = _link(self.points.host(point.host))
        check_pair(self.description, link)
        model = self.points.models[point.model]
        clock = self.description.clock.value
        copying = self.copies(model) * link.output_copy_seconds.value
        macs, moved = self._size(model, link)
        computing = macs / (_PRODUCTS_PER_CYCLE * clock)
        moving = moved / link.bytes_per_second_in.value
        return _Times(
            published=point.published,
            simulated=1e3 * (self.cycles(model, link) / clock + copying),
            mac=1e3 * computing,
            roofline=1e3 * max(computing, moving),
            fallback=1e3 * link.fixed_seconds.value,
        )

    def _size(self, model: Model, link: timing.HostLink) -> tuple[int, int]:
        """Multiplications and bytes of a model, those of its binary where the file has none."""
        if model.macs is not None and model.bytes is not None:
            return model.macs, model.bytes
        if model.tail is not None:
            raise InputError("a model with the tail of another binary needs its macs and bytes")
        timed = self.binaries.time(model.binary, self.description, link)
        macs = sum(layer.products for layer in timed.layers)
        moved = sum(each.size for each in timed.transfers if each.kind in _DATA)
        return model.macs or macs, model.bytes or moved

    def copies(self, model: Model) -> int:
        """The host's copies of outputs."""
        return timing.output_copies(self.binaries.executable(model.binary))

    def cycles(self, model: Model, link: timing.HostLink) -> float:
        """Cycles of an inference behind ``link``."""
        tail = model.tail
        if tail is None:
            return self.binaries.time(model.binary, self.description, link).cycles
        program, other = self.binaries.program(model.binary), self.binaries.program(tail.binary)
        end = self.binaries.time(tail.binary, self.description, None)
        if len(end.layers) <= tail.tail_layers or len(layers.find(program.chunks)) <= tail.layers:
            raise InputError(f"{model.binary} or {tail.binary} has too few layers for this tail")
        cut, pool = end.layers[-tail.tail_layers - 1].end, end.layers[-tail.tail_layers].end
        tail_bytes = other.sizes[0] - _bytes_up_to(other, tail.tail_layers)
        loaded = _bytes_up_to(program, tail.layers) + tail_bytes
        own = self.binaries.time(model.binary, self.description, link, size=loaded)
        begun = own.layers[-tail.layers - 1].end
        return begun + (pool - cut) * tail.pool_scale + (end.cycles - pool)


def _bytes_up_to(program: LoweredProgram, without: int) -> int:
    """Bytes of the instructions up to the end of the layer before the last ``without`` ones."""
    last = layers.find(program.chunks)[-without - 1].last
    return 16 * int(program.tables.pc[last + 1])


class _Binaries:
    """Inferences of compiled models, lowered."""

    def __init__(self, points: Points, folder: Path) -> None:
        self._points = points
        self._folder = folder
        self._loaded: dict[str, tuple[Executable, LoweredProgram]] = {}
        self._timed: dict[tuple[str, int | None, object], timing.Timing] = {}

    def time(
        self,
        name: str,
        chip: timing.ChipDescription,
        link: timing.HostLink | None,
        *,
        size: int | None = None,
    ) -> timing.Timing:
        """A run, of ``size`` bytes of instructions if given; the same run is simulated once."""
        speeds = link and (link.bytes_per_second_in.value, link.bytes_per_second_out.value)
        key = (name, size, (speeds, link and link.on_request.value))
        if key not in self._timed:
            executable, program = self._get(name)
            chunk_bytes = None if size is None else (size,)
            self._timed[key] = timing.simulate(
                executable, chip, link, program=program, chunk_bytes=chunk_bytes
            )
        return self._timed[key]

    def executable(self, name: str) -> Executable:
        """The executable; raises as ``program``."""
        return self._get(name)[0]

    def program(self, name: str) -> LoweredProgram:
        """The program; raises ``InputError`` if the file is missing or no single model."""
        return self._get(name)[1]

    def _get(self, name: str) -> tuple[Executable, LoweredProgram]:
        if name not in self._loaded:
            path = self._points.binary(name, self._folder)
            if not path.is_file():
                raise InputError(f"{path}: no such binary")
            models = load(path).models
            if len(models) != 1:
                raise InputError(f"{path}: holds {counted(len(models), 'compiled model')}, not one")
            executable = models[0].inference
            self._loaded[name] = executable, lower_executable(executable, addresses=False)
        return self._loaded[name]
