"""The last instruction of a block: where control goes, and what it copies on the way."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from darwinn_formats.errors import ExecutionError
from darwinn_formats.iree import Instruction
from darwinn_formats.iree.opcodes import MOVE_BIT, REFERENCE_BIT

from darwinn_reference.iree.binding import RETURN, Binding, Leave, Step
from darwinn_reference.iree.calls import call
from darwinn_reference.iree.registers import ORDINAL, Registers

STATUS = {
    1: "cancelled",
    2: "unknown",
    3: "invalid argument",
    4: "deadline exceeded",
    5: "not found",
    6: "already exists",
    7: "permission denied",
    8: "resource exhausted",
    9: "failed precondition",
    10: "aborted",
    11: "out of range",
    12: "unimplemented",
    13: "internal",
    14: "unavailable",
    15: "data loss",
    16: "unauthenticated",
}
"""Status codes of ``fail``."""


def copies(registers: Registers, pairs: Sequence[tuple[int, int]]) -> Step:
    """Copy registers in order: one cell or one reference each."""
    cells = registers.banks["i"]
    numbers = [pair for pair in pairs if not pair[0] & REFERENCE_BIT]
    others = [
        (source & ORDINAL, target & ORDINAL, bool(source & MOVE_BIT))
        for source, target in pairs
        if source & REFERENCE_BIT
    ]
    references = registers.references

    def copy() -> None:
        for source, target in numbers:
            cells[target] = cells[source]
        for source, target, moves in others:
            value = references[source]
            if moves:
                references[source] = None
            references[target] = value

    return copy


def _branch(binding: Binding, target: int, pairs: Sequence[tuple[int, int]]) -> Leave:
    block = binding.block_of[target]
    if not pairs:
        return lambda: block
    copy = copies(binding.registers, pairs)

    def leave() -> int:
        copy()
        return block

    return leave


def _goto(binding: Binding, instruction: Instruction) -> Leave:
    target, pairs = instruction.operands
    return _branch(binding, target, pairs)


def _conditional(binding: Binding, instruction: Instruction) -> Leave:
    condition, yes, yes_pairs, no, no_pairs = instruction.operands
    cells, index = binding.bank("i", condition)
    if not yes_pairs and not no_pairs:
        first, second = binding.block_of[yes], binding.block_of[no]
        return lambda: first if cells[index] else second
    taken = _branch(binding, yes, yes_pairs)
    other = _branch(binding, no, no_pairs)
    return lambda: taken() if cells[index] else other()


def _conditional_break(binding: Binding, instruction: Instruction) -> Leave:
    """A debugger would stop; the way is the same."""
    _, target, pairs = instruction.operands
    return _branch(binding, target, pairs)


def _table(binding: Binding, instruction: Instruction) -> Leave:
    register, target, pairs, cases = instruction.operands
    cells, index = binding.bank("i", register)
    default = _branch(binding, target, pairs)
    ways = [_branch(binding, *case) for case in cases]

    def leave() -> int:
        case = cells[index]
        return ways[case]() if 0 <= case < len(ways) else default()

    return leave


def _give(binding: Binding, instruction: Instruction) -> Leave:
    (registers,) = instruction.operands
    activation = binding.registers
    convention = binding.function.convention
    letters = () if convention is None else convention.results
    values = [binding.taken(*pair) for pair in zip(letters, registers, strict=False)]

    def leave() -> int:
        activation.results = tuple(read() for read in values)
        return RETURN

    return leave


def _fail(binding: Binding, instruction: Instruction) -> Leave:
    register, text = instruction.operands
    cells, index = binding.bank("i", register)
    message = bytes(text).decode("utf-8", "replace")
    following = binding.block_of.get(instruction.end)

    def leave() -> int:
        status = cells[index]
        if status:
            name = STATUS.get(status, f"status {status}")
            raise ExecutionError(f"{name}: {message}" if message else name)
        if following is None:
            raise ExecutionError("the function goes on after its end")
        return following

    return leave


def _suspending_call(binding: Binding, instruction: Instruction) -> Leave:
    """Imports complete at once, so that the call goes on with the block that resumes."""
    run = call(binding, instruction)
    block = binding.block_of[instruction.operands[-2]]

    def leave() -> int:
        run()
        return block

    return leave


LEAVES: Mapping[str, Callable[[Binding, Instruction], Leave]] = {
    "br": _goto,
    "break": _goto,
    "yield": _goto,
    "cond_br": _conditional,
    "cond_break": _conditional_break,
    "br_table": _table,
    "return": _give,
    "fail": _fail,
    "call.yieldable": _suspending_call,
    "call.variadic.yieldable": _suspending_call,
}
"""How the instructions that end a block are bound, by mnemonic."""
