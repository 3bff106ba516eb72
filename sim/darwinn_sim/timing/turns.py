"""When stations have their turns: the next cycle with one, and who is due in it.

Turns in the cycles of a window are kept cycle by cycle, as sets of bits: which stations are due in
a cycle, and which cycles have any. Later ones stand in ``wake`` alone, until the window is used up
and the next one begins with the earliest of them. Who is put off leaves a bit behind, so what holds
is ``wake``.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numba.cpython.unsafe.numbers import trailing_zeros
from numpy.typing import NDArray

from darwinn_sim.kernel.compiled import inner, unchecked
from darwinn_sim.kernel.structure import Numbers, numbers

NEVER: Final = np.iinfo(np.int64).max

WORD: Final = 64
"""Bits of a word of a set."""

WINDOW: Final = 8 * WORD
"""Cycles of a window: so many that to look for the turns of the next one costs next to nothing."""

_CYCLE_WORDS: Final = WINDOW // WORD

# numba's types have the inside of this function, not what is called.
_trailing_zeros: Any = trailing_zeros


class Turns(NamedTuple):
    """Turns to come.

    ``wake`` is the cycle of each station's next turn. In a cycle stations have their turns in the
    ``order``, in which each has its ``place``. Of the cycles from ``window[0]`` on, ``cycles`` has
    a bit for each that has turns, ``due`` the words of a set of places.
    """

    wake: Numbers
    order: Numbers
    place: Numbers
    window: Numbers
    cycles: Numbers
    due: Numbers


def new(wake: NDArray[np.int64], order: NDArray[np.int64]) -> Turns:
    """First turns of all stations, and the order in which they have those of a cycle."""
    words = -(-len(wake) // WORD)
    return Turns(
        wake=numbers(wake.copy()),
        order=numbers(order),
        place=numbers(np.argsort(order)),
        window=numbers(np.zeros(1, np.int64)),
        cycles=numbers(np.zeros(_CYCLE_WORDS, np.int64)),
        due=numbers(np.zeros(WINDOW * words, np.int64)),
    )


@inner
def lowest(bits: int) -> int:
    """Number of the lowest bit that is set; one is."""
    return int(_trailing_zeros(bits))


@inner
def give(turns: Turns, index: int, cycle: int) -> None:
    """Give a station its next turn in ``cycle``, the present one or later."""
    turns.wake[index] = cycle
    if cycle - turns.window[0] < WINDOW:
        _note(turns, index, cycle)


@inner
def _note(turns: Turns, index: int, cycle: int) -> None:
    """Set the bits of a turn in the window."""
    at = cycle - turns.window[0]
    turns.cycles[at // WORD] |= 1 << (at % WORD)
    place = turns.place[index]
    turns.due[first_word(turns, cycle) + place // WORD] |= 1 << (place % WORD)


@inner
def words(turns: Turns) -> int:
    """Words of a set of stations."""
    return len(turns.due) // WINDOW


@inner
def first_word(turns: Turns, cycle: int) -> int:
    """Index of the first word of the stations that are due in a cycle of the window."""
    return (cycle - turns.window[0]) * words(turns)


@inner
def next_cycle(turns: Turns, now: int) -> int:
    """The next cycle with a turn, the present one included; ``NEVER`` if there is none."""
    window = turns.window[0]
    for word in range(max(now - window, 0) // WORD, _CYCLE_WORDS):
        if turns.cycles[word]:
            return window + word * WORD + lowest(turns.cycles[word])
    first = _earliest(turns.wake)
    if first != NEVER:
        turns.window[0] = first
        for index in range(len(turns.wake)):
            if turns.wake[index] - first < WINDOW:
                _note(turns, index, turns.wake[index])
    return first


@unchecked
def _earliest(wake: Numbers) -> int:
    """The earliest of all turns, of which several are compared at a time."""
    earliest = NEVER
    for index in range(len(wake)):
        earliest = min(earliest, wake[index])
    return earliest


@inner
def end_cycle(turns: Turns, now: int) -> None:
    """Go on to the cycles behind ``now``, if no station is due in it any more."""
    first = first_word(turns, now)
    left = 0
    for word in range(first, first + words(turns)):
        left |= turns.due[word]
    if not left:
        at = now - turns.window[0]
        turns.cycles[at // WORD] &= ~(1 << (at % WORD))
