"""A model of the host memories that answer in order, cycle by cycle, from their description."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

OKAY, SLAVE_ERROR = 0, 2


class Region(NamedTuple):
    """``size`` bytes from a bus address on, which stand from ``place`` on."""

    start: int
    size: int
    place: int


@dataclass(frozen=True)
class Kind:
    """A memory with buses so wide that answers so many cycles later and holds so many requests."""

    data_bytes: int
    latency: int
    requests: int

    @property
    def inputs(self) -> dict[str, int]:
        """Bits of each input."""
        return {
            **dict.fromkeys(("rst_n", "arvalid", "rready", "awvalid", "wvalid", "bready"), 1),
            **dict.fromkeys(("araddr", "awaddr"), 40),
            **dict.fromkeys(("arid", "awid"), 2),
            "arlen": 8,
            "wdata": 8 * self.data_bytes,
            "wstrb": self.data_bytes,
            "wlast": 1,
        }

    @property
    def outputs(self) -> dict[str, int]:
        """Bits of each output."""
        return {
            **dict.fromkeys(("arready", "rvalid", "rlast", "awready", "wready", "bvalid"), 1),
            **dict.fromkeys(("rid", "rresp", "bid", "bresp"), 2),
            "rdata": 8 * self.data_bytes,
        }


class Request(NamedTuple):
    """A read that waits for the cycle ``due``; ``words`` is less one."""

    due: int
    id: int
    words: int
    address: int


@dataclass
class HostMemory:
    """Host memory, as it is described."""

    kind: Kind
    bytes: list[int | None]
    """None where nobody has written."""
    regions: list[Region]
    now: int = 0
    reads: deque[Request] = field(default_factory=deque)
    given: int = 0
    """Words of the first read that have been given."""
    word: tuple[int, str, int, int] | None = None
    """What the read channel has: identifier, bits, response, and whether it is the last."""
    writing: tuple[int, int, bool] | None = None
    """The burst that comes: its identifier, the next address, and whether it has failed."""
    answers: deque[tuple[int, int, bool]] = field(default_factory=deque)
    """The cycle from which on, the identifier, and whether the burst has failed."""
    answer: tuple[int, int] | None = None
    """What the answer channel has."""

    def outputs(self, stall: int = 0) -> dict[str, str | None]:
        """Bits of each output; None where it has no meaning.

        ``stall`` has a bit for each channel that is held back: AR, R, AW, W, B.
        """
        identifier, data, response, last = self.word or (None,) * 4
        answered, outcome = self.answer or (None,) * 2
        numbers = {
            "arready": len(self.reads) < self.kind.requests and not stall & 1,
            "rvalid": self.word is not None,
            "rid": identifier,
            "rresp": response,
            "rlast": last,
            "awready": self.writing is None
            and len(self.answers) < self.kind.requests
            and not stall & 4,
            "wready": self.writing is not None and not stall & 8,
            "bvalid": self.answer is not None,
            "bid": answered,
            "bresp": outcome,
        }
        widths = self.kind.outputs
        found = {
            name: None if value is None else f"{value:0{widths[name]}b}"
            for name, value in numbers.items()
        }
        return found | {"rdata": data}

    def after(self, given: Mapping[str, int], stall: int = 0) -> HostMemory:
        """The memory after a cycle with these inputs."""
        if not given["rst_n"]:
            return HostMemory(self.kind, self.bytes, self.regions)
        outputs = self.outputs(stall)
        read_asked, write_asked, word_written = (
            given[f"{channel}valid"] and outputs[f"{channel}ready"] == "1"
            for channel in ("ar", "aw", "w")
        )
        self._read(rready=bool(given["rready"]), stall=bool(stall & 2))
        self._answer(bready=bool(given["bready"]), stall=bool(stall & 16))
        if read_asked:
            due = self.now + self.kind.latency
            self.reads.append(Request(due, given["arid"], given["arlen"], given["araddr"]))
        if word_written:
            self._write(given)
        if write_asked:
            self.writing = given["awid"], given["awaddr"], False
        self.now += 1
        return self

    def _read(self, *, rready: bool, stall: bool) -> None:
        if self.word is not None and not rready:
            return
        self.word = None
        if stall or not self.reads or self.now < self.reads[0].due:
            return
        first = self.reads[0]
        size, last = self.kind.data_bytes, self.given == first.words
        begin = first.address + size * self.given
        places = [self.place_of(begin + lane) for lane in range(size)]
        known = [self.bits_at(place) for place in reversed(places)]
        response = OKAY if any(at is not None for at in places) else SLAVE_ERROR
        self.word = first.id, "".join(known), response, last
        self.given = 0 if last else self.given + 1
        if last:
            self.reads.popleft()

    def _answer(self, *, bready: bool, stall: bool) -> None:
        if self.answer is not None and not bready:
            return
        self.answer = None
        if self.answers and not stall and self.now >= self.answers[0][0]:
            _, identifier, failed = self.answers.popleft()
            self.answer = identifier, SLAVE_ERROR if failed else OKAY

    def _write(self, given: Mapping[str, int]) -> None:
        assert self.writing is not None
        identifier, address, failed = self.writing
        for lane in range(self.kind.data_bytes):
            if given["wstrb"] >> lane & 1:
                place = self.place_of(address + lane)
                failed |= place is None
                if place is not None:
                    self.bytes[place] = given["wdata"] >> 8 * lane & 0xFF
        self.writing = identifier, address + self.kind.data_bytes, failed
        if given["wlast"]:
            self.answers.append((self.now + self.kind.latency, identifier, failed))
            self.writing = None

    def place_of(self, address: int) -> int | None:
        """Where the byte of a bus address stands, if it is in a region."""
        for region in self.regions:
            if region.start <= address < region.start + region.size:
                return region.place + address - region.start
        return None

    def bits_at(self, place: int | None) -> str:
        """Bits of the byte at a place; without one they are unknown."""
        byte = None if place is None else self.bytes[place]
        return "x" * 8 if byte is None else f"{byte:08b}"


CYCLES = 3000
KINDS = (Kind(8, 4, 3), Kind(4, 0, 1), Kind(32, 9, 200))

READ = (Region(0x1000, 100, 0), Region(0x1050, 64, 100))
"""The second begins before the end of the first, which has what both have."""
WRITTEN = (Region(0xFF_0000_0010, 256, 200), Region(0x8000, 1, 199))
REGIONS, BYTES = (*READ, *WRITTEN), 456
"""Of a byte that is read and written in one cycle nothing is said."""


def drawn(random: Random, kind: Kind, cycle: int) -> dict[str, int]:
    """Inputs of a cycle, with addresses around both ends of regions. For a while much is asked for
    and little is taken, then the other way round."""
    busy = cycle // 500 % 2

    def address(regions: tuple[Region, ...]) -> int:
        region = random.choice(regions)
        end = random.choice((region.start, region.start + region.size))
        return end + random.randrange(-3 * kind.data_bytes, 2 * kind.data_bytes)

    values = {name: random.getrandbits(width) for name, width in kind.inputs.items()}
    return values | {
        "rst_n": int(cycle > 1 and random.random() > 0.002),
        "araddr": address(READ),
        "arlen": random.choice((0, 0, 1, 2, 5, values["arlen"] if cycle % 7 == 0 else 17)),
        "arvalid": int(random.random() < (0.1, 0.6)[busy]),
        "rready": int(random.random() < (0.9, 0.5)[busy]),
        "awaddr": address(WRITTEN),
        "wstrb": random.choice(((1 << kind.data_bytes) - 1, values["wstrb"], 0, 1)),
        "wlast": int(random.random() < 0.4),
        "bready": int(random.random() < (0.9, 0.02)[busy]),
    }
