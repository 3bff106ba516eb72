"""Progress bars on standard error for work that takes longer than a glance."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numba
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from darwinn_testbench.cli.terminal import print_line
from darwinn_testbench.report.progress import ProgressCallback


@contextmanager
def progress_bar() -> Iterator[ProgressCallback]:
    """A callback that moves a bar; nothing is drawn where standard error is no terminal.

    The first run on a machine compiles the model of the chip, and says so.
    """
    kernels = Path(str(vars(numba.config)["CACHE_DIR"]))
    if not kernels.exists():
        print_line("compiling the model of the chip, once: about half a minute")
    console = Console(stderr=True)
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
    )
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as progress:
        task = progress.add_task("reading", total=None)

        def advance(description: str, done: int, total: int | None) -> None:
            progress.update(task, description=description, completed=done, total=total)

        yield advance
