"""Write the schemas into a folder, or with ``--digests`` print the SHA-256 of each.

``make release`` writes docs/schemas. Between releases docs/schemas.sha256 shows which commands'
JSON has changed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from pathlib import Path
from typing import Any

from darwinn_testbench.cli.file_schemas import SCHEMAS
from darwinn_testbench.schemas import COMMANDS, schema_of

LINE_LENGTH = 100
"""Of a schema's file. What fits into a line stands in one."""


def text_of(value: Any, before: int = 0, depth: int = 0) -> str:
    """``value`` as JSON, from column ``before`` on, with its further lines below ``depth``."""
    flat = json.dumps(value)
    # Behind it there may be a comma.
    if before + len(flat) < LINE_LENGTH or not isinstance(value, dict | list):
        return flat
    indent = " " * (depth + 1)
    if isinstance(value, list):
        opening, closing = "[]"
        parts = [("", each) for each in value]
    else:
        opening, closing = "{}"
        parts = [(f"{json.dumps(key)}: ", each) for key, each in value.items()]
    lines = [
        indent + name + text_of(each, len(indent) + len(name), depth + 1) for name, each in parts
    ]
    return "\n".join([opening, ",\n".join(lines), " " * depth + closing])


def main() -> int:
    """Do it for the command line."""
    parser = argparse.ArgumentParser(prog="darwinn_testbench.schemas", description=__doc__)
    target = parser.add_mutually_exclusive_group(required=True)
    target.add_argument("--digests", action="store_true")
    target.add_argument("folder", type=Path, nargs="?")
    given = parser.parse_args()
    schemas = {command: schema_of(command) for command in COMMANDS}
    schemas |= {name: schema() for name, schema in SCHEMAS.items()}
    texts = {f"{name}.json": text_of(schema) + "\n" for name, schema in sorted(schemas.items())}
    if given.digests:
        for name, text in texts.items():
            print(f"{hashlib.sha256(text.encode()).hexdigest()}  {name}")
        return 0
    given.folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (given.folder / name).write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
