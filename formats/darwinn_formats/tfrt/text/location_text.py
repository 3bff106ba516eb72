"""Locations in the text form."""

from __future__ import annotations

from typing import Final

from darwinn_formats.errors import TextError
from darwinn_formats.tfrt.model import (
    CallSite,
    FileLineColumn,
    Fused,
    Location,
    NameLocation,
    UnknownLocation,
)
from darwinn_formats.tfrt.text.lexer import Token, quote
from darwinn_formats.tfrt.text.token_reader import TokenReader

MAXIMUM_DEPTH: Final = 64
"""Locations in locations."""


def location_text(location: Location) -> str:
    """What stands in ``loc(...)``."""
    match location:
        case FileLineColumn(file, line, column):
            return f"{_quoted(file)}:{line}:{column}"
        case NameLocation(name, child):
            inner = location_text(child)
            return _quoted(name) if inner == "unknown" else f"{_quoted(name)}({inner})"
        case CallSite(callee, caller):
            return f"callsite({location_text(callee)} at {location_text(caller)})"
        case Fused(locations):
            return f"fused[{', '.join(map(location_text, locations))}]"
        case _:
            return "unknown"


def _quoted(text: str) -> str:
    return quote(text.encode("utf-8", "surrogateescape"))


def error_at(location: Location, file: str, reason: str) -> TextError:
    """An error at a location, or at the start of the file if it names no place there."""
    if isinstance(location, FileLineColumn) and location.file == file:
        return TextError(file, location.line, location.column, reason)
    return TextError(file, 1, 1, reason)


def parse_location(reader: TokenReader) -> Location | None:
    """``loc(...)`` or nothing; aliases are put in at the end."""
    if reader.token.text != "loc":
        return None
    reader.take()
    reader.expect("(")
    location = _body(reader, 0)
    reader.expect(")")
    return location


def _body(reader: TokenReader, depth: int) -> Location:
    """What stands in ``loc(...)``."""
    token = reader.token
    if depth > MAXIMUM_DEPTH:
        raise reader.error(f"locations are nested more than {MAXIMUM_DEPTH} deep")
    if token.kind == "alias":
        reader.take()
        return _of_alias(reader, token)
    if reader.accept("unknown"):
        return UnknownLocation()
    if reader.accept("fused"):
        entries = reader.entries("[", "]", lambda: _body(reader, depth + 1))
        return Fused(tuple(entries)) if entries else UnknownLocation()
    if reader.accept("callsite"):
        reader.expect("(")
        callee = _body(reader, depth + 1)
        reader.expect("at")
        caller = _body(reader, depth + 1)
        reader.expect(")")
        return CallSite(callee, caller)
    name = reader.name_string()
    if reader.accept(":"):
        line = reader.integer()
        reader.expect(":")
        return FileLineColumn(name, line, reader.integer())
    if reader.accept("("):
        child = _body(reader, depth + 1)
        reader.expect(")")
        return NameLocation(name, child)
    return NameLocation(name)


def _of_alias(reader: TokenReader, token: Token) -> Location:
    """The location of ``#name``, which may be defined after its uses."""
    at = next(
        (
            number
            for number in range(len(reader.tokens) - 1)
            if reader.tokens[number].text == token.text
            and reader.tokens[number + 1].text == "="
            and reader.tokens[number].kind == "alias"
        ),
        None,
    )
    if at is None:
        raise reader.error(f"{token.text} is not defined", token)
    if reader.depth > MAXIMUM_DEPTH:
        raise reader.error(f"{token.text} is defined by itself", token)
    back, reader.position = reader.position, at + 2
    reader.depth += 1
    location = parse_location(reader)
    reader.depth -= 1
    if location is None:
        raise reader.error("loc(...) is expected")
    reader.position = back
    return location
