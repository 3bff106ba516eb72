"""A second generator of small faults of the RTL, of the kinds that people found where the first one
saw nothing: conditions that never end, events that are lost when two come at once, bounds by one,
high bits that are rarely used, and checkers that let something pass.

The places are those of :mod:`tests.rtl_mutation.mutants`; what takes the place of the source is
another text.
"""

from __future__ import annotations

from typing import Any

from pyslang import ast

from tests.rtl_mutation.mutants import Finder, bare, is_bits, syntax_of

KINDS = (
    "boundary by one",
    "never ends",
    "lost together",
    "high bits",
    "checker weakened",
)
"""What this generator changes."""
CHECK = "_check.sv"
"""The end of the names of sources that only watch: all changes of the first generator are tried on
them, each as a checker that is weakened."""

_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
_LONG = 16
"""Bits from which on the highest ones are rarely used."""


class Moments(Finder):
    """Finds mutants of these kinds alone."""

    def _replace(self, kind: str, start: int, end: int, *replacements: str) -> None:
        if self._file.endswith(CHECK):
            super()._replace("checker weakened", start, end, *replacements)
        elif kind in KINDS:
            super()._replace(kind, start, end, *replacements)

    def _assignment(self, node: Any) -> None:
        super()._assignment(node)
        if not self._clocked or self._in_reset or node.bad or node.isCompound:
            return
        value, target = bare(node.right), self._text(node.left)
        if not is_bits(value.type) or isinstance(
            value, ast.IntegerLiteral | ast.UnbasedUnsizedIntegerLiteral
        ):
            return
        text = self._text(value)
        if value.type.bitWidth == 1:
            self._put("never ends", value, f"(({text}) || {target})")
        else:
            self._put("never ends", value, f"(({text}) == '0 ? {target} : ({text}))")

    def _bits(self, node: Any, text: str, width: int) -> None:
        super()._bits(node, text, width)
        if width >= _LONG and not node.type.isPredefinedInteger:
            for kept in (f"$bits({text}) - 1", f"$bits({text}) * 3 / 4"):
                one = f"($bits({text}))'(1)"
                self._put(
                    "high bits", node, f"({text}) & ($bits({text}))'(({one} << ({kept})) - 1)"
                )

    def _binary(self, node: Any) -> None:
        super()._binary(node)
        parts = syntax_of(node)
        operator = parts.operatorToken.rawText
        left, right = self._text(parts.left), self._text(parts.right)
        if operator in _COMPARISONS and self._may_be_next(node):
            for sign in "+-":
                bound = f"($bits({right}))'(({right}) {sign} 1)"
                self._put("boundary by one", parts, f"(({left}) {operator} {bound})")
        elif operator in ("||", "|"):
            whole = operator == "||"
            ends = (f"(({left}) != '0)", f"(({right}) != '0)") if whole else (left, right)
            self._put("lost together", parts, f"(({ends[0]}) ^ ({ends[1]}))")
        elif operator == "-":
            self._both_at_once(node, parts, right)

    def _may_be_next(self, node: Any) -> bool:
        """Whether the right side is a number that is no literal: those the first generator has."""
        right = bare(node.right)
        literal = isinstance(right, ast.IntegerLiteral | ast.UnbasedUnsizedIntegerLiteral)
        return is_bits(right.type) and right.type.bitWidth > 1 and not literal

    def _both_at_once(self, node: Any, parts: Any, taken: str) -> None:
        """Of a sum from which something is taken, what is added is lost when both come."""
        inner = bare(node.left)
        if not isinstance(inner, ast.BinaryExpression):
            return
        inside = syntax_of(inner)
        if inside.operatorToken.rawText != "+":
            return
        first, added = self._text(inside.left), self._text(inside.right)
        self._put(
            "lost together",
            parts,
            f"(({taken}) != '0 ? ({first}) - ({taken}) : ({first}) + ({added}))",
            f"(({added}) != '0 ? ({first}) + ({added}) : ({first}) - ({taken}))",
        )

    def _call(self, node: Any) -> None:
        super()._call(node)
        if node.isSystemCall and node.subroutineName == "$countones":
            argument = self._text(node.arguments[0])
            self._put("lost together", node, f"32'(|({argument}))")
