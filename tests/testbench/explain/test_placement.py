"""Where operators run: the prediction against a plain definition, and what compiled files show."""

from __future__ import annotations

from dataclasses import replace

from darwinn_formats import flatbuffer, tflite
from darwinn_testbench.explain.graph import Graph, graph_of
from darwinn_testbench.explain.placement import Place, placed, predict
from hypothesis import given
from hypothesis import strategies as st
from tflite_graphs import CUSTOM_OPERATOR, model, tensor

SHAPE = (1, 4, 4, 4)
FITS, DOES_NOT = "ADD", "FLOOR_DIV"


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[tuple[str, list[str]]], Graph]:
    """Operators that fit and that do not, each reading two of the tensors before."""
    steps = []
    for number in range(draw(st.integers(1, 12))):
        names = ["in", *(f"t{k}" for k in range(number))]
        reads = draw(st.lists(st.sampled_from(names), min_size=2, max_size=2))
        steps.append((draw(st.sampled_from([FITS, FITS, DOES_NOT])), reads))
    return steps, built([(name, reads, [f"t{k}"]) for k, (name, reads) in enumerate(steps)])


def built(steps: list[tuple[str, list[str], list[str]]]) -> Graph:
    names = dict.fromkeys(each for _, reads, gives in steps for each in (*reads, *gives))
    read = {each for _, reads, _ in steps for each in reads}
    last = [each for _, _, gives in steps for each in gives if each not in read]
    data = model([tensor(name, SHAPE) for name in names], steps, last)
    return graph_of(tflite.load(data))


@given(graphs())
def test_the_chip_has_one_piece_as_its_definition_says(
    drawn: tuple[list[tuple[str, list[str]]], Graph],
) -> None:
    """On the chip is what fits, and is behind nothing that does not fit and is behind the chip."""
    steps, graph = drawn

    def on_chip(number: int) -> bool:
        return steps[number][0] == FITS and not any(map(ends, before(number)))

    def before(number: int) -> set[int]:
        direct = {int(name[1:]) for name in steps[number][1] if name != "in"}
        return direct.union(*map(before, direct))

    def ends(number: int) -> bool:
        return not on_chip(number) and any(on_chip(each) for each in before(number))

    expected = [Place.CHIP if on_chip(k) else Place.CPU for k in range(len(steps))]
    found = predict(graph)
    assert [each.place for each in found] == expected
    for number, each in enumerate(found):
        if each.behind is not None:
            assert each.behind.index in before(number)
        assert (each.behind is None) or each.place is Place.CPU


@given(graphs())
def test_several_pieces_hold_all_that_fits_and_can_run_one_after_another(
    drawn: tuple[list[tuple[str, list[str]]], Graph],
) -> None:
    """Nothing that a piece reads depends on the CPU behind that piece or a later one."""
    steps, graph = drawn
    found = predict(graph, several=True)
    assert [each.place is Place.CHIP for each in found] == [name == FITS for name, _ in steps]
    last: list[int] = []
    """The last piece that each operator depends on, its own included; -1 is none."""
    for (_, reads), each in zip(steps, found, strict=True):
        direct = [int(name[1:]) for name in reads if name != "in"]
        needed = max((last[k] for k in direct), default=-1)
        if each.piece is not None:
            assert needed <= each.piece
            behind = [last[k] for k in direct if found[k].piece is None]
            assert all(passed < each.piece for passed in behind)
            # And no later than it has to be: some input is of this piece, or behind the last one.
            assert each.piece == max([0, *(last[k] for k in direct), *(k + 1 for k in behind)])
        last.append(max(needed, each.piece if each.piece is not None else -1))


CHAIN = [
    ("ADD", ["in", "in"], ["a"]),
    ("MUL", ["a", "a"], ["b"]),
    ("FLOOR_DIV", ["b", "a"], ["c"]),
    ("ADD", ["c", "b"], ["d"]),
]
COMPILED = [
    (CUSTOM_OPERATOR, ["in"], ["a", "b"]),
    ("FLOOR_DIV", ["b", "a"], ["c"]),
    ("ADD", ["c", "b"], ["d"]),
]
PLACES = [Place.CHIP, Place.CHIP, Place.CPU, Place.CPU]


def test_operators_of_the_cpu_are_found_by_the_names_of_their_tensors() -> None:
    assert placed(built(CHAIN), built(COMPILED)) == (PLACES, [])


def renamed(
    steps: list[tuple[str, list[str], list[str]]],
) -> list[tuple[str, list[str], list[str]]]:
    return [
        (name, [each.upper() for each in reads], [each.upper() for each in gives])
        for name, reads, gives in steps
    ]


def test_and_by_their_position_where_names_differ() -> None:
    assert placed(built(CHAIN), built(renamed(COMPILED))) == (PLACES, [])


def test_what_leads_nowhere_in_the_compiled_file_is_unknown() -> None:
    """Where the compiled file's CPU has an operator that the model lacks, nothing is guessed."""
    other = [COMPILED[0], ("SQUARED_DIFFERENCE", ["b", "a"], ["c"]), COMPILED[2]]
    places, unknown = placed(built(CHAIN), built(renamed(other)))
    assert [node.name for node in unknown] == ["SQUARED_DIFFERENCE"]
    assert places == [Place.CHIP, Place.CHIP, Place.UNKNOWN, Place.CPU]


def test_a_name_that_several_tensors_have_decides_nothing() -> None:
    read = tflite.load(
        model([tensor(name, SHAPE) for name in ("in", "a", "b", "c", "d")], CHAIN, ["d"])
    )
    (graph,) = read.subgraphs
    tensors = tuple(replace(each, name="same") for each in graph.tensors)
    same = flatbuffer.write(replace(read, subgraphs=(replace(graph, tensors=tensors),)))
    assert placed(graph_of(tflite.load(same)), built(COMPILED)) == (PLACES, [])
