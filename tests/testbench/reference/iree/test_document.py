"""The tables of the committed page are those that the code yields, and its numbers hold."""

from __future__ import annotations

from pathlib import Path

from darwinn_reference.iree import budget, machine, memory

PAGE = Path(__file__).parents[4] / "docs" / "formats-iree.md"


def test_the_bounds_in_the_page_are_those_of_the_code() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert f"{budget.MAXIMUM_BLOCKS:,} blocks" in page
    assert f"{machine.MAXIMUM_CALLS} calls within calls" in page
    assert f"{memory.MAXIMUM_ALLOCATION >> 20} MiB in one allocation" in page
