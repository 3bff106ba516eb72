"""Modules and classes that have moved: old names work until 0.4, and warn.

An old name gives the same module or class as the new one. Type checkers know only new names.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import CodeType, ModuleType
from typing import Any

MODULES = {
    "darwinn_testbench.extras": "darwinn_formats.extras",
    "darwinn_testbench.reference": "darwinn_reference",
    "darwinn_testbench.rtl": "darwinn_rtl",
}
"""Modules with all that is in them."""

NAMES = {
    "darwinn_testbench.errors": {
        "ExecutionError": "darwinn_formats.errors",
        "ModelError": "darwinn_reference.errors",
        "Unavailable": "darwinn_formats.errors",
        "Unsupported": "darwinn_reference.errors",
        "names_of": "darwinn_reference.errors",
    },
    "darwinn_testbench.policy": {"AnyArray": "darwinn_reference.arrays"},
}
"""Names that have left a module which still exists."""


class MovedModules:
    """Finds and loads modules by their old names; asked before Python looks into folders."""

    @classmethod
    def find_spec(
        cls, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """A module that has moved, or None."""
        new = _new_name(name)
        # ``importlib.abc``, which has the base class, takes 20 ms to import.
        loader: Any = cls
        return ModuleSpec(name, loader, origin=new) if new else None

    @staticmethod
    def create_module(spec: ModuleSpec) -> None:
        """Let Python make an empty module, which ``exec_module`` replaces."""

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        """Replace ``module`` by the one with the new name."""
        old = module.__name__
        new = _new_name(old)
        _warn(old, new, stacklevel=3)
        sys.modules[old] = import_module(new)

    @staticmethod
    def get_code(name: str) -> CodeType | None:
        """The code that ``python -m`` runs."""
        # Imported here: every command loads this module, and hardly any calls this.
        from importlib.util import find_spec

        spec = find_spec(_new_name(name))
        code: CodeType | None = spec.loader.get_code(spec.name)  # type: ignore[union-attr]
        return code


def finder_of_names(module: str) -> Callable[[str], Any]:
    """The ``__getattr__`` of a module that has lost names."""

    def moved(name: str) -> Any:
        home = NAMES[module].get(name)
        if home is None:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        _warn(f"{module}.{name}", f"{home}.{name}", stacklevel=3)
        return getattr(import_module(home), name)

    return moved


def _new_name(name: str) -> str:
    """The new name of a module, or an empty one if it has not moved."""
    for old, new in MODULES.items():
        if name == old or name.startswith(f"{old}."):
            return new + name.removeprefix(old)
    return ""


def _warn(old: str, new: str, stacklevel: int) -> None:
    message = f"{old} is {new} now; the old name works until 0.4"
    warnings.warn(message, DeprecationWarning, stacklevel=stacklevel)
