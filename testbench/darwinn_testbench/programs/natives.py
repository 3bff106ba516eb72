"""Native functions of BEF files and imports of IREE modules, from a module that the user names."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

from darwinn_testbench.errors import InputError
from darwinn_testbench.request.inputs import Natives

ATTRIBUTE = "NATIVES"
"""The module's mapping of native functions by name."""


def load_natives(name: Natives | str | None) -> Natives | None:
    """The native functions of a module, by its name or by the path of its ``.py`` file.

    What is no name is given back: they are those functions already, or there are none.

    The module is executed: it is the user's own code.

    Raises:
        InputError: there is no such module, it fails, or it has no mapping ``NATIVES``.
    """
    if not isinstance(name, str):
        return name
    try:
        module = _from_file(Path(name)) if name.endswith(".py") else importlib.import_module(name)
    except Exception as error:
        raise InputError(f"--natives {name}: {type(error).__name__}: {error}") from error
    natives = getattr(module, ATTRIBUTE, None)
    if not isinstance(natives, Mapping):
        raise InputError(f"--natives {name}: has no mapping {ATTRIBUTE} of functions by name")
    return natives


def source_of(name: str) -> str | None:
    """The file of such a module, which is not executed; None if there is none."""
    if name.endswith(".py"):
        return name
    try:
        specification = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None
    return None if specification is None else specification.origin


def _from_file(path: Path) -> ModuleType:
    specification = importlib.util.spec_from_file_location(path.stem, path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module
