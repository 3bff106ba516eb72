"""The pyuvm environment of a single tile: stand-ins for the scalar core and the ring, a passive
monitor of its units, and a scoreboard that compares every transaction."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from cocotb.triggers import RisingEdge
from darwinn_sim import chip
from pyuvm import ConfigDB, uvm_component, uvm_driver, uvm_env, uvm_sequence, uvm_sequence_item

from darwinn_rtl.bench import Bench
from darwinn_rtl.environment import (
    EnvironmentTest,
    EventMonitor,
    SequencedAgent,
    Subscriber,
)
from darwinn_rtl.tile.bench import LINKS, RingRow

CYCLES_PER_INSTRUCTION = 2000
"""Bound of the wait for a program."""

_WORDS_BITS, _TARGET_BITS = 7, chip.TILES + 1


@dataclass(frozen=True)
class Taken:
    """The tile has taken an instruction into its queue."""

    cycle: int
    opcode: int


@dataclass(frozen=True)
class Worked:
    """A unit (numbered as in ``TileFence.wait_idle``) has worked up to this cycle."""

    cycle: int
    unit: int
    since: int


@dataclass(frozen=True)
class Counted:
    """A sync flag has a new value."""

    cycle: int
    flag: int
    value: int


@dataclass(frozen=True)
class RowSent:
    """The ring producer has sent a row."""

    cycle: int
    row: RingRow


@dataclass(frozen=True)
class WordSent:
    """A mesh unit has sent a word."""

    cycle: int
    link: int
    word: int


@dataclass(frozen=True)
class FencePassed:
    """A tile fence that counts has been passed."""

    cycle: int


TileEvent = Taken | Worked | Counted | RowSent | WordSent | FencePassed


@dataclass
class TileProgram:
    """Encoded instructions with the rows that arrive on channel A, and the expected results: rows
    and words that leave, the flags at the end, the number of counting fences."""

    instructions: list[bytes]
    rows_in: list[Sequence[int]]
    rows_out: list[RingRow]
    words_out: dict[int, list[int]]
    flags: list[int]
    fences: int = 0


class InstructionItem(uvm_sequence_item):
    """An instruction for the tile."""

    def __init__(self, encoded: bytes) -> None:
        super().__init__("instruction")
        self.encoded = encoded


class GiveInstructions(uvm_sequence):
    """Gives instructions in order."""

    def __init__(self, instructions: Sequence[bytes]) -> None:
        super().__init__("give_instructions")
        self._instructions = instructions

    async def body(self) -> None:
        """Give them."""
        for encoded in self._instructions:
            item = InstructionItem(encoded)
            await self.start_item(item)
            await self.finish_item(item)


class InstructionDriver(uvm_driver):
    """Offers one instruction after another."""

    def build_phase(self) -> None:
        """Nothing is on offer."""
        self.bench: Bench = ConfigDB().get(self, "", "BENCH")
        self.bench.dut.core2tile_instruction_valid.value = 0
        self.bench.dut.core2tile_base_valid.value = 0

    async def run_phase(self) -> None:
        """Take items from the sequencer for ever."""
        dut = self.bench.dut
        edge = RisingEdge(dut.clk)
        while True:
            item = await self.seq_item_port.get_next_item()
            dut.core2tile_instruction_data.value = int.from_bytes(item.encoded, "little")
            dut.core2tile_instruction_valid.value = 1
            await edge
            while not int(dut.core2tile_instruction_ready.value):
                await edge
            dut.core2tile_instruction_valid.value = 0
            self.seq_item_port.item_done()


class InstructionAgent(SequencedAgent):
    """Sequencer and driver of the tile's queue."""

    driver_class = InstructionDriver


class Neighbourhood(uvm_component):
    """Ring and mesh around the tile: rows arrive on channel A, and a ``share`` of the cycles takes
    the tile's rows and words."""

    share = 0.7

    def build_phase(self) -> None:
        """Nothing arrives."""
        self.bench: Bench = ConfigDB().get(self, "", "BENCH")
        self.rows: deque[Sequence[int]] = deque()
        for name in ("ring2tile_row_valid", "ring2tile_token_valid", "mesh2tile_word_valid"):
            getattr(self.bench.dut, name).value = 0

    async def run_phase(self) -> None:
        """Offer rows, and take at random."""
        dut, random = self.bench.dut, self.bench.random
        edge = RisingEdge(dut.clk)
        offered = False
        while True:
            await edge
            if offered and int(dut.ring2tile_row_ready.value) & 1:
                self.rows.popleft()
            offered = bool(self.rows) and not self.bench.in_reset
            if offered:
                words = self.rows[0]
                packed = sum(word << 32 * k for k, word in enumerate(words))
                dut.ring2tile_row_data.value = packed
                dut.ring2tile_row_words.value = len(words)
            dut.ring2tile_row_valid.value = int(offered)
            dut.tile2ring_row_ready.value = int(random.random() < self.share)
            links = sum((random.random() < self.share) << link for link in range(LINKS))
            dut.tile2mesh_word_ready.value = links


def ring_row(record: int) -> RingRow:
    """The row that a signal of type ``ring_row_t`` holds."""
    data = record.to_bytes(chip.ROW_BYTES + 4, "little")
    head = record >> 8 * chip.ROW_BYTES
    count = head & ((1 << _WORDS_BITS) - 1)
    words = (data[4 * k : 4 * k + 4] for k in range(count))
    return RingRow(
        tuple(int.from_bytes(word, "little") for word in words),
        channel=head >> _WORDS_BITS + 1 & 1,
        targets=head >> _WORDS_BITS + 2 & ((1 << _TARGET_BITS) - 1),
        token=bool(head >> _WORDS_BITS & 1),
    )


class TileMonitor(EventMonitor):
    """Announces the tile's inputs, the work of its units, and its outputs."""

    def build_phase(self) -> None:
        """Nothing has happened."""
        super().build_phase()
        self._flags = [0] * chip.TILE_FLAGS
        self._busy: dict[int, int] = {}

    def watch(self) -> None:
        """Announce the events of this cycle."""
        dut = self.bench.dut
        if dut.core2tile_instruction_valid.value and dut.core2tile_instruction_ready.value:
            header = int(dut.core2tile_instruction_data.value)
            self.announce(Taken(self.bench.cycle, header >> 6 & 0x3F))
        if dut.tile2core_fence_valid.value:
            self.announce(FencePassed(self.bench.cycle))
        if dut.tile2ring_row_valid.value and dut.tile2ring_row_ready.value:
            record = int(dut.tile2ring_row_data.value)
            self.announce(RowSent(self.bench.cycle, ring_row(record)))
        self._watch_words()
        self._watch_units()
        self._watch_flags()

    def _watch_words(self) -> None:
        dut = self.bench.dut
        sent = int(dut.tile2mesh_word_valid.value) & int(dut.tile2mesh_word_ready.value)
        if not sent:
            return
        data = int(dut.tile2mesh_word_data.value)
        for link in range(LINKS):
            if sent >> link & 1:
                word = data >> 32 * link & 0xFFFF_FFFF
                self.announce(WordSent(self.bench.cycle, link, word))

    def _watch_units(self) -> None:
        idle = int(self.bench.dut.tile2core_units_idle.value)
        for unit in range(chip.TILE_UNITS):
            if not idle >> unit & 1:
                self._busy.setdefault(unit, self.bench.cycle)
            elif unit in self._busy:
                self.announce(Worked(self.bench.cycle, unit, self._busy.pop(unit)))

    def _watch_flags(self) -> None:
        packed = int(self.bench.dut.tile2core_flags.value)
        for flag, before in enumerate(self._flags):
            value = packed >> 16 * flag & 0xFFFF
            if value != before:
                self._flags[flag] = value
                self.announce(Counted(self.bench.cycle, flag, value))


@dataclass
class _Expected:
    opcodes: deque[int] = field(default_factory=deque)
    rows: deque[RingRow] = field(default_factory=deque)
    words: dict[int, deque[int]] = field(default_factory=dict)
    fences: int = 0


class TileScoreboard(uvm_component):
    """Compares each transaction, as it happens, with the next one that is expected."""

    def build_phase(self) -> None:
        """Expect nothing."""
        self.events = Subscriber("events", self, self._event)
        self.expected = _Expected()
        self.flags = [0] * chip.TILE_FLAGS
        self.units: set[int] = set()

    def expect(self, program: TileProgram) -> None:
        """Expect the results of ``program``."""
        self.expected = _Expected(
            deque(encoded[0] >> 6 | (encoded[1] & 0xF) << 2 for encoded in program.instructions),
            deque(program.rows_out),
            {link: deque(words) for link, words in program.words_out.items()},
            program.fences,
        )

    def _event(self, event: TileEvent) -> None:
        expected = self.expected
        match event:
            case Taken(_, opcode):
                _next(expected.opcodes, opcode, event)
            case RowSent(_, row):
                _next(expected.rows, row, event)
            case WordSent(_, link, word):
                _next(expected.words.get(link, deque()), word, event)
            case Counted(_, flag, value):
                self.flags[flag] = value
            case FencePassed():
                expected.fences -= 1
            case Worked(_, unit, _):
                self.units.add(unit)

    @property
    def complete(self) -> bool:
        """True if every expected item has come."""
        expected = self.expected
        left = (expected.opcodes, expected.rows, *expected.words.values())
        return not any(left) and not expected.fences


def _next(expected: deque[Any], found: Any, event: TileEvent) -> None:
    """Take the next expected item, and check that it equals the found one."""
    assert expected, f"nothing is expected, but {event}"
    assert found == expected[0], f"expected {expected[0]}, but {event}"
    expected.popleft()


class TileEnvironment(uvm_env):
    """Everything around the tile."""

    def build_phase(self) -> None:
        """Create the parts."""
        self.bench: Bench = ConfigDB().get(self, "", "BENCH")
        self.instructions = InstructionAgent.create("instructions", self)
        self.neighbourhood = Neighbourhood.create("neighbourhood", self)
        self.monitor = TileMonitor.create("monitor", self)
        self.scoreboard = TileScoreboard.create("scoreboard", self)

    def connect_phase(self) -> None:
        """Connect the monitor to the scoreboard."""
        self.monitor.events.connect(self.scoreboard.events.analysis_export)

    async def run_program(self, program: TileProgram) -> None:
        """Run ``program`` after a reset and compare everything.

        Raises ``AssertionError`` or ``WaitTimeout``.
        """
        self.scoreboard.expect(program)
        await self.bench.reset()
        self.neighbourhood.rows.extend(program.rows_in)
        await GiveInstructions(program.instructions).start(self.instructions.sequencer)
        await self.bench.until(
            lambda: self.scoreboard.complete and bool(self.bench.dut.tile2core_idle.value),
            "the program's end",
            CYCLES_PER_INSTRUCTION * len(program.instructions),
        )
        await self.bench.cycles(2)
        assert self.scoreboard.flags == program.flags, (self.scoreboard.flags, program.flags)


class TileTest(EnvironmentTest):
    """A test of a tile."""

    environment_class = TileEnvironment
