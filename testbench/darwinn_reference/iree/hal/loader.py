"""The ``hal_loader`` module: executables that an inline module loads and runs itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from darwinn_reference.iree.hal.executables import executable_of
from darwinn_reference.iree.hal.objects import Executable, Host, source_of, text_of
from darwinn_reference.iree.imports import ImportTable

HAL_LOADER = ImportTable("hal_loader", {})

_DISPATCH = "executable entry x y z constants bindings"


@HAL_LOADER.add("executable.load", "0rrr_r")
def _load(host: Host, format_name: Any, data: Any, constants: Any) -> Executable:
    return host.create_executable(text_of(format_name), source_of(data), constants)


@HAL_LOADER.add("executable.dispatch", "0riiiiCiDCrIID_v", _DISPATCH)
@HAL_LOADER.add("executable.dispatch", "0rIiiiCiDCrIID_v", _DISPATCH)
def _dispatch(
    executable: Any,
    entry: int,
    x: int,
    y: int,
    z: int,
    constants: Sequence[tuple[int]],
    bindings: Sequence[tuple[Any, int, int]],
) -> None:
    words = [word for (word,) in constants]
    parts = [source_of(buffer).part(offset, length) for buffer, offset, length in bindings]
    executable_of(executable).dispatch(entry, (x, y, z), words, parts)


HAL_LOADER.add_all(
    {
        "executable.query_support 0r_i format_name": (
            lambda host, format_name: int(host.takes(text_of(format_name)))
        ),
        "executable.lookup.function 0rr_I executable name": (
            lambda executable, name: executable_of(executable).lookup(text_of(name))
        ),
    }
)
