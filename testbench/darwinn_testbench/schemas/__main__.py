"""Write the schemas into a folder, or with ``--check`` fail where other ones are there."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from darwinn_testbench.schemas import COMMANDS, schema_of
from darwinn_testbench.schemas.tables import manifest_schema


def main() -> int:
    """Do it for the command line."""
    parser = argparse.ArgumentParser(prog="darwinn_testbench.schemas", description=__doc__)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("folder", type=Path)
    given = parser.parse_args()
    schemas = {command: schema_of(command) for command in COMMANDS} | {
        "manifest": manifest_schema()
    }
    texts = {
        given.folder / f"{name}.json": json.dumps(schema, indent=1) + "\n"
        for name, schema in schemas.items()
    }
    if given.check:
        there = {path: path.read_text() for path in given.folder.glob("*.json")}
        differing = sorted(
            str(path) for path in {*there, *texts} if there.get(path) != texts.get(path)
        )
        if differing:
            print(f"not as the types are (`make docs` writes them): {', '.join(differing)}")
        return int(bool(differing))
    given.folder.mkdir(parents=True, exist_ok=True)
    for path, text in texts.items():
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
