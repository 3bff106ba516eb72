"""The exported JSON says all that a decoder needs, and all that docs/isa.md says."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from typing import Any

import numpy as np
from darwinn_sim.isa.codec import decode
from darwinn_sim.isa.codes import CODES
from darwinn_sim.isa.export import table
from darwinn_sim.isa.fields import BUNDLE_BYTES, Grade
from darwinn_sim.isa.table import INSTRUCTIONS
from hypothesis import given
from hypothesis import strategies as st

Values = dict[str, list[int]]


@cache
def exported() -> Any:
    """What another tool reads."""
    return json.loads(json.dumps(table()))


def decoded_from_json(stream: bytes) -> list[tuple[str, Values]]:
    """A decoder that knows the JSON and nothing else."""
    by_opcode = {entry["opcode"]: entry for entry in exported()["instructions"]}
    header = next(iter(by_opcode.values()))["fields"]
    opcode = next(field for field in header if field["name"] == "opcode")
    found = []
    while stream:
        bits = int.from_bytes(stream, "little")
        instruction = by_opcode[_cut(bits, opcode)[0]]
        values = {field["name"]: _cut(bits, field) for field in instruction["fields"]}
        found.append((instruction["name"], values))
        stream = stream[exported()["bundle_bytes"] * instruction["bundles"] :]
    return found


def _cut(bits: int, field: dict[str, Any]) -> list[int]:
    width = field["width"]
    values = [
        bits >> field["offset"] + k * field["pitch"] & (1 << width) - 1
        for k in range(field["count"])
    ]
    sign = 1 << width - 1 if field["signed"] else 0
    return [(value ^ sign) - sign for value in values]


@st.composite
def streams(draw: st.DrawFn) -> bytes:
    """Instructions with random bits behind the opcode."""
    stream = b""
    for instruction in draw(st.lists(st.sampled_from(list(INSTRUCTIONS.values())), max_size=4)):
        size = BUNDLE_BYTES * instruction.bundles
        raw = bytearray(draw(st.binary(min_size=size, max_size=size)))
        raw[0] = raw[0] & 0x3F | instruction.opcode << 6 & 0xC0
        raw[1] = raw[1] & 0xF0 | instruction.opcode >> 2
        stream += raw
    return stream


@given(streams())
def test_the_json_alone_decodes_a_stream(stream: bytes) -> None:
    program = decode(stream)
    operations = [program[index] for index in range(len(program))]
    assert decoded_from_json(stream) == [
        (
            operation.instruction.name,
            {name: np.atleast_1d(value).tolist() for name, value in operation.values.items()},
        )
        for operation in operations
    ]


def test_the_command_writes_the_table() -> None:
    command = [sys.executable, "-m", "darwinn_sim.isa.export"]
    written = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    assert json.loads(written) == exported()
    assert written.endswith("}\n")


def test_codes_are_those_of_the_code() -> None:
    assert set(exported()["codes"]) == set(CODES)
    for name, entry in exported()["codes"].items():
        values = [(each["value"], each["name"], each["meaning"]) for each in entry["values"]]
        assert values == [(int(code), code.label, code.meaning) for code in CODES[name]]
        assert entry["meaning"] and entry["meaning"] == entry["meaning"].strip()


def test_a_field_names_its_codes() -> None:
    named = set()
    for instruction in exported()["instructions"]:
        for field in instruction["fields"]:
            codes = INSTRUCTIONS[instruction["opcode"]].field(field["name"]).codes
            assert field["codes"] == (None if codes is None else codes.__name__)
            named.add(field["codes"])
    assert named >= {None, "AluOperation", "StoreOperation"}


def test_names_lead_somewhere() -> None:
    codes = exported()["codes"]
    for instruction in exported()["instructions"]:
        fields = {field["name"]: field for field in instruction["fields"]}
        assert all(field["codes"] in {None, *codes} for field in fields.values())
        assert all(set(walk["fields"]) <= set(fields) for walk in instruction["traversals"])
        for signal in instruction["signals"]:
            flags = {entry["value"] for entry in codes[signal["codes"]]["values"]}
            assert signal["flag"] in flags
            assert signal["producer"] in instruction["producers"]
            assert signal["field"] in {"", *fields}


def test_the_grades_are_those_of_the_table() -> None:
    for instruction in exported()["instructions"]:
        for field in instruction["fields"]:
            expected = INSTRUCTIONS[instruction["opcode"]].field(field["name"]).grades
            assert len(field["grades"]) == len(expected)
            for found, entry in zip(field["grades"], expected, strict=True):
                assert (Grade(found["grade"]), found["reason"]) == (entry.grade, entry.reason)
                assert (_each(found["values"]), found["mask"]) == (list(entry.values), entry.mask)
                given = {name: _each(values) for name, values in found["given"].items()}
                assert given == {name: list(values) for name, values in entry.given}


def _each(spans: list[list[int]]) -> list[int]:
    return [value for first, last in spans for value in range(first, last + 1)]
