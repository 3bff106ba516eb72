"""The program of a file as text that a person can read, and as JSON."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from darwinn_formats.darwinn import DarwinnFile, FieldOffset, Position, load
from darwinn_formats.errors import printable
from darwinn_formats.files import Source
from darwinn_sim.errors import IncompleteProgram
from darwinn_sim.isa import grading
from darwinn_sim.isa.codec import DecodeError, decode, unexplained_bits
from darwinn_sim.isa.listing import disassembler
from darwinn_sim.machine import layers
from darwinn_sim.machine.completeness import awaits_chunk

from darwinn_testbench.chip.inspection import check_number, chunks_of
from darwinn_testbench.report import Report, Row, Verdict
from darwinn_testbench.report.result import PYTHON_ONLY

_HALVES = {Position.LOWER_32BIT: "low", Position.UPPER_32BIT: "high"}


@dataclass(frozen=True, kw_only=True)
class ChunkRow(Row):
    """One instruction chunk. ``text`` is the listing, ``instructions`` the same as JSON values."""

    executable: int
    chunk: int
    bundles: int = 0
    unexplained_bits: int = 0
    instructions: list[dict[str, Any]] = field(default_factory=list)
    text: str = field(default="", repr=False, metadata=PYTHON_ONLY)


def disassemble(
    source: Source, *, executable: int | None = None, chunk: int | None = None
) -> Report[ChunkRow]:
    """Disassemble every chunk of ``source``, or those of one executable, or one chunk.

    A row is REFUSED if the chunk does not decode, or if set bits of it lie in no known field.

    Raises:
        FormatError, OSError: the file is not valid or cannot be read.
        InputError: there is no such executable or chunk.
    """
    file = load(source)
    chunks = tuple(chunks_of(file))
    streams = defaultdict(list)
    for number, _, stream in chunks:
        streams[number].append(stream)
    check_number("executable", executable, max(streams, default=-1) + 1, file.file)
    counts = [len(streams[k]) for k in streams if executable in (None, k)]
    check_number("chunk", chunk, max(counts, default=0), file.file)
    chosen = [each for each in chunks if executable in (None, each[0]) and chunk in (None, each[1])]
    layers_of = {k: _layer_starts(streams[k]) for k in dict.fromkeys(each[0] for each in chosen)}
    rows = tuple(
        _row(file, number, index, len(streams[number]), stream, layers_of[number])
        for number, index, stream in chosen
    )
    return Report(command="disasm", file=file.file, rows=rows)


def _layer_starts(chunks: Sequence[bytes]) -> dict[int, dict[int, int]]:
    """Numbers of layers, by chunk and by the bundle at which their first instruction begins.

    There are none where not every bundle is an instruction.
    """
    try:
        programs = [decode(chunk) for chunk in chunks]
    except DecodeError:
        return {}
    places = [(number, int(pc)) for number, program in enumerate(programs) for pc in program.pc]
    starts: dict[int, dict[int, int]] = {}
    for layer in layers.find(programs):
        chunk, pc = places[layer.first]
        starts.setdefault(chunk, {})[pc] = layer.number
    return starts


def _row(
    file: DarwinnFile,
    number: int,
    index: int,
    chunks: int,
    stream: bytes,
    layers_by_chunk: Mapping[int, Mapping[int, int]],
) -> ChunkRow:
    starts = layers_by_chunk.get(index, {})
    name = f"executable {number} chunk {index}"
    try:
        program = decode(stream)
    except DecodeError as error:
        refused = Verdict.REFUSED
        return ChunkRow(
            name=name, verdict=refused, message=str(error), executable=number, chunk=index
        )
    relocations = _relocations(file, number, index)
    unexplained = len(unexplained_bits(stream))
    instructions = disassembler.to_json(program, relocations)
    for entry in instructions:
        if entry["pc"] in starts:
            entry["layer"] = starts[entry["pc"]]
    message = f"{unexplained} set bits lie in no known field" if unexplained else ""
    if index == chunks - 1 and awaits_chunk([program]):
        message = message or str(IncompleteProgram(chunks))
    remarks = {pc: f"layer {layer}" for pc, layer in starts.items()}
    marks: dict[int, list[str]] = {}
    for mark in grading.marks(program):
        text = f"{mark.grade}: {mark.field} {mark.value}: {mark.rule}"
        marks.setdefault(mark.pc, []).append(text)
    for entry in instructions:
        if entry["pc"] in marks:
            entry["grades"] = marks[entry["pc"]]
    lines = disassembler.disassemble(program, relocations)
    return ChunkRow(
        name=name,
        verdict=Verdict.REFUSED if unexplained else Verdict.PASS,
        message=message,
        executable=number,
        chunk=index,
        bundles=program.bundles,
        unexplained_bits=unexplained,
        instructions=instructions,
        text="\n".join(disassembler.to_text(lines, remarks, marks)),
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
    name = f" {printable(meta.name)}" if meta.name else ""
    batch = f" batch {meta.batch}" if meta.batch else ""
    return f"{kind}{name}{batch}, {_HALVES[meta.position]} half of the address"
