"""The ``io_parameters`` module: a program loads values, and writes them, by scope and name."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

from darwinn_reference.iree.hal.objects import HalBuffer, Host, buffer_of, source_of, text_of
from darwinn_reference.iree.imports import ImportTable
from darwinn_reference.iree.memory import VmList

PARAMETERS = ImportTable("io_parameters", {})

_KEY = struct.Struct("<2I")
"""Offset and length of a name in the data of names."""
_SPAN = struct.Struct("<3Q")
"""Offset in the parameter, offset in the buffer, length."""
_QUEUE = "device affinity wait signal"
_TABLES = "keys names spans"


def _spans(keys: Any, names: Any, spans: Any) -> Iterator[tuple[str, int, int, int]]:
    """Name, offset in the parameter, offset in the buffer and length of each transfer."""
    table, texts = source_of(keys), source_of(names)
    size = len(source_of(spans))
    for place, span in enumerate(_SPAN.iter_unpack(source_of(spans).part(0, size))):
        offset, length = _KEY.unpack(table.part(place * _KEY.size, _KEY.size))
        yield str(texts.part(offset, length), "utf-8", "replace"), *span


def _scope(value: Any) -> str:
    return "" if value is None else text_of(value)


@PARAMETERS.add("load", "0rIrrrIiirrr_r", f"{_QUEUE} scope target_affinity types usage {_TABLES}")
def _load(host: Host, scope: Any, keys: Any, names: Any, spans: Any) -> VmList:
    return VmList(
        [
            HalBuffer(host.parameters.read(_scope(scope), name, start, length))
            for name, start, _, length in _spans(keys, names, spans)
        ]
    )


@PARAMETERS.add("gather", "0rIrrrrrrr_v", f"{_QUEUE} scope target {_TABLES}")
def _gather(host: Host, scope: Any, target: Any, keys: Any, names: Any, spans: Any) -> None:
    for name, start, place, length in _spans(keys, names, spans):
        data = host.parameters.read(_scope(scope), name, start, length)
        buffer_of(target).range(place, length)[:] = data.memory


@PARAMETERS.add("scatter", "0rIrrrrrrr_v", f"{_QUEUE} source scope {_TABLES}")
def _scatter(host: Host, source: Any, scope: Any, keys: Any, names: Any, spans: Any) -> None:
    for name, start, place, length in _spans(keys, names, spans):
        host.parameters.write(_scope(scope), name, start, buffer_of(source).range(place, length))


# One parameter at a time, as in the first release that had them.


@PARAMETERS.add(
    "load",
    "0rIrrrrIIiiI_r",
    f"{_QUEUE} scope key start target_affinity types usage length",
)
def _load_one(host: Host, scope: Any, key: Any, start: int, length: int) -> HalBuffer:
    return HalBuffer(host.parameters.read(_scope(scope), text_of(key), start, length))


@PARAMETERS.add("read", "0rIrrrrIrII_v", f"{_QUEUE} scope key start target place length")
def _read_one(
    host: Host, scope: Any, key: Any, start: int, target: Any, place: int, length: int
) -> None:
    data = host.parameters.read(_scope(scope), text_of(key), start, length)
    buffer_of(target).range(place, length)[:] = data.memory


@PARAMETERS.add("write", "0rIrrrrIrII_v", f"{_QUEUE} scope key start source place length")
def _write_one(
    host: Host, scope: Any, key: Any, start: int, source: Any, place: int, length: int
) -> None:
    data = buffer_of(source).range(place, length)
    host.parameters.write(_scope(scope), text_of(key), start, data)
