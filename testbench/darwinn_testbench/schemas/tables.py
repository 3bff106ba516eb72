"""The keys of a manifest: their JSON Schema, and their table in docs/ci.md.

python -m darwinn_testbench.schemas.tables [--check] docs/ci.md
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from darwinn_testbench.regression.manifest import SETTINGS, Case
from darwinn_testbench.request.scope import Scope
from darwinn_testbench.schemas.types import Schema

_BEGIN, _END = "<!-- keys: begin -->\n", "<!-- keys: end -->"
_HEADINGS = ("key of a case", "default", "option of `verify`", "meaning", "for")


def manifest_schema() -> Schema:
    """The JSON Schema of a manifest, as editors of TOML take it."""
    schema = msgspec.json.schema(Case)
    case: Schema = schema["$defs"].pop("Case")
    texts = {entry.key: entry.setting.text for entry in SETTINGS.values()}
    properties = {key: _plain(told, texts.get(key)) for key, told in case["properties"].items()}
    closed: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "manifest of darwinn regress",
        "type": "object",
        "properties": {
            "defaults": {"$ref": "#/$defs/Keys"},
            "case": {
                "type": "array",
                "minItems": 1,
                "items": {"$ref": "#/$defs/Keys", "required": ["file"]},
            },
        },
        "required": ["case"],
        "additionalProperties": False,
        "$defs": {"Keys": closed, **schema["$defs"]},
    }


def _plain(told: Schema, text: str | None) -> Schema:
    """The schema of a key without null, which TOML does not have."""
    if told.get("default", ...) is None:
        told = next(each for each in told["anyOf"] if each != {"type": "null"})
    return told if text is None else {**told, "description": text}


def _rows() -> Iterator[Sequence[str]]:
    keys = {field.encode_name: field for field in msgspec.structs.fields(Case)}
    entries = {entry.key: entry for entry in SETTINGS.values()}
    for key, field in keys.items():
        if key not in entries:
            continue
        setting = entries[key].setting
        text = f"false: {setting.text}" if setting.inverse else setting.text
        scope = "" if setting.scope is Scope.ANYTHING else str(setting.scope)
        yield f"`{key}`", _default(field.default), f"`{setting.option}`", text, scope


def _default(value: Any) -> str:
    if value is None or value == ():
        return ""
    return str(value).lower()


def updated(page: str) -> str:
    """The text of docs/ci.md with the table as it is now."""
    before, rest = page.split(_BEGIN, 1)
    lines = (_HEADINGS, ("---",) * len(_HEADINGS), *_rows())
    table = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    return f"{before}{_BEGIN}{table}{_END}{rest.split(_END, 1)[1]}"


def main(arguments: Sequence[str]) -> int:
    """Bring the page up to date, or with ``--check`` say that it is not; gives the exit code."""
    path = Path(arguments[-1])
    text = path.read_text()
    current = updated(text)
    if "--check" not in arguments:
        path.write_text(current)
    elif current != text:
        print(f"{path} is not up to date: make docs")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
