"""The files in folders: each once, in order, whatever links, pipes and permissions are there."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from darwinn_testbench.report import one_line


@dataclass(frozen=True)
class Place:
    """Something in a folder, or given by name.

    ``unread`` says why it is not looked into although it might hold a program; ``skipped`` why it
    cannot hold one; both are empty of a file that is to be read.
    """

    path: Path
    unread: str = ""
    skipped: str = ""


def walk(paths: Sequence[str | os.PathLike[str]]) -> Iterator[Place]:
    """Every file of ``paths`` and of the folders among them, sorted by name within each folder.

    What is given by name is looked into whatever it is called. Within folders, hidden files and
    folders and links to folders are not, so that no link leads in a circle or out of what was
    given; links to files are. Nor are files without content: those that a kernel makes up may
    never end, or wait for ever.
    """
    seen: set[Path] = set()
    # A stack, not a recursion: folders may be deeper than Python calls.
    left = [(Path(path), True) for path in reversed(paths)]
    while left:
        path, given = left.pop()
        if path.absolute() in seen:
            continue
        seen.add(path.absolute())
        if not given and path.name.startswith("."):
            yield Place(path, skipped="hidden")
            continue
        try:
            status = path.stat()
            kind = status.st_mode
            enter = stat.S_ISDIR(kind) and (given or not path.is_symlink())
            if enter:
                left += [(each, False) for each in sorted(path.iterdir(), reverse=True)]
        except OSError as error:
            # Of a path that is too long nothing can be asked.
            if not given and error.errno != errno.ENAMETOOLONG and path.is_symlink():
                yield Place(path, skipped="link that leads nowhere")
            else:
                yield Place(path, unread=one_line(error))
            continue
        if stat.S_ISREG(kind):
            yield Place(path) if status.st_size or given else Place(path, skipped="empty")
        elif stat.S_ISDIR(kind) and not enter:
            yield Place(path, skipped="link to a folder: give it by name")
        elif not enter:
            yield Place(path, skipped="no regular file")
