"""Compilation of the model's kernels to machine code, with types that a checker understands.

The cache of compiled kernels is keyed by the sources of all kernels that a package may call, its
own and those of the packages around it, of the constants and hooks that are compiled into them, and
of the sizes of the chip that this process simulates. numba by itself looks only at the file of a
function, not at those of the functions that it calls. ``store.py`` says how they are kept.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache, cached_property
from pathlib import Path
from types import UnionType
from typing import Any, ParamSpec, TypeVar, cast, get_args

import numba
import platformdirs
from numpy.typing import NDArray

from darwinn_sim import chip
from darwinn_sim.kernel.linking import InnerCompiler
from darwinn_sim.kernel.store import KernelStore

_P = ParamSpec("_P")
_R = TypeVar("_R")

_COMPILED_IN = ("stations.py", "table.py", "codes.py", "state.py", "hooks.py", "linking.py")
_SHARED_FOLDERS = (".", "isa", "kernel", "units", "machine")
_KERNEL_MARKS = (b"@compiled", b"@entry", b"@inner", b"@part", b"@unchecked")

# numba's own types know neither its configuration nor the option that drops reference counts.
_numba: Any = numba
OPTIONS = {"error_model": "numpy", "nogil": True, "_nrt": False}
"""How everything is compiled. Other threads run meanwhile: a chip that a stranger drives computes
while transfers come."""

CACHES = Path(_numba.config.CACHE_DIR or platformdirs.user_cache_dir("darwinn-testbench"))
"""Where compiled kernels are kept, a folder for each key: in NUMBA_CACHE_DIR, if that is set."""

_ROOT = Path(__file__).parents[1]


@cache
def _cache_folder(package: Path) -> Path:
    """Where the kernels of the package in folder ``package`` are cached."""
    digest = hashlib.sha256(repr(sorted(chip.constants().items())).encode())
    for folder in (*(_ROOT / name for name in _SHARED_FOLDERS), package):
        for source in sorted(folder.glob("*.py")):
            text = source.read_bytes()
            if any(mark in text for mark in _KERNEL_MARKS) or source.name in _COMPILED_IN:
                digest.update(source.name.encode())
                digest.update(text)
    return CACHES / digest.hexdigest()[:16]


def inner(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Like :func:`compiled`, for what only kernels call: without its wrapper for Python, and not
    as machine code (``linking.py``).

    To take large records apart, such a wrapper needs more code than the function itself. What takes
    a tuple of arrays becomes part of its caller: it would be passed array by array, hundreds of
    words at each call, which took most of the kernels' time.
    """
    return _inner(function, boundscheck=True)


def unchecked(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Like :func:`inner`, without checks of indices, which keep a loop over lanes from the vector
    unit. Its indices are within bounds whatever a program says; the function says why.
    """
    return _inner(function, boundscheck=False)


def part(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Like :func:`inner`, and part of its caller: for what does little, a million times.

    To pass an array takes seven words, and to call took longer than what was called for.
    """
    return _inner(function, boundscheck=True, part=True)


def compiled(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Compile ``function`` to machine code at its first call.

    A kernel allocates nothing and raises nothing, but for an index outside of an array, which is a
    defect of the model: IndexError. That lets it do without reference counts, whose
    atomic instructions took three quarters of the time; :func:`copy` stands in for the assignment
    of one array slice to another, for which numba would allocate.
    """
    return _compile(function, boundscheck=True)


def entry(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Like :func:`compiled`, for what only Python calls: a kernel that calls it cannot be compiled.

    It is stored as machine code alone. What another kernel would need of it, to be compiled with
    it, is as large as the code, and took half of the time in which the largest ones are loaded.
    """
    return _compile(function, boundscheck=True, entry=True)


def _inner(
    function: Callable[_P, _R], *, boundscheck: bool, part: bool = False
) -> Callable[_P, _R]:
    kernel: Any = _Inner(
        function,
        boundscheck=boundscheck,
        no_cpython_wrapper=True,
        no_cfunc_wrapper=True,
        pipeline_class=InnerCompiler,
        forceinline=part
        or any(_is_tuple(name, function) for name in function.__annotations__.values()),
    )
    return cast("Callable[_P, _R]", kernel)


def _is_tuple(annotation: str, function: Callable[..., Any]) -> bool:
    """A parameter of that type, as the source of ``function`` writes it, is a tuple, or one of
    several.
    """
    found = function.__globals__.get(annotation)
    each = get_args(found) if isinstance(found, UnionType) else (found,)
    return all(isinstance(one, type) and issubclass(one, tuple) for one in each)


class _Inner:
    """A kernel that only kernels call: numba's once somebody asks something of it.

    Stored kernels have in them what they call. To make hundreds of others ready for compilation
    took a tenth of the time of a short command.
    """

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        self.__wrapped__, self._options = function, options

    def __getattr__(self, name: str) -> Any:
        """What numba's has: it looks for ``_numba_type_`` where it compiles a call."""
        return getattr(self._kernel, name)

    def __call__(self, *arguments: Any) -> Any:
        return self._kernel(*arguments)

    @cached_property
    def _kernel(self) -> Callable[..., Any]:
        return _compile(self.__wrapped__, **self._options)


def _compile(
    function: Callable[_P, _R], *, entry: bool = False, **options: Any
) -> Callable[_P, _R]:
    kernel = _numba.njit(**OPTIONS, **options)(function)
    if kernel is not function:  # as it is with NUMBA_DISABLE_JIT
        package = Path(function.__code__.co_filename).parent
        kernel._cache = KernelStore(function, _cache_folder(package), callable_by_kernels=not entry)
    return cast("Callable[_P, _R]", kernel)


@inner
def copy(
    target: NDArray[Any], target_first: int, source: NDArray[Any], source_first: int, count: int
) -> None:
    """Copy ``count`` elements between arrays that do not overlap."""
    if count > 0:
        target[target_first] = source[source_first]
        target[target_first + count - 1] = source[source_first + count - 1]
        _copy(target, target_first, source, source_first, count)


@unchecked
def _copy(
    target: NDArray[Any], target_first: int, source: NDArray[Any], source_first: int, count: int
) -> None:
    """Within bounds, since both ends were copied with checks.

    By slices: an index that may be negative, as far as numba knows, is worked out lane by lane, and
    the words were gathered and scattered one by one.
    """
    to, of = target[target_first : target_first + count], source[source_first:]
    for k in range(count):
        to[k] = of[k]
