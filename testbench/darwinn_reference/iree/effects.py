"""What operations on buffers and lists do."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any

from darwinn_formats.errors import ExecutionError

from darwinn_reference.iree.imports import expect
from darwinn_reference.iree.memory import Buffer, VmList, allocate
from darwinn_reference.iree.semantics import wrap32, wrap64

MAXIMUM_LIST = 1 << 20
"""Elements of a list at most."""

_PATTERNS = {"i8": "<B", "i16": "<H", "i32": "<i", "i64": "<q", "f32": "<f", "f64": "<d"}
_MASKS = {"i8": 0xFF, "i16": 0xFFFF}

_NUMBER_TYPES = frozenset(("i8", "i16", "i32", "i64", "f32", "f64"))

REFERENCE_TYPES: dict[str, type[Any]] = {"!vm.buffer": Buffer}
"""Classes of reference types by name; a type that is not here is not checked."""


def is_of_type(value: object, type_name: str) -> bool:
    """Whether a reference is of a type of the module; null is of every type."""
    if value is None:
        return True
    if type_name.startswith("!vm.list"):
        return isinstance(value, VmList)
    expected = REFERENCE_TYPES.get(type_name)
    return expected is None or isinstance(value, expected)


def cast(value: object, type_name: str) -> object:
    """The reference, which has to be of the type."""
    if not is_of_type(value, type_name):
        raise ExecutionError(f"a {type(value).__name__} is no {type_name}")
    return value


def _buffer(value: object) -> Buffer:
    return expect(value, Buffer, "the reference")


def _list(value: object) -> VmList:
    return expect(value, VmList, "the reference")


def _clone(source: Any, offset: int, length: int, alignment: int) -> Buffer:
    clone = Buffer(allocate(length))
    clone.memory[:] = _buffer(source).part(offset, length)
    return clone


def _copy(source: Any, from_offset: int, target: Any, to_offset: int, length: int) -> None:
    data = _buffer(source).part(from_offset, length)
    destination = _buffer(target)
    destination.part(to_offset, length)
    destination.stores["i8"][to_offset : to_offset + length] = data.cast("B")


def _compare(first: Any, offset: int, second: Any, other_offset: int, length: int) -> int:
    equal = _buffer(first).part(offset, length) == _buffer(second).part(other_offset, length)
    return int(equal)


def _fill(element: str) -> Callable[[Any, int, int, Any], None]:
    """Fill elements; offset and length count elements."""
    pattern = struct.Struct(_PATTERNS[element])
    mask = _MASKS.get(element)

    def fill(target: Any, offset: int, length: int, value: Any) -> None:
        buffer = _buffer(target)
        size = pattern.size
        # What is stored is marked by its type, and read-only data refused.
        _ = buffer.stores[element]
        part = buffer.part(offset * size, length * size)
        part[:] = pattern.pack(value if mask is None else value & mask) * length

    return fill


def make_list(count: int, element_type: str) -> VmList:
    """An empty list; elements that it gains later are null, or zero where they are numbers."""
    if not 0 <= count <= MAXIMUM_LIST:
        raise ExecutionError(f"a list for {count} elements")
    return VmList([], 0 if element_type in _NUMBER_TYPES else None)


def _resize(value: Any, count: int) -> None:
    values = _list(value)
    if not 0 <= count <= MAXIMUM_LIST:
        raise ExecutionError(f"a list of {count} elements")
    del values.items[count:]
    values.items += [values.absent] * (count - len(values.items))


def _item(value: Any, index: int) -> Any:
    items = _list(value).items
    if not 0 <= index < len(items):
        raise ExecutionError(f"element {index} of a list of {len(items)}")
    return items[index]


def get_reference(value: Any, index: int, type_name: str) -> object:
    """An element of a list: null if it is of another type."""
    item = _item(value, index)
    number = isinstance(item, int | float)
    return None if number or not is_of_type(item, type_name) else item


def _get_number(convert: Callable[[Any], Any]) -> Callable[[Any, int], Any]:
    def get(value: Any, index: int) -> Any:
        item = _item(value, index)
        if not isinstance(item, int | float):
            raise ExecutionError(f"element {index} of the list is no number")
        return convert(item)

    return get


def _set(value: Any, index: int, item: Any) -> None:
    _item(value, index)
    _list(value).items[index] = item


EFFECTS: Mapping[str, Callable[..., Any]] = {
    "buffer.alloc": lambda length, alignment: Buffer(allocate(length)),
    "buffer.clone": _clone,
    "buffer.length": lambda value: len(_buffer(value)),
    "buffer.copy": _copy,
    "buffer.compare": _compare,
    **{f"buffer.fill.{element}": _fill(element) for element in _PATTERNS},
    "list.reserve": lambda value, count: None,
    "list.size": lambda value: len(_list(value).items),
    "list.resize": _resize,
    "list.get.i32": _get_number(lambda item: wrap32(int(item))),
    "list.get.i64": _get_number(lambda item: wrap64(int(item))),
    "list.get.f32": _get_number(float),
    "list.get.f64": _get_number(float),
    **{f"list.set.{name}": _set for name in ("i32", "i64", "f32", "f64", "ref")},
}
"""Operations by mnemonic; each takes the values that are read, in their order."""

TYPED_EFFECTS: Mapping[str, Callable[..., Any]] = {
    "list.alloc": make_list,
    "list.get.ref": get_reference,
    "cast.any.ref": cast,
}
"""Operations that take, last, the name of the type that they are declared with."""

ACCESSES: Mapping[str, str] = {
    "buffer.load.i8.u": "i8",
    "buffer.load.i8.s": "s8",
    "buffer.load.i16.u": "i16",
    "buffer.load.i16.s": "s16",
    **{f"buffer.load.{name}": name for name in ("i32", "i64", "f32", "f64")},
    **{f"buffer.store.{name}": name for name in _PATTERNS},
}
"""Element types of the accesses to buffers, by mnemonic."""
