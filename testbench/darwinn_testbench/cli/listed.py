"""The option of every command that prints a table: its rows as CSV."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from darwinn_testbench.cli.console import rows_to
from darwinn_testbench.request.record import refuse_no_file
from darwinn_testbench.request.setting import Setting, Use


@dataclass(frozen=True)
class Listed:
    """Where the rows go besides."""

    csv: Annotated[
        Path | None,
        Setting(
            "--csv PATH",
            "Also write the rows as CSV, a column for each key of --json; - is stdout.",
            use=Use.RESULT,
        ),
    ] = None


def listed(command: Callable[..., None]) -> Callable[..., None]:
    """``command`` with :class:`Listed`; ``console.finish`` writes the rows."""

    @functools.wraps(command)
    def run(*, listed: Listed, **arguments: Any) -> None:
        refuse_no_file(listed.csv)
        with rows_to(listed.csv):
            command(**arguments)

    own = inspect.signature(command, eval_str=True)
    added = inspect.Parameter("listed", inspect.Parameter.KEYWORD_ONLY, annotation=Listed)
    changed: Any = run
    changed.__signature__ = own.replace(parameters=[*own.parameters.values(), added])
    return run
