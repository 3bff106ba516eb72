"""How commands declare their arguments and options: as help shows them, with a text."""

from __future__ import annotations

from typing import Any

import typer


def option(form: str, text: str, **told: Any) -> Any:
    """An option, ``--name -n VALUE``; a flag, or a choice that help lists, has no VALUE."""
    words = form.split()
    names = [word for word in words if word.startswith("-")]
    metavar = " ".join(words[len(names) :]) or None
    return typer.Option(*names, metavar=metavar, help=text, **told)


def argument(metavar: str, text: str) -> Any:
    """An argument."""
    return typer.Argument(metavar=metavar, help=text)
