"""Every instruction stream of the corpus: decoded without a rest, encoded to the same bytes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from darwinn_formats.darwinn import load
from darwinn_sim.isa.codec import DecodedChunk, decode, encode, explained, unexplained_bits
from darwinn_sim.isa.fields import Confidence
from darwinn_sim.isa.listing.disassembler import disassemble, relocation_names, to_text
from darwinn_sim.isa.strides import is_normalised, steps
from darwinn_sim.isa.table import BY_NAME, INSTRUCTIONS


@dataclass(frozen=True)
class Chunk:
    name: str
    stream: bytes
    program: DecodedChunk
    relocations: dict[int, str]


@pytest.fixture(scope="module")
def chunks(corpus: Path) -> list[Chunk]:
    found = []
    for path in sorted([*corpus.glob("darwinn/*.tflite"), *corpus.glob("coral/*.coral")]):
        file = load(path)
        if file.stream is not None:
            found.append(Chunk(path.name, file.stream, decode(file.stream), {}))
        for executable in file.executables:
            for bitstream in executable.instruction_bitstreams:
                stream = bytes(bitstream.bitstream)
                names = relocation_names(bitstream.field_offsets)
                found.append(Chunk(path.name, stream, decode(stream), names))
    return found


def test_the_corpus_has_its_chunks(chunks: list[Chunk]) -> None:
    assert len(chunks) == 50
    assert sum(chunk.program.bundles for chunk in chunks) == 151_335


def test_no_bit_lies_outside_a_field_and_encoding_restores_the_bytes(chunks: list[Chunk]) -> None:
    for chunk in chunks:
        assert unexplained_bits(chunk.stream) == [], chunk.name
        assert encode(chunk.program) == chunk.stream, chunk.name


def test_no_field_of_unknown_meaning_is_set(chunks: list[Chunk]) -> None:
    """A field that explains nothing must not hide what is not understood."""
    bits: Counter[Confidence] = Counter()
    for chunk in chunks:
        for entry in explained(chunk.program):
            bits[entry.confidence] += entry.bits
    assert bits["open"] == 0
    assert bits["high"] / bits.total() > 0.99


def test_strides_are_normalised(chunks: list[Chunk]) -> None:
    seen = 0
    for chunk in chunks:
        for code, columns in chunk.program.columns.items():
            for walk in INSTRUCTIONS[code].traversals:
                parts = [columns[f"{walk.name}_{part}"] for part in ("stride", "limit", "mask")]
                assert is_normalised(*parts).all(), (chunk.name, code, walk.name)
                seen += len(parts[0])
    assert seen == 39_843


def test_the_alternate_reset_is_the_travel_that_the_shorter_loop_lacks(
    chunks: list[Chunk],
) -> None:
    seen = 0
    for chunk in chunks:
        for code, columns in chunk.program.columns.items():
            for walk in INSTRUCTIONS[code].traversals:
                stride, limit, mask, loop, short, reset = (
                    columns[f"{walk.name}_{part}"]
                    for part in (
                        "stride",
                        "limit",
                        "mask",
                        "alternate_loop",
                        "alternate_limit",
                        "alternate_reset",
                    )
                )
                transposing = columns.get("transpose", np.zeros_like(loop))
                inner = transposing if walk.name == "narrow_read" else np.zeros_like(loop)
                rows = np.arange(len(loop))
                step = steps(stride, limit, mask)[rows, inner]
                lacking = step * (limit[rows, inner] - short)
                modulus = 1 << INSTRUCTIONS[code].field(f"{walk.name}_alternate_reset").width
                used = loop != 0
                assert ((lacking - reset)[used] % modulus == 0).all(), (chunk.name, walk.name)
                seen += int(used.sum())
    assert seen > 1000


def test_flags_that_are_off_leave_their_watchers_empty(chunks: list[Chunk]) -> None:
    for chunk in chunks:
        for code, columns in chunk.program.columns.items():
            if INSTRUCTIONS[code].watchers:
                off = columns["watcher_valid"] == 0
                for part in ("flag", "expected", "stride"):
                    assert (columns[f"watcher_{part}"][off] == 0).all(), (chunk.name, code, part)


def test_a_chunk_is_framed_as_the_builder_frames_it(chunks: list[Chunk]) -> None:
    for chunk in chunks:
        program = chunk.program
        assert program[0].instruction is BY_NAME["LoadProgram"]
        assert program[0]["bundles"] == program.bundles - 2
        assert program[len(program) - 1].instruction is BY_NAME["Execute"]
        assert program[len(program) - 6].instruction is BY_NAME["Halt"]


def test_every_relocation_is_listed_at_a_scalar_move(chunks: list[Chunk]) -> None:
    listed = 0
    for chunk in chunks:
        lines = {line.pc: line for line in disassemble(chunk.program, chunk.relocations)}
        for offset, name in chunk.relocations.items():
            assert f"= <{name}>" in lines[offset // 128].operands
            listed += 1
    assert listed > 0


def test_every_instruction_has_a_line(chunks: list[Chunk]) -> None:
    for chunk in chunks:
        lines = list(disassemble(chunk.program, chunk.relocations))
        assert [line.pc for line in lines] == chunk.program.pc.tolist()
        assert all("?" not in text for text in to_text(lines)), "an unnamed code"
