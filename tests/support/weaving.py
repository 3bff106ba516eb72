"""Weaves changes into a copy of the RTL: one build holds them all, and a simulation chooses one by
its number (``+mutation=NUMBER``). The sources themselves know nothing of them.

What a change replaces stays in the copy, behind a condition, so that without a choice the copy does
what the sources do. Changes may lie within each other. A package reads the choice; in plain
Verilog, which has no packages, each module does.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

PACKAGE = "mutation_pkg"
CONTROL = 0
"""The choice that changes nothing."""
ARGUMENT = "+mutation={}"
"""The argument of a simulation that chooses a change by its number, which is not ``CONTROL``."""
STATEMENT = ";"
"""What takes the place of a statement that is left out."""

_WAIVER = "/* verilator lint_off IMPURE */ "
"""Functions that are not copied to their places may read the choice, which never changes."""

_CHOSEN = {".sv": f"{PACKAGE}::chosen", ".v": "chosen_mutation"}
"""The number of the choice, by the end of a source's name."""

_PLAIN_HEAD = re.compile(r"^module\b[^;]*;", re.MULTILINE)
"""The head of a module in plain Verilog."""

_MARKED = re.compile("(.*)«(.*)»(.*)", re.DOTALL)


class FaultMisplaced(Exception):
    """The text that a fault changes does not stand in its source, or more than once, or two faults
    change parts of each other's text."""


class Change(NamedTuple):
    """``replacement`` for the text from ``start`` to ``end`` of the source with the name ``file``:
    an expression, or ``STATEMENT`` for a statement."""

    file: str
    start: int
    end: int
    replacement: str


@dataclass(frozen=True)
class Edit:
    """An expression of a source, and what the fault puts in its place.

    ``text`` is a piece of the source in which « and » mark the expression; any white space in it
    stands for any other. The piece must occur in ``file`` exactly once.
    """

    file: str
    text: str
    replacement: str

    def span(self, source: str) -> tuple[int, int]:
        """Where the expression stands in ``source``. Raises ``FaultMisplaced``."""
        marked = _MARKED.fullmatch(self.text)
        assert marked, f"no expression is marked: {self.text}"
        pattern = "({})({})({})".format(*map(_spaced, marked.groups()))
        found = list(re.finditer(pattern, source))
        if len(found) != 1:
            raise FaultMisplaced(f"{self.file} has {len(found)} times: {self.text}")
        return found[0].span(2)

    def change(self, sources: Mapping[str, str]) -> Change:
        """The change of ``sources``, by file name. Raises ``FaultMisplaced``."""
        return Change(self.file, *self.span(sources.get(self.file, "")), self.replacement)


def _spaced(text: str) -> str:
    return r"\s+".join(map(re.escape, re.split(r"\s+", text)))


def sources_in(folder: Path) -> dict[str, str]:
    """The texts of all files in ``folder``, by file name."""
    return {path.name: path.read_text() for path in folder.rglob("*.*")}


def weave(sources: Mapping[str, str], changes: Mapping[int, Iterable[Change]]) -> dict[str, str]:
    """The texts of ``sources``, by file name, with ``changes``, by number, in them; only those that
    change, and the package that reads the choice. Raises ``FaultMisplaced``."""
    placed: dict[str, dict[tuple[int, int], list[tuple[int, str]]]] = defaultdict(dict)
    for number, some in changes.items():
        for file, start, end, replacement in some:
            placed[file].setdefault((start, end), []).append((number, replacement))
    highest = max(changes, default=CONTROL)
    woven = {f"{PACKAGE}.sv": _package(highest)}
    for file, spans in placed.items():
        text = _woven(file, sources[file], spans)
        if file.endswith(".v"):
            # In front of all that the module does in the beginning.
            text = _PLAIN_HEAD.sub(rf"\g<0>\n{_plain(highest)}", text)
        woven[file] = _WAIVER + text
    return woven


def _woven(
    file: str, source: str, spans: Mapping[tuple[int, int], Sequence[tuple[int, str]]]
) -> str:
    chosen = _CHOSEN[Path(file).suffix]
    # Those around others come before them.
    left = sorted(spans, key=lambda span: (span[0], -span[1]))

    def text(start: int, end: int) -> str:
        """The part of the source, with all that stands in it and is left."""
        parts, place = [], start
        while left and left[0][0] < end:
            begin, behind = span = left.pop(0)
            if behind > end:
                raise FaultMisplaced(f"{file}: two faults change {source[begin:end]}")
            parts += [source[place:begin], _choice(chosen, spans[span], text(begin, behind))]
            place = behind
        return "".join([*parts, source[place:end]])

    return text(0, len(source))


def _choice(chosen: str, replacements: Sequence[tuple[int, str]], original: str) -> str:
    lost = [number for number, text in replacements if text == STATEMENT]
    if lost:
        others = " && ".join(f"{chosen} != {number}" for number in lost)
        return f"begin if ({others}) {original} end"
    arms = "".join(f"{chosen} == {number} ? ({text}) : " for number, text in replacements)
    return f"({arms}({original}))"


def _package(highest: int) -> str:
    return f"""\
package {PACKAGE};
  function automatic int selected();
{_read("selected", highest)}
  endfunction
  int chosen = selected();
endpackage
"""


def _plain(highest: int) -> str:
    name = _CHOSEN[".v"]
    return f"  integer {name};\n  initial begin\n{_read(name, highest)}\n  end"


def _read(number: str, highest: int) -> str:
    return f"""\
    if ($value$plusargs("{ARGUMENT[1:].format("%d")}", {number}) == 0) {number} = {CONTROL};
    if ({number} > {highest}) $fatal(1, "there is no mutation %0d", {number});"""


def write_copy(
    folder: Path, target: Path, sources: Mapping[str, str], changes: Mapping[int, Iterable[Change]]
) -> None:
    """Write into ``target`` a copy of the RTL in ``folder``, whose texts are ``sources``, with
    ``changes`` in it.

    Files that are there already, with the same text, are left alone. Raises ``FaultMisplaced``.
    """
    texts = {**sources, **weave(sources, changes)}
    places = {path.name: target / path.relative_to(folder) for path in folder.rglob("*.*")}
    places[f"{PACKAGE}.sv"] = target / "pkg" / f"{PACKAGE}.sv"
    for name, place in places.items():
        place.parent.mkdir(parents=True, exist_ok=True)
        if not place.exists() or place.read_text() != texts[name]:
            place.write_text(texts[name])
    for stale in set(target.rglob("*.*")) - set(places.values()):
        stale.unlink()
