"""Turns of the event model against a plain table of each station's next one."""

import numpy as np
from darwinn_sim.kernel.compiled import compiled
from darwinn_sim.timing import turns
from darwinn_sim.timing.turns import NEVER, WINDOW, WORD
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

_STATIONS = 2 * WORD + 3
_LATEST = 3 * WINDOW


@compiled
def _give(of: turns.Turns, index: int, cycle: int) -> None:
    turns.give(of, index, cycle)


@compiled
def _next_cycle(of: turns.Turns, now: int) -> int:
    return turns.next_cycle(of, now)


@compiled
def _take_due(of: turns.Turns, now: int, found: NDArray[np.int64]) -> int:
    """All stations that are due, in order, as the event loop takes them."""
    count = 0
    first = turns.first_word(of, now)
    for word in range(turns.words(of)):
        while of.due[first + word]:
            number = turns.lowest(of.due[first + word])
            of.due[first + word] &= ~(1 << number)
            index = of.order[word * WORD + number]
            if of.wake[index] == now:
                of.wake[index] = NEVER
                found[count] = index
                count += 1
    turns.end_cycle(of, now)
    return count


_cycles = st.one_of(
    st.integers(0, 3),
    st.integers(0, _LATEST),
    st.sampled_from([WORD - 1, WORD, WINDOW - 1, WINDOW, WINDOW + 1]),
)
_stations = st.one_of(
    st.integers(0, _STATIONS - 1), st.sampled_from([WORD - 1, WORD, 2 * WORD - 1, _STATIONS - 1])
)


@given(
    st.lists(st.tuples(_stations, _cycles), max_size=20),
    st.lists(st.lists(st.tuples(_stations, _cycles), max_size=6), max_size=20),
)
@example([], [])
@example([(WORD - 1, 0)], [[(WORD - 1, 0)], [(WORD - 1, WINDOW)]])
@example([(0, 5), (1, WINDOW + 5)], [[(0, WINDOW - 1)], [(0, 1)], []])
def test_turns_come_as_a_plain_table_has_them(
    first: list[tuple[int, int]], given_later: list[list[tuple[int, int]]]
) -> None:
    """Whoever is due has a turn in its cycle and in no other, in their order; a turn that is
    given in the present cycle is one more in that.
    """
    table = dict(first)
    wake = np.full(_STATIONS, NEVER)
    for index, cycle in table.items():
        wake[index] = cycle
    order = np.random.default_rng(0).permutation(_STATIONS)
    of = turns.new(wake, order)
    now = 0
    found = np.zeros(_STATIONS, np.int64)
    rounds = iter(given_later)
    while table:
        earliest = min(table.values())
        seen = _next_cycle(of, now)
        if seen != earliest:
            # One that was put off has left a cycle behind in which nobody is due.
            assert now <= seen < earliest
        now = seen
        count = _take_due(of, now, found)
        assert found[:count].tolist() == [k for k in order if table.get(k) == now]
        table = {k: cycle for k, cycle in table.items() if cycle != now}
        for index, ahead in next(rounds, []):
            table[index] = now + ahead
            _give(of, index, now + ahead)
    while (seen := _next_cycle(of, now)) != NEVER:
        assert seen >= now
        now = seen
        assert _take_due(of, now, found) == 0
