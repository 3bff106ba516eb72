"""The program of a file as text that a person can read, and as JSON."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from darwinn_formats.darwinn import DarwinnFile, FieldOffset, Position, load
from darwinn_sim.isa import disassembler
from darwinn_sim.isa.codec import DecodeError, decode, unexplained_bits

from darwinn_testbench.inspection import check_number, chunks_of
from darwinn_testbench.report import Report, Row, Verdict
from darwinn_testbench.report.result import PYTHON_ONLY

_HALVES = {Position.LOWER_32BIT: "low", Position.UPPER_32BIT: "high"}


@dataclass(frozen=True, kw_only=True)
class ChunkRow(Row):
    """One instruction chunk. ``text`` is the listing, ``instructions`` the same as JSON values."""

    executable: int
    chunk: int
    bundles: int
    unexplained_bits: int
    instructions: list[dict[str, Any]]
    text: str = field(default="", repr=False, metadata=PYTHON_ONLY)


def disassemble(
    source: str | os.PathLike[str] | bytes,
    *,
    executable: int | None = None,
    chunk: int | None = None,
) -> Report[ChunkRow]:
    """Disassemble every chunk of ``source``, or those of one executable, or one chunk.

    A row is REFUSED if the chunk does not decode, or if set bits of it lie in no known field.

    Raises:
        FormatError, OSError: the file is not valid or cannot be read.
        InputError: there is no such executable or chunk.
    """
    file = load(source)
    chunks = tuple(chunks_of(file))
    executables = [number for number, _, _ in chunks]
    check_number("executable", executable, max(executables, default=-1) + 1, file.file)
    counts = [executables.count(k) for k in dict.fromkeys(executables) if executable in (None, k)]
    check_number("chunk", chunk, max(counts, default=0), file.file)
    rows = tuple(
        _row(file, number, index, stream)
        for number, index, stream in chunks
        if executable in (None, number) and chunk in (None, index)
    )
    return Report(command="disasm", file=file.file, rows=rows)


def _row(file: DarwinnFile, number: int, index: int, stream: bytes) -> ChunkRow:
    name = f"executable {number} chunk {index}"
    try:
        program = decode(stream)
    except DecodeError as error:
        return ChunkRow(
            name=name,
            verdict=Verdict.REFUSED,
            message=str(error),
            executable=number,
            chunk=index,
            bundles=0,
            unexplained_bits=0,
            instructions=[],
        )
    relocations = _relocations(file, number, index)
    unexplained = len(unexplained_bits(stream))
    return ChunkRow(
        name=name,
        verdict=Verdict.REFUSED if unexplained else Verdict.PASS,
        message=f"{unexplained} set bits lie in no known field" if unexplained else "",
        executable=number,
        chunk=index,
        bundles=program.bundles,
        unexplained_bits=unexplained,
        instructions=disassembler.to_json(program, relocations),
        text="\n".join(disassembler.to_text(disassembler.disassemble(program, relocations))),
    )


def _relocations(file: DarwinnFile, number: int, index: int) -> Mapping[int, str]:
    """What the linker patches in a chunk, by bit offset."""
    if file.stream is not None:
        return {}
    bitstream = file.executables[number].instruction_bitstreams[index]
    return {item.offset_bit: _describe(item) for item in bitstream.field_offsets}


def _describe(item: FieldOffset) -> str:
    meta = item.meta
    kind = meta.desc.name.removeprefix("BASE_ADDRESS_").lower().replace("_", " ")
    name = f" {meta.name}" if meta.name else ""
    batch = f" batch {meta.batch}" if meta.batch else ""
    return f"{kind}{name}{batch}, {_HALVES[meta.position]} half of the address"
