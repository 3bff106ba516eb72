"""The list of operators in docs/formats-executorch.md, from the table (``make docs``)."""

from __future__ import annotations

from collections.abc import Iterator

from darwinn_reference.executorch.kernels import (
    distances,
    elementwise,
    gradients,
    linear,
    movement,
    placement,
    primitives,
    quantised,
    quantised_weights,
    random_numbers,
    reductions,
    resampling,
    windows,
)
from darwinn_reference.executorch.operators import LISTS, OPERATORS, REFUSED, listed
from darwinn_reference.marked import replaced

START = "<!-- operators: generated, see darwinn_reference.executorch.document -->"
END = "<!-- end of operators -->"

_GROUPS = (
    ("Element by element", elementwise.KERNELS),
    ("Reductions and normalisations", reductions.KERNELS),
    ("Matrix products and distances", {**linear.KERNELS, **distances.KERNELS}),
    ("Windows: convolution, pooling", windows.KERNELS),
    ("Resampling", resampling.KERNELS),
    ("Gradients", gradients.KERNELS),
    ("Shapes, copies, indices, constants", {**movement.KERNELS, **movement.IN_PLACE}),
    ("Quantisation", {**quantised.KERNELS, **quantised_weights.KERNELS}),
    ("Random numbers", random_numbers.KERNELS),
    ("Placement in memory", placement.KERNELS),
    ("Numbers and conditions", primitives.KERNELS),
)


def coverage() -> Iterator[str]:
    """Lines that say how much there is of each library of the original runtime, 1.5.1."""
    for file, title in LISTS.items():
        names = listed(file)
        yield f"- {title}: {sum(name in OPERATORS for name in names)} of {len(names)}"
    by_reason: dict[str, list[str]] = {}
    for name, reason in REFUSED.items():
        by_reason.setdefault(reason, []).append(f"`{name}`")
    for reason, refused in by_reason.items():
        yield f"- refused, for {reason}: {', '.join(refused)}"


def operator_list() -> Iterator[str]:
    """Lines of the list."""
    yield "The reference implements these operators of the runtime, version 1.5.1:"
    yield ""
    yield from coverage()
    yield ""
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
    return replaced(text, (START, END), operator_list(), "the list of operators")
