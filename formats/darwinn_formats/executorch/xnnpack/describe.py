"""What is in a graph of the XNNPACK delegate: a summary, and a listing."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator
from typing import Any

from darwinn_formats.executorch.xnnpack import schema
from darwinn_formats.executorch.xnnpack.loader import XnnpackGraph


def describe(graph: XnnpackGraph) -> dict[str, Any]:
    """Nodes by name, what goes in and out, types of the values, bytes of the constants."""
    types = Counter(value.tensor.datatype.name.lower() for value in graph.root.xvalues)
    nodes = Counter(node.name for node in graph.root.xnodes)
    return {
        "version": graph.root.version,
        "nodes": dict(sorted(nodes.items())),
        "inputs": _ports(graph, schema.EXTERNAL_INPUT),
        "outputs": _ports(graph, schema.EXTERNAL_OUTPUT),
        "datatypes": dict(sorted(types.items())),
        "constants": sum(map(len, graph.constants)),
    }


def disassemble(graph: XnnpackGraph) -> Iterator[str]:
    """Lines of a graph: values with type, sizes and quantisation, then nodes."""
    for value in graph.root.xvalues:
        yield f"v{value.tensor.id_out} = {value_text(graph, value)}"
    for number, node in enumerate(graph.root.xnodes):
        yield f"{number:>5}  {node_text(node)}"


def value_text(graph: XnnpackGraph, value: schema.Value) -> str:
    """A value in one line."""
    tensor = value.tensor
    text = f"{tensor.datatype.name.lower()}{list(tensor.dims)}"
    match value.quantisation:
        case schema.PerTensorQuant(scale, zero_point):
            text += f" scale {scale:g} zero point {zero_point}"
        case schema.PerChannelQuant(channel_dim=dimension):
            text += f" scales of dimension {dimension}"
        case schema.PerTokenDynamicQuant(count):
            text += f" quantised by {count} dimension{'s' if count > 1 else ''}"
        case schema.PerChannelGroupQuant(group_size=size):
            text += f" scales of groups of {size}"
    if tensor.flags & schema.EXTERNAL_INPUT:
        text += f" input {tensor.external_id}"
    if tensor.flags & schema.EXTERNAL_OUTPUT:
        text += f" output {tensor.external_id}"
    if tensor.constant_buffer_idx:
        text += f" data {tensor.constant_buffer_idx}"
    return text


def node_text(node: schema.Node) -> str:
    """A node in one line: outputs, name, inputs, attributes that are not 0, limits."""
    operation = node.operation
    inputs, outputs = schema.value_ids(operation)
    left = ", ".join(f"v{index}" for index in outputs.values())
    arguments = ["none" if index == schema.NO_VALUE else f"v{index}" for index in inputs.values()]
    for entry in dataclasses.fields(operation):
        content = getattr(operation, entry.name)
        if not entry.name.endswith("_id") and content not in (0, ()):
            shown = list(content) if isinstance(content, tuple) else content
            arguments.append(f"{entry.name}={shown}")
    if node.output_min_max is not None:
        limits = node.output_min_max
        arguments.append(f"within {limits.output_min:g} to {limits.output_max:g}")
    return f"{left} = {node.name}({', '.join(arguments)})"


def _ports(graph: XnnpackGraph, flag: int) -> list[str]:
    found = [entry for entry in graph.root.xvalues if entry.tensor.flags & flag]
    found.sort(key=lambda entry: entry.tensor.external_id)
    return [value_text(graph, entry) for entry in found]
