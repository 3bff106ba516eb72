"""Descriptions of chips, one TOML file each, and which of them this process simulates."""

import os
from typing import Final

VARIABLE: Final = "DARWINN_CHIP"
"""Environment variable: name or TOML file of the chip that a process simulates."""

DEFAULT: Final = "beagle-max"


def selected_name() -> str:
    """Name or file of the chip that this process simulates, as it was chosen."""
    return os.environ.get(VARIABLE) or DEFAULT
