"""Mesh ports of the RTL's tile: random instructions against the slow model's two sides."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from darwinn_sim.timing.description import chip_description
from functional_coverage import Coverage
from hypothesis import strategies as st
from nightly import nightly_too
from slow_model import mesh_bus as slow
from slow_model.traversal import walk
from stimulus import NO_AIMS, Aims, Walk, line, near_edges, nothing
from tile_units import LIMIT, TileAndModel, check_unit, limit_of
from traversal_coverage import bins
from traversal_coverage import cover as cover_traversal
from unit_cases import mesh_bus as unit

LINKS = list(slow.DIRECTIONS)
BINS = (*unit.INSTRUCTION_BINS, "held back", "words that nobody sends", "stalls")


@st.composite
def cases(draw: Any, aims: Aims = NO_AIMS) -> tuple[Any, list[int], int, int]:
    """An instruction, the words that arrive, and how the neighbour lets the sender wait."""
    case = draw(unit.cases(aims=aims))
    elements = len(walk(case[1], "narrow_write"))
    count = draw(st.one_of(st.just(elements), near_edges(0, elements)))
    random = draw(st.randoms(use_true_random=False))
    words = [random.getrandbits(32) for _ in range(count)]
    return case, words, random.getrandbits(32), draw(st.sampled_from([0, 64, 200]))


@nightly_too
def test_random_instructions_send_and_write_the_words_of_the_slow_model(nightly: bool) -> None:
    """Both sides at once; memories, flags and words agree, also where a side is held back."""
    coverage = Coverage("RTL mesh bus", (*bins(*unit.TRAVERSALS), *BINS))

    def check(case: tuple[Any, list[int], int, int]) -> None:
        (name, fields, _, flags), words, seed, share = case
        link = LINKS.index(name)
        pair = TileAndModel(flags)
        sent, sending_ends = slow.send(pair.slow, name, fields)
        arriving = [word.to_bytes(4, "little") for word in words]
        receiving_ends = slow.receive(pair.slow, name, fields, arriving)
        pair.rtl.stall(seed, share)
        for word in words:
            pair.rtl.send_word(link, word)
        pair.give(name, fields)
        pair.run(limit_of(len(sent) + len(words), share))
        assert pair.rtl.idle == (sending_ends and receiving_ends), "end of the instruction"
        actual = [word.to_bytes(4, "little") for word in pair.rtl.words_out(link)]
        assert actual == sent, "words sent"
        assert not any(pair.rtl.words_out(other) for other in range(4) if other != link)
        for side in unit.TRAVERSALS:
            if not slow.off(fields, side):
                cover_traversal(coverage, fields, side)
        unit.cover_instruction(coverage, name, fields)
        watched = any(fields["watcher_valid"])
        coverage.hit("held back", when=watched and not pair.rtl.idle)
        coverage.hit("words that nobody sends", when=not watched and not receiving_ends)
        coverage.hit("stalls", when=share and sent)

    check_unit(coverage, unit.TRAVERSALS, cases, check, nightly=nightly, instructions=len(LINKS))


def test_an_immediate_takes_no_word_that_has_arrived() -> None:
    """Words that wait while a constant is written are there for the next instruction."""
    pair, constant, words = TileAndModel({}), bytes([7, 0, 0, 0]), (0x1234, 0x5678)
    for word in words:
        pair.rtl.send_word(0, word)
    write = Walk((2, 1, 1, 1), (1, 0, 0, 0), base=20).fields("MeshSouth", "narrow_write")
    pair.give("MeshSouth", {"immediate_valid": 1, "immediate": 7, "narrow_write_base": 10})
    pair.give("MeshSouth", write)
    pair.slow.write_narrow_word(10, constant)
    for place, word in enumerate(words, 20):
        pair.slow.write_narrow_word(place, word.to_bytes(4, "little"))
    pair.run()
    assert pair.rtl.idle


@pytest.mark.parametrize("name", LINKS)
def test_a_port_holds_the_words_that_it_is_said_to(name: str) -> None:
    """More do not fit, until an instruction takes them; all come in their order."""
    link, more = LINKS.index(name), 50
    room = int(chip_description("harness").mesh_fifo_words.value)
    pair = TileAndModel({})
    pair.rtl.stall(0, 0)
    words = range(1000, 1000 + room + more)
    for word in words:
        pair.rtl.send_word(link, word)
    pair.give("TileFence", {"wait_idle": 0x3FF})
    for _ in range(2 * room):
        pair.give("TileFence", {})  # a cycle each
    pair.rtl.run(LIMIT)
    assert pair.rtl.words_left(link) == more
    write = Walk((len(words), 1, 1, 1), (1, 0, 0, 0), base=20).fields(name, "narrow_write")
    pair.give(name, write)
    for place, word in enumerate(words, 20):
        pair.slow.write_narrow_word(place, word.to_bytes(4, "little"))
    pair.run()
    assert pair.rtl.idle


SIDES = {"off": (1, 0), "one": (1, 1), "one again": (3, 0), "several": (3, 2)}
"""Words of a side, and how far they are apart; the first is a side that is off, and with an
immediate a single word."""


@pytest.mark.parametrize("name", LINKS)
@pytest.mark.parametrize("immediate", [0, 1])
def test_sides_are_on_or_off_each_by_itself(name: str, immediate: int) -> None:
    """Each kind of one beside each of the other; words that arrive and are not taken stay."""
    link, words = LINKS.index(name), [bytes([9, k, 1, 2]) for k in range(3)]
    for read, write in product(SIDES.values(), repeat=2):
        pair = TileAndModel({})
        fields = line(name, "narrow_read", read[0], 100, read[1])
        fields |= line(name, "narrow_write", write[0], 200, write[1])
        fields |= {"immediate_valid": immediate, "immediate": 0x12345678}
        fields |= {"read_producer_increment": 1, "write_producer_increment": 1}
        every = nothing(name) | fields
        for word in words:
            pair.rtl.send_word(link, int.from_bytes(word, "little"))
        pair.give(name, fields)
        sent, _ = slow.send(pair.slow, name, every)
        before = list(pair.slow.flags)
        assert slow.receive(pair.slow, name, every, words)
        taken = 0 if immediate else sum(pair.slow.flags) - sum(before)
        # What is left is taken by the next instruction.
        rest = line(name, "narrow_write", len(words), 300)
        pair.give(name, rest)
        assert slow.receive(pair.slow, name, nothing(name) | rest, words[taken:]) == (not taken)
        pair.run(200)
        assert pair.rtl.idle == (not taken)
        assert [word.to_bytes(4, "little") for word in pair.rtl.words_out(link)] == sent
