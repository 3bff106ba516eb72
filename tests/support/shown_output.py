"""What pages show of a terminal: calls of the command, and the lines that they print."""

from __future__ import annotations

import re
from collections.abc import Iterator

_BLOCK = re.compile(r"```console\n(.*?)```", re.S)
_MEASURED = re.compile(
    r"\d+\.\d+ s in all"
    r"|(?<= )\d+\.\d{3}(?=( +[a-z-]+)?$)"
    r"|in \d+\.\d+ s"
    r"|\d+\.\d+ ms(, measured| more)"
    r"|successfully in \d+ ms"
)
"""What is another time at each call: seconds at the end of a row, or before its verdict."""


def calls_of(page: str) -> Iterator[tuple[str, str]]:
    """Each `$ darwinn ...` of the console blocks, without its first word, and what is shown."""
    for block in _BLOCK.findall(page):
        for call in re.split(r"^\$ darwinn ", block, flags=re.M)[1:]:
            command, _, shown = call.partition("\n")
            yield command, shown


def lines(text: str) -> list[str]:
    """The lines of an output without measured times and the width of columns; no empty ones."""
    found = (" ".join(_MEASURED.sub("…", line.rstrip()).split()) for line in text.splitlines())
    return [line for line in found if line]
