"""The document of the ExecuTorch formats lists the operators of the table."""

from __future__ import annotations

from pathlib import Path

from darwinn_testbench.reference.executorch import OPERATORS
from darwinn_testbench.reference.executorch.document import operator_list, updated

DOCUMENT = Path(__file__).parents[2] / "docs" / "formats-executorch.md"


def test_the_list_of_operators_is_up_to_date() -> None:
    text = DOCUMENT.read_text()
    assert text == updated(text), (
        "run python -m darwinn_testbench.reference.executorch.document docs/formats-executorch.md"
    )


def test_every_operator_is_listed_once() -> None:
    listed = "\n".join(operator_list())
    names = [name.partition("::")[2] for name in OPERATORS]
    assert listed.count("`") == 2 * (len(names) + listed.count("**, `"))
    assert all(f"`{name}`" in listed for name in names)
