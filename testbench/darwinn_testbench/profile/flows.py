"""Who takes what whom gives: from descriptors to transfers, pops, the ring, tiles and the outfeed.

Nothing of this is recorded with the spans; it follows from what the instructions move. Bytes of a
stream and rows of a queue are taken in the order in which they are given, so that of each taker the
giver of its first element is found by counting. Units of the scalar core's buffers lie at
addresses: a ring infeed reads what the last pop before has written there. So do values in a tile:
from each memory a unit takes what the latest writer of anything that it reads there has put into
it when it begins. Where
what is given and what is taken do not add up, as for sizes that registers decide, nothing is said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from darwinn_sim import chip
from darwinn_sim.chip import WORD_BYTES
from darwinn_sim.host.dma_trace import TransferDirection, TransferKind
from darwinn_sim.isa.codes import InfeedSource
from darwinn_sim.isa.table import BY_NAME
from darwinn_sim.machine.lowering import LoweredProgram
from darwinn_sim.timing import CHIP_STATION_NAMES, TILE_STATION_NAMES, Timing
from darwinn_sim.units.mesh_bus import neighbour
from darwinn_sim.units.ring_bus import OUTFEED_TARGET
from numpy.typing import NDArray

from darwinn_testbench.profile.touched import MEMORIES, PLACES, Touched

Numbers = NDArray[np.int64]

_POPS = {
    "activation pop": (chip.ACTIVATION_UNIT_BYTES, (TransferKind.INPUT, TransferKind.SCRATCH)),
    "parameter pop": (chip.PARAMETER_UNIT_BYTES, (TransferKind.PARAMETER,)),
}
"""Stations that take bytes from the host: the bytes of one element, and what the transfers move."""
_CONSUMERS = ("ring consumer A", "ring consumer B")
_UNIT_WORDS = {
    InfeedSource.PARAMETERS: chip.PARAMETER_UNIT_BYTES // WORD_BYTES,
    InfeedSource.ACTIVATIONS: chip.ACTIVATION_UNIT_BYTES // WORD_BYTES,
    InfeedSource.SCALAR_MEMORY: 1,
}
_OUTPUT_UNIT_BYTES = 8
_BUFFER_UNITS = {
    InfeedSource.PARAMETERS: chip.PARAMETER_UNITS,
    InfeedSource.ACTIVATIONS: chip.ACTIVATION_UNITS,
}

_LINKS = ("south", "west", "north", "east")
"""Of the mesh, by their numbers."""
_NOBODY = -1

End = tuple[Literal["descriptor", "transfer", "span"], int]
"""A descriptor or a transfer by its number in ``Timing.transfers``, a span by that in ``spans``."""


@dataclass(frozen=True)
class Flow:
    """From who gives to who takes."""

    source: End
    target: End


def flows(timing: Timing) -> Iterator[Flow]:
    """All of them; ``timing`` was simulated with spans."""
    found = _Found(timing)
    yield from found.descriptors()
    yield from found.pops()
    yield from found.infeeds()
    yield from found.rows()
    yield from found.within_tiles()
    yield from found.mesh()
    yield from found.outputs()


def moved_bytes(program: LoweredProgram) -> Numbers:
    """The bytes that an execution of each instruction moves, on one tile; 0 where it moves none,
    and of the tensor unit and ring consumers, whose elements are no fixed number of bytes."""
    tables = program.tables
    sizes = np.zeros(len(tables.opcode), np.int64)
    for names, table, walk, unit in _MOVES:
        opcodes = [BY_NAME[name].opcode for name in names]
        chosen = np.flatnonzero(np.isin(tables.opcode, opcodes))
        records = getattr(tables, table)[tables.row[chosen]]
        sizes[chosen] = counted(records[walk]) * unit(records)
    return sizes


class _Found:
    """The spans by station, and what the instructions of each move."""

    def __init__(self, timing: Timing) -> None:
        self.timing = timing
        self.spans = timing.spans
        self.tables = timing.program.tables

    def descriptors(self) -> Iterator[Flow]:
        """What the scalar core issues becomes a transfer."""
        for number, transfer in enumerate(self.timing.transfers):
            if transfer.issued >= 0 and transfer.kind is not TransferKind.INTERRUPT:
                yield Flow(("descriptor", number), ("transfer", number))

    def pops(self) -> Iterator[Flow]:
        """Bytes of the host's streams, to who pops them."""
        for station, (unit_bytes, kinds) in _POPS.items():
            given = self._transfers(TransferDirection.INFEED, kinds)
            spans = self._of(station)
            taken = unit_bytes * self._elements("pop", "buffer", spans)
            sizes = np.array([self.timing.transfers[each].size for each in given], np.int64)
            for giver, taker in _first(sizes, taken):
                yield Flow(("transfer", given[giver]), ("span", int(spans[taker])))

    def outputs(self) -> Iterator[Flow]:
        """Bytes of the outfeed, to the transfers that take them to the host."""
        kinds = (TransferKind.OUTPUT, TransferKind.SCRATCH)
        taken = self._transfers(TransferDirection.OUTFEED, kinds)
        spans = self._of("ring outfeed")
        rows = self.tables.outfeed[self._row(spans)]
        spans = spans[rows["to_host"] != 0]
        given = _OUTPUT_UNIT_BYTES * self._elements("outfeed", "buffer", spans)
        sizes = np.array([self.timing.transfers[each].size for each in taken], np.int64)
        # The outfeed gives whole units: behind the last bytes of a transfer it pads.
        sizes = -(-sizes // _OUTPUT_UNIT_BYTES) * _OUTPUT_UNIT_BYTES
        for giver, taker in _first(given, sizes):
            yield Flow(("span", int(spans[giver])), ("transfer", taken[taker]))

    def infeeds(self) -> Iterator[Flow]:
        """By the address of the first unit that is read, of the latest pop that wrote it."""
        events = [(int(span), True) for station in _POPS for span in self._of(station)]
        events += [(int(span), False) for span in self._of("ring infeed")]
        last: dict[tuple[int, int], int] = {}
        # A pop is over when the infeed that waits for it goes on: by the ends, pops first.
        for span, is_pop in sorted(events, key=lambda each: self._order(*each)):
            instruction = int(self.spans["instruction"][span])
            row = int(self.tables.row[instruction])
            if is_pop:
                pop = self.tables.pop[row]
                source = InfeedSource(int(pop["fifo"]))
                for address in _addresses(pop["buffer"], _BUFFER_UNITS[source]):
                    last[source, address] = span
            else:
                infeed = self.tables.infeed[row]
                source = InfeedSource(int(infeed["fifo"]))
                address = int(infeed["buffer"]["base"]) % _BUFFER_UNITS.get(source, 1)
                if (source, address) in last:
                    yield Flow(("span", last[source, address]), ("span", span))

    def _order(self, span: int, is_pop: bool) -> tuple[int, bool]:
        return int(self.spans["start" if is_pop else "end"][span]), not is_pop

    def rows(self) -> Iterator[Flow]:
        """Rows of the ring, for each queue at its end: two of each tile, and the outfeed's."""
        infeeds, producers = self._of("ring infeed"), self._of_tiles("ring producer")
        fed, produced = self.tables.infeed[self._row(infeeds)], self.tables.ring_producer
        produced = produced[self._row(producers)]
        givers = np.concatenate([infeeds, producers])
        counts = np.concatenate(
            [self._infeed_rows(infeeds), self._elements("ring_producer", "wide_read", producers)]
        )
        channel = np.concatenate([fed["consumer_b"], produced["consumer_b"]])
        targets = np.concatenate([fed["targets"], produced["targets"]]).astype(np.int64)
        for queue, name in enumerate(_CONSUMERS):
            spans = self._of_tiles(name)
            owners = self.spans["tile"][spans]
            for tile in range(chip.TILES):
                mine = (channel == queue) & (targets >> tile & 1 == 1)
                takers = spans[owners == tile]
                taken = self._elements("ring_consumer", "wide_write", takers)
                yield from self._queue(givers[mine], counts[mine], takers, taken)
        mine = targets >> OUTFEED_TARGET & 1 == 1
        takers = self._of("ring outfeed")
        yield from self._queue(givers[mine], counts[mine], takers, self._outfeed_rows(takers))

    def within_tiles(self) -> Iterator[Flow]:
        """By the places in each memory: to who reads from the latest that has written any of it.

        A span is as long as its work, so that who writes begins before who reads.
        """
        touched = Touched(self.timing.program)
        starts = self.spans["start"]
        order = np.argsort(starts, kind="stable")
        for tile in range(chip.TILES):
            mine = order[self.spans["tile"][order] == tile]
            last = np.full(PLACES, _NOBODY, np.int64)
            for span, instruction in zip(
                mine.tolist(), self.spans["instruction"][mine].tolist(), strict=True
            ):
                reads, writes = touched.by(instruction)
                for places in np.split(reads, np.searchsorted(reads, MEMORIES)):
                    givers = np.unique(last[places])
                    givers = givers[givers != _NOBODY]
                    if givers.size:
                        giver = int(givers[np.argmax(starts[givers])])
                        yield Flow(("span", giver), ("span", span))
                last[writes] = span

    def mesh(self) -> Iterator[Flow]:
        """Words of each link between neighbours, in order."""
        for link, name in enumerate(_LINKS):
            spans = self._of_tiles(f"mesh {name} send")
            records = self.tables.mesh[self._row(spans)]
            sent, received = (
                counted(records[walk]) * (records[walk]["off"] == 0)
                for walk in ("narrow_read", "narrow_write")
            )
            # With an immediate nothing of what arrives is written.
            received = received * (records["immediate_valid"] == 0)
            tiles = self.spans["tile"][spans]
            for tile in range(chip.TILES):
                there = tiles == neighbour(tile, link)
                givers, takers = spans[tiles == tile], spans[there]
                for giver, taker in _first(sent[tiles == tile], received[there]):
                    yield Flow(("span", int(givers[giver])), ("span", int(takers[taker])))

    def _queue(
        self, givers: Numbers, given: Numbers, takers: Numbers, taken: Numbers
    ) -> Iterator[Flow]:
        """Rows are in the queue in the order in which they are sent: evenly in a giver's time."""
        start, end = self.spans["start"][givers], self.spans["end"][givers]
        owner = np.repeat(np.arange(len(givers)), given)
        place = np.arange(given.sum()) - np.repeat(np.cumsum(given) - given, given)
        times = start[owner] + (place + 1) * ((end - start) / np.maximum(given, 1))[owner]
        owner = owner[np.argsort(times, kind="stable")]
        if len(owner) != taken.sum():
            return
        first = np.cumsum(taken) - taken
        for taker in np.flatnonzero(taken):
            giver = int(givers[owner[first[taker]]])
            yield Flow(("span", giver), ("span", int(takers[taker])))

    def _infeed_rows(self, spans: Numbers) -> Numbers:
        rows = self.tables.infeed[self._row(spans)]
        words = np.array([_UNIT_WORDS[InfeedSource(int(each))] for each in rows["fifo"]], np.int64)
        units = rows["row_words"].astype(np.int64) // np.maximum(words, 1) + 1
        return -(-self._elements("infeed", "buffer", spans) // units)

    def _outfeed_rows(self, spans: Numbers) -> Numbers:
        rows = self.tables.outfeed[self._row(spans)]
        units = rows["row_words"].astype(np.int64) // np.where(rows["to_host"], 2, 1) + 1
        return -(-self._elements("outfeed", "buffer", spans) // units)

    def _transfers(self, direction: TransferDirection, kinds: Sequence[TransferKind]) -> list[int]:
        return [
            number
            for number, each in enumerate(self.timing.transfers)
            if each.kind in kinds and each.direction is direction
        ]

    def _of(self, station: str) -> Numbers:
        """The spans of one of the chip's own stations, in order."""
        number = CHIP_STATION_NAMES.index(station)
        return np.flatnonzero((self.spans["tile"] < 0) & (self.spans["station"] == number))

    def _of_tiles(self, station: str) -> Numbers:
        number = TILE_STATION_NAMES.index(station)
        return np.flatnonzero((self.spans["tile"] >= 0) & (self.spans["station"] == number))

    def _row(self, spans: Numbers) -> Numbers:
        rows: Numbers = self.tables.row[self.spans["instruction"][spans]]
        return rows

    def _elements(self, table: str, walk: str, spans: Numbers) -> Numbers:
        return counted(getattr(self.tables, table)[self._row(spans)][walk])


def _fifo_bytes(records: NDArray[np.void]) -> Numbers:
    units = np.zeros(max(_UNIT_WORDS) + 1, np.int64)
    for source, words in _UNIT_WORDS.items():
        units[source] = words * WORD_BYTES
    found: Numbers = units[records["fifo"]]
    return found


def _outfeed_bytes(records: NDArray[np.void]) -> Numbers:
    found: Numbers = np.where(records["to_host"], _OUTPUT_UNIT_BYTES, WORD_BYTES)
    return found


Unit = Callable[[NDArray[np.void]], Any]
_MESH = ("MeshSouth", "MeshWest", "MeshNorth", "MeshEast")
_MOVES: Sequence[tuple[Sequence[str], str, str, Unit]] = (
    (("PopInput",), "pop", "buffer", _fifo_bytes),
    (("RingInfeed",), "infeed", "buffer", _fifo_bytes),
    (("RingOutfeed",), "outfeed", "buffer", _outfeed_bytes),
    (("RingProducer",), "ring_producer", "wide_read", lambda _: chip.ROW_BYTES),
    (("NarrowToWide",), "narrow_to_wide", "narrow_read", lambda _: WORD_BYTES),
    (("WideToNarrow",), "wide_to_narrow", "narrow_write", lambda _: WORD_BYTES),
    (
        _MESH,
        "mesh",
        "narrow_read",
        lambda records: WORD_BYTES * (records["narrow_read"]["off"] == 0),
    ),
)
"""Instructions that move elements of one size: their table, what walks, the bytes of an element."""


def counted(walks: NDArray[np.void]) -> Numbers:
    """The elements of traversals (records of ``traversal.Parameters``), prologues included."""
    prologues = _passes(walks, walks["prologue_loop"] + 1)
    lengths = walks["prologue_length"].astype(np.int64)
    elements: Numbers = _passes(walks, np.zeros_like(prologues)) + lengths * prologues
    return elements


def _passes(walks: NDArray[np.void], first: Numbers) -> Numbers:
    """How often the loops from ``first`` on go round, all together.

    In the last pass of its ``alternate_loop`` a traversal has another limit of a loop within.
    """
    loops = np.arange(walks["limit"].shape[-1])
    within = (loops < walks["loops"][..., None]) & (loops >= first[..., None])
    counts = np.where(within, walks["limit"].astype(np.int64) + 1, 1)
    outer, inner = (
        np.take_along_axis(counts, walks[name][..., None].astype(np.int64), axis=-1)[..., 0]
        for name in ("alternate_loop", "alternate_target")
    )
    missing = inner - 1 - walks["alternate_limit"].astype(np.int64)
    changed = (walks["alternate_loop"] != 0) & (walks["alternate_target"] >= first)
    whole = counts.prod(axis=-1)
    fewer = np.where(changed, whole // (outer * inner) * missing, 0)
    passes: Numbers = (whole - fewer).astype(np.int64)
    return passes


def _first(given: Numbers, taken: Numbers) -> Iterator[tuple[int, int]]:
    """Of each taker of a stream the giver of its first element, both by their numbers."""
    ends = np.cumsum(given)
    if not len(given) or not len(taken) or ends[-1] != taken.sum():
        return
    places = np.searchsorted(ends, np.cumsum(taken) - taken, side="right")
    for taker in np.flatnonzero(taken).tolist():
        yield int(places[taker]), taker


def _addresses(walk: NDArray[np.void], modulus: int) -> list[int]:
    """The units that a traversal of a buffer visits."""
    found = np.array([int(walk["base"])], np.int64)
    loops = int(walk["loops"])
    for step, limit in zip(walk["step"][:loops], walk["limit"][:loops], strict=True):
        found = np.unique(np.add.outer(found, int(step) * np.arange(int(limit) + 1)) % modulus)
    addresses: list[int] = found.tolist()
    return addresses
