"""Times of models that a user measured: from the command line or a CSV, fitted to his host."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from darwinn_formats.darwinn import load
from darwinn_formats.files import is_there, read_file
from darwinn_sim import timing
from darwinn_sim.timing.description import HostLink

from darwinn_testbench.accuracy.calibration import PARAMETERS, Calibration, calibrate, timed
from darwinn_testbench.chip.cpu_operators import cpu_operators, named_operators
from darwinn_testbench.chip.cycles import check_pair
from darwinn_testbench.errors import InputError
from darwinn_testbench.report import Report, Row, Verdict, counted
from darwinn_testbench.report.progress import ProgressCallback, silent

FEWEST = 2
"""Models below which nothing of a host can be told."""

AT_MOST = 15.0
"""Percent: the mean error of a good fit for a model that took no part in it, at most."""

_LEAST, _MOST = 1e-6, 1e9
"""Milliseconds that an inference may take: a fit to others would overflow."""

_WRITTEN = (*PARAMETERS, "scatter")
"""What a host file has of its own; everything else is that of the description it extends."""


@dataclass(frozen=True, kw_only=True)
class CalibrationRow(Row):
    """A model that was measured: times in ms, errors as shares of the measured one.

    ``predicted`` is by the fit to all models, ``left_out_error`` the error by a fit to the others
    alone; None where there are too few.
    """

    model: str
    measured: float
    predicted: float
    error: float
    left_out_error: float | None = None


def given_times(words: Iterable[str]) -> dict[str, list[float]]:
    """Milliseconds by model, of ``MODEL=MS``; raises ``InputError`` naming a word that is none."""
    times: dict[str, list[float]] = {}
    for word in words:
        model, equals, number = word.rpartition("=")
        if not equals or not model:
            table = f"; or --times {word}" if word.lower().endswith(".csv") else ""
            raise InputError(
                f"{word}: give MODEL=MS, the file of a model and its milliseconds{table}"
            )
        times.setdefault(model, []).append(_milliseconds(number, word))
    return times


def times_of_csv(path: Path) -> dict[str, list[float]]:
    """Milliseconds by model, of a CSV with a model and a time in each line; a first line without
    a time is a heading, unless it names a file. Cells are separated by commas, or by semicolons or
    tabs: then times may have a decimal comma. Models count from the folder of the CSV.

    Raises ``InputError`` naming the line, ``FormatError`` if the file is too large, ``OSError``.
    """
    times: dict[str, list[float]] = {}
    text = read_file(path).decode("utf-8-sig", "replace")
    separator = next((each for each in ";\t" if each in text), ",")
    for number, cells in _lines(text, separator, path):
        if separator != ",":
            cells[1:] = (cell.replace(",", ".") for cell in cells[1:])
        if not any(cells) or (number == 1 and _is_heading(cells, path.parent)):
            continue
        where = f"{path}: line {number}"
        if len(cells) != FEWEST:
            raise InputError(f"{where}: give a model and its milliseconds, two cells")
        times.setdefault(str(path.parent / cells[0]), []).append(_milliseconds(cells[1], where))
    if not times:
        raise InputError(
            f"{path}: has no time: give a model and its milliseconds in each line, separated by a "
            "comma, a semicolon or a tab"
        )
    return times


def _lines(text: str, separator: str, path: Path) -> Iterator[tuple[int, list[str]]]:
    """The lines of a CSV with their numbers, each as cells; a line may end in CR alone."""
    reader = csv.reader(io.StringIO(text, newline=None), delimiter=separator)
    try:
        for number, line in enumerate(reader, 1):
            yield number, [cell.strip() for cell in line]
    except csv.Error as error:
        raise InputError(f"{path}: line {reader.line_num}: {error}") from None


def _is_heading(cells: Sequence[str], folder: Path) -> bool:
    """Whether a first line is a heading, and not a model with a time that cannot be read."""
    model = folder / cells[0]
    return not _is_number(cells[-1]) and not (is_there(model) and model.is_file())


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _milliseconds(text: str, where: str) -> float:
    value = float(text) if _is_number(text) else math.nan
    if not _LEAST <= value <= _MOST:
        raise InputError(f"{where}: {text!r} is no time in milliseconds")
    return value


def calibrate_host(
    times: Mapping[str, Sequence[float]],
    base: str,
    chip: str,
    *,
    at_most: float = AT_MOST,
    progress: ProgressCallback = silent,
) -> tuple[Report[CalibrationRow], HostLink]:
    """Fit a host to measured times.

    Args:
        times: milliseconds of an inference by the file of its compiled model; of several the
            median is taken.
        base: the kind of host: a built-in link or a TOML file.
        chip: a built-in chip description or a TOML file.
        at_most: percent: with a larger mean error for models that take no part in the fit, or for
            two models with a larger mean error, the fit is poor, which is a mismatch.
        progress: told what is being done.

    Raises:
        InputError: fewer than two models, a link that does not belong to the chip, or times that
            no host has.
        FormatError, OSError: a file is not valid or cannot be read.
        SimulationError: a model cannot be timed.
    """
    times = _by_file(times)
    if len(times) < FEWEST:
        raise InputError(f"{counted(len(times), 'model')} measured: give two or more")
    description, link = timing.chip_description(chip), timing.host_link(base)
    check_pair(description, link)
    models, on_cpu = [], []
    for model in times:
        file = load(Path(model))
        if not file.models:
            raise InputError(f"{model}: holds no compiled model")
        models.append(timed(file.models[0].inference, description))
        on_cpu.append(named_operators(cpu_operators(file)))
    measured = [statistics.median(each) for each in times.values()]
    found = calibrate(
        models,
        [each / 1e3 for each in measured],
        link,
        description.clock.value,
        source=f"darwinn calibrate: {counted(len(times), 'model')}",
        progress=lambda done: progress("simulating", done, None),
    )
    _refuse_impossible(found.link)
    rows = [
        CalibrationRow(
            name=Path(model).name,
            verdict=Verdict.PASS,
            message=f"operators on the CPU count as the host's: {left}" if left else "",
            model=model,
            measured=here,
            predicted=1e3 * float(predicted),
            error=1e3 * float(predicted) / here - 1,
            left_out_error=None if np.isnan(error) else float(error),
        )
        for model, here, predicted, error, left in zip(
            times, measured, found.predicted, found.left_out, on_cpu, strict=True
        )
    ]
    figures = {"chip": description.name, **_figures(found, rows, base), "at_most": at_most / 100}
    off = figures["mean_left_out_error"] or figures["mean_error"]
    poor = off > at_most / 100
    report = Report(
        command="calibrate",
        file=counted(len(times), "model"),
        rows=tuple(rows),
        figures=figures,
        decided=Verdict.MISMATCH if poor else Verdict.PASS,
        message=(f"poor fit, beyond {at_most:g} % on average: " if poor else "")
        + _message(found, figures),
    )
    return report, found.link


def _by_file(times: Mapping[str, Sequence[float]]) -> dict[str, list[float]]:
    """Times of each file together, whatever names it goes by: under the first of them."""
    first: dict[Path, str] = {}
    together: dict[str, list[float]] = {}
    for model, each in times.items():
        name = first.setdefault(Path(model).resolve(), model)
        together.setdefault(name, []).extend(each)
    return together


def _refuse_impossible(link: HostLink) -> None:
    """InputError for a host whose description nobody could read."""
    for name in _WRITTEN:
        quantity, rule = getattr(link, name), HostLink.parameters()[name]
        for value in (quantity.value, *quantity.interval):
            if objection := rule.objection(value):
                raise InputError(
                    f"these times do not fit one host, by {name}: {objection}; are all of them "
                    "milliseconds, of the models that are named?"
                )


def _figures(found: Calibration, rows: Sequence[CalibrationRow], base: str) -> dict[str, Any]:
    described = found.link.as_json()
    errors = [abs(row.error) for row in rows]
    others = [abs(row.left_out_error) for row in rows if row.left_out_error is not None]
    return {
        "base": base,
        "models": len(rows),
        "clock_told": found.told,
        "clocks": {f"{clock:.0f}": scatter for clock, scatter in found.clocks.items()},
        "mean_error": statistics.mean(errors),
        "worst_error": max(errors),
        "mean_left_out_error": statistics.mean(others) if others else None,
        "worst_left_out_error": max(others, default=None),
        "parameters": {name: described[name] for name in _WRITTEN},
    }


def _message(found: Calibration, figures: Mapping[str, Any]) -> str:
    """How well it fits, and what cannot be told."""
    text = (
        f"the fit is off by {figures['mean_error']:.1%} on average, "
        f"{figures['worst_error']:.1%} at most"
    )
    if figures["mean_left_out_error"] is not None:
        text += (
            f"; models that took no part in it by {figures['mean_left_out_error']:.1%}, "
            f"{figures['worst_left_out_error']:.1%} at most"
        )
    low, high = found.link.clock.interval
    if not found.told:
        text += (
            f"; these models do not tell clock and rates apart: {low / 1e6:g} and {high / 1e6:g} "
            "MHz fit alike, and times have the range of both; add a model that computes much and "
            "returns little"
        )
    return text


def host_file(link: HostLink, base: str, folder: Path = Path()) -> str:
    """A host's description as TOML, for ``--host``: what was fitted, and what it extends.

    A ``base`` that is a file is named as it is seen from ``folder``, where the text will stand.
    """
    if base.endswith(".toml"):
        base = os.path.relpath(base, folder)
    pairs = [f'    ["{one}", "{other}", {value}],' for one, other, value in link.correlations]
    # Without any the list is written, too: those of the extended description do not hold.
    lines = [f"extends = {json.dumps(base)}", "", "correlations = [", *pairs, "]"]
    for name in _WRITTEN:
        quantity = getattr(link, name)
        unit = HostLink.parameters()[name].unit
        lines += [
            "",
            f"[{name}]",
            f"value = {quantity.value}",
            f'unit = "{unit}"',
            f'source = "{quantity.source}"',
            f'confidence = "{quantity.confidence.value}"',
        ]
        if quantity.least is not None and quantity.most is not None:
            lines += [f"least = {quantity.least}", f"most = {quantity.most}"]
    return "\n".join(lines) + "\n"
