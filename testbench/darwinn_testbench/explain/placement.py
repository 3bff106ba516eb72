"""Find where operators run: predicted by the conditions, or shown by a compiled file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from darwinn_formats import tflite
from darwinn_formats.darwinn.loader import CUSTOM_OPERATOR

from darwinn_testbench.explain.conditions import Objection, objections
from darwinn_testbench.explain.graph import Graph, Node


class Place(StrEnum):
    """What runs an operator."""

    CHIP = "chip"
    CPU = "CPU"
    UNKNOWN = "?"
    """Of a compiled file whose tensors have other names."""


@dataclass(frozen=True)
class Prediction:
    """What the conditions say of an operator.

    ``piece`` is the number of the chip's piece that it is in. ``objections`` are those of its own;
    ``doubts`` may keep it off the chip. ``behind`` is the operator that ended the chip's only piece
    before it, which keeps it off the chip whatever it is.
    """

    place: Place
    objections: tuple[Objection, ...] = ()
    doubts: tuple[Objection, ...] = ()
    behind: Node | None = None
    piece: int | None = None


def predict(graph: Graph, *, several: bool = False) -> list[Prediction]:
    """Predict where each operator of a graph will run.

    The vendor's compiler gives the chip one piece. An operator stays on the CPU, whatever it is, if
    it depends on an operator of the CPU that itself depends on the chip. Operators of the CPU
    before the piece do not matter. An option allows ``several`` pieces: each holds the operators
    that can run once the operators of the CPU after the previous piece have run.
    """
    found: list[Prediction] = []
    on_chip: dict[int, int] = {}
    """By tensor the first piece that can read it."""
    on_cpu: dict[int, int] = {}
    """By tensor how many pieces have run before the CPU can read it."""
    enders: dict[int, Node] = {}
    """By tensor the operator that ended the piece before it."""
    for node in graph.nodes:
        against = () if is_piece(node) else objections(node)
        sure = tuple(each for each in against if each.condition.sure)
        doubts = tuple(each for each in against if not each.condition.sure)
        inputs = [each.index for each in node.data]
        outputs = [each.index for each in node.outputs]
        piece = max((on_chip.get(k, 0) for k in inputs), default=0)
        if not sure and (several or not piece):
            on_chip.update(dict.fromkeys(outputs, piece))
            on_cpu.update(dict.fromkeys(outputs, piece + 1))
            found.append(Prediction(Place.CHIP, (), doubts, piece=piece))
            continue
        passed = max((on_cpu.get(k, 0) for k in inputs), default=0)
        on_chip.update(dict.fromkeys(outputs, passed))
        on_cpu.update(dict.fromkeys(outputs, passed))
        ender = None if several else next((enders[k] for k in inputs if k in enders), None)
        if passed:
            enders.update(dict.fromkeys(outputs, ender or node))
        found.append(Prediction(Place.CPU, sure, doubts, ender))
    return found


def pieces(shell: Graph) -> list[Node]:
    """The operators of a compiled graph that are the chip's."""
    return [node for node in shell.nodes if is_piece(node)]


def is_piece(node: Node) -> bool:
    """Whether an operator is one of the chip's in a compiled graph."""
    return node.custom and node.name == CUSTOM_OPERATOR


def placed(graph: Graph, shell: Graph) -> tuple[list[Place], list[Node]]:
    """Where a compiled graph runs each operator of another, and which of its own are unknown.

    An operator of the compiled graph's CPU is the one that gives a tensor of the same name. All
    others went to the chip. Where names differ, operators are taken side by side, from the outputs
    to the chip: one that does not lead there cannot be told.
    """
    left = [node for node in shell.nodes if not is_piece(node)]
    own = _by_output(graph)
    match: dict[int, int] = {}
    for node in left:
        counterparts = [own[each.name] for each in node.outputs if each.name in own]
        if counterparts and counterparts[0].name == node.name:
            match[node.index] = counterparts[0].index
    others = Place.CHIP
    sent: set[int] = set()
    if len(match) < len(left):
        beside, ends = _from_the_end(graph, shell)
        match |= beside
        if len(match) < len(left):
            others, sent = Place.UNKNOWN, _ancestors(graph, ends)
    on_cpu = set(match.values())
    places = [
        Place.CPU if node.index in on_cpu else Place.CHIP if node.index in sent else others
        for node in graph.nodes
    ]
    return places, [node for node in left if node.index not in match]


def _by_output(graph: Graph) -> Mapping[str, Node]:
    """The operator that gives a tensor, by the tensor's name if only one has it."""
    counts = Counter(each.name for node in graph.nodes for each in node.outputs)
    return {
        each.name: node
        for node in graph.nodes
        for each in node.outputs
        if each.name and counts[each.name] == 1
    }


def _from_the_end(graph: Graph, shell: Graph) -> tuple[dict[int, int], set[int]]:
    """Operators of the compiled graph and of the other, side by side from the outputs to the chip.

    With them the tensors of the other that the chip gives.
    """
    stack = list(zip(shell.outputs, graph.outputs, strict=False))
    seen: set[tuple[int, int]] = set()
    match: dict[int, int] = {}
    ends: set[int] = set()
    while stack:
        pair = stack.pop()
        left, right = shell.producers.get(pair[0]), graph.producers.get(pair[1])
        if pair in seen or left is None or right is None:
            continue
        seen.add(pair)
        if is_piece(left):
            ends.add(pair[1])
        elif _alike(left, right):
            match[left.index] = right.index
            stack += [(a.index, b.index) for a, b in zip(left.data, right.data, strict=True)]
    return match, ends


def _alike(left: Node, right: Node) -> bool:
    """Whether two operators can be the same: of one kind, with data and results of the same shapes.

    Constants are not compared: one value may stand for many.
    """
    mine, others = (
        (node.name, [each.shape for each in node.data], [each.shape for each in node.outputs])
        for node in (left, right)
    )
    return mine == others


def _ancestors(graph: Graph, values: Iterable[int]) -> set[int]:
    """The operators that tensors depend on."""
    found: set[int] = set()
    stack = list(values)
    while stack:
        node = graph.producers.get(stack.pop())
        if node is not None and node.index not in found:
            found.add(node.index)
            stack += [each.index for each in node.data]
    return found


def is_compiled(model: tflite.Model) -> bool:
    """Whether some operator of a model is the chip's."""
    return any(code.custom_code == CUSTOM_OPERATOR for code in model.operator_codes)
