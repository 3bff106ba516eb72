"""The rules of AXI4 on a port whose two sides are driven here: each is told under its name where it
alone is broken; what is legal, however odd, is not.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from random import Random

import numpy as np
import pytest
from darwinn_rtl.axi_rules import RULES, Rule, updated
from harness_runs import require_toolchain

Cycle = dict[str, int]
"""Signals that are not 0 in a cycle."""

_WIDE = ("araddr", "rdata", "awaddr", "wdata")
_NARROW = (
    *("rst_n", "arvalid", "arready", "arid", "arlen", "arsize", "arburst"),
    *("rvalid", "rready", "rid", "rresp", "rlast"),
    *("awvalid", "awready", "awid", "awlen", "awsize", "awburst"),
    *("wvalid", "wready", "wstrb", "wlast", "bvalid", "bready", "bid", "bresp"),
    *("lite", "offered", "taken", "ended"),
)
_RECORD = np.dtype(
    [*((name, "<u8") for name in _WIDE), *((name, "u1") for name in _NARROW)], align=True
)
"""``Cycle`` of rtl/bench/axi_bench.cpp."""

FIXED, INCREMENTING, WRAPPING, RESERVED = range(4)
OKAY, EXCLUSIVE, SLAVE_ERROR, DECODE_ERROR = range(4)
RESET: Cycle = {"rst_n": 0}
IDLE: Cycle = {}
OUTSTANDING, LONGEST_WAIT, LONGEST_ANSWER = 4, 400, 300
"""What the port of the bench is made for."""
ENDED: Cycle = {"ended": 1}


@cache
def _bench() -> ctypes.CDLL:
    from darwinn_rtl.build import Design, library

    opened = ctypes.CDLL(str(library(Design("axi_bench", c_sources=("axi_bench.cpp",)))))
    opened.axi_bench_run.restype = ctypes.c_char_p
    return opened


def told(cycles: Sequence[Cycle]) -> list[str]:
    """What is said of ``cycles``, behind two of reset and one without anything."""
    require_toolchain()
    from darwinn_rtl.build import simulation_argument

    played = [RESET, RESET, IDLE, *cycles]
    records = np.zeros(len(played), _RECORD)
    records["rst_n"] = 1
    for number, cycle in enumerate(played):
        for name, value in cycle.items():
            records[name][number] = value
    pointer = ctypes.c_void_p(records.ctypes.data)
    argument = ctypes.c_char_p(simulation_argument().encode())
    said: bytes = _bench().axi_bench_run(argument, pointer, ctypes.c_uint64(len(records)))
    return said.decode().splitlines()


def address(
    channel: str,
    start: int = 0x1000,
    words: int = 1,
    *,
    of: int = 0,
    size: int = 3,
    kind: int = INCREMENTING,
    ready: int = 1,
) -> Cycle:
    """An address in ``ar`` or ``aw``; ``of`` is the ID."""
    fields = {"valid": 1, "id": of, "addr": start, "len": words - 1, "size": size, "burst": kind}
    return {f"{channel}{name}": value for name, value in {**fields, "ready": ready}.items()}


def word_read(
    last: int = 1, *, of: int = 0, data: int = 7, response: int = OKAY, ready: int = 1
) -> Cycle:
    """A word in ``r``."""
    return {
        "rvalid": 1,
        "rid": of,
        "rdata": data,
        "rlast": last,
        "rresp": response,
        "rready": ready,
    }


def word(last: int = 1, *, strobes: int = 0xFF, data: int = 7, ready: int = 1) -> Cycle:
    """A word in ``w``."""
    return {"wvalid": 1, "wdata": data, "wstrb": strobes, "wlast": last, "wready": ready}


def answer(of: int = 0, response: int = OKAY, *, ready: int = 1) -> Cycle:
    """An answer in ``b``."""
    return {"bvalid": 1, "bid": of, "bresp": response, "bready": ready}


def _addresses(channel: str) -> dict[str, list[list[Cycle]]]:
    """What breaks the rules of a channel of addresses, each by its rule."""

    def alone(*arguments: int, size: int = 3, kind: int = INCREMENTING) -> list[Cycle]:
        return [address(channel, *arguments, size=size, kind=kind)]

    waits = address(channel, ready=0)
    return {
        f"{channel}_reset": [[RESET, RESET | {f"{channel}valid": 1}]],
        f"{channel}_held": [[waits, IDLE]],
        f"{channel}_stable": [
            [waits, address(channel, start, words, of=of, size=size, kind=kind)]
            for start, words, of, size, kind in (
                (0x1008, 1, 0, 3, INCREMENTING),
                (0x1000, 2, 0, 3, INCREMENTING),
                (0x1000, 1, 1, 3, INCREMENTING),
                (0x1000, 1, 0, 2, INCREMENTING),
                (0x1000, 1, 0, 3, FIXED),
            )
        ],
        f"{channel}_wait": [[waits] * (LONGEST_WAIT + 1)],
        f"{channel}_size": [alone(0x1000, 1, size=4), alone(0x1000, 1, size=7)],
        f"{channel}_burst": [alone(0x1000, 2, kind=RESERVED)],
        f"{channel}_length": [
            alone(0x1000, 17, kind=FIXED),
            *(alone(0x1000, words, kind=WRAPPING) for words in (1, 3, 12, 32)),
        ],
        f"{channel}_wrap": [
            alone(0x1004, 4, kind=WRAPPING),
            alone(0x1001, 2, size=1, kind=WRAPPING),
        ],
        f"{channel}_boundary": [
            alone(0x1FF8, 2),
            alone(0x1FFF, 2),
            alone(0x1808, 256),
            alone(0x1FFE, 2, size=1),
        ],
        f"{channel}_outstanding": [[address(channel, of=k % 4) for k in range(OUTSTANDING + 1)]],
    }


WRITTEN = [address("aw"), word()]
"""A write of one word, without its answer."""

VIOLATIONS: dict[str, list[list[Cycle]]] = {
    **_addresses("ar"),
    "r_reset": [[RESET, RESET | {"rvalid": 1}]],
    "r_held": [[address("ar"), word_read(ready=0), IDLE]],
    "r_stable": [
        [address("ar"), word_read(ready=0), word_read(data=8)],
        [address("ar"), word_read(ready=0), word_read(response=SLAVE_ERROR)],
        [address("ar"), address("ar", of=1), word_read(ready=0), word_read(of=1)],
        [address("ar"), word_read(ready=0), word_read(0)],
    ],
    "r_request": [
        [word_read()],
        [address("ar"), word_read(of=1)],
        [address("ar"), word_read(), word_read()],
        [address("ar") | word_read()],
        [address("ar", ready=0), address("ar", ready=0) | word_read()],
        [address("ar"), RESET, RESET, IDLE, word_read()],
    ],
    "r_last": [
        [address("ar"), word_read(0)],
        [address("ar", words=3), word_read(0), word_read(1)],
        [address("ar", words=256), *[word_read(0)] * 256],
        [address("ar", words=2), address("ar", words=1, of=1), word_read(1)],
        [address("ar", words=3), address("ar", words=4), word_read(1)],
    ],
    "r_order": [
        [address("ar", words=3), address("ar", words=2), word_read(0), word_read(1)],
        *(
            [
                address("ar", words=5),
                *(address("ar", words=2 if k == place else 9) for k in range(1, OUTSTANDING)),
                *(word_read(0), word_read(1)),
            ]
            for place in range(1, OUTSTANDING)
        ),
        [address("ar", words=3), address("ar", words=4), address("ar", words=1), word_read(1)],
    ],
    "r_wait": [[address("ar"), *[word_read(ready=0)] * (LONGEST_WAIT + 1)]],
    "r_response": [[address("ar"), word_read(response=EXCLUSIVE)]],
    "r_late": [
        [address("ar"), *[IDLE] * (LONGEST_ANSWER + 1)],
        [address("ar", words=2), word_read(0), *[IDLE] * (LONGEST_ANSWER + 1)],
    ],
    "r_end": [
        [address("ar"), ENDED],
        [address("ar", words=2), word_read(0), ENDED, ENDED],
    ],
    **_addresses("aw"),
    "w_reset": [[RESET, RESET | {"wvalid": 1}]],
    "w_held": [[address("aw"), word(ready=0), IDLE]],
    "w_stable": [
        [address("aw"), word(ready=0), word(data=8)],
        [address("aw"), word(ready=0), word(strobes=1)],
        [address("aw"), word(0, ready=0), word(1)],
    ],
    "w_wait": [[address("aw"), *[word(ready=0)] * (LONGEST_WAIT + 1)]],
    "w_end": [[address("aw"), ENDED], [word(), ENDED], [address("aw", words=2), word(0), ENDED]],
    "w_last": [
        [address("aw"), word(0)],
        [address("aw", words=3), word(0), word(1)],
        [address("aw", words=256), *[word(0)] * 256],
        [word(0), address("aw")],
        [word(0), word(1), address("aw", words=3)],
        [word(1), word(1), address("aw"), address("aw", words=2)],
        [word(1) | address("aw", words=2, ready=0)],
    ],
    "w_strobes": [
        [address("aw", 0x1004), word(strobes=0x08)],
        [address("aw", 0x1004, size=2), word(strobes=0x0F)],
        [address("aw", 0x1000, 2, size=2), word(0, strobes=0x0F), word(strobes=0x01)],
        [address("aw", 0x1004, 2, size=2, kind=FIXED), word(0, strobes=0xF0), word(strobes=0x0F)],
        [
            address("aw", 0x1004, 2, size=2, kind=WRAPPING),
            word(0, strobes=0xF0),
            word(strobes=0xF0),
        ],
        [word(strobes=0x01), address("aw", 0x1001)],
    ],
    "w_ahead": [[word(0)] * 257],
    "b_reset": [[RESET, RESET | {"bvalid": 1}]],
    "b_held": [[*WRITTEN, answer(ready=0), IDLE]],
    "b_stable": [
        [*WRITTEN, answer(ready=0), answer(response=SLAVE_ERROR)],
        [*WRITTEN, address("aw", of=1), word(), answer(ready=0), answer(1)],
    ],
    "b_request": [
        [answer()],
        [*WRITTEN, answer(1)],
        [*WRITTEN, answer(), answer()],
        [word(), answer()],
        [*WRITTEN, RESET, RESET, IDLE, answer()],
    ],
    "b_early": [
        [address("aw"), answer()],
        [address("aw", words=2), word(0), answer()],
        [address("aw"), word() | answer()],
        [address("aw", ready=0) | word(), address("aw", ready=0) | answer()],
        [*WRITTEN, address("aw", words=2), word(0) | answer(), answer()],
        [address("aw"), address("aw", of=1), word(), answer(1)],
    ],
    "b_wait": [[*WRITTEN, *[answer(ready=0)] * (LONGEST_WAIT + 1)]],
    "b_response": [[*WRITTEN, answer(response=EXCLUSIVE)]],
    "b_late": [[*WRITTEN, *[IDLE] * (LONGEST_ANSWER + 1)]],
    "b_end": [[*WRITTEN, ENDED], [*WRITTEN, answer(ready=0), answer(ready=0) | ENDED]],
}
"""Cycles by the rule that they break, and no other."""


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_what_breaks_a_rule_is_told_under_its_name(rule: Rule) -> None:
    assert VIOLATIONS[rule.name]
    for cycles in VIOLATIONS[rule.name]:
        lines = told(cycles)
        assert len(lines) == 1, (cycles, lines)
        assert f"axi_bench.port.tell: {rule.side}: {rule.name}: {rule.says} (ID " in lines[0]


def _as(cycles: Sequence[Cycle], identifier: int) -> list[Cycle]:
    """The same with other identifiers."""
    ids = ("arid", "rid", "awid", "bid")
    return [
        {name: (value + identifier) % 4 if name in ids else value for name, value in cycle.items()}
        for cycle in cycles
    ]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_what_breaks_a_rule_is_told_of_each_identifier_behind_other_traffic(rule: Rule) -> None:
    before = [
        *LEGAL["words of several identifiers in turn"],
        *LEGAL["words long before their address"],
    ]
    for cycles in VIOLATIONS[rule.name]:
        for identifier in range(4):
            lines = told([*before, *_as(cycles, identifier)])
            assert len(lines) == 1, (cycles, identifier, lines)
            assert f": {rule.name}: " in lines[0]


CHANNELS: dict[str, tuple[list[Cycle], Cycle, tuple[str, ...]]] = {
    "ar": ([], address("ar", ready=0), ("addr", "id", "len", "size", "burst")),
    "r": ([address("ar")], word_read(ready=0), ("data", "id", "resp", "last")),
    "aw": ([], address("aw", ready=0), ("addr", "id", "len", "size", "burst")),
    "w": ([address("aw")], word(ready=0), ("data", "strb", "last")),
    "b": ([*WRITTEN], answer(ready=0), ("id", "resp")),
}
"""What comes before something is offered on a channel, the offer, and its fields."""

WAITED = (1, 2, 5)
"""Cycles in which something is offered before it changes."""

BITS = {"addr": 40, "data": 64, "len": 8, "strb": 8, "size": 3, "last": 1}
"""Bits of a field; the others have two."""


@pytest.mark.parametrize("channel", CHANNELS)
def test_each_bit_of_what_is_offered_stays(channel: str) -> None:
    before, offer, fields = CHANNELS[channel]
    for field in fields:
        for bit in range(BITS.get(field, 2)):
            name = f"{channel}{field}"
            for waited in WAITED:
                changed = offer | {name: offer[name] ^ 1 << bit}
                (line,) = told([*before, *[offer] * waited, changed])
                assert f": {channel}_stable: " in line, (name, bit, waited)


LITE = {"ar": {"addr": 19}, "r": {"data": 64, "resp": 2}, "aw": {"addr": 19}} | {
    "w": {"data": 64, "strb": 8},
    "b": {"resp": 2},
}
"""Fields of the channels of AXI4-Lite, and their bits."""


@pytest.mark.parametrize("channel", CHANNELS)
def test_the_registers_port_is_checked_as_any_other(channel: str) -> None:
    before, offer, _ = CHANNELS[channel]
    changes = [
        (f"{channel}{field}", 1 << bit)
        for field, bits in LITE[channel].items()
        for bit in range(bits)
    ]
    for name, changed in changes:
        cycles = [*before, offer, offer | {name: offer[name] ^ changed}]
        (line,) = told([{"lite": 1}, *(cycle | {"lite": 1} for cycle in cycles)])
        assert "lite_port.check.port.tell: " in line and f": {channel}_stable: " in line, (
            name,
            changed,
        )
    for rule in ("held", "reset"):
        for cycles in VIOLATIONS[f"{channel}_{rule}"]:
            (line,) = told([cycle | {"lite": 1} for cycle in cycles])
            assert f": {channel}_{rule}: " in line


def test_a_handshake_is_checked_by_itself() -> None:
    offer = {"offered": 1, "wdata": 0xA5}
    for waited in WAITED:
        for taken in (0, 1):  # ready comes as the offer goes, or it does not
            fell = told([*[offer] * waited, {"wdata": 0xA5, "taken": taken}])
            assert len(fell) == 1 and "valid fell before ready" in fell[0], (waited, fell)
        for bit in range(64):
            lines = told([*[offer] * waited, offer | {"wdata": 0xA5 ^ 1 << bit}])
            assert len(lines) == 1 and "payload changed before ready" in lines[0], (waited, bit)
    late = told([*[offer] * (LONGEST_WAIT + 1), offer | {"taken": 1}])
    assert len(late) == 1 and "ready did not come in time" in late[0]
    assert told([*[offer] * LONGEST_WAIT, offer | {"taken": 1}]) == []
    assert told([offer, offer | {"taken": 1}, IDLE, offer | {"taken": 1}, {"offered": 1}]) == []
    transfers = [offer | {"taken": 1}] * 3
    assert told([*transfers, *[offer] * LONGEST_WAIT, *transfers]) == []


def test_every_violation_is_one_of_a_rule() -> None:
    assert set(VIOLATIONS) == {rule.name for rule in RULES}


LEGAL: dict[str, list[Cycle]] = {
    "as long as may be waited": [
        *[address("ar", ready=0)] * LONGEST_WAIT,
        address("ar"),
        *[IDLE] * LONGEST_ANSWER,
        *[word_read(ready=0)] * LONGEST_WAIT,
        word_read(),
        *WRITTEN,
        *[IDLE] * LONGEST_ANSWER,
        answer(),
        ENDED,
        ENDED,
    ],
    "the longest burst ends at 4 KiB": [
        address("ar", 0x1800, 256),
        *[word_read(0)] * 255,
        word_read(1),
    ],
    "unaligned, up to 4 KiB": [address("ar", 0x1FF1, 2), word_read(0), word_read(1)],
    "one word at the end": [address("ar", 0x1FFF, 1), word_read()],
    "a wrapping burst at the end": [address("ar", 0x1FF8, 16, kind=WRAPPING)],
    "a fixed burst at the end": [address("ar", 0x1FF8, 16, kind=FIXED)],
    "words of several identifiers in turn": [
        *(address("ar", words=2, of=k) for k in range(4)),
        *(word_read(0, of=k) for k in (3, 1, 0, 2)),
        *(word_read(1, of=k) for k in (0, 2, 3, 1)),
    ],
    "errors": [
        address("ar", words=2),
        word_read(0, response=DECODE_ERROR),
        word_read(1, response=SLAVE_ERROR),
        *WRITTEN,
        answer(response=DECODE_ERROR),
    ],
    "the next is asked for while the last word of as many as may be comes": [
        *(address("ar") for _ in range(OUTSTANDING)),
        word_read(),
        address("ar") | word_read(),
        *[word_read()] * 3,
    ],
    "words long before their address": [
        *(word(last) for last in (0, 0, 1, 1, 0)),
        address("aw", words=3),
        address("aw", words=1, of=1),
        address("aw", words=2, of=2) | word(1),
        *(answer(of) for of in (2, 0, 1)),
    ],
    "256 words before their address": [
        *[word(0)] * 255,
        word(1),
        address("aw", 0x1800, 256),
        answer(),
    ],
    "a word comes with the address of 256 before it": [
        *[word(0)] * 255,
        word(1),
        address("aw", 0x1800, 256) | word(1),
        address("aw"),
        answer(),
        answer(),
    ],
    "a word comes with the address of the first of 256": [
        *[word(1)] * 256,
        address("aw") | word(1),
        *[address("aw"), answer()] * 256,
        answer(),
        ENDED,
    ],
    "all words while the address waits": [
        address("aw", words=2, ready=0) | word(0),
        address("aw", words=2, ready=0) | word(1),
        address("aw", words=2),
        answer(),
    ],
    "no strobes at all": [address("aw"), word(strobes=0), answer()],
    "strobes of narrow words": [
        address("aw", 0x1003, 4, size=1),
        *(word(k == 3, strobes=s) for k, s in enumerate((0x08, 0x30, 0xC0, 0x03))),
        answer(),
        address("aw", 0x1004, 4, size=2, kind=WRAPPING),
        *(word(k == 3, strobes=s) for k, s in enumerate((0xF0, 0x0F, 0xF0, 0x0F))),
        answer(),
    ],
    "an answer that waits, and ready that comes and goes": [
        *WRITTEN,
        {"arready": 1, "awready": 1, "wready": 1, "rready": 1, "bready": 1},
        answer(ready=0),
        answer(ready=0),
        answer(),
        IDLE,
    ],
    "reset in the middle of all": [
        address("ar", words=4),
        address("aw", words=4),
        word_read(0, ready=0) | word(0, ready=0) | address("ar", ready=0),
        RESET | word_read(0, ready=0) | word(0) | address("ar"),
        RESET,
        IDLE,
        address("ar"),
        word_read(),
        *WRITTEN,
        answer(),
    ],
}


@pytest.mark.parametrize("name", LEGAL)
def test_legal_traffic_is_no_violation(name: str) -> None:
    assert told(LEGAL[name]) == []


TRANSFERS: dict[str, tuple[list[Cycle], Cycle]] = {
    "ar": ([address("ar", words=256)], address("ar")),
    "r": ([address("ar", words=256)], word_read(0)),
    "aw": ([], address("aw")),
    "w": ([address("aw", words=256)], word(0)),
    "b": (WRITTEN * 3, answer()),
}
"""What comes before transfers on a channel, and one of them, which may follow itself."""


@pytest.mark.parametrize("channel", TRANSFERS)
def test_each_wait_is_counted_anew(channel: str) -> None:
    """Also right behind a transfer: as long as may be waited, and a cycle longer."""
    before, taken = TRANSFERS[channel]
    waits = [taken | {f"{channel}ready": 0}] * LONGEST_WAIT
    if channel == "ar":  # words that are due come meanwhile
        waits[LONGEST_WAIT // 2] = waits[0] | word_read(0)
    assert told([*before, taken, *waits, taken]) == []
    (line,) = told([*before, taken, *waits, waits[0], taken])
    assert f": {channel}_wait: " in line


class _Traffic:
    """A master and a slave that keep all rules and else do what they like: any pauses, identifiers
    and kinds of bursts, words before addresses, words and answers in any order."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.offers: dict[str, Cycle] = {}  # on each channel, until they are taken
        self.reads: list[tuple[int, int]] = []  # identifier and words left, in order
        self.writes: dict[int, Cycle] = {}  # without an answer, by their numbers in order
        self.addressed = self.filled = 0  # numbers from which on address, words have not been taken
        self.words = 0  # of the write `filled` that have been taken

    def offer(self) -> None:
        """What may be offered on the channels that are free, sometimes."""
        some = self.random.random
        if len(self.reads) + ("ar" in self.offers) < OUTSTANDING and some() < 0.3:
            self.offers.setdefault("ar", _request("ar", self.random))
        if len(self.writes) < OUTSTANDING and some() < 0.3:
            number = max([*self.writes, self.addressed - 1, self.filled - 1]) + 1
            self.writes[number] = _request("aw", self.random)
        if self.addressed in self.writes and some() < 0.3:
            self.offers.setdefault("aw", self.writes[self.addressed])
        if self.filled in self.writes and some() < 0.5:
            last = self.words == self.writes[self.filled]["awlen"]
            # Without strobes the words may have any lanes.
            self.offers.setdefault(
                "w", word(int(last), strobes=0, data=self.random.getrandbits(64))
            )
        if self.reads and some() < 0.5:
            of = self.random.choice(self.reads)[0]
            left = next(left for other, left in self.reads if other == of)
            response = self.random.choice((OKAY, SLAVE_ERROR, DECODE_ERROR))
            self.offers.setdefault("r", word_read(int(left == 1), of=of, response=response))
        if (done := self._done()) and some() < 0.5:
            of = self.writes[self.random.choice(done)]["awid"]
            self.offers.setdefault("b", answer(of))

    def _done(self) -> list[int]:
        return [number for number in self.writes if number < min(self.addressed, self.filled)]

    def take(self, channel: str) -> None:
        """What is offered is taken."""
        offer = self.offers.pop(channel)
        if channel == "ar":
            self.reads.append((offer["arid"], offer["arlen"] + 1))
        elif channel == "r":
            place = next(k for k, (of, _) in enumerate(self.reads) if of == offer["rid"])
            of, left = self.reads[place]
            self.reads[place : place + 1] = [(of, left - 1)] if left > 1 else []
        elif channel == "aw":
            self.addressed += 1
        elif channel == "w":
            self.words = 0 if offer["wlast"] else self.words + 1
            self.filled += offer["wlast"]
        else:
            del self.writes[next(n for n in self._done() if self.writes[n]["awid"] == offer["bid"])]

    def cycle(self) -> Cycle:
        """The next cycle."""
        self.offer()
        now = {name: value for offer in self.offers.values() for name, value in offer.items()}
        for channel in ("ar", "r", "aw", "w", "b"):
            now[f"{channel}ready"] = int(self.random.random() < 0.6)
            if now[f"{channel}ready"] and channel in self.offers:
                self.take(channel)
        return now


def _request(channel: str, random: Random) -> Cycle:
    kind, size = random.choice((FIXED, INCREMENTING, WRAPPING)), random.randrange(4)
    words = random.choice((2, 4, 8, 16)) if kind == WRAPPING else random.choice((1, 2, 5, 16))
    start = 0x1000 + random.randrange(0x1000 - (words << size)) if kind == INCREMENTING else 0x1FF8
    return address(channel, start, words, of=random.randrange(4), size=size, kind=kind)


@pytest.mark.parametrize("seed", range(8))
def test_random_legal_traffic_is_no_violation(seed: int) -> None:
    traffic = _Traffic(Random(seed))
    cycles = [traffic.cycle() for _ in range(2000)]
    assert sum(cycle.get("rvalid", 0) and cycle["rready"] for cycle in cycles) > 300
    assert sum(cycle.get("bvalid", 0) and cycle["bready"] for cycle in cycles) > 30
    assert told(cycles) == []


def lanes(start: int, words: int, size: int, kind: int, number: int) -> int:
    """Strobes of all bytes of a word of a burst on a bus of 8 bytes (AMBA AXI, A3.4.2)."""
    of_a_word = 1 << size
    whole = start // of_a_word * of_a_word
    low = start
    if number and kind != FIXED:
        low = whole + number * of_a_word
        lowest = start // (words * of_a_word) * words * of_a_word
        if kind == WRAPPING and low >= lowest + words * of_a_word:
            low -= words * of_a_word
    behind = low // of_a_word * of_a_word + of_a_word
    return sum(1 << (byte % 8) for byte in range(low, behind))


LENGTHS = {FIXED: (1, 2, 16), INCREMENTING: (1, 2, 3, 17), WRAPPING: (2, 4, 8, 16)}


@pytest.mark.parametrize("kind", LENGTHS)
@pytest.mark.parametrize("size", range(4))
def test_each_word_of_a_burst_has_its_lanes(kind: int, size: int) -> None:
    """All of them, and no other, wherever in a word of the bus the burst begins."""
    for words in LENGTHS[kind]:
        for start in range(0x1000, 0x1008, 1 << size if kind == WRAPPING else 1):
            asked = address("aw", start, words, size=size, kind=kind)
            strobes = [lanes(start, words, size, kind, k) for k in range(words)]
            burst = [word(int(k == words - 1), strobes=s) for k, s in enumerate(strobes)]
            assert told([asked, *burst, answer()]) == []
            for number in {0, 1, words - 1} & set(range(words)):
                for lane in (lane for lane in range(8) if not strobes[number] >> lane & 1):
                    other = burst[number] | {"wstrb": strobes[number] | 1 << lane}
                    (line,) = told([asked, *burst[:number], other, *burst[number + 1 :], answer()])
                    assert ": w_strobes: " in line, (start, words, number, lane)


def test_the_document_has_the_table() -> None:
    page = (Path(__file__).parents[3] / "docs" / "rtl-bus.md").read_text()
    assert all(rule.says in page for rule in RULES) and updated(page) == page
