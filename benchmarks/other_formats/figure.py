"""A figure of a point, and what measurements of several points have in common."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from darwinn_reference.iree.import_history import RELEASES
from darwinn_testbench.cli.application import run_command_line

from benchmarks.conformance.iree_releases import compiled_module, installed


class MissingError(Exception):
    """A measurement lacks something that it needs; the text names it."""


@dataclass(frozen=True)
class Figure:
    """A figure: what was measured, how many of how many, or a number in words.

    ``kept`` says whether it is as it should be; ``notes`` are reasons, one a line.
    """

    what: str
    value: str
    kept: bool = True
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Counted:
    """Trials with their reasons if they failed: none has to be left out."""

    failures: Sequence[str]
    number: int

    def figure(self, what: str) -> Figure:
        """So many of so many, with the reasons of the others."""
        good = self.number - len(self.failures)
        return Figure(what, f"{good} of {self.number}", not self.failures, self.failures)


@dataclass(frozen=True)
class Settings:
    """The settings of the command line.

    Attributes:
        cache: the folder of releases of IREE, each with its compiler and runtime.
        folder: a folder for files of this run.
        releases: releases of IREE; none means all that PyPI has.
        suites: the folder of TFRT's tests (``mlir_tests`` of its repository), if there is one.
        repeat: the best of so many runs is the time.
    """

    cache: Path
    folder: Path
    releases: Sequence[str]
    suites: Path | None
    repeat: int

    def compiled(self, text: str, *flags: str) -> Path:
        """A module that the newest known release's compiler makes of a text for VMVX.

        Raises:
            MissingError: the release cannot be installed, or does not make it.
        """
        release = RELEASES[-1]
        target = installed(release, self.cache)
        if target is None:
            raise MissingError(f"IREE's compiler {release}: pip cannot install it")
        module = self.folder / f"{abs(hash((text, flags)))}.vmfb"
        failure = compiled_module(target, text, module, flags)
        if failure:
            raise MissingError(f"a module of IREE {release}: {failure}")
        return module


def asked(*words: object) -> tuple[int, dict[str, Any]]:
    """Exit code and JSON of a command."""
    printed, said = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(said):
        code = run_command_line([*map(str, words), "--json"])
    try:
        found: dict[str, Any] = json.loads(printed.getvalue())
    except json.JSONDecodeError:
        return code, {"message": said.getvalue().strip() or printed.getvalue()[-200:]}
    return code, found


def reason(found: dict[str, Any]) -> str:
    """The message of a report, or else its verdict, in one line."""
    return " ".join(str(found.get("message") or found.get("verdict") or "nothing").split())[:200]
