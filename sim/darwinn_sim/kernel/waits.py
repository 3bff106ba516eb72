"""Whether all waits end in any timing: what the checker notes of flags for that.

A wait that may pass can go on passing, and lets the same pass in every timing, as long as what
counts a flag, loads it and waits for it is in order. Each rule here looks at one thing that would
break this, at the time when it happens (docs/verification.md, "Deadlocks").
"""

from __future__ import annotations

import numpy as np

from darwinn_sim import chip
from darwinn_sim.isa.codes import ScalarFlag, TileFlag
from darwinn_sim.kernel import clocks
from darwinn_sim.kernel.compiled import inner
from darwinn_sim.kernel.shadow import doubt

_FIRST_SCALAR_FLAG = chip.TILES * (chip.TILE_FLAGS + 1)
_BESIDE = 15

_WINDOW = np.full(chip.SCALAR_FLAGS, -1)
_WINDOW[list(clocks.WINDOWS)] = np.arange(len(clocks.WINDOWS))


@inner
def counts_turns(flag: int) -> bool:
    """A flag that any sender of the ring counts, by way of the channel."""
    number = flag % (chip.TILE_FLAGS + 1)
    return bool(
        flag < _FIRST_SCALAR_FLAG and TileFlag.RING_PRODUCER_A <= number <= TileFlag.RING_PRODUCER_B
    )


@inner
def _place(thread: int, flag: int) -> int:
    """Where waits of a thread for a flag are kept: flags of a tile are awaited by its units and the
    scalar core, those of the core by what is beside the tiles."""
    return thread % 16 if flag < _FIRST_SCALAR_FLAG else thread // 16


@inner
def _thread(place: int, flag: int) -> int:
    """The thread whose waits for a flag are kept there."""
    if flag >= _FIRST_SCALAR_FLAG:
        return 16 * place + _BESIDE
    return clocks.CORE if place == _BESIDE else 16 * (flag // (chip.TILE_FLAGS + 1)) + place


@inner
def _window(flag: int) -> int:
    """The window of a flag; -1: it has none, and may count and be awaited within half of it."""
    return int(_WINDOW[flag - _FIRST_SCALAR_FLAG]) if flag >= _FIRST_SCALAR_FLAG else -1


@inner
def awaits(known: clocks.Clocks, thread: int, flag: int, number: int) -> None:
    """A thread has waited until a flag has counted a number since it was loaded.

    It would have passed at once, had the flag been ``HALF`` behind that and more: so the thread
    must have seen that it was not.
    """
    place = _place(thread, flag)
    which = _turns_at_core(flag)
    if which >= 0 and known.mixed_from[which] < number < known.mixed_to[which]:
        doubt(known, clocks.COUNT_AFTER_COUNT, clocks.FLAG_BASE + flag, known.counter[flag], thread)
    if number - known.least[flag, place] > clocks.HALF:
        doubt(known, clocks.WAIT_TOO_EARLY, clocks.FLAG_BASE + flag, known.counter[flag], thread)
    window = _window(flag)
    if window < 0:
        _keep(known, thread, flag, number)
    known.least[flag, place] = max(known.least[flag, place], number)
    known.awaited[flag, place] = known.clock[thread]
    if window < 0:
        return
    at = number % clocks.HALF
    if not clocks.is_before(known, known.window[window, at], thread):
        doubt(
            known,
            clocks.WAIT_TOO_LATE,
            clocks.FLAG_BASE + flag,
            known.window[window, at],
            thread,
        )
    known.window[window, at] = clocks.now(known, thread)


@inner
def _keep(known: clocks.Clocks, thread: int, flag: int, number: int) -> None:
    """Keep when the last wait was for less than each step; waits may come back to an older one."""
    place = _place(thread, flag)
    least = known.least[flag, place]
    if known.flags[flag].count - number >= clocks.HALF - clocks.STEP or number < -clocks.STEP:
        doubt(known, clocks.WAIT_TOO_LATE, clocks.FLAG_BASE + flag, known.counter[flag], thread)
    step, last = number // clocks.STEP, least // clocks.STEP
    for k in range(max(last + 1, step - clocks.STEPS + 1), step + 1):
        known.passed[flag, place, k % clocks.STEPS] = known.awaited[flag, place]
    for k in range(max(step + 1, last - clocks.STEPS + 1), last + 1):
        known.passed[flag, place, k % clocks.STEPS] = known.clock[thread]


@inner
def counts(known: clocks.Clocks, thread: int, flag: int, number: int) -> None:
    """A thread is about to count a flag: all who have counted it before are before that, and all
    who wait for ``HALF`` less, which would not have been reached any more."""
    record = known.flags[flag]
    word = clocks.FLAG_BASE + flag
    which = _turns_at_core(flag)
    if which >= 0:
        _mixes(known, thread, flag, which)
    elif not clocks.is_before(known, known.counter[flag], thread):
        doubt(known, clocks.COUNT_AFTER_COUNT, word, known.counter[flag], thread)
    known.counter[flag] = clocks.now(known, thread)
    window = _window(flag)
    if window < 0:
        step = (record.count + number) // clocks.STEP
        if step >= 2 and step != record.count // clocks.STEP:
            _see(known, thread, flag, step - 2)
        return
    for count in range(record.count + 1, record.count + number + 1):
        awaited = known.window[window, count % clocks.HALF]
        if not clocks.is_before(known, awaited, thread):
            doubt(known, clocks.WAIT_TOO_LATE, word, awaited, thread)


@inner
def _turns_at_core(flag: int) -> int:
    """Of flags 5 and 6 of the scalar core, which that is; -1: another flag."""
    which = flag - _FIRST_SCALAR_FLAG - ScalarFlag.RING_PRODUCER_A
    return which if 0 <= which < 2 else -1


@inner
def _mixes(known: clocks.Clocks, thread: int, flag: int, which: int) -> None:
    """A thread is about to count a flag that others count in no order with it: senders of both
    channels do. That is all the same to who waits for all of these counts, or for none: for less,
    the wait has to be before."""
    word = clocks.FLAG_BASE + flag
    count, load = known.flags[flag].count, known.flags[flag].last_load
    if not clocks.is_before(known, load, thread):
        doubt(known, clocks.COUNT_AFTER_LOAD, word, load, thread)
    mixed = known.mixed_to[which] > 0
    first = max(count - clocks.TURNS, 0)
    # As long as all are in order, who knows of the last one knows of all.
    ordered = not mixed and clocks.is_before(known, known.counter[flag], thread)
    number = count if ordered else first
    while number < count and clocks.is_before(
        known, known.turns[which, number % clocks.TURNS], thread
    ):
        number += 1
    known.turns[which, count % clocks.TURNS] = clocks.now(known, thread)
    if number == count and not (mixed and first > 0):
        return
    if known.mixed_to[which] == 0 or number < known.mixed_from[which]:
        known.mixed_from[which] = number
    known.mixed_to[which] = count + 1
    if first > 0:
        doubt(known, clocks.COUNT_AFTER_COUNT, word, known.counter[flag], thread)
    for place in range(known.awaited.shape[1]):
        clock = known.awaited[flag, place]
        epoch = _thread(place, flag) << clocks.CLOCK_BITS | int(clock)
        late = known.least[flag, place] > number and not clocks.is_before(known, epoch, thread)
        if clock and late:
            doubt(known, clocks.COUNT_AFTER_COUNT, word, known.counter[flag], thread)


@inner
def _see(known: clocks.Clocks, thread: int, flag: int, step: int) -> None:
    """A thread that counts a flag knows of all waits for less than a step."""
    for place in range(known.awaited.shape[1]):
        clock = known.awaited[flag, place]
        if known.least[flag, place] // clocks.STEP >= step:
            clock = known.passed[flag, place, step % clocks.STEPS]
        epoch = _thread(place, flag) << clocks.CLOCK_BITS | int(clock)
        if clock and not clocks.is_before(known, epoch, thread):
            doubt(known, clocks.WAIT_TOO_LATE, clocks.FLAG_BASE + flag, epoch, thread)


@inner
def loads(known: clocks.Clocks, thread: int, flag: int) -> None:
    """A thread is about to load a flag with another value: all who have waited for it are before
    that."""
    which = _turns_at_core(flag)
    if which >= 0:
        known.mixed_from[which] = known.mixed_to[which] = 0
    for place in range(known.awaited.shape[1]):
        clock = known.awaited[flag, place]
        if clock:
            epoch = _thread(place, flag) << clocks.CLOCK_BITS | int(clock)
            if not clocks.is_before(known, epoch, thread):
                doubt(known, clocks.LOAD_AFTER_WAIT, clocks.FLAG_BASE + flag, epoch, thread)
        known.awaited[flag, place] = 0
        known.least[flag, place] = 0
        known.passed[flag, place, :] = 0
