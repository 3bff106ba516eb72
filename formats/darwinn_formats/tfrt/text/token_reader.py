"""A position in a text, and what all productions need from it: tokens, names, numbers, types."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from darwinn_formats.errors import TextError
from darwinn_formats.tfrt.text.lexer import Token, tokens, unescape
from darwinn_formats.tfrt.text.type_names import OLD_TENSOR, TENSOR

_T = TypeVar("_T")


class TokenReader:
    """A position in a text.

    ``depth`` counts what is open: regions in regions, and locations that stand for others.
    """

    def __init__(self, text: str, file: str) -> None:
        self.text = text
        self.file = file
        self.tokens = tokens(text)
        self.position = 0
        self.depth = 0

    @property
    def token(self) -> Token:
        """The next token; TextError at a character that starts none."""
        token = self.tokens[self.position]
        if token.kind == "other":
            what = "a string that does not end" if token.text == '"' else repr(token.text)
            raise self.error(f"{what} starts no token", token)
        return token

    def take(self) -> Token:
        """The next token, left behind."""
        token = self.token
        if token.kind != "end":
            self.position += 1
        return token

    def error(self, reason: str, token: Token | None = None) -> TextError:
        """An error at a token, or at the next one."""
        token = token or self.token
        return TextError(self.file, token.line, token.column, reason)

    def accept(self, text: str) -> bool:
        """Take a token of that text if it is next."""
        if self.token.text != text or self.token.kind == "string":
            return False
        self.take()
        return True

    def expect(self, text: str) -> Token:
        """Take a token, which has to be of that text."""
        token = self.token
        if not self.accept(text):
            raise self.error(f"{text!r} is expected, not {token.text or 'the end'!r}")
        return token

    def of_kind(self, kind: str, what: str) -> str:
        """Take a token, which has to be of that kind."""
        if self.token.kind != kind:
            raise self.error(f"{what} is expected, not {self.token.text or 'the end'!r}")
        return self.take().text

    def entries(self, opening: str, closing: str, entry: Callable[[], _T]) -> list[_T]:
        """Entries between brackets, with commas between them."""
        self.expect(opening)
        found: list[_T] = []
        if self.accept(closing):
            return found
        found.append(entry())
        while self.accept(","):
            found.append(entry())
        self.expect(closing)
        return found

    def string(self) -> bytes:
        """A quoted string."""
        token = self.token
        text = self.of_kind("string", "a string")
        try:
            return unescape(text)
        except ValueError as error:
            raise self.error(str(error), token) from None

    def name_string(self) -> str:
        """A quoted string that names something."""
        return self.string().decode("utf-8", "surrogateescape")

    def integer(self) -> int:
        """A decimal integer."""
        return int(self.of_kind("integer", "an integer"))

    def symbol(self) -> str:
        """``@name`` without the ``@``."""
        token = self.token
        text = self.of_kind("symbol", "the name of a function")[1:]
        if not text.startswith('"'):
            return text
        try:
            return unescape(text).decode("utf-8", "surrogateescape")
        except ValueError as error:
            raise self.error(str(error), token) from None

    def type(self) -> str:
        """A type, as it is written but by its present name, with brackets that match."""
        start = self.token
        if start.kind not in ("type", "name"):
            raise self.error(f"a type is expected, not {start.text or 'the end'!r}")
        last = self.take()
        if self.token.text == "<" and self.token.start == last.end:
            depth = 0
            while True:
                last = self.take()
                if last.kind == "end":
                    raise self.error("the type does not end", start)
                depth += (last.text == "<") - (last.text == ">")
                if depth == 0:
                    break
        written = " ".join(self.text[start.start : last.end].split())
        return written.replace(OLD_TENSOR, TENSOR)

    def types(self) -> list[str]:
        """``type`` or ``(type, ...)``."""
        if self.token.text == "(":
            return self.entries("(", ")", self.type)
        return [self.type()]

    def type_list(self) -> list[str]:
        """``type, ...``."""
        types = [self.type()]
        while self.accept(","):
            types.append(self.type())
        return types
