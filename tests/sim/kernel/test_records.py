"""Records say what the decoded instructions say, by the names of the instruction table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from darwinn_sim.isa.codec import decode
from darwinn_sim.isa.fields import BUNDLE_BYTES, Instruction
from darwinn_sim.isa.table import BY_NAME, INSTRUCTIONS
from darwinn_sim.kernel import instructions
from darwinn_sim.kernel.records import SHARED, lower, source
from darwinn_sim.kernel.structure import Record

_OF = {name: shared for shared, names in SHARED.items() for name in names}
RECORDS: dict[str, type[Record]] = {
    entry.name: getattr(instructions, _OF.get(entry.name, entry.name))
    for entry in INSTRUCTIONS.values()
    if hasattr(instructions, _OF.get(entry.name, entry.name))
}
EVERY = pytest.mark.parametrize(
    "instruction", [BY_NAME[name] for name in RECORDS], ids=lambda entry: entry.name
)


@EVERY
def test_every_field_is_in_the_record_by_its_name(instruction: Instruction) -> None:
    rng = np.random.default_rng(instruction.opcode)
    stream = rng.integers(0, 256, (3, BUNDLE_BYTES * instruction.bundles), np.uint8)
    header = stream[:, :2].view("<u2")
    header[:] = header & 0xF03F | instruction.opcode << 6
    program = decode(stream.tobytes())
    columns = program.columns[instruction.opcode]
    records = lower(instruction, columns, program.pc, RECORDS[instruction.name].dtype)
    assert records["pc"].tolist() == program.pc.tolist()
    grouped = {name for walk in instruction.traversals for name in walk.fields}
    for producer in instruction.producers:
        for part in ("increment", "depth"):
            column = columns[f"{producer}_{part}"]
            assert records[producer][part].tolist() == column.tolist()
            grouped.add(f"{producer}_{part}")
    for field in instruction.fields:
        if field.name in grouped or field.name.startswith("watcher_"):
            continue
        member = records[field.shown_as or field.name]
        if field.kind == "float32":
            member = member.view(np.uint32)
        assert (member == columns[field.name]).all(), field.name
    for walk in instruction.traversals:
        assert records[walk.name]["base"].tolist() == columns[f"{walk.name}_base"].tolist()
    if instruction.watchers:
        valid = columns["watcher_valid"].reshape(3, -1)
        assert records["watchers"]["count"].tolist() == valid.sum(axis=1).tolist()


def test_records_of_several_instructions_have_what_any_has() -> None:
    names = set(instructions.Tensor.dtype.names or ())
    assert {"pc", "apply_bias", "nearest_pixel", "x_loop"} <= names


def test_the_classes_are_what_the_instruction_table_says() -> None:
    assert Path(instructions.__file__).read_text() == source()


def test_the_table_names_the_unit_of_a_tile() -> None:
    executed = [entry.tile_unit for entry in INSTRUCTIONS.values() if entry.tile_unit is not None]
    assert sorted(set(executed)) == list(range(10))
    assert all(
        (entry.opcode < 26) == (entry.tile_unit is not None)
        for entry in INSTRUCTIONS.values()
        if entry.opcode
    )
