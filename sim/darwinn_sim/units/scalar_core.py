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
    DescriptorTag,
    DescriptorWord,
    InputFifo,
    LoadOperation,
    ScalarFlag,
    ScalarFunction,
    ScalarUnit,
    StoreOperation,
)
from darwinn_sim.isa.table import BY_NAME
from darwinn_sim.kernel import clocks, numbering, order, state
from darwinn_sim.kernel.compiled import compiled, copy, inner
from darwinn_sim.kernel.instructions import Loop, Scalar, ScalarFence
from darwinn_sim.kernel.state import Handover
from darwinn_sim.kernel.structure import Records
from darwinn_sim.units import numbered_scalar, scalar_alu
from darwinn_sim.units.tables import Dispatch, Tables

BLOCKED, HALTED, DESCRIPTOR, FENCED, STOPPED, SPENT, FAULT, TAP_FULL, HANDS_OVER = range(9)
"""Why the core stopped: it waits; it has halted; it has issued a descriptor or an interrupt; it has
passed a DMA fence; it has reached the stop point; it has used up its steps; a fault; the tap must
be emptied; it stands before an instruction that others have to take first (``core.handed``)."""

NEXT = -1
"""It goes on."""

NOWHERE = -1
"""No place to stop at: program counters begin at 0."""

_SCALAR = BY_NAME["Scalar"].opcode
_HALT = BY_NAME["Halt"].opcode
_BRANCH = BY_NAME["Branch"].opcode
_LOOP = BY_NAME["Loop"].opcode
_FENCE = BY_NAME["ScalarFence"].opcode
_POP = BY_NAME["PopInput"].opcode
_INFEED = BY_NAME["RingInfeed"].opcode
_OUTFEED = BY_NAME["RingOutfeed"].opcode
_TILE_FENCE = BY_NAME["TileFence"].opcode

_ALL_TILES = (1 << chip.TILES) - 1
_REGISTER = chip.SCALAR_REGISTERS - 1
_REGISTER_BITS = _REGISTER.bit_length()
_PREDICATE = chip.PREDICATES - 1
_DESCRIPTOR_WORD = len(DescriptorWord) - 1
"""Bits of a field that hold a tile set, a register, a predicate, a word of the descriptor."""


def lower_dispatch(columns: Columns, rows: int) -> Records[Dispatch]:
    """What decoded instructions have in common, as an array of ``Dispatch``."""
    out = Dispatch.zeros(rows)
    for name in Dispatch.dtype.names or ():
        if name in columns:
            out[name] = columns[name]
    if "interrupt" not in columns:
        out["interrupt"] = -1
    elif "chunk_end" in columns:
        # Of a halt, the flag and the number are two fields.
        out["interrupt"] = np.where(columns["interrupt"], columns["chunk_end"], -1)
    return out


@compiled
def run(core: state.Core, tables: Tables, stop_pc: int) -> int:
    """Execute up to an instruction that others have to take, or something else that stops it.

    It stops before the bundle at ``stop_pc``, too.

    Returns one of the reasons above, or ``NEXT`` where there is something to note
    (``core.computed``). After ``HANDS_OVER``, whoever runs the core sees to what ``core.handed``
    asks and calls :func:`pass_on`; what cannot be taken yet is handed over again.
    """
    while True:
        if core.halted:
            return HALTED
        if core.pc == stop_pc:
            return STOPPED
        if core.work >= core.work_limit:
            return SPENT
        if not 0 <= core.pc < core.end_pc or tables.at[core.pc] < 0:
            state.fail(core, state.FAULT_PROGRAM_COUNTER, core.pc, -1, core.pc)
            return FAULT
        _hand_over(core, tables, tables.at[core.pc])
        if core.handed.kind != Handover.NOTHING:
            return HANDS_OVER
        reason = pass_on(core, tables)
        if reason != NEXT or core.computed:
            return reason


@compiled
def pass_on(core: state.Core, tables: Tables) -> int:
    """Go on behind an instruction, with what it does to the core itself; ``NEXT`` or a reason."""
    pc = core.pc
    end = following(tables, pc)
    kind = core.handed.kind
    instruction = core.handed.instruction
    if tables.opcode[instruction] == _SCALAR:
        _scalar(core, tables.scalar[core.handed.row])
    else:
        common = tables.dispatch[instruction]
        if common.gate:
            _decide(core, common.predicate)
        if kind == Handover.NOTHING:
            _execute(core, tables, instruction, end)
        elif tables.opcode[instruction] == _HALT:
            core.halted = 1
        else:
            if kind == Handover.DISPATCH:
                _check_base(core, common)
            _advance(core, end)
    core.steps += 1
    core.bundles += end - pc
    core.work += 1
    if core.fault:
        return FAULT
    if kind == Handover.DESCRIPTOR:
        return DESCRIPTOR
    return FENCED if kind == Handover.FENCE and core.handed.target else NEXT


@inner
def _hand_over(core: state.Core, tables: Tables, instruction: int) -> None:
    """Say in ``core.handed`` what the instruction before which the core stands asks of others."""
    handed = core.handed
    opcode = tables.opcode[instruction]
    handed.kind = Handover.NOTHING
    handed.instruction = instruction
    handed.row = tables.row[instruction]
    if opcode == _SCALAR:
        _hand_over_bundle(core, tables.scalar[handed.row])
        return
    common = tables.dispatch[instruction]
    if common.gate and core.predicates[common.predicate] != common.polarity:
        return
    handed.target = handed.base = -1
    handed.address = np.uint64(0)
    handed.size = 0
    if common.interrupt >= 0:
        handed.kind = Handover.DESCRIPTOR
        handed.target = DescriptorTag.INTERRUPT_0 + common.interrupt
    elif opcode == _HALT:
        handed.kind = Handover.HALT
    elif opcode == _FENCE:
        handed.kind = Handover.FENCE
        handed.target = _is_dma_fence(tables.scalar_fence[handed.row])
    elif opcode in (_POP, _INFEED, _OUTFEED):
        handed.kind = Handover.UNIT
        handed.target = _unit(tables, opcode, handed.row)
    elif tables.unit[instruction] >= 0 or opcode == _TILE_FENCE:
        handed.kind = Handover.DISPATCH
        handed.target = _targets(core, common)
        if common.base_override:
            handed.base = int(core.registers[common.base_register])


@inner
def _hand_over_bundle(core: state.Core, bundle: Scalar) -> None:
    handed = core.handed
    if bundle.gate and core.predicates[bundle.predicate] != bundle.polarity:
        return
    if bundle.store_op == StoreOperation.PUSH:
        handed.kind = Handover.PUSH
        handed.target = -1
        handed.size = 0
        handed.word = core.registers[bundle.store_register]
        handed.written = core.registers_written[bundle.store_register]
    elif bundle.store_op == StoreOperation.ISSUE:
        handed.kind = Handover.DESCRIPTOR
        low = np.uint64(core.descriptor[DescriptorWord.ADDRESS_LOW])
        high = np.uint64(core.descriptor[DescriptorWord.ADDRESS_HIGH])
        handed.address = low | high << np.uint64(32)
        handed.size = core.descriptor[DescriptorWord.SIZE]
        handed.target = core.descriptor[DescriptorWord.TAG]


@inner
def _unit(tables: Tables, opcode: int, row: int) -> int:
    """Unit beside the core that executes an instruction."""
    if opcode == _POP:
        activations = tables.pop[row].fifo == InputFifo.ACTIVATIONS
        return ScalarUnit.AV_POP if activations else ScalarUnit.PARAMETER_POP
    return ScalarUnit.RING_INFEED if opcode == _INFEED else ScalarUnit.RING_OUTFEED


@inner
def _targets(core: state.Core, where: Dispatch) -> int:
    """The set of tiles (bit t: tile t) that an instruction goes to; a register may name them."""
    if where.tiles_override:
        _use_now(core, where.tiles_register, np.uint32(_ALL_TILES))
        return int(core.registers[where.tiles_register]) & _ALL_TILES
    return where.tiles


@inner
def _check_base(core: state.Core, where: Dispatch) -> None:
    if where.base_override:
        _use_now(core, where.base_register, state.ALL_BITS)


@inner
def _execute(core: state.Core, tables: Tables, instruction: int, end: int) -> None:
    """Execute an instruction other than a bundle that concerns the core alone; ``end`` follows."""
    opcode = tables.opcode[instruction]
    common = tables.dispatch[instruction]
    gated = common.gate and core.predicates[common.predicate] != common.polarity
    if opcode == _BRANCH and not gated:
        branch = tables.branch[tables.row[instruction]]
        if branch.conditional:
            _decide(core, branch.branch_predicate)
        taken = not branch.conditional or (
            core.predicates[branch.branch_predicate] == branch.branch_polarity
        )
        _advance(core, core.pc + (branch.offset if taken else 1))
    elif opcode == _LOOP and not gated:
        _enter_loop(core, tables.loop[tables.row[instruction]])
    else:
        _advance(core, end)


@compiled
def following(tables: Tables, pc: int) -> int:
    """Program counter of the instruction after the one at ``pc``."""
    pc += 1
    while pc < len(tables.at) and tables.at[pc] < 0:
        pc += 1
    return pc


@compiled
def _advance(core: state.Core, pc: int) -> None:
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
def _enter_loop(core: state.Core, parameters: Loop) -> None:
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
def _memory_address(core: state.Core, address: int | np.int64) -> int | np.int64:
    if address < 0 or address >= chip.SCALAR_MEMORY_WORDS:
        state.fail(core, state.FAULT_SCALAR_ADDRESS, core.pc, -1, int(address))
        return 0
    return address


@inner
def _scalar(core: state.Core, bundle: Scalar) -> None:
    """Execute a scalar bundle; a word that is pushed has been taken by then."""
    if bundle.gate:
        _decide(core, bundle.predicate)
    if not bundle.gate or core.predicates[bundle.predicate] == bundle.polarity:
        registers = core.operands
        copy(registers, 0, core.registers, 0, chip.SCALAR_REGISTERS)
        copy(core.operands_written, 0, core.registers_written, 0, chip.SCALAR_REGISTERS)
        numbering.keeps_operands(core)
        _store_slot(core, bundle, registers)
        _load_slot(core, bundle, registers)
        _alu_slot(core, bundle, registers)
        _function_slot(core, bundle, registers)
    _advance(core, core.pc + 1)


@inner
def _store_slot(core: state.Core, bundle: Scalar, registers: NDArray[np.uint32]) -> None:
    operation = bundle.store_op
    value = registers[bundle.store_register]
    where = bundle.store_address
    if operation == StoreOperation.DESCRIPTOR:
        _use(core, bundle.store_register)
        core.descriptor[where & _DESCRIPTOR_WORD] = value
    elif StoreOperation.DIRECT <= operation <= StoreOperation.POST_INCREMENT:
        pointer = where & _REGISTER
        if operation != StoreOperation.DIRECT:
            _use(core, pointer)
        address = _memory_address(
            core, where if operation == StoreOperation.DIRECT else np.int64(registers[pointer])
        )
        order.goes_on(core, clocks.CORE, core.handed.instruction)
        same = core.memory[address] == value
        order.writes(core, clocks.CORE, clocks.SCALAR_BASE + int(address), same)
        core.memory[address] = value
        core.memory_written[address] = core.operands_written[bundle.store_register]
        numbering.stores(core, bundle.store_register, int(address))
        if operation == StoreOperation.POST_INCREMENT:
            core.registers[pointer] = registers[pointer] + np.uint32(where >> _REGISTER_BITS)


@inner
def _load_slot(core: state.Core, bundle: Scalar, registers: NDArray[np.uint32]) -> None:
    operation = bundle.load_op
    if operation == LoadOperation.NONE:
        return
    where = bundle.load_address
    pointer = where & _REGISTER
    if operation != LoadOperation.DIRECT:
        _use(core, pointer)
    address = _memory_address(
        core, where if operation == LoadOperation.DIRECT else np.int64(registers[pointer])
    )
    order.goes_on(core, clocks.CORE, core.handed.instruction)
    order.reads(core, clocks.CORE, clocks.SCALAR_BASE + int(address))
    core.registers[bundle.load_register] = core.memory[address]
    core.registers_written[bundle.load_register] = core.memory_written[address]
    numbering.loads(core, bundle.load_register, int(address))
    if operation == LoadOperation.POST_INCREMENT:
        core.registers[pointer] = registers[pointer] + np.uint32(where >> _REGISTER_BITS)


@inner
def _alu_slot(core: state.Core, bundle: Scalar, registers: NDArray[np.uint32]) -> None:
    operation = bundle.alu_op
    if operation == AluOperation.NONE:
        return
    a = registers[bundle.alu_a]
    b = np.uint32(bundle.alu_b) if bundle.alu_immediate else registers[bundle.alu_b & _REGISTER]
    a_written = core.operands_written[bundle.alu_a]
    b_written = state.ALL_BITS
    if not bundle.alu_immediate:
        b_written = core.operands_written[bundle.alu_b & _REGISTER]
    # A register less itself is 0, and equals itself, whatever it holds.
    same = not bundle.alu_immediate and bundle.alu_a == bundle.alu_b & _REGISTER
    if AluOperation.EQUAL <= operation <= AluOperation.GREATER_EQUAL_UNSIGNED:
        predicate = bundle.alu_destination & _PREDICATE
        core.predicates[predicate] = scalar_alu.compare(operation, a, b)
        core.predicates_written[predicate] = same or scalar_alu.compared_written(
            operation, a, a_written, b, b_written
        )
        return
    written = scalar_alu.result_written(operation, a, a_written, b, b_written)
    if same and (operation == AluOperation.SUBTRACT or operation == AluOperation.XOR):
        written = state.ALL_BITS
    core.registers_written[bundle.alu_destination] = written
    core.registers[bundle.alu_destination] = scalar_alu.result(operation, a, b)
    if written != state.ALL_BITS:
        numbered_scalar.computes(core, bundle, a, a_written, b, b_written)
    if core.noting and written != state.ALL_BITS:
        _computes(core, bundle.alu_destination, operation, a, a_written, b, b_written)


@inner
def _use(core: state.Core, register: int) -> None:
    """A register's value is an address or a part of a descriptor: it must have been written."""
    if core.operands_written[register] != state.ALL_BITS:
        state.uninitialised(core, core.pc, -1, register)


@inner
def _use_now(core: state.Core, register: int, bits: np.uint32) -> None:
    """Like :func:`_use`, outside a scalar bundle, and for some bits."""
    if core.registers_written[register] & bits != bits:
        state.uninitialised(core, core.pc, -1, register)


@inner
def _decide(core: state.Core, predicate: int) -> None:
    """A predicate decides what is executed: it must follow from what has been written."""
    if not core.predicates_written[predicate]:
        state.uninitialised(core, core.pc, -1, predicate)


@inner
def _function_slot(core: state.Core, bundle: Scalar, registers: NDArray[np.uint32]) -> None:
    if bundle.function_op == ScalarFunction.NONE:
        return
    x = registers[bundle.function_source]
    written = core.operands_written[bundle.function_source] == state.ALL_BITS
    operation = scalar_alu.FUNCTION + bundle.function_op
    core.registers_written[bundle.function_destination] = (
        state.ALL_BITS if written else np.uint32(0)
    )
    core.registers[bundle.function_destination] = scalar_alu.result(operation, x, np.uint32(0))
    if not written:
        numbered_scalar.computes_function(core, bundle)
    if core.noting and bundle.function_destination == bundle.alu_destination:
        # What the ALU has computed is gone.
        core.computed = 0
    if core.noting and not written:
        none, register = np.uint32(0), bundle.function_destination
        _computes(core, register, operation, x, none, none, state.ALL_BITS)


@inner
def _computes(
    core: state.Core,
    register: int,
    operation: int,
    a: np.uint32,
    a_written: np.uint32,
    b: np.uint32,
    b_written: np.uint32,
) -> None:
    """A register has got the result of an operation on data, which is to be noted."""
    result = core.results[core.computed]
    result.operation = operation
    result.register = register
    result.a = a
    result.a_written = a_written
    result.b = b
    result.b_written = b_written
    core.computed += 1


@compiled
def _is_dma_fence(fence: ScalarFence) -> bool:
    """The encoding that DMA hints call a fence (docs/isa.md, ScalarFence)."""
    return bool(
        fence.expected_valid == 1 << ScalarFlag.RING_PRODUCER_B
        and fence.wait_idle == 1 << ScalarUnit.DRAIN
    )
