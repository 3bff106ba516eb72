"""Which tests to ask about a change: those that execute the place, the nearest and quickest first.

What tests execute is recorded for each file of tests, by functions and lines within them, and is
recorded again when that file has changed. Of a kernel it is not seen: asked are the tests that
execute what calls it, or that import its module.
"""

from __future__ import annotations

import ast
import hashlib
import json
import sys
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from tests.mutation.mutants import Mutant
from tests.mutation.recorder import FILE_VARIABLE, PROFILE
from tests.mutation.tree import Tree, names_in, reaching

Place = tuple[str, str]
"""A file and a function in it."""

_RECORD_SECONDS = 1800


@dataclass
class Executed:
    """``seconds`` of each test function, and which lines it executes of each function, counted from
    the function's first.
    """

    seconds: dict[str, float] = field(default_factory=dict)
    tests: dict[Place, dict[str, frozenset[int]]] = field(default_factory=lambda: defaultdict(dict))


def record(
    tree: Tree, folder: Path, test_files: Iterable[str], is_over: Callable[[], bool]
) -> Executed:
    """What the tests of these files execute, from what ``folder`` has of that and else anew.

    As far as there is time: what is left when it ``is_over`` is recorded the next time.
    """
    folder.mkdir(parents=True, exist_ok=True)
    kept = {file: folder / f"{_digest(tree, file)}.json" for file in test_files}
    left = [file for file, path in kept.items() if not path.exists()]
    for first in range(0, len(left), _FILES_AT_A_TIME):
        if is_over():
            _say(f"no time to record {len(left) - first} of {len(kept)} files of tests\n")
            break
        some = left[first : first + _FILES_AT_A_TIME]
        _say(f"recording {first + 1} to {first + len(some)} of {len(left)}: {some[0]} ...")
        together = _recorded(tree, folder, some)
        for file in some:
            # One that ends the process takes the others with it.
            noted = _recorded(tree, folder, [file]) if together is None else together
            if noted is not None:
                part = kept[file].with_suffix(".part")
                part.write_text(json.dumps(_part(noted, file)))
                part.replace(kept[file])
    executed = Executed()
    for path in filter(Path.exists, kept.values()):
        noted = json.loads(path.read_text())
        executed.seconds.update(noted["seconds"])
        for source, function, test, lines in noted["executed"]:
            executed.tests[source, function][test] = frozenset(lines)
    return executed


_FILES_AT_A_TIME = 12
"""Files of tests that are recorded in one process: loading the simulator takes as long as most."""

_Noted = dict[str, Any]


def _digest(tree: Tree, file: str) -> str:
    return hashlib.sha256(file.encode() + (tree.folder / file).read_bytes()).hexdigest()[:24]


def _say(text: str) -> None:
    print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def _part(noted: _Noted, file: str) -> _Noted:
    """What is of one file of tests."""
    own = f"{file}::"
    return {
        "seconds": {test: each for test, each in noted["seconds"].items() if test.startswith(own)},
        "executed": [each for each in noted["executed"] if each[2].startswith(own)],
    }


def _recorded(tree: Tree, folder: Path, files: Sequence[str]) -> _Noted | None:
    """What the tests of these files execute, in one process; None if it does not get to its end."""
    written = folder / f"{_digest(tree, files[0])}.part"
    written.unlink(missing_ok=True)
    ran = tree.pytest(
        ["-p", "tests.mutation.recorder", *files],
        {FILE_VARIABLE: str(written), "HYPOTHESIS_PROFILE": PROFILE},
        seconds=_RECORD_SECONDS,
    )
    if not written.exists():
        if len(files) == 1:
            _say(f"{files[0]} could not be recorded, and is not asked: {ran.output[-300:]}\n")
        return None
    noted = json.loads(written.read_text())
    written.unlink()
    executed = []
    for source, by_test in noted["lines"].items():
        starts = functions_of((tree.folder / source).read_bytes())
        first_lines = [line for line, _ in starts]
        for test, lines in by_test.items():
            if test not in noted["seconds"]:
                continue
            inside: dict[int, list[int]] = defaultdict(list)
            for line in lines:
                inside[bisect_right(first_lines, line) - 1].append(line)
            executed += [
                (source, starts[which][1], test, [line - first_lines[which] for line in found])
                for which, found in inside.items()
                if which >= 0
            ]
    return {"seconds": noted["seconds"], "executed": executed}


def functions_of(source: bytes) -> list[tuple[int, str]]:
    """First line and qualified name of each function, in the order of their lines.

    What follows a function inside another one counts as the inner one's: near enough.
    """
    found: list[tuple[int, str]] = []

    def look(node: ast.AST, names: tuple[str, ...]) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                inner = (*names, child.name)
                found.append((child.lineno, ".".join(inner)))
                look(child, inner)
            else:
                look(child, names)

    look(ast.parse(source), ())
    return sorted(found)


class Chooser:
    """Chooses tests for mutants."""

    def __init__(self, tree: Tree, executed: Executed) -> None:
        self._root, self._executed = tree.folder, executed

    def tests(self, mutant: Mutant, limit: float) -> list[str]:
        """The tests to ask, in this order, of ``limit`` seconds in all; none if none gets there."""
        seconds = self._executed.seconds
        found = self._of_kernel(mutant) if mutant.kernel else self._of_function(mutant)
        # What these execute in another process is not seen.
        own = f"test_{Path(mutant.file).name}"
        found |= {test for test in seconds if Path(test.split("::")[0]).name == own}
        ordered = sorted(
            filter(seconds.__contains__, found),
            key=lambda test: (-nearness(mutant.file, test), seconds[test], test),
        )
        return self.within(ordered, limit)

    def within(self, tests: Iterable[str], limit: float) -> list[str]:
        """The first of the tests, and those of the others that take ``limit`` seconds with it."""
        chosen: list[str] = []
        total = 0.0
        for test in tests:
            seconds = self._executed.seconds[test]
            if not chosen or total + seconds <= limit:
                chosen.append(test)
                total += seconds
        return chosen

    def _of_function(self, mutant: Mutant) -> set[str]:
        """Those that execute the line; else the function at all; else those that import its module:
        what is executed at import is no test's.
        """
        source = (self._root / mutant.file).read_bytes()
        starts = functions_of(source)
        which = bisect_right([line for line, _ in starts], mutant.line) - 1
        first, function = starts[which]
        by_test = self._executed.tests.get((mutant.file, function), {})
        line = mutant.line - first
        on_line = {test for test, lines in by_test.items() if line in lines}
        return on_line or set(by_test) or self._importing(mutant)

    def _of_kernel(self, mutant: Mutant) -> set[str]:
        kernels = reaching(self._root, mutant.function)
        found: set[str] = set()
        for (source, function), by_test in self._executed.tests.items():
            if kernels & _mentioned(self._root / source).get(function, frozenset()):
                found.update(by_test)
        return found | self._importing(mutant)

    def _importing(self, mutant: Mutant) -> set[str]:
        """Tests that import its module; else a module that does, and so on."""
        modules = {_module(mutant.file)}
        while True:
            found = {
                test
                for test in self._executed.seconds
                if modules & imports(self._root / test.split("::")[0])
            }
            wider = modules | {
                _module(path.relative_to(self._root).as_posix())
                for path in (self._root / Path(mutant.file).parts[0]).rglob("*.py")
                if modules & imports(path)
            }
            if found or wider == modules:
                return found
            modules = wider


def _module(file: str) -> str:
    return ".".join(Path(file).with_suffix("").parts[1:])


@cache
def _mentioned(path: Path) -> dict[str, frozenset[str]]:
    """Of each function of a file, the names in its body."""
    found: dict[str, frozenset[str]] = {}

    def look(node: ast.AST, names: tuple[str, ...]) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                inner = (*names, child.name)
                found[".".join(inner)] = names_in(child)
                look(child, inner)

    look(ast.parse(path.read_bytes()), ())
    return found


@cache
def imports(path: Path) -> frozenset[str]:
    """Modules that a file imports, or from which it imports, and what it imports from packages."""
    found = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            found |= {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found |= {f"{node.module}.{each.name}" for each in node.names}
    return frozenset(found)


def nearness(source: str, test: str) -> int:
    """How much the path of a test has in common with that of a source."""
    source_path, test_path = Path(source), Path(test.split("::")[0])
    stem = test_path.stem.removeprefix("test_")
    folders = set(source_path.parts[2:-1]) & set(test_path.parts[1:-1])
    words = set(source_path.stem.split("_")) & set(stem.split("_"))
    whole = 4 if source_path.stem == stem else 0
    return whole + 2 * len(folders) + 2 * len(words) + (source_path.parts[0] in test_path.parts)


def contents(root: Path, tests: Sequence[str]) -> str:
    """A digest of tests and of the files that they are in."""
    digest = hashlib.sha256("\n".join(tests).encode())
    for file in sorted({test.split("::")[0] for test in tests}):
        digest.update((root / file).read_bytes())
    return digest.hexdigest()[:24]
