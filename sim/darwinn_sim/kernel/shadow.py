"""Shadows of words: who wrote them last and has read them since, and what that finds.

An access that does not know of the last write of a word, and a write that does not know of a read
since then, are noted once for each pair of instructions.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from darwinn_sim.kernel.clocks import (
    ACTIVATION_BASE,
    CLOCK_BITS,
    CLOCK_MASK,
    CROWD,
    FLAG_BASE,
    HISTORY,
    MOST_FOUND,
    READ_AFTER_WRITE,
    SCALAR_BASE,
    WRITE_AFTER_READ,
    WRITE_AFTER_WRITE,
    Clocks,
    is_before,
    now,
)
from darwinn_sim.kernel.compiled import compiled, inner, unchecked


@inner
def read(clocks: Clocks, thread: int, word: int) -> None:
    """``thread`` reads a word."""
    present = now(clocks, thread)
    if clocks.reader[word] == present:
        return
    if not is_before(clocks, clocks.writer[word], thread):
        find(clocks, READ_AFTER_WRITE, word, clocks.writer[word], thread, False)
    _note_reader(clocks, thread, word, present)


@inner
def read_at(clocks: Clocks, thread: int, word: int, clock: int) -> None:
    """``thread`` reads a word, which it did as soon as it was there, but not before ``clock``: so
    if the write of it is the last thing that ``thread`` knows of the writer, because it has waited
    for that, and it has not read it since."""
    writer = clocks.writer[word]
    awaited = clocks.known[thread, writer >> CLOCK_BITS] == writer & CLOCK_MASK
    if writer == 0 or not awaited or _has_read(clocks, thread, word):
        clock = clocks.clock[thread]
    if not is_before(clocks, clocks.writer[word], thread):
        find(clocks, READ_AFTER_WRITE, word, clocks.writer[word], thread, False)
    _note_reader(clocks, thread, word, thread << CLOCK_BITS | clock)


@inner
def _note_reader(clocks: Clocks, thread: int, word: int, epoch: int) -> None:
    """``thread`` has read a word at ``epoch``: in the place of a reader that is before it, or
    beside all that are not."""
    if is_before(clocks, clocks.reader[word], thread):
        clocks.reader[word] = epoch
        return
    at = int(clocks.others[word])
    while at:
        if is_before(clocks, clocks.crowd[at].epoch, thread):
            clocks.crowd[at].epoch = epoch
            return
        at = int(clocks.crowd[at].following)
    at = clocks.free_place
    if at:
        clocks.free_place = int(clocks.crowd[at].following)
    elif clocks.crowded < CROWD - 1:
        clocks.crowded += 1
        at = clocks.crowded
    else:
        clocks.dropped += 1
        return
    clocks.crowd[at].epoch = epoch
    clocks.crowd[at].following = clocks.others[word]
    clocks.others[word] = at


@inner
def _has_read(clocks: Clocks, thread: int, word: int) -> bool:
    """Whether ``thread`` has read a word since the last write."""
    if clocks.reader[word] >> CLOCK_BITS == thread:
        return True
    at = int(clocks.others[word])
    while at:
        if clocks.crowd[at].epoch >> CLOCK_BITS == thread:
            return True
        at = int(clocks.crowd[at].following)
    return False


@inner
def read_row(clocks: Clocks, thread: int, first: int, count: int) -> None:
    """``thread`` reads words, which mostly were written and read together."""
    if count <= 0:
        return
    present = now(clocks, thread)
    reader, writer = clocks.reader[first], clocks.writer[first]
    together = clocks.reader[first + count - 1] == reader and _are(
        clocks.reader, reader, first, count
    )
    if together and reader == present:
        return
    if (
        together
        and is_before(clocks, reader, thread)
        and is_before(clocks, writer, thread)
        and _are(clocks.writer, writer, first, count)
    ):
        _fill(clocks.reader, present, first, count)
        return
    for word in range(first, first + count):
        read(clocks, thread, word)


@inner
def write(clocks: Clocks, thread: int, word: int, same: bool) -> None:
    """``thread`` writes a word; ``same``: what it held already."""
    if not is_before(clocks, clocks.writer[word], thread):
        find(clocks, WRITE_AFTER_WRITE, word, clocks.writer[word], thread, same)
    if not is_before(clocks, clocks.reader[word], thread):
        find(clocks, WRITE_AFTER_READ, word, clocks.reader[word], thread, same)
    clocks.writer[word] = now(clocks, thread)
    clocks.reader[word] = 0
    while clocks.others[word]:
        at = int(clocks.others[word])
        other = clocks.crowd[at]
        if not is_before(clocks, other.epoch, thread):
            find(clocks, WRITE_AFTER_READ, word, other.epoch, thread, same)
        clocks.others[word] = other.following
        other.following = clocks.free_place
        clocks.free_place = at


@inner
def write_row(
    clocks: Clocks,
    thread: int,
    first: int,
    count: int,
    old: NDArray[np.uint32],
    old_first: int,
    new: NDArray[np.uint32],
) -> None:
    """``thread`` writes words; ``old`` holds them as they are from ``old_first`` on, ``new`` as
    they will be."""
    if count <= 0:
        return
    writer, reader = clocks.writer[first], clocks.reader[first]
    if (
        is_before(clocks, writer, thread)
        and is_before(clocks, reader, thread)
        and clocks.writer[first + count - 1] == writer
        and _are(clocks.writer, writer, first, count)
        and _are(clocks.reader, reader, first, count)
        and _are(clocks.others, 0, first, count)
    ):
        _fill(clocks.writer, now(clocks, thread), first, count)
        _fill(clocks.reader, 0, first, count)
        return
    for k in range(count):
        write(clocks, thread, first + k, old[old_first + k] == new[k])


@unchecked
def _are(epochs: NDArray[np.int32], epoch: int, first: int, count: int) -> bool:
    """Whether all are the same; the caller has looked at the ends."""
    value = np.int32(epoch)
    others = 0
    for k in range(count):
        others |= int(epochs[first + k] != value)
    return others == 0


@unchecked
def _fill(epochs: NDArray[np.int32], epoch: int, first: int, count: int) -> None:
    """Make all the same; the caller has looked at the ends."""
    value = np.int32(epoch)
    for k in range(count):
        epochs[first + k] = value


@compiled
def find(clocks: Clocks, kind: int, word: int, epoch: int, thread: int, same: bool) -> None:
    """Note a pair of instructions, unless that is known."""
    if not same and (word >= FLAG_BASE or SCALAR_BASE <= word < ACTIVATION_BASE):
        doubt(clocks, kind, word, epoch, thread)
    first_thread = epoch >> CLOCK_BITS
    first = _instruction_at(clocks, first_thread, epoch & CLOCK_MASK)
    second = int(clocks.doing[thread])
    for k in range(clocks.pairs):
        found = clocks.found[k]
        if (
            found.first == first
            and found.second == second
            and found.kind == kind
            and found.same == same
        ):
            found.words += 1
            return
    if clocks.pairs == MOST_FOUND:
        clocks.more += 1
        return
    found = clocks.found[clocks.pairs]
    clocks.pairs += 1
    found.kind = kind
    found.same = same
    found.word = word
    found.first_thread = first_thread
    found.first = first
    found.second_thread = thread
    found.second = second
    found.words = 1


@compiled
def doubt(clocks: Clocks, kind: int, word: int, epoch: int, thread: int) -> None:
    """Note why it is open whether all waits end: the first reason of each kind, and how often."""
    for k in range(clocks.doubted):
        if clocks.doubts[k].kind == kind:
            clocks.doubts[k].words += 1
            return
    found = clocks.doubts[clocks.doubted]
    clocks.doubted += 1
    found.kind = kind
    found.word = word
    found.first_thread = epoch >> CLOCK_BITS
    found.first = _instruction_at(clocks, found.first_thread, epoch & CLOCK_MASK)
    found.second_thread = thread
    found.second = int(clocks.doing[thread])
    found.words = 1


@inner
def _instruction_at(clocks: Clocks, thread: int, clock: int) -> int:
    """What ``thread`` did at a clock; -1 if that is not kept any more."""
    begun: int = clocks.begun[thread]
    for back in range(1, min(begun, HISTORY) + 1):
        number = begun - back
        if clocks.begun_at[thread, number % HISTORY] <= clock:
            return int(clocks.begun_what[thread, number % HISTORY])
    return -1
