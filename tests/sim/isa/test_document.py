"""The committed reference of the instruction set is the one that the table yields."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from darwinn_sim.isa.document import _instruction_names, _values_text, document
from darwinn_sim.isa.table import INSTRUCTIONS

DOCS = Path(__file__).parents[3] / "docs"


def test_the_committed_document_is_up_to_date() -> None:
    """If this fails: python -m darwinn_sim.isa.document > docs/isa.md."""
    assert (DOCS / "isa.md").read_text(encoding="utf-8") == document()


def test_every_field_is_documented() -> None:
    text = document()
    for instruction in INSTRUCTIONS.values():
        assert f"### {instruction.name}\n" in text
        for field in instruction.fields:
            assert f"`{field.name}`" in text


@pytest.mark.parametrize("absent", [0, 1, 3, 4])
def test_an_entry_of_nearly_all_instructions_names_the_others(absent: int) -> None:
    names = [each.name for each in INSTRUCTIONS.values()]
    found = list(INSTRUCTIONS.values())[absent:]
    expected = {0: "all", 4: ", ".join(names[4:])}
    text = expected.get(absent, f"all but {', '.join(names[:absent])}")
    assert _instruction_names(found) == text


@pytest.mark.parametrize(
    ("values", "text"),
    [([5], "5"), ([1, 4], "1, 4"), (range(2, 4), "2, 3"), (range(2, 5), "2 to 4")],
)
def test_values_are_a_list_or_a_range(values: Sequence[int], text: str) -> None:
    assert _values_text(values) == text
