"""What a shell completes of an option's value."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping, Sequence
from pathlib import Path

from darwinn_formats.files import is_there

_SHELL, _WORDS, _PLACE = "_DARWINN_COMPLETE", "COMP_WORDS", "COMP_CWORD"
"""A shell's question: which shell it is, the words, and the place of the one to complete."""


def offered(names: Sequence[str], suffix: str = "") -> Callable[[str], list[str]]:
    """Gives the ``names`` that begin like what is typed; with a ``suffix`` also files of it, and
    folders that may have some."""

    def complete(incomplete: str) -> list[str]:
        found = [each for each in names if each.startswith(incomplete)]
        return [*found, *(_files(incomplete, suffix) if suffix else ())]

    return complete


def join_options(environment: MutableMapping[str, str]) -> None:
    """Put together what bash splits: it gives ``--chip=bea`` as the words ``--chip``, ``=`` and
    ``bea``. What is asked for then is the value, as if there were a space."""
    if environment.get(_SHELL) != "complete_bash":
        return
    words, place = environment[_WORDS].split(" "), int(environment[_PLACE])
    signs = [
        number
        for number, word in enumerate(words)
        if word == "=" and words[number - 1].startswith("--")
    ]
    kept = [word for number, word in enumerate(words) if number not in signs]
    environment[_WORDS] = " ".join(kept)
    # The sign itself is completed where nothing is typed behind it.
    environment[_PLACE] = str(place - sum(number < place for number in signs))


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
    if not (is_there(place) and place.is_dir()):
        return []
    found = sorted(each for each in place.iterdir() if each.name.startswith(begin))
    typed = [(f"{folder}{slash}{each.name}", each) for each in found if each.name[0] != "."]
    return [
        f"{text}/" if each.is_dir() else text
        for text, each in typed
        if each.is_dir() or each.suffix == suffix
    ]
