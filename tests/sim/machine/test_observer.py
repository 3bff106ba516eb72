"""Words that were tapped are sorted by layer, however they came."""

from __future__ import annotations

import itertools
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from darwinn_sim.machine.observer import Observer
from hypothesis import given
from hypothesis import strategies as st

FIRSTS = (0, 3, 4, 9)
"""First instruction of each layer."""

WORD = np.dtype([("instruction", np.int64), ("value", np.int64)])


@given(st.lists(st.lists(st.integers(0, 12), min_size=1, max_size=6), max_size=4))
def test_the_words_of_a_layer_stay_in_the_order_in_which_they_were_written(
    records: list[list[int]],
) -> None:
    made: Any = Observer.__new__(Observer)
    made.layers = [SimpleNamespace(first=first) for first in FIRSTS]
    values = itertools.count()
    made._records = [
        np.array([(instruction, next(values)) for instruction in record], WORD)
        for record in records
    ]
    expected: dict[int, list[tuple[int, int]]] = {}
    for number, instruction in enumerate(each for record in records for each in record):
        layer = sum(first <= instruction for first in FIRSTS) - 1
        expected.setdefault(layer, []).append((instruction, number))
    found = made._words_by_layer()
    assert {layer: words.tolist() for layer, words in found.items()} == expected
    assert made._records == []


def test_taps_watch_from_the_first_to_the_last_layer_that_is_wanted() -> None:
    made: Any = SimpleNamespace(
        layers=[SimpleNamespace(first=10 * k + 1, last=10 * k + 5) for k in range(4)]
    )
    made._layer = partial(Observer._layer, made)
    for numbers, expected in (
        ((), (0, 0)),
        ((-1,), (0, 0)),
        ((0,), (1, 6)),
        ((3, 1), (11, 36)),
        ((2, -1), (21, 26)),
    ):
        made.wanted = SimpleNamespace(taps=[SimpleNamespace(layer=each) for each in numbers])
        assert Observer._tap_range(made) == expected
    for known, text in ((4, "layers are 0 to 3"), (0, "it has none")):
        made.layers = made.layers[:known]
        with pytest.raises(ValueError, match=f"there is no layer {known} in the program: {text}"):
            Observer._layer(made, known)


def test_who_notes_makes_room() -> None:
    """And words that are tapped are taken out only if there are any."""
    took: list[str] = []
    watch, words = {"tapped": 0}, np.arange(5)
    made: Any = SimpleNamespace(
        _watch=watch,
        _records=[],
        _words=words,
        wanted=SimpleNamespace(
            noting=SimpleNamespace(take=lambda: took.append("noting")),
        ),
    )
    made.take = partial(Observer.take, made)
    Observer.make_room(made)
    assert (took, made._records) == (["noting"], [])
    watch["tapped"] = 3
    assert Observer.take(made) is True
    assert [each.tolist() for each in made._records] == [[0, 1, 2]]
    assert Observer.take(made) is False
    made.wanted.noting = None
    Observer.make_room(made)
    assert took == ["noting"]
