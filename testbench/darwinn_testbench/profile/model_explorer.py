"""The network of a program for Model Explorer, and cycles, bytes and differences of its nodes.

The forms are those of the package ``ai-edge-model-explorer`` 0.1.34: a ``GraphCollection``
(``graph_builder.py``), and for each kind of data a file of ``GraphNodeData``
(``node_data_builder.py``). Nodes are called as Netron and Model Explorer call those of the model
before compilation: the operator is the label, the tensor's name the output, its path the
namespaces. Data are keyed by the tensor's name, so that they can be laid over the ``.tflite``, and
by the node where there is none.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from darwinn_formats.errors import printable
from darwinn_formats.names import short_name

from darwinn_testbench.errors import InputError
from darwinn_testbench.layers.graph import Node, nodes, operation
from darwinn_testbench.layers.rows import LayerRow
from darwinn_testbench.profile.profile import ProfileFigures, ProfileRow
from darwinn_testbench.report import Report
from darwinn_testbench.report.files import write_result

Json = Mapping[str, Any]

_GRAPH = "program"
_GRADIENT = ({"stop": 0, "bgColor": "#f6f8fa"}, {"stop": 1, "bgColor": "#e0823d"})
_WRONG = ({"value": 0, "bgColor": "#d9ead3"}, {"value": 1e308, "bgColor": "#f4b6b0"})

_VALUES: Mapping[str, Callable[[ProfileRow], float | None]] = {
    "cycles": lambda row: row.cycles,
    "busy": lambda row: row.busy,
    "bytes": lambda row: row.bytes,
    "products": lambda row: row.products,
}
"""Data of nodes, by what they are called."""

_DIFFERENCES = "differences"
"""Those of tensors that were compared."""


def files_beside(target: Path) -> dict[str, Path]:
    """The files of a graph: its own by an empty name, those of its data by the names of these.

    ``target`` may have the ending ``.json`` or none: ``net`` gives ``net.json``,
    ``net.cycles.json`` and so on.

    Raises:
        InputError: ``target`` has another ending, or is standard output, which is one file.
    """
    if target.suffix not in ("", ".json") or str(target) == "-" or not target.name:
        raise InputError(f"{target}: a graph for Model Explorer is written to files, as .json")
    stem = target.with_suffix("")
    names = {"": "", **{name: f".{name}" for name in (*_VALUES, _DIFFERENCES)}}
    return {name: stem.with_name(f"{stem.name}{middle}.json") for name, middle in names.items()}


def write_files(target: Path, report: Report[ProfileRow]) -> list[Path]:
    """Write the graph to ``target`` and its data beside it (``files_beside``); the files' names.

    Raises:
        InputError: ``target`` cannot be several files.
        OSError: a file cannot be written.
    """
    files = files_beside(target)
    contents = {"": graph_collection(report), **node_data(report)}
    for name, content in contents.items():
        write_result(files[name], json.dumps(content, indent=1, allow_nan=False).encode())
    return [files[name] for name in contents]


def graph_collection(report: Report[ProfileRow]) -> Json:
    """The network of a profile that was made with ``operations``, as a ``GraphCollection``."""
    network = _network(report)
    layers = {f"layer:{row.number}": row for row in network.rows}
    timed = {f"layer:{row.number}": row for row in report.rows if row.number is not None}
    found = [_node(each, layers.get(each.key), timed.get(each.key)) for each in nodes(network)]
    return {
        "label": printable(Path(report.file).name),
        "graphs": [{"id": _GRAPH, "nodes": found}],
    }


def node_data(report: Report[ProfileRow]) -> dict[str, Json]:
    """For each kind of data a ``GraphNodeData``; ``differences`` where tensors were compared."""
    rows = [row for row in report.rows if row.number is not None]
    data: dict[str, Json] = {}
    for name, value in _VALUES.items():
        results = {_key(row): {"value": value(row) or 0} for row in rows}
        data[name] = {"name": name, "results": results, "gradient": list(_GRADIENT)}
    found: ProfileFigures = report.figures["profile"]
    compared = found.profiled.differences
    if compared:
        results = {
            _key(row): {"value": compared[row.number]}
            for row in rows
            if row.number is not None and row.number in compared
        }
        name = "differing elements"
        data[_DIFFERENCES] = {"name": name, "results": results, "thresholds": list(_WRONG)}
    return data


def _network(report: Report[ProfileRow]) -> Report[LayerRow]:
    found: ProfileFigures = report.figures["profile"]
    if found.profiled.network is None:
        raise InputError("the network is not known: profile with operations")
    return found.profiled.network


def _key(row: ProfileRow) -> str:
    """The output's name in the network, or the node: of a node with both the viewer shows both."""
    return printable(row.tensor) or f"layer:{row.number}"


def _node(node: Node, layer: LayerRow | None, timed: ProfileRow | None) -> Json:
    edges = [
        {"sourceNodeId": before, "sourceNodeOutputId": "0", "targetNodeInputId": str(place)}
        for place, before in enumerate(node.before)
    ]
    if layer is None:
        # Without the namespace, which the classes do not ask for, the viewer's layout ends.
        name = printable(node.key)
        return {"id": node.key, "label": name, "namespace": "", "incomingEdges": edges}
    path = printable(short_name(layer.tensor))
    return {
        "id": node.key,
        "label": layer.operator or operation(layer),
        "namespace": path.rpartition("/")[0],
        "attrs": [{"key": key, "value": value} for key, value in _attributes(layer, timed)],
        "incomingEdges": edges,
        "outputsMetadata": [{"id": "0", "attrs": list(_output(layer))}],
    }


def _attributes(layer: LayerRow, timed: ProfileRow | None) -> Iterator[tuple[str, str]]:
    yield "layer of the program", f"layer:{layer.number}"
    yield "operation", operation(layer)
    if layer.parameters:
        places = (f"{each.bytes:,} B {each.place}" for each in layer.parameters)
        yield "parameters", ", ".join(places)
    yield "tiles", str(len(layer.tiles))
    if timed is not None:
        yield "from cycle", f"{timed.start:,}"
        yield "cycles (approximate)", f"{timed.cycles:,}"
        yield "bytes in the tiles", f"{timed.bytes or 0:,}"
        most = max(timed.waiting, key=timed.waiting.__getitem__, default="nothing")
        yield "waits most for", most


def _output(layer: LayerRow) -> Iterator[Json]:
    if layer.tensor:
        yield {"key": "tensor_name", "value": printable(layer.tensor)}
    if layer.output_shape is not None:
        yield {"key": "shape", "value": "x".join(map(str, layer.output_shape))}
