"""What a module keeps between calls: its globals, its data, and the functions it imports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from darwinn_formats.errors import ExecutionError
from darwinn_formats.iree import Module

from darwinn_reference.errors import Unsupported
from darwinn_reference.iree.import_history import why_refused
from darwinn_reference.iree.imports import Handler
from darwinn_reference.iree.memory import Buffer, allocate
from darwinn_reference.iree.registers import views

MAXIMUM_REFERENCES = 1 << 20
"""Globals that are references at most."""


class State:
    """The state of a module.

    Attributes:
        module: the module.
        host: what the imports work with; they get it as their first argument.
        global_memory: memory of the globals that are numbers.
        globals: a view of it for each register type.
        global_bytes: bytes of it that the module declares.
        references: the globals that are references.
        rodata: the read-only data segments.
        imports: imported functions by ordinal; None for an optional one that is not there.
    """

    def __init__(
        self, module: Module, imports: Mapping[tuple[str, str], Handler], host: object
    ) -> None:
        self.module = module
        self.host = host
        declared = module.definition.module_state
        self.global_bytes = 0 if declared is None else declared.global_bytes_capacity
        self.global_memory = allocate(-(-self.global_bytes // 8) * 8)
        self.globals = views(self.global_memory)
        count = 0 if declared is None else declared.global_ref_count
        if count > MAXIMUM_REFERENCES:
            raise ExecutionError(f"{count} globals that are references")
        self.references: list[Any] = [None] * count
        self.rodata = [
            Buffer(data.data.toreadonly(), ordinal) for ordinal, data in enumerate(module.rodata)
        ]
        self.imports = _resolve(module, imports)


def _resolve(
    module: Module, imports: Mapping[tuple[str, str], Handler]
) -> tuple[Handler | None, ...]:
    found: list[Handler | None] = []
    missing = []
    for entry in module.definition.imported_functions:
        convention = entry.signature.calling_convention if entry.signature else ""
        handler = imports.get((entry.full_name, convention))
        if handler is None and not entry.optional:
            reason = why_refused(entry.full_name, convention)
            note = f" ({reason})" if reason else ""
            missing.append(f"{entry.full_name} {convention}{note}")
        found.append(handler)
    if missing:
        raise Unsupported("imports", missing)
    return tuple(found)
