"""Bars and histograms as small SVG, for notebooks: nothing has to be installed for them.

Texts and axes have the colour of the page around, so that they are read on a dark one, too.
"""

from __future__ import annotations

import html
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from darwinn_formats.names import readable

Bars = Sequence[tuple[str, Mapping[str, float]]]
"""Bars by name, each of parts put side by side, in one unit."""

MOST_BARS = 40
"""Of more the longest are drawn."""
_MOST_NAME = 32
_STEP, _NAMES, _LENGTH, _VALUES = 18, 220, 380, 110
"""Pixels: from bar to bar, and of names, bars and values side by side."""
_BINS, _HEIGHT, _WIDTH = 48, 60, 220
_COLOURS = (
    *("#3b82c4", "#e0823d", "#4aa564", "#cf5b5b", "#9270ca"),
    *("#a1785c", "#d77fbe", "#8a8f98", "#b5ae3c", "#45b0bf"),
)


def bars(rows: Bars, unit: str) -> str:
    """Horizontal bars, one below the other; empty where there is nothing to draw.

    Values that are not positive and finite are left out. Beside a bar stands its sum, in ``unit``.
    """
    clean = [(name, _together(parts)) for name, parts in _grouped(rows)]
    sums = [sum(parts.values()) for _, parts in clean]
    longest = max(sums, default=0)
    if not longest or not math.isfinite(longest):
        return ""
    shown = sorted(sorted(range(len(clean)), key=lambda place: -sums[place])[:MOST_BARS])
    names = list(dict.fromkeys(part for place in shown for part in clean[place][1]))
    colours = dict(zip(names, _COLOURS, strict=False))
    drawn, top = _legend(colours) if len(names) > 1 else ([], 0)
    for line, place in enumerate(shown):
        name, parts = clean[place]
        y = top + line * _STEP
        drawn.append(_text(_NAMES - 8, y + 13, _short(name), name, anchor="end"))
        x = float(_NAMES)
        for part, value in parts.items():
            width = value / longest * _LENGTH
            drawn.append(
                _bar(x, y + 2, width, _STEP - 4, colours[part], f"{part} {_number(value)}")
            )
            x += width
        drawn.append(_text(x + 6, y + 13, _number(sums[place])))
    left_out = len(clean) - len(shown)
    note = f"{unit}; the longest {len(shown)} of {len(clean)}" if left_out else unit
    bottom = top + len(shown) * _STEP
    drawn.append(_text(_NAMES, bottom + 14, note))
    return _svg(_NAMES + _LENGTH + _VALUES, bottom + 20, drawn, note)


def _grouped(rows: Bars) -> Iterator[tuple[str, Iterable[tuple[str, float]]]]:
    """What is drawn of the rows: parts beyond the number of colours are one, the least of them."""
    clean = [
        (name, {part: value for part, value in parts.items() if math.isfinite(value) and value > 0})
        for name, parts in rows
    ]
    most: Counter[str] = Counter()
    for _, parts in clean:
        most.update(parts)
    first = {name for name, _ in most.most_common(len(_COLOURS) - 1)}
    single = len(most) <= len(_COLOURS)
    for name, parts in clean:
        yield name, [(part if single or part in first else "others", parts[part]) for part in parts]


def _together(parts: Iterable[tuple[str, float]]) -> dict[str, float]:
    found: dict[str, float] = {}
    for name, value in parts:
        found[name] = found.get(name, 0) + value
    return found


def histogram(values: NDArray[np.generic], title: str) -> str:
    """How often which values are in an array; empty of no numbers, or none that is finite."""
    if values.dtype.kind not in "biuf":
        return ""
    numbers = values[np.isfinite(values)].astype(np.float64).reshape(-1)
    if not numbers.size:
        return ""
    low, high = float(numbers.min()), float(numbers.max())
    # Halved: the distance of two numbers may be infinite.
    places = (
        np.zeros(numbers.size) if low == high else ((numbers / 2 - low / 2) / (high / 2 - low / 2))
    )
    counts = np.bincount(np.minimum((places * _BINS).astype(np.int64), _BINS - 1), minlength=_BINS)
    step = _WIDTH / _BINS
    drawn = [_text(0, 12, _short(title), title)]
    for place, count in enumerate(counts.tolist()):
        height = count / counts.max() * _HEIGHT
        if count:
            drawn.append(
                _bar(place * step, 18 + _HEIGHT - height, step, height, _COLOURS[0], f"{count:,}")
            )
    base = 18 + _HEIGHT + 14
    drawn += [_text(0, base, _number(low)), _text(_WIDTH, base, _number(high), anchor="end")]
    return _svg(_WIDTH + 10, base + 6, drawn, f"values of {title}")


def _legend(colours: Mapping[str, str]) -> tuple[list[str], int]:
    """The legend of bars, in as many lines as it takes, and its height."""
    drawn, x, y = [], 0.0, 0
    for name, colour in colours.items():
        width = 26 + 6.5 * len(_short(name))
        if x and x + width > _NAMES + _LENGTH + _VALUES:
            x, y = 0.0, y + _STEP
        drawn += [_bar(x, y + 4, 10, 10, colour, name)]
        drawn += [_text(x + 14, y + 13, _short(name), name)]
        x += width
    return drawn, y + _STEP + 4


def _number(value: float) -> str:
    """Whole numbers in full as far as anybody reads them."""
    return f"{value:,.0f}" if value == round(value) and abs(value) < 1e15 else f"{value:,.6g}"


def _short(name: str) -> str:
    half = _MOST_NAME // 2
    return name if len(name) <= _MOST_NAME else f"{name[: half - 1]}…{name[-half:]}"


def _bar(x: float, y: float, width: float, height: float, colour: str, told: str) -> str:
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" '
        f'fill="{colour}"><title>{_escaped(told)}</title></rect>'
    )


def _text(x: float, y: float, text: str, whole: str = "", anchor: str = "start") -> str:
    title = f"<title>{_escaped(whole[:200])}</title>" if whole != text and whole else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{_escaped(text)}{title}</text>'


def _svg(width: float, height: float, drawn: Sequence[str], label: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" style="max-width:100%" role="img" '
        f'aria-label="{_escaped(label[:200])}" font-family="system-ui, sans-serif" '
        f'font-size="11" fill="currentColor">{"".join(drawn)}</svg>'
    )


def _escaped(text: str) -> str:
    return html.escape(readable(text))
