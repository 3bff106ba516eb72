"""The committed reference of the instruction set is the one that the table yields."""

from __future__ import annotations

from pathlib import Path

from darwinn_sim.isa.document import document
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
