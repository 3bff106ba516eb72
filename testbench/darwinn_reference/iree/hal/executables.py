"""Executables, and the layouts that older versions make for them."""

from __future__ import annotations

from typing import Any

from darwinn_reference.iree.hal.objects import HAL, Executable, Host, Opaque, text_of
from darwinn_reference.iree.imports import expect
from darwinn_reference.iree.memory import Buffer


@HAL.add("executable.create", "0rrrrCrD_r", "device format_name data constants layouts")
@HAL.add("executable.create", "0rrrr_r", "device format_name data constants")
@HAL.add("executable.create", "0rIrrr_r", "device affinity format_name data constants")
def _create(host: Host, format_name: Any, data: Any, constants: Any) -> Executable:
    name = text_of(format_name)
    return host.create_executable(name, expect(data, Buffer, "the executable"), constants)


def executable_of(value: object) -> Executable:
    """An executable that is not null."""
    return expect(value, Executable, "the executable")  # type: ignore[type-abstract]


HAL.add_all(
    {
        "executable.lookup.function 0rr_I executable name": (
            lambda executable, name: executable_of(executable).lookup(text_of(name))
        ),
        "descriptor_set_layout.create 0riCiiiD_r device flags bindings": (
            lambda: Opaque("descriptor set layout")
        ),
        "pipeline_layout.create 0riCrD_r device constants layouts": (
            lambda: Opaque("pipeline layout")
        ),
    }
)
