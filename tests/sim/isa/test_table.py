"""The instruction table is consistent in itself."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from darwinn_sim.isa.codes import TileFlag
from darwinn_sim.isa.evidence import EVIDENCE
from darwinn_sim.isa.fields import Field, Instruction, interleave, place, read
from darwinn_sim.isa.table import BY_NAME, INSTRUCTIONS

EVERY = pytest.mark.parametrize("instruction", INSTRUCTIONS.values(), ids=lambda entry: entry.name)


@EVERY
def test_fields_lie_inside_the_instruction_and_do_not_overlap(instruction: Instruction) -> None:
    owners = Counter(
        offset + bit
        for field in instruction.fields
        for offset in field.offsets()
        for bit in range(field.width)
    )
    assert max(owners) < instruction.bits
    assert [bit for bit, count in owners.items() if count > 1] == []


@EVERY
def test_field_names_are_unique(instruction: Instruction) -> None:
    names = Counter(field.name for field in instruction.fields)
    assert [name for name, count in names.items() if count > 1] == []


@EVERY
def test_every_field_says_what_it_means_and_how_that_is_known(instruction: Instruction) -> None:
    for field in instruction.fields:
        assert field.meaning.endswith("."), field.name
        assert field.evidence, field.name
        assert field.width <= 32, "the codec reads a field through a 64-bit window"


@EVERY
def test_groups_refer_to_fields_that_exist(instruction: Instruction) -> None:
    for walk in instruction.traversals:
        assert instruction.field(f"{walk.name}_stride").count == walk.loops
        assert instruction.field(f"{walk.name}_mask").width == walk.loops
        for name in walk.fields:
            instruction.field(name)
    for producer in instruction.producers:
        assert instruction.field(f"{producer}_increment").width == 1
        assert [signal for signal in instruction.signals if signal.producer == producer]
    for signal in instruction.signals:
        assert signal.producer in instruction.producers
        if signal.field:
            low, high = instruction.field(signal.field).range
            assert low <= signal.value <= high
    if instruction.watchers:
        assert instruction.field("watcher_flag").count == instruction.watchers


@EVERY
def test_codes_fit_their_fields(instruction: Instruction) -> None:
    for field in instruction.fields:
        if field.codes is not None:
            assert max(field.codes) <= _highest_code(field), field.name
            assert all(code.meaning for code in field.codes)


def _highest_code(field: Field) -> int:
    return field.width - 1 if field.kind == "mask" else field.range[1]


def test_an_opcode_and_a_name_lead_to_the_same_instruction() -> None:
    assert len(BY_NAME) == len(INSTRUCTIONS)
    for opcode, instruction in INSTRUCTIONS.items():
        assert instruction.opcode == opcode
        assert BY_NAME[instruction.name] is instruction


@pytest.mark.parametrize(
    ("name", "field", "offset", "width"),
    [
        ("TensorMac", "output_scale", 1949, 32),
        ("TensorMac", "odd_function", 2096, 1),
        ("TensorInterpolate", "y_step", 2024, 16),
        ("NarrowToWide", "row_loop", 801, 3),
        ("WideToNarrow", "row_loop", 870, 3),
        ("MeshEast", "immediate", 728, 32),
        ("RingProducer", "targets", 467, 17),
        ("RingConsumerB", "destination", 462, 1),
        ("CoefficientTable", "degree", 1566, 2),
        ("TileFence", "wide_sleep", 110, 1),
        ("Scalar", "alu_b", 70, 32),
        ("ScalarFence", "wait_idle", 246, 5),
        ("RingInfeed", "row_words", 434, 6),
        ("RingOutfeed", "to_host", 228, 1),
    ],
)
def test_the_last_fields_stand_where_they_were_found(
    name: str, field: str, offset: int, width: int
) -> None:
    """A layout is built from widths; one wrong width would move every field after it."""
    found = BY_NAME[name].field(field)
    assert (found.offset, found.width) == (offset, width)


def test_a_field_is_a_line_that_may_go_on() -> None:
    text = """
    halt   1   flag Halts. [open zero]
    flag/on 5x3 mask Flags that are
                     watched. (TileFlag) [low: by
                     analogy]
    """
    assert place(read(text), 7) == (
        Field("halt", 1, "flag", "Halts.", "open", EVIDENCE["zero"], pitch=1, offset=7),
        Field(
            name="flag",
            width=5,
            kind="mask",
            meaning="Flags that are watched.",
            confidence="low",
            evidence="by analogy",
            count=3,
            pitch=5,
            offset=8,
            codes=TileFlag,
            shown_as="on",
        ),
    )


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("halt flag Halts. [open zero]", "no field"),
        ("halt 1 flag Halts. [open: zero", "no field"),
        ("halt 1 switch Halts. [open zero]", "unknown 'switch'"),
        ("halt 1 flag Halts. [sure zero]", "unknown 'sure'"),
        ("halt 1 flag Halts. [open hearsay]", "unknown 'hearsay'"),
        ("halt 1 flag Halts. (Halts) [open zero]", "unknown 'Halts'"),
    ],
)
def test_a_line_that_is_no_field_is_refused(line: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        read(line)


def test_every_evidence_is_cited() -> None:
    cited = {field.evidence for entry in INSTRUCTIONS.values() for field in entry.fields}
    assert set(EVIDENCE.values()) <= cited


def test_fields_follow_each_other_unless_they_have_a_place() -> None:
    """Repetitions are as far apart as they are wide, or as it was said."""
    texts = [
        "first 3 uint A number. [high simulation]",
        "second 5 uint A number. [high simulation]",
        "third 2 uint A number. [high simulation]",
    ]
    first, second, third = (read(text)[0] for text in texts)
    apart = replace(second, count=3, pitch=9)
    there = replace(third, offset=100, pitch=2)
    placed = place([first, apart, there, first], 7)
    assert [(each.offset, each.pitch) for each in placed] == [(7, 3), (10, 9), (100, 2), (102, 3)]
    assert placed[1].end == 10 + 2 * 9 + 5
    (list_of,) = place([replace(second, count=4)])
    assert (list_of.offset, list_of.pitch, list_of.end) == (0, 5, 20)
    record = interleave(3, [first, second], 7)
    assert [(each.offset, each.pitch, each.count) for each in record] == [(7, 8, 3), (10, 8, 3)]
