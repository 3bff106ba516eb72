"""Label files: a name for each class."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from darwinn_formats.errors import FormatError
from darwinn_formats.files import read_file

from darwinn_testbench.errors import InputError

Labels = Mapping[int, str]
"""Names by number of the class."""

_MAX_BYTES = 1 << 24
_NUMBERED = re.compile(r"(\d{1,9})[:\s]\s*(\S.*)")


def read_labels(path: Path) -> dict[int, str]:
    """The names of a file: a line each, from 0 on, or lines of a number and a name.

    Raises:
        InputError: the file is not text, or too large.
        OSError: it cannot be read.
    """
    try:
        lines = read_file(path, _MAX_BYTES).decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: byte {error.start}: not UTF-8: no label file") from None
    except FormatError as error:
        raise InputError(str(error)) from error
    names: dict[int, str] = {}
    for number, line in enumerate(lines):
        numbered = _NUMBERED.fullmatch(line.strip())
        if numbered is not None:
            names[int(numbered[1])] = numbered[2]
        elif line.strip():
            names[number] = line.strip()
    return names


def name_of_class(labels: Labels, number: int) -> str:
    """The name of a class, or its number."""
    return labels.get(number, str(number))
