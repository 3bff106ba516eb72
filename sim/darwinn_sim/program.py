"""Lowering: from the decoded chunks of an executable to the tables that the kernels execute.

Every value that the model does not implement is refused here, by name, before anything runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from darwinn_sim import (
    chip,
    input_pop,
    mesh_bus,
    narrow_to_wide,
    ring_bus,
    scalar_core,
    state,
    tensor_plan,
    tensor_unit,
    tile_fence,
    wide_to_narrow,
)
from darwinn_sim.errors import IncompleteProgram, UnsupportedInstruction
from darwinn_sim.isa.codec import Columns, DecodeError, Program, decode, encode
from darwinn_sim.isa.fields import BUNDLE_BYTES, Instruction
from darwinn_sim.isa.table import BY_NAME, INSTRUCTIONS
from darwinn_sim.tensor_plan import PlanTooLong, TensorPlan

Table = NDArray[np.void]


class Tables(NamedTuple):
    """A program as the kernels see it: all chunks of an executable, one after another.

    ``at`` maps a program counter (bundles through all chunks) to an instruction, -1 inside one.
    ``opcode``, ``row`` (in the table of its kind), ``unit`` (of a tile; -1: none), ``pc`` and
    ``tiles`` are indexed by instruction.
    """

    at: NDArray[np.int64]
    opcode: NDArray[np.int64]
    row: NDArray[np.int64]
    unit: NDArray[np.int64]
    pc: NDArray[np.int64]
    scalar: Table
    branch: Table
    loop: Table
    scalar_fence: Table
    dispatch: Table
    pop: Table
    infeed: Table
    outfeed: Table
    tensor: Table
    tensor_plan: TensorPlan
    function_table: Table
    ring_producer: Table
    ring_consumer: Table
    narrow_to_wide: Table
    wide_to_narrow: Table
    mesh: Table
    tile_fence: Table


class LoweredProgram(NamedTuple):
    """The tables, the chunks they come from, and the program counter at which each chunk starts."""

    tables: Tables
    chunks: tuple[Program, ...]
    starts: tuple[int, ...]

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

_ZERO = (0,)
_TILE_SET = range(1 << chip.TILES)
_TENSOR_FIELDS: dict[str, Sequence[int]] = {
    "hiccup": _ZERO,
    "partial_sum_wrap": _ZERO,
    "reserved_1848": _ZERO,
    "alternate_base": _ZERO,
    "partial_sum_read": (1, 3),
    "mac_disable": tuple(tensor_unit.MAC_DISABLE_PRODUCTS),
}
_NO_BASE: dict[str, Sequence[int]] = {"base_override": _ZERO}

IMPLEMENTED: dict[str, dict[str, Sequence[int]]] = {
    "TensorMac": _TENSOR_FIELDS | {"function": (0, 1, 3, 4, 5, 7)},
    "TensorMax": _TENSOR_FIELDS
    | {
        "function": (0, 1, 3, 4, 5, 7),
        "partial_sum_read": (3,),
        "mac_disable": (0, 14),
        "load_parameter_zero_point": _ZERO,
    },
    "TensorSum": _TENSOR_FIELDS
    | {
        "function": (0, 1, 3, 4, 5, 7),
        "mac_disable": _ZERO,
        "load_parameter_zero_point": _ZERO,
    },
    "TensorInterpolate": _TENSOR_FIELDS
    | {
        "function": _ZERO,
        "use_scales": _ZERO,
        "symmetric_function": _ZERO,
        "odd_function": _ZERO,
    },
    "RingProducer": _NO_BASE | {"wide_read_prologue_enable": _ZERO},
    "RingConsumerA": _NO_BASE | {"destination": _ZERO},
    "RingConsumerB": _NO_BASE | {"destination": _ZERO},
    "WideToNarrow": _NO_BASE | {"transpose": _ZERO, "double_operand": _ZERO},
    "MeshSouth": _NO_BASE,
    "MeshWest": _NO_BASE,
    "MeshNorth": _NO_BASE,
    "MeshEast": _NO_BASE,
    "TileFence": {"halt": _ZERO},
    "Scalar": {
        "store_op": (0, 1, 2, 3, 4, 5, 6),
        "alu_op": (0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 12, 13, 15, 16, 17, 18, 19, 20, 21, 22),
        "function_op": (0, 2, 3),
    },
    "Halt": {"goto_halt": _ZERO, "interrupt": _ZERO},
    "ScalarFence": {"reset_tile_fences": _TILE_SET, "tile_fence_valid": _TILE_SET},
    "Loop": {"count": range(1, 1 << 16), "body": range(1, 1 << 8)},
    "Branch": {"relative": (1,), "reserved_32": _ZERO},
    "RingInfeed": {
        "fifo": (0, 1, 2),
        "buffer_prologue_enable": _ZERO,
        "targets": _TILE_SET,
        "tiles_register": _ZERO,
        "base_register": _ZERO,
        "counter_register": _ZERO,
    },
    "RingOutfeed": {"base_register": _ZERO, "counter_register": _ZERO},
    "LoadProgram": {"start_pc": _ZERO},
    "Execute": {"start_pc": _ZERO, "load_pc": (1,)},
}
"""Values that the model implements, of the fields that restrict it. Other values are refused."""

_TENSOR_COMBINATIONS: tuple[dict[str, Sequence[int]], ...] = (
    {"mac_disable": (14,), "activation_16bit": (1,)},
    {"mac_disable": (14,), "parameter_16bit": (1,)},
    {"mac_disable": (12,), "activation_16bit": (1,), "parameter_16bit": (1,)},
    {"symmetric_function": (1,), "function": (0, 3, 4, 7)},
    {"odd_function": (1,), "symmetric_function": (0,)},
)
NOT_COMBINED: dict[str, tuple[dict[str, Sequence[int]], ...]] = {
    "TensorMac": _TENSOR_COMBINATIONS,
    "TensorMax": _TENSOR_COMBINATIONS,
    "TensorSum": _TENSOR_COMBINATIONS,
}
"""Values that are refused together, since no known program shows what they would mean."""

_NOT_IMPLEMENTED = ("Interrupt",)


def awaits_chunk(chunks: Sequence[Program]) -> bool:
    """Whether a program goes on in a chunk that is not there: none of its last halts is its end."""
    halts = chunks[-1].columns.get(BY_NAME["Halt"].opcode) if chunks else None
    return halts is not None and not halts["program_end"].any()


def incomplete_note(chunks: Sequence[Program]) -> str:
    """What is missing where :func:`awaits_chunk` is true; empty otherwise."""
    return str(IncompleteProgram(len(chunks))) if awaits_chunk(chunks) else ""


def lower(chunks: Sequence[bytes], *, dma_only: bool = False) -> LoweredProgram:
    """Decode and lower the chunks of one executable.

    Args:
        chunks: instruction chunks, patched with addresses.
        dma_only: lower only what the scalar core executes itself; tile instructions are kept as
            instructions without effect.

    Raises:
        UnsupportedInstruction: an opcode, or a value of a field, that is not implemented.
        DecodeError: bytes that are no instruction stream.
    """
    programs = tuple(_decode(number, chunk) for number, chunk in enumerate(chunks))
    starts = tuple(int(v) for v in np.cumsum([0, *(p.bundles for p in programs)])[:-1])
    for number, program in enumerate(programs):
        _check(number, program, dma_only)
    return LoweredProgram(_tables(programs, starts, dma_only), programs, starts)


def patch(program: LoweredProgram, number: int, chunk: bytes) -> None:
    """Take over what the linker wrote into chunk ``number``: immediates of scalar bundles.

    Raises ``DecodeError`` if anything else differs from the chunk that was lowered.
    """
    decoded = program.chunks[number]
    original = np.frombuffer(encode(decoded), np.uint8).reshape(-1, BUNDLE_BYTES)
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


def _check(number: int, program: Program, dma_only: bool) -> None:
    for opcode, columns in program.columns.items():
        instruction = INSTRUCTIONS[opcode]
        if dma_only and instruction.name not in _SCALAR_SIDE:
            continue
        pcs = program.pc[program.opcode == opcode]
        if instruction.name in _NOT_IMPLEMENTED:
            raise UnsupportedInstruction(opcode, number, int(pcs[0]), "opcode", opcode)
        for field, refused in refusals(instruction, columns):
            rows = np.flatnonzero(refused)
            if len(rows):
                row = int(rows[0])
                raise UnsupportedInstruction(
                    opcode, number, int(pcs[row]), field, int(columns[field][row])
                )
        if "watcher_flag" in columns:
            _check_watchers(number, instruction, columns, pcs)


def refusals(instruction: Instruction, columns: Columns) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """Fields of an instruction, each with the rows in which its value is refused."""
    restricted = {"trace": _ZERO, **IMPLEMENTED.get(instruction.name, {})}
    if instruction.name != "Scalar":
        restricted["gate"] = _ZERO
    if "register_sources" in columns:
        restricted["register_sources"] = _ZERO
    for field, allowed in restricted.items():
        yield field, ~_holds(columns[field], allowed)
    for combination in NOT_COMBINED.get(instruction.name, ()):
        together = [_holds(columns[field], values) for field, values in combination.items()]
        yield next(iter(combination)), np.logical_and.reduce(together)


def _holds(column: NDArray[np.int64], values: Sequence[int]) -> NDArray[np.bool_]:
    """Where a column holds one of ``values``."""
    if isinstance(values, range):
        return (column >= values.start) & (column < values.stop)
    return np.isin(column, values)


def _check_watchers(
    number: int, instruction: Instruction, columns: Columns, pcs: NDArray[np.int64]
) -> None:
    """Refuse a watcher of a flag that its unit does not have."""
    codes = instruction.field("watcher_flag").codes
    known = [] if codes is None else [int(code) for code in codes]
    flags = columns["watcher_flag"].reshape(len(pcs), -1)
    valid = columns["watcher_valid"].reshape(len(pcs), -1).astype(bool)
    wrong = np.argwhere(valid & ~np.isin(flags, known))
    if len(wrong):
        row, watcher = wrong[0]
        raise UnsupportedInstruction(
            instruction.opcode, number, int(pcs[row]), "watcher_flag", int(flags[row, watcher])
        )


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
            if "tiles" in columns:
                tiles[members] = scalar_core.lower_dispatch(columns, len(members))
            if instruction.name not in _LOWERING or (dma_only and instruction.name in _UNIT_OF):
                continue
            table, _, fill = _LOWERING[instruction.name]
            filled = fill(columns, len(members))
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
