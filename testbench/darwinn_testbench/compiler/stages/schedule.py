"""Writes phases as instructions: each ends with a barrier, and its parameters are there before.

This is the one place that decides when parameters come in. They arrive while the phase before
works, unless either phase uses all of wide memory, or both they and rows of tensors would travel on
channel A of the ring.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate

from darwinn_formats.darwinn import Description
from darwinn_formats.errors import Portable
from darwinn_sim import chip
from darwinn_sim.chips.selected import selected
from darwinn_sim.isa.builder import PROGRAM_BUNDLES
from darwinn_sim.isa.codes import (
    DescriptorTag,
    InfeedSource,
    InputFifo,
    RingChannel,
    ScalarFlag,
    TileFlag,
)

from darwinn_testbench.compiler.assembler import (
    Assembler,
    Transfer,
    Watcher,
    signal,
    wait,
    walk,
)
from darwinn_testbench.compiler.parameters import UNIT_BYTES
from darwinn_testbench.compiler.program import barrier, through_buffer, wrapped
from darwinn_testbench.compiler.stages.cache import Cache
from darwinn_testbench.compiler.stages.phases import Phase, Piece

_CHUNK_BUNDLES = PROGRAM_BUNDLES * 3 // 4
"""A phase begins a new chunk when the one before has more bundles: no phase has as many as are
left."""
_MOST_BUNDLES = PROGRAM_BUNDLES - 256
"""Bundles of a chunk, without those that end it."""


class TooLongError(Portable):
    """A phase of ``operation`` has more instructions than program memory has room for."""

    def __init__(self, operation: int) -> None:
        super().__init__("a step of more instructions than program memory holds")
        self.operation = operation


class Parameters:
    """Parameters on their way to where phases need them: from the host, or from a tile."""

    def __init__(
        self, program: Assembler, phases: Sequence[Phase], cache: Cache, ends: Sequence[int]
    ) -> None:
        self._program = program
        self._cache = cache
        # The host sends a chunk behind all that it was asked for before, and what is sent in that
        # chunk may be the only thing that makes room for the rest: so the rest is that of a chunk.
        self._ends = (*ends, sum(_units(piece) for piece in streamed(phases, cache)))
        self._asked = 0
        self.sent = 0
        """Units that the host has been asked for and that have been sent to tiles."""

    def _ask(self, units: int) -> None:
        """Ask the host for more of them; they wait in the parameter buffer as far as it goes."""
        first, size = self._asked, units * UNIT_BYTES
        kind, tag = Description.BASE_ADDRESS_PARAMETER, DescriptorTag.PARAMETERS
        self._program.transfer(Transfer(kind, "", size, tag, first * UNIT_BYTES))
        # Unit k may only come in when unit k - 2048, whose place it takes, has been sent.
        room = Watcher(
            ScalarFlag.PARAMETER_INFEED,
            depth=0,
            expected=wrapped(first + 1 - min(units, chip.PARAMETER_UNITS)),
        )
        self._program.emit(
            "PopInput",
            through_buffer("PopInput", first, units, chip.PARAMETER_UNITS),
            signal(),
            wait("PopInput", room),
            fifo=InputFifo.PARAMETERS,
        )
        self._asked += units

    def load(self, pieces: Sequence[Piece], *, rest: bool) -> None:
        """Have pieces sent to their tiles; kept ones that follow one another travel together.

        With ``rest`` the host is asked for all that the chunk needs, else for these alone.
        """
        coming = sum(_units(each) for each in pieces if self.streams([each]))
        if coming and self.sent == self._asked:
            end = next(each for each in self._ends if each > self.sent)
            self._ask(end - self.sent if rest else coming)
        run: list[Piece] = []
        for piece in pieces:
            if self._cache.segments_of(piece) is None:
                self._broadcast(run)
                run = []
                self._stream(piece)
                continue
            if run and (run[-1].tiles, run[-1].row + len(run[-1].rows)) != (piece.tiles, piece.row):
                self._broadcast(run)
                run = []
            run.append(piece)
        self._broadcast(run)

    def _stream(self, piece: Piece) -> None:
        """From the host, on channel A."""
        program, rows = self._program, piece.rows
        program.tile(
            "RingConsumerA",
            piece.tiles,
            walk("RingConsumerA", "wide_write", piece.row, [(len(rows), 1)]),
        )
        popped = Watcher(ScalarFlag.PARAMETER_POP, depth=0, expected=wrapped(self.sent + 1))
        program.emit(
            "RingInfeed",
            through_buffer("RingInfeed", self.sent, _units(piece), chip.PARAMETER_UNITS),
            signal(),
            wait("RingInfeed", popped),
            fifo=InfeedSource.PARAMETERS,
            targets=piece.tiles,
            row_words=rows.shape[1] // chip.WORD_BYTES - 1,
            sync_increment=1,
        )
        self.sent += _units(piece)

    def _broadcast(self, pieces: Sequence[Piece]) -> None:
        """From the tiles that keep them, on channel B: pieces that lie one behind the other."""
        if not pieces:
            return
        program, first = self._program, pieces[0]
        rows = sum(len(piece.rows) for piece in pieces)
        program.tile(
            "RingConsumerB",
            first.tiles,
            walk("RingConsumerB", "wide_write", first.row, [(rows, 1)]),
        )
        for tile, row, count in _joined(self._cache, pieces):
            turn = program.take_turns(RingChannel.B)
            program.tile(
                "RingProducer",
                1 << tile,
                walk("RingProducer", "wide_read", row, [(count, 1)]),
                signal("token_producer", depth=1),
                wait("RingProducer", Watcher(TileFlag.RING_PRODUCER_B, depth=1, expected=turn)),
                targets=first.tiles,
                consumer_b=1,
            )

    def streams(self, pieces: Sequence[Piece]) -> bool:
        """Whether some of the pieces come from the host."""
        return any(self._cache.segments_of(piece) is None for piece in pieces)


def _joined(cache: Cache, pieces: Sequence[Piece]) -> list[tuple[int, int, int]]:
    """Tile, first row and number of rows of what keeps pieces, neighbours as one."""
    found: list[tuple[int, int, int]] = []
    for piece in pieces:
        for segment in cache.segments_of(piece) or ():
            if found:
                tile, row, count = found[-1]
                if (tile, row + count) == (segment.tile, segment.row):
                    found[-1] = tile, row, count + segment.count
                    continue
            found.append((segment.tile, segment.row, segment.count))
    return found


def streamed(phases: Sequence[Phase], cache: Cache) -> list[Piece]:
    """The pieces that come from the host, in the order in which they are needed."""
    return [piece for phase in phases for piece in phase.load if cache.segments_of(piece) is None]


def _units(piece: Piece) -> int:
    return piece.rows.size // UNIT_BYTES


def write_phases(program: Assembler, phases: Sequence[Phase], cache: Cache) -> None:
    """Write phases, and have their parameters come.

    What the host sends comes in the order in which it is asked for: until the last input is there,
    it is asked for the parameters of each phase alone, when nothing else is to come. Behind it, it
    is asked for those of all phases of a chunk; a trial says which ones these are.

    Raises:
        TooLongError: a phase does not fit program memory.
    """
    sent = _write_phases(Assembler(), phases, cache, {}) if streamed(phases, cache) else {}
    _write_phases(program, phases, cache, sent)


def _write_phases(
    program: Assembler, phases: Sequence[Phase], cache: Cache, begins: Mapping[int, int]
) -> dict[int, int]:
    """Write phases, and find those at which a chunk begins, with the units sent before them.

    ``begins`` are some that have been found before.
    """
    found: dict[int, int] = {}
    parameters = Parameters(program, phases, cache, list(begins.values()))
    last_input = max((k for k, phase in enumerate(phases) if phase.receives), default=-1)
    loaded = -1
    done = -1
    left: Sequence[Piece] | None = None
    for number, phase in enumerate(phases):
        if number == done:
            continue
        if number in begins or program.bundles > _CHUNK_BUNDLES:
            program.next_chunk()
            found[number] = parameters.sent
        before = loaded
        if phase.load and loaded < number:
            parameters.load(phase.load if left is None else left, rest=number > last_input)
            loaded, left = number, None
            barrier(program)
        following = _next_load(phases, number)
        if following is not None and loaded < following:
            load = phases[following].load if left is None else left
            from_host = parameters.streams(load)
            blocked = from_host and (phase.uses_ring or number <= last_input)
            alone = any(each.alone for each in phases[number : following + 1])
            if not (blocked or alone):
                now, left = load, None
                if not from_host:
                    later = sum(each.cycles for each in phases[number + 1 : following])
                    now, left = _in_time(load, phase.cycles, later)
                parameters.load(now, rest=number > last_input)
                loaded = loaded if left else following
        first = _first_behind_edges(phases, number)
        # Its parameters have come in a phase before this one.
        if before >= first > number and phases[first].early and first != done:
            phases[first].emit(program)
            done = first
        phase.emit(program)
        barrier(program)
        if program.bundles > _MOST_BUNDLES:
            raise TooLongError(phase.operation)
    return found


def _in_time(
    pieces: Sequence[Piece], cycles: int, later: int
) -> tuple[Sequence[Piece], Sequence[Piece] | None]:
    """Pieces that come in while a phase works, and those that come ``later`` (None if all come).

    As much as possible is to come in time: within ``cycles``, or within those of later phases.
    """
    rate = selected().ring_bytes_per_cycle.value
    arrived = [0, *accumulate(len(each.rows) * chip.ROW_BYTES / rate for each in pieces)]
    in_time = [min(each, cycles) + min(arrived[-1] - each, later) for each in arrived]
    count = max(range(len(arrived)), key=lambda k: (in_time[k], k))
    return (pieces, None) if count == len(pieces) else (pieces[:count], pieces[count:])


def _first_behind_edges(phases: Sequence[Phase], number: int) -> int:
    """The first phase that is not on the mesh, of those behind a phase that is; else its own."""
    behind = number
    while behind < len(phases) - 1 and phases[behind].on_mesh:
        behind += 1
    return behind


def _next_load(phases: Sequence[Phase], number: int) -> int | None:
    return next((k for k in range(number + 1, len(phases)) if phases[k].load), None)
