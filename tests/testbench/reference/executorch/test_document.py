"""The document lists the operators of the table, which are those of the original runtime."""

from __future__ import annotations

import pytest
from darwinn_reference.executorch import OPERATORS, REFUSED
from darwinn_reference.executorch.document import coverage, operator_list
from darwinn_reference.executorch.operators import LISTS, listed


def test_every_operator_is_listed_once() -> None:
    lines = [line for line in operator_list() if line.startswith("- **")]
    text = "\n".join(lines)
    names = [name.partition("::")[2] for name in OPERATORS]
    assert text.count("`") == 2 * (len(names) + text.count("**, `"))
    assert all(f"`{name}`" in text for name in names)


@pytest.mark.parametrize("name", LISTS)
def test_every_operator_of_the_original_is_there_or_refused(name: str) -> None:
    names = listed(name)
    assert len(set(names)) == len(names) > 15
    assert [entry for entry in names if entry not in OPERATORS and entry not in REFUSED] == []


def test_what_is_refused_is_not_there() -> None:
    assert not set(REFUSED) & set(OPERATORS)
    text = "\n".join(coverage())
    assert all(f"`{name}`" in text for name in REFUSED)
