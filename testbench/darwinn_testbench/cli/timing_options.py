"""Options of the commands that time executables: the chip and the host link."""

from __future__ import annotations

from typing import Annotated

import typer
from darwinn_sim.timing.description import built_in

from darwinn_testbench.cycles import NO_HOST

Chip = Annotated[
    str,
    typer.Option(
        "--chip",
        metavar="NAME",
        help=f"Chip description: {', '.join(built_in('chips'))}, or a TOML file (docs/timing.md).",
    ),
]
Host = Annotated[
    str | None,
    typer.Option(
        "--host",
        metavar="NAME",
        help=(
            f"Host link: {', '.join(built_in('hosts'))}, a TOML file, or {NO_HOST} for one of "
            "endless speed; by default that of the chip description."
        ),
        show_default=False,
    ),
]
