"""Progress bars on standard error for work that takes longer than a glance."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from darwinn_formats.errors import printable
from darwinn_sim.kernel.compiled import announced
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from darwinn_testbench.cli.terminal import print_line
from darwinn_testbench.report.progress import ProgressCallback


@contextmanager
def progress_bar() -> Iterator[ProgressCallback]:
    """A callback that moves a bar; nothing is drawn where standard error is no terminal.

    Where the model of the chip has to be compiled, a line says so, on a terminal or not.
    """
    console = Console(stderr=True)
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TimeElapsedColumn(),
    )
    with (
        Progress(
            *columns, console=console, transient=True, disable=not console.is_terminal
        ) as progress,
        announced(say_compiling),
    ):
        task = progress.add_task("reading", total=None)

        def advance(description: str, done: int, total: int | None) -> None:
            progress.update(task, description=printable(description), completed=done, total=total)

        yield advance


def say_compiling() -> None:
    """Say on standard error why nothing happens for a while."""
    print_line("compiling kernels: the model of the chip, once: about a minute of processor time")
