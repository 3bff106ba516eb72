"""Names that a converter has joined are read as the first of them, alone and within a text."""

from __future__ import annotations

import pytest
from darwinn_formats.names import readable, short_name

JOINED = "net/conv/Relu;net/conv/BiasAdd;net/other/Conv2D;1"


@pytest.mark.parametrize(
    ("name", "short"),
    [(JOINED, "net/conv/Relu"), ("net/conv", "net/conv"), ("", ""), (";1", ";1")],
)
def test_a_name_is_its_first_path(name: str, short: str) -> None:
    assert short_name(name) == short


@pytest.mark.parametrize(
    ("text", "read"),
    [
        (JOINED, "net/conv/Relu"),
        (f"run 0: {JOINED}: 1 of 2 differ", "run 0: net/conv/Relu: 1 of 2 differ"),
        (f"left: {JOINED}, {JOINED}.", "left: net/conv/Relu, net/conv/Relu."),
        (f"({JOINED})", "(net/conv/Relu)"),
        ("net/depthwise;: all", "net/depthwise: all"),
        ("4 of 5 equal; DMA as hinted", "4 of 5 equal; DMA as hinted"),
        (f"x; {JOINED}; y", "x; net/conv/Relu; y"),
        (f"{JOINED[:-12]}…", "net/conv/Relu…"),
        ("net/BiasAdd;net/depthwise;", "net/BiasAdd"),
        ("a;b\nc", "a\\nc"),
        ("sequential/Größe/Relu;sequential/Größe/Add", "sequential/Größe/Relu"),
    ],
)
def test_names_within_a_text(text: str, read: str) -> None:
    assert readable(text) == read
