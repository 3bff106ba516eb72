"""The chip that this process simulates.

Kernels and the RTL's Python side have the sizes of one chip as constants, so a process has one, and
it is chosen before the first of them is loaded: by the environment variable ``DARWINN_CHIP``, or by
:func:`choose`. What a process starts simulates the same chip.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache

from darwinn_formats.errors import FormatError

from darwinn_sim.chips import VARIABLE, selected_name
from darwinn_sim.chips.description import ChipDescription, read_chip


@cache
def selected() -> ChipDescription:
    """The chip that this process simulates; the same from the first call on.

    Raises ``FormatError`` or ``OSError`` as :func:`read_chip`.
    """
    return read_chip(selected_name())


def choose(name_or_path: str) -> None:
    """Have this process, and those that it starts, simulate a chip, if no kernels are loaded yet.

    A chip that differs from the present one in time alone changes nothing.

    Raises ``FormatError`` or ``OSError`` as :func:`read_chip`.
    """
    if selected.cache_info().currsize:
        return
    asked, present = read_chip(name_or_path), read_chip(selected_name())
    if asked.sizes != present.sizes or not _same_registers(asked, present):
        os.environ[VARIABLE] = name_or_path


def check_selected(name_or_path: str, description: ChipDescription) -> None:
    """Refuse a chip whose sizes or registers are not those that this process has.

    Raises ``FormatError`` naming the first parameter that differs.
    """
    for parameter, difference in _differences(description, selected()):
        raise FormatError(
            f"{description.name}.{parameter}",
            f"{difference}: a process has one chip, which {VARIABLE}={name_or_path} in its "
            "environment selects",
            file=name_or_path,
        )


def _differences(chip: ChipDescription, own: ChipDescription) -> Iterator[tuple[str, str]]:
    """The parameters in which a chip is not the one of this process, each with the difference."""
    for parameter, value in chip.sizes.items():
        here = own.sizes[parameter]
        if value != here:
            yield (
                parameter,
                f"the value is {value}, and this process simulates {own.name} with {here}",
            )
    if not _same_registers(chip, own):
        yield (
            "register_map",
            f"the registers differ from those of {own.name}, which this process simulates",
        )


def _same_registers(one: ChipDescription, other: ChipDescription) -> bool:
    """Whether two chips have the same registers; the same map is not read for it."""
    return one.register_map == other.register_map or one.registers == other.registers
