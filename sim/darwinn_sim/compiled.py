"""Compilation of the model's kernels to machine code, with types that a checker understands.

The cache of compiled kernels is keyed by the sources of all kernels and of the constants that are
compiled into them: numba by itself looks only at the file of a function, not at the files of the
functions that it calls.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

import numba
import platformdirs
from numpy.typing import NDArray

_P = ParamSpec("_P")
_R = TypeVar("_R")

Record = Any
"""A record of a structured array: numba reads its fields as attributes, NumPy as items."""


_CONSTANTS = ("chip.py", "table.py", "codes.py")
_KERNEL_MARK = b"@compiled"


def _cache_folder() -> Path:
    digest = hashlib.sha256()
    for source in sorted(Path(__file__).parent.glob("**/*.py")):
        text = source.read_bytes()
        if _KERNEL_MARK in text or source.name in _CONSTANTS:
            digest.update(source.name.encode())
            digest.update(text)
    return Path(platformdirs.user_cache_dir("darwinn-testbench")) / digest.hexdigest()[:16]


# numba's own types know neither its configuration nor the option that drops reference counts.
_numba: Any = numba

if not _numba.config.CACHE_DIR:
    _numba.config.CACHE_DIR = str(_cache_folder())


def compiled(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Compile ``function`` to machine code at its first call.

    A kernel allocates nothing and raises nothing. That lets it do without reference counts, whose
    atomic instructions took three quarters of the time; :func:`copy` stands in for the assignment
    of one array slice to another, for which numba would allocate.
    """
    decorate = _numba.njit(cache=True, error_model="numpy", _nrt=False)
    return cast("Callable[_P, _R]", decorate(function))


@compiled
def copy(
    target: NDArray[Any], target_first: int, source: NDArray[Any], source_first: int, count: int
) -> None:
    """Copy ``count`` elements between arrays that do not overlap."""
    for k in range(count):
        target[target_first + k] = source[source_first + k]
