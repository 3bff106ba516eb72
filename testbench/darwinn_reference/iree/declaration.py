"""Signatures as the sources declare them: ``sync func @name(%a: tensor<4x?xf32>) -> (%b: i32)``.

A value may have attributes behind its type, in braces.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from darwinn_reference.iree.element_types import spelled_dtype
from darwinn_reference.protocol import Port

ATTRIBUTE = "iree.abi.declaration"
"""Attribute of a function that holds its declaration."""

_SIGNATURE = re.compile(r"[^(]*\((?P<arguments>.*?)\)\s*(?:->\s*\((?P<results>.*)\))?\s*")
_TYPE = r"[^,<{}\s]+(?:<[^>]*>)?"
_VALUE = re.compile(
    rf"\s*%(?P<name>[\w$.-]+)\s*:\s*(?P<type>{_TYPE})(?:\s*\{{(?P<attributes>[^}}]*)\}})?[^,]*"
)
_ENCODING = re.compile(rf"\biree\.abi\.encoding\s*=\s*(?P<type>{_TYPE})")
"""The type that the program checks if it computes with another: ``tensor<4xui8>`` of a
``tensor<4xi8>``."""
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
    return tuple(_typed(match["name"], _outer_type(match)) for match in _VALUE.finditer(text))


def _outer_type(match: re.Match[str]) -> str:
    """The type of a value as a caller has it."""
    encoding = _ENCODING.search(match["attributes"] or "")
    return encoding["type"] if encoding else match["type"].strip()


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
