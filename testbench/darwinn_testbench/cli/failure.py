"""What a command that failed leaves: a line on standard error, a code, and the awaited results."""

from __future__ import annotations

import os
import re
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer
from darwinn_formats.errors import FormatError

from darwinn_testbench.chip.images import IMAGE_SUFFIXES
from darwinn_testbench.cli import commands
from darwinn_testbench.cli.outputs import is_named_by
from darwinn_testbench.cli.results import FORMS, Results
from darwinn_testbench.cli.terminal import discard_output, print_line
from darwinn_testbench.report import EXIT_CODES, Report, Row, Verdict, one_line, verdict_of

_CHECKED = (
    (r"Value error, (.*?)\.?$", r"\1"),
    (r"Input should be a valid (\w+), unable to parse .*", r"{word} is no \1"),
    (r"Input should be greater than or equal to (\S+)", r"{word} is less than \1"),
    (r"Input should be less than or equal to (\S+)", r"{word} is more than \1"),
)
"""What is said of a value that does not fit, and how it is said here."""
_EXTRA_WORDS = "unexpected extra argument"
"""In Typer's message of words that no argument takes."""
_ANY_NUMBER = -1
"""Words of an argument that takes all there are, as Typer has it."""
_TRACEBACK_VARIABLE = "DARWINN_TRACEBACK"


def report(arguments: Sequence[str], error: Exception) -> int:
    """Say what failed, write the results that were asked for, and return the exit code."""
    if isinstance(error, typer.TyperException):
        return _usage_error(arguments, error)
    if os.environ.get(_TRACEBACK_VARIABLE):
        traceback.print_exception(error)
    verdict = verdict_of(error)
    text = one_line(_of_file(error, arguments))
    if verdict is None:
        # A defect of this program, not of the input: say so, and how to see where.
        verdict = Verdict.FAULT
        text = (
            f"internal error, please report it: {type(error).__name__}: {text} "
            f"(set {_TRACEBACK_VARIABLE}=1 to see where)"
        )
    print_line(f"{_command_name(arguments)}: {verdict.value}: {text}")
    return _finish(arguments, verdict, text)


def nothing_can_be_printed(arguments: Sequence[str], error: OSError) -> int:
    """The exit code where standard output takes nothing any more, so nothing else is tried."""
    print_line(f"{_command_name(arguments)}: bad-input: standard output: {error.strerror}")
    discard_output()
    return EXIT_CODES[Verdict.BAD_INPUT]


def _usage_error(arguments: Sequence[str], error: typer.TyperException) -> int:
    name = _command_name(arguments)
    text = _no_number(arguments, error) or _plain(arguments, error)
    text = _without_value(arguments, text) or text
    text += _advice(arguments, error, text)
    if text:
        print_line(f"{name}: {text} (see: {name} --help)")
    return _finish(arguments, Verdict.BAD_INPUT, text or "no command")


def _no_number(arguments: Sequence[str], error: typer.TyperException) -> str:
    """What is wrong with a "nan", which the library calls beyond a bound; empty of other words."""
    for name in getattr(getattr(error, "param", None), "opts", ()):
        word = _option(arguments, name)
        if word.strip(" +-").lower() == "nan":
            return f"Invalid value for '{name}': {word} is no number"
    return ""


def _without_value(arguments: Sequence[str], text: str) -> str:
    """Say which value an option lacks; empty for any other message."""
    found = re.match(r"Option '(-\S+)' requires an argument", text)
    option = found[1] if found else ""
    told = next((each for each in _parameters(_subcommand(arguments)) if option in each.opts), None)
    if told is None or not told.metavar:
        return ""
    stdout = "; - is standard output" if "- is stdout" in (told.help or "") else ""
    return f"Option '{option}' takes {told.metavar}{stdout}"


def _plain(arguments: Sequence[str], error: typer.TyperException) -> str:
    """The library's message without the words of the one that checks values for it."""
    text = error.format_message().strip()
    names = getattr(getattr(error, "param", None), "opts", ())
    word = next(filter(None, (_option(arguments, name) for name in names)), "this")
    for pattern, said in _CHECKED:
        text = re.sub(pattern, said.format(word=word.replace("\\", r"\\")), text)
    return text


_OLD_JOURNAL = re.compile(r"No such option: (--out|-o)\b(?!-)")


def _advice(arguments: Sequence[str], error: typer.TyperException, text: str) -> str:
    """How else the words of a command line may be meant: the end of a message, or nothing."""
    name = _subcommand(arguments)
    if _EXTRA_WORDS in text and "--reference" in _options_with_value(name):
        return ": the model before compilation is given by --reference MODEL"
    if "No such option: --model" in text and "--executable" in _options_with_value(name):
        return ": --executable N is what this command takes, as `darwinn inspect` counts them"
    if _OLD_JOURNAL.search(text) and "--journal" in _options_with_value(name):
        return ": --journal is what was --out before 0.4"
    missing = getattr(getattr(error, "param", None), "name", "")
    word = _file_argument(arguments)
    if missing == "images" and Path(word).suffix.lower() in IMAGE_SUFFIXES:
        return f": the last word is the MODEL, and {word} looks like a picture: give IMAGE... MODEL"
    return ": pictures first, the MODEL last" if missing == "images" and word else ""


def _of_file(error: Exception, arguments: Sequence[str]) -> Exception:
    """The error; FILE is named by those of linking and layout, which know no file."""
    if isinstance(error, FormatError) and error.file is None:
        return error.with_file(_file_argument(arguments))
    return error


def _finish(arguments: Sequence[str], verdict: Verdict, message: str) -> int:
    """The exit code; with --json also the object, with --junit and its like the awaited file."""
    failed: Report[Row] = Report(
        command=_subcommand(arguments),
        file=_file_argument(arguments),
        decided=verdict,
        message=message,
    )
    results = _results(arguments)
    if results.json:
        sys.stdout.write(failed.to_json() + "\n")
    for error in results.attempt([failed]):
        if (text := one_line(error)) != message:
            print_line(f"{_command_name(arguments)}: {text}")
    return EXIT_CODES[verdict]


def _results(arguments: Sequence[str]) -> Results:
    """What was asked for; of several results for standard output the first.

    A file that another word of the command line names as well is left as it is: that may be what
    failed, or what was to be read.
    """
    json = "--json" in arguments
    taken = json
    files: dict[str, Path] = {}
    for name in FORMS:
        target = _option(arguments, f"--{name}")
        if target and not (target == "-" and taken) and not _is_named_twice(arguments, target):
            files[name] = Path(target)
            taken = taken or target == "-"
    return Results(json=json, github="--github" in arguments and not taken, **files)


def _is_named_twice(arguments: Sequence[str], target: str) -> bool:
    """Whether the file that an option writes is named by another word, too."""
    words = [word for word in arguments[1:] if word != "-"]
    return sum(is_named_by(Path(target), word) for word in words) > 1


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
    return first if first in commands.SUMMARIES else ""


def _file_argument(arguments: Sequence[str]) -> str:
    """FILE of a command line that failed: the first word that is no option nor the value of one.

    Where pictures or the like come first it is the last one.
    """
    subcommand = _subcommand(arguments)
    valued = _options_with_value(subcommand)
    words = iter(arguments[1:])
    found = []
    for word in words:
        if word in valued:
            next(words, None)
        elif word == "-" or not word.startswith("-"):
            found.append(word)
    if not found:
        return ""
    return found[-1 if _file_is_last(subcommand) else 0]


def _file_is_last(name: str) -> bool:
    """Whether any number of words stands before another argument."""
    many = [each.nargs for each in _parameters(name) if each.param_type_name == "argument"]
    return len(many) > 1 and many[0] == _ANY_NUMBER


def _options_with_value(name: str) -> set[str]:
    return {
        option
        for parameter in _parameters(name)
        if not getattr(parameter, "is_flag", True)
        for option in parameter.opts
    }


def _parameters(name: str) -> Sequence[Any]:
    if not name:
        return ()
    try:
        return commands.load(name).params
    except Exception:
        # It is what failed: the module of the command cannot be loaded.
        return ()
