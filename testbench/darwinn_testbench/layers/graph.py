"""The network of an executable as a graph: a picture, or text for other programs to draw."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from darwinn_formats.errors import printable
from darwinn_formats.extras import require
from darwinn_formats.names import readable, short_name

from darwinn_testbench.errors import InputError
from darwinn_testbench.layers.rows import LayerRow
from darwinn_testbench.layers.view import PortFigures, ScalarCoreFigures
from darwinn_testbench.report import Report
from darwinn_testbench.report.shortened import shortened

FORMATS = ("svg", "png", "dot")

COLOURS = {
    "conv": "#cfe2f3",
    "depthwise": "#d9ead3",
    "dense": "#d9d2e9",
    "add": "#fff2cc",
    "multiply": "#fff2cc",
    "average pool": "#f4cccc",
    "move": "#eeeeee",
}
"""Of boxes in pictures, by what a layer computes."""
PORT_COLOUR, OTHER_COLOUR = "#ffffff", "#fce5cd"

_WIDTH, _HEIGHT, _DOWN, _ACROSS = 2.9, 0.62, 1.0, 3.3
"""Inches: of a node, and from one to the next."""
_LARGEST = 100.0
"""Inches of a picture's side; a larger one is shrunk."""
_MARGIN = 0.2
"""Inches around."""
_DOTS_PER_INCH = 80
_FONT, _LINE = 12.0, 36
"""Dots of the letters, and how many of them a box has room for; longer lines have smaller ones."""
_SWEEPS = 200
"""Attempts to let fewer lines cross."""


@dataclass(frozen=True)
class Node:
    """A box of the graph: ``lines`` of text, a colour, and the keys of the boxes before it."""

    key: str
    lines: tuple[str, ...]
    colour: str
    before: tuple[str, ...]

    @property
    def is_port(self) -> bool:
        """Whether it is an input or output of the executable, and no layer."""
        return self.colour == PORT_COLOUR


def nodes(report: Report[LayerRow]) -> tuple[Node, ...]:
    """Inputs, layers, what the scalar core computes, and outputs, each after what it reads."""
    ports: tuple[PortFigures, ...] = report.figures["ports"]
    core: ScalarCoreFigures | None = report.figures["scalar_core"]
    found = [Node(_key(each), _port_lines(each), PORT_COLOUR, ()) for each in _of(ports, "input")]
    inputs = {each.name: _key(each) for each in _of(ports, "input")}
    for row in report.rows:
        before = tuple(inputs.get(each, each) for each in row.inputs)
        colour = COLOURS.get(row.kind, OTHER_COLOUR)
        found.append(Node(f"layer:{row.number}", tuple(_lines(row)), colour, before))
    if core is not None:
        text = ("scalar core", ", ".join(core.functions))
        found.append(Node("scalar core", text, OTHER_COLOUR, core.inputs))
    for port in _of(ports, "output"):
        before = tuple(f"layer:{number}" for number in port.layers)
        if core is not None and port.name in core.outputs:
            before = ("scalar core",)
        found.append(Node(_key(port), _port_lines(port), PORT_COLOUR, before))
    return tuple(found)


def draw(report: Report[LayerRow], kind: str) -> bytes:
    """The graph in one of ``FORMATS``.

    Raises:
        InputError: another format.
    """
    return draw_nodes(nodes(report), kind)


def draw_nodes(graph: Sequence[Node], kind: str) -> bytes:
    """Boxes and lines in one of ``FORMATS``; raises as :func:`draw`."""
    if kind not in FORMATS:
        raise InputError(f"a graph is written as .{', .'.join(FORMATS)}, not as .{kind or '?'}")
    return _dot(graph).encode() if kind == "dot" else _picture(graph, kind)


def _of(ports: Sequence[PortFigures], direction: str) -> Iterator[PortFigures]:
    return (each for each in ports if each.direction == direction)


def _key(port: PortFigures) -> str:
    return f"{port.direction} {port.name}"


def _port_lines(port: PortFigures) -> tuple[str, ...]:
    return (f"{port.direction} {_short(port.name)}", _size(port.shape))


def _lines(row: LayerRow) -> Iterator[str]:
    yield f"{row.number}  {operation(row)}"
    if row.tensor:
        yield _short(f"{row.operator} {short_name(row.tensor)}")
    shape = "" if row.output_shape is None else _size(row.output_shape)
    shape = "? shape" if "output shape" in row.unknown else shape
    parameters = sum(each.bytes for each in row.parameters)
    yield ", ".join(filter(None, (shape, f"{parameters:,} bytes" if parameters else "")))


def operation(row: LayerRow) -> str:
    """The operation with its window: ``depthwise 3x3 /2``; ``?`` is not known."""
    text = row.kind
    if "kernel" in row.unknown:
        text += " ?"
    elif row.kernel is not None:
        text += f" {_size(row.kernel)}"
        text += _stride(row)
        if row.dilation not in (None, (1, 1)):
            text += f" dilated {max(row.dilation or (1,))}"
    return f"{text} ({row.part_of})" if row.part_of else text


def _stride(row: LayerRow) -> str:
    if "stride" in row.unknown:
        return " /?"
    if row.stride in (None, (1, 1)):
        return ""
    down, across = row.stride or (1, 1)
    return f" /{down}" if down == across else f" /{down}x{across}"


def _size(numbers: Sequence[int]) -> str:
    return "x".join(map(str, numbers))


def _short(name: str, most: int = 32) -> str:
    return shortened(readable(name), most)


def _dot(graph: Sequence[Node]) -> str:
    lines = ["digraph layers {", '  node [shape=box, style="rounded,filled", fontname="sans"];']
    for node in graph:
        text = "\\n".join(map(_escaped, node.lines))
        lines.append(f'  "{_escaped(node.key)}" [label="{text}", fillcolor="{node.colour}"];')
    for node in graph:
        lines += [f'  "{_escaped(each)}" -> "{_escaped(node.key)}";' for each in node.before]
    return "\n".join([*lines, "}", ""])


def _escaped(text: str) -> str:
    return printable(text).replace("\\", "\\\\").replace('"', '\\"')


def _picture(graph: Sequence[Node], kind: str) -> bytes:
    require("igraph")
    svg = _svg(graph)
    if kind == "svg":
        return svg.encode()
    require("vl_convert")
    # Imported here: no other command needs it. It brings a font along.
    import vl_convert

    png: bytes = vl_convert.svg_to_png(svg)
    return png


def _svg(graph: Sequence[Node]) -> str:
    places, paths = layout(graph)
    across = [x for x, _ in [*places, *(point for path in paths for point in path)]]
    left, top = min(across) - _WIDTH / 2 - _MARGIN, -_HEIGHT / 2 - _MARGIN
    width = max(across) + _WIDTH / 2 + _MARGIN - left
    height = max(y for _, y in places) + _HEIGHT / 2 + _MARGIN - top
    shrink = min(1.0, _LARGEST / max(width, height))

    def dots(inches: float) -> str:
        return f"{inches * _DOTS_PER_INCH:g}"

    lines = [
        '<?xml version="1.0" encoding="utf-8"?>',
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{dots(shrink * width)}" '
        f'height="{dots(shrink * height)}" viewBox="0 0 {dots(width)} {dots(height)}" '
        'font-family="Arial, sans-serif" text-anchor="middle">',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
    ]
    for path in paths:
        points = " ".join(f"{dots(x - left)},{dots(y - top)}" for x, y in path)
        lines.append(f'<polyline points="{points}" fill="none" stroke="#777777"/>')
    for node, (x, y) in zip(graph, places, strict=True):
        lines.append(
            f'<rect x="{dots(x - left - _WIDTH / 2)}" y="{dots(y - top - _HEIGHT / 2)}" '
            f'width="{dots(_WIDTH)}" height="{dots(_HEIGHT)}" rx="6" '
            f'fill="{node.colour}" stroke="#555555"/>'
        )
        size = min(_FONT, _FONT * _LINE / max(map(len, node.lines)))
        for number, text in enumerate(node.lines):
            middle = dots(y - top)
            down = (number - (len(node.lines) - 1) / 2) * 1.2 * size + 0.35 * size
            lines.append(
                f'<text x="{dots(x - left)}" y="{float(middle) + down:g}" font-size="{size:g}">'
                f"{escape(readable(text))}</text>"
            )
    return "\n".join([*lines, "</svg>", ""])


Point = tuple[float, float]


def layout(graph: Sequence[Node]) -> tuple[list[Point], list[list[Point]]]:
    """Middles of the boxes and the lines between them, in inches, from top to bottom.

    Boxes are in rows so that lines lead down, and long lines go around boxes: the method of
    Sugiyama, as igraph implements it.
    """
    import igraph

    index = {node.key: k for k, node in enumerate(graph)}
    rows = [0] * len(graph)
    for k, node in enumerate(graph):
        rows[k] = max((rows[index[each]] + 1 for each in node.before if index[each] < k), default=0)
    paths: list[list[int]] = []
    for k, node in enumerate(graph):
        for before in (index[each] for each in node.before if index[each] != k):
            # A place in each row that the line crosses keeps boxes out of its way; what comes from
            # the execution before leads up.
            first, last = sorted((before, k))
            between = range(rows[first] + 1, rows[last])
            paths.append([first, *range(len(rows), len(rows) + len(between)), last])
            rows += between
    edges = [edge for path in paths for edge in pairwise(path)]
    drawn = igraph.Graph(n=len(rows), edges=edges, directed=True)
    placed = drawn.layout_sugiyama(layers=rows, hgap=_ACROSS, vgap=_DOWN, maxiter=_SWEEPS)
    points = _apart([(float(x), float(y)) for x, y in placed.coords[: len(rows)]], rows, len(graph))
    return points[: len(graph)], [[points[each] for each in path] for path in paths]


def _apart(points: Sequence[Point], rows: Sequence[int], boxes: int) -> list[Point]:
    """The places without boxes that overlap: igraph's mean of its four ways to place a row may be
    nearer than any of them. Those from ``boxes`` on are bends of lines, which have no width."""
    found = list(points)
    of_rows: dict[int, list[int]] = defaultdict(list)
    for k in sorted(range(len(points)), key=lambda k: points[k]):
        of_rows[rows[k]].append(k)
    for places in of_rows.values():
        for before, k in pairwise(places):
            gap = _ACROSS * ((before < boxes) + (k < boxes)) / 2
            x, y = found[k]
            found[k] = max(x, found[before][0] + gap), y
    return found
