"""Weaves deliberate faults into a copy of the RTL: one build holds them all, and one is chosen when
a simulation starts (``+mutation=NAME``). The sources themselves know nothing of them.

A fault replaces expressions by others. What it replaces stays in the copy, behind a condition, so
that without a chosen fault the copy does what the sources do.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

PACKAGE = "mutation_pkg"
CONTROL = "None"
"""The choice that changes nothing."""

_WAIVER = "/* verilator lint_off IMPURE */ "
"""Functions that are not copied to their places may read the choice, which never changes."""

_MARKED = re.compile("(.*)«(.*)»(.*)", re.DOTALL)


class FaultMisplaced(Exception):
    """The text that a fault changes does not stand in its source, or more than once, or two faults
    change parts of each other's text."""


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


def _spaced(text: str) -> str:
    return r"\s+".join(map(re.escape, re.split(r"\s+", text)))


def weave(sources: Mapping[str, str], faults: Mapping[str, Sequence[Edit]]) -> dict[str, str]:
    """The texts of ``sources``, by file name, with ``faults``, by name, in them; only those that
    change. Raises ``FaultMisplaced``."""
    placed: dict[str, dict[tuple[int, int], list[tuple[str, str]]]] = defaultdict(dict)
    for name, edits in faults.items():
        for edit in edits:
            span = edit.span(sources.get(edit.file, ""))
            placed[edit.file].setdefault(span, []).append((name, edit.replacement))
    return {file: _woven(file, sources[file], spans) for file, spans in placed.items()}


def _woven(
    file: str, source: str, spans: Mapping[tuple[int, int], Iterable[tuple[str, str]]]
) -> str:
    parts, end = [], 0
    for (begin, behind), changes in sorted(spans.items()):
        if begin < end:
            raise FaultMisplaced(f"{file}: two faults change {source[begin:behind]}")
        arms = "".join(
            f"{PACKAGE}::mutated[{PACKAGE}::{name}] ? ({replacement}) : "
            for name, replacement in changes
        )
        parts += [source[end:begin], f"({arms}({source[begin:behind]}))"]
        end = behind
    return "".join([_WAIVER, *parts, source[end:]])


def package(names: Iterable[str]) -> str:
    """The package that says which fault is chosen."""
    members = "".join(f"    {name},\n" for name in (CONTROL, *names))
    return f"""\
package {PACKAGE};
  typedef enum int {{
{members}    Mutations
  }} mutation_e;

  function automatic mutation_e selected();
    string wanted;
    mutation_e candidate;
    if ($value$plusargs("mutation=%s", wanted) == 0) return {CONTROL};
    candidate = candidate.first();
    for (int i = 0; i < candidate.num(); i++) begin
      if (candidate.name() == wanted) return candidate;
      candidate = candidate.next();
    end
    $fatal(1, "there is no mutation %s", wanted);
    return {CONTROL};
  endfunction

  // Bit n: the fault n is to be made.
  logic [Mutations-1:0] mutated = Mutations'(1) << selected();
endpackage : {PACKAGE}
"""


def write_copy(folder: Path, target: Path, faults: Mapping[str, Sequence[Edit]]) -> None:
    """Write into ``target`` a copy of the RTL in ``folder`` with ``faults`` in it.

    Files that are there already, with the same text, are left alone. Raises ``FaultMisplaced``.
    """
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    texts = {path.name: path.read_text() for path in paths}
    texts |= weave(texts, faults)
    places = {path.name: target / path.relative_to(folder) for path in paths}
    name = f"{PACKAGE}.sv"
    texts[name], places[name] = package(faults), target / "pkg" / name
    for name, place in places.items():
        place.parent.mkdir(parents=True, exist_ok=True)
        if not place.exists() or place.read_text() != texts[name]:
            place.write_text(texts[name])
    for stale in set(target.rglob("*.*")) - set(places.values()):
        stale.unlink()
