"""Scalar core: runs the program, computes, issues descriptors, and hands instructions to units.

A scalar bundle is a very long instruction word: its load, store, ALU and transcendental slots all
read the registers as they were before the bundle.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from darwinn_sim import chip
from darwinn_sim.isa.codec import Columns
from darwinn_sim.isa.codes import (
    AluOperation,
    LoadOperation,
    ScalarFlag,
    ScalarFunction,
    ScalarUnit,
    StoreOperation,
)
from darwinn_sim.isa.table import BY_NAME
from darwinn_sim.kernel import state, sync, traversal
from darwinn_sim.kernel.compiled import Record, compiled, copy, inner
from darwinn_sim.units import ring_bus
from darwinn_sim.units.tables import Tables

DISPATCH = np.dtype(
    [
        ("gate", "i8"),
        ("predicate", "i8"),
        ("polarity", "i8"),
        ("interrupt", "i8"),
        ("tiles", "i8"),
        ("tiles_override", "i8"),
        ("tiles_register", "i8"),
        ("base_override", "i8"),
        ("base_register", "i8"),
    ]
)
"""What instructions other than scalar bundles have in common: the gate, the host interrupt that is
raised (-1: none), where a tile instruction goes, and the registers that may replace its tile set
and base."""

BLOCKED, HALTED, DESCRIPTOR, FENCED, STOPPED, SPENT, FAULT, TAP_FULL, INTERRUPT = range(9)
"""Why the core stopped: it waits; it has halted; it issues a descriptor; it has passed a DMA fence;
it has reached the stop point; it has used up its steps; a fault; the tap must be emptied; it raises
the host interrupt ``core.interrupt``."""

_SCALAR = BY_NAME["Scalar"].opcode
_HALT = BY_NAME["Halt"].opcode
_INTERRUPT = BY_NAME["Interrupt"].opcode
_BRANCH = BY_NAME["Branch"].opcode
_LOOP = BY_NAME["Loop"].opcode
_FENCE = BY_NAME["ScalarFence"].opcode
_POP = BY_NAME["PopInput"].opcode
_INFEED = BY_NAME["RingInfeed"].opcode
_OUTFEED = BY_NAME["RingOutfeed"].opcode
_TILE_FENCE = BY_NAME["TileFence"].opcode


def lower_dispatch(columns: Columns, rows: int) -> NDArray[np.void]:
    """What decoded instructions have in common, as an array of ``DISPATCH``."""
    out = np.zeros(rows, DISPATCH)
    for name in DISPATCH.names or ():
        if name in columns:
            out[name] = columns[name]
    if "interrupt" not in columns:
        out["interrupt"] = -1
    elif "chunk_end" in columns:
        # Of a halt, the flag and the number are two fields.
        out["interrupt"] = np.where(columns["interrupt"], columns["chunk_end"], -1)
    return out


@compiled
def run(core: Record, tiles: NDArray[np.void], tables: Tables) -> int:
    """Execute from ``core.pc`` until something stops the core; return one of the reasons above."""
    while True:
        if core.halted:
            return HALTED
        if core.pc == core.stop_pc or core.until_left == 0:
            return STOPPED
        if core.work >= core.work_limit:
            return SPENT
        if not is_in_program(core, tables):
            return FAULT
        reason = execute(core, tiles, tables, tables.at[core.pc])
        if reason == BLOCKED:
            return BLOCKED
        core.steps += 1
        core.work += 1
        if core.fault:
            return FAULT
        if reason >= 0:
            return reason


@inner
def is_in_program(core: Record, tables: Tables) -> bool:
    """True if an instruction starts at the program counter; otherwise that is a fault."""
    inside = 0 <= core.pc < core.end_pc and tables.at[core.pc] >= 0
    if not inside:
        state.fail(core, state.FAULT_PROGRAM_COUNTER, core.pc, -1, core.pc)
    return bool(inside)


_NEXT = -1


@inner
def execute(core: Record, tiles: NDArray[np.void], tables: Tables, instruction: int) -> int:
    """Execute one instruction; ``_NEXT``: go on, otherwise a reason to stop."""
    opcode = tables.opcode[instruction]
    row = tables.row[instruction]
    if opcode == _SCALAR:
        bundle = tables.scalar[row]
        if bundle.gate:
            _decide(core, bundle.predicate)
            if core.predicates[bundle.predicate] != bundle.polarity:
                _advance(core, core.pc + 1)
                return _NEXT
        if (
            bundle.store_op == StoreOperation.PUSH
            and not core.dma_only
            and core.output.length + 4 > chip.HOST_FIFO_BYTES
        ):
            return BLOCKED
        _scalar(core, bundle)
        _advance(core, core.pc + 1)
        return DESCRIPTOR if bundle.store_op == StoreOperation.ISSUE else _NEXT
    common = tables.dispatch[instruction]
    if common.gate and core.predicates[common.predicate] != common.polarity:
        _advance(core, following(tables, core.pc))
        return _NEXT
    if opcode == _HALT:
        core.halted = 1
        core.interrupt = common.interrupt
        return HALTED if common.interrupt < 0 else INTERRUPT
    if opcode == _INTERRUPT:
        core.interrupt = common.interrupt
        _advance(core, core.pc + 1)
        return INTERRUPT
    if opcode == _BRANCH:
        branch = tables.branch[row]
        if branch.conditional:
            _decide(core, branch.branch_predicate)
        taken = not branch.conditional or (
            core.predicates[branch.branch_predicate] == branch.branch_polarity
        )
        _advance(core, core.pc + (branch.offset if taken else 1))
        return _NEXT
    if opcode == _LOOP:
        _enter_loop(core, tables.loop[row])
        return _NEXT
    if opcode == _FENCE:
        fence = tables.scalar_fence[row]
        if not core.dma_only and not _fence_reached(core, tiles, fence):
            return BLOCKED
        _pass_fence(core, tiles, fence)
        _advance(core, core.pc + 2)
        return FENCED if _is_dma_fence(fence) else _NEXT
    if opcode in (_POP, _INFEED, _OUTFEED):
        return _issue_scalar_unit(core, tables, opcode, row)
    for_tiles = (tables.unit[instruction] >= 0 or opcode == _TILE_FENCE) and not core.dma_only
    if for_tiles and not _dispatch(core, tiles, tables, instruction):
        return BLOCKED
    _advance(core, following(tables, core.pc))
    return _NEXT


@compiled
def following(tables: Tables, pc: int) -> int:
    """Program counter of the instruction after the one at ``pc``."""
    pc += 1
    while pc < len(tables.at) and tables.at[pc] < 0:
        pc += 1
    return pc


@compiled
def _advance(core: Record, pc: int) -> None:
    """Go to ``pc``, or back to the start of a hardware loop whose body ends there."""
    while core.loop_depth > 0 and core.loops[core.loop_depth - 1].end == pc:
        loop = core.loops[core.loop_depth - 1]
        loop.left -= 1
        if loop.left > 0:
            core.pc = loop.start
            return
        core.loop_depth -= 1
    core.pc = pc


@inner
def _enter_loop(core: Record, parameters: Record) -> None:
    if core.loop_depth == state.MAX_LOOP_DEPTH:
        state.fail(core, state.FAULT_LOOP_DEPTH, core.pc, -1, core.loop_depth)
        return
    if parameters.count == 0 or parameters.body == 0:
        _advance(core, core.pc + 1 + parameters.body)
        return
    core.pc += 1
    loop = core.loops[core.loop_depth]
    loop.start = core.pc
    loop.end = core.pc + parameters.body
    loop.left = parameters.count
    core.loop_depth += 1


@inner
def _memory_address(core: Record, address: int | np.int64) -> int | np.int64:
    if address < 0 or address >= chip.SCALAR_MEMORY_WORDS:
        state.fail(core, state.FAULT_SCALAR_ADDRESS, core.pc, -1, int(address))
        return 0
    return address


@inner
def _scalar(core: Record, bundle: Record) -> None:
    registers = core.operands
    copy(registers, 0, core.registers, 0, chip.SCALAR_REGISTERS)
    copy(core.operands_written, 0, core.registers_written, 0, chip.SCALAR_REGISTERS)
    _store_slot(core, bundle, registers)
    _load_slot(core, bundle, registers)
    _alu_slot(core, bundle, registers)
    _function_slot(core, bundle, registers)


@inner
def _store_slot(core: Record, bundle: Record, registers: NDArray[np.uint32]) -> None:
    operation = bundle.store_op
    value = registers[bundle.store_register]
    where = bundle.store_address
    if operation == StoreOperation.PUSH:
        if not core.dma_only:
            written = state.bytes_of(core.operands_written[bundle.store_register])
            ring_bus.push_output(core, value, written, core.pc)
    elif operation == StoreOperation.DESCRIPTOR:
        _use(core, bundle.store_register)
        core.descriptor[where & 3] = value
    elif StoreOperation.DIRECT <= operation <= StoreOperation.POST_INCREMENT:
        pointer = where & 31
        if operation != StoreOperation.DIRECT:
            _use(core, pointer)
        address = _memory_address(
            core, where if operation == StoreOperation.DIRECT else np.int64(registers[pointer])
        )
        core.memory[address] = value
        core.memory_written[address] = core.operands_written[bundle.store_register]
        if operation == StoreOperation.POST_INCREMENT:
            core.registers[pointer] = registers[pointer] + np.uint32(where >> 5)


@inner
def _load_slot(core: Record, bundle: Record, registers: NDArray[np.uint32]) -> None:
    operation = bundle.load_op
    if operation == LoadOperation.NONE:
        return
    where = bundle.load_address
    pointer = where & 31
    if operation != LoadOperation.DIRECT:
        _use(core, pointer)
    address = _memory_address(
        core, where if operation == LoadOperation.DIRECT else np.int64(registers[pointer])
    )
    core.registers[bundle.load_register] = core.memory[address]
    core.registers_written[bundle.load_register] = core.memory_written[address]
    if operation == LoadOperation.POST_INCREMENT:
        core.registers[pointer] = registers[pointer] + np.uint32(where >> 5)


@inner
def _signed(value: np.uint32) -> np.int64:
    return np.int64(np.int32(value))


@inner
def _alu_slot(core: Record, bundle: Record, registers: NDArray[np.uint32]) -> None:
    operation = bundle.alu_op
    if operation == AluOperation.NONE:
        return
    a = registers[bundle.alu_a]
    b = np.uint32(bundle.alu_b) if bundle.alu_immediate else registers[bundle.alu_b & 31]
    a_written = core.operands_written[bundle.alu_a]
    b_written = state.ALL_BITS
    if not bundle.alu_immediate:
        b_written = core.operands_written[bundle.alu_b & 31]
    # A register less itself is 0, and equals itself, whatever it holds.
    same = not bundle.alu_immediate and bundle.alu_a == bundle.alu_b & 31
    if AluOperation.EQUAL <= operation <= AluOperation.GREATER_EQUAL_UNSIGNED:
        predicate = bundle.alu_destination & 7
        core.predicates[predicate] = _compare(operation, a, b)
        core.predicates_written[predicate] = same or compared_written(
            operation, a, a_written, b, b_written
        )
        return
    written = result_written(operation, a, a_written, b, b_written)
    if same and (operation == AluOperation.SUBTRACT or operation == AluOperation.XOR):
        written = state.ALL_BITS
    core.registers_written[bundle.alu_destination] = written
    if operation >= AluOperation.TO_FLOAT:
        core.immediate[0] = b
        x = registers.view(np.float32)[bundle.alu_a]
        y = core.immediate.view(np.float32)[0]
        if operation == AluOperation.TO_INTEGER:
            core.registers[bundle.alu_destination] = np.uint32(np.int64(np.rint(y)))
        else:
            value = _float_alu(operation, x, y, b)
            core.registers.view(np.float32)[bundle.alu_destination] = value
    else:
        core.registers[bundle.alu_destination] = integer_alu(operation, a, b)


@inner
def _use(core: Record, register: int) -> None:
    """A register's value is an address or a part of a descriptor: it must have been written."""
    if core.operands_written[register] != state.ALL_BITS and not core.dma_only:
        state.uninitialised(core, core.pc, -1, register)


@inner
def _use_now(core: Record, register: int, bits: np.uint32) -> None:
    """Like :func:`_use`, outside a scalar bundle, and for some bits."""
    if core.registers_written[register] & bits != bits and not core.dma_only:
        state.uninitialised(core, core.pc, -1, register)


@inner
def _decide(core: Record, predicate: int) -> None:
    """A predicate decides what is executed: it must follow from what has been written."""
    if not core.predicates_written[predicate] and not core.dma_only:
        state.uninitialised(core, core.pc, -1, predicate)


@compiled
def result_written(
    operation: int, a: np.uint32, a_written: np.uint32, b: np.uint32, b_written: np.uint32
) -> np.uint32:
    """Bits of an ALU result that follow from written bits, so that words can be put together.

    Programs load a word that nothing has written, mask it and put one byte in its place.
    """
    both = np.uint32(a_written & b_written)
    if operation == AluOperation.MOVE:
        return b_written
    if operation == AluOperation.AND:
        return np.uint32(both | (~a & a_written) | (~b & b_written))
    if operation == AluOperation.OR:
        return np.uint32(both | (a & a_written) | (b & b_written))
    if operation == AluOperation.XOR:
        return both
    if operation == AluOperation.ADD or operation == AluOperation.SUBTRACT:
        # Carries go upwards: what lies below the lowest unwritten bit is known.
        unwritten = np.uint64(both ^ state.ALL_BITS)
        lowest = unwritten & (~unwritten + np.uint64(1))
        known = lowest - np.uint64(1) if unwritten else np.uint64(0xFFFFFFFF)
        return np.uint32(known & np.uint64(0xFFFFFFFF))
    if operation == AluOperation.SHIFT_LEFT or operation == AluOperation.SHIFT_RIGHT:
        if b_written & np.uint32(31) != np.uint32(31):
            return np.uint32(0)
        shift = np.uint64(b & np.uint32(31))
        # Zeros are shifted in, so the shadow is that of the complement: unwritten bits move.
        unwritten = np.uint64(a_written ^ state.ALL_BITS)
        moved = unwritten << shift if operation == AluOperation.SHIFT_LEFT else unwritten >> shift
        return np.uint32(~moved & np.uint64(0xFFFFFFFF))
    if operation == AluOperation.TO_FLOAT or operation == AluOperation.TO_INTEGER:
        return state.ALL_BITS if b_written == state.ALL_BITS else np.uint32(0)
    return state.ALL_BITS if both == state.ALL_BITS else np.uint32(0)


@compiled
def compared_written(
    operation: int, a: np.uint32, a_written: np.uint32, b: np.uint32, b_written: np.uint32
) -> bool:
    """Whether a comparison follows from written bits: one that differs decides an equality."""
    both = np.uint32(a_written & b_written)
    if both == state.ALL_BITS:
        return True
    return (operation == AluOperation.EQUAL or operation == AluOperation.NOT_EQUAL) and (
        a ^ b
    ) & both != np.uint32(0)


@inner
def _compare(operation: int, a: np.uint32, b: np.uint32) -> bool:
    if operation == AluOperation.EQUAL:
        return bool(a == b)
    if operation == AluOperation.NOT_EQUAL:
        return bool(a != b)
    if operation == AluOperation.GREATER:
        return bool(_signed(a) > _signed(b))
    if operation == AluOperation.LESS:
        return bool(_signed(a) < _signed(b))
    if operation == AluOperation.GREATER_EQUAL_UNSIGNED:
        return bool(a >= b)
    return bool(_signed(a) >= _signed(b))


@compiled
def integer_alu(operation: int, a: np.uint32, b: np.uint32) -> np.uint32:
    """Result of an integer operation of the ALU that is no comparison."""
    shift = np.uint64(b & np.uint32(31))
    if operation == AluOperation.ADD:
        return np.uint32(a + b)
    if operation == AluOperation.SUBTRACT:
        return np.uint32(np.int64(a) - np.int64(b))
    if operation == AluOperation.AND:
        return np.uint32(a & b)
    if operation == AluOperation.OR:
        return np.uint32(a | b)
    if operation == AluOperation.XOR:
        return np.uint32(a ^ b)
    if operation == AluOperation.SHIFT_LEFT:
        return np.uint32(np.uint64(a) << shift)
    if operation == AluOperation.SHIFT_RIGHT:
        return np.uint32(np.uint64(a) >> shift)
    if operation == AluOperation.ARITHMETIC_SHIFT_RIGHT:
        return np.uint32((_signed(a) >> np.int64(shift)) & np.int64(0xFFFFFFFF))
    return b


@inner
def _float_alu(operation: int, x: np.float32, y: np.float32, b: np.uint32) -> np.float32:
    if operation == AluOperation.TO_FLOAT:
        return np.float32(_signed(b))
    if operation == AluOperation.FLOAT_ADD:
        return np.float32(x + y)
    if operation == AluOperation.FLOAT_SUBTRACT:
        return np.float32(x - y)
    if operation == AluOperation.FLOAT_MULTIPLY:
        return np.float32(x * y)
    if operation == AluOperation.FLOAT_MAXIMUM:
        return max(x, y)
    return min(x, y)


@inner
def _function_slot(core: Record, bundle: Record, registers: NDArray[np.uint32]) -> None:
    if bundle.function_op == ScalarFunction.NONE:
        return
    x = registers.view(np.float32)[bundle.function_source]
    written = core.operands_written[bundle.function_source] == state.ALL_BITS
    core.registers_written[bundle.function_destination] = (
        state.ALL_BITS if written else np.uint32(0)
    )
    if bundle.function_op == ScalarFunction.RECIPROCAL:
        value = np.float32(np.float32(1) / x)
    else:
        # By way of float64, so that every machine's library rounds to the same float32.
        value = np.float32(np.exp2(np.float64(x)))
    core.registers.view(np.float32)[bundle.function_destination] = value


@compiled
def _is_dma_fence(fence: Record) -> bool:
    """The encoding that DMA hints call a fence (docs/isa.md, ScalarFence)."""
    return (  # type: ignore[no-any-return]
        fence.expected_valid == 1 << ScalarFlag.RING_PRODUCER_B
        and fence.wait_idle == 1 << ScalarUnit.DRAIN
    )


@inner
def _fence_reached(core: Record, tiles: NDArray[np.void], fence: Record) -> bool:
    for number in range(chip.TILES):
        waits = (fence.tile_fence_valid >> number) & 1
        if waits and tiles[number].fence_count < fence.tile_fence_count:
            return False
    for flag in range(chip.SCALAR_FLAGS):
        waits = (fence.expected_valid >> flag) & 1
        if waits and not sync.reached(core.flags[flag], fence.expected[flag]):
            return False
    return _idle(core, fence.wait_idle)


@compiled
def _idle(core: Record, units: int) -> bool:
    """True if the scalar units of a ScalarFence.wait_idle mask are idle."""
    for unit in range(state.QUEUED_SCALAR_UNITS):
        if (units >> unit) & 1 and not state.idle(core.units[unit]):
            return False
    # Rows that wait on the ring for a later outfeed do not count: programs send them before a fence
    # on this bit and issue the outfeed after it.
    delivered = core.output.length == 0 and not core.output_pending
    outfeed_idle = state.idle(core.units[ScalarUnit.RING_OUTFEED])
    return not (units >> ScalarUnit.DRAIN) & 1 or (outfeed_idle and delivered)


@inner
def _pass_fence(core: Record, tiles: NDArray[np.void], fence: Record) -> None:
    for number in range(chip.TILES):
        if (fence.reset_tile_fences >> number) & 1:
            tiles[number].fence_count = 0
    for flag in range(chip.SCALAR_FLAGS):
        if (fence.reset_flags >> flag) & 1:
            core.flags[flag] = fence.reset_value


@inner
def _issue_scalar_unit(core: Record, tables: Tables, opcode: int, row: int) -> int:
    """Queue an instruction for PopInput, RingInfeed or RingOutfeed."""
    next_pc = following(tables, core.pc)
    if core.dma_only:
        if opcode == _OUTFEED and not tables.outfeed[row].to_host:
            _fill_scalar_memory(core, tables.outfeed[row])
        _advance(core, next_pc)
        return _NEXT
    if opcode == _POP:
        fifo = tables.pop[row].fifo
        unit = core.units[ScalarUnit.AV_POP if fifo else ScalarUnit.PARAMETER_POP]
    else:
        unit = core.units[ScalarUnit.RING_INFEED if opcode == _INFEED else ScalarUnit.RING_OUTFEED]
    if unit.queue_length == chip.UNIT_QUEUE:
        return BLOCKED
    unit.queue[(unit.queue_head + unit.queue_length) % chip.UNIT_QUEUE] = row
    unit.queue_length += 1
    _advance(core, next_pc)
    return _NEXT


@inner
def _fill_scalar_memory(core: Record, parameters: Record) -> None:
    """DMA-only mode: what the tiles would have sent comes from a seeded generator (xorshift64)."""
    write = core.units[ScalarUnit.RING_OUTFEED].buffer
    traversal.start(write, parameters.buffer)
    while not write.done:
        address = traversal.address(write, parameters.buffer) % chip.SCALAR_MEMORY_WORDS
        value = core.random
        value ^= value << np.uint64(13)
        value ^= value >> np.uint64(7)
        value ^= value << np.uint64(17)
        core.random = value
        core.memory[address] = np.uint32(value & np.uint64(0xFFFFFFFF))
        core.memory_written[address] = state.ALL_BITS
        core.work += 1
        if state.paused(core):
            # Arbitrary data: where a hostile program asks for endless amounts, some is enough.
            return
        traversal.step(write, parameters.buffer)


@inner
def targets(core: Record, where: Record) -> int:
    """The set of tiles (bit t: tile t) that an instruction goes to; a register may name them."""
    if where.tiles_override:
        _use_now(core, where.tiles_register, np.uint32(0xFFFF))
        return int(core.registers[where.tiles_register]) & 0xFFFF
    return where.tiles  # type: ignore[no-any-return]


@inner
def _dispatch(core: Record, tiles: NDArray[np.void], tables: Tables, instruction: int) -> bool:
    """Append a tile instruction to the queues of its tiles; False if one of them is full."""
    where = tables.dispatch[instruction]
    receivers = targets(core, where)
    for number in range(chip.TILES):
        if (receivers >> number) & 1 and tiles[number].queue_length == chip.TILE_QUEUE:
            return False
    base = np.int64(-1)
    if where.base_override:
        _use_now(core, where.base_register, state.ALL_BITS)
        base = np.int64(core.registers[where.base_register])
    for number in range(chip.TILES):
        if (receivers >> number) & 1:
            tile = tiles[number]
            entry = tile.queue[(tile.queue_head + tile.queue_length) % chip.TILE_QUEUE]
            entry.instruction = instruction
            entry.base = base
            tile.queue_length += 1
            tile.awake = 1
    return True
