"""Hazards: accesses to one word that nothing orders, as the checker (``kernel.order``) found them.

What is before what follows from the program alone: flags and who waits for them, fences, tokens,
queues, rows and words that arrive. Two accesses of one word, one of them a write, with neither
before the other may come in any order on the chip, whatever came of them in this run.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import numpy as np
from darwinn_formats.brief import brief

from darwinn_sim import chip
from darwinn_sim.isa.codes import ScalarFlag, ScalarUnit, TileFlag, TileUnit
from darwinn_sim.isa.table import INSTRUCTIONS
from darwinn_sim.kernel import clocks, state
from darwinn_sim.machine import layers
from darwinn_sim.machine.host_order import HostOrder, Overlap
from darwinn_sim.machine.lowering import LoweredProgram

_PROGRAM_BITS = 22
"""Of an instruction as the clocks number it: those below count through one program."""

_MOST_PROGRAMS = 1 << 31 - _PROGRAM_BITS


class Kind(StrEnum):
    """What was done after what: to a word, or to a flag, which fences load and others count; a read
    of a word that nothing has written."""

    READ_AFTER_WRITE = "read after write"
    WRITE_AFTER_WRITE = "write after write"
    WRITE_AFTER_READ = "write after read"
    COUNT_AFTER_LOAD = "count after load"
    LOAD_AFTER_COUNT = "load after count"
    READ_OF_UNWRITTEN = "read of unwritten"


_KINDS = {
    clocks.READ_AFTER_WRITE: Kind.READ_AFTER_WRITE,
    clocks.WRITE_AFTER_WRITE: Kind.WRITE_AFTER_WRITE,
    clocks.WRITE_AFTER_READ: Kind.WRITE_AFTER_READ,
    clocks.COUNT_AFTER_LOAD: Kind.COUNT_AFTER_LOAD,
    clocks.LOAD_AFTER_COUNT: Kind.LOAD_AFTER_COUNT,
}

_CORE = "scalar core"


@dataclass(frozen=True)
class Access:
    """Who touches the word: an instruction of the ``executable`` of that number in its file, at
    bundle ``pc`` of ``chunk``; its unit, on a ``tile`` (-1: beside the tiles), and the layer it
    belongs to or comes after (-1: it is before the first). Of one that is not known any more the
    name is empty, and the numbers are -1.
    """

    instruction: str
    executable: int
    chunk: int
    pc: int
    unit: str
    tile: int
    layer: int

    def __str__(self) -> str:
        if not self.instruction:
            return f"an earlier instruction of {self.by}"
        return f"{self.where} of executable {self.executable} ({self.by})"

    @property
    def by(self) -> str:
        """The unit, and its tile."""
        return f"{self.unit} of tile {self.tile}" if self.tile >= 0 else self.unit

    @property
    def where(self) -> str:
        """The instruction, and its place in the executable."""
        chunk = f" of chunk {self.chunk}" if self.chunk else ""
        return f"{self.instruction} at pc {self.pc}{chunk}" if self.instruction else "that one"


NOBODY = Access("", -1, -1, -1, "nobody", -1, -1)
"""In the place of who has written a word that nothing has written."""


@dataclass(frozen=True)
class Hazard:
    """Two accesses of ``word`` of ``memory`` (-1: it has none, as a flag) that nothing orders;
    ``first`` came first in this run.

    ``kind`` says what was done after what, ``missing`` what would order them, and ``words`` how
    often the two instructions met in such a way. ``file`` holds the program, where programs of
    several run, each on its chip.

    Of a read of what nothing has written ``second`` is who reads, ``first`` is empty, and
    ``missing`` says what follows from it.
    """

    kind: Kind
    memory: str
    word: int
    first: Access
    second: Access
    missing: str
    words: int
    file: str = ""

    def __str__(self) -> str:
        of_file = f"{self.file}: " if self.file else ""
        where = f"{self.memory}, word {self.word}" if self.word >= 0 else self.memory
        if self.kind is Kind.READ_OF_UNWRITTEN:
            return f"{of_file}{self.second} reads what nothing has written, {where}: {self.missing}"
        one, other = (self.second, self.first) if self.too_early else (self.first, self.second)
        why = f"{self.missing} would; {self.kind}, {where}"
        return f"{of_file}nothing orders {one} before {other}: {why}"

    @property
    def too_early(self) -> bool:
        """Whether the first access is the one that has to wait: a load of a flag for its counts,
        and the scalar core, before which all is that it queues later.
        """
        of_core = self.first.unit == _CORE != self.second.unit
        return self.kind is Kind.COUNT_AFTER_LOAD or of_core


@brief
@dataclass(frozen=True)
class Hazards:
    """What the checker has found since power-up.

    ``redundant`` are writes that nothing orders and that leave the word as it is: no order of them
    gives another result. ``more`` accesses are not listed, and ``dropped`` reads found no place
    beside others of the same word. ``used`` is the share of the clocks that is used up: with 1 they
    stand still, and what comes later is not found.
    """

    found: tuple[Hazard, ...] = ()
    redundant: tuple[Hazard, ...] = ()
    more: int = 0
    dropped: int = 0
    used: float = 0.0


class CheckedPrograms:
    """The programs that have run on a chip, by which its clocks number their instructions."""

    def __init__(self) -> None:
        self._programs: list[_Program] = []
        self._overlaps: dict[tuple[int, int], Overlap] = {}

    def begin(self, core: state.Core, program: LoweredProgram, executable: int = 0) -> None:
        """A program is about to run, which is the ``executable`` of that number in its file."""
        known = enumerate(self._programs)
        number = next((k for k, each in known if each.runs(program, executable)), -1)
        if number < 0:
            number = min(len(self._programs), _MOST_PROGRAMS - 1)
            self._programs[number:] = [_Program(program, executable)]
        core["clocks"]["origin"] = number << _PROGRAM_BITS

    def end(self, transfers: HostOrder) -> None:
        """A program has ended, which moved ``transfers``."""
        for pair, overlap in transfers.found.items():
            if len(self._overlaps) < clocks.MOST_FOUND:
                self._overlaps.setdefault(pair, overlap)

    def unwritten(self, core: state.Core, error: str) -> Hazard:
        """The read of what nothing has written that has ended a program, by the first operand."""
        tile, pc = int(core["origin_tile"]), int(core["origin_pc"])
        memory, word = "host memory", -1
        if core["fault"] == state.FAULT_UNINITIALISED:
            # The scalar core uses it, wherever it comes from.
            memory, tile, pc = "register or predicate", -1, int(core["fault_pc"])
        elif pc >= 0:
            memory = state.MEMORY_NAMES[int(core["origin_memory"])]
            if tile >= 0:
                memory, word = f"{memory} of tile {tile}", int(core["origin_address"]) // 4
        access = self._access_at(core, pc, tile) if pc >= 0 else NOBODY
        return Hazard(Kind.READ_OF_UNWRITTEN, memory, word, NOBODY, access, error, 1)

    def _access_at(self, core: state.Core, pc: int, tile: int) -> Access:
        """The instruction that stands at a pc, of a tile's tensor unit or (-1) the scalar core."""
        origin = int(core["clocks"]["origin"])
        index = self._programs[origin >> _PROGRAM_BITS].at(pc)
        unit = _CORE if tile < 0 else TileUnit.TENSOR.meaning
        return self._access_of(tile, unit, origin + index)

    def hazards(self, core: state.Core) -> Hazards:
        """What the clocks of ``core`` have found since power-up."""
        records = core["clocks"]["found"][: int(core["clocks"]["pairs"])]
        pairs = [(int(each["first"]), int(each["second"])) for each in records]
        real = {pair for pair, each in zip(pairs, records, strict=True) if not each["same"]}
        found = [self._overlap(each) for each in self._overlaps.values()]
        redundant = []
        for pair, record in zip(pairs, records, strict=True):
            if not record["same"]:
                found.append(self._hazard(record))
            elif pair not in real:
                redundant.append(self._hazard(record))
        known = core["clocks"]
        used = int(known["clock"].max()) / clocks.CLOCK_MASK
        more, dropped = int(known["more"]), int(known["dropped"])
        return Hazards(tuple(found), tuple(redundant), more, dropped, used)

    def named(self, record: clocks.Found) -> tuple[str, Access, Access]:
        """The memory or flag of a record, and who touches it first and second."""
        return (
            _place(int(record["word"]))[0],
            self._access(int(record["first_thread"]), int(record["first"])),
            self._access(int(record["second_thread"]), int(record["second"])),
        )

    def _hazard(self, record: clocks.Found) -> Hazard:
        kind = int(record["kind"])
        memory, word = _place(int(record["word"]))
        first, second = (
            self._access(int(record[f"{each}_thread"]), int(record[each]))
            for each in ("first", "second")
        )
        threads = int(record["first_thread"]), int(record["second_thread"])
        reads = kind == clocks.WRITE_AFTER_READ
        if kind == clocks.COUNT_AFTER_LOAD:
            missing = _missing_wait(memory, first, second)
        elif first.unit == _CORE:
            missing = f"a scalar fence that waits for {second.by}"
        else:
            missing = _missing(threads[0], memory, reads, first, second)
        if reads and "flag" in missing:
            # The read may have been meant to come after the write.
            other = _missing(threads[1], memory, False, second, first)
            missing = f"{missing}, or {other} in the other direction,"
        return Hazard(_KINDS[kind], memory, word, first, second, missing, int(record["words"]))

    def _overlap(self, overlap: Overlap) -> Hazard:
        first, second = (
            self._access(clocks.CORE, each.instruction) for each in (overlap.first, overlap.second)
        )
        if overlap.first.reads:
            kind, missing = clocks.WRITE_AFTER_READ, "a scalar fence that waits for the input"
        else:
            kind, missing = clocks.READ_AFTER_WRITE, "a DMA fence"
        return Hazard(_KINDS[kind], "host memory", overlap.address, first, second, missing, 1)

    def _access(self, thread: int, instruction: int) -> Access:
        return self._access_of(*_unit(thread), instruction)

    def _access_of(self, tile: int, unit: str, instruction: int) -> Access:
        if instruction < 0:
            return Access("", -1, -1, -1, unit, tile, -1)
        number, index = instruction >> _PROGRAM_BITS, instruction & (1 << _PROGRAM_BITS) - 1
        program = self._programs[number]
        name, chunk, pc, layer = program.instruction(index)
        return Access(name, program.executable, chunk, pc, unit, tile, layer)


class _Program:
    """A program, for who asks where its instructions are."""

    def __init__(self, program: LoweredProgram, executable: int) -> None:
        self._program = program
        self.executable = executable

    def runs(self, program: LoweredProgram, executable: int) -> bool:
        return self._program.tables is program.tables and self.executable == executable

    @cached_property
    def _layers(self) -> list[int]:
        """The first instruction of each layer."""
        return [each.first for each in layers.find(self._program.chunks)]

    def at(self, pc: int) -> int:
        """The first instruction that stands at a pc, which counts through all chunks."""
        return int(np.flatnonzero(self._program.tables.pc == pc)[0])

    def instruction(self, index: int) -> tuple[str, int, int, int]:
        """Name, chunk, pc in it, and layer of an instruction."""
        tables = self._program.tables
        chunk, pc = self._program.locate(int(tables.pc[index]))
        name = INSTRUCTIONS[int(tables.opcode[index])].name
        return name, chunk, pc, bisect_right(self._layers, index) - 1


_APART = clocks.FIRST_SCALAR_UNIT - clocks.CORE
_BESIDE = (
    _CORE,
    *state.SCALAR_UNIT_NAMES[: state.QUEUED_SCALAR_UNITS],
    "host",
    "ring channel A",
    "ring channel B",
    "turns of channel A",
    "turns of channel B",
)
"""What is beside the tiles, in the order of the clocks."""


def _unit(thread: int) -> tuple[int, str]:
    """Tile (-1: none) and name of a thread."""
    tile, which = clocks.place_of(thread)
    if tile < 0:
        return -1, _BESIDE[(thread - clocks.CORE) // _APART]
    if which == clocks.DISPATCHER:
        return tile, "tile fence"
    return tile, TileUnit(_sends(which)).meaning


def _sends(which: int) -> int:
    """The unit that a thread of a tile belongs to: mesh units have two."""
    return which if which < chip.TILE_UNITS else which - chip.TILE_UNITS + TileUnit.MESH_SOUTH


_MEMORIES: tuple[tuple[int, str], ...] = (
    (clocks.SCALAR_BASE, "scalar memory"),
    (clocks.ACTIVATION_BASE, "activation buffer"),
    (clocks.PARAMETER_BASE, "parameter buffer"),
    (clocks.FLAG_BASE, "flag"),
    (clocks.RING_BASE, "ring"),
    (clocks.OUTFEED_TAIL, "rows for the outfeed"),
    (clocks.OUTPUT_TAIL, "output to the host"),
)


def _place(shadow: int) -> tuple[str, int]:
    """Memory and word of a shadow; -1 where the word says nothing."""
    if shadow < clocks.SCALAR_BASE:
        tile, memory, word = clocks.memory_of(shadow)
        return f"{memory} of tile {tile}", word
    number = bisect_right(_MEMORIES, shadow, key=lambda each: each[0]) - 1
    base, name = _MEMORIES[number]
    word = shadow - base
    if name == "flag":
        return _flag(word), -1
    if name == "ring":
        return f"ring channel {'AB'[word % 2]} to tile {word // 2}", -1
    return (name, -1) if base >= clocks.OUTFEED_TAIL else (name, word)


def _flag(number: int) -> str:
    tile, flag = divmod(number, chip.TILE_FLAGS + 1)
    if tile == chip.TILES:
        return f"flag {flag} ({ScalarFlag(flag).label}) of the scalar core"
    if flag == chip.TILE_FLAGS:
        return f"fence count of tile {tile}"
    return f"flag {flag} ({TileFlag(flag).label}) of tile {tile}"


_RECEIVED = (
    TileFlag.MESH_INBOUND_FROM_NORTH,
    TileFlag.MESH_INBOUND_FROM_EAST,
    TileFlag.MESH_INBOUND_FROM_SOUTH,
    TileFlag.MESH_INBOUND_FROM_WEST,
)
_SENT = (
    TileFlag.MESH_OUTBOUND_FOR_SOUTH,
    TileFlag.MESH_OUTBOUND_FOR_WEST,
    TileFlag.MESH_OUTBOUND_FOR_NORTH,
    TileFlag.MESH_OUTBOUND_FOR_EAST,
)

_TILE_FLAG: dict[int, TileFlag] = {
    TileUnit.RING_PRODUCER: TileFlag.RING_BUS_WRITE,
    TileUnit.RING_CONSUMER_A: TileFlag.RING_BUS_READ_A,
    TileUnit.RING_CONSUMER_B: TileFlag.RING_BUS_READ_B,
    TileUnit.WIDE_TO_NARROW: TileFlag.WIDE_TO_NARROW_WRITE,
    TileUnit.NARROW_TO_WIDE: TileFlag.NARROW_TO_WIDE_WRITE,
    **{TileUnit.MESH_SOUTH + link: flag for link, flag in enumerate(_SENT)},
    **{chip.TILE_UNITS + link: flag for link, flag in enumerate(_RECEIVED)},
}
"""The flag by which a unit says how far it is."""

_SCALAR_FLAG: dict[int, ScalarFlag] = {
    ScalarUnit.AV_POP: ScalarFlag.AV_POP,
    ScalarUnit.PARAMETER_POP: ScalarFlag.PARAMETER_POP,
    ScalarUnit.RING_OUTFEED: ScalarFlag.RING_OUTFEED,
}
_INFEED_FLAG = {
    "activation buffer": ScalarFlag.AV_INFEED,
    "parameter buffer": ScalarFlag.PARAMETER_INFEED,
    "scalar memory": ScalarFlag.SCALAR_INFEED,
}


def _missing_wait(memory: str, load: Access, count: Access) -> str:
    """What would order a count of a flag before the load that came first."""
    if TileFlag.RING_PRODUCER_A.label in memory or TileFlag.RING_PRODUCER_B.label in memory:
        return f"a wait of {load.where} for that turn"
    if load.tile not in (-1, count.tile):
        return "fences of both tiles, and a scalar fence between"
    return f"a wait of {load.where} for {count.by}, before it loads the flag,"


def _missing(thread: int, memory: str, reads: bool, first: Access, second: Access) -> str:
    """What would order the first access before the second."""
    tile, which = clocks.place_of(thread)
    if memory.startswith(("ring channel", "rows for")):
        channel = 1 if "channel B" in memory else 0
        return f"a turn counted by flag {TileFlag.RING_PRODUCER_A + channel} of the tiles"
    if memory.startswith(("flag", "fence count")) or second.unit == _CORE:
        fence = "a tile fence" if tile >= 0 and tile == second.tile else "a scalar fence"
        return f"{fence} that waits for {first.unit}"
    if tile < 0:
        unit = (thread - clocks.FIRST_SCALAR_UNIT) // _APART
        flag = _SCALAR_FLAG.get(unit)
        if unit == ScalarUnit.RING_INFEED:
            flag = _INFEED_FLAG.get(memory)
        if flag is None:
            return f"a scalar fence that waits for {first.unit}"
        return f"flag {int(flag)} ({flag.label}) of the scalar core"
    if second.tile != tile:
        return "fences of both tiles, and a scalar fence between"
    if which == TileUnit.TENSOR:
        number = _tensor_flag(memory, reads)
    elif which == TileUnit.WIDE_TO_NARROW and memory.startswith("scale/bias"):
        number = TileFlag.WIDE_TO_SCALING
    else:
        number = _TILE_FLAG[which]
    return f"flag {int(number)} ({TileFlag(number).label})"


def _tensor_flag(memory: str, reads: bool) -> TileFlag:
    if not memory.startswith("wide"):
        return TileFlag.ACTIVATION_WRITE
    return TileFlag.PARAMETER_READ if reads else TileFlag.PARTIAL_SUM_WRITE
