"""Options of the commands that time executables: the chip and the host link."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Annotated

from darwinn_sim.timing.description import built_in

from darwinn_testbench.chip.cycles import DEFAULT_CHIP, NO_HOST
from darwinn_testbench.cli.declared import option

Chip = Annotated[
    str,
    option(
        "--chip NAME",
        f"Chip description: {', '.join(built_in('chips'))}, or a TOML file (docs/timing.md).",
    ),
]
Host = Annotated[
    str | None,
    option(
        "--host NAME",
        f"Host link: {', '.join(built_in('hosts'))}, a TOML file, or {NO_HOST} for one of "
        "endless speed; by default that of the chip description.",
    ),
]


def advised(
    command: str,
    file: str,
    *,
    chip: str,
    host: str | None,
    model: int = 0,
    companions: Sequence[str] | None = None,
) -> str:
    """``darwinn COMMAND FILE`` with the options that were given, for a shell."""
    given = [
        *(("--chip", chip) if chip != DEFAULT_CHIP else ()),
        *(("--host", host) if host is not None else ()),
        *(("--model", str(model)) if model else ()),
        *(word for companion in companions or () for word in ("--with", companion)),
    ]
    return shlex.join(["darwinn", command, file, *given])
