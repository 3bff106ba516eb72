"""Options that write files: none of them may write over what its command reads, or another writes.

Every value of a command line is taken for a file that is read, unless its setting says otherwise
(``request.setting.Use``), or its option is listed here: a new option is then protected before
anybody thinks of it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from itertools import combinations
from pathlib import Path
from typing import Any

from darwinn_testbench.cli import results
from darwinn_testbench.errors import InputError
from darwinn_testbench.request import settings
from darwinn_testbench.request.record import setting_of
from darwinn_testbench.request.setting import Use


def _alone(target: Path) -> Sequence[Path]:
    return (target,)


def _waves(target: Path) -> Sequence[Path]:
    return (target, target.with_suffix(".gtkw")) if target.name else (target,)


def _for_model_explorer(target: Path) -> Sequence[Path]:
    # Imported here: no other option should wait for it.
    from darwinn_testbench.profile.model_explorer import files_beside

    return tuple(files_beside(target).values())


def _options(use: Use) -> Iterator[str]:
    """The options of the shared settings whose text is for that use."""
    for shared in (settings, results):
        found = filter(None, map(setting_of, vars(shared).values()))
        yield from (each.option for each in found if each.use is use)


OUTPUTS: Mapping[str, Callable[[Path], Sequence[Path]]] = {
    **dict.fromkeys(_options(Use.RESULT), _alone),
    "--baseline": _alone,
    "--csv": _alone,
    "--document": _alone,
    "--graph": _alone,
    "--html": _alone,
    "--model-explorer": _for_model_explorer,
    "--out": _alone,
    "--out_dir": _alone,
    "--output": _alone,
    "--record": _alone,
    "--timeline": _alone,
    "--waves": _waves,
}
"""Options that write, in whatever command, and the files that they write for their value."""

TEXTS = frozenset(
    {
        *_options(Use.VALUE),
        "--gate",
        "--intermediate_tensors",
        "--keep",
        "--only",
        "--operators",
        "--reason",
        "--shapes",
        "--test",
        "--top",
        "TOPIC",
    }
)
"""Options and arguments whose value is no file, even where one is called so."""


def refuse_replacing(parameters: Sequence[Any], values: Mapping[str, Any]) -> None:
    """Refuse results in the place of what the command reads, and two in one file.

    Files are the same whatever they are called: a link of either kind leads to them as well. A
    folder, a device or a pipe is not replaced by what is written there.

    Args:
        parameters: arguments and options of the command.
        values: what the command line says of each, by its name.

    Raises:
        InputError: naming the file, and the options.
    """
    read, written = [], []
    for parameter in parameters:
        called = _called(parameter)
        for value in _texts(values.get(parameter.name)):
            if called in OUTPUTS:
                written += [(called, path) for path in _paths(called, value)]
            elif called not in TEXTS:
                read.append((called, value))
    for option, path in written:
        for reader, word in read:
            if is_named_by(path, word):
                raise InputError(
                    f"{path}: {option} would replace the file itself that {reader} reads: name "
                    "another one"
                )
    for (option, path), (other, further) in combinations(written, 2):
        if _same_target(path, further):
            raise InputError(f"{path}: {option} and {other} both write it: name two files")


def refuse_empty(parameters: Sequence[Any], words: Mapping[str, Any]) -> None:
    """Refuse an empty text in the place of a path, which would be the current folder.

    Args:
        parameters: arguments and options of the command.
        words: the texts of each on the command line or in the project's file, by its name.

    Raises:
        InputError: naming the argument or the option.
    """
    for parameter in parameters:
        called = _called(parameter)
        if called not in TEXTS and "" in _texts(words.get(parameter.name)):
            raise InputError(f"{called} is empty: name a file or a folder")


def refuse_two_on_stdout(parameters: Sequence[Any], values: Mapping[str, Any]) -> None:
    """Refuse a table of rows on standard output beside another result there.

    Args:
        parameters: arguments and options of the command.
        values: what the command line says of each, by its name.

    Raises:
        InputError: naming the options.
    """
    said = {_called(each): values.get(each.name) for each in parameters}
    taken = [option for option in ("--json", "--github") if said.get(option)]
    taken += [option for option in OUTPUTS if str(said.get(option)) == "-"]
    if "--csv" in taken and len(taken) > 1:
        raise InputError(f"{' and '.join(taken)} both write to standard output: choose one")


def is_named_by(path: Path, word: str) -> bool:
    """Whether a word of a command line names the file ``path``, or one side of an ``=`` in it."""
    if not path.is_file():
        return False
    if word == "-":
        return _is_standard_input(path)
    signs = [place for place, letter in enumerate(word) if letter == "="]
    sides = [word, *(word[:sign] for sign in signs), *(word[sign + 1 :] for sign in signs)]
    return any(_is_same(path, Path(side)) for side in sides if side)


def _called(parameter: Any) -> str:
    """What messages call an argument or an option: its place holder, or its first long name."""
    if parameter.param_type_name == "argument":
        return str(parameter.metavar or parameter.name).strip("[].")
    names: Sequence[str] = parameter.opts
    return next((name for name in names if name.startswith("--")), names[0])


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, (list, tuple)):
        for each in value:
            yield from _texts(each)
    elif isinstance(value, (str, Path)) and not isinstance(value, Enum):
        yield str(value)


def _paths(option: str, value: str) -> Sequence[Path]:
    """The files that an option writes; none of standard output."""
    return () if value == "-" and option != "--model-explorer" else OUTPUTS[option](Path(value))


def _same_target(one: Path, other: Path) -> bool:
    """Whether what is written second would replace what is written first."""
    if _is_special(one):
        return False
    return os.path.realpath(one) == os.path.realpath(other) or _is_same(one, other)


def _is_special(path: Path) -> bool:
    """Whether it is there and takes what is written, and keeps nothing."""
    try:
        return path.exists() and not path.is_file() and not path.is_dir()
    except OSError:
        return False


def _is_same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except (OSError, ValueError):
        # One of them is not there, or no path at all: a zero byte, a name that is too long.
        return False


def _is_standard_input(path: Path) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(sys.stdin.fileno()))
    except (AttributeError, OSError, ValueError):
        # Closed, or no file of the system.
        return False
