"""Tables of settings in the documents: keys of a manifest, options of each command.

A table stands in a page between two marks, which say whose it is. The JSON Schema of a manifest is
made here as well.

python -m darwinn_testbench.schemas.tables [--check] docs
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from darwinn_testbench.cli.project import keys as project_keys
from darwinn_testbench.regression.manifest import SETTINGS, Case
from darwinn_testbench.request.project import Key
from darwinn_testbench.request.scope import Scope
from darwinn_testbench.request.setting import Setting
from darwinn_testbench.schemas.option_tables import SHARED, WHOLE, names, table_of
from darwinn_testbench.schemas.types import Schema

PAGES = ("ci.md", "cli*.md")
"""The pages that have tables."""

_PLACE = re.compile(
    r"(?P<begin><!-- (?P<subject>keys(?: of a project)?|options of [\w, -]+): begin -->\n).*?"
    r"(?P<end><!-- (?P=subject): end -->)",
    re.DOTALL,
)
_WORDS = {str: "text", int: "whole number", float: "number", bool: "`true`, `false`"}
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


def project_schema() -> Schema:
    """The JSON Schema of a project's defaults: of ``darwinn.toml``."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "defaults of a project: darwinn.toml, or [tool.darwinn] of pyproject.toml",
        "type": "object",
        "properties": {name: _of_key(key) for name, key in project_keys().items()},
        "additionalProperties": False,
    }


def _of_key(key: Key) -> Schema:
    setting = key.setting
    bounds = {"minimum": setting.least, "maximum": setting.most}
    return {
        "type": {str: "string", int: "integer", float: "number", bool: "boolean"}[key.plain],
        "description": setting.text,
        **{name: bound for name, bound in bounds.items() if bound is not None},
    }


def _project_keys() -> str:
    headings = ("key", "value", "option", "meaning")
    rows = [
        (f"`{name}`", _WORDS[key.plain], f"`{key.setting.option}`", _meaning(key.setting))
        for name, key in project_keys().items()
    ]
    lines = (headings, ("---",) * len(headings), *rows)
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _meaning(setting: Setting) -> str:
    return f"false: {setting.text}" if setting.inverse else setting.text


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
        scope = "" if setting.scope is Scope.ANYTHING else str(setting.scope)
        told = f"`{setting.option}`", _meaning(setting), scope
        yield f"`{key}`", _default(field.default), *told


def _default(value: Any) -> str:
    if value is None or value == ():
        return ""
    return str(value).lower()


def _keys() -> str:
    lines = (_HEADINGS, ("---",) * len(_HEADINGS), *_rows())
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _table(subject: str) -> str:
    own = {"keys": _keys, "keys of a project": _project_keys}.get(subject)
    return own() if own else table_of(subject.removeprefix("options of "))


def updated(page: str) -> str:
    """The text of a page with its tables as they are now."""
    return _PLACE.sub(
        lambda place: f"{place['begin']}{_table(place['subject'])}{place['end']}", page
    )


def without_table(pages: Iterable[str]) -> list[str]:
    """Commands whose options no page lists, or more than one."""
    subjects = [place["subject"] for page in pages for place in _PLACE.finditer(page)]
    told = [
        name
        for each in subjects
        if not each.startswith("keys")
        for name in each.removeprefix("options of ").split(", ")
    ]
    return [name for name in (WHOLE, SHARED, *names()) if told.count(name) != 1]


def main(arguments: Sequence[str]) -> int:
    """Bring the pages up to date, or with ``--check`` say which are not; gives the exit code."""
    folder, check = Path(arguments[-1]), "--check" in arguments
    texts = {path: path.read_text() for name in PAGES for path in sorted(folder.glob(name))}
    failed = False
    for name in without_table(texts.values()):
        print(f"{folder}: the options of {name} have no table, or several")
        failed = True
    for path, text in texts.items():
        current = updated(text)
        if current == text:
            continue
        if check:
            print(f"{path} is not up to date: make docs")
            failed = True
        else:
            path.write_text(current)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
