"""Reviewed baselines of cycles: has an executable got slower, where, and through whose change.

A baseline is a JSON file that is meant to be read and reviewed: an entry for each executable, chip
and host link, with the figures that are expected and how far each may be off. Counts are compared
exactly unless a tolerance is written into the file by hand.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Annotated, Literal

import msgspec
from darwinn_formats.files import read_file
from msgspec import Meta

from darwinn_testbench.errors import InputError
from darwinn_testbench.report import Row, Verdict
from darwinn_testbench.report.files import write_result
from darwinn_testbench.version import __version__

_MAX_BYTES = 256 << 20

Share = Annotated[float, Meta(ge=0, le=1)]


class Metric(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a figure should be. ``tolerance`` is a share of ``value``, both ways.

    ``check``: ``gate`` fails beyond the tolerance, ``report`` only says so.
    """

    value: int
    tolerance: Share = 0.0
    check: Literal["gate", "report"] = "gate"


class Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A layer of the program and what it took: cycles from begin to end, busy cycles by unit and
    waiting cycles by cause, both summed over units and tiles."""

    name: str
    cycles: int
    units: dict[str, int] = {}
    waits: dict[str, int] = {}


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The figures of one executable on one chip behind one host link.

    ``sha256`` is the file's, ``program`` the version of this program, ``reason`` why the figures
    are as they are: whoever updates the baseline writes it.
    """

    name: str
    chip: str
    host: str
    sha256: str
    program: str = __version__
    reason: str = ""
    metrics: dict[str, Metric]
    layers: tuple[Part, ...] = ()

    @property
    def key(self) -> tuple[str, str, str]:
        """What tells entries apart."""
        return (self.name, self.chip, self.host)


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    entries: tuple[Entry, ...]
    format: Literal["darwinn-cycles/1"] = "darwinn-cycles/1"


@dataclass(frozen=True, kw_only=True)
class MetricRow(Row):
    """One figure beside its baseline; ``expected`` is None where there is none, ``value`` where the
    executable does not have it any more.

    ``change`` is one of ``better`` (less), ``worse`` (more), ``new`` and ``gone``, empty for none.
    ``cause``: ``executable`` if the file differs from the one of the baseline, ``model`` if the
    same file gives other figures, empty if the figure is as expected. ``where`` names the first
    layer, and its unit or wait, that differs; the message of an executable's first difference says
    both, for all of them.
    """

    metric: str
    value: int | None = None
    change: str = ""
    expected: int | None = None
    tolerance: float = 0.0
    check: str = "gate"
    cause: str = ""
    where: str = ""

    @property
    def case(self) -> str:
        """Executable and figure."""
        return f"{self.name}: {self.metric}"


def load(path: str | os.PathLike[str]) -> tuple[Entry, ...]:
    """The entries of a baseline.

    Raises:
        FormatError: it is larger than a baseline can be.
        InputError: it is not a baseline; the message has the field and the reason.
        OSError: it cannot be read.
    """
    try:
        entries = msgspec.json.decode(read_file(path, _MAX_BYTES), type=_File).entries
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{path}: not a baseline of cycles: {error}") from None
    keys = [entry.key for entry in entries]
    twice = next((key for key in keys if keys.count(key) > 1), None)
    if twice:
        raise InputError(f"{path}: two entries for {', '.join(twice)}")
    return entries


def compare(measured: Iterable[Entry], baseline: Sequence[Entry]) -> tuple[MetricRow, ...]:
    """A row for each figure of each executable, in the order of ``measured``."""
    expected = {entry.key: entry for entry in baseline}
    return tuple(row for entry in measured for row in _rows(entry, expected.get(entry.key)))


def _rows(entry: Entry, expected: Entry | None) -> Iterable[MetricRow]:
    if expected is None:
        for metric, new in entry.metrics.items():
            yield MetricRow(
                name=entry.name,
                change="new",
                verdict=Verdict.REGRESSION,
                message=f"not in the baseline for {entry.chip} and {entry.host}: --update adds it",
                metric=metric,
                value=new.value,
            )
        return
    cause = "executable" if entry.sha256 != expected.sha256 else "model"
    where = first_difference(expected.layers, entry.layers)
    said = f"; {_CAUSES[cause]}{f'; first at {where}' if where else ''}"
    for metric, goal in expected.metrics.items():
        figure = entry.metrics.get(metric)
        if figure is None:
            yield _gone(entry, metric, goal)
        elif figure.value == goal.value:
            yield _row(entry, metric, figure.value, goal)
        else:
            row = _row(entry, metric, figure.value, goal)
            message = f"{_difference(figure.value, goal, row.change)}{said}"
            yield replace(row, message=message, cause=cause, where=where)
            said = ""


def _gone(entry: Entry, metric: str, goal: Metric) -> MetricRow:
    return MetricRow(
        name=entry.name,
        verdict=Verdict.REGRESSION if goal.check == "gate" else Verdict.PASS,
        message=f"the baseline has {metric}, the executable does not any more",
        metric=metric,
        change="gone",
        expected=goal.value,
        tolerance=goal.tolerance,
        check=goal.check,
    )


def _row(entry: Entry, metric: str, value: int, goal: Metric) -> MetricRow:
    within = abs(value - goal.value) <= goal.tolerance * abs(goal.value)
    return MetricRow(
        name=entry.name,
        verdict=Verdict.PASS if within or goal.check == "report" else Verdict.REGRESSION,
        metric=metric,
        value=value,
        # Whatever is counted is time, work or traffic: less is better.
        change="better" if value < goal.value else "worse" if value > goal.value else "",
        expected=goal.value,
        tolerance=goal.tolerance,
        check=goal.check,
    )


def _difference(value: int, goal: Metric, change: str) -> str:
    share = f"{100 * (value - goal.value) / goal.value:+.3g} %" if goal.value else "from 0"
    return (
        f"{value:,} instead of {goal.value:,} ({share}, {100 * goal.tolerance:g} % allowed): "
        f"changed for the {change}"
    )


_CAUSES = {
    "executable": "the executable changed",
    "model": "the same executable, so the simulator or its chip description changed",
}


def first_difference(expected: Sequence[Part], measured: Sequence[Part]) -> str:
    """The first layer that took another time, and the unit or wait in it that changed most."""
    for old, new in zip_longest(expected, measured):
        if old is None or new is None:
            present = old or new
            return f"{present.name if present else ''}, which only one of them has"
        if old.name != new.name:
            return f"{new.name}, where the baseline has {old.name}"
        if (old.cycles, old.units) != (new.cycles, new.units):
            return f"{new.name} ({old.cycles:,} to {new.cycles:,} cycles; {_why(old, new)})"
    return ""


def _why(old: Part, new: Part) -> str:
    """The unit that is busy for another time; if none is, what they wait for."""
    unit = _most_changed(old.units, new.units)
    if unit:
        return f"{unit} {old.units.get(unit, 0):,} to {new.units.get(unit, 0):,} busy"
    waits = "they wait longer" if new.cycles > old.cycles else "they wait less"
    wait = _most_changed(old.waits, new.waits) if old.waits else ""
    named = f": {wait} {new.waits.get(wait, 0) - old.waits.get(wait, 0):+,} cycles" if wait else ""
    return f"the units do the same, {waits}{named}"


def _most_changed(old: Mapping[str, int], new: Mapping[str, int]) -> str:
    """The key whose value changed most; empty if none did."""
    changes = {key: new.get(key, 0) - old.get(key, 0) for key in sorted({*old, *new})}
    most = max(changes, key=lambda key: abs(changes[key]), default="")
    return most if most and changes[most] else ""


def updated(baseline: Sequence[Entry], measured: Iterable[Entry], reason: str) -> tuple[Entry, ...]:
    """The baseline with the figures of ``measured``.

    Entries that are as before keep their reason; tolerances, and what only reports, stay.
    """
    entries = {entry.key: entry for entry in baseline}
    for entry in measured:
        old = entries.get(entry.key)
        if old is not None:
            kept = {
                name: msgspec.structs.replace(old.metrics.get(name, figure), value=figure.value)
                for name, figure in entry.metrics.items()
            }
            entry = msgspec.structs.replace(entry, metrics=kept)
            if msgspec.structs.replace(entry, reason=old.reason, program=old.program) == old:
                continue
        entries[entry.key] = msgspec.structs.replace(entry, reason=reason)
    return tuple(entries[key] for key in sorted(entries))


def save(path: str | os.PathLike[str], entries: Sequence[Entry]) -> None:
    """Write a baseline, whole or not at all.

    Raises:
        OSError: it cannot be written.
    """
    data = msgspec.json.encode(_File(tuple(entries)))
    write_result(path, msgspec.json.format(data, indent=1) + b"\n")
