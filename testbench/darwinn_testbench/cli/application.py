"""The commands put together, and the one place where an exception becomes a line and a code."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from functools import cache
from typing import Annotated, Any

import typer

from darwinn_testbench.cli import chip_choice, commands, completed, sandbox
from darwinn_testbench.cli.declared import option
from darwinn_testbench.cli.terminal import INTERRUPTED, Exit, print_line, reader_went_away
from darwinn_testbench.errors import InputError
from darwinn_testbench.version import __version__

_HELP = """Run compiled Edge TPU (DarwiNN) models on a simulated chip and verify their outputs.

FILE is an Edge TPU `*_edgetpu.tflite`, a DarwiNN package or a bare instruction stream. Several
commands also take programs for ExecuTorch (`.pte`, `.bpte`), IREE (`.vmfb`) and TFRT (BEF). The
content of a file, not its name, decides which it is. `-` reads FILE from standard input.
"""

_EPILOG = """**Start here**

`darwinn inspect MODEL_edgetpu.tflite`

`darwinn verify MODEL_edgetpu.tflite --reference MODEL.tflite`

`darwinn docs tutorials/tasks` lists tasks with their commands

**Exit codes**

0 proved, pass or ran; 1 wrong, or not proved or compared as required; 2 bad input or usage;
3 refused (not implemented); 130 interrupted
"""

_OF_THE_CALLING_SHELL = frozenset({"--install-completion", "--show-completion"})


def application() -> typer.Typer:
    """The command line application with all its commands."""
    app = typer.Typer(
        name="darwinn",
        help=_HELP,
        epilog=_EPILOG,
        rich_markup_mode=commands.MARKUP,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_global_options)
    commands.add_to(app)
    return app


@cache
def _command() -> Any:
    return typer.main.get_command(application())


def run_command_line(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code; no exception leaves it."""
    _prepare_streams()
    try:
        code = _run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        return reader_went_away()
    except OSError as error:
        from darwinn_testbench.cli import failure

        return failure.nothing_can_be_printed(arguments, error)
    return code


def _prepare_streams() -> None:
    """Make standard output and error take whatever is printed, in a width that is one."""
    if os.environ.get("COLUMNS", "1").strip("0") == "":
        # Rich prints nothing at all in no columns, which some terminals and servers set.
        del os.environ["COLUMNS"]
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            # Closed by the caller, who wants to see nothing.
            setattr(sys, name, io.TextIOWrapper(io.BytesIO()))
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper):
            # Names in files, and of files, may hold what the terminal's character set lacks.
            stream.reconfigure(errors="backslashreplace")


def _run(arguments: Sequence[str]) -> int:
    try:
        _refuse_shell(arguments)
        if sandbox.is_wanted(arguments):
            return sandbox.run(arguments)
        chip_choice.choose(arguments)
        completed.join_options(os.environ)
        outcome = _command().main(args=list(arguments), prog_name="darwinn", standalone_mode=False)
        return outcome if isinstance(outcome, int) else 0
    except Exit as request:
        return request.exit_code
    except SystemExit as request:
        if isinstance(request.__context__, BrokenPipeError):
            # The command line library has already made an exit of it.
            raise request.__context__ from None
        return request.code if isinstance(request.code, int) else 1
    except KeyboardInterrupt:
        print_line("darwinn: interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        raise
    except Exception as error:
        # Loaded where something failed: no command that succeeds should wait for it.
        from darwinn_testbench.cli import failure

        return failure.report(arguments, error)


def _refuse_shell(arguments: Sequence[str]) -> None:
    """InputError for the name of a shell, which the library ignores: it asks which shell calls."""
    option, shell = (*arguments[:2], "", "")[:2]
    if option in _OF_THE_CALLING_SHELL and shell and not shell.startswith("-"):
        raise InputError(f"{option} is for the shell that calls it: call it in {shell}, alone")


def _print_version(wanted: bool) -> None:
    if wanted:
        print(__version__)
        raise Exit(0)


_Version = Annotated[
    bool, option("--version", "Print the version and exit.", callback=_print_version, is_eager=True)
]


def _global_options(version: _Version = False) -> None:
    """Options before the command."""
