"""Lowering: from the decoded chunks of an executable to the tables that the kernels execute.

Every value that the instruction table refuses is refused here, by name, before anything runs, and
every assumption that the table makes is found here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from darwinn_sim.errors import UnsupportedInstruction
from darwinn_sim.isa import grading
from darwinn_sim.isa.codec import Columns, DecodeError, Program, decode, encode, unexplained_bits
from darwinn_sim.isa.fields import BUNDLE_BYTES, Grade
from darwinn_sim.isa.grading import Assumption
from darwinn_sim.isa.table import BY_NAME, INSTRUCTIONS
from darwinn_sim.kernel import state
from darwinn_sim.units import (
    input_pop,
    mesh_bus,
    narrow_to_wide,
    ring_bus,
    scalar_core,
    tensor_plan,
    tensor_unit,
    tile_fence,
    wide_to_narrow,
)
from darwinn_sim.units.tables import Table, Tables
from darwinn_sim.units.tensor_plan import PlanTooLong, TensorPlan


class LoweredProgram(NamedTuple):
    """The tables, the chunks they come from, decoded and as bytes, the program counter at which
    each chunk begins, and at which it is started, and what its execution assumes."""

    tables: Tables
    chunks: tuple[Program, ...]
    streams: tuple[bytes, ...]
    starts: tuple[int, ...]
    entries: tuple[int, ...]
    assumptions: tuple[Assumption, ...] = ()

    def locate(self, pc: int) -> tuple[int, int]:
        """(chunk, bundle in it) of a program counter that runs through all chunks."""
        chunk = int(np.searchsorted(self.starts, pc, side="right")) - 1
        return chunk, pc - self.starts[chunk]


_Lower = Callable[[Columns, int], Table]

_TENSOR = tuple(BY_NAME[n].opcode for n in ("TensorMac", "TensorMax", "TensorSum"))
_INTERPOLATE = BY_NAME["TensorInterpolate"].opcode
_MESH = tuple(BY_NAME[n].opcode for n in ("MeshSouth", "MeshWest", "MeshNorth", "MeshEast"))


def _tensor(opcode: int) -> _Lower:
    return lambda columns, rows: tensor_unit.lower(opcode, columns, rows)


def _mesh(opcode: int) -> _Lower:
    return lambda columns, rows: mesh_bus.lower(opcode, columns, rows)


def _consumer(channel: int) -> _Lower:
    return lambda columns, rows: ring_bus.lower_consumer(channel, columns, rows)


_LOWERING: dict[str, tuple[str, np.dtype[np.void], _Lower]] = {
    "Scalar": ("scalar", scalar_core.BUNDLE, scalar_core.lower_bundle),
    "Branch": ("branch", scalar_core.BRANCH, scalar_core.lower_branch),
    "Loop": ("loop", scalar_core.LOOP, scalar_core.lower_loop),
    "ScalarFence": ("scalar_fence", scalar_core.FENCE, scalar_core.lower_fence),
    "PopInput": ("pop", input_pop.PARAMETERS, input_pop.lower),
    "RingInfeed": ("infeed", ring_bus.INFEED_PARAMETERS, ring_bus.lower_infeed),
    "RingOutfeed": ("outfeed", ring_bus.OUTFEED_PARAMETERS, ring_bus.lower_outfeed),
    "TensorMac": ("tensor", tensor_unit.PARAMETERS, _tensor(tensor_unit.MAC)),
    "TensorMax": ("tensor", tensor_unit.PARAMETERS, _tensor(tensor_unit.MAXIMUM)),
    "TensorSum": ("tensor", tensor_unit.PARAMETERS, _tensor(tensor_unit.SUM)),
    "TensorInterpolate": ("tensor", tensor_unit.PARAMETERS, _tensor(tensor_unit.INTERPOLATE)),
    "CoefficientTable": ("function_table", tensor_unit.TABLE, tensor_unit.lower_table),
    "RingProducer": ("ring_producer", ring_bus.PRODUCER_PARAMETERS, ring_bus.lower_producer),
    "RingConsumerA": ("ring_consumer", ring_bus.CONSUMER_PARAMETERS, _consumer(0)),
    "RingConsumerB": ("ring_consumer", ring_bus.CONSUMER_PARAMETERS, _consumer(1)),
    "NarrowToWide": ("narrow_to_wide", narrow_to_wide.PARAMETERS, narrow_to_wide.lower),
    "WideToNarrow": ("wide_to_narrow", wide_to_narrow.PARAMETERS, wide_to_narrow.lower),
    "MeshSouth": ("mesh", mesh_bus.PARAMETERS, _mesh(_MESH[0])),
    "MeshWest": ("mesh", mesh_bus.PARAMETERS, _mesh(_MESH[1])),
    "MeshNorth": ("mesh", mesh_bus.PARAMETERS, _mesh(_MESH[2])),
    "MeshEast": ("mesh", mesh_bus.PARAMETERS, _mesh(_MESH[3])),
    "TileFence": ("tile_fence", tile_fence.PARAMETERS, tile_fence.lower),
}
"""Instruction name: table of ``Tables``, its record type, and what fills it."""

_UNIT_OF = {
    "TensorMac": state.TENSOR_UNIT,
    "TensorMax": state.TENSOR_UNIT,
    "TensorSum": state.TENSOR_UNIT,
    "TensorInterpolate": state.TENSOR_UNIT,
    "CoefficientTable": state.TENSOR_UNIT,
    "RingProducer": state.RING_PRODUCER,
    "RingConsumerA": state.RING_CONSUMER_A,
    "RingConsumerB": state.RING_CONSUMER_B,
    "NarrowToWide": state.NARROW_TO_WIDE,
    "WideToNarrow": state.WIDE_TO_NARROW,
    "MeshSouth": state.MESH_SOUTH,
    "MeshWest": state.MESH_WEST,
    "MeshNorth": state.MESH_NORTH,
    "MeshEast": state.MESH_EAST,
}
"""Tile unit that executes an instruction."""


def lower(
    chunks: Sequence[bytes], *, dma_only: bool = False, assumptions: bool = True
) -> LoweredProgram:
    """Decode and lower the chunks of one executable.

    Args:
        chunks: instruction chunks, patched with addresses.
        dma_only: lower only what the scalar core executes itself; tile instructions are kept as
            instructions without effect.
        assumptions: take values that are executed by an assumed rule (``isa.grading``).

    Raises:
        UnsupportedInstruction: an opcode, a set bit outside of all fields, or a value of a field,
            that is refused, or assumed without ``assumptions``.
        DecodeError: bytes that are no instruction stream.
    """
    programs = tuple(_decode(number, chunk) for number, chunk in enumerate(chunks))
    starts = tuple(int(v) for v in np.cumsum([0, *(p.bundles for p in programs)])[:-1])
    for number, chunk in enumerate(chunks):
        _require_explained(number, chunk, programs[number])
    assumed = _check(programs, dma_only, assumptions)
    entries = tuple(
        start + _entry(program) for program, start in zip(programs, starts, strict=True)
    )
    tables = _tables(programs, starts, dma_only)
    return LoweredProgram(tables, programs, tuple(chunks), starts, entries, assumed)


def _require_explained(number: int, chunk: bytes, program: Program) -> None:
    """Refuse bits that the instruction table does not know: they would be ignored."""
    if encode(program) == chunk:
        return
    pc, bit = unexplained_bits(chunk)[0]
    opcode = int(program.opcode[np.searchsorted(program.pc, pc)])
    raise UnsupportedInstruction(opcode, number, pc, f"bit {bit}", 1, "it lies in no known field")


def patch(program: LoweredProgram, number: int, chunk: bytes) -> None:
    """Take over what the linker wrote into chunk ``number``: immediates of scalar bundles.

    Raises ``DecodeError`` if anything else differs from the chunk that was lowered.
    """
    decoded = program.chunks[number]
    original = np.frombuffer(program.streams[number], np.uint8).reshape(-1, BUNDLE_BYTES)
    fetched = np.frombuffer(chunk, np.uint8).reshape(-1, BUNDLE_BYTES)
    changed = np.flatnonzero((original != fetched).any(axis=1))
    start = program.starts[number]
    _unpatch(program, decoded, start)
    if not len(changed):
        return
    instructions = program.tables.at[start + changed]
    linked = decode(fetched[changed].tobytes())
    if list(linked.columns) != [_SCALAR] or (program.tables.opcode[instructions] != _SCALAR).any():
        raise DecodeError(int(changed[0]), "the fetched chunk differs from the one that was loaded")
    rows = program.tables.row[instructions]
    program.tables.scalar[rows] = scalar_core.lower_bundle(linked.columns[_SCALAR], len(rows))


def _unpatch(program: LoweredProgram, decoded: Program, start: int) -> None:
    """Undo the last patch: a field that is zero this time need not have been zero then."""
    pcs = decoded.pc[decoded.opcode == _SCALAR]
    if len(pcs):
        rows = program.tables.row[program.tables.at[start + pcs]]
        columns = decoded.columns[_SCALAR]
        program.tables.scalar[rows] = scalar_core.lower_bundle(columns, len(rows))


_SCALAR = BY_NAME["Scalar"].opcode
_BRANCH = BY_NAME["Branch"].opcode
_LOAD = BY_NAME["LoadProgram"].opcode
_EXECUTE = BY_NAME["Execute"].opcode


def _framing_field(program: Program, opcode: int, field: str) -> int:
    """A field of the bundle that loads, or starts, the program of a chunk; 0 without one."""
    columns = program.columns.get(opcode)
    return 0 if columns is None else int(columns[field][0])


def _entry(program: Program) -> int:
    """Bundle of a chunk at which its program starts; behind the last if it is none of them."""
    start = _framing_field(program, _EXECUTE, "start_pc")
    entry = 1 + start - _framing_field(program, _LOAD, "start_pc")
    return entry if 0 < entry < program.bundles else program.bundles


def _branch_offsets(
    program: Program, columns: Columns, pcs: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Bundles from each branch to its target, whether that is given so or as an address."""
    address = 1 - _framing_field(program, _LOAD, "start_pc") - pcs
    return columns["offset"] + np.where(columns["relative"], 0, address)


def _plan(tensor: Table, programs: Sequence[Program], starts: Sequence[int]) -> TensorPlan:
    try:
        return tensor_plan.plan(tensor)
    except PlanTooLong as error:
        instruction = tensor[error.row]
        chunk = int(np.searchsorted(starts, instruction["pc"], side="right")) - 1
        pc = int(instruction["pc"]) - starts[chunk]
        opcode = int(instruction["operation"])
        limit = int(instruction["main"]["limit"].max())
        raise UnsupportedInstruction(opcode, chunk, pc, "main_limit", limit) from error


def _decode(number: int, chunk: bytes) -> Program:
    try:
        return decode(chunk)
    except DecodeError as error:
        opcode = error.opcode
        if opcode is None:
            raise
        raise UnsupportedInstruction(opcode, number, error.bundle, "opcode", opcode) from error


_SCALAR_SIDE = ("Scalar", "Halt", "Branch", "Loop", "ScalarFence", "LoadProgram", "Execute", "NoOp")


def _check(programs: Sequence[Program], dma_only: bool, allowed: bool) -> tuple[Assumption, ...]:
    """The assumptions of a program; what no rule covers is refused (see ``isa.grades``)."""
    opcodes = [BY_NAME[name].opcode for name in _SCALAR_SIDE] if dma_only else None
    found = grading.uses(programs, opcodes)
    for use in found:
        if use.grade is Grade.REFUSED or not allowed:
            assumed = use.grade is Grade.ASSUMED
            raise UnsupportedInstruction(
                use.opcode, use.chunk, use.pc, use.field, use.value, use.rule, assumed=assumed
            )
    return grading.assumptions(found)


def _tables(programs: Sequence[Program], starts: Sequence[int], dma_only: bool) -> Tables:
    parts: dict[str, list[Table]] = {}
    counts: dict[str, int] = {}
    dtypes = {table: dtype for table, dtype, _ in _LOWERING.values()}
    at: list[NDArray[np.int64]] = []
    opcodes: list[NDArray[np.int64]] = []
    rows: list[NDArray[np.int64]] = []
    pcs: list[NDArray[np.int64]] = []
    dispatch: list[Table] = []
    instructions = 0
    for program, start in zip(programs, starts, strict=True):
        row = np.zeros(len(program), np.int64)
        tiles = np.zeros(len(program), scalar_core.DISPATCH)
        for opcode, columns in program.columns.items():
            instruction = INSTRUCTIONS[opcode]
            members = np.flatnonzero(program.opcode == opcode)
            if opcode != _SCALAR:
                tiles[members] = scalar_core.lower_dispatch(columns, len(members))
            if instruction.name not in _LOWERING or (dma_only and instruction.name in _UNIT_OF):
                continue
            table, _, fill = _LOWERING[instruction.name]
            filled = fill(columns, len(members))
            if opcode == _BRANCH:
                filled["offset"] = _branch_offsets(program, columns, program.pc[members])
            if "pc" in (filled.dtype.names or ()):
                filled["pc"] = program.pc[members] + start
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
    units = np.full(64, -1, np.int64)
    for name, unit in _UNIT_OF.items():
        units[BY_NAME[name].opcode] = unit
    opcode_column = np.concatenate(opcodes)
    tables = {
        table: np.concatenate(parts[table]) if table in parts else np.zeros(1, dtype)
        for table, dtype in dtypes.items()
    }
    return Tables(
        at=np.concatenate(at),
        opcode=opcode_column,
        row=np.concatenate(rows),
        unit=units[opcode_column],
        pc=np.concatenate(pcs),
        dispatch=np.concatenate(dispatch),
        tensor_plan=_plan(tables["tensor"], programs, starts),
        **tables,
    )
