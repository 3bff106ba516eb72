"""The list of operators in docs/formats-executorch.md, from the table (``make docs``)."""

from __future__ import annotations

from collections.abc import Iterator

from darwinn_testbench.reference.executorch.kernels import (
    elementwise,
    linear,
    movement,
    placement,
    primitives,
    quantised,
    reductions,
    windows,
)
from darwinn_testbench.reference.executorch.operators import OPERATORS

START = "<!-- operators: generated, see darwinn_testbench.reference.executorch.document -->"
END = "<!-- end of operators -->"

_GROUPS = (
    ("Element by element", elementwise.KERNELS),
    ("Reductions and normalisations", reductions.KERNELS),
    ("Matrix products", linear.KERNELS),
    ("Windows: convolution, pooling, resampling", windows.KERNELS),
    ("Shapes, copies, indices, constants", {**movement.KERNELS, **movement.IN_PLACE}),
    ("Quantisation", quantised.KERNELS),
    ("Placement in memory", placement.KERNELS),
    ("Numbers and conditions", primitives.KERNELS),
)


def operator_list() -> Iterator[str]:
    """Lines of the list."""
    yield f"{len(OPERATORS)} operators, by full name (namespace, name, overload):"
    yield ""
    for title, kernels in _GROUPS:
        by_namespace: dict[str, list[str]] = {}
        for name in sorted(kernels):
            namespace, _, rest = name.partition("::")
            by_namespace.setdefault(namespace, []).append(rest)
        for namespace, names in by_namespace.items():
            listed = ", ".join(f"`{name}`" for name in names)
            yield f"- **{title}**, `{namespace}::`: {listed}"


def updated(text: str) -> str:
    """A document with the list between its marks replaced; ValueError if a mark is missing."""
    before, start, rest = text.partition(START)
    _, end, after = rest.partition(END)
    if not start or not end:
        raise ValueError("the document has no place for the list of operators")
    return f"{before}{START}\n\n" + "\n".join(operator_list()) + f"\n\n{END}{after}"
