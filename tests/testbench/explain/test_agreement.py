"""The conditions against what a real compiler did: every model of which both files are there.

The numbers of docs/explain.md are those of this test.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest
from darwinn_formats import tflite
from darwinn_formats.darwinn import load
from darwinn_testbench.explain import conditions
from darwinn_testbench.explain.conditions import OPERATOR_CONDITIONS, Seen, objections
from darwinn_testbench.explain.evidence import EVIDENCE, FILES, SEEN
from darwinn_testbench.explain.explain import check_ends
from darwinn_testbench.explain.graph import Graph, Node, graph_of
from darwinn_testbench.explain.placement import Place, placed, predict
from darwinn_testbench.survey.pairs import reference_of

PAGE = Path(__file__).parents[3] / "docs" / "explain.md"
Range = tuple[int, int]
"""The greatest figure on the chip, the least on the CPU."""
_FOREVER = 1 << 62


@dataclass(frozen=True)
class Pair:
    """A model, and where its compiled file runs each operator."""

    name: str
    graph: Graph
    places: tuple[Place, ...]

    @property
    def known(self) -> Iterator[tuple[int, Node, Place]]:
        for number, (node, place) in enumerate(zip(self.graph.nodes, self.places, strict=True)):
            if place is not Place.UNKNOWN:
                yield number, node, place

    def right(self) -> Counter[str]:
        """How many operators of each kind are predicted where they are."""
        found = predict(self.graph)
        return Counter(node.name for k, node, place in self.known if found[k].place is place)

    @cached_property
    def on_chip(self) -> frozenset[int]:
        """Tensors that the chip has: what it gives, and the inputs."""
        given = {
            each.index
            for _, node, place in self.known
            if place is Place.CHIP
            for each in node.outputs
        }
        return frozenset(given | set(self.graph.inputs))


@pytest.fixture(scope="module")
def pairs(corpus: Path, wild: Path, wild2: Path) -> list[Pair]:
    found = []
    for folder in (corpus, wild, wild2):
        for path in sorted((folder / "darwinn").glob("*.tflite")):
            twin = reference_of(path)
            shell = load(path).shell if twin is not None else None
            if twin is not None and shell is not None:
                graph, compiled = graph_of(tflite.load(twin)), graph_of(shell)
                check_ends(twin.name, graph, path.name, compiled)
                found.append(Pair(path.stem, graph, tuple(placed(graph, compiled)[0])))
    return found


@dataclass(frozen=True)
class Limit:
    """Numbers that were seen: of which operators, and the condition that has them."""

    seen: Seen
    operators: frozenset[str]


def limits() -> list[Limit]:
    """What of the table has numbers that were seen; several operators may share them."""
    operators: dict[Seen, set[str]] = {}
    for operator, own in OPERATOR_CONDITIONS.items():
        for each in own:
            seen = getattr(each.finds, "__self__", None)
            if isinstance(seen, Seen):
                operators.setdefault(seen, set()).add(operator)
    return [Limit(seen, frozenset(names)) for seen, names in operators.items()]


def shown_by(pairs: Sequence[Pair], limit: Limit) -> Range:
    """What the models show of it: on the chip, and on the CPU for no other reason."""
    chip, cpu = 0, _FOREVER
    for pair in pairs:
        for _, node, place in pair.known:
            if node.name in limit.operators:
                figure = limit.seen.figure(node)
                if place is Place.CHIP:
                    chip = max(chip, figure)
                elif _for_its_size(pair, node, limit.seen.name):
                    cpu = min(cpu, figure)
    return chip, cpu


def _for_its_size(pair: Pair, node: Node, condition: str) -> bool:
    """Whether an operator has all it needs on the chip, and nothing but one size against it."""
    others = {each.condition.name for each in objections(node) if each.condition.sure}
    return others <= {condition} and all(each.index in pair.on_chip for each in node.data)


def test_most_operators_are_where_the_conditions_place_them(pairs: list[Pair]) -> None:
    of = Counter(node.name for pair in pairs for _, node, _ in pair.known)
    cpu = Counter(node.name for pair in pairs for _, node, p in pair.known if p is Place.CPU)
    right = sum((pair.right() for pair in pairs), Counter[str]())
    lines = [f"| `{name}` | {of[name]} | {cpu[name]} | {right[name]} |" for name in sorted(of)]
    print("\n".join(lines))
    text = PAGE.read_text()
    assert [line for line in lines if line not in text] == []
    assert _numbers(text, "with all conditions") == [right.total(), of.total(), len(pairs)]
    assert cpu.total() > 400


def test_the_numbers_of_the_table_are_those_that_were_seen(pairs: list[Pair]) -> None:
    """Or stand in public reports, where no model here shows the limit, or a less narrow one."""
    shown = {limit: shown_by(pairs, limit) for limit in limits()}
    for limit, (chip, cpu) in shown.items():
        assert chip <= limit.seen.on_chip < limit.seen.on_cpu <= cpu, limit
    told = {limit.seen.said for limit, (_, cpu) in shown.items() if cpu < _FOREVER}
    assert told == {"enlarged {:,} times", "{:,} bytes transposed", "result of {:,} bytes"}


def test_what_is_said_to_be_seen_is_on_the_chip_of_some_model(pairs: list[Pair]) -> None:
    of = [(pair.name, node) for pair in pairs for _, node, p in pair.known if p is Place.CHIP]
    seen = {node.name for _, node in of}
    assert {name for name, sources in EVIDENCE.items() if SEEN in sources} == seen
    assert Counter(name for _, name in {(model, node.name) for model, node in of}) == FILES
    assert max(conditions._LARGEST.figure(node) for _, node in of) == conditions._LARGEST.on_chip


def test_without_what_was_seen(pairs: list[Pair], monkeypatch: pytest.MonkeyPatch) -> None:
    table = _documented(OPERATOR_CONDITIONS)
    monkeypatch.setattr(conditions, "OPERATOR_CONDITIONS", table)
    right = sum((pair.right() for pair in pairs), Counter[str]())
    assert _numbers(PAGE.read_text(), "with the documented ones alone")[0] == right.total()


def _documented(
    table: Mapping[str, tuple[conditions.Condition, ...]],
) -> dict[str, tuple[conditions.Condition, ...]]:
    """The conditions that the vendor documents with all that they need."""
    undocumented = {conditions.SEEN, conditions.NUMBERS_SEEN}
    return {
        name: tuple(each for each in own if each.source not in undocumented)
        for name, own in table.items()
        if name not in conditions.SEEN_OPERATORS
    }


def test_with_what_other_models_show(pairs: list[Pair], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each model by what the others show: what is to be expected of one that nobody has seen."""
    right = 0
    for pair in pairs:
        others = [each for each in pairs if each is not pair]
        with monkeypatch.context() as patch:
            ranges = [(limit.seen, shown_by(others, limit)) for limit in limits()]
            for seen, (chip, cpu) in ranges:
                patch.setitem(seen.__dict__, "on_chip", chip)
                patch.setitem(seen.__dict__, "on_cpu", cpu)
            shown = {node.name for each in others for _, node, p in each.known if p is Place.CHIP}
            lacking = conditions.SEEN_OPERATORS - shown
            table = {k: v for k, v in OPERATOR_CONDITIONS.items() if k not in lacking}
            patch.setattr(conditions, "OPERATOR_CONDITIONS", table)
            right += pair.right().total()
    print(right)
    assert _numbers(PAGE.read_text(), "each model predicted from the others")[0] == right


def _numbers(text: str, what: str) -> list[int]:
    """The numbers behind a phrase of the page, in its line."""
    (line,) = [line for line in text.splitlines() if what in line]
    return [int(each.replace(",", "")) for each in re.findall(r"\d[\d,]*", line)]
