"""The operators of a program as a graph: who reads what another one wrote."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile

from darwinn_formats.names import readable

from darwinn_testbench.layers.graph import COLOURS, OTHER_COLOUR, PORT_COLOUR, Node
from darwinn_testbench.programs.operators import OperatorRow, ProgramPort
from darwinn_testbench.report import Report
from darwinn_testbench.report.shortened import shortened

_LINE = 34
"""Characters of a line of a box."""

_KINDS: Mapping[str, re.Pattern[str]] = {
    "depthwise": re.compile(r"depthwise"),
    "conv": re.compile(r"conv(?!ert)"),
    "dense": re.compile(
        r"matmul|mm4d|(?:^|[^a-z])(?:add|b)?mm(?:[^a-z]|$)|linear\b|fullyconnected"
    ),
    "average pool": re.compile(r"pool|mean|reduc"),
    "multiply": re.compile(r"mul|div"),
    "add": re.compile(r"add|sub"),
    "move": re.compile(
        r"copy|view|reshape|permute|transpose|pad|cat\b|concat|slice|move|clone|fill|broadcast"
    ),
}
"""What an operation is drawn as, by the words in its name: the first that fits."""


def drawn_kind(kind: str) -> str:
    """What an operation is drawn as, one of ``layers.graph.COLOURS``; empty for all others."""
    name = kind.lower().replace("_", " ").replace("fully connected", "fullyconnected")
    return next((each for each, words in _KINDS.items() if words.search(name)), "")


def key_of(row: OperatorRow) -> str:
    """What a page calls the operator in its parts."""
    return f"operator:{row.name}"


def operator_nodes(report: Report[OperatorRow]) -> tuple[Node, ...]:
    """Inputs, operators and outputs, each with what it reads.

    Of an operator with parts the parts are drawn, and none of those that neither read nor write.
    """
    ports: Sequence[ProgramPort] = report.figures["ports"]
    drawn = [row for row in report.rows if _is_drawn(row, report.rows)]
    keys = {row.name: key_of(row) for row in drawn}
    keys |= {each.name: _port_key(each) for each in ports if each.direction == "input"}
    return (
        *(_port_node(each, keys) for each in ports if each.direction == "input"),
        *(
            Node(key_of(row), tuple(_lines(row)), _colour(row), _before(row.inputs, keys))
            for row in drawn
        ),
        *(_port_node(each, keys) for each in ports if each.direction == "output"),
    )


def _is_drawn(row: OperatorRow, rows: Sequence[OperatorRow]) -> bool:
    """Whether an operator reads or writes, and none of its parts, which stand behind it, does."""
    if not _has_values(row):
        return False
    behind = (rows[number] for number in range(row.number + 1, len(rows)))
    parts = takewhile(lambda each: each.depth > row.depth, behind)
    return not row.has_parts or not any(map(_has_values, parts))


def _has_values(row: OperatorRow) -> bool:
    return bool(row.inputs or row.output_tensors)


def _before(names: Sequence[str], keys: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(keys[name] for name in names if name in keys)


def _port_key(port: ProgramPort) -> str:
    return f"{port.direction} {port.name}"


def _port_node(port: ProgramPort, keys: Mapping[str, str]) -> Node:
    lines = (_short(_port_key(port)), _short(", ".join(port.tensors)))
    return Node(_port_key(port), lines, PORT_COLOUR, _before(port.operators, keys))


def _colour(row: OperatorRow) -> str:
    return COLOURS.get(drawn_kind(row.kind), OTHER_COLOUR)


def _lines(row: OperatorRow) -> Iterator[str]:
    yield _short(row.kind)
    times = f", {row.executions:,} times" if row.executions > 1 else ""
    yield _short(f"{row.name}{times}")
    constants = f"{row.constant_bytes:,} bytes" if row.constant_bytes else ""
    yield _short(", ".join(filter(None, (*dict.fromkeys(row.output_tensors), constants))))


def _short(text: str) -> str:
    return shortened(readable(text), _LINE)
