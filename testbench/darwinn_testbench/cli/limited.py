"""The options of every command that reads a file: what it may cost, how wide its tables are."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any

from darwinn_formats.limits import IN_TOTAL, MEMORY, SECONDS, Limits
from darwinn_formats.limits import limited as within

from darwinn_testbench.cli import sandbox
from darwinn_testbench.cli.console import full_names
from darwinn_testbench.cli.declared import option

_MIB = 1 << 20
_DEFAULT = Limits()

_Seconds = Annotated[
    float,
    option(
        f"{SECONDS} S",
        "End a program that computes for S seconds without anything that the host sees, or for "
        f"{IN_TOTAL} times as long in all (fault, exit code 1).",
        min=0.001,
        max=1e9,
    ),
]
_Memory = Annotated[
    int,
    option(
        f"{MEMORY} MIB",
        "Refuse a file that declares more than MIB mebibytes, and end a program that takes more.",
        min=1,
        max=1 << 30,
    ),
]
_Sandbox = Annotated[
    bool,
    option(
        sandbox.OPTION,
        "Do all this in a process of its own, with limits of the kernel on memory, time and files "
        "(SECURITY.md).",
    ),
]
_Wide = Annotated[
    bool,
    option(
        "--wide",
        "Print tables with full names, however wide they are. By default names lose their middle "
        "where the terminal, or the log of a CI server (120 characters), is too narrow.",
    ),
]
_OPTIONS: dict[str, tuple[Any, Any]] = {
    "max_seconds": (_Seconds, _DEFAULT.seconds),
    "max_memory": (_Memory, _DEFAULT.memory // _MIB),
    "wide": (_Wide, False),
    # Taken from the command line before there is a command.
    "sandbox": (_Sandbox, False),
}


def limited(command: Callable[..., None]) -> Callable[..., None]:
    """``command`` with the options, run within what they say."""

    @functools.wraps(command)
    def run(
        *, max_seconds: float, max_memory: int, wide: bool, sandbox: bool, **arguments: Any
    ) -> None:
        with within(Limits(max_seconds, max_memory * _MIB)), full_names(wide):
            command(**arguments)

    signature = inspect.signature(command, eval_str=True)
    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
        for name, (kind, default) in _OPTIONS.items()
    ]
    parameters = [*signature.parameters.values(), *added]
    changed: Any = run
    changed.__signature__ = signature.replace(parameters=parameters)
    changed.__annotations__ = {each.name: each.annotation for each in parameters}
    return run
