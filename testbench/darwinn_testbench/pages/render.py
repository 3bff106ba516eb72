"""A page as one HTML file that needs nothing else: no network, no other files."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
from darwinn_formats.errors import printable
from darwinn_formats.extras import advice_of
from darwinn_formats.names import readable
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from darwinn_testbench.pages import charts
from darwinn_testbench.pages.content import Beside, Chart, Graph, Page, Part
from darwinn_testbench.report.shortened import shortened
from darwinn_testbench.report.tables import cell_text
from darwinn_testbench.report.verdict import Verdict

_MARGIN = 12
"""Pixels around the boxes of a graph."""
_MOST_LINE = 32
"""Characters of a cell that stand in one line."""
_MOST_CELL = 500
"""Characters of a cell that a page holds."""
_MOST_ROWS = 2000
"""Rows of a table that a page holds; the commands' --json has all."""


def render(page: Page, library: str = "") -> bytes:
    """The page as HTML; names from files are escaped.

    The library of charts is a part of it, unless ``library`` is the address that a server of
    several pages has it at (``charts.library``). Where it is not installed (the extra
    ``pictures``) a line stands in the place of each chart.

    Raises:
        ValueError: the specification of a chart is not valid.
    """
    environment = Environment(
        loader=PackageLoader("darwinn_testbench.pages", ""),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_readable,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(shown=_shown, kind=_kind, sorted_by=_sorted_by, lines=_lines)
    environment.filters.update(base64=lambda data: base64.b64encode(data).decode(), frame=_frame)
    environment.filters.update(classed=_classed, key=_key)
    environment.tests["verdict"] = lambda cell: isinstance(cell, Verdict)
    parts = [part for section in page.sections for part in section.parts]
    drawn = [part for part in parts if isinstance(part, Chart) and charts.installed()]
    data = {
        "charts": [_chart(each) for each in drawn],
        "spans": {printable(key): span for key, span in page.times.spans.items()},
        "duration": page.times.duration,
    }
    text = environment.get_template("frame.html.j2").render(
        page=page,
        data=Markup(_json(data)),
        has_charts=bool(drawn),
        library=library,
        inlined_library=Markup(charts.library()) if drawn and not library else "",
        advice="" if charts.installed() else advice_of("vl_convert"),
        graph_colours=_graph_colours(parts),
        framed=any(isinstance(part, Beside) for part in parts),
        most_rows=_MOST_ROWS,
    )
    return text.encode()


def _kind(part: Any) -> str:
    return type(part).__name__.lower()


def _chart(chart: Chart) -> Mapping[str, Any]:
    columns = {
        name: _column(values, printable if name == "key" else readable)
        for name, values in chart.columns.items()
    }
    return {"spec": charts.compiled(chart), "columns": columns, "time": chart.time}


def _column(values: Sequence[Any], shown: Callable[[str], str]) -> Any:
    """Numbers as they are; of texts each once, and which of them stands where."""
    plain = np.asarray(values).tolist() if isinstance(values, np.ndarray) else list(values)
    if not any(isinstance(value, str) for value in plain):
        return plain
    texts = ["" if value is None else shown(str(value)) for value in plain]
    place = {text: number for number, text in enumerate(dict.fromkeys(texts))}
    return {"of": list(place), "at": [place[text] for text in texts]}


def _json(value: Any) -> str:
    """JSON that can stand in a script: nothing in it ends one."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _shown(cell: Any) -> str:
    """The text of a cell; the names of all outputs of an operator are half a megabyte."""
    return shortened(cell_text(cell), _MOST_CELL)


def _classed(cell: Any, right: bool) -> Markup:
    """Where a cell stands, and whether it is so long that it is broken into lines."""
    number = isinstance(cell, int | float) and not isinstance(cell, bool)
    classes = [
        *(["right"] if right or number else []),
        *(["long"] if isinstance(cell, str) and len(cell) > _MOST_LINE else []),
    ]
    return Markup(f' class="{" ".join(classes)}"') if classes else Markup("")


def _sorted_by(cell: Any) -> str:
    """What a table is sorted by, where that is not the text of the cell."""
    if isinstance(cell, Verdict):
        return str(list(Verdict).index(cell))
    return repr(cell) if isinstance(cell, int | float) and not isinstance(cell, bool) else ""


def _graph_colours(parts: Sequence[Part]) -> dict[str, str]:
    """A colour for each kind of box: the graph's, or of kinds without one the first differ."""
    graphs = [part for part in parts if isinstance(part, Graph)]
    kinds = dict.fromkeys(box.kind for graph in graphs for box in graph.boxes if box.kind)
    found = {kind: charts.COLOURS[place % len(charts.COLOURS)] for place, kind in enumerate(kinds)}
    for graph in graphs:
        found |= graph.colours
    return found


def _frame(graph: Graph) -> tuple[float, float, float, float]:
    """Left, top, width and height of a graph in pixels."""
    wide, high = graph.box_size
    points = list(chain.from_iterable(graph.paths))
    points += [(box.x, box.y) for box in graph.boxes]
    xs, ys = zip(*(points or [(0.0, 0.0)]), strict=True)
    left, top = min(xs) - wide / 2 - _MARGIN, min(ys) - high / 2 - _MARGIN
    right, bottom = max(xs) + wide / 2 + _MARGIN, max(ys) + high / 2 + _MARGIN
    return left, top, right - left, bottom - top


def _lines(path: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:g},{y:g}" for x, y in path)


def _key(text: str) -> Markup:
    """By what parts of a page are told to be about the same thing: the whole name."""
    return escape(printable(text))


def _readable(value: Any) -> Any:
    """Any text but what is markup already."""
    return readable(value) if isinstance(value, str) and not isinstance(value, Markup) else value
