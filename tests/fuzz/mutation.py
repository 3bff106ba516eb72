"""Edits of anything that a format is read into: dataclasses, tuples, objects of JSON, bytes.

An edit says where, by names of fields and positions, and what is done there; it is a line of JSON,
so that what was found can be kept and replayed. Edits are drawn by walking down from the root and
turning anywhere with the same chance: a large table is not more likely than a small one. Bytes of
instructions are changed through the instruction table.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum
from random import Random
from typing import Any

import endless
import msgspec
from darwinn_formats.flatbuffer import Span
from darwinn_sim.isa.builder import build
from darwinn_sim.isa.codec import DecodeError
from darwinn_sim.isa.fields import BUNDLE_BYTES
from program_mutations import entry_of, instructions_of, other_value, with_value

Path = tuple[str | int, ...]

_INSTRUCTIONS = "bitstream"
"""Name of the fields whose bytes are instructions."""
_CONTAINER_CHANCE = 0.25
_STREAM_CHANCE = 0.6
_MAX_GROWTH = 1 << 16
_TEXTS = ("", "\0", "\x1b[2J", "a\nb", "../../x", "\u202e", "x" * 5000, "%s%n", "💥", "]]>", '"')
_FLOATS = (0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 1e300, -1e-300, 1e-40, 0.5)


class Edit(msgspec.Struct, frozen=True):
    """``what`` is done at the node ``at``; ``arguments`` belong to it (``_OPERATIONS``)."""

    at: Path
    what: str
    arguments: tuple[Any, ...] = ()


class Inapplicable(Exception):
    """The tree has no such place, or something else is there."""


# --- applying ------------------------------------------------------------------------------------


def applied(tree: Any, edits: Sequence[Edit]) -> Any:
    """The tree after all edits, in their order; Inapplicable if one does not fit."""
    for edit in edits:
        tree = _changed(tree, edit.at, _operation(edit, tree))
    return tree


def _operation(edit: Edit, tree: Any) -> Callable[[Any], Any]:
    def operation(node: Any) -> Any:
        try:
            return _OPERATIONS[edit.what](node, *edit.arguments)
        except (IndexError, TypeError, KeyError, ValueError) as error:
            raise Inapplicable(edit.what) from error

    if edit.what == "take":
        return lambda node: _at(tree, edit.arguments[0])
    return operation


def _changed(node: Any, at: Path, operation: Callable[[Any], Any]) -> Any:
    if not at:
        return _like(node, operation(_plain(node)))
    key = at[0]
    child = _changed(_child(node, key), at[1:], operation)
    if dataclasses.is_dataclass(node) and not isinstance(node, type):
        return dataclasses.replace(node, **{str(key): child})
    if isinstance(node, dict):
        return {**node, key: child}
    if isinstance(node, (list, tuple)) and isinstance(key, int):
        return type(node)((*node[:key], child, *node[key + 1 :]))
    raise Inapplicable(str(key))


def _at(node: Any, at: Sequence[str | int]) -> Any:
    for key in at:
        node = _child(node, key)
    return node


def _child(node: Any, key: str | int) -> Any:
    try:
        return getattr(node, str(key)) if dataclasses.is_dataclass(node) else node[key]
    except (AttributeError, IndexError, KeyError, TypeError) as error:
        raise Inapplicable(str(key)) from error


def _plain(node: Any) -> Any:
    """Bytes in any of their forms as bytes."""
    if isinstance(node, Span):
        return bytes(node.data)
    return bytes(node) if isinstance(node, memoryview) else node


def _like(node: Any, value: Any) -> Any:
    """``value`` in the form that bytes at this place have."""
    if isinstance(value, bytes):
        if isinstance(node, Span):
            return Span(memoryview(value))
        return memoryview(value) if isinstance(node, memoryview) else value
    return value


def _without(node: Any, start: int, count: int) -> Any:
    return node[:start] + node[start + count :]


def _twice(node: Any, start: int, count: int, times: int, to: int) -> Any:
    return node[:to] + times * node[start : start + count] + node[to:]


def _swapped(node: Any, first: int, second: int) -> Any:
    items = list(node)
    items[first], items[second] = items[second], items[first]
    return type(node)(items)


def _renamed(node: dict[str, Any], key: str, *name: str) -> dict[str, Any]:
    """The object with a member called otherwise, or without it if no name is given."""
    left = {each: node[each] for each in node if each != key}
    return left | dict.fromkeys(name, node[key])


def _put(node: bytes, start: int, digits: str) -> bytes:
    data = bytes.fromhex(digits)
    if start + len(data) > len(node):
        raise IndexError(start)
    return node[:start] + data + node[start + len(data) :]


def _field(stream: bytes, number: int, name: str, index: int, value: int) -> bytes:
    parts = instructions_of(stream)
    field = entry_of(parts[number]).field(name)
    parts[number] = with_value(parts[number], field, value, index)
    return b"".join(parts)


def _endless(stream: bytes, number: int, name: str) -> bytes:
    """The program with a loop without end in place of instructions, of the same length."""
    parts = instructions_of(stream)
    body = build(endless.ALL[name])
    begin = sum(map(len, parts[:number]))
    ends = (sum(map(len, parts[:k])) for k in range(number + 1, len(parts) + 1))
    end = next((each for each in ends if each >= begin + len(body)), None)
    if end is None:
        raise IndexError(number)
    idle = build([("NoOp", {})] * ((end - begin - len(body)) // BUNDLE_BYTES))
    return stream[:begin] + body + idle + stream[end:]


def _of_instructions(operation: Callable[..., Any]) -> Callable[..., bytes]:
    return lambda stream, *arguments: b"".join(operation(instructions_of(stream), *arguments))


_OPERATIONS: dict[str, Callable[..., Any]] = {
    "set": lambda node, value: value,
    "number": lambda node, text: float(text),
    "drop": _without,
    "copy": _twice,
    "swap": _swapped,
    "rename": _renamed,
    "put": _put,
    "field": _field,
    "endless": _endless,
    "drop instructions": _of_instructions(_without),
    "copy instructions": _of_instructions(_twice),
    "swap instructions": _of_instructions(_swapped),
}
"""What an edit does with the node at its place. "take" puts there what stands elsewhere."""


# --- drawing -------------------------------------------------------------------------------------


def streams_in(tree: Any, at: Path = ()) -> Iterator[Path]:
    """Where instructions are."""
    if at and at[-1] == _INSTRUCTIONS and isinstance(tree, bytes | memoryview):
        yield at
    for key in _keys(tree):
        yield from streams_in(_child(tree, key), (*at, key))


def drawn(draw: Random, tree: Any, streams: Sequence[Path] = ()) -> Edit | None:
    """An edit of the tree; None where the walk has ended at something that has no other value.

    Most of them are in ``streams``, the places of instructions, if there are any.
    """
    in_stream = streams and draw.random() < _STREAM_CHANCE
    at = draw.choice(streams) if in_stream else _place(draw, tree)
    node = _plain(_at(tree, at))
    if draw.random() < 0.1:
        other = _place(draw, tree)
        if other != at and isinstance(_at(tree, other), type(_at(tree, at))):
            return Edit(at, "take", (other,))
    if isinstance(node, bytes) and at and at[-1] == _INSTRUCTIONS and draw.random() < 0.9:
        return _edit_of_instructions(draw, at, node)
    draw_what = next((_DRAWN[kind] for kind in _DRAWN if isinstance(node, kind)), None)
    what = None if draw_what is None else draw_what(draw, node)
    return None if what is None else Edit(at, *what)


def drawn_endless(draw: Random, tree: Any, streams: Sequence[Path]) -> Edit:
    """An edit that makes a program go on for ever, if it gets there."""
    at = draw.choice(streams)
    number = draw.randrange(len(instructions_of(_plain(_at(tree, at)))))
    return Edit(at, "endless", (number, draw.choice(list(endless.ALL))))


def _place(draw: Random, tree: Any) -> Path:
    at: list[str | int] = []
    while keys := list(_keys(tree)):
        if isinstance(tree, (dict, list, tuple)) and draw.random() < _CONTAINER_CHANCE:
            break
        key = draw.choice(keys)
        at.append(key)
        tree = _child(tree, key)
    return tuple(at)


def _keys(node: Any) -> Iterator[str | int]:
    if isinstance(node, Span):
        return
    if dataclasses.is_dataclass(node) and not isinstance(node, type):
        for field in dataclasses.fields(node):
            if field.name != "file_offset" and field.init and getattr(node, field.name) is not None:
                yield field.name
    elif isinstance(node, dict):
        yield from node
    elif isinstance(node, (list, tuple)):
        yield from range(len(node))


What = tuple[str, tuple[Any, ...]]


def _boolean(draw: Random, node: bool) -> What:
    return "set", (not node,)


def _member(draw: Random, node: IntEnum) -> What | None:
    others = [int(each) for each in type(node) if each is not node]
    return ("set", (draw.choice(others),)) if others else None


def _integer(draw: Random, node: int) -> What:
    bits = draw.randrange(65)
    value = draw.choice(
        (
            node + draw.choice((-1, 1)),
            node ^ 1 << draw.randrange(max(node.bit_length(), 1) + 1),
            draw.choice((0, 1, -1, -node, 2 * node)),
            (1 << bits) + draw.randrange(-1, 2),
            draw.randint(-(1 << draw.randrange(32)), 1 << draw.randrange(64)),
        )
    )
    return "set", (value,)


def _float(draw: Random, node: float) -> What:
    # As text: JSON has neither infinities nor NaN.
    return "number", (repr(draw.choice((*_FLOATS, -node, node * 1.5, node / 1e6))),)


def _text(draw: Random, node: str) -> What:
    at = draw.randrange(len(node) + 1)
    return "set", (draw.choice((*_TEXTS, node[:at], node + node, node[:at] + "\x07" + node[at:])),)


def _sequence(draw: Random, node: Sequence[Any]) -> What | None:
    if not node:
        return None
    at, count = draw.randrange(len(node)), 1
    if draw.random() < 0.2:
        count = draw.randrange(1, len(node) - at + 1)
    match draw.randrange(3):
        case 0:
            return "drop", (at, count)
        case 1:
            times = draw.choice((1, 1, 2, 100))
            return "copy", (at, min(count, _MAX_GROWTH // times), times, draw.randrange(len(node)))
    return "swap", (at, draw.randrange(len(node)))


def _object(draw: Random, node: dict[str, Any]) -> What | None:
    if not node:
        return None
    key = draw.choice(list(node))
    name = () if draw.random() < 0.5 else (draw.choice((*_TEXTS, *node, "name")),)
    return "rename", (key, *name)


def _bytes(draw: Random, node: bytes) -> What | None:
    if not node:
        return "set", (b"",)
    at = draw.randrange(len(node))
    match draw.randrange(8):
        case 0 | 1 | 2:
            return "put", (at, bytes((node[at] ^ 1 << draw.randrange(8),)).hex())
        case 3 | 4 | 5:
            size = draw.choice((1, 2, 4, 8))
            at -= at % size
            old = int.from_bytes(node[at : at + size], "little")
            (value,) = _integer(draw, old)[1]
            new = (value & (1 << 8 * size) - 1).to_bytes(size, "little")
            return "put", (at, new[: len(node) - at].hex())
        case 6:
            return "drop", (at, draw.choice((1, 4, 16, len(node))))
    count = min(draw.choice((1, 4, 16, 256)), len(node) - at)
    return "copy", (at, count, draw.choice((1, 1, 16)), draw.randrange(len(node)))


_DRAWN: dict[type, Callable[..., What | None]] = {
    bool: _boolean,
    IntEnum: _member,
    int: _integer,
    float: _float,
    str: _text,
    bytes: _bytes,
    tuple: _sequence,
    list: _sequence,
    dict: _object,
}
"""How each kind of node is changed; the first that it is an instance of."""


def _edit_of_instructions(draw: Random, at: Path, stream: bytes) -> Edit | None:
    try:
        parts = instructions_of(stream)
    except DecodeError:
        return None
    if not parts:
        return None
    number = draw.randrange(len(parts))
    if draw.random() < 0.15:
        what = _sequence(draw, parts)
        return None if what is None else Edit(at, f"{what[0]} instructions", what[1])
    found = other_value(draw, parts, number)
    if found is None:
        return None
    field, index, value = found
    return Edit(at, "field", (number, field.name, index, value))
