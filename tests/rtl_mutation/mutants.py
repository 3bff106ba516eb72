"""Small faults of the RTL, each a text in the place of another, found in slang's syntax tree.

Changed is what is executed: continuous assignments, what is connected to inputs, procedures,
functions. What is constant for the elaboration (parameters, dimensions, generate conditions, heads
of loops, items of cases) stays, as do assertions and what only they read.

An expression is replaced by one of the same type, so that a simulation can choose between the two:
see :mod:`weaving`. Plain Verilog is not for synthesis: there loops are executed as well, and tasks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyslang import ast, syntax
from weaving import STATEMENT, Change

from tests.mutation.mutants import Mutant
from tests.rtl_mutation.elaborated import Elaborated

_OPERATORS: Mapping[str, tuple[str, ...]] = {
    "+": ("-",),
    "-": ("+",),
    "*": ("+",),
    "/": ("*",),
    "%": ("/",),
    "<<": (">>",),
    ">>": ("<<",),
    "<<<": (">>>",),
    ">>>": (">>", "<<<"),
    "&": ("|",),
    "|": ("&",),
    "^": ("|", "&"),
    "<": ("<=", ">="),
    "<=": ("<", ">"),
    ">": (">=", "<="),
    ">=": (">", "<"),
    "==": ("!=",),
    "!=": ("==",),
    "===": ("!==", "=="),
    "!==": ("===", "!="),
    "&&": ("||",),
    "||": ("&&",),
}
"""What takes the place of each operator: its neighbour, and its contrary."""
_SHIFTS = ("<<", ">>", "<<<", ">>>")
_ARITHMETIC_OF_TWO = ("+", "-", "*", "/", "%", "&", "|", "^")
_CARRYING = ("+", "-", "*", "<<")
_NOT_COMMUTATIVE = ("-", "/", "%", "<<", ">>", "<<<", ">>>")
_REDUCTIONS = {"&": "|", "|": "&", "^": "|"}
_ONE = "1'b1"
_WIDTHS = (4, 8, 12, 16, 20, 32)
"""Widths that something might have been cut to: the last two that are less than its own."""
_CALLED = ("$signed", "$unsigned", "$countones")
"""Functions of the language whose argument is a value, and not a type."""
_NO_SIGNALS = (ast.UnbasedUnsizedIntegerLiteral, ast.StringLiteral)
_RESET = "!rst_n"
_UNREAD = "unused"
"""The convention's name for what a module leaves unread."""


def mutants_of(
    elaborated: Elaborated,
    sources: Mapping[str, bytes],
    root: Path,
    kinds: type[Finder] | None = None,
) -> list[Mutant]:
    """All mutants of the sources (by their names below ``root``), in the order of their places.

    ``kinds`` finds other kinds than those of this module.
    """
    called: set[str] = set()

    def calls(node: Any) -> bool:
        if isinstance(node, ast.CallExpression) and not node.isSystemCall:
            runs = any(_has_variable(argument) for argument in node.arguments)
            called.update([node.subroutineName] if runs else [])
        return True

    elaborated.visit(calls)
    finder = (kinds or Finder)(elaborated, sources, root, called)
    elaborated.visit(finder.take)
    seen: Counter[tuple[str, str]] = Counter()
    found = []
    for mutant in sorted(set(finder.found), key=lambda m: (m.file, m.start, m.end, m.replacement)):
        key = (mutant.site, mutant.after)
        found.append(replace(mutant, number=seen[key]))
        seen[key] += 1
    return found


def changes_of(mutants: Mapping[int, Mutant]) -> dict[int, list[Change]]:
    """What each mutant changes, by its number."""
    return {
        number: [Change(Path(each.file).name, each.start, each.end, each.replacement)]
        for number, each in mutants.items()
    }


class Finder:
    """Collects mutants of whatever :meth:`take` is given; of functions, if they are ``called`` with
    variables: the others are for the elaboration.
    """

    def __init__(
        self, elaborated: Elaborated, sources: Mapping[str, bytes], root: Path, called: set[str]
    ) -> None:
        self.found: list[Mutant] = []
        self._elaborated = elaborated
        self._called = called
        self._sources = sources
        self._names = {(root / name).resolve(): name for name in sources}
        self._file = self._scope = ""
        self._source = b""
        self._in_reset = self._clocked = self._plain = False

    def take(self, node: Any) -> bool:
        """Look at a symbol; whether there may be more below it."""
        if isinstance(node, ast.InstanceSymbol):
            self._connections(node)
        elif isinstance(node, ast.SubroutineSymbol | ast.ProceduralBlockSymbol):
            task = getattr(node, "subroutineKind", None) == ast.SubroutineKind.Task
            runs = not isinstance(node, ast.SubroutineSymbol) or task or node.name in self._called
            if runs and self._enters(node):
                self._clocked = self._in_reset = False
                self._statement(node.body, nested=self._plain)
            return False
        elif isinstance(node, ast.NetSymbol):
            if node.initializer is not None and self._enters(node):
                self._assigned(node.initializer)
        elif isinstance(node, ast.ContinuousAssignSymbol):
            if self._enters(node):
                self._assignment(node.assignment)
            return False
        return not isinstance(node, ast.Expression | ast.Statement)

    def _enters(self, symbol: Any) -> bool:
        """Whether a symbol stands in one of the sources."""
        name = self._names.get(self._elaborated.path(symbol))
        if name is None:
            return False
        self._file, self._source = name, self._sources[name]
        self._plain = name.endswith(".v")
        scope = symbol.declaringDefinition
        function = isinstance(symbol, ast.SubroutineSymbol)
        self._scope = ".".join(
            [
                scope.name if scope is not None else Path(name).stem,
                *([symbol.name] if function else []),
            ]
        )
        return True

    def _connections(self, instance: Any) -> None:
        # What gives nothing to anybody checks, as assertions do.
        gives = any(_gives(connection.port) for connection in instance.portConnections)
        if instance.isInterface or not gives or not self._enters(instance):
            return
        for connection in instance.portConnections:
            port, expression = connection.port, connection.expression
            if not isinstance(port, ast.PortSymbol) or expression is None:
                continue
            start = self._start(expression)  # `.name` alone has no text of its own
            explicit = b"." not in self._source[start - 1 : start + 1]
            if port.direction == ast.ArgumentDirection.In and explicit and self._here(expression):
                self._assigned(expression)

    # Texts

    def _here(self, node: Any) -> bool:
        """Whether a node stands in the source at hand; defaults of ports stand in another."""
        return self._names.get(self._elaborated.path(node)) == self._file

    @staticmethod
    def _start(node: Any) -> int:
        return int(node.sourceRange.start.offset)

    @staticmethod
    def _end(node: Any) -> int:
        return int(node.sourceRange.end.offset)

    def _text(self, node: Any) -> str:
        return self._source[self._start(node) : self._end(node)].decode()

    def _put(self, kind: str, node: Any, *replacements: str) -> None:
        self._replace(kind, self._start(node), self._end(node), *replacements)

    def _replace(self, kind: str, start: int, end: int, *replacements: str) -> None:
        source = self._source
        first, last = source.rfind(b"\n", 0, start) + 1, source.find(b"\n", end)
        before = _one_line(source[first:last])
        for replacement in replacements:
            after = _one_line(source[first:start] + replacement.encode() + source[end:last])
            if after == before:
                continue
            text = _one_line(source[start:end])
            mutant = Mutant(
                file=self._file,
                function=self._scope,
                line=source.count(b"\n", 0, start) + 1,
                kind=kind,
                start=start,
                end=end,
                replacement=replacement,
                before=before,
                after=after,
                site=f"{self._file}:{self._scope}: {before}: {text}",
                number=0,
                kernel=False,
            )
            self.found.append(mutant)

    # Statements

    def _statement(self, node: Any, *, nested: bool) -> None:
        """``nested``: it is executed under a condition."""
        match node:
            case ast.StatementList():
                for each in node.list:
                    self._statement(each, nested=nested)
            case ast.BlockStatement():
                self._statement(node.body, nested=nested)
            case ast.ForLoopStatement() | ast.RepeatLoopStatement() | ast.WhileLoopStatement():
                self._head(node)
                self._statement(node.body, nested=nested)
            case ast.TimedStatement():
                self._clocked = True
                self._statement(node.stmt, nested=nested)
            case ast.VariableDeclStatement():
                counts = _counts(node.symbol.syntax)
                if node.symbol.initializer is not None and not counts:
                    self._assigned(node.symbol.initializer)
            case ast.ReturnStatement():
                if node.expr is not None:
                    self._assigned(node.expr)
            case ast.ConditionalStatement():
                self._if(node)
            case ast.CaseStatement():
                self._value(node.expr)
                for each in [*(item.stmt for item in node.items), node.defaultCase]:
                    self._statement(each, nested=True)
            case ast.ExpressionStatement():
                self._done(node.expr, nested=nested)

    def _done(self, node: Any, *, nested: bool) -> None:
        """An expression that is a statement."""
        kind = ""
        if isinstance(node, ast.AssignmentExpression):
            self._assignment(node)
            # In front of all else stand defaults, without which a signal would be a latch.
            if self._clocked or nested:
                kind = "lost reset" if self._in_reset else "lost assignment"
        elif self._plain:
            self._value(node)
            kind = "lost call"
        if kind:
            end = self._source.index(b";", self._end(node)) + 1
            self._replace(kind, self._start(node), end, STATEMENT)

    def _head(self, loop: Any) -> None:
        """What the counter of a loop begins with, and how long a loop goes on."""
        match loop if self._plain else None:
            case ast.ForLoopStatement():
                for each in loop.initializers:
                    self._value(each.right)
                self._value(loop.stopExpr)
            case ast.RepeatLoopStatement():
                self._value(loop.count)
            case ast.WhileLoopStatement():
                self._truth(loop.cond, "1'b0")

    def _if(self, node: Any) -> None:
        (condition,) = (each.expr for each in node.conditions)
        text = self._text(condition)
        if text == _RESET:
            self._put("lost reset", condition, "1'b0")
            self._in_reset = True
            self._statement(node.ifTrue, nested=True)
            self._in_reset = False
        else:
            self._truth(condition, "1'b1", "1'b0")
            if isinstance(node.ifFalse, ast.ConditionalStatement):
                second = self._text(node.ifFalse.conditions[0].expr)
                self._put("priority", condition, f"({text}) && !({second})")
            self._statement(node.ifTrue, nested=True)
        if node.ifFalse is not None:
            self._statement(node.ifFalse, nested=True)

    def _assignment(self, node: Any) -> None:
        if node.bad or _UNREAD in self._text(node.left):
            return
        self._target(node.left)
        # Of `a += b` the sum stands nowhere: only b has a place in the source.
        self._assigned(node.right.right if node.isCompound else node.right)

    def _target(self, node: Any) -> None:
        """Which element is written, if that is decided while the simulation runs."""
        match node:
            case ast.ElementSelectExpression():
                if _is_signal(node.selector):
                    self._index(node.selector)
                self._target(node.value)
            case ast.RangeSelectExpression():
                if node.selectionKind != ast.RangeSelectionKind.Simple and _is_signal(node.left):
                    self._index(node.left)
                self._target(node.value)
            case ast.MemberAccessExpression():
                self._target(node.value)

    # Expressions

    def _assigned(self, node: Any) -> None:
        """The whole of what is assigned, handed over or returned."""
        inner = bare(node)
        if isinstance(inner, ast.AssignmentExpression):  # of an argument that is written
            return
        kind = inner.type
        if is_bits(kind) and not isinstance(inner, _NO_SIGNALS):
            text, width = self._text(inner), kind.bitWidth
            if self._plain:  # where nobody has to say that the rest is left out
                width = min(width, node.type.bitWidth)
            if width == 1 and not isinstance(inner, ast.IntegerLiteral):
                self._put("stuck bit", inner, "1'b0", "1'b1")
                self._put("inverted", inner, f"!({text})")
            elif width > 1 and not isinstance(inner, ast.IntegerLiteral):
                self._bits(inner, text, width)
        self._value(inner)

    def _bits(self, node: Any, text: str, width: int) -> None:
        """Single bits of ``width``, and those from one on; as wide as the text in each instance."""
        kind = node.type
        # What stands in an interface has one width, and may not be asked for it.
        outside = _has_variable(node, inside=False)
        all_bits = str(width) if outside or self._plain else f"$bits({text})"
        cast = "" if self._plain else f"({all_bits})'"
        one = f"{cast}({'1' if kind.isSigned else _ONE})"
        if self._plain:
            one = f"{all_bits}'{'s' * kind.isSigned}d1"
        for bit in ("0", "2", f"{all_bits} - 1")[:: 1 if width > 3 else 2]:
            self._put("stuck bit", node, f"({text}) & ~({one} << ({bit}))")
            self._put("stuck bit", node, f"({text}) | ({one} << ({bit}))")
        if kind.isPredefinedInteger:
            return  # a number of the language, whose width nobody has chosen
        for kept in [each for each in _WIDTHS if each < width][-2:]:
            mask = f"{cast}(({one} << {kept}) - {one})"
            self._put("truncated", node, f"({text}) & {mask}")

    def _truth(self, node: Any, *others: str) -> None:
        """A condition, or a part of one; ``others`` take its place where it is left out."""
        inner = bare(node)
        text = self._text(inner)
        self._put("inverted", inner, f"!({text})")
        self._put("dropped condition", inner, *others)
        self._value(inner)

    def _index(self, node: Any) -> None:
        inner = bare(node)
        if not isinstance(inner, ast.IntegerLiteral):
            self._put("wrong index", inner, f"({self._text(inner)}) ^ 1'b1")
        self._value(inner)

    def _value(self, node: Any) -> None:
        """A value, and all that it is made of."""
        inner = bare(node)
        match inner:
            case ast.IntegerLiteral():
                kind = "stuck bit" if inner.value.hasUnknown else "off by one"
                self._put(kind, inner, *_neighbours(self._text(inner)))
            case ast.UnbasedUnsizedIntegerLiteral():
                self._put("stuck bit", inner, "'1" if self._text(inner) == "'0" else "'0")
            case ast.NamedValueExpression():
                self._named(inner)
            case ast.UnaryExpression():
                self._unary(inner)
            case ast.BinaryExpression():
                self._binary(inner)
            case ast.ConditionalExpression():
                self._conditional(inner)
            case ast.ConversionExpression():
                self._conversion(inner)
            case ast.CallExpression():
                self._call(inner)
            case _:
                self._part(inner)

    def _part(self, node: Any) -> None:
        """A part of a value, or what is put together of several."""
        match node:
            case ast.ConcatenationExpression():
                for each in node.operands:
                    self._value(each)
            case ast.ReplicationExpression():
                self._value(node.concat)
            case ast.ElementSelectExpression():
                self._index(node.selector)
                self._value_of(node.value)
            case ast.RangeSelectExpression():
                if node.selectionKind != ast.RangeSelectionKind.Simple:
                    self._index(node.left)
                self._value_of(node.value)
            case ast.MemberAccessExpression():
                self._value_of(node.value)
            case ast.InsideExpression():
                self._value(node.left)
            case ast.StructuredAssignmentPatternExpression():
                for setter in node.memberSetters:
                    self._assigned(setter.expr)
            case ast.SimpleAssignmentPatternExpression():
                for each in node.elements:
                    self._assigned(each)

    def _value_of(self, node: Any) -> None:
        """What an element, a range or a member is taken of: a name, or one of these again."""
        if not isinstance(node, ast.ValueExpressionBase):
            self._value(node)

    def _named(self, node: Any) -> None:
        text, kind = self._text(node), node.type
        if isinstance(node.symbol, ast.EnumValueSymbol):
            names = [each.name for each in node.symbol.parentScope]
            place, scope = names.index(node.symbol.name), text.removesuffix(node.symbol.name)
            others = (names[(place + 1) % len(names)], names[place - 1])
            self._put("off by one", node, *(scope + other for other in others))
        elif isinstance(node.symbol, ast.ParameterSymbol):
            # Counters of generate loops, whose names begin with a small letter, are indices.
            if is_bits(kind) and not node.symbol.name[0].islower():
                cast = "" if kind.isSigned else f"($bits({text}))'"
                self._put("off by one", node, f"{cast}({text} + 1)", f"{cast}({text} - 1)")
        elif kind.isIntegral and kind.isSigned and not kind.isPredefinedInteger:
            self._put("signedness", node, "$signed({1'b0, " + text + "})")

    def _unary(self, node: Any) -> None:
        operand = self._text(node.operand)
        token = syntax_of(node).operatorToken.rawText
        if token in ("!", "~", "-"):
            self._put("inverted", node, f"({operand})")
        elif token in _REDUCTIONS:
            self._put("operator", node, f"{_REDUCTIONS[token]}({operand})")
        self._value(node.operand)

    def _binary(self, node: Any) -> None:
        parts = syntax_of(node)
        operator = parts.operatorToken.rawText
        left, right = self._text(parts.left), self._text(parts.right)
        for other in _OPERATORS.get(operator, ()):
            self._put("operator", parts, f"({left} {other} {right})")
        if operator in _NOT_COMMUTATIVE:
            self._put("swapped operands", parts, f"({right} {operator} {left})")
        if operator in _CARRYING and not node.type.isSigned and _width(node) < node.type.bitWidth:
            self._put("truncated", parts, "{" + f"{left} {operator} {right}" + "}")
        if operator in ("<", "<=", ">", ">=") and node.left.type.isSigned:
            self._put("signedness", parts, f"($unsigned({left}) {operator} $unsigned({right}))")
        if operator in ("&&", "||"):
            neutral = "1'b1" if operator == "&&" else "1'b0"
            self._truth(node.left, neutral)
            self._truth(node.right, neutral)
        else:
            self._value(node.left)
            self._value(node.right)

    def _conditional(self, node: Any) -> None:
        (condition,) = (each.expr for each in node.conditions)
        parts = syntax_of(node)
        predicate, left, right = map(self._text, (parts.predicate, parts.left, parts.right))
        swapped = f"({predicate} ? {right} : {left})"
        self._put("swapped operands", parts, swapped)
        self._truth(condition, "1'b1", "1'b0")
        self._value(node.left)
        self._value(node.right)

    def _conversion(self, node: Any) -> None:
        """An explicit cast."""
        text = self._text(node)
        if text.startswith("signed'"):
            operand = text.removeprefix("signed'")
            self._put("signedness", node, "signed'({1'b0, " + operand + "})")
        self._value(node.operand)

    def _call(self, node: Any) -> None:
        if node.isSystemCall and node.subroutineName not in _CALLED:
            return
        if node.subroutineName == "$signed":
            argument = self._text(node.arguments[0])
            self._put("signedness", node, "$signed({1'b0, " + argument + "})")
        for each in node.arguments:
            self._assigned(each)


def _one_line(text: bytes) -> str:
    return " ".join(text.decode().split())


def bare(node: Any) -> Any:
    """An expression without the conversions that nobody has written."""
    while isinstance(node, ast.ConversionExpression) and node.isImplicit:
        node = node.operand
    return node


def syntax_of(node: Any) -> Any:
    """What an expression is made from, without parentheses around it."""
    found = node.syntax
    while isinstance(found, syntax.ParenthesizedExpressionSyntax):
        found = found.expression
    return found


def _gives(port: Any) -> bool:
    """Whether something may come out of a port."""
    return not isinstance(port, ast.PortSymbol) or port.direction != ast.ArgumentDirection.In


def _counts(declaration: Any) -> bool:
    """Whether a variable is declared in the head of a loop."""
    around = (declaration.parent, declaration.parent.parent)
    return any(isinstance(each, syntax.ForLoopStatementSyntax) for each in around)


def _width(node: Any) -> int:
    """Bits of an expression by itself, wherever it stands."""
    inner = bare(node)
    if isinstance(inner, ast.BinaryExpression):
        operator = syntax_of(inner).operatorToken.rawText
        if operator in _ARITHMETIC_OF_TWO:
            return max(_width(inner.left), _width(inner.right))
        if operator in _SHIFTS:
            return _width(inner.left)
    if isinstance(inner, ast.ConditionalExpression):
        return max(_width(inner.left), _width(inner.right))
    return int(inner.type.bitWidth)


def is_bits(kind: Any) -> bool:
    return bool(kind.isIntegral) and not kind.isStruct and not kind.isEnum


def _is_signal(node: Any) -> bool:
    """Whether an expression has a signal of the module in it, not only counters of loops."""
    return _has_variable(node, but=ast.VariableLifetime.Automatic)


def _has_variable(node: Any, but: Any = None, *, inside: bool = True) -> bool:
    """Whether there is a variable in an expression; those with the lifetime ``but`` do not count,
    and without ``inside`` none but those of interfaces.
    """
    found: list[Any] = []

    def visited(each: Any) -> None:
        if isinstance(each, ast.HierarchicalValueExpression):
            found.append(each)
        named = inside and isinstance(each, ast.NamedValueExpression)
        if named and isinstance(each.symbol, ast.VariableSymbol | ast.NetSymbol):
            other = but is None or getattr(each.symbol, "lifetime", None) != but
            found.extend([each] if other else [])

    node.visit(visited)
    return bool(found)


def _neighbours(literal: str) -> Iterable[str]:
    """A literal and one more, and one less, as wide as it is; of an unknown one 0."""
    size, tick, rest = literal.partition("'")
    if not tick:
        value = int(literal.replace("_", ""))
        return (str(value + 1), f"({value} - 1)")
    base = {"d": 10, "h": 16, "b": 2, "o": 8}[rest.lower().lstrip("s")[0]]
    if "x" in rest.lower():
        return (f"{size}'d0",)
    signed = "s" if rest.lower().startswith("s") else ""
    value = int(rest.lower().lstrip("s")[1:].replace("_", ""), base)
    width = int(size) if size else 32
    others = dict.fromkeys(((value + 1) % (1 << width), (value - 1) % (1 << width)))
    return tuple(f"{width}'{signed}d{each}" for each in others)
