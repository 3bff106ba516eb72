"""The options of every command that reads a file: what it may cost, how wide its tables are."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from darwinn_formats.limits import IN_TOTAL, MEMORY, SECONDS, Limits
from darwinn_formats.limits import limited as within

from darwinn_testbench.cli import sandbox
from darwinn_testbench.cli.console import full_names
from darwinn_testbench.request.setting import Setting

_MIB = 1 << 20
_DEFAULT = Limits()


@dataclass(frozen=True)
class Costs:
    """What a command may cost, and how wide its tables are."""

    max_seconds: Annotated[
        float,
        Setting(
            f"{SECONDS} S",
            "End a program (fault, exit code 1) after S processor seconds without an effect that "
            f"the host sees, or after {IN_TOTAL} times S in all.",
            least=0.001,
            most=1e9,
            project=True,
        ),
    ] = _DEFAULT.seconds
    max_memory: Annotated[
        int,
        Setting(
            f"{MEMORY} MIB",
            "Refuse a file that declares more than MIB mebibytes, and end a program that takes "
            "more.",
            least=1,
            most=1 << 30,
            project=True,
        ),
    ] = _DEFAULT.memory // _MIB
    wide: Annotated[
        bool,
        Setting(
            "--wide",
            "Print tables with full names, however wide they are. By default names lose their "
            "middle if the terminal, or the log of a CI server (120 characters), is too "
            "narrow.",
            project=True,
        ),
    ] = False
    # Taken from the command line before there is a command.
    sandbox: Annotated[
        bool,
        Setting(
            sandbox.OPTION,
            "Run the command in its own process, with limits of the operating system on "
            "memory, time and files (SECURITY.md).",
        ),
    ] = False


def limited(command: Callable[..., None]) -> Callable[..., None]:
    """``command`` with :class:`Costs`, run within what they say."""

    @functools.wraps(command)
    def run(*, costs: Costs, **arguments: Any) -> None:
        limits = Limits(costs.max_seconds, costs.max_memory * _MIB)
        with within(limits), full_names(costs.wide):
            command(**arguments)

    own = inspect.signature(command, eval_str=True)
    added = inspect.Parameter("costs", inspect.Parameter.KEYWORD_ONLY, annotation=Costs)
    changed: Any = run
    changed.__signature__ = own.replace(parameters=[*own.parameters.values(), added])
    return run
