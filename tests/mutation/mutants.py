"""Small changes of Python sources, each a text in the place of another.

Changed is what functions do. What is executed when a module or a class is loaded is a table and
stays, as do annotations, decorators, assertions, the text of messages (f-strings), and bodies that
only say what others have to do.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

KERNEL_DECORATORS = frozenset(("compiled", "inner", "part", "unchecked"))
_ABSTRACT = frozenset(("abstractmethod", "overload"))

_COMPARISONS: dict[type[ast.cmpop], tuple[str, tuple[str, ...]]] = {
    ast.Lt: ("<", ("<=", ">=")),
    ast.LtE: ("<=", ("<", ">")),
    ast.Gt: (">", (">=", "<=")),
    ast.GtE: (">=", (">", "<")),
    ast.Eq: ("==", ("!=",)),
    ast.NotEq: ("!=", ("==",)),
    ast.Is: ("is", ("is not",)),
    ast.IsNot: (r"is\s+not", ("is",)),
    ast.In: ("in", ("not in",)),
    ast.NotIn: (r"not\s+in", ("in",)),
}
"""How each is written, and what takes its place: its boundary, and its contrary."""

_ARITHMETIC: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "//"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "//"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
    ast.BitXor: ("^", "&"),
}

_WORDS = ("break", "continue")

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Mutant:
    """``replacement`` for the bytes from ``start`` to ``end`` of ``file``.

    ``before`` and ``after`` are the lines that it changes, without the space around them; ``site``
    is equal for those that change the same thing in several ways, ``number`` tells sites apart that
    read alike. ``kernel``: its function is compiled to machine code.
    """

    file: str
    function: str
    line: int
    kind: str
    start: int
    end: int
    replacement: str
    before: str
    after: str
    site: str
    number: int
    kernel: bool

    def apply(self, source: bytes) -> bytes:
        """The changed source; as many lines as before, so that all others keep their numbers."""
        lines = source[self.start : self.end].count(b"\n") - self.replacement.count("\n")
        changed = self.replacement.encode() + b"\n" * lines
        return source[: self.start] + changed + source[self.end :]

    @property
    def name(self) -> str:
        """What it is, wherever in the file it stands."""
        return f"{self.site}#{self.number} -> {self.after}"


def mutants_of(file: str, source: bytes) -> list[Mutant]:
    """All mutants of a source, in the order of their places."""
    finder = _Finder(file, source)
    finder.visit(ast.parse(source))
    seen: Counter[tuple[str, str]] = Counter()
    found = []
    for mutant in dict.fromkeys(sorted(finder.found, key=lambda each: (each.start, each.end))):
        key = (mutant.site, mutant.after)
        found.append(replace(mutant, number=seen[key]))
        seen[key] += 1
    return found


def drawn(mutants: Iterable[Mutant], seed: int) -> list[Mutant]:
    """One mutant of each site, in random order.

    The order follows from the seed and from what each site is: more mutants of a seed begin with
    the same ones, and a change elsewhere leaves the others in their order.
    """

    def rank(mutant: Mutant) -> bytes:
        return hashlib.sha256(f"{seed}/{mutant.name}".encode()).digest()

    chosen: dict[tuple[str, int], Mutant] = {}
    for mutant in sorted(mutants, key=rank):
        chosen.setdefault((mutant.site, mutant.start), mutant)
    return list(chosen.values())


def is_python(source: bytes) -> bool:
    """Whether it can be compiled: a few mutants cannot, such as a line that ends in ``break``."""
    try:
        compile(source, "mutant", "exec", dont_inherit=True)
    except SyntaxError:
        return False
    return True


class _Finder(ast.NodeVisitor):
    def __init__(self, file: str, source: bytes) -> None:
        self.found: list[Mutant] = []
        self._file = file
        self._source = source
        self._lines = [0]
        for line in source.splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))
        self._names: list[str] = []
        self._functions: list[Function] = []

    # What holds functions.

    def visit_Module(self, node: ast.Module) -> None:
        self._definitions(node.body)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._names.append(node.name)
        self._definitions(node.body)
        self._names.pop()

    def _definitions(self, body: Sequence[ast.stmt]) -> None:
        for each in body:
            if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                self.visit(each)

    def visit_FunctionDef(self, node: Function) -> None:
        if _ABSTRACT & _decorators(node) or all(map(_says_nothing, node.body)):
            return
        self._names.append(node.name)
        self._functions.append(node)
        for default in (*node.args.defaults, *node.args.kw_defaults):
            if default is not None:
                self.visit(default)
        for statement in node.body:
            self.visit(statement)
        self._functions.pop()
        self._names.pop()

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815

    # What is left as it is.

    def visit_Assert(self, node: ast.Assert) -> None:
        pass

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        pass

    def visit_Call(self, node: ast.Call) -> None:
        is_zip = isinstance(node.func, ast.Name) and node.func.id == "zip"
        is_reshape = isinstance(node.func, ast.Attribute) and node.func.attr == "reshape"
        for child in ast.iter_child_nodes(node):
            if is_reshape and isinstance(child, ast.UnaryOp):
                # NumPy takes any negative number for the size that follows from the others.
                self._sign(child)
            elif not (is_zip and isinstance(child, ast.keyword)):
                # ``strict`` of zip is an assertion, too.
                self.visit(child)

    # Statements.

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call):
            self._add(node, "dropped statement", "pass")
        self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> None:
        self._add(node, "dropped statement", "pass")
        self.generic_visit(node)

    def visit_Delete(self, node: ast.Delete) -> None:
        self._add(node, "dropped statement", "pass")

    def visit_Assign(self, node: ast.Assign) -> None:
        if all(isinstance(each, ast.Attribute | ast.Subscript) for each in node.targets):
            self._add(node, "dropped statement", "pass")
        self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            if isinstance(node.target, ast.Attribute | ast.Subscript):
                self._add(node, "dropped statement", "pass")
            self.visit(node.value)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._add(node, "dropped statement", "pass")
        self._operator(node.op, self._end(node.target), self._start(node.value), "=")
        self.generic_visit(node)

    def visit_Break(self, node: ast.Break) -> None:
        self._add(node, "break", "continue")

    def visit_Continue(self, node: ast.Continue) -> None:
        self._add(node, "continue", "break")

    def visit_Return(self, node: ast.Return) -> None:
        value, returns = node.value, self._functions[-1].returns
        if value is None:
            self._add(node, "dropped statement", "pass")
            return
        if not isinstance(value, ast.Constant):
            text = self._text(value)
            match ast.unparse(returns) if returns is not None else "":
                case "bool":
                    self._add(value, "return value", f"not ({text})")
                case "int":
                    self._add(value, "return value", f"({text}) + 1")
                case _ if not self._in_kernel():
                    self._add(value, "return value", "None")
        self.visit(value)

    # Conditions.

    def visit_If(self, node: ast.If) -> None:
        self._negate(node.test)
        self.generic_visit(node)

    def visit_While(self, node: ast.While) -> None:
        self._negate(node.test)
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._negate(node.test)
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        for test in node.ifs:
            self._negate(test)
        self.generic_visit(node)

    def _negate(self, test: ast.expr) -> None:
        """Comparisons and negations have contraries of their own."""
        if not isinstance(test, ast.Compare | ast.Constant | ast.UnaryOp):
            self._add(test, "condition", f"(not ({self._text(test)}))")

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        word, other = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for left, right in zip(node.values, node.values[1:], strict=False):
            self._gap(self._end(left), self._start(right), word, other, "boolean")
        for operand in node.values:
            self._add(operand, "dropped condition", str(word == "and"))
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        self._sign(node)
        self.generic_visit(node)

    def _sign(self, node: ast.UnaryOp) -> None:
        mark = {ast.Not: r"not\b\s*", ast.USub: "-", ast.Invert: "~"}.get(type(node.op))
        start = self._start(node)
        if mark and (found := re.compile(mark.encode()).match(self._source, start)):
            self._put(start, found.end(), "dropped operator", "", node.lineno)

    def visit_Compare(self, node: ast.Compare) -> None:
        operands = [node.left, *node.comparators]
        for left, operator, right in zip(operands, node.ops, operands[1:], strict=False):
            written, others = _COMPARISONS[type(operator)]
            for other in others:
                gap = self._end(left), self._start(right)
                self._gap(*gap, written, other, "comparison", is_pattern=True)
        self.generic_visit(node)

    # Arithmetic.

    def visit_BinOp(self, node: ast.BinOp) -> None:
        if not any(map(_is_text, (node.left, node.right))):
            self._operator(node.op, self._end(node.left), self._start(node.right))
        self.generic_visit(node)

    def _operator(self, operator: ast.operator, start: int, end: int, mark: str = "") -> None:
        if type(operator) in _ARITHMETIC:
            written, other = _ARITHMETIC[type(operator)]
            self._gap(start, end, written + mark, other + mark, "arithmetic")

    def visit_Constant(self, node: ast.Constant) -> None:
        value = node.value
        if isinstance(value, bool):
            self._add(node, "constant", str(not value))
        elif isinstance(value, int):
            self._add(node, "constant", str(value + 1))
            if value > 0:
                self._add(node, "constant", str(value - 1))
        elif isinstance(value, float):
            self._add(node, "constant", repr(value + 1))

    # Places.

    def _start(self, node: ast.expr | ast.stmt) -> int:
        return self._lines[node.lineno - 1] + node.col_offset

    def _end(self, node: ast.expr | ast.stmt) -> int:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self._lines[node.end_lineno - 1] + node.end_col_offset

    def _text(self, node: ast.expr) -> str:
        return self._source[self._start(node) : self._end(node)].decode()

    def _in_kernel(self) -> bool:
        return any(KERNEL_DECORATORS & _decorators(each) for each in self._functions)

    def _gap(
        self, start: int, end: int, written: str, other: str, kind: str, *, is_pattern: bool = False
    ) -> None:
        """Put ``other`` in the place of an operator, which stands alone but for parentheses."""
        pattern = written if is_pattern else re.escape(written)
        gap = re.sub(rb"#[^\n]*", lambda found: b" " * len(found[0]), self._source[start:end])
        if found := re.search(pattern.encode(), gap):
            line = self._source[: start + found.start()].count(b"\n") + 1
            self._put(start + found.start(), start + found.end(), kind, other, line)

    def _add(self, node: ast.expr | ast.stmt, kind: str, replacement: str) -> None:
        self._put(self._start(node), self._end(node), kind, replacement, node.lineno)

    def _put(self, start: int, end: int, kind: str, replacement: str, line: int) -> None:
        first = self._source.rfind(b"\n", 0, start) + 1
        if kind in _WORDS:
            # Alone on their lines these say nothing: what is said begins with the line before.
            first = self._source.rfind(b"\n", 0, first - 1) + 1
        last = self._source.find(b"\n", end)
        around = (self._source[first:start], self._source[start:end], self._source[end:last])
        before, old, after = (each.decode() for each in around)
        site = f"{self._file}:{'.'.join(self._names)}: {_one_line(before + old + after)}"
        self.found.append(
            Mutant(
                file=self._file,
                function=".".join(self._names),
                line=line,
                kind=kind,
                start=start,
                end=end,
                replacement=replacement,
                before=_one_line(before + old + after),
                after=_one_line(before + replacement + after),
                site=f"{site} [{_one_line(old)}]",
                number=0,
                kernel=self._in_kernel(),
            )
        )


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _decorators(node: Function) -> set[str]:
    """Names of decorators, without what stands before a dot."""
    return {ast.unparse(each).rpartition(".")[2] for each in node.decorator_list}


def _says_nothing(statement: ast.stmt) -> bool:
    """A docstring, an ellipsis, ``pass``, or a refusal to be called."""
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant)
    refuses = isinstance(statement, ast.Raise) and statement.exc is not None
    return isinstance(statement, ast.Pass) or (
        refuses and "NotImplementedError" in ast.unparse(statement)
    )


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )
