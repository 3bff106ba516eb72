"""A profile in ten lines: how long, how often, what dominates, what the chip's memories hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from darwinn_sim import chip
from darwinn_sim.chip import ROW_BYTES, WIDE_ROWS
from darwinn_sim.timing import Cause

from darwinn_testbench.profile.profile import ProfileFigures, ProfileRow
from darwinn_testbench.report import Report, counted, significant

_MOST = 3
"""Layers, kinds and causes that a line names."""
_LEAST = 0.001
"""Share of what is worth a word."""


def summary_lines(report: Report[ProfileRow]) -> Sequence[tuple[str, str]]:
    """What a line is about, and what it says."""
    found: ProfileFigures = report.figures["profile"]
    lines = [
        ("time", _time(found)),
        ("of it", _parts(found)),
        ("longest", _longest(report.rows)),
        ("operations", _operations(report.rows, found.cycles)),
        ("tensor units", _waits(found)),
        ("multipliers", _multipliers(found)),
        ("narrow memory", _of(found.narrow_bytes, chip.NARROW_BYTES)),
        ("wide memory", _of(found.wide_bytes, WIDE_ROWS * ROW_BYTES)),
        ("parameters", _parameters(found)),
        ("host link", _link(found)),
        ("energy", "" if found.energy is None else str(found.energy)),
    ]
    return [(name, text) for name, text in lines if text]


def _time(found: ProfileFigures) -> str:
    rate = f"{significant(found.inferences_per_second, 4)}"
    return f"{found.milliseconds:.3f} ms an inference, {rate} a second one after another"


def _parts(found: ProfileFigures) -> str:
    chip_time = found.milliseconds - found.fixed_milliseconds
    return (
        f"{chip_time:.3f} ms on chip and link ({found.cycles:,} cycles, {found.chip} at "
        f"{found.clock_hz / 1e6:g} MHz), {found.fixed_milliseconds:.3f} ms the fixed cost of "
        f"{found.host}"
    )


def _longest(rows: Sequence[ProfileRow]) -> str:
    """The rows that take the most cycles."""
    order = sorted(rows, key=lambda row: -row.cycles)[:_MOST]
    return ", ".join(
        f"{_named(row)} {100 * row.share:.1f} %" for row in order if row.share >= _LEAST
    )


def _named(row: ProfileRow) -> str:
    return row.name if row.number is None else f"{row.name} {row.operation}".strip()


def _operations(rows: Sequence[ProfileRow], cycles: int) -> str:
    """Cycles of the layers by kind, and of the times without a layer."""
    taken, layers = Counter[str](), Counter[str]()
    for row in rows:
        kind = "no layer" if row.number is None else row.kind or ""
        taken[kind] += row.cycles
        layers[kind] += row.number is not None
    # Without --no-operations' kinds all layers would be one.
    if "" in taken:
        return ""
    return ", ".join(_kind(kind, each, layers[kind], cycles) for kind, each in _most(taken, cycles))


def _most(taken: Counter[str], cycles: int) -> Iterator[tuple[str, int]]:
    named = [kind for kind, _ in taken.most_common(_MOST + 1)]
    yield from ((kind, taken[kind]) for kind in named if taken[kind] >= _LEAST * cycles)


def _kind(kind: str, taken: int, layers: int, cycles: int) -> str:
    of = f" ({counted(layers, 'layer')})" if layers else ""
    return f"{kind}{of} {100 * taken / max(cycles, 1):.1f} %"


def _waits(found: ProfileFigures) -> str:
    """How busy the tensor units are, and what they wait for most."""
    done = (Cause.BUSY.label, Cause.FINISHED.label)
    waits = ((cause, share) for cause, share in found.waiting.items() if cause not in done)
    longest = sorted(waits, key=lambda each: -each[1])[:_MOST]
    told = ", ".join(_share(f"{cause}", share) for cause, share in longest if share >= _LEAST)
    busy = _share("busy", found.waiting.get(Cause.BUSY.label, 0))
    return f"{busy}; wait for {told}" if told else busy


def _share(name: str, share: float) -> str:
    return f"{name} {100 * share:.1f} %"


def _multipliers(found: ProfileFigures) -> str:
    return f"{100 * found.utilisation:.1f} % used, {found.products:,} products"


def _of(used: int, there: int) -> str:
    return f"{used:,} of {there:,} bytes of a tile ({100 * used / there:.0f} %)"


def _parameters(found: ProfileFigures) -> str:
    streamed, cached = found.streamed_parameter_bytes, found.cached_parameter_bytes
    return f"{cached:,} bytes cached on the chip, {streamed:,} streamed at each inference"


def _link(found: ProfileFigures) -> str:
    """Bytes that cross the host link, by direction and by what they are."""
    sides = {side: found.memory_bytes[f"host link, {side}"] for side in ("in", "out")}
    moved = _listed((name, size) for name, size in found.transfer_bytes.items() if size)
    return f"{sides['in']:,} bytes in, {sides['out']:,} out at each inference ({moved})"


def _listed(items: Iterable[tuple[str, int]]) -> str:
    return ", ".join(f"{name} {size:,}" for name, size in items)
