"""A setting: everything that a command, a manifest or a document has to know about it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from darwinn_testbench.request.scope import Scope


class Use(Enum):
    """What the text of a setting is."""

    VALUE = "value"
    """No file, even where one is called so."""
    FILE = "file"
    """The path of a file that is read; before it there may be ``NAME=``."""
    MODULE = "module"
    """The name of a Python module, or the path of its file."""
    RESULT = "result"
    """The path of a file that is written."""


@dataclass(frozen=True, kw_only=True)
class Needs:
    """A setting means nothing unless one of ``names`` is given, or has the value ``value``.

    ``why`` is what is said then; ``{value}`` in it stands for the first value that was given.
    """

    names: tuple[str, ...]
    why: str
    value: object = None


@dataclass(frozen=True)
class Setting:
    """One setting of a request, as it stands in the annotation of a record's field.

    Attributes:
        form: the option, ``--name -n VALUE``; a flag, or a choice that help lists, has no VALUE.
            ``--no-name`` is the flag of a setting that is true by default.
        text: the help text, which is also the row of the setting in tables of the documents.
        least, most: bounds of a number.
        scope: what it applies to.
        use: what its text is; a text of which nothing is said is taken for a file that is read.
        needs: without what it means nothing.
        choices: values that apply to less than the setting does, with what is said otherwise.
        plain: its type in a command and a manifest, where that is not the type of the field.
        read: makes the value of the field of a plain one.
        key: its key in a manifest, by default the name of the field; empty if it has none.
        offers: values that a shell completes.
        suffix: of files that it completes besides.
        project: whether a project may have a default of its own for it (``request.project``).
    """

    form: str
    text: str
    least: float | None = field(default=None, kw_only=True)
    most: float | None = field(default=None, kw_only=True)
    scope: Scope = field(default=Scope.ANYTHING, kw_only=True)
    use: Use | None = field(default=None, kw_only=True)
    needs: Needs | None = field(default=None, kw_only=True)
    choices: Mapping[Any, tuple[Scope, str]] = field(default_factory=dict, kw_only=True, hash=False)
    plain: Any = field(default=None, kw_only=True)
    read: Callable[[Any], Any] | None = field(default=None, kw_only=True)
    key: str | None = field(default=None, kw_only=True)
    offers: tuple[str, ...] = field(default=(), kw_only=True)
    suffix: str = field(default="", kw_only=True)
    project: bool = field(default=False, kw_only=True)

    @property
    def options(self) -> list[str]:
        """The spellings of the option, long ones first."""
        return [word for word in self.form.split() if word.startswith("-")]

    @property
    def metavar(self) -> str:
        """What stands for the value in help; empty of a flag."""
        return " ".join(self.form.split()[len(self.options) :])

    @property
    def option(self) -> str:
        """The option by its first spelling."""
        return self.options[0]

    def flag(self, value: bool) -> str:
        """The flag that says ``value``: of ``--name/--no-name`` one of the two."""
        yes, slash, no = self.option.partition("/")
        return no if slash and not value else yes

    @property
    def inverse(self) -> bool:
        """Whether the flag turns off what is on by default."""
        return re.match(r"--no-[^/]*$", self.option) is not None
