"""Layers of random tensor instructions, against a reading of the rules that the module states."""

from __future__ import annotations

from typing import Any

from darwinn_sim.isa.builder import Values, build, frame
from darwinn_sim.isa.codec import decode
from darwinn_sim.isa.table import BY_NAME
from darwinn_sim.machine import layers
from hypothesis import given, settings
from hypothesis import strategies as st

INFINITY, MINUS_INFINITY, ONE = 0x7F800000, 0xFF800000, 0x3F800000
STAGE = {
    "activation_16bit": [0, 1],
    "parameter_16bit": [0, 1],
    "activation_zero_point": [0, 7],
    "parameter_zero_point": [0, 7],
    "output_scale": [ONE, ONE + 1],
    "high_clip": [ONE, INFINITY, MINUS_INFINITY],
    "low_clip": [ONE, ONE + 1],
    "output_zero_point": [0, 7],
    "immediate_bias": [0, 7],
    "apply_bias": [0, 1],
    "use_scales": [0, 1],
}
"""What instructions that compute alike have alike; of the function, whether it takes a table (bit
0), and whether results have 16 bits (bit 2)."""
OTHERS = ["TileFence", "Scalar", "MeshSouth"]


@st.composite
def instructions(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    if draw(st.integers(0, 3)) == 0:
        return draw(st.sampled_from(OTHERS)), {}
    name = draw(st.sampled_from(["TensorMac", "TensorMac", "TensorMax", "TensorInterpolate"]))
    fields = {"tiles": draw(st.sampled_from([0, 1, 2, 3, 0xC, 0xFFFF]))}
    fields["tiles_override"] = draw(st.sampled_from([0, 0, 0, 1]))
    fields["function"] = draw(st.sampled_from([0, 0, 1, 2, 4, 5]))
    fields["main_alternate_loop"] = draw(st.integers(0, 1))
    fields |= {"high_clip": ONE}
    for field in draw(st.lists(st.sampled_from(sorted(STAGE)), max_size=2)):
        fields[field] = draw(st.sampled_from(STAGE[field]))
    known = {field.name for field in BY_NAME[name].fields}
    return name, {field: value for field, value in fields.items() if field in known}


def alike(name: str, fields: dict[str, Any]) -> tuple[object, ...]:
    function = fields.get("function", 0)
    return name, function & 1, function >> 2, *(fields.get(field, 0) for field in STAGE)


def slow(chunks: list[list[tuple[str, dict[str, Any]]]]) -> list[list[int]]:
    """Indices of the instructions of each layer, through all chunks with their frames."""
    found: list[list[int]] = []
    taken: set[int] = set()
    last: tuple[object, ...] = ()
    place = 0
    for chunk in chunks:
        place += 1
        for name, fields in chunk:
            if name.startswith("Tensor"):
                tiles = {tile for tile in range(16) if fields["tiles"] >> tile & 1}
                if taken & tiles or alike(name, fields) != last or not found:
                    found.append([])
                    taken = set()
                found[-1].append(place)
                taken |= tiles
                last = alike(name, fields)
            place += 1
        place += 6
    return found


@settings(max_examples=150)
@given(st.lists(st.lists(instructions(), max_size=8), min_size=1, max_size=2))
def test_layers(drawn: list[list[tuple[str, dict[str, Any]]]]) -> None:
    bodies: list[list[tuple[str, Values]]] = [list(each) for each in drawn]
    chunks = [decode(frame(build(body))) for body in bodies]
    found = layers.find(chunks)
    assert [list(each.instructions) for each in found] == slow(drawn)
    by_place: dict[int, tuple[str, dict[str, Any]]] = {}
    place = 0
    for chunk in drawn:
        by_place |= dict(enumerate(chunk, place + 1))
        place += len(chunk) + 7
    for number, layer in enumerate(found):
        members = [by_place[each] for each in layer.instructions]
        name, fields = members[0]
        copies = fields.get("high_clip", 0) in (INFINITY, MINUS_INFINITY)
        assert (layer.number, layer.copies) == (number, copies)
        assert (layer.first, layer.last) == (layer.instructions[0], layer.instructions[-1])
        tiles = 0
        for _, each in members:
            tiles |= each["tiles"]
        assert layer.tiles == tiles
        assert layer.executions == sum(
            1 if each["tiles_override"] else each["tiles"].bit_count() for _, each in members
        )
        plain = copies or name == "TensorInterpolate"
        assert layer.output_zero_point == (None if plain else fields.get("output_zero_point", 0))
        assert layer.output_16bit is bool(fields.get("function", 0) & 4)
    for one in found:
        for other in found:
            same = alike(*by_place[one.first]) == alike(*by_place[other.first])
            assert (one.output_stage == other.output_stage) is same
