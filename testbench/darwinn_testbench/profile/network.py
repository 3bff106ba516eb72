"""Networks as graphs of a page, whose boxes are what its charts and tables show."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

from darwinn_testbench.layers.graph import Node, layout, nodes
from darwinn_testbench.layers.rows import LayerRow
from darwinn_testbench.pages import Box, Graph
from darwinn_testbench.report import Report

_PIXELS = 74.0
"""Of an inch of the layout: boxes are this far apart down, and a little more across."""
_BOX = (214.0, 52.0)


def network_graph(report: Report[LayerRow]) -> Graph | None:
    """Inputs, layers and outputs from top to bottom; None without the library of layouts."""
    return laid_out(nodes(report))


def laid_out(graph: Sequence[Node]) -> Graph | None:
    """The nodes from top to bottom, by colour; None without the library of layouts."""
    if find_spec("igraph") is None:
        return None
    places, paths = layout(graph)
    return Graph(
        boxes=[
            _box(node, x * _PIXELS, y * _PIXELS) for node, (x, y) in zip(graph, places, strict=True)
        ],
        paths=[[(round(x * _PIXELS, 1), round(y * _PIXELS, 1)) for x, y in path] for path in paths],
        box_size=_BOX,
    )


def _box(node: Node, x: float, y: float) -> Box:
    return Box(
        node.key, [line for line in node.lines if line], round(x, 1), round(y, 1), _kind(node)
    )


def _kind(node: Node) -> str:
    """Boxes of one colour in pictures are of one colour on the page; ports have none."""
    return "" if node.is_port else node.colour
