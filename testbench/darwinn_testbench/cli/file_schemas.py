"""JSON Schemas of the files that a user writes, as editors of TOML take them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from darwinn_testbench.cli.project import keys as project_keys
from darwinn_testbench.regression.manifest import SETTINGS, Case
from darwinn_testbench.request.project import Key
from darwinn_testbench.request.setting import Setting

Schema = dict[str, Any]

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean"}


def manifest_schema() -> Schema:
    """The JSON Schema of a manifest."""
    schema = msgspec.json.schema(Case)
    case: Schema = schema["$defs"].pop("Case")
    settings = {entry.key: entry.setting for entry in SETTINGS.values()}
    properties = {
        key: _of_case(told, settings.get(key)) for key, told in case["properties"].items()
    }
    closed: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return {
        "$schema": _DIALECT,
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
        "$schema": _DIALECT,
        "title": "defaults of a project: darwinn.toml, or [tool.darwinn] of pyproject.toml",
        "type": "object",
        "properties": {name: _of_key(key) for name, key in project_keys().items()},
        "additionalProperties": False,
    }


SCHEMAS: Mapping[str, Callable[[], Schema]] = {
    "manifest": manifest_schema,
    "project": project_schema,
}
"""By the name of the kind of file."""


def meaning(setting: Setting) -> str:
    """The meaning of a key; a flag that turns something off tells that of its ``false``."""
    return f"false: {setting.text}" if setting.inverse else setting.text


def _of_key(key: Key) -> Schema:
    setting = key.setting
    bounds = {"minimum": setting.least, "maximum": setting.most}
    return {
        **_offering({"type": _TYPES[key.plain]}, setting),
        "description": meaning(setting),
        **{name: bound for name, bound in bounds.items() if bound is not None},
    }


def _of_case(told: Schema, setting: Setting | None) -> Schema:
    """The schema of a key without null, which TOML does not have."""
    if told.get("default", ...) is None:
        told = next(each for each in told["anyOf"] if each != {"type": "null"})
    return (
        told if setting is None else {**_offering(told, setting), "description": meaning(setting)}
    )


def _offering(told: Schema, setting: Setting) -> Schema:
    """The schema of a text, with the values that an editor completes; others are valid as well."""
    return {"anyOf": [{"enum": list(setting.offers)}, told]} if setting.offers else told
