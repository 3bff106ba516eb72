"""Listings whole: of each instruction a few with anything in their fields, as they were reviewed.

    python tests/sim/isa/test_listing_texts.py

writes them anew, to be read before they are committed. Sets of tiles, masks and floats are read
back from their texts.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from darwinn_sim.isa.codec import decode
from darwinn_sim.isa.codes import ScalarUnit, TileFlag, TileUnit
from darwinn_sim.isa.fields import Field, Instruction
from darwinn_sim.isa.listing.disassembler import disassemble, to_text
from darwinn_sim.isa.listing.scalar_side import _immediate_text
from darwinn_sim.isa.listing.values import bits_text, float_text, tile_set
from darwinn_sim.isa.table import INSTRUCTIONS
from hypothesis import given
from hypothesis import strategies as st

EXPECTED = Path(__file__).with_name("listing_texts.txt")
CASES = 4


def _drawn(random: Random, field: Field) -> int:
    """Bits of a field: mostly none, or few, or all, or a float of moderate size."""
    kind = random.getrandbits(3)
    if kind < 3:
        return 0
    if kind < 5:
        return random.getrandbits(2) & (1 << field.width) - 1
    if field.kind == "float32":
        return 0x3F00_0000 | random.getrandbits(26)
    return (1 << field.width) - 1 if kind == 5 else random.getrandbits(field.width)


def cases() -> Iterator[tuple[Instruction, bytes]]:
    """Instructions with anything in their fields, the same ones each time."""
    for instruction in INSTRUCTIONS.values():
        for number in range(CASES):
            random = Random(f"{instruction.name} {number}")
            bits = 0
            for field in instruction.fields:
                for k in range(field.count):
                    value = instruction.opcode if field.name == "opcode" else _drawn(random, field)
                    bits |= value << field.offset + k * field.pitch
            yield instruction, bits.to_bytes(instruction.bits // 8, "little")


def listing() -> str:
    return "".join(
        f"{line}\n" for _, bits in cases() for line in to_text(disassemble(decode(bits)))
    )


def test_listings_are_those_that_were_reviewed() -> None:
    assert listing() == EXPECTED.read_text()


@given(st.integers(0, (1 << 20) - 1))
def test_a_set_of_tiles_can_be_read_back(mask: int) -> None:
    text = tile_set(mask)
    words = text.replace("outfeed", "").replace("tiles", "").replace("tile", "")
    found = 1 << 16 if "outfeed" in text else 0
    for run in words.strip(" {},").replace("}", "").split(","):
        if run.strip() in ("", "no"):
            continue
        first, _, last = run.strip().partition("-")
        found |= sum(1 << tile for tile in range(int(first), int(last or first) + 1))
    assert found == mask
    several = (mask & ~(1 << 16)).bit_count() > 1
    assert text.startswith("tiles ") is several
    runs = f"0{mask & ~(1 << 16):b}".count("01")
    assert ("{" in text) is (several and runs > 1)
    assert ("no tile" in text) is (mask == 0)


@given(st.sampled_from([TileFlag, ScalarUnit, TileUnit]), st.integers(0, (1 << 21) - 1))
def test_a_mask_can_be_read_back(codes: type[TileFlag], mask: int) -> None:
    text = bits_text(codes, mask)
    labels = {f"?{bit}": bit for bit in range(21)} | {code.label: int(code) for code in codes}
    whole = sum(1 << int(code) for code in codes)
    named = [labels[each] for each in text[text.find("{") + 1 : -1].split(", ") if each in labels]
    listed = sum(1 << bit for bit in named)
    if text == "all":
        assert mask == whole
    elif text.startswith("all but"):
        assert mask & whole == whole & ~listed
        assert len(named) < mask.bit_count()
    else:
        assert listed == mask
        assert (whole & ~mask).bit_count() >= mask.bit_count()
    plain = bits_text(None, mask)
    found = [int(each) for each in plain.strip("{}").split(", ") if each]
    assert sum(1 << bit for bit in found) == mask


@given(st.integers(0, (1 << 32) - 1))
def test_a_float_can_be_read_back(bits: int) -> None:
    value = float(float_text(bits))
    (wanted,) = struct.unpack("<f", struct.pack("<I", bits))
    if value == value:
        assert struct.pack("<f", value) == struct.pack("<f", wanted)
    else:
        assert wanted != wanted


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (65535, "65535"),
        (65536, "0x10000"),
        (0xFFFF_FFFF, "-1"),
        (0xFFFF_0001, "-65535"),
        (0xFFFF_0000, "0xffff0000"),
        (0x8000_0000, "0x80000000"),
        (0x7FFF_FFFF, "0x7fffffff"),
    ],
)
def test_immediates(value: int, text: str) -> None:
    """Small ones are decimal, but for operations on bits; of float operations they are floats."""
    for operation in (1, 2, *range(6, 17)):
        assert _immediate_text(operation, value) == text
    for operation in (3, 4, 5):
        assert _immediate_text(operation, value) == f"{value:#x}"
    for operation in range(17, 23):
        assert _immediate_text(operation, value) == float_text(value)


if __name__ == "__main__":
    EXPECTED.write_text(listing())
