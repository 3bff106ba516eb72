"""The table of kernels at the end of docs/formats-bef.md, from the registry (``make docs``)."""

from __future__ import annotations

from collections.abc import Iterator

from darwinn_formats.tfrt import DType, Kind
from darwinn_formats.tfrt.encoding import ARRAY_FLAG

from darwinn_reference.tfrt import KERNELS, KernelDefinition

_ELEMENTS = frozenset({dtype.name.lower() for dtype in DType} | {"bool"})
_SHAPED = frozenset(name for name in KERNELS if ".create_" in name)
"""Kernels whose attribute is a shape, of i64 whatever T is."""


_HEAD = "| kernel | T | attributes | operands | results |"


def updated(page: str) -> str:
    """The page with its table as it is now; what is before it is written by hand."""
    prose = page.partition(f"\n{_HEAD}\n")[0]
    return "\n".join([prose, *_lines()]) + "\n"


def _lines() -> Iterator[str]:
    """Rows of a table: kernels that differ only in element type or rank share one."""
    yield _HEAD
    yield "|---|---|---|---|---|"
    families: dict[tuple[str, ...], list[str]] = {}
    for name, definition in KERNELS.items():
        pattern, element = _pattern(name)
        key = (pattern, _attributes(definition, element), *_counts(definition))
        families.setdefault(key, [])
        if element and element not in families[key]:
            families[key].append(element)
    for (pattern, attributes, operands, results), elements in sorted(families.items()):
        yield f"| `{pattern}` | {' '.join(elements)} | {attributes} | {operands} | {results} |"


def _pattern(name: str) -> tuple[str, str]:
    parts, element = name.split("."), ""
    if parts[-1].isdecimal():
        parts[-1] = "R"
    for number in range(1, len(parts)):
        if parts[number] in _ELEMENTS:
            element, parts[number] = parts[number], "T"
    return ".".join(parts), element


def _attributes(definition: KernelDefinition, element: str) -> str:
    names = []
    for code in definition.attributes:
        number = code & ~ARRAY_FLAG
        name = (Kind(number) if number >= Kind.TYPE else DType(number)).name.lower()
        if name == ("i1" if element == "bool" else element) and definition.name not in _SHAPED:
            name = "T"
        names.append(f"{name}[]" if code & ARRAY_FLAG else name)
    return ", ".join(names) + (", ..." if definition.repeats else "")


def _counts(definition: KernelDefinition) -> tuple[str, str]:
    operands, results = definition.operands, definition.results
    return "any" if operands is None else str(operands), "any" if results is None else str(results)
