"""Everything that can go wrong while a program runs on the simulated chip, one class each."""

from __future__ import annotations

from darwinn_formats.errors import Portable

from darwinn_sim.isa.table import INSTRUCTIONS


class SimulationError(Portable):
    """Base of every error that the model of the chip raises."""


def defect(error: Exception) -> SimulationError:
    """An error of this program, as a fault of the chip, so that nobody waits for ever for it."""
    return SimulationError(f"internal error, please report it: {type(error).__name__}: {error}")


class UnsupportedInstruction(SimulationError):
    """An instruction, or a value of one of its fields, that the model does not execute.

    ``chunk`` is the index of the instruction chunk, ``pc`` the bundle within it, ``field`` the
    name of the field (empty: the whole opcode) and ``value`` what the field holds. ``rule`` says
    why it is refused, or, if it is ``assumed`` and assumptions are not wanted, what would be
    executed.
    """

    def __init__(
        self,
        opcode: int,
        chunk: int,
        pc: int,
        field: str,
        value: int,
        rule: str = "",
        *,
        assumed: bool = False,
    ) -> None:
        what = "is an assumption" if assumed else "is not implemented"
        entry = INSTRUCTIONS.get(opcode)
        name = f"opcode {opcode}" if entry is None else entry.name
        is_named = entry is None and field in ("", "opcode")
        held = "" if is_named else f": {field or 'opcode'} = {value}"
        super().__init__(
            f"{name} at chunk {chunk}, pc {pc}{held} {what}" + (f": {rule}" if rule else "")
        )
        self.opcode = opcode
        self.chunk = chunk
        self.pc = pc
        self.field = field
        self.value = value
        self.rule = rule
        self.assumed = assumed


class Deadlock(SimulationError):
    """No unit can go on; ``waiting`` names each waiting unit and what it waits for."""

    def __init__(self, waiting: tuple[str, ...]) -> None:
        super().__init__("deadlock: " + "; ".join(waiting))
        self.waiting = waiting


class NotEnded(SimulationError):
    """A program that goes on and on: ``limit`` says what it has used up, ``doing`` what it did and
    where its units stand.
    """

    def __init__(self, limit: str, doing: tuple[str, ...]) -> None:
        super().__init__(f"the program has not ended after {limit}: " + "; ".join(doing))
        self.limit = limit
        self.doing = doing


class IncompleteProgram(SimulationError):
    """The last instruction chunk halts, but not as the program's end: a further one is awaited."""

    def __init__(self, chunks: int) -> None:
        have = "its only chunk" if chunks == 1 else f"the last of its {chunks} chunks"
        super().__init__(
            f"incomplete: after {have} the program waits for its next instruction chunk; "
            "give the others, in their order, in the same file"
        )
        self.chunks = chunks


class PageFault(SimulationError):
    """A device address that the page table does not map.

    ``address`` is the first byte of the transfer that has no mapping, ``size`` the number of
    bytes of the transfer from there to its end.
    """

    def __init__(self, address: int, size: int) -> None:
        super().__init__(f"page fault at device address {address:#018x} ({size} bytes)")
        self.address = address
        self.size = size


class MemoryFault(SimulationError):
    """An access outside a memory, or damage to bytes that nobody may write."""

    def __init__(self, memory: str, address: int, size: int, reason: str) -> None:
        super().__init__(f"{memory}: {reason} at {address:#x} ({size} bytes)")
        self.memory = memory
        self.address = address
        self.size = size
        self.reason = reason


class UninitialisedRead(SimulationError):
    """Strict mode: bytes are read that nothing has written."""

    def __init__(self, memory: str, address: int, size: int) -> None:
        super().__init__(f"{memory}: read of {size} bytes at {address:#x} that nothing has written")
        self.memory = memory
        self.address = address
        self.size = size


class ChipFault(SimulationError):
    """The program does what the chip cannot do: an address outside a memory, results without place.

    ``chunk`` and ``pc`` name the instruction, ``tile`` is -1 for the scalar core.
    """

    def __init__(
        self, unit: str, reason: str, chunk: int, pc: int, tile: int, address: int
    ) -> None:
        place = f"tile {tile}, " if tile >= 0 else ""
        super().__init__(f"{unit}: {reason} ({place}chunk {chunk}, pc {pc}, address {address:#x})")
        self.unit = unit
        self.reason = reason
        self.chunk = chunk
        self.pc = pc
        self.tile = tile
        self.address = address


class ProgramFault(SimulationError):
    """What was fetched as instruction chunk number ``chunk`` of a program is none."""

    def __init__(self, chunk: int, reason: str) -> None:
        super().__init__(f"instruction chunk {chunk}: {reason}")
        self.chunk = chunk
        self.reason = reason
