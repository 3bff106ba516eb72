"""The commands put together, and the one place where an exception becomes a line and a code."""

from __future__ import annotations

import io
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from darwinn_formats.errors import FormatError
from typer import rich_utils
from typer.core import TyperCommand

from darwinn_testbench import __version__
from darwinn_testbench.cli import (
    accuracy,
    cycles,
    disasm,
    dma,
    inspect,
    layers,
    profile,
    regress,
    report,
    run,
    sample,
    verify,
)
from darwinn_testbench.cli.console import Exit, discard_output, print_line, reader_went_away
from darwinn_testbench.cli.results import FORMS
from darwinn_testbench.report import EXIT_CODES, Report, Row, Verdict, github, verdict_of
from darwinn_testbench.report.files import write_result

_INTERRUPTED = 130
_TRACEBACK_VARIABLE = "DARWINN_TRACEBACK"

_HELP = """Run compiled Edge TPU (DarwiNN) models on a simulated chip and verify what they compute.

FILE is an Edge TPU `*_edgetpu.tflite`, a DarwiNN package or a bare instruction stream, or a program
for ExecuTorch (`.pte`, `.bpte`), IREE (`.vmfb`) or TFRT (BEF); what it is is seen from its content.
`-` reads it from standard input.
"""

_EPILOG = """**Start here**

`darwinn inspect MODEL_edgetpu.tflite`

`darwinn verify MODEL_edgetpu.tflite --reference MODEL.tflite`

**Exit codes**

0 pass, 1 mismatch, regression or fault, 2 bad input or usage, 3 refused (not implemented),
130 interrupted
"""

_COMMANDS = (
    inspect,
    disasm,
    dma,
    layers,
    run,
    verify,
    cycles,
    accuracy,
    profile,
    report,
    regress,
    sample,
)


class _Command(TyperCommand):
    """A command whose help names what a user types, and no types of Python."""

    def get_params(self, ctx: Any) -> list[Any]:
        params = super().get_params(ctx)
        for param in params:
            if getattr(param, "is_flag", False):
                param.metavar = ""
        return params

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return [
            piece.replace("{", "").replace("}", "") for piece in super().collect_usage_pieces(ctx)
        ]


# Bounds beside N would take the help's columns; an argument beyond them is answered with them.
rich_utils.RANGE_STRING = ""


def application() -> typer.Typer:
    """The command line application with all its commands."""
    app = typer.Typer(
        name="darwinn",
        help=_HELP,
        epilog=_EPILOG,
        rich_markup_mode="markdown",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_global_options)
    for module in _COMMANDS:
        # Accuracy alone has something to do without an argument.
        help_alone = module is not accuracy
        decorate = app.command(
            module.NAME, cls=_Command, epilog=module.EXAMPLES, no_args_is_help=help_alone
        )
        decorate(module.command)
    return app


def run_command_line(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code; no exception leaves it."""
    _prepare_streams()
    try:
        code = _run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        return reader_went_away()
    except OSError as error:
        # Standard output takes nothing any more, so nothing else is tried there.
        print_line(f"{_command_name(arguments)}: bad-input: standard output: {error.strerror}")
        discard_output()
        return EXIT_CODES[Verdict.BAD_INPUT]
    return code


def _prepare_streams() -> None:
    """Make standard output and error take whatever is printed."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            # Closed by the caller, who wants to see nothing.
            setattr(sys, name, io.TextIOWrapper(io.BytesIO()))
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper):
            # Names in files, and of files, may hold what the terminal's character set lacks.
            stream.reconfigure(errors="backslashreplace")


def _run(arguments: Sequence[str]) -> int:
    command = typer.main.get_command(application())
    try:
        outcome = command.main(args=list(arguments), prog_name="darwinn", standalone_mode=False)
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
        return _INTERRUPTED
    except typer.TyperException as error:
        return _usage_error(arguments, error)
    except BrokenPipeError:
        raise
    except Exception as error:
        return _failure(arguments, error)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(__version__)
        raise Exit(0)


_Version = Annotated[
    bool,
    typer.Option(
        "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
    ),
]


def _global_options(version: _Version = False) -> None:
    """Options before the command."""


def _usage_error(arguments: Sequence[str], error: typer.TyperException) -> int:
    name = _command_name(arguments)
    text = error.format_message().strip()
    if text:
        print_line(f"{name}: {text} (see: {name} --help)")
    return _finish(arguments, Verdict.BAD_INPUT, text or "no command")


def _failure(arguments: Sequence[str], error: Exception) -> int:
    if os.environ.get(_TRACEBACK_VARIABLE):
        traceback.print_exception(error)
    verdict = verdict_of(error)
    text = _one_line(_of_file(error, arguments))
    if verdict is None:
        # A defect of this program, not of the input: say so, and how to see where.
        verdict = Verdict.FAULT
        text = (
            f"internal error, please report it: {type(error).__name__}: {text} "
            f"(set {_TRACEBACK_VARIABLE}=1 to see where)"
        )
    print_line(f"{_command_name(arguments)}: {verdict.value}: {text}")
    return _finish(arguments, verdict, text)


def _of_file(error: Exception, arguments: Sequence[str]) -> Exception:
    """The error; FILE is named by those of linking and layout, which know no file."""
    if isinstance(error, FormatError) and error.file is None:
        return error.with_file(_file_argument(arguments))
    return error


def _one_line(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror is not None:
        return error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"
    return " ".join(str(error).split())


def _finish(arguments: Sequence[str], verdict: Verdict, message: str) -> int:
    """The exit code; with --json also the object, with --junit and its like the awaited file."""
    report: Report[Row] = Report(
        command=_subcommand(arguments),
        file=_file_argument(arguments),
        decided=verdict,
        message=message,
    )
    if "--json" in arguments:
        sys.stdout.write(report.to_json() + "\n")
    targets = {name: _option(arguments, f"--{name}") for name in FORMS}
    for name, target in targets.items():
        if target and not (target == "-" and "--json" in arguments):
            try:
                write_result(target, FORMS[name]([report]))
            except OSError as error:
                if (text := _one_line(error)) != message:
                    print_line(f"{_command_name(arguments)}: {text}")
    if "--github" in arguments and "--json" not in arguments:
        for line in github.workflow_commands([report]):
            sys.stdout.write(line + "\n")
    return EXIT_CODES[verdict]


def _option(arguments: Sequence[str], name: str) -> str:
    """Value of an option of a command line that failed; empty if it is not given."""
    for word, following in zip(arguments, [*arguments[1:], ""], strict=False):
        if word == name:
            return following
        if word.startswith(name + "="):
            return word.removeprefix(name + "=")
    return ""


def _command_name(arguments: Sequence[str]) -> str:
    return f"darwinn {_subcommand(arguments)}".rstrip()


def _subcommand(arguments: Sequence[str]) -> str:
    first = arguments[0] if arguments else ""
    return first if first in {module.NAME for module in _COMMANDS} else ""


def _file_argument(arguments: Sequence[str]) -> str:
    """FILE of a command line that failed: the first word that is no option nor the value of one."""
    subcommand = _subcommand(arguments)
    valued = _options_with_value(subcommand) if subcommand else set()
    words = iter(arguments[1:])
    for word in words:
        if word in valued:
            next(words, None)
        elif word == "-" or not word.startswith("-"):
            return word
    return ""


def _options_with_value(name: str) -> set[str]:
    command = typer.main.get_group(application()).commands[name]
    return {
        option
        for parameter in command.params
        if not getattr(parameter, "is_flag", True)
        for option in parameter.opts
    }
