"""A picture with rows of bars, as the SVG element that a page takes."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

_WIDTH = 9.0
_ROW = 0.19
"""Inches: the width of every picture, and the height of a row of bars."""


@contextmanager
def picture_of(rows: int) -> Iterator[tuple[Axes, io.StringIO]]:
    """A picture with room for ``rows`` bars; when the block ends, its SVG is in the stream."""
    with pictures_of(rows, 1) as ((axes,), stream):
        yield axes, stream


@contextmanager
def pictures_of(rows: int, columns: int) -> Iterator[tuple[tuple[Axes, ...], io.StringIO]]:
    """The same with ``columns`` pictures side by side, which share the names of their bars."""
    stream = io.StringIO()
    # Text stays text, and the same figure is the same file.
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "darwinn", "font.size": 8}):
        figure = Figure(figsize=(_WIDTH, 0.9 + _ROW * max(rows, 4)), layout="constrained")
        axes = figure.subplots(1, columns, sharey=True, squeeze=False)
        yield tuple(axes[0]), stream
        canvas = FigureCanvasSVG(figure)
        canvas.print_svg(stream, metadata={"Date": None, "Creator": None})
    text = stream.getvalue()
    stream.seek(0)
    stream.truncate()
    # A page takes the element, not the document.
    stream.write(text[text.index("<svg") :])
