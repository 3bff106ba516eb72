"""Folders of the package that are also called as the function of the same name.

``darwinn_testbench.profile`` is a folder of modules, and the function that users call: a module can
be called if its class says so, and all imports from the folder work as they do.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any


class CalledModule(ModuleType):
    """A folder that is called as the function ``NAME`` of ``PLACE``, which its calls load."""

    _place: tuple[str, str]

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """What the function gives."""
        return self._function(*arguments, **named)

    @property
    def _function(self) -> Callable[..., Any]:
        module, name = self._place
        found: Callable[..., Any] = getattr(import_module(module), name)
        return found

    @property
    def __doc__(self) -> str:  # type: ignore[override]
        """The function's help, with its arguments, and what the folder is."""
        name, own = self.__name__.rpartition(".")[2], vars(self)["__doc__"]
        parts = (f"{name}{self.__signature__}", inspect.getdoc(self._function), own)
        return "\n\n".join(filter(None, parts))

    @property
    def __signature__(self) -> inspect.Signature:
        """That of the function, for ``help`` and editors."""
        return inspect.signature(self._function)


def called_as(folder: str, module: str, name: str) -> None:
    """Let the package ``folder`` be called as the function ``name`` of ``module``."""
    package = sys.modules[folder]
    package.__class__ = CalledModule
    vars(package)["_place"] = (module, name)
