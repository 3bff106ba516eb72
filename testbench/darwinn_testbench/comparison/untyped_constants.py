"""Constants in data without types and sizes, as IREE modules have them.

A module keeps its constants one after another in segments, at multiples of 16 bytes, and does not
say where one begins. So a segment is read as the constants of the other program: first where the
same elements are, in any order, then, in what is left, where all but a few are in some order.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from darwinn_formats import iree
from darwinn_formats.iree.parameters import EntryKind, ParameterFile
from darwinn_reference.arrays import AnyArray
from numpy.typing import NDArray

from darwinn_testbench.comparison.constant import LEAST, MOST_RANK, SHARE, Constant, mark

_STEP = 16
"""Bytes that the places of constants are multiples of."""
_LOOKS, _OF_LOOKS = 5, 8
"""Of so many elements of a constant as many must be at a place before all are compared there."""
_LEAST_FLOAT = 1e-20
"""What floats of networks are greater than, and integers read as floats often are not."""
_MOST_NAME = 256
"""Bytes of the longest text that a module names something by."""
_MOST_LOOKED = 1 << 28
"""Places that are looked at to find the counterparts of constants that differ."""
_INTEGERS: Sequence[type[np.integer[Any]]] = (
    np.int8,
    np.uint8,
    np.int16,
    np.uint16,
    np.int32,
    np.int64,
)


class Store:
    """Bytes in which constants are, and which of their places are free.

    ``name`` is what the bytes are called; ``is_code`` says that they are no constants themselves.
    """

    def __init__(self, name: str, data: memoryview, *, is_code: bool = False) -> None:
        self.name, self.is_code = name, is_code
        self.data = data.cast("B")
        self.free = np.ones(-(-len(data) // _STEP), bool)
        self._sums: dict[int, NDArray[np.uint64]] = {}

    def at(self, step: int, like: AnyArray) -> AnyArray:
        """Elements at a place, as many and of the type of ``like``, in a row."""
        return np.frombuffer(self.data, like.dtype, like.size, step * _STEP)

    def take(self, step: int, like: AnyArray) -> Constant:
        """The constant at a place, where no other is then."""
        self.free[step : step + -(-like.nbytes // _STEP)] = False
        return Constant(f"{self.name} at byte {step * _STEP}", self.at(step, like))

    def blocks(self, size: int) -> AnyArray:
        """Elements of ``size`` bytes, in rows from each place to the next; the last may be cut."""
        padded = bytes(self.data) + bytes(-len(self.data) % _STEP)
        return np.frombuffer(padded, f"u{size}").reshape(-1, _STEP // size)

    def sums(self, size: int) -> NDArray[np.uint64]:
        """Sums of all elements of ``size`` bytes before each place, and of all."""
        if size not in self._sums:
            rows = self.blocks(size).sum(1, dtype=np.uint64)
            zero = np.zeros(1, np.uint64)
            self._sums[size] = np.concatenate([zero, np.cumsum(rows, dtype=np.uint64)])
        return self._sums[size]


def stores_of(module: iree.Module, files: Sequence[ParameterFile] = ()) -> list[Store]:
    """All data of a module, of the modules in it, and of its files of parameters.

    An executable of machine code is searched, too: small constants are among its instructions.
    """
    found = list(_of_module(module, ""))
    for file in files:
        for each in file.parameters.values():
            if each.kind is EntryKind.DATA:
                found.append(Store(f"parameter {each.name}", each.data))
    return [each for each in found if len(each.data) >= LEAST]


def _of_module(module: iree.Module, within: str) -> Iterator[Store]:
    for ordinal, segment in enumerate(module.rodata):
        name = f"{within}data {ordinal}"
        if ordinal in module.nested:
            yield from _of_module(module.nested[ordinal], f"{name}, ")
        else:
            is_text = len(segment) <= _MOST_NAME and bytes(segment.data).isascii()
            is_code = is_text or iree.read_elf(segment.data) is not None
            yield Store(name, memoryview(segment.data), is_code=is_code)


def rows_of(stores: Sequence[Store]) -> list[Constant]:
    """Data as rows of floats where all of it can be, else of bytes, for want of a program that
    says what they are.
    """
    return [Constant(each.name, _row(each.data)) for each in stores if not each.is_code]


def _row(data: memoryview) -> AnyArray:
    if len(data) % 4 == 0:
        with np.errstate(invalid="ignore"):
            floats = np.frombuffer(data, np.float32)
            size = np.abs(floats)
            if np.all((size == 0) | ((size > _LEAST_FLOAT) & (size < 1 / _LEAST_FLOAT))):
                return floats
    return np.frombuffer(data, np.uint8)


def cut(stores: Sequence[Store], others: Sequence[Constant]) -> list[Constant]:
    """The constants in stores that are those of another program, or are but for a few elements."""
    # Of what repeats one or two values nobody can say where it is.
    telling = [each for each in others if len(np.unique(each.data)) > 2]
    found, left = [], []
    for other in telling:
        same = next(_same(stores, other), None)
        if same is None:
            left.append(other)
        else:
            found.append(same)
    looked = 0
    for other in left:
        for store, (row, order) in itertools.product(stores, _forms(other.data)):
            looked += int(np.count_nonzero(store.free)) * _OF_LOOKS
            step = None if looked > _MOST_LOOKED else _nearest(store, row)
            if step is not None:
                taken = store.take(step, row)
                found.append(replace(taken, data=_in_order(taken.data, order, other.data.shape)))
                break
    return found


def _in_order(row: AnyArray, order: AnyArray, shape: tuple[int, ...]) -> AnyArray:
    """Elements as the other constant has them; ``order`` says which of its elements each one is."""
    data = np.empty_like(row)
    data[order] = row
    return data.reshape(shape)


def _types(data: AnyArray) -> Iterator[AnyArray]:
    """A constant in the types in which it may be stored: integers in all that hold them."""
    yield data
    if data.dtype.kind != "f":
        least, greatest = int(data.min()), int(data.max())
        seen = {data.dtype.itemsize}
        for each in _INTEGERS:
            limits, size = np.iinfo(each), np.dtype(each).itemsize
            if limits.min <= least and greatest <= limits.max and size not in seen:
                seen.add(size)
                yield data.astype(each)


def _same(stores: Sequence[Store], other: Constant) -> Iterator[Constant]:
    """Where the elements of a constant are, in any order."""
    for data, store in itertools.product(_types(other.data), stores):
        for step in _marked(store, data):
            yield store.take(step, data)


def _marked(store: Store, data: AnyArray) -> Iterator[int]:
    """The places at which elements have the mark of a constant."""
    wanted = mark(data)
    whole, rest = divmod(data.nbytes, _STEP)
    sums = store.sums(data.dtype.itemsize)
    count = (len(store.data) - data.nbytes) // _STEP + 1
    if count <= 0:
        return
    found = sums[whole : whole + count] - sums[:count]
    if rest:
        last = store.blocks(data.dtype.itemsize)[whole : whole + count]
        found = found + last[:, : rest // data.dtype.itemsize].sum(1, dtype=np.uint64)
    for step in np.flatnonzero(found == np.uint64(wanted[0])):
        if mark(store.at(int(step), data)) == wanted:
            yield int(step)


def _forms(data: AnyArray) -> Iterator[tuple[AnyArray, AnyArray]]:
    """A constant as a row in each order of its dimensions, in the types that may be stored; beside
    it which element each one is.
    """
    seen = set[bytes]()
    for order in _orders(data.shape):
        if (known := order.tobytes()) in seen:
            continue
        seen.add(known)
        for typed in _types(data.reshape(-1)):
            yield typed[order], order


def _orders(shape: tuple[int, ...]) -> Iterator[NDArray[np.int64]]:
    """Orders in which the elements of a constant may be stored.

    Of a format without sizes the elements are a row, which may be a matrix of any sizes.
    """
    places = np.arange(math.prod(shape)).reshape(shape)
    yield places.reshape(-1)
    if places.ndim == 1:
        for rows in range(2, math.isqrt(places.size) + 1):
            if places.size % rows == 0:
                yield places.reshape(rows, -1).T.reshape(-1)
                yield places.reshape(-1, rows).T.reshape(-1)
    elif places.ndim <= MOST_RANK:
        for order in itertools.permutations(range(places.ndim)):
            yield places.transpose(order).reshape(-1)


def _nearest(store: Store, row: AnyArray) -> int | None:
    """The place where most elements of a row are, if all but a few are: as many of the whole, and
    of those that are not its most frequent value.
    """
    values, counts = np.unique(row, return_counts=True)
    telling = np.flatnonzero(row != values[counts.argmax()])
    best: tuple[int, int] | None = None
    for step in _places(store, row, telling):
        wrong = store.at(step, row) != row
        count, told = int(np.count_nonzero(wrong)), int(np.count_nonzero(wrong[telling]))
        few = count <= max(1, row.size // SHARE) and told <= max(1, len(telling) // SHARE)
        if few and (best is None or count < best[0]):
            best = count, step
    return None if best is None else best[1]


def _places(store: Store, row: AnyArray, telling: AnyArray) -> list[int]:
    """Free places where some of the elements are that tell a row from others."""
    if len(store.data) < row.nbytes or not len(telling):
        return []
    count = (len(store.data) - row.nbytes) // _STEP + 1
    size, steps = row.dtype.itemsize, np.flatnonzero(store.free[:count])
    elements = np.frombuffer(store.data, row.dtype, len(store.data) // size)
    looked = np.random.default_rng(0).choice(telling, min(_OF_LOOKS, len(telling)), replace=False)
    agree = np.zeros(len(steps), np.int64)
    for each in looked:
        agree += elements[steps * (_STEP // size) + each] == row[each]
    return list(map(int, steps[agree >= min(_LOOKS, max(1, len(looked) - 1))]))
