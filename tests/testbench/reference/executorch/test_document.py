"""The document of the ExecuTorch formats lists the operators of the table."""

from __future__ import annotations

from darwinn_testbench.reference.executorch import OPERATORS
from darwinn_testbench.reference.executorch.document import operator_list


def test_every_operator_is_listed_once() -> None:
    listed = "\n".join(operator_list())
    names = [name.partition("::")[2] for name in OPERATORS]
    assert listed.count("`") == 2 * (len(names) + listed.count("**, `"))
    assert all(f"`{name}`" in listed for name in names)
