"""The JSON Schema of a Python type, for values as ``report.result`` writes them."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Mapping
from enum import Enum
from pathlib import PurePath
from typing import (
    Any,
    Literal,
    NotRequired,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

import numpy as np

Schema = dict[str, Any]

_NOT_FINITE = ("nan", "inf", "-inf")
_SCALARS: Mapping[Any, Schema] = {
    type(None): {"type": "null"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"anyOf": [{"type": "number"}, {"enum": list(_NOT_FINITE)}]},
    str: {"type": "string"},
    bytes: {"type": "string", "pattern": "^([0-9a-f]{2})*$"},
}


class Schemas:
    """Schemas of types, with a definition for each class of objects.

    ``definitions`` are those that schemas refer to. Objects have no keys but their own, unless
    ``open_ended``: what is published lets keys be added.
    """

    def __init__(self, *, open_ended: bool) -> None:
        self.definitions: dict[str, Schema] = {}
        self._kinds: dict[str, Any] = {}
        self._open = open_ended

    def of(self, kind: Any) -> Schema:
        """The schema of ``kind``: a type, or an annotation made of types.

        Raises:
            TypeError: nothing says how such values are written.
        """
        origin, arguments = get_origin(kind), get_args(kind)
        if kind is Any or kind is object:
            return {}
        if kind in _SCALARS:
            return dict(_SCALARS[kind])
        if origin in (Union, types.UnionType):
            return {"anyOf": [self.of(each) for each in arguments]}
        if origin is Literal:
            return {"enum": list(arguments)}
        if origin is NotRequired:
            return self.of(arguments[0])
        if origin is not None and issubclass(origin, Mapping):
            return {"type": "object", "additionalProperties": self.of(arguments[1])}
        if origin is tuple and arguments[-1] is not Ellipsis:
            return self._exactly(arguments)
        if origin is not None:
            return {"type": "array", "items": self.of(arguments[0])}
        if is_typeddict(kind) or dataclasses.is_dataclass(kind):
            return self._named(kind)
        if isinstance(kind, type):
            return self._of_class(kind)
        raise TypeError(f"no schema of {kind!r}")

    def _exactly(self, kinds: tuple[Any, ...]) -> Schema:
        count = len(kinds)
        return {
            "type": "array",
            "prefixItems": [self.of(each) for each in kinds],
            "minItems": count,
            "maxItems": count,
        }

    def _of_class(self, kind: type) -> Schema:
        if issubclass(kind, Enum):
            return {"enum": [_written(member) for member in kind]}
        if issubclass(kind, PurePath):
            return {"type": "string"}
        if issubclass(kind, np.ndarray):
            return {"type": "array"}
        if issubclass(kind, int):
            return {"type": "integer"}
        raise TypeError(f"no schema of {kind!r}")

    def _named(self, kind: Any) -> Schema:
        name = kind.__name__
        if self._kinds.setdefault(name, kind) is not kind:
            raise TypeError(f"two kinds of objects are called {name}: {kind.__module__} has one")
        if name not in self.definitions:
            self.definitions[name] = {}  # for what holds itself
            self.definitions[name] = self.object_of(kind)
        return {"$ref": f"#/$defs/{name}"}

    def object_of(self, kind: Any) -> Schema:
        """The schema of the object that a dataclass or a TypedDict is written as."""
        hints = get_type_hints(kind, include_extras=True)
        if is_typeddict(kind):
            keys = {name: get_origin(hint) is not NotRequired for name, hint in hints.items()}
        else:
            printed = {
                item.name: item.metadata.get("json", True) for item in dataclasses.fields(kind)
            }
            # In place of True there may be a question that each object answers for itself.
            keys = {name: shown is True for name, shown in printed.items() if shown is not False}
        schema: Schema = {
            "type": "object",
            "properties": {name: self.of(hints[name]) for name in keys},
            "required": [name for name, always in keys.items() if always],
        }
        return schema if self._open else {**schema, "additionalProperties": False}


def _written(member: Enum) -> Any:
    return member.value if isinstance(member, str) else member.name.lower()
