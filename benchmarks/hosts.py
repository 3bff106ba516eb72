"""How near predicted latencies are on every machine that somebody published, and host files.

    python -m benchmarks.hosts --models FOLDER [--document FILE] [HOST...]

FOLDER holds the executables of `darwinn_testbench/accuracy/evidence.toml`, NAME_edgetpu.tflite;
that file says where each can be had. Each host is fitted to its own points (`darwinn calibrate`
does the same), which gives the error of each point by a fit to the host's others. Then each machine
is left out: its points are predicted with the medians of what was fitted to other machines of its
link. FILE is docs/machines.md.
"""

from __future__ import annotations

import math
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from darwinn_sim import timing
from darwinn_sim.timing.description import Confidence, HostLink, Quantity
from darwinn_testbench.accuracy.calibration import (
    PARAMETERS,
    Calibration,
    Runs,
    Timed,
    calibrate,
    shares_of,
    values_of,
)
from darwinn_testbench.accuracy.points import Points, evidence
from darwinn_testbench.accuracy.predict import Simulations
from darwinn_testbench.report.files import write_result

from benchmarks.common import machine_and_load, parser, refuse

CHIP = "beagle-max"
NINE_OF_TEN = 1.645


@dataclass(frozen=True)
class Point:
    """A published latency in ms, and what was predicted: by the fit to its host, without the point
    itself, with half the width of the interval as a share, and without its machine."""

    model: str
    source: str
    measured: float
    fitted: float
    left_out: float
    width: float
    within: bool
    without_machine: float = math.nan
    within_without: bool = False


@dataclass(frozen=True)
class Host:
    """A host with its points and what was fitted to them."""

    name: str
    machine: str
    points: tuple[Point, ...]
    fit: Calibration

    @property
    def errors(self) -> list[float]:
        """Absolute errors of its points by fits to its others."""
        return [abs(point.left_out) for point in self.points if not math.isnan(point.left_out)]


def measured_on(points: Points, host: str) -> Iterator[tuple[str, str, float]]:
    """Model, source and milliseconds of what was measured on a host."""
    for each in points.measurements:
        for model, milliseconds in each.milliseconds.items() if each.host == host else ():
            yield model, each.source, milliseconds


class Bench:
    """The points, and the event model's times of their models."""

    def __init__(self, folder: Path) -> None:
        self.points = evidence()
        chips = {each.chip or CHIP for each in self.points.hosts.values()} | {CHIP}
        self._chips = {name: timing.chip_description(name) for name in chips}
        self._simulations = {
            name: Simulations.of(self.points, folder, chip) for name, chip in self._chips.items()
        }

    def timed(self, name: str, chip: str = CHIP) -> Timed:
        """A model of the points."""
        model, simulations = self.points.models[name], self._simulations[chip]
        return Timed(lambda link: simulations.cycles(model, link), simulations.copies(model))

    def host(self, name: str) -> Host:
        """A host, fitted to its points."""
        rows = list(measured_on(self.points, name))
        link = timing.host_link(self.points.hosts[name].link)
        chip = self.points.hosts[name].chip or CHIP
        models = [self.timed(model, chip) for model, _, _ in rows]
        fit = calibrate(
            models,
            [milliseconds / 1e3 for _, _, milliseconds in rows],
            link,
            self._chips[chip].clock.value,
            source="benchmarks/hosts.py",
        )
        spans = np.full(len(rows), math.nan)
        if len(rows) > 2:
            measured = np.array([milliseconds for _, _, milliseconds in rows]) / 1e3
            spans = fit.found.left_out_spans(measured)
        points = tuple(
            Point(
                model,
                source,
                milliseconds,
                1e3 * seconds,
                error,
                width,
                abs(math.log1p(error)) <= width,
            )
            for (model, source, milliseconds), seconds, error, width in zip(
                rows,
                *(column.tolist() for column in (fit.predicted, fit.left_out, spans)),
                strict=True,
            )
        )
        machine = self.points.hosts[name].machine.partition(",")[0] or name
        return Host(name, machine, points, fit)

    def without(self, host: Host, others: Sequence[Host]) -> Host:
        """Its points, predicted with what other machines of its link say."""
        base = timing.host_link(self.points.hosts[host.name].link)
        same = [
            each
            for each in others
            if each.machine != host.machine
            and self.points.hosts[each.name].link == base.name
            and len(each.points) > 1
        ]
        if not same:
            return host
        link = _median(base, [each.fit.link for each in same])
        # The clock is the runtime's choice, which a user knows: it is not to be guessed.
        link = replace(link, clock=replace(host.fit.link.clock, least=None, most=None))
        spans = self._spans([self.timed(point.model) for point in host.points], link)
        return replace(
            host,
            points=tuple(
                replace(
                    point,
                    without_machine=1e3 * seconds / point.measured - 1,
                    within_without=span[0] <= point.measured / 1e3 <= span[1],
                )
                for point, (seconds, span) in zip(host.points, spans, strict=True)
            ),
        )

    def _spans(
        self, models: Sequence[Timed], link: HostLink, chip: str = CHIP
    ) -> list[tuple[float, tuple[float, float]]]:
        """Seconds of each model behind a host, and their interval."""
        clock = self._chips[chip].clock.value
        values = values_of(link, clock)
        found = [shares_of(row, values) for row in Runs(models, clock, link).parts(values)]
        return [(each.chip + each.host, timing.interval_of(each, link)) for each in found]


def _median(base: HostLink, links: Sequence[HostLink]) -> HostLink:
    """A host between several: of each parameter the median, with their spread."""
    changes: dict[str, Any] = {}
    for name in PARAMETERS[:-1]:
        values = [math.log(getattr(each, name).value) for each in links]
        middle = statistics.median(values)
        known = getattr(base, name)
        least, most = known.interval
        spread = statistics.stdev(values) if len(values) > 1 else 0.0
        ends = (
            min(math.exp(middle - NINE_OF_TEN * spread), least),
            max(math.exp(middle + NINE_OF_TEN * spread), most),
        )
        changes[name] = Quantity(
            math.exp(middle), "other machines", Confidence.LOW, ends[0], ends[1]
        )
    return replace(base, **changes)


def _percent(values: Sequence[float]) -> str:
    known = [abs(value) for value in values if not math.isnan(value)]
    return f"{np.mean(known):.1%}, {max(known):.1%}" if known else ""


def _share(values: Sequence[bool]) -> str:
    return f"{sum(values)} of {len(values)}" if values else ""


def document(points: Points, hosts: Sequence[Host]) -> str:
    """All points in Markdown."""
    every = [point for host in hosts for point in host.points]
    known = [host for host in hosts if len(host.points) > 2]
    judged = [point for host in known for point in host.points]
    machines = {host.machine for host in hosts}
    alone = [point for point in every if not math.isnan(point.without_machine)]
    lines = [
        "# Published latencies of every machine",
        "",
        "`python -m benchmarks.hosts --models FOLDER --document docs/machines.md` writes this "
        "page. [accuracy.md](accuracy.md) has the vendor's two models alone, "
        "[timing.md](timing.md#host-links) the hosts' parameters.",
        "",
        f"{len(every)} latencies of {len({point.model for point in every})} networks on "
        f"{len(hosts)} hosts ({len(machines)} machines) whose executables are public. "
        "`testbench/darwinn_testbench/accuracy/evidence.toml` holds them, with the address of each "
        "executable. The executables are not part of this repository.",
        "",
        "Each host is fitted to its own points, as `darwinn calibrate` does: fixed cost, rates, "
        "time of a copy of outputs, and clock. *Left out* is the error of a point by a fit to the "
        "other points of its host. *Other machines* is its error with the medians of what was "
        "fitted to the other machines of its link: of its own machine only the clock takes part.",
        "",
        f"Hosts with three points or more, each point left out: mean and worst error "
        f"{_percent([point.left_out for point in judged])}; "
        f"{_share([point.within for point in judged])} lie within the interval that the other "
        "points give, which is "
        f"{statistics.median([point.width for point in judged or every]):.0%} wide on either side "
        f"in the median. With other machines alone: "
        f"{_percent([point.without_machine for point in alone])}; "
        f"{_share([point.within_without for point in alone])} within.",
        "",
        "| host | machine | interface | clock, published | points | fitted clock, MHz | fixed, ms "
        "| in, MB/s | out, MB/s | copy, ns | left out: mean, worst | other machines |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for host in hosts:
        described, link = points.hosts[host.name], host.fit.link
        clock = f"{link.clock.value / 1e6:.4g}" if host.fit.told else "250 or 500"
        lines.append(
            f"| {host.name} | {described.machine} | {described.interface} | {described.clock} | "
            f"{len(host.points)} | {clock} | {1e3 * link.fixed_seconds.value:.3f} | "
            f"{link.bytes_per_second_in.value / 1e6:.0f} | "
            f"{link.bytes_per_second_out.value / 1e6:.1f} | "
            f"{1e9 * link.output_copy_seconds.value:.0f} | "
            f"{_percent([point.left_out for point in host.points])} | "
            f"{_percent([point.without_machine for point in host.points])} |"
        )
    lines += [
        "",
        "| model | host | measured ms | fitted ms | left out | other machines | source |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {point.model} | {host.name} | {point.measured:g} | {point.fitted:.4g} | "
        f"{_error(point.left_out)} | {_error(point.without_machine)} | {point.source} |"
        for host in hosts
        for point in host.points
    ]
    lines += [
        "",
        "Looked at and not compared:",
        "",
        "| models | source | published ms | reason |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| {', '.join(left.models)} | {left.source} | {left.milliseconds} | {left.reason} |"
        for left in points.left_out
    ]
    return "\n".join(lines) + "\n"


def _error(value: float) -> str:
    return "" if math.isnan(value) else f"{value:+.1%}"


def main() -> int:
    options = parser(__doc__)
    options.add_argument("--models", type=Path, required=True)
    options.add_argument("--document", type=Path)
    options.add_argument("hosts", nargs="*", metavar="HOST")
    given = options.parse_args()
    bench = Bench(given.models)
    names = given.hosts or list(bench.points.hosts)
    if unknown := [name for name in names if name not in bench.points.hosts]:
        refuse(f"no such host: {', '.join(unknown)}")
    print(machine_and_load())
    hosts = []
    for name in names:
        begun = time.perf_counter()
        hosts.append(bench.host(name))
        print(
            f"{name}: {len(hosts[-1].points)} points, left out "
            f"{_percent(hosts[-1].errors)}, {time.perf_counter() - begun:.0f} s",
            flush=True,
        )
    hosts = [bench.without(host, hosts) for host in hosts]
    text = document(bench.points, hosts)
    if given.document:
        write_result(given.document, text.encode())
    else:
        print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
