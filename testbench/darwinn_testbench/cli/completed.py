"""What a shell completes of an option's value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path


def offered(names: Sequence[str], suffix: str = "") -> Callable[[str], list[str]]:
    """Gives the ``names`` that begin like what is typed; with a ``suffix`` also files of it, and
    folders that may have some."""

    def complete(incomplete: str) -> list[str]:
        found = [each for each in names if each.startswith(incomplete)]
        return [*found, *(_files(incomplete, suffix) if suffix else ())]

    return complete


def offered_in_list(names: Sequence[str]) -> Callable[[str], list[str]]:
    """The same for names that commas separate: completes the last of them."""

    def complete(incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",")
        return [f"{before}{comma}{each}" for each in names if each.startswith(last)]

    return complete


def _files(incomplete: str, suffix: str) -> list[str]:
    """Files of that suffix, and folders, as they are typed."""
    folder, slash, begin = incomplete.rpartition("/")
    place = Path(f"{folder}{slash}" or ".")
    if not place.is_dir():
        return []
    found = sorted(each for each in place.iterdir() if each.name.startswith(begin))
    typed = [(f"{folder}{slash}{each.name}", each) for each in found if each.name[0] != "."]
    return [
        f"{text}/" if each.is_dir() else text
        for text, each in typed
        if each.is_dir() or each.suffix == suffix
    ]
