"""Tables of settings in the documents: keys of a manifest, options of each command.

A table stands in a page between two marks, which say whose it is.

python -m darwinn_testbench.schemas.tables [--check] docs
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from darwinn_testbench.cli.file_schemas import manifest_schema, meaning
from darwinn_testbench.cli.project import keys as project_keys
from darwinn_testbench.regression.manifest import SETTINGS, Case
from darwinn_testbench.request.scope import Scope
from darwinn_testbench.schemas.option_tables import SHARED, WHOLE, names, table_of

PAGES = ("ci.md", "cli*.md")
"""The pages that have tables."""

_PLACE = re.compile(
    r"(?P<begin><!-- (?P<subject>keys(?: of a \w+)?|options of [\w, -]+): begin -->\n).*?"
    r"(?P<end><!-- (?P=subject): end -->)",
    re.DOTALL,
)
_WORDS = {str: "text", int: "whole number", float: "number", bool: "`true`, `false`"}
_HEADINGS = ("key of a case", "default", "option of `verify`", "meaning", "for")
_HEADINGS_OF_A_CASE = ("key of a case", "default", "meaning")


def _project_keys() -> str:
    headings = ("key", "value", "option", "meaning")
    rows = [
        (f"`{name}`", _WORDS[key.plain], f"`{key.setting.option}`", meaning(key.setting))
        for name, key in project_keys().items()
    ]
    return _lines(headings, rows)


def _case_keys() -> str:
    """The keys of a case that are no settings of a verification."""
    settings = {entry.key for entry in SETTINGS.values()}
    keys = manifest_schema()["$defs"]["Keys"]["properties"]
    usual = {
        key: f"`{json.dumps(told['default'])}`" for key, told in keys.items() if told.get("default")
    }
    rows = [
        (f"`{key}`", usual.get(key, ""), told["description"])
        for key, told in keys.items()
        if key not in settings
    ]
    return _lines(_HEADINGS_OF_A_CASE, rows)


def _lines(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = (headings, ("---",) * len(headings), *rows)
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _rows() -> Iterator[Sequence[str]]:
    keys = {field.encode_name: field for field in msgspec.structs.fields(Case)}
    entries = {entry.key: entry for entry in SETTINGS.values()}
    for key, field in keys.items():
        if key not in entries:
            continue
        setting = entries[key].setting
        scope = "" if setting.scope is Scope.ANYTHING else str(setting.scope)
        told = f"`{setting.option}`", meaning(setting), scope
        yield f"`{key}`", _default(field.default), *told


def _default(value: Any) -> str:
    if value is None or value == ():
        return ""
    return str(value).lower()


def _keys() -> str:
    return _lines(_HEADINGS, _rows())


def _table(subject: str) -> str:
    own = _OWN.get(subject)
    return own() if own else table_of(subject.removeprefix("options of "))


_OWN: Mapping[str, Callable[[], str]] = {
    "keys": _keys,
    "keys of a case": _case_keys,
    "keys of a project": _project_keys,
}
"""Tables that are not those of options."""


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
