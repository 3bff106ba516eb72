"""Words that were tapped are sorted by layer, however they came."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import numpy as np
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
