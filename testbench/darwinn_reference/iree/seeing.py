"""What an observer sees of a module that runs: functions, dispatches, transfers and imports."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from darwinn_formats.iree import Function, Module

from darwinn_reference.errors import Unsupported
from darwinn_reference.iree.compiled import Ranges
from darwinn_reference.iree.element_types import BFLOAT16, dtype_of
from darwinn_reference.iree.hal import BufferView
from darwinn_reference.iree.hal.objects import OUTSIDE
from darwinn_reference.iree.imports import Handler
from darwinn_reference.iree.memory import Buffer, address_of
from darwinn_reference.observation import Observer, Operator, Place, Places, show_port

STORED_DTYPES = {
    "i8": "<i1",
    "i16": "<i2",
    "i32": "<i4",
    "i64": "<i8",
    "f32": "<f4",
    "f64": "<f8",
}
"""NumPy types of what programs store, by the type of the access."""

_NAMES = {"i": "int", "f": "float"}


_DISPATCH = re.compile(r".*_dispatch_\d+_([A-Za-z_]+?)(?:_(?:\d|D\b|Dx).*)?")
"""How the compiler calls a dispatch: function, number, operation, sizes, types."""


def operation_of(name: str) -> str:
    """What a dispatch computes, by its name: ``matmul`` of ``f_dispatch_3_matmul_4x8x8_f32``."""
    found = _DISPATCH.fullmatch(name)
    return found[1] if found else name


class Sites:
    """Names of operators: what is done at a place of a command buffer is one operator.

    The first place of a dispatch has its name, ``#1`` follows that of the next. Loops record the
    same commands at the same places.
    """

    def __init__(self) -> None:
        self.position = OUTSIDE
        self._filled: list[Place] = []
        self._operators: dict[tuple[str, int], Operator] = {}
        self._places: Counter[str] = Counter()

    def operator(self, name: str, kind: str, location: Callable[[], str]) -> Operator:
        """What is called by the name at the place that is executed."""
        found = self._operators.get((name, self.position))
        if found is None:
            number = self._places[name]
            self._places[name] += 1
            found = Operator(f"{name}#{number}" if number else name, kind, location())
            self._operators[name, self.position] = found
        return found

    def fill(self, place: Place) -> Place:
        """Note bytes that were filled or copied: they are for what works on them next."""
        self._filled.append(place)
        return place

    def taken(self, writes: Iterable[Place]) -> list[Place]:
        """Bytes that were filled for a dispatch, which goes on from them."""
        over = [each for each in self._filled if any(_overlap(each, by) for by in writes)]
        self._filled = [each for each in self._filled if each not in over]
        return over


def _overlap(one: Place, other: Place) -> bool:
    return one.start < other.stop and other.start < one.stop


def memory_place(memory: memoryview, dtype: str = "", shape: Any = None) -> Place:
    """Where bytes are; those that nobody can write to are the program's own."""
    start = address_of(memory)
    return Place("", start, start + len(memory), dtype, shape, memory.readonly)


def buffer_places(buffers: Sequence[Buffer], sites: Sites, ranges: Ranges | None = None) -> Places:
    """What a dispatch has read and written of its buffers: by ``ranges`` where the code has noted
    that; else it has written to those with stores, and read the others.
    """
    reads: dict[Place, None] = {}
    writes: dict[Place, None] = {}
    for buffer in buffers:
        found = touched_parts(buffer, ranges)
        for part, stores in found:
            if stores:
                writes[stored_place(part)] = None
            else:
                reads[memory_place(part.memory)] = None
    filled = [] if ranges is not None else sites.taken(writes)
    return [*reads, *filled], [*writes]


def touched_parts(buffer: Buffer, ranges: Ranges | None) -> Iterator[tuple[Buffer, bool]]:
    """Parts of a buffer that a dispatch has read, and, with stores of their type, has written."""
    start = buffer.address
    found = [] if ranges is None else list(ranges.within(start, start + len(buffer)))
    for each in found:
        part = Buffer(buffer.memory[each.start - start : each.stop - start], on_device=True)
        if each.stores:
            _ = part.stores[each.element]
        yield part, each.stores
    if not any(each.stores for each in found) and (buffer.stores or not found):
        yield buffer, bool(buffer.stores)


def stored_place(buffer: Buffer) -> Place:
    """What was stored in a buffer, as one row of elements of the type of the first store."""
    element = next(iter(buffer.stores))
    size = int(STORED_DTYPES[element][-1])
    name = f"{_NAMES[element[0]]}{8 * size}"
    return memory_place(buffer.memory, name, (len(buffer) // size,))


def view_place(view: BufferView) -> Place:
    """Where a tensor is."""
    try:
        is_bfloat16 = view.element_type == BFLOAT16
        dtype = "bfloat16" if is_bfloat16 else str(dtype_of(view.element_type))
    except Unsupported:
        dtype = f"type {view.element_type:#x}"
    return memory_place(view.buffer.contents.memory, dtype, view.shape)


def show_ports(observer: Observer, kind: str, names: Sequence[str], values: Sequence[Any]) -> None:
    """Tell of inputs or outputs, tensors with their places."""
    for name, value in zip(names, values, strict=True):
        show_port(
            observer, kind, name, [view_place(value)] if isinstance(value, BufferView) else []
        )


def shown_import(name: str, handler: Handler) -> Handler:
    """An import that observers see as an operator: a kernel, or a native function."""

    def call(host: Any, *values: Any) -> Any:
        observer: Observer | None = host.observer
        if observer is None:
            return handler(host, *values)
        observer.begin(host.sites.operator(name, name, str))
        result = handler(host, *values)
        observer.end(lambda: _import_places(values, result, host.sites))
        return result

    return call


def _import_places(values: Sequence[Any], result: Any, sites: Sites) -> Places:
    given, gained = list(_flat(values)), list(_flat([result]))
    buffers = [each for each in given if isinstance(each, Buffer)]
    reads, writes = buffer_places(buffers, sites)
    views = (view_place(each) for each in given if isinstance(each, BufferView))
    made = (view_place(each) for each in gained if isinstance(each, BufferView))
    return (*reads, *views), (*writes, *made)


def _flat(values: Iterable[Any]) -> Iterator[Any]:
    for each in values:
        if isinstance(each, tuple | list):
            yield from _flat(each)
        else:
            yield each


def location_of(module: Module, function: Function) -> str:
    """Where in the sources a function begins, as far as the module tells."""
    texts = (module.location_text(index) for index in module.locations(function).values())
    return next((text for text in texts if text != "?"), "")
