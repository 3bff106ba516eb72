"""Where operators run: as the conditions predict it, and as a compiled file shows it."""

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

    ``objections`` are those of its own; ``doubts`` may keep it off the chip. ``behind`` is the
    operator that keeps it off the chip, behind the chip's one piece, although it could run there.
    """

    place: Place
    objections: tuple[Objection, ...] = ()
    doubts: tuple[Objection, ...] = ()
    behind: Node | None = None


def predict(graph: Graph) -> list[Prediction]:
    """Where each operator of a graph will run, with the vendor's compiler as it is by default.

    It gives the chip one piece: what depends on an operator of the CPU that itself depends on the
    chip stays on the CPU, whatever it is. Operators of the CPU before the piece do not matter.
    """
    found: list[Prediction] = []
    on_chip: set[int] = set()
    """Tensors that the chip gives, or that depend on such."""
    behind: dict[int, Node] = {}
    """Tensors that come after the piece, and what ended it."""
    for node in graph.nodes:
        against = () if is_piece(node) else objections(node)
        sure = tuple(each for each in against if each.condition.sure)
        doubts = tuple(each for each in against if not each.condition.sure)
        inputs = [each.index for each in node.data]
        ended = next((behind[k] for k in inputs if k in behind), None)
        outputs = [each.index for each in node.outputs]
        if ended is not None:
            behind.update((k, ended) for k in outputs)
            found.append(Prediction(Place.CPU, sure, doubts, ended))
        elif sure:
            if on_chip.intersection(inputs):
                behind.update((k, node) for k in outputs)
            found.append(Prediction(Place.CPU, sure, doubts))
        else:
            on_chip.update(outputs)
            found.append(Prediction(Place.CHIP, (), doubts))
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
