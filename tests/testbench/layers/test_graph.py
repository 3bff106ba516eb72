"""Boxes of a drawn network never overlap."""

from __future__ import annotations

from itertools import combinations

import pytest
from darwinn_testbench.layers.graph import Node, layout
from hypothesis import example, given, settings
from hypothesis import strategies as st

WIDTH, HEIGHT = 2.9, 0.62
"""Of a box, in inches."""

networks = st.lists(st.lists(st.integers(0, 40), max_size=3), min_size=1, max_size=40)

BRANCHES = [[], [0], [0], [2], [2], [2], [4], [4], [6]]
"""What the library alone places on each other."""


@settings(max_examples=60, deadline=None)
@given(networks)
@example(BRANCHES)
def test_no_two_boxes_overlap(network: list[list[int]]) -> None:
    pytest.importorskip("igraph", reason="igraph is not installed")
    graph = [
        Node(str(k), ("",), "", tuple(dict.fromkeys(str(each % k) for each in before if k)))
        for k, before in enumerate(network)
    ]
    places, paths = layout(graph)
    for (x, y), (other_x, other_y) in combinations(places, 2):
        assert abs(x - other_x) >= WIDTH or abs(y - other_y) >= HEIGHT
    for path in paths:
        assert path[0] in places and path[-1] in places
