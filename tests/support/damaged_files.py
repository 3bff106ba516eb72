"""What every loader promises for anything: a FormatError or a file, soon and within its memory."""

from __future__ import annotations

import gc
import random
import time
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from darwinn_formats.errors import FormatError
from nightly import nightly_seed

SECONDS = 1.0
"""Of the processor, for one file."""

MEGABYTES_64 = 64 * 2**20
"""What a loader may take beside twice the size of its file."""

SEED = 20
_VALUES_BY_NIGHT = 12

Loaded = TypeVar("Loaded")


def check(load: Callable[[bytes], Loaded], data: bytes) -> Loaded | None:
    """Load, and check what the loader promises; None for a refused file."""
    start = time.process_time()
    loaded: Loaded | None = None
    try:
        loaded = load(data)
    except FormatError as error:
        assert error.offset is not None, error
        assert 0 <= error.offset <= len(data), error
        assert error.field, error
        assert error.reason, error
        assert "\n" not in str(error), error
    assert time.process_time() - start < SECONDS
    return loaded


def changes(
    data: bytes, values: int, positions: Iterable[int] | None = None, *, seed: int = SEED
) -> Iterator[bytes]:
    """The data with each byte, or each of some, changed to several other values."""
    changed = bytearray(data)
    for position in range(len(data)) if positions is None else positions:
        held = data[position]
        for step in random.Random(seed * len(data) + position).sample(range(1, 256), values):
            changed[position] = (held + step) % 256
            yield bytes(changed)
        changed[position] = held


def drawn_by_night(data: bytes, positions: Iterable[int] | None = None) -> Iterator[bytes]:
    """The data with each byte changed to a few values, others each night: all would take hours."""
    yield from changes(data, _VALUES_BY_NIGHT, positions, seed=nightly_seed())


def peak_memory(load: Callable[[bytes], object], data: bytes) -> int:
    """The most bytes that are in use while the data are loaded, or refused."""
    gc.collect()
    tracemalloc.start()
    try:
        check(load, data)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
