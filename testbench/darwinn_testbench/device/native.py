"""Libraries in C that other programs load: built from the project's sources when first needed."""

from __future__ import annotations

import errno
import hashlib
import os
import platform
import shlex
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from platformdirs import user_cache_path

from darwinn_testbench.errors import InputError

_ARGUMENTS = (
    *("-std=gnu11", "-O2", "-Wall", "-Wextra"),
    *("-shared", "-fPIC", "-pthread", "-fvisibility=hidden"),
)
_SOURCES = (".c", ".h", ".map")
_SHOWN_CHARACTERS = 500
_FULL = os.strerror(errno.ENOSPC)
"""What compilers and linkers say, in this language, where they cannot write."""
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def library(
    folder: Path, name: str, *arguments: str, headers: Mapping[str, str] | None = None
) -> Path:
    """The library ``name``, made of all C sources of ``folder``; it is alone in its own folder.

    It is in the user's cache folder, and is built again when a source changes. Programs execute
    it, so it is used only where it and its folder are this user's, or root's, and nobody else may
    write them.

    Args:
        folder: sources and headers, and maps of versions for the linker.
        name: file name of the library, which becomes its soname too.
        arguments: further ones of the compiler, which runs in ``folder``.
        headers: further ones that sources include: texts by file name.

    Raises:
        InputError: there is no C compiler, or it fails; the cache folder cannot be written, or
            others may write it. The message says what to do.
    """
    headers = headers or {}
    text = repr((_ARGUMENTS, name, arguments, sorted(headers.items()), platform.machine()))
    digest = hashlib.sha256(text.encode())
    for source in sorted(path for path in folder.iterdir() if path.suffix in _SOURCES):
        digest.update(source.name.encode() + b"\0" + source.read_bytes())
    built = user_cache_path("darwinn-testbench") / "native" / digest.hexdigest()[:16] / name
    try:
        if not (built.exists() and _is_private(built.parent) and _is_private(built)):
            _build(folder, built, arguments, headers)
    except OSError as error:
        raise _no_place(built, f"{error.strerror} ({error.filename})") from None
    return built


def _no_place(built: Path, reason: str) -> InputError:
    """The cache folder does not take a library."""
    return InputError(
        f"{built.name} cannot be built in the cache folder {built.parent}: {reason}; make room "
        "there, or let XDG_CACHE_HOME name another folder"
    )


def _is_private(path: Path) -> bool:
    """Whether nobody but this user, and root, can have written a file or what is in a folder."""
    status = path.stat()
    return status.st_uid in (0, os.geteuid()) and not status.st_mode & _WRITABLE_BY_OTHERS


def _compiler() -> list[str]:
    """The words of the compiler's command: as in make, ``CC`` may have arguments."""
    command = os.environ.get("CC", "cc")
    try:
        return shlex.split(command)
    except ValueError as error:
        raise InputError(f"CC is no command: {command!r}: {error}") from None


def _build(
    folder: Path, built: Path, arguments: tuple[str, ...], headers: Mapping[str, str]
) -> None:
    compiler = _compiler()
    if not compiler or shutil.which(compiler[0]) is None:
        raise InputError(
            f"no C compiler ({shlex.join(compiler) or 'CC is empty'}) to build {built.name} with: "
            "apt-get install gcc libc6-dev"
        )
    built.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not _is_private(built.parent):
        raise InputError(f"{built.parent}: other users may write it; remove it")
    # Built beside its place and moved there whole: two may build at the same time.
    with tempfile.TemporaryDirectory(dir=built.parent) as work:
        for header, text in headers.items():
            (Path(work) / header).write_text(text)
        result = Path(work) / built.name
        sources = sorted(path.name for path in folder.glob("*.c"))
        done = subprocess.run(
            [
                *(*compiler, *_ARGUMENTS, f"-I{work}", f"-Wl,-soname,{built.name}"),
                *("-o", str(result), *sources, *arguments),
            ],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "LC_ALL": "C"},
        )
        if done.returncode:
            said = " ".join(done.stderr.split())[:_SHOWN_CHARACTERS]
            if _FULL in done.stderr:
                raise _no_place(built, said)
            reason = said or f"status {done.returncode}, without a word"
            raise InputError(f"{built.name} cannot be built: {shlex.join(compiler)}: {reason}")
        result.chmod(0o755)
        result.replace(built)
