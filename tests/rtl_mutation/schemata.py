"""One copy of the RTL that holds many mutants, of which a simulation chooses one
(``+mutant=NUMBER``): they are compiled together, once.

What a mutant replaces stays in the copy, behind a condition, so that without a choice the copy does
what the sources do. Mutants may lie within each other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.mutation.mutants import Mutant
from tests.rtl_mutation.mutants import STATEMENT

PACKAGE = "mutant_pkg"

ARGUMENT = "+mutant={}"
"""The argument of a simulation that chooses a mutant by its number, which is not 0."""

_WAIVER = "/* verilator lint_off IMPURE */ "
"""Functions that are not copied to their places may read the choice, which never changes."""

_SELECTION = f"""\
package {PACKAGE};
  function automatic int selected();
    int number;
    if ($value$plusargs("mutant=%d", number) == 0) return 0;
    return number;
  endfunction

  int chosen = selected();
endpackage : {PACKAGE}
"""


def woven(source: bytes, mutants: Mapping[int, Mutant]) -> bytes:
    """``source`` with these mutants of it, by their numbers, behind their conditions."""
    spans: dict[tuple[int, int], list[tuple[int, str]]] = defaultdict(list)
    for number, mutant in mutants.items():
        spans[mutant.start, mutant.end].append((number, mutant.replacement))
    # Those around others come before them.
    left = sorted(spans, key=lambda span: (span[0], -span[1]))

    def text(start: int, end: int) -> str:
        """The part of the source, with all that stands in it and is left."""
        parts, place = [], start
        while left and left[0][0] < end:
            begin, behind = span = left.pop(0)
            inner = text(begin, behind)
            parts += [source[place:begin].decode(), _choice(spans[span], inner)]
            place = behind
        return "".join([*parts, source[place:end].decode()])

    return (_WAIVER + text(0, len(source))).encode()


def _choice(replacements: Sequence[tuple[int, str]], original: str) -> str:
    lost = [number for number, text in replacements if text == STATEMENT]
    if lost:
        others = " && ".join(f"{PACKAGE}::chosen != {number}" for number in lost)
        return f"begin if ({others}) {original} end"
    arms = "".join(f"{PACKAGE}::chosen == {number} ? ({text}) : " for number, text in replacements)
    return f"({arms}({original}))"


def write_copy(
    folder: Path, target: Path, sources: Mapping[str, bytes], mutants: Mapping[int, Mutant]
) -> None:
    """Write a copy of the RTL in ``folder`` with these mutants of ``sources`` (by their names below
    the parent of ``folder``) into ``target``; files that need not change are left alone."""
    by_file: dict[str, dict[int, Mutant]] = defaultdict(dict)
    for number, mutant in mutants.items():
        by_file[mutant.file][number] = mutant
    files = {target / "pkg" / f"{PACKAGE}.sv": _SELECTION.encode()}
    for path in folder.rglob("*.*"):
        name = path.relative_to(folder.parent).as_posix()
        own = by_file.get(name, {})
        files[target / path.relative_to(folder)] = (
            woven(sources[name], own) if own else path.read_bytes()
        )
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_bytes() != text:
            path.write_bytes(text)
    for stale in set(target.rglob("*.*")) - set(files):
        stale.unlink()
