"""Names as people read them: of the paths that a converter has joined, the first.

TensorFlow's converter calls the result of operators that it has fused by all their names, and by
those of what shares their constants: up to twenty paths with ``;`` between them, of which the first
is that of the result. JSON has names as they are in the file.
"""

from __future__ import annotations

import re

from darwinn_formats.errors import printable

_JOINED = re.compile(r"(?<=[^\s;]);(?:$|(?=\S)\S*?(?=[^\w\s]*(?:\s|$)))")
"""What follows the first path in a word, but for the brackets and commas that end the word."""


def short_name(name: str) -> str:
    """The first of the paths that a name joins."""
    return name.partition(";")[0] or name


def readable(text: str) -> str:
    """``text`` as ``printable`` has it, with every name in it shortened."""
    return printable(_JOINED.sub("", text) if ";" in text else text)
