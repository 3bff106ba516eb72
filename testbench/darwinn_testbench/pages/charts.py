"""Charts by Vega: its library for the page, and Vega-Lite specifications that several pages use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

from darwinn_formats.extras import require

from darwinn_testbench.pages.content import Chart, Columns

Spec = Mapping[str, Any]

COLOURS = (
    "#3b82c4",
    "#e0823d",
    "#4aa564",
    "#cf5b5b",
    "#9270ca",
    "#a1785c",
    "#d77fbe",
    "#8a8f98",
    "#b5ae3c",
    "#45b0bf",
)
"""Colours that are told apart on a white and on a black page."""

_NARROW = 480
"""Pixels of a chart, below which its words get less room."""
_MOST = f"(width < {_NARROW} ? 20 : 44)"
_SHORTENED = (
    f"length(datum.label) > {_MOST} ? slice(datum.label, 0, {_MOST} / 2) + '…' "
    f"+ slice(datum.label, -{_MOST} / 2) : datum.label"
)
"""A name with its middle left out, as ``report.tables.shortened`` has it."""
_CONFIG: Spec = {
    "background": None,
    "font": "system-ui, sans-serif",
    "view": {"stroke": None},
    "axis": {"labelFontSize": 11, "titleFontSize": 11, "titleFontWeight": "normal"},
    "axisY": {"labelLimit": 330},
    "legend": {
        "orient": "top",
        "title": None,
        "labelFontSize": 11,
        "columns": {"expr": f"width < {_NARROW} ? 2 : 5"},
    },
    "range": {"category": list(COLOURS)},
    "bar": {"height": {"band": 0.8}},
}
_CHOSEN: Spec = {"name": "chosen", "value": ""}
_TIMES: Sequence[Spec] = (
    {"name": "t0", "value": 0},
    {"name": "t1", "value": 1},
    {"name": "from", "value": 0},
    {"name": "to", "value": 0},
)
_FADED: Spec = {"condition": {"test": "!chosen || datum.key === chosen", "value": 1}, "value": 0.35}


def installed() -> bool:
    """Whether charts can be made: without the library a page says what to install."""
    return find_spec("vl_convert") is not None


@lru_cache(maxsize=1)
def library() -> str:
    """The source of Vega, as one script without imports that defines ``vega``.

    Raises:
        Unavailable: vl-convert is not installed.
    """
    require("vl_convert")
    # Imported here: no other page should wait for it.
    import vl_convert

    # Vega by the name under which the library carries it: no network is asked. Without Vega-Lite,
    # which has done its part by then, the script is two thirds as long.
    source = f"https://cdn.jsdelivr.net/npm/vega@{vl_convert.get_vega_version()}/+esm"
    script: str = vl_convert.javascript_bundle(
        f'import {{ parse, View }} from "{source}"; window.vega = {{ parse, View }};'
    )
    return script


def compiled(chart: Chart) -> Mapping[str, Any]:
    """The chart as a Vega specification, whose data set ``rows`` is to be filled.

    Raises:
        ValueError: the specification is not valid Vega-Lite.
    """
    import vl_convert

    params = [_CHOSEN, *(_TIMES if chart.time else ()), *chart.spec.get("params", ())]
    whole = {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "width": "container",
        "autosize": {"type": "fit-x", "contains": "padding"},
        "config": _CONFIG,
        **chart.spec,
        "data": {"name": "rows"},
        "params": params,
    }
    # The newest that it has: of 6.1 and 6.4, which versions of it bring, either will do.
    newest = vl_convert.get_vegalite_versions()[-1]
    specification: Mapping[str, Any] = vl_convert.vegalite_to_vega(whole, vl_version=newest)
    return specification


def bars(
    columns: Columns,
    *,
    unit: str,
    label: str,
    parts: Sequence[str] = (),
    colours: Mapping[str, str] | None = None,
    log: bool = False,
) -> Chart:
    """Horizontal bars, one below the other, in the order of the rows.

    Args:
        columns: ``name`` of the bar, ``value``; ``part`` if bars are split, ``key`` if they are
            about something of the page, ``note`` to be read with a mark.
        unit: what the values are.
        label: what the chart is, for readers who cannot see it.
        parts: the names of the parts in order, each of which gets a colour.
        colours: the colours of parts, where they mean something (verdicts).
        log: whether values are shown by their logarithm; parts are then not put side by side.
    """
    encoding: dict[str, Any] = {
        "y": names_down("name"),
        "x": {"field": "value", "type": "quantitative", "title": unit},
        "tooltip": _tips(columns, {"name": "", "part": "", "value": unit, "note": ""}),
    }
    if log:
        ticks = {"values": [0, *(10**power for power in range(12))], "labelOverlap": "greedy"}
        encoding["x"] |= {"scale": {"type": "symlog"}, "stack": None, "axis": ticks}
    elif all(isinstance(value, int) for value in columns["value"]):
        # A half of a row there is not.
        encoding["x"]["axis"] = {"tickMinStep": 1}
    if parts:
        encoding["color"] = _coloured("part", parts, colours or {})
        encoding["order"] = {"field": "place", "type": "quantitative"}
        place = {name: number for number, name in enumerate(parts)}
        columns = {**columns, "place": [place[part] for part in columns["part"]]}
    if "key" in columns:
        encoding["opacity"] = _FADED
    spec = {"height": {"step": 17}, "mark": "bar", "encoding": encoding}
    return Chart(spec, columns, label=label)


def names_down(field: str) -> dict[str, Any]:
    """The names of ``field`` from top to bottom in the order of the rows, as the y of a chart."""
    axis = {"labelExpr": _SHORTENED}
    return {"field": field, "type": "nominal", "sort": None, "title": None, "axis": axis}


def over_time(layers: Sequence[Spec], columns: Columns, *, label: str, height: Any) -> Chart:
    """Marks over a time that all such charts of a page share, in milliseconds.

    ``layers`` have their x in fields ``a`` and, if they last, ``b``; what a reader has chosen is
    shaded from its start to its end.
    """
    x: Spec = {
        "field": "a",
        "type": "quantitative",
        "title": "ms from the host's request",
        "scale": {"domain": [{"expr": "t0"}, {"expr": "t1"}], "nice": False},
        # A label at an edge that is moved inwards would meet its neighbour.
        "axis": {"labelFlush": False, "labelOverlap": "greedy", "labelSeparation": 6},
    }
    chosen: Spec = {
        "mark": {"type": "rect", "clip": True, "color": "#f2b100", "opacity": 0.25},
        "data": {"values": [{}]},
        "encoding": {
            "x": {"datum": {"expr": "from"}, "type": "quantitative"},
            "x2": {"datum": {"expr": "to"}},
        },
    }
    drawn = [
        {**each, "encoding": {"x": x, **_until(columns), **each["encoding"]}} for each in layers
    ]
    return Chart({"height": height, "layer": [*drawn, chosen]}, columns, time=True, label=label)


def _until(columns: Columns) -> Spec:
    return {"x2": {"field": "b"}} if "b" in columns else {}


def _coloured(field: str, names: Sequence[str], given: Mapping[str, str]) -> Spec:
    colours = [given.get(name, COLOURS[number % len(COLOURS)]) for number, name in enumerate(names)]
    scale = {"domain": list(names), "range": colours}
    return {"field": field, "type": "nominal", "scale": scale, "title": None}


def _tips(columns: Columns, titles: Mapping[str, str]) -> list[Spec]:
    return [
        {"field": name, "title": title or name, **({"format": ",.6~g"} if name == "value" else {})}
        for name, title in titles.items()
        if name in columns
    ]
