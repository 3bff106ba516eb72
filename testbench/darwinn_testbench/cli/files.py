"""Files of a command that takes several: a folder among them stands for what it holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from darwinn_testbench.chip.images import IMAGE_SUFFIXES
from darwinn_testbench.cli.progress import progress_bar
from darwinn_testbench.errors import InputError
from darwinn_testbench.programs.formats import format_of
from darwinn_testbench.report import counted
from darwinn_testbench.report.progress import ProgressCallback
from darwinn_testbench.survey.content import is_compiled
from darwinn_testbench.survey.walk import walk

MOST_FILES = 50_000
"""Of a folder and all that is in it, those that do not count included: some seconds of looking."""
_GLANCE = 100
"""Files from one word of progress to the next."""


def compiled_files(words: Sequence[str]) -> list[str]:
    """``words`` with the compiled models in folders, and in the folders of those, by name.

    Raises:
        InputError: a folder holds none, or more than can be looked at (``MOST_FILES``).
    """
    return list(_expanded(words, "compiled model", _is_compiled))


def program_files(words: Sequence[str]) -> list[str]:
    """The same, and programs of other formats."""
    return list(_expanded(words, "program", lambda path: _is_compiled(path) or _is_other(path)))


def picture_files(paths: Sequence[Path]) -> list[Path]:
    """The same of pictures, which are known by what they are called."""
    found = _expanded(
        list(map(str, paths)), "picture", lambda path: path.suffix.lower() in IMAGE_SUFFIXES
    )
    return list(map(Path, found))


def _expanded(words: Sequence[str], what: str, wanted: Callable[[Path], bool]) -> Iterator[str]:
    for word in words:
        if word == "-" or not Path(word).is_dir():
            yield word
            continue
        with progress_bar() as progress:
            found = list(_held(word, what, wanted, progress))
        if not found:
            raise InputError(f"{word}: no {what} in this folder")
        yield from found


def _held(
    folder: str, what: str, wanted: Callable[[Path], bool], progress: ProgressCallback
) -> Iterator[str]:
    found = 0
    for number, place in enumerate(walk([folder])):
        if number == MOST_FILES:
            raise InputError(
                f"{folder}: more than {MOST_FILES:,} files, {counted(found, what)} among the first "
                "of them: name the folders, or the files, that are meant"
            )
        if number % _GLANCE == 0:
            progress(f"{folder}: {number:,} files, {counted(found, what)}", number, None)
        # What cannot be read is handed on as well: a row says why.
        if not place.skipped and (place.unread or wanted(place.path)):
            found += 1
            yield str(place.path)


def _is_compiled(path: Path) -> bool:
    try:
        return is_compiled(path)
    except OSError:
        return True


def _is_other(path: Path) -> bool:
    return format_of(path) is not None
