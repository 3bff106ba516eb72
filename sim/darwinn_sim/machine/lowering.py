"""Lowering: from the decoded chunks of an executable to the tables that the kernels execute.

Every value that the instruction table refuses is refused here, by name, before anything runs, and
every assumption that the table makes is found here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from darwinn_formats.brief import brief
from darwinn_formats.darwinn import Executable
from darwinn_formats.errors import FormatError
from numpy.typing import NDArray

from darwinn_sim import chip
from darwinn_sim.chips import VARIABLE
from darwinn_sim.errors import UnsupportedInstruction
from darwinn_sim.isa import grading
from darwinn_sim.isa.codec import (
    Columns,
    DecodedChunk,
    DecodeError,
    decode,
    unexplained_bits,
)
from darwinn_sim.isa.fields import BUNDLE_BYTES, Grade, Instruction
from darwinn_sim.isa.grading import Assumption, ValueUse
from darwinn_sim.isa.table import BY_NAME, INSTRUCTIONS
from darwinn_sim.kernel import instructions, records
from darwinn_sim.kernel.structure import Record, Records, join, numbers
from darwinn_sim.units import (
    narrow_to_wide,
    scalar_core,
    tensor_plan,
    tensor_unit,
    wide_to_narrow,
)
from darwinn_sim.units.tables import Dispatch, Tables
from darwinn_sim.units.tensor_bounds import addresses_may_leave
from darwinn_sim.units.tensor_plan import PlanTooLong, TensorPlan
from darwinn_sim.units.tensor_records import Parameters

Table = NDArray[np.void]


@brief
class LoweredProgram(NamedTuple):
    """The tables, the chunks they come from, decoded and as bytes, the program counter at which
    each chunk begins, and at which it is started, the scalar bundles as they were before any patch,
    and what its execution assumes."""

    tables: Tables
    chunks: tuple[DecodedChunk, ...]
    streams: tuple[bytes, ...]
    starts: tuple[int, ...]
    entries: tuple[int, ...]
    unpatched: Records[instructions.Scalar]
    assumptions: tuple[Assumption, ...] = ()

    @property
    def sizes(self) -> tuple[int, ...]:
        """Bytes of each chunk."""
        return tuple(map(len, self.streams))

    def locate(self, pc: int) -> tuple[int, int]:
        """(chunk, bundle in it) of a program counter that runs through all chunks."""
        chunk = int(np.searchsorted(self.starts, pc, side="right")) - 1
        return chunk, pc - self.starts[chunk]


class _Kind(NamedTuple):
    """A table: its records, whose instructions they are, and what fills in what is not a field."""

    record: type[Record]
    instructions: tuple[str, ...]
    derive: Callable[[Table], None] | None = None


_EVERY_TILE = (1 << chip.TILES) - 1
_ABSENT = (1 << chip.OUTFEED_BIT) - 1 & ~_EVERY_TILE
"""The tiles that instructions can name and this chip lacks."""


def _derive_targets(out: Table) -> None:
    """Kernels have the outfeed behind the chip's tiles, however many it has."""
    targets = out["targets"]
    outfeed = targets >> chip.OUTFEED_BIT & 1
    out["targets"] = targets & _EVERY_TILE | outfeed << chip.TILES


_KINDS = {
    "scalar": _Kind(instructions.Scalar, ("Scalar",)),
    "branch": _Kind(instructions.Branch, ("Branch",)),
    "loop": _Kind(instructions.Loop, ("Loop",)),
    "scalar_fence": _Kind(instructions.ScalarFence, ("ScalarFence",)),
    "pop": _Kind(instructions.PopInput, ("PopInput",)),
    "infeed": _Kind(instructions.RingInfeed, ("RingInfeed",), _derive_targets),
    "outfeed": _Kind(instructions.RingOutfeed, ("RingOutfeed",)),
    "tensor": _Kind(Parameters, records.SHARED["Tensor"], tensor_unit.derive),
    "function_table": _Kind(instructions.CoefficientTable, ("CoefficientTable",)),
    "ring_producer": _Kind(instructions.RingProducer, ("RingProducer",), _derive_targets),
    "ring_consumer": _Kind(instructions.RingConsumer, records.SHARED["RingConsumer"]),
    "narrow_to_wide": _Kind(narrow_to_wide.Parameters, ("NarrowToWide",), narrow_to_wide.derive),
    "wide_to_narrow": _Kind(instructions.WideToNarrow, ("WideToNarrow",), wide_to_narrow.derive),
    "mesh": _Kind(instructions.Mesh, records.SHARED["Mesh"]),
    "tile_fence": _Kind(instructions.TileFence, ("TileFence",)),
}
"""What is in the tables of ``Tables``."""

TABLE_OF = {name: table for table, kind in _KINDS.items() for name in kind.instructions}
"""The table of ``Tables`` that an instruction is in, by its name."""


def lower(
    chunks: Sequence[bytes],
    *,
    dma_only: bool = False,
    assumptions: bool = True,
    addresses: bool = True,
) -> LoweredProgram:
    """Decode and lower the chunks of one executable.

    Args:
        chunks: instruction chunks, patched with addresses.
        dma_only: lower only what the scalar core executes itself; tile instructions are kept as
            instructions without effect.
        assumptions: take values that are executed by an assumed rule (``isa.grading``).
        addresses: have the tensor units' addresses in the plan, which times do without
            (``tensor_plan.plan``); it has them all the same where one may be beyond the memories.

    Raises:
        FormatError: there are no instructions.
        UnsupportedInstruction: an opcode, a set bit outside of all fields, or a value of a field,
            that is refused, or assumed without ``assumptions``; or tiles that the chip lacks.
        DecodeError: bytes that are no instruction stream.
    """
    if not any(chunks):
        raise FormatError("instruction_bitstreams", "the executable has no instructions")
    programs = tuple(_decode(number, chunk) for number, chunk in enumerate(chunks))
    starts = tuple(int(v) for v in np.cumsum([0, *(p.bundles for p in programs)])[:-1])
    for number, chunk in enumerate(chunks):
        _require_explained(number, chunk, programs[number])
    _require_tiles(programs)
    assumed = _check(programs, dma_only, assumptions)
    entries = tuple(
        start + _entry(program) for program, start in zip(programs, starts, strict=True)
    )
    tables = _tables(programs, starts, dma_only, addresses)
    unpatched = tables.scalar.copy()
    return LoweredProgram(tables, programs, tuple(chunks), starts, entries, unpatched, assumed)


def _require_tiles(programs: Sequence[DecodedChunk]) -> None:
    """Refuse sets of tiles with tiles that this chip lacks."""
    for number, program in enumerate(programs if _ABSENT else ()):
        for opcode, columns in program.columns.items():
            for field in INSTRUCTIONS[opcode].fields:
                rows = (
                    np.flatnonzero(columns[field.name] & _ABSENT) if field.kind == "tiles" else ()
                )
                for row in rows[:1]:
                    pc = int(program.pc[program.opcode == opcode][row])
                    value = int(columns[field.name][row])
                    reason = f"the chip has {chip.TILES} tiles"
                    raise UnsupportedInstruction(opcode, number, pc, field.name, value, reason)


def require_grid(executable: Executable) -> None:
    """Refuse the program of a chip with another grid: words would go to other neighbours.

    Raises:
        FormatError: it says that it is one.
    """
    named = executable.chip or ""
    if named != chip.PROGRAM_NAME and _GRID.fullmatch(named):
        raise FormatError(
            "Executable.chip",
            f"the program is for {named}, and this process simulates {chip.PROGRAM_NAME}, "
            f"{chip.GRID_ROWS} x {chip.GRID_COLUMNS} tiles: {VARIABLE} in its environment "
            "selects another chip",
        )


_GRID = re.compile(rf"{chip.BEAGLE}|\d+x\d+")


def lower_executable(
    executable: Executable, *, assumptions: bool = True, addresses: bool = True
) -> LoweredProgram:
    """The program of an executable; raises as :func:`lower` and :func:`require_grid`."""
    require_grid(executable)
    chunks = [bytes(part.bitstream) for part in executable.instruction_bitstreams]
    return lower(chunks, assumptions=assumptions, addresses=addresses)


def twin(program: LoweredProgram) -> LoweredProgram:
    """The same program, to be linked to other buffers at the same time."""
    tables = program.tables
    return program._replace(tables=tables._replace(scalar=tables.scalar.copy()))


def _require_explained(
    number: int, chunk: bytes, program: DecodedChunk, places: NDArray[np.intp] | None = None
) -> None:
    """Refuse bits that the instruction table does not know: they would be ignored.

    ``places`` are those of the bundles, if they are not a whole chunk.
    """
    unexplained = unexplained_bits(chunk, program)
    if not unexplained:
        return
    pc, bit = unexplained[0]
    opcode = int(program.opcode[np.searchsorted(program.pc, pc)])
    pc = pc if places is None else int(places[pc])
    raise UnsupportedInstruction(opcode, number, pc, f"bit {bit}", 1, "it lies in no known field")


def patch(program: LoweredProgram, number: int, chunk: bytes, *, assumptions: bool = True) -> None:
    """Take over what the linker wrote into chunk ``number``: immediates of scalar bundles.

    ``assumptions`` is as in :func:`lower`. What is patched is checked as what was lowered.

    Raises:
        UnsupportedInstruction: a bundle holds now what is refused.
        DecodeError: something else differs from the chunk that was lowered.
    """
    stream, start, tables = program.streams[number], program.starts[number], program.tables
    if len(chunk) != len(stream):
        held = program.chunks[number].bundles
        raise DecodeError(min(held, len(chunk) // BUNDLE_BYTES), _DIFFERS)
    _unpatch(program, number)
    original, fetched = _words(stream), _words(chunk)
    changed = np.flatnonzero((original[:, 0] != fetched[:, 0]) | (original[:, 1] != fetched[:, 1]))
    if not len(changed):
        return
    instructions = tables.at[start + changed]
    if (instructions < 0).any() or (tables.opcode[instructions] != _SCALAR).any():
        raise DecodeError(int(changed[0]), _DIFFERS)
    if not ((original[changed] ^ fetched[changed]) & ~_IMMEDIATE_BITS).any():
        # What an immediate is has no grade, and all its bits are known.
        tables.scalar[_IMMEDIATE.name][tables.row[instructions]] = _immediates(fetched[changed])
        return
    bundles = fetched[changed].tobytes()
    linked = decode(bundles)
    if list(linked.columns) != [_SCALAR]:
        raise DecodeError(int(changed[0]), _DIFFERS)
    _require_explained(number, bundles, linked, changed)
    _check_patched(number, linked, changed, assumptions)
    _lower_scalar(tables, linked.columns[_SCALAR], instructions)


def _words(bundles: bytes) -> NDArray[np.uint64]:
    """The two words of each bundle."""
    return np.frombuffer(bundles, "<u8").reshape(-1, BUNDLE_BYTES // 8)


def _immediates(bundles: NDArray[np.uint64]) -> NDArray[np.int64]:
    """The immediates of scalar bundles, given as words."""
    word, shift = divmod(_IMMEDIATE.offset, 64)
    value = bundles[:, word] >> np.uint64(shift) & np.uint64((1 << _IMMEDIATE.width) - 1)
    return value.astype(np.int64)


_IMMEDIATE = next(each for each in BY_NAME["Scalar"].fields if each.name == "alu_b")
_IMMEDIATE_BITS = _words(
    (((1 << _IMMEDIATE.width) - 1) << _IMMEDIATE.offset).to_bytes(BUNDLE_BYTES, "little")
)
"""The bits of a scalar bundle that hold the immediate."""
_NONE: Columns = {"opcode": np.zeros(0, np.int64)}
_DIFFERS = "the fetched chunk differs from the one that was loaded"


def _check_patched(
    number: int, linked: DecodedChunk, places: NDArray[np.intp], allowed: bool
) -> None:
    """Refuse values of patched bundles, which stand at ``places`` of their chunk."""
    for use in grading.uses([linked]):
        if use.grade is Grade.REFUSED or not allowed:
            raise _unsupported(replace(use, chunk=number, pc=int(places[use.pc])))


def _unpatch(program: LoweredProgram, number: int) -> None:
    """Undo the last patch: a field that is zero this time need not have been zero then."""
    counts = [len(chunk.columns.get(_SCALAR, _NONE)["opcode"]) for chunk in program.chunks]
    first = sum(counts[:number])
    rows = slice(first, first + counts[number])
    program.tables.scalar[rows] = program.unpatched[rows]


def _lower_scalar(tables: Tables, columns: Columns, instructions: NDArray[np.int64]) -> None:
    bundles = _lower(INSTRUCTIONS[_SCALAR], columns, tables.pc[instructions])
    tables.scalar[tables.row[instructions]] = bundles


_SCALAR = BY_NAME["Scalar"].opcode
_BRANCH = BY_NAME["Branch"].opcode
_LOAD = BY_NAME["LoadProgram"].opcode
_EXECUTE = BY_NAME["Execute"].opcode


def _framing_field(program: DecodedChunk, opcode: int, field: str) -> int:
    """A field of the bundle that loads, or starts, the program of a chunk; 0 without one."""
    columns = program.columns.get(opcode)
    return 0 if columns is None else int(columns[field][0])


def _entry(program: DecodedChunk) -> int:
    """Bundle of a chunk at which its program starts; behind the last if it is none of them."""
    start = _framing_field(program, _EXECUTE, "start_pc")
    entry = 1 + start - _framing_field(program, _LOAD, "start_pc")
    return entry if 0 < entry < program.bundles else program.bundles


def _branch_offsets(
    program: DecodedChunk, columns: Columns, pcs: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Bundles from each branch to its target, whether that is given so or as an address."""
    address = 1 - _framing_field(program, _LOAD, "start_pc") - pcs
    return columns["offset"] + np.where(columns["relative"], 0, address)


def _plan(
    tensor: Table, programs: Sequence[DecodedChunk], starts: Sequence[int], addresses: bool
) -> TensorPlan:
    try:
        return tensor_plan.plan(
            tensor, addresses=addresses or bool(addresses_may_leave(tensor).any())
        )
    except PlanTooLong as error:
        instruction = tensor[error.row]
        chunk = int(np.searchsorted(starts, instruction["pc"], side="right")) - 1
        pc = int(instruction["pc"]) - starts[chunk]
        opcode = int(instruction["opcode"])
        limit = int(instruction["main"]["limit"].max())
        raise UnsupportedInstruction(opcode, chunk, pc, "main_limit", limit) from error


def _decode(number: int, chunk: bytes) -> DecodedChunk:
    try:
        return decode(chunk)
    except DecodeError as error:
        opcode = error.opcode
        if opcode is None:
            raise
        raise UnsupportedInstruction(opcode, number, error.bundle, "opcode", opcode) from error


_SCALAR_SIDE = ("Scalar", "Halt", "Branch", "Loop", "ScalarFence", "LoadProgram", "Execute", "NoOp")


def _check(
    programs: Sequence[DecodedChunk], dma_only: bool, allowed: bool
) -> tuple[Assumption, ...]:
    """The assumptions of a program; what no rule covers is refused (see ``isa.grades``)."""
    opcodes = [BY_NAME[name].opcode for name in _SCALAR_SIDE] if dma_only else None
    found = grading.uses(programs, opcodes)
    for use in found:
        if use.grade is Grade.REFUSED or not allowed:
            raise _unsupported(use)
    return grading.assumptions(found)


def _unsupported(use: ValueUse) -> UnsupportedInstruction:
    assumed = use.grade is Grade.ASSUMED
    return UnsupportedInstruction(
        use.opcode, use.chunk, use.pc, use.field, use.value, use.rule, assumed=assumed
    )


def _lower(instruction: Instruction, columns: Columns, pc: NDArray[np.int64]) -> Table:
    """Decoded instructions of one opcode as records of their table."""
    table = TABLE_OF[instruction.name]
    out = records.lower(instruction, columns, pc, _KINDS[table].record.dtype)
    derive = _KINDS[table].derive
    if derive is not None:
        derive(out)
    return out


def _joined(parts: Sequence[Table]) -> Table:
    """The parts one after another; a single one as it is: records are large."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _tables(
    programs: Sequence[DecodedChunk], starts: Sequence[int], dma_only: bool, addresses: bool
) -> Tables:
    parts: dict[str, list[Table]] = {}
    counts: dict[str, int] = {}
    at: list[NDArray[np.int64]] = []
    opcodes: list[NDArray[np.int64]] = []
    rows: list[NDArray[np.int64]] = []
    pcs: list[NDArray[np.int64]] = []
    dispatch: list[Records[Dispatch]] = []
    instructions = 0
    for program, start in zip(programs, starts, strict=True):
        row = np.zeros(len(program), np.int64)
        tiles = Dispatch.zeros(len(program))
        for opcode, columns in program.columns.items():
            instruction = INSTRUCTIONS[opcode]
            members = np.flatnonzero(program.opcode == opcode)
            if opcode != _SCALAR:
                tiles[members] = scalar_core.lower_dispatch(columns, len(members))
            table = TABLE_OF.get(instruction.name)
            if table is None or (dma_only and instruction.tile_unit is not None):
                continue
            filled = _lower(instruction, columns, program.pc[members] + start)
            if opcode == _BRANCH:
                filled["offset"] = _branch_offsets(program, columns, program.pc[members])
            row[members] = counts.get(table, 0) + np.arange(len(members))
            counts[table] = counts.get(table, 0) + len(members)
            parts.setdefault(table, []).append(filled)
        place = np.full(program.bundles, -1, np.int64)
        place[program.pc] = instructions + np.arange(len(program))
        instructions += len(program)
        at.append(place)
        opcodes.append(program.opcode)
        rows.append(row)
        pcs.append(program.pc + start)
        dispatch.append(tiles)
    units = np.full(max(INSTRUCTIONS) + 1, -1, np.int64)
    for opcode, instruction in INSTRUCTIONS.items():
        if instruction.tile_unit is not None:
            units[opcode] = instruction.tile_unit
    opcode_column = np.concatenate(opcodes)
    tables: dict[str, Any] = {
        table: _joined(parts[table]) if table in parts else np.zeros(1, kind.record.dtype)
        for table, kind in _KINDS.items()
    }
    return Tables(
        at=numbers(np.concatenate(at)),
        opcode=numbers(opcode_column),
        row=numbers(np.concatenate(rows)),
        unit=numbers(units[opcode_column]),
        pc=numbers(np.concatenate(pcs)),
        dispatch=join(dispatch),
        tensor_plan=_plan(tables["tensor"], programs, starts, addresses),
        **tables,
    )
