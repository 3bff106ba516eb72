"""Networks as graphs of a page, whose boxes are what its charts and tables show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import NamedTuple

from darwinn_testbench.layers.graph import COLOURS, OTHER_COLOUR, Node, layout, nodes
from darwinn_testbench.layers.rows import LayerRow
from darwinn_testbench.pages import Box, Graph, charts
from darwinn_testbench.report import Report

_PIXELS = 74.0
"""Of an inch of the layout: boxes are this far apart down, and a little more across."""
_BOX = (214.0, 52.0)


class Kind(NamedTuple):
    """What a box of the graph is, and its colour on pages."""

    name: str
    colour: str


_PICTURED: Mapping[str, str] = {
    picture: ", ".join(name for name, colour in COLOURS.items() if colour == picture)
    for picture in COLOURS.values()
} | {OTHER_COLOUR: "other"}
KINDS = {
    picture: Kind(name, charts.COLOURS[place])
    for place, (picture, name) in enumerate(_PICTURED.items())
}
"""By the colour in pictures: layers of one colour there have one colour on pages."""


def network_graph(report: Report[LayerRow]) -> Graph | None:
    """Inputs, layers and outputs from top to bottom; None without the library of layouts."""
    return laid_out(nodes(report), KINDS)


def laid_out(graph: Sequence[Node], kinds: Mapping[str, Kind]) -> Graph | None:
    """The nodes from top to bottom, of which kind each is by its colour in pictures.

    None without the library of layouts.
    """
    if find_spec("igraph") is None:
        return None
    places, paths = layout(graph)
    return Graph(
        boxes=[
            _box(node, kinds, x * _PIXELS, y * _PIXELS)
            for node, (x, y) in zip(graph, places, strict=True)
        ],
        paths=[[(round(x * _PIXELS, 1), round(y * _PIXELS, 1)) for x, y in path] for path in paths],
        box_size=_BOX,
        colours={kind.name: kind.colour for kind in kinds.values()},
    )


def _box(node: Node, kinds: Mapping[str, Kind], x: float, y: float) -> Box:
    """A box without a kind is an input or output of the executable."""
    kind = kinds[node.colour].name if node.colour in kinds else ""
    return Box(node.key, [line for line in node.lines if line], round(x, 1), round(y, 1), kind)
