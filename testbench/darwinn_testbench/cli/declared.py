"""How commands declare their arguments and options: as help shows them, with a text."""

from __future__ import annotations

from typing import Any

import typer

from darwinn_testbench.request.setting import Setting


def option(form: str, text: str, **told: Any) -> Any:
    """An option, ``--name -n VALUE``; a flag, or a choice that help lists, has no VALUE."""
    setting = Setting(form, text)
    return typer.Option(*setting.options, metavar=setting.metavar or None, help=text, **told)


def argument(metavar: str, text: str) -> Any:
    """An argument."""
    return typer.Argument(metavar=metavar, help=text)
