"""Comparison of a trace with DMA hints: what agrees, what differs, and where first."""

from __future__ import annotations

import json

import pytest
from darwinn_formats.darwinn import (
    AnyHint,
    Buffer,
    Description,
    Direction,
    DmaDescriptorHint,
    DmaHint,
    DmaHints,
    FenceHint,
    InstructionHint,
    InterruptHint,
    InterruptType,
    Meta,
)
from darwinn_sim.host import dma_trace
from darwinn_sim.host.dma_trace import (
    DmaComparison,
    TraceEntry,
    Transfer,
    TransferDirection,
    TransferKind,
    compare_with_hints,
)
from hypothesis import given
from hypothesis import strategies as st

IN, OUT = TransferDirection.INFEED, TransferDirection.OUTFEED
INPUT = Buffer(Description.BASE_ADDRESS_INPUT_ACTIVATION, "image", 0)
OUTPUT = Buffer(Description.BASE_ADDRESS_OUTPUT_ACTIVATION, "logits", 0)
PARAMETER = Buffer(Description.BASE_ADDRESS_PARAMETER, "", 0)
SCRATCH = Buffer(Description.BASE_ADDRESS_SCRATCH, "", 0)
BASE = {
    INPUT: 0x8000_0000_0010_0F40,
    OUTPUT: 0x8000_0000_0010_4000,
    PARAMETER: 0x8000_0000_0000_0000,
    SCRATCH: 0x8000_0001_0000_0000,
}
KIND = {
    INPUT: TransferKind.INPUT,
    OUTPUT: TransferKind.OUTPUT,
    PARAMETER: TransferKind.PARAMETER,
    SCRATCH: TransferKind.SCRATCH,
}


def hint(what: AnyHint, direction: Direction = Direction.INFEED) -> DmaHint:
    return DmaHint(any_hint=what, direction=direction)


def descriptor_hint(
    buffer: Buffer, offset: int, size: int, direction: Direction = Direction.INFEED
) -> DmaHint:
    meta = Meta(desc=buffer.desc, name=buffer.name or None, batch=buffer.batch)
    return hint(DmaDescriptorHint(meta, offset, size), direction)


def moved(buffer: Buffer, offset: int, size: int, direction: TransferDirection = IN) -> Transfer:
    return Transfer(KIND[buffer], direction, buffer, offset, size, BASE[buffer] + offset)


CHUNK = Transfer(TransferKind.INSTRUCTION, IN, size=4096, address=77, number=0)
INTERRUPT = Transfer(TransferKind.INTERRUPT, OUT)
FENCE = Transfer(TransferKind.FENCE, IN)

HINTS = (
    hint(InstructionHint(0)),
    descriptor_hint(INPUT, 0, 100),
    descriptor_hint(PARAMETER, 64, 128),
    descriptor_hint(SCRATCH, 0, 32, Direction.OUTFEED),
    hint(FenceHint()),
    descriptor_hint(SCRATCH, 0, 32),
    descriptor_hint(OUTPUT, 0, 10, Direction.OUTFEED),
    hint(InterruptHint(InterruptType.SCALAR_CORE_INT_0), Direction.OUTFEED),
)
TRACE = (
    CHUNK,
    moved(INPUT, 0, 100),
    moved(PARAMETER, 64, 128),
    moved(SCRATCH, 0, 32, OUT),
    FENCE,
    moved(SCRATCH, 0, 32),
    moved(OUTPUT, 0, 10, OUT),
    INTERRUPT,
)


def compare(
    hints: tuple[DmaHint, ...], trace: tuple[Transfer, ...] | list[Transfer], *, full: bool = True
) -> DmaComparison:
    return compare_with_hints(DmaHints(hints, full), trace)


def test_a_trace_as_hinted_is_equal() -> None:
    comparison = compare(HINTS, TRACE)
    assert comparison.equal
    assert comparison.first_difference is None
    assert [row.descriptors for row in comparison.rows] == [1] * 8
    assert comparison.beyond_hints == 0


@given(cut=st.integers(1, 99), second=st.integers(1, 127))
def test_contiguous_descriptors_carry_out_one_hint(cut: int, second: int) -> None:
    trace = [
        CHUNK,
        moved(INPUT, 0, cut),
        moved(INPUT, cut, 100 - cut),
        moved(PARAMETER, 64, second),
        moved(PARAMETER, 64 + second, 128 - second),
        *TRACE[3:],
    ]
    comparison = compare(HINTS, trace)
    assert comparison.equal
    assert [row.descriptors for row in comparison.rows][:3] == [1, 2, 2]


def test_hints_that_continue_each_other_are_kept_apart() -> None:
    hints = (descriptor_hint(INPUT, 0, 10), descriptor_hint(INPUT, 10, 20))
    assert compare(hints, [moved(INPUT, 0, 10), moved(INPUT, 10, 20)]).equal
    assert not compare(hints, [moved(INPUT, 0, 30)]).equal
    assert not compare(hints, [moved(INPUT, 0, 15), moved(INPUT, 15, 15)]).equal


@given(cuts=st.lists(st.integers(1, 499), unique=True, min_size=1, max_size=5), data=st.data())
def test_neighbours_of_both_directions_may_be_merged(cuts: list[int], data: st.DataObject) -> None:
    edges = [0, *sorted(cuts), 500]
    ways = [IN, *(data.draw(st.sampled_from((IN, OUT))) for _ in cuts)]
    trace = [
        moved(SCRATCH, begin, end - begin, way)
        for begin, end, way in zip(edges, edges[1:], ways, strict=False)
    ]
    comparison = compare((descriptor_hint(SCRATCH, 0, 500), HINTS[4]), [*trace, FENCE])
    assert comparison.equal
    row = comparison.rows[0]
    assert row.descriptors == len(trace)
    assert row.against == sum(each.size for each in trace if each.direction is OUT)
    assert (comparison.merged is row) == (OUT in ways)


@pytest.mark.parametrize(
    "trace",
    [
        [moved(SCRATCH, 0, 400), moved(SCRATCH, 400, 99, OUT)],
        [moved(SCRATCH, 0, 400), moved(SCRATCH, 400, 101, OUT)],
        [moved(SCRATCH, 0, 400), moved(SCRATCH, 404, 100, OUT)],
        [moved(SCRATCH, 0, 400, OUT), moved(SCRATCH, 400, 100)],
        [moved(SCRATCH, 0, 400), FENCE, moved(SCRATCH, 400, 100, OUT)],
        [moved(SCRATCH, 0, 400), moved(OUTPUT, 400, 100, OUT)],
    ],
)
def test_what_is_not_exactly_a_merge_differs(trace: list[Transfer]) -> None:
    comparison = compare((descriptor_hint(SCRATCH, 0, 500),), trace)
    assert not comparison.equal
    assert comparison.merged is None


@pytest.mark.parametrize(
    ("index", "transfer", "fields"),
    [
        (0, Transfer(TransferKind.INSTRUCTION, IN, number=1), ("number",)),
        (1, moved(INPUT, 1, 100), ("offset",)),
        (1, moved(INPUT, 0, 99), ("size",)),
        (1, moved(PARAMETER, 0, 100), ("kind", "buffer")),
        (1, Transfer(TransferKind.INPUT, IN, None, 0, 100, 5), ("buffer",)),
        (3, moved(SCRATCH, 0, 32), ("direction",)),
        (4, INTERRUPT, ("kind", "direction")),
        (7, Transfer(TransferKind.INTERRUPT, OUT, number=2), ("number",)),
    ],
)
def test_every_difference_is_named(index: int, transfer: Transfer, fields: tuple[str, ...]) -> None:
    comparison = compare(HINTS, [*TRACE[:index], transfer, *TRACE[index + 1 :]])
    assert comparison.first_difference is not None
    assert comparison.first_difference.index == index
    assert comparison.first_difference.differences == fields
    assert sum(not row.equal for row in comparison.rows) == 1


@pytest.mark.parametrize("missing", range(8))
def test_a_missing_transfer_is_found(missing: int) -> None:
    comparison = compare(HINTS, TRACE[:missing] + TRACE[missing + 1 :])
    assert comparison.first_difference is not None
    assert comparison.first_difference.index == missing
    assert comparison.rows[-1].differences == ("not issued",) or missing == 7


@pytest.mark.parametrize("full", [True, False])
def test_what_comes_after_the_hints(full: bool) -> None:
    comparison = compare(HINTS[:3], TRACE, full=full)
    assert comparison.equal is not full
    assert comparison.beyond_hints == 5
    assert [row.hint for row in comparison.rows[3:]] == [None] * 5


def test_order_matters() -> None:
    trace = list(TRACE)
    trace[1], trace[2] = trace[2], trace[1]
    comparison = compare(HINTS, trace)
    assert comparison.first_difference is not None
    assert comparison.first_difference.index == 1


def test_descriptors_of_different_buffers_never_merge() -> None:
    other = Buffer(Description.BASE_ADDRESS_INPUT_ACTIVATION, "mask", 0)
    hints = (descriptor_hint(INPUT, 0, 20),)
    first = Transfer(TransferKind.INPUT, IN, INPUT, 0, 10, 1000)
    second = Transfer(TransferKind.INPUT, IN, other, 10, 10, 1010)
    assert not compare(hints, [first, second]).equal


def test_a_descriptor_continues_another_in_its_direction_only() -> None:
    first = moved(SCRATCH, 0, 10)
    assert moved(SCRATCH, 10, 5).continues(first)
    back = moved(SCRATCH, 10, 5, OUT)
    assert back.adjoins(first) and not back.continues(first)


def test_json_and_text_say_what_happened() -> None:
    comparison = compare(HINTS, TRACE[:-1])
    answer = json.loads(json.dumps(comparison.as_json()))
    assert (answer["equal"], answer["hints"], answer["first_difference"]) == (False, 8, 7)
    assert answer["rows"][1]["hint"] == answer["rows"][1]["issued"]
    assert answer["rows"][1]["hint"] == {
        "kind": "input",
        "direction": "infeed",
        "name": "image",
        "batch": 0,
        "offset": 0,
        "size": 100,
        "number": 0,
    }
    texts = [row.hint.text() for row in comparison.rows if row.hint]
    assert texts == [
        "instruction 0",
        "input infeed 'image' offset 0 size 100",
        "parameter infeed offset 64 size 128",
        "scratch outfeed offset 0 size 32",
        "fence",
        "scratch infeed offset 0 size 32",
        "output outfeed 'logits' offset 0 size 10",
        "interrupt 0",
    ]


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        (
            TraceEntry(TransferKind.INPUT, IN, INPUT, 8, 16, 0),
            "input infeed 'image' offset 8 size 16",
        ),
        (
            TraceEntry(TransferKind.SCRATCH, OUT, SCRATCH, 0, 4, 0),
            "scratch outfeed offset 0 size 4",
        ),
        (
            TraceEntry(TransferKind.OUTPUT, OUT, None, 64, 4, 0),
            "output outfeed (address that nothing is mapped to) offset 64 size 4",
        ),
        (TraceEntry(TransferKind.INSTRUCTION, IN, None, 0, 0, 3), "instruction 3"),
        (TraceEntry(TransferKind.INTERRUPT, OUT, None, 0, 0, 1), "interrupt 1"),
        (TraceEntry(TransferKind.FENCE, IN, None, 0, 0, 0), "fence"),
    ],
)
def test_an_entry_is_told_with_its_buffer_or_as_an_event(entry: TraceEntry, text: str) -> None:
    assert entry.text() == text


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(1, 3)), min_size=1, max_size=6),
    st.integers(0, 8),
)
def test_transfers_that_go_on_are_taken_until_there_are_enough_bytes(
    transfers: list[tuple[int, int]], size: int
) -> None:
    """What comes behind one that does not go on is not looked at."""
    pending = [
        Transfer(TransferKind.INPUT, IN, INPUT, 10 * kind, octets) for kind, octets in transfers
    ]

    def goes_on(transfer: Transfer, before: Transfer) -> bool:
        return transfer.offset >= before.offset

    count = 1
    while (
        count < len(pending)
        and sum(each.size for each in pending[:count]) < size
        and goes_on(pending[count], pending[count - 1])
    ):
        count += 1
    assert dma_trace._run(pending, size, goes_on) == count
    assert dma_trace._run([], size, goes_on) == 0
