"""Rules that advise changes: each examines where operators run and what crosses the host link."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from darwinn_formats.names import short_name

from darwinn_testbench.explain.conditions import Condition
from darwinn_testbench.explain.crossing import CACHE_BYTES, Piece
from darwinn_testbench.explain.graph import Node
from darwinn_testbench.explain.placement import Place, Prediction
from darwinn_testbench.report import counted, significant

_SLOW_SHARE = 0.1
"""Share of an inference from which on a single transfer is worth a word."""
_WORTH_SHARE = 0.01
"""Share of an inference from which on streamed parameters are worth one."""
_ROOM = (
    "the chip has room for them: if the model was compiled together with others, compile it alone "
    "or first; else the compiler chose to stream them"
)
_NO_ROOM = "make the network that much smaller, or split it into segments for several chips"


@dataclass(frozen=True)
class Advice:
    """One thing to change.

    ``operators`` are the numbers of those that it is about, ``held`` counts the ones that stay on
    the CPU behind them. ``saves`` are milliseconds at most of an inference, by the host's
    description; None where no number follows.
    """

    what: str
    change: str
    operators: tuple[int, ...] = ()
    held: int = 0
    saves: float | None = None
    source: str = ""

    def __str__(self) -> str:
        saved = "" if self.saves is None else f" (saves at most {self.saves:.3f} ms)"
        source = f" [{self.source}]" if self.source else ""
        return f"{self.what}: {self.change}{saved}{source}"


@dataclass(frozen=True)
class Situation:
    """What the rules look at; ``graphs`` is how many graphs the file has, ``predicted`` whether no
    compiled file shows the places."""

    nodes: Sequence[Node]
    places: Sequence[Place]
    predictions: Sequence[Prediction]
    pieces: Sequence[Piece]
    graphs: int
    predicted: bool


def advice(situation: Situation) -> tuple[Advice, ...]:
    """All that there is to change, by the order of the rules, and what concerns most first."""
    return tuple(
        each
        for rule in _RULES
        for each in sorted(rule(situation), key=lambda each: -(len(each.operators) + each.held))
    )


def _conditions(situation: Situation) -> Iterator[Advice]:
    """Operators that a condition keeps on the CPU, together if it is the same one.

    Those behind the piece are counted with what ended it.
    """
    groups: dict[tuple[str, str], list[tuple[Node, str, Condition]]] = {}
    held: Counter[int] = Counter()
    for node, prediction in _on_cpu(situation):
        if prediction.behind is not None:
            held[prediction.behind.index] += 1
        elif prediction.objections:
            first = prediction.objections[0]
            key = (first.condition.name, first.condition.advice)
            groups.setdefault(key, []).append((node, first.text, first.condition))
    for (_, change), members in groups.items():
        numbers = tuple(node.index for node, _, _ in members)
        behind = sum(held[number] for number in numbers)
        keeps = f", keeping {counted(behind, 'downstream operator')} on the CPU" if behind else ""
        what = f"{_named(members)}{keeps}"
        yield Advice(what, change, numbers, behind, source=members[0][2].source)


def _further(situation: Situation) -> Iterator[Advice]:
    """Operators behind the piece that could not run on the chip either."""
    found = [
        node
        for node, prediction in _on_cpu(situation)
        if prediction.behind is not None and prediction.objections
    ]
    if found:
        kinds = ", ".join(dict.fromkeys(node.name for node in found))
        yield Advice(
            f"{counted(len(found), 'downstream operator')} would not run on the chip either",
            f"{kinds}; matters only after the operator that ended the piece has changed",
            tuple(node.index for node in found),
        )


def _doubted(situation: Situation) -> Iterator[Advice]:
    """Operators that are predicted on the chip, and may stay on the CPU."""
    groups: dict[str, list[tuple[Node, str, Condition]]] = {}
    rows = zip(situation.nodes, situation.places, situation.predictions, strict=True)
    for node, place, prediction in rows:
        if situation.predicted and place is Place.CHIP and prediction.doubts:
            first = prediction.doubts[0]
            members = groups.setdefault(first.condition.advice, [])
            members.append((node, first.text, first.condition))
    for change, members in groups.items():
        numbers = tuple(node.index for node, _, _ in members)
        what = f"not certain: {_named(members)}"
        yield Advice(what, change, numbers, source=members[0][2].source)


def _on_cpu(situation: Situation) -> Iterator[tuple[Node, Prediction]]:
    rows = zip(situation.nodes, situation.places, situation.predictions, strict=True)
    return ((node, prediction) for node, place, prediction in rows if place is Place.CPU)


def _named(members: Sequence[tuple[Node, str, Condition]]) -> str:
    """Up to three operators with what is wrong with them."""
    texts = list(dict.fromkeys(text for _, text, _ in members))
    names = ", ".join(str(node) for node, _, _ in members[:3])
    more = f" and {len(members) - 3:,} more" if len(members) > 3 else ""
    return f"{names}{more} ({', '.join(texts[:3])})"


def _unexplained(situation: Situation) -> Iterator[Advice]:
    """Operators on the CPU that no condition keeps there."""
    left = [node for node, each in _on_cpu(situation) if each.place is Place.CHIP]
    if left:
        names = ", ".join(map(str, left[:3])) + (" …" if len(left) > 3 else "")
        yield Advice(
            f"{names} ({counted(len(left), 'operator')} on the CPU without a documented reason)",
            "try smaller tensors, or the newest compiler: it does not say why either",
            tuple(node.index for node in left),
        )


def _streamed(situation: Situation) -> Iterator[Advice]:
    """Parameters that do not stay on the chip, unless that hardly takes time."""
    for piece in situation.pieces:
        for each in piece.crossings:
            worth = piece.milliseconds is None or (
                each.milliseconds >= _WORTH_SHARE * piece.milliseconds
            )
            if each.what == "parameters" and worth:
                room = piece.cached + piece.streamed <= CACHE_BYTES
                yield Advice(
                    f"{each.bytes:,} bytes of parameters are streamed at each inference",
                    _ROOM if room else _NO_ROOM,
                    saves=each.milliseconds,
                )


def _large_outputs(situation: Situation) -> Iterator[Advice]:
    """Outputs that take long on the way back."""
    for piece in situation.pieces:
        whole = piece.milliseconds
        outputs = [each for each in piece.crossings if each.what == "output"]
        spent = sum(each.milliseconds for each in outputs)
        if whole and spent > _SLOW_SHARE * whole:
            largest = max(outputs, key=lambda each: each.bytes)
            yield Advice(
                f"outputs of the chip: {sum(each.bytes for each in outputs):,} bytes, "
                f"{significant(spent)} of {significant(whole)} ms, most of them "
                f"{_short(largest.tensor)}",
                "send less: fewer channels or positions, or the operator that reduces them on the "
                "chip, too",
                saves=spent,
            )


def _several_pieces(situation: Situation) -> Iterator[Advice]:
    """A request for each piece."""
    count = len(situation.pieces)
    if count > 1:
        fixed = sum(piece.fixed_milliseconds for piece in situation.pieces[1:])
        yield Advice(
            f"{count} pieces on the chip, each with a request of its own",
            "put the operators of the CPU between them first or last",
            saves=fixed,
        )


def _several_graphs(situation: Situation) -> Iterator[Advice]:
    if situation.graphs > 1:
        yield Advice(
            f"{situation.graphs} graphs in the file (control flow)",
            "use a model with one graph: only the first is examined",
        )


def _nothing(situation: Situation) -> Iterator[Advice]:
    if situation.nodes and Place.CHIP not in situation.places:
        yield Advice("nothing runs on the chip", "compiling this model gains nothing as it is")


_RULES: tuple[Callable[[Situation], Iterator[Advice]], ...] = (
    _nothing,
    _several_graphs,
    _conditions,
    _further,
    _doubted,
    _unexplained,
    _streamed,
    _several_pieces,
    _large_outputs,
)


def _short(name: str) -> str:
    """A tensor by the first of the names that a converter has joined, shortened in the middle."""
    first = short_name(name)
    return first if len(first) <= 40 else f"{first[:19]}…{first[-20:]}"
