"""Records of structured arrays as classes: what a kernel reads by a name, a checker knows by it.

A class that derives from ``Record`` lists the fields of a record, and its ``dtype`` follows from
them. Kernels annotate their parameters with it; numba ignores that and goes by the dtype. How a
field is declared:

    count: int                                       a number of 64 bits
    word: np.uint32                                  of another type, as in memories
    lanes: Int16                                     narrower, but counted with like any other
    written: Annotated[NDArray[np.uint32], 64]       an array, with its shape
    limit: Annotated[Numbers, 8]                     of numbers of 64 bits
    row: Row                                         a record
    queue: Annotated[Records[Entry], 8]              an array of records, with its shape

A kernel reads a field of a record as an attribute. Outside of kernels a record is NumPy's, which
has its fields as items, by their names: ``record["count"]``; so has a whole array, in kernels, too.
"""

from __future__ import annotations

import math
import mmap
from collections.abc import Sequence
from typing import (
    Annotated,
    Any,
    ClassVar,
    Generic,
    Self,
    TypeVar,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    overload,
)

import numpy as np
from numpy.typing import NDArray

_R = TypeVar("_R")

Int32 = Annotated[int, np.int32]
Int16 = Annotated[int, np.int16]
Uint32 = Annotated[int, np.uint32]
Uint8 = Annotated[int, np.uint8]


_LARGE = 1 << 22
"""Bytes from which on records have pages of their own, of which only those that are used cost
anything: NumPy asks for huge pages, all of which are cleared for a chip of which a program uses
a hundredth."""


class Records(np.ndarray[tuple[Any, ...], np.dtype[np.void]], Generic[_R]):
    """An array of records, for annotations; the arrays themselves are NumPy's own.

    Of two axes: ``Records[Records[...]]``.
    """

    @overload  # type: ignore[override]
    def __getitem__(self, index: int | np.integer, /) -> _R: ...
    @overload
    def __getitem__(self, field: str, /) -> NDArray[Any]: ...
    @overload
    def __getitem__(self, part: slice | NDArray[Any] | list[int] | list[str], /) -> Records[_R]: ...
    def __getitem__(self, index: Any, /) -> Any:
        """A record, a field of all of them, or a part of them."""
        return super().__getitem__(index)


class Numbers(np.ndarray[tuple[Any, ...], np.dtype[np.int64]]):
    """An array of numbers of 64 bits, for annotations; of NumPy's own a checker knows no element.

    So what such a number is the index of would not be known either.
    """

    @overload  # type: ignore[override]
    def __getitem__(self, index: int | np.integer, /) -> int: ...
    @overload
    def __getitem__(self, part: slice | NDArray[Any] | list[int], /) -> NDArray[np.int64]: ...
    def __getitem__(self, index: Any, /) -> Any:
        """A number, or a part of them."""
        return super().__getitem__(index)


class Record:
    """Base of all records: ``dtype`` has the fields of a class, those that it inherits first.

    ``align``: fields begin where their types' alignment lets them, instead of one after another.
    """

    dtype: ClassVar[np.dtype[np.void]]

    def __init_subclass__(cls, *, align: bool = False) -> None:
        hints = get_type_hints(cls, include_extras=True)
        members = [(name, *_member(hint)) for name, hint in hints.items() if name != "dtype"]
        cls.dtype = np.dtype(members, align=align)

    @classmethod
    def zeros(cls, *shape: int) -> Records[Self]:
        """An array of records, all 0."""
        size = math.prod(shape) * cls.dtype.itemsize
        if size < _LARGE:
            return cast("Records[Self]", np.zeros(shape, cls.dtype))
        pages = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        return cast("Records[Self]", np.frombuffer(pages, cls.dtype).reshape(shape))

    def __getitem__(self, field: str) -> Any:
        """A field, as NumPy's own code reads it."""
        raise NotImplementedError

    def __setitem__(self, field: str, value: Any) -> None:
        raise NotImplementedError


def numbers(array: NDArray[np.int64]) -> Numbers:
    """An array of one axis, as a checker is to know it."""
    return cast("Numbers", array)


def join(parts: Sequence[Records[_R]]) -> Records[_R]:
    """Arrays of records, one after another."""
    return cast("Records[_R]", np.concatenate(parts))


def _member(hint: Any) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """Type and shape of what an annotation declares."""
    if get_origin(hint) is Annotated:
        declared, *how = get_args(hint)
        if declared is int:
            return np.dtype(how[0]), ()
        return _element(declared), tuple(how)
    return _element(hint), ()


def _element(hint: Any) -> np.dtype[Any]:
    if hint is Numbers:
        return np.dtype(np.int64)
    while get_origin(hint) is not None:
        hint = get_args(hint)[-1]
    dtype: np.dtype[Any] = hint.dtype if issubclass(hint, Record) else np.dtype(hint)
    return dtype
