"""The sources of a design in the order of their use: what a file needs stands before it.

IEEE 1800 asks for it of packages (26.3), and some tools ask for it of interfaces and modules too.
A file has one unit, whose name is the file's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

_NOT_CODE = re.compile(
    r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|`ifdef \w+\n.*?`(?:else|endif)', re.DOTALL
)
"""Comments, strings, and what stands for a macro that is not defined: variants of tests."""
_PACKAGE = re.compile(r"\b(\w+)::")
_INSTANCE = re.compile(r"^\s*(\w+)\s+(?:`endif\s+)?(?:#\s*\(|\w+\s*[\[(])", re.MULTILINE)
_PORT = re.compile(r"\b(\w+)\.(?:initiator|target|monitor)\b")
"""An interface as a port."""


def in_order(sources: Iterable[Path], top: str | None = None) -> list[Path]:
    """``sources``, each behind those that it needs; with ``top`` only that one and what it needs.

    Otherwise they keep their order. Raises ``KeyError`` if no file has the unit ``top``.
    """
    by_name = {path.stem: path for path in sources}
    placed: dict[str, None] = {}
    for name in by_name if top is None else (top,):
        _place(name, by_name, placed)
    return [by_name[name] for name in placed]


def _place(name: str, by_name: Mapping[str, Path], placed: dict[str, None]) -> None:
    if name not in placed:
        for each in _needed(by_name[name], by_name):
            _place(each, by_name, placed)
        placed[name] = None


def _needed(path: Path, by_name: Mapping[str, Path]) -> Iterator[str]:
    """The units that a file needs, packages first."""
    code = _NOT_CODE.sub(" ", path.read_text())
    found = (name for use in (_PACKAGE, _PORT, _INSTANCE) for name in use.findall(code))
    return (name for name in dict.fromkeys(found) if name in by_name and name != path.stem)
