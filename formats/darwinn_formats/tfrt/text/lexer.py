"""Tokens of the text form, each with its place."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Token:
    """A token; ``kind`` is one of the names in the pattern, or ``end``."""

    kind: str
    text: str
    line: int
    column: int
    start: int

    @property
    def end(self) -> int:
        """Offset after the token."""
        return self.start + len(self.text)


_NAME = r"[A-Za-z_][A-Za-z0-9_$.]*"
_PATTERN: Final = re.compile(
    r"(?P<skip>(?:\s|//[^\n]*)+)"
    rf"|(?P<value>%(?:[0-9]+|[A-Za-z_$.-][A-Za-z0-9_$.-]*))"
    rf'|(?P<symbol>@(?:{_NAME}|"(?:[^"\\\n]|\\.)*"))'
    rf"|(?P<type>!{_NAME})"
    r"|(?P<number_of_result>#[0-9]+)"
    rf"|(?P<alias>#{_NAME})"
    r"|(?P<block>\^[A-Za-z0-9_$.-]+)"
    r'|(?P<string>"(?:[^"\\\n]|\\.)*")'
    r"|(?P<float>-?[0-9]+\.[0-9]*(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<hex>0x[0-9A-Fa-f]+)"
    r"|(?P<integer>-?[0-9]+)"
    rf"|(?P<name>{_NAME})"
    r"|(?P<mark>->|::|[(){}\[\]<>,:=?*])"
    r"|(?P<other>.)"
)


def tokens(text: str) -> list[Token]:
    """All tokens; the last one is of kind ``end``, ``other`` are characters that start no token."""
    result, position, line, line_start = [], 0, 1, 0
    while position < len(text):
        match = _PATTERN.match(text, position)
        assert match is not None, "every character is a token at least"
        column = position - line_start + 1
        token = match.group()
        if match.lastgroup == "skip":
            if "\n" in token:
                line += token.count("\n")
                line_start = position + token.rindex("\n") + 1
        else:
            result.append(Token(str(match.lastgroup), token, line, column, position))
        position = match.end()
    result.append(Token("end", "", line, position - line_start + 1, position))
    return result


_ESCAPES: Final = {"n": "\n", "t": "\t", '"': '"', "\\": "\\"}
_ESCAPE: Final = re.compile(rb"\\([0-9A-Fa-f]{2}|.)", re.DOTALL)


def unescape(quoted: str) -> bytes:
    """Bytes of a quoted string: ``\\n \\t \\" \\\\`` and two hexadecimal digits.

    Raises:
        ValueError: for another escape.
    """

    def replace(match: re.Match[bytes]) -> bytes:
        escape = match.group(1).decode("latin-1")
        if escape in _ESCAPES:
            return _ESCAPES[escape].encode()
        if len(escape) != 2:
            raise ValueError(f"\\{escape} is no escape")
        return bytes.fromhex(escape)

    return _ESCAPE.sub(replace, quoted[1:-1].encode("utf-8", "surrogateescape"))


def quote(data: bytes) -> str:
    """A quoted string; quotes and bytes that are not printable ASCII are in hexadecimal."""
    text = "".join(
        "\\\\"
        if byte == 0x5C
        else chr(byte)
        if 32 <= byte < 127 and byte != 0x22
        else f"\\{byte:02X}"
        for byte in data
    )
    return f'"{text}"'
