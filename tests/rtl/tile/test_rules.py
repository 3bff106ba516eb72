"""What no program may do ends the run of a tile, with a line that says which rule it breaks."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from darwinn_rtl.tile.bench import RingRow, TileFailure
from darwinn_sim import chip
from darwinn_sim.errors import UnsupportedInstruction
from darwinn_sim.isa.builder import build, frame
from darwinn_sim.machine.lowering import lower
from slow_model.tensor_unit import working
from stimulus import line, nothing
from tile_units import LIMIT, TileAndModel

PACK, SPREAD, MAC, CONSUME = "NarrowToWide", "WideToNarrow", "TensorMac", "RingConsumerA"


def _walks(name: str, **counts: int) -> dict[str, Any]:
    """So many addresses of each traversal, one behind another."""
    fields = nothing(name)
    for traversal, count in counts.items():
        fields |= line(name, traversal, count)
    return fields


def _pack(words: int, rows: int) -> dict[str, Any]:
    return _walks(PACK, narrow_read=words, wide_write=rows)


def _spread(rows: int, words: int) -> dict[str, Any]:
    return _walks(SPREAD, wide_read=rows, narrow_write=words)


def _multiply(words: int, **more: int) -> dict[str, Any]:
    return _walks(MAC, narrow_write=words) | {"partial_sum_read": 3, **more}


BROKEN = {
    "rows without a place": (PACK, _pack(2, 1), "the write traversal ends before the rows"),
    "places without a row": (PACK, _pack(1, 2), "the write traversal goes on behind the rows"),
    "words without a row": (SPREAD, _spread(1, 2), "the read traversal ends before the words"),
    "rows without a word": (SPREAD, _spread(2, 1), "the read traversal goes on behind the words"),
    "scales beyond their buffer": (
        SPREAD,
        _spread(1, 1) | {"scale_bias": 1, "narrow_write_base": chip.SCALE_BIAS_WORDS // 2},
        "step outside the scale/bias buffer",
    ),
    "results without a place": (
        MAC,
        _multiply(1, last_block_lanes=4),
        "the write traversal ends before the results",
    ),
    "places without a result": (MAC, _multiply(2), "the write traversal ends after the results"),
    "results beyond narrow memory": (
        MAC,
        _multiply(1, narrow_write_base=chip.NARROW_BYTES - 3),
        "narrow_memory.sv",
    ),
    "sums beyond wide memory": (
        MAC,
        _multiply(1, partial_sum_read=1, partial_sum_base=4 * chip.WIDE_ROWS),
        "wide_memory.sv",
    ),
    "a row without words": (CONSUME, _walks(CONSUME, wide_write=1), "has 1 to 64 words"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_rule_that_is_broken_ends_the_run(case: str) -> None:
    name, fields, rule = BROKEN[case]
    pair = TileAndModel({})
    if name == CONSUME:
        pair.rtl.send_row(RingRow(()))
    for _ in range(2):  # some rules are seen when the next instruction begins
        pair.give(name, fields)
    with pytest.raises(TileFailure, match=rule):
        pair.rtl.run(LIMIT)


def test_the_same_within_the_rules_ends_well() -> None:
    pair = TileAndModel({})
    for name, fields in ((PACK, _pack(2, 2)), (SPREAD, _spread(2, 2)), (MAC, _multiply(1))):
        for _ in range(2):
            pair.give(name, fields)
    pair.rtl.run(LIMIT)
    assert pair.rtl.idle


@pytest.mark.parametrize("name", [MAC, "TensorMax", "TensorSum"])
def test_a_part_of_a_product_is_refused_by_all(name: str) -> None:
    """What 14 does with a 16-bit operand is not known: the RTL made a product, the slow model none.

    The tile stills the upper multipliers alone, and the models others as well.
    """
    refused = 0
    for still, activations, parameters in product((0, 12, 14), (0, 1), (0, 1)):
        wide = {"activation_16bit": activations, "parameter_16bit": parameters}
        fields = _walks(name, narrow_write=1) | {"partial_sum_read": 3, "mac_disable": still} | wide
        pair = TileAndModel({})
        pair.give(name, fields)
        try:
            working(fields, parameters + (name == MAC) * activations)
        except ValueError:
            refused += 1
            with pytest.raises(UnsupportedInstruction, match="a 16-bit product stands still"):
                lower((frame(build([(name, fields)])),))
            with pytest.raises(TileFailure, match="a part of a product's multipliers"):
                pair.rtl.run(LIMIT)
        else:
            lower((frame(build([(name, fields)])),))
            pair.rtl.run(LIMIT)
            assert pair.rtl.idle
    assert refused == (4 if name == MAC else 2)
