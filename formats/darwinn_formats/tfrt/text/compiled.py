"""Compiled modules: the texts that files carry for other compilers, which are MLIR of any kind.

A file has such a text in each symbol that refers to it; the original writes it in generic form.
Here it is the module's own head around what the file says, which is not read further.
"""

from __future__ import annotations

from textwrap import dedent, indent
from typing import Final

from darwinn_formats.errors import TextError
from darwinn_formats.tfrt.model import String
from darwinn_formats.tfrt.text.attribute_text import (
    parse_attributes,
    print_attributes,
    symbol_text,
)
from darwinn_formats.tfrt.text.parser import Parser
from darwinn_formats.tfrt.text.syntax import Attributes

_GENERIC: Final = frozenset({"builtin.module", "module"})
"""Names of a module as an operation, the second one in older files."""
_NAME: Final = "sym_name"


def compiled_module(unit: bytes) -> tuple[str, str] | None:
    """Name and text, as a module of a module has it, of a unit; None where it is something else."""
    try:
        parser = Parser(unit.decode(), "-")
        start = parser.token
        if start.kind == "string":
            name, text = _of_generic(parser)
        else:
            name, _ = parser.module_head()
            text = parser.source(start, parser.skip_braces())
        return (name, text) if name and parser.token.kind == "end" else None
    except (UnicodeDecodeError, TextError):
        return None


def _of_generic(parser: Parser) -> tuple[str, str]:
    """``"builtin.module"() <{...}> ({ operations }) {...} : () -> ()``."""
    start = parser.token
    if parser.name_string() not in _GENERIC:
        raise parser.error("a module is expected", start)
    attributes = Attributes()
    parser.entries("(", ")", parser.type)
    if parser.accept("<"):
        attributes |= parse_attributes(parser)
        parser.expect(">")
    parser.expect("(")
    opening = parser.token
    closing = parser.skip_braces()
    parser.expect(")")
    attributes |= parse_attributes(parser)
    for mark in (":", "(", ")", "->", "(", ")"):
        parser.expect(mark)
    name = attributes.pop(_NAME, None)
    if not isinstance(name, String):
        raise parser.error("it has no name", start)
    inside = dedent(parser.text[opening.end : closing.start].strip("\n").rstrip())
    body = f"\n{indent(inside, '  ')}\n" if inside else "\n"
    head = f" attributes {print_attributes(attributes)}" if attributes else ""
    return name.value, f"module {symbol_text(name.value)}{head} {{{body}}}"
