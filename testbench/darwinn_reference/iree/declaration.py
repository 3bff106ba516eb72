"""Signatures as the sources declare them: ``sync func @name(%a: tensor<4x?xf32>) -> (%b: i32)``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from darwinn_reference.iree.element_types import spelled_dtype
from darwinn_reference.protocol import Port

ATTRIBUTE = "iree.abi.declaration"
"""Attribute of a function that holds its declaration."""

_SIGNATURE = re.compile(r"[^(]*\((?P<arguments>.*?)\)\s*(?:->\s*\((?P<results>.*)\))?\s*")
_VALUE = re.compile(r"\s*%(?P<name>[\w$.-]+)\s*:\s*(?P<type>[^,<{\s]+(?:<[^>]*>)?)[^,]*")
_DIMENSIONS = re.compile(r"(?P<dimensions>(?:(?:\d+|\?)x)*)(?P<element>\w+)")


@dataclass(frozen=True, slots=True)
class DeclaredPort:
    """A port, and its element type as the source spells it."""

    port: Port
    spelling: str


def parse_declaration(
    text: str,
) -> tuple[tuple[DeclaredPort, ...], tuple[DeclaredPort, ...]] | None:
    """Arguments and results of a declaration; None for a text that is none."""
    match = _SIGNATURE.fullmatch(text)
    if match is None:
        return None
    return _ports(match["arguments"]), _ports(match["results"] or "")


def unnamed_ports(prefix: str, letters: Sequence[str]) -> tuple[DeclaredPort, ...]:
    """Ports of a function without a declaration, from the letters of its convention."""
    spellings = {"i": "i32", "I": "i64", "f": "f32", "F": "f64", "r": ""}
    return tuple(
        _port(f"{prefix}{index}", spellings[letter], scalar=True)
        for index, letter in enumerate(letters)
    )


def _ports(text: str) -> tuple[DeclaredPort, ...]:
    return tuple(_typed(match["name"], match["type"].strip()) for match in _VALUE.finditer(text))


def _typed(name: str, type_name: str) -> DeclaredPort:
    if not type_name.startswith("tensor<"):
        return _port(name, type_name, scalar=True)
    return _port(name, type_name.removeprefix("tensor<").removesuffix(">"), scalar=False)


def _port(name: str, text: str, *, scalar: bool) -> DeclaredPort:
    match = _DIMENSIONS.fullmatch(text)
    if match is None:
        return DeclaredPort(Port(name, None, None), "")
    dimensions = tuple(
        None if size == "?" else int(size) for size in match["dimensions"].split("x") if size
    )
    dtype = spelled_dtype(match["element"])
    shape = None if scalar and dtype is None else dimensions
    return DeclaredPort(Port(name, dtype, shape), match["element"])
