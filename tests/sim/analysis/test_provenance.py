"""Who made what a program reads: programs of the project's compiler, whose makers are known."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import averaging_program as sample
import numpy as np
import pytest
from darwinn_formats.darwinn import Executable, ExecutableType, Package
from darwinn_sim.accelerator import Accelerator
from darwinn_sim.analysis import provenance as marked
from darwinn_sim.analysis.provenance import Origin, Provenance, trace
from darwinn_sim.host.buffers import layer_bytes
from darwinn_sim.units.marks import Marks, new_marks
from darwinn_testbench.compiler import (
    compile_network,
    compile_stand_alone,
    dense_program,
    random_convolution,
    random_dense,
)
from darwinn_testbench.compiler.parameters import (
    BIAS_ROW,
    DENSE_WEIGHT_ROW,
    SCALE_ROW,
    ZERO_POINT_ROW,
)
from numpy.typing import NDArray

PACKAGES = {
    "dense": lambda: compile_network(random_dense((100, 70, 12), 3)),
    "dense, streamed": lambda: compile_stand_alone(random_dense((100, 70, 12), 3)),
    "convolution": lambda: compile_network(random_convolution(12, 16, 4, 8, seed=5)),
}


@cache
def package(name: str) -> Package:
    return PACKAGES[name]()


@cache
def provenance(name: str) -> Provenance:
    return trace(*executables(name))


def executables(name: str) -> tuple[Executable | None, Executable]:
    """What caches parameters, if anything does, and what does the inference."""
    by_type = {each.type: each for each in package(name).executables}
    caching = by_type.get(ExecutableType.PARAMETER_CACHING)
    kind = ExecutableType.STAND_ALONE if caching is None else ExecutableType.EXECUTION_ONLY
    return caching, by_type[kind]


def outputs(name: str, parameters: bytes) -> bytes:
    """The output with such parameters, of an input of many values."""
    caching, inference = executables(name)
    accelerator = Accelerator(strict=True)
    if caching is None:
        inference = replace(inference, parameters=parameters)
    else:
        accelerator.run(replace(caching, parameters=parameters), {})
    (layer,) = inference.input_layers
    data = np.random.default_rng(5).integers(0, 256, layer_bytes(layer), np.uint8).tobytes()
    return accelerator.run(inference, {layer.name: data}).outputs["output"]


@pytest.mark.parametrize("name", PACKAGES)
def test_parameters_count_where_they_are_read_and_nowhere_else(name: str) -> None:
    (parameters,) = (each.parameters for each in package(name).executables if each.parameters)
    found = Origin()
    for reads in provenance(name).reads.values():
        found = found | reads.parameters | reads.scales
        assert not reads.activations.cached.size and not reads.activations.streamed.size
    read, elsewhere = found.cached, found.streamed
    if name.endswith("streamed"):
        read, elsewhere = elsewhere, read
    assert not elsewhere.size
    words = np.frombuffer(parameters, "<u4")
    others = np.setdiff1d(np.arange(words.size), read)
    assert read.size and others.size and read.max() < words.size
    expected = outputs(name, parameters)
    changed = words.copy()
    changed[others] ^= 0x5A5A5A5A
    assert outputs(name, changed.tobytes()) == expected
    changed = words.copy()
    changed[read] = 0
    assert outputs(name, changed.tobytes()) != expected


@pytest.mark.parametrize("name", PACKAGES)
def test_each_layer_reads_the_one_before(name: str) -> None:
    found = provenance(name)
    numbers = {each.number: set(each.instructions) for each in found.layers}
    assert found.outputs.keys() == {"output"}
    assert found.outputs["output"].layers == {max(numbers)}
    assert not found.outputs["output"].inputs and not found.scalar_core.computed
    for (instruction, _), reads in found.reads.items():
        (number,) = (n for n, instructions in numbers.items() if instruction in instructions)
        before = {number - 1} if number else set()
        assert reads.activations.layers == before
        assert reads.activations.inputs == (set() if number else {"input"})
        assert not reads.parameters.computed


def test_a_dense_layer_takes_results_at_all_places_and_a_convolution_has_padding() -> None:
    for name in ("dense", "dense, streamed"):
        for reads in provenance(name).reads.values():
            assert reads.first.all() and reads.last.all()
    edges = {
        (int(reads.first.sum()), int(reads.last.sum()), reads.first.size)
        for reads in provenance("convolution").reads.values()
    }
    # Of 3 x 3 positions a corner has 4 within the picture, an edge 6.
    assert {first for first, _, _ in edges} <= {4, 6, 9} and len(edges) > 1
    assert {size for _, _, size in edges} == {9}


@pytest.mark.parametrize("name", ["dense", "dense, streamed"])
def test_each_tile_of_a_dense_layer_reads_its_own_block(name: str) -> None:
    """Word for word: zero points and weights of its lanes as parameters, scales and biases."""
    network = random_dense((100, 70, 12), 3)
    expected: dict[tuple[int, int], tuple[set[int], set[int]]] = {}
    begin = 0
    for number, layer in enumerate(dense_program.place(network)):
        for block in layer.blocks:
            words = [
                {begin + row * block.row_words + lane for lane in range(block.lanes)}
                for row in range(len(block.rows))
            ]
            rows = words[ZERO_POINT_ROW : DENSE_WEIGHT_ROW + -(-layer.inputs // 4)]
            scales = words[SCALE_ROW] | words[BIAS_ROW]
            expected[number, block.tile] = set[int]().union(*rows), scales
            begin += block.rows.size // 4
    found = provenance(name)
    of_layer = {k: each.number for each in found.layers for k in each.instructions}
    seen = set()
    for (instruction, tile), reads in found.reads.items():
        parameters, scales = expected[of_layer[instruction], tile]
        seen.add((of_layer[instruction], tile))
        for origin, wanted in ((reads.parameters, parameters), (reads.scales, scales)):
            read, other = origin.cached, origin.streamed
            if name.endswith("streamed"):
                read, other = other, read
            assert set(read.tolist()) == wanted
            assert not other.size
            assert not origin.computed
    assert seen == expected.keys()
    assert len(found.layers) == 2


def test_the_first_and_the_last_pixel_of_a_tile() -> None:
    """Of 3 x 3 positions those are padding that lie outside of the picture, which 4 x 4 tiles
    share: the first pixel has some where its tile is at the top or the left, the last one else."""
    for (_, tile), reads in provenance("convolution").reads.items():
        row, column = divmod(tile, 4)
        tall, wide = np.ones(3, np.bool_), np.ones(3, np.bool_)
        tall[0], wide[0] = row > 0, column > 0
        assert picture(reads.first).tolist() == np.outer(tall, wide).tolist()
        tall, wide = np.ones(3, np.bool_), np.ones(3, np.bool_)
        tall[-1], wide[-1] = row < 3, column < 3
        assert picture(reads.last).tolist() == np.outer(tall, wide).tolist()


def picture(made: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """By row and column of the window."""
    return made.reshape(3, 3)


@pytest.mark.parametrize("name", PACKAGES)
def test_what_is_noted_may_be_taken_out_at_any_time(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With room for a few notes more than a segment may make, the same is found."""
    taken: list[int] = []
    take = marked._Marker.take

    def little_room(*args: Any) -> Marks:
        made = new_marks(*args)
        return made._replace(notes=made.notes[: int(made.marking["most"][0]) + 8])

    def counted(marker: marked._Marker) -> None:
        taken.append(int(marker.marks.marking["notes"][0]))
        take(marker)

    monkeypatch.setattr(marked, "new_marks", little_room)
    monkeypatch.setattr(marked._Marker, "take", counted)
    found, expected = trace(*executables(name)), provenance(name)
    assert len(taken) > 2
    assert found.reads.keys() == expected.reads.keys()
    for key, wanted in expected.reads.items():
        given = found.reads[key]
        for memory in ("activations", "parameters", "scales"):
            one, other = getattr(given, memory), getattr(wanted, memory)
            assert (one.layers, one.inputs) == (other.layers, other.inputs)
            np.testing.assert_array_equal(one.cached, other.cached)
            np.testing.assert_array_equal(one.streamed, other.streamed)
        np.testing.assert_array_equal(given.first, wanted.first)
        np.testing.assert_array_equal(given.last, wanted.last)


def test_makers_of_one_and_of_another() -> None:
    def origin(layer: int, name: str, *places: int) -> Origin:
        words = np.array(places, np.int64)
        return Origin(frozenset({layer}), frozenset({name}), words, words + 100)

    one, other = origin(1, "a", 1, 5), origin(2, "b", 3, 5)
    assert one | one is one
    for both in (one | other, other | one):
        assert (set(both.layers), set(both.inputs)) == ({1, 2}, {"a", "b"})
        assert both.cached.tolist() == [1, 3, 5]
        assert both.streamed.tolist() == [101, 103, 105]
    for alone in (one | Origin(), Origin() | one):
        assert (set(alone.layers), set(alone.inputs)) == ({1}, {"a"})
        assert (alone.cached.tolist(), alone.streamed.tolist()) == ([1, 5], [101, 105])
    computed = [Origin(), Origin(frozenset({0})), Origin(inputs=frozenset({""}))]
    assert [each.computed for each in computed] == [False, True, True]


def test_a_sum_of_an_input_without_any_parameters() -> None:
    """Nothing that it reads is a place in parameters, and it takes no activations."""
    executable = sample.executable()
    (output,) = executable.output_layers
    output = replace(output, y_dim=1, x_dim=1, z_dim=sample.OUTPUT_BYTES)
    found = trace(None, replace(executable, output_layers=(output,)))
    assert set(found.outputs["averages"].layers) == {0}
    assert not found.scalar_core.computed
    (((_, tile), reads),) = found.reads.items()
    assert tile == sample.TILE
    assert not reads.activations.computed
    assert not reads.scales.computed
    assert (set(reads.parameters.layers), set(reads.parameters.inputs)) == (set(), {"image"})
    assert not reads.parameters.cached.size
    assert not reads.parameters.streamed.size
    assert (reads.first.tolist(), reads.last.tolist()) == ([False], [False])
