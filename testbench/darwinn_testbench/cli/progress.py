"""Progress on standard error for work that takes longer than a glance.

On a terminal it is a bar. Elsewhere nothing is drawn, but where the model of the chip has to be
compiled a line says so, and one says every while how far that is.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from darwinn_formats.names import readable
from rich.console import Console

from darwinn_testbench.cli.terminal import print_line
from darwinn_testbench.report.progress import ProgressCallback

if TYPE_CHECKING:
    from darwinn_sim.kernel.compiling import Watch
    from rich.progress import Progress

_COMPILING = "compiling the model of the chip (once)"
_LINE_SECONDS = 15


@contextmanager
def progress_bar() -> Iterator[ProgressCallback]:
    """A callback that moves a bar, which says so while the model of the chip is compiled."""
    # Imported here: what only looks at files should not wait for the compiler.
    from darwinn_sim.kernel.compiling import watched

    with _Bar("reading") as bar, watched(bar.watch):
        yield bar.advance


@contextmanager
def compilation_bar() -> Iterator[Watch]:
    """The same for a command that has kernels compiled elsewhere: is told how many were begun."""
    with _Bar("loading") as bar:
        yield bar.watch


def say_compiling() -> None:
    """Say on standard error why nothing happens for a while."""
    print_line(f"{_COMPILING}: about a minute of processor time")


class _Bar:
    """The bar, or lines in its place."""

    def __init__(self, description: str) -> None:
        console = Console(stderr=True)
        self._said = 0.0
        self._began = 0.0
        self._description = description
        # Not even made where nothing is drawn: before 15, rich then ended with an empty line.
        self._progress = _drawn_on(console) if console.is_terminal else None
        if self._progress is not None:
            self._progress.add_task(description, total=None, share="")

    def __enter__(self) -> _Bar:
        if self._progress is not None:
            self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._progress is not None:
            self._progress.stop()

    def advance(self, description: str, done: int, total: int | None) -> None:
        """``done`` of ``total`` steps lie behind, and ``description`` begins."""
        self._description = readable(description)
        self._draw(self._description, completed=done, total=total)

    def watch(self, begun: int | None) -> None:
        """``begun`` kernels were compiled, one more begins; None: none does any more."""
        if self._progress is None:
            self._say(begun)
        elif begun is None:
            self._draw(self._description)
        else:
            self._draw(f"{_COMPILING}: kernel {begun + 1}")

    def _draw(
        self, description: str, completed: int | None = None, total: int | None = None
    ) -> None:
        if self._progress is not None:
            (task,) = self._progress.task_ids
            self._progress.update(task, description=description, completed=completed, total=total)
            if total:
                self._progress.update(task, share=f"{(completed or 0) / total:.0%}")

    def _say(self, begun: int | None) -> None:
        now = time.monotonic()
        if not self._began:
            self._began = self._said = now
            say_compiling()
        elif begun is not None and now - self._said >= _LINE_SECONDS:
            self._said = now
            print_line(f"{_COMPILING}: {begun} kernels so far, {now - self._began:.0f} s")


def _drawn_on(console: Console) -> Progress:
    """A bar that is taken away in the end."""
    # Imported here: only a terminal has bars.
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[share]}", markup=False),
        TimeElapsedColumn(),
        console=console,
        transient=True,
    )
