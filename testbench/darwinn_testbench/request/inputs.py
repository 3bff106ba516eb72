"""Types of what requests hold, and what kinds of files these name."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

from darwinn_formats.files import Source
from darwinn_formats.signatures import is_external_data

Inputs = Sequence[str | os.PathLike[str]] | Sequence[Mapping[str, Any]] | None
"""What a caller may give: files (``chip.inputs.read_inputs``), arrays by port name, or nothing."""

Natives = Mapping[str, Callable[..., Any]]
"""Native functions of a BEF file, or imports of an IREE module, by name (``TfrtReference``,
``IreeReference``)."""

Keep = Callable[[str, Any], None]
"""Takes a value of a tap as it comes, with the name under which it is stored."""

_HEAD_BYTES = 1 << 18
"""How much of a file says what it is: a zip archive has names before the module."""


class InputKind(StrEnum):
    """What inputs look like, in the order in which runs take them."""

    NOISE = "noise"
    """Every element by itself: uniform over an integer's range or a known one, else normal."""
    GRADIENTS = "gradients"
    """Each channel swings smoothly along a direction of its own."""
    EXTREMES = "extremes"
    """Blocks, from single elements to all, at the ends of the range, each channel by itself."""
    CONSTANTS = "constants"
    """Each channel has one value: an end of the range, zero, or any."""
    EDGES = "edges"
    """Channels of one value with a few sharp boxes, lines and points."""


def head_of(source: Source) -> bytes:
    """The first bytes; none of what is no regular file, since that can be read only once."""
    if isinstance(source, bytes):
        return source[:_HEAD_BYTES]
    path = Path(source)
    if not path.is_file():
        return b""
    with path.open("rb") as stream:
        return stream.read(_HEAD_BYTES)


def split_data(files: Sequence[Source]) -> tuple[list[Source], list[Source]]:
    """Data of programs (.ptd, .irpa) among files, by their content; and the other files.

    Raises:
        OSError: a file cannot be read.
    """
    data: list[Source] = []
    others: list[Source] = []
    for file in files:
        (data if is_external_data(head_of(file)) else others).append(file)
    return data, others
