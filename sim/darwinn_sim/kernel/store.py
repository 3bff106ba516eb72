"""Compiled kernels on disk: what is loaded is whole, and was written by this user.

A stored kernel is machine code that this process will execute, and a pickle on the way there. So a
file is opened up only if nobody else can have written it (``private_files.py``). Anything else is
left alone: the kernel is compiled again and replaces it, and one warning says so. Where the folder
cannot be used kernels stay in memory. SECURITY.md says what that protects from, and what not. The
first kernel that a process stores has it remove what nobody uses any more (``pruning.py``).

An installation can bring kernels along, in ``INSTALLED``: compiled for any processor of a level
(``PORTABLE``) instead of this one, and compressed. They are used where this user has none of their
own. They are trusted as the sources beside them are; the checksum finds damage.
"""

from __future__ import annotations

import hashlib
import logging
import pickle
import sysconfig
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
from llvmlite import binding, ir
from numba.core import compiler, serialize

from darwinn_sim.kernel.linking import LINKED, rebuilt, set_environments
from darwinn_sim.kernel.private_files import Unusable, check_folder, read_whole, write_whole
from darwinn_sim.kernel.pruning import prune, used

# numba's own types know little of what is asked of it here.
_config: Any = numba.config
_serialize: Any = serialize
_binding: Any = binding
_ir: Any = ir
_Result: Any = compiler.CompileResult
_log = logging.getLogger(__name__)

_COMPRESSION = 9

INSTALLED = Path(__file__).parents[1] / "compiled_kernels"
"""Where an installation has kernels, if it has any: in folders as in a cache."""

PORTABLE = "x86-64-v3"
"""LLVM's name of the processors that installed kernels are for: those of 2013 and later."""
_NEEDED = (
    *("cx16", "popcnt", "sahf", "sse3", "ssse3", "sse4.1", "sse4.2"),
    *("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave"),
)
"""What a processor of that level has, by the names of LLVM (x86-64 psABI, 3.1.1)."""

use_installed = True
"""Whether installed kernels are used; not where kernels for this processor are to be compiled."""

loaded: list[Path] = []
"""Files of the kernels that this process has loaded and not compiled."""

saved: list[Path] = []
"""Files of those that it has compiled and stored."""

refused: list[Path] = []
"""Files of those that it has compiled, and could not store. Not those that hold addresses of this
process, as some do that are not optimised: they are no kernels for another one."""


class KernelStore:
    """The compiled forms of one function in ``folder``, as numba's dispatcher asks for them.

    Of one that is not ``callable_by_kernels`` the machine code is kept, and nothing to compile
    others with.

    It takes the place of ``numba.core.caching.FunctionCache``, which unpickles what it finds, and
    which writes beside the sources where the folder of the user cannot be written.
    """

    _warned = False
    """In this process: what is wrong with one file is wrong with many."""

    def __init__(
        self, function: Callable[..., Any], folder: Path, *, callable_by_kernels: bool = True
    ) -> None:
        self.callable_by_kernels = callable_by_kernels
        self._folder = folder
        self._line = function.__code__.co_firstlineno
        self._name = f"{Path(function.__code__.co_filename).stem}.{function.__qualname__}"

    @property
    def cache_path(self) -> str:
        """The folder, for numba's statistics."""
        return str(self._folder)

    def load_overload(self, signature: Any, target: Any) -> Any:
        """What was compiled for the types of ``signature``; None if it has to be compiled.

        What numba knows of Python's functions and types is not loaded for it: only the compiler
        needs that, and loads it itself.
        """
        codegen = target.codegen()
        for read in (self._own, self._installed):
            stored = read(signature, codegen)
            if stored is not None:
                library, *others = pickle.loads(stored)
                rebuild = rebuilt if library[1] == LINKED else _Result._rebuild
                return rebuild(target, library, *others)
        return None

    def _own(self, signature: Any, codegen: Any) -> bytes | None:
        """What this user has stored, for this processor."""
        _in_use(self._folder)
        path = self._folder / self._file(signature, codegen.magic_tuple())

        def read() -> bytes:
            check_folder(self._folder)
            return read_whole(path)

        return self._usable(path, read)

    def _installed(self, signature: Any, codegen: Any) -> bytes | None:
        """What the installation has, for processors such as this one."""
        folder = INSTALLED / self._folder.name
        if not (use_installed and folder.is_dir() and _is_portable()):
            return None
        triple, *_ = codegen.magic_tuple()
        path = folder / self._file(signature, (triple, PORTABLE, ""))
        return self._usable(path, lambda: zlib.decompress(read_whole(path, private=False)))

    def _usable(self, path: Path, read: Callable[[], bytes]) -> bytes | None:
        """What ``read`` gives of ``path``; None if it is not there, or not to be used."""
        try:
            stored = read()
        except FileNotFoundError:
            return None
        except (OSError, Unusable) as error:
            self._warn(error)
            return None
        loaded.append(path)
        return stored

    def save_overload(self, signature: Any, result: Any) -> None:
        """Keep what was compiled for the types of ``signature``."""
        set_environments(result)
        if result.library.has_dynamic_globals:
            return
        path = self._folder / self._file(signature, result.codegen.magic_tuple())
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            check_folder(self._folder)
            write_whole(path, _serialize.dumps(self._reduced(result)))
            if not saved:
                prune(self._folder.parent)
            saved.append(path)
        except (OSError, Unusable) as error:
            refused.append(path)
            self._warn(error)

    def _reduced(self, result: Any) -> tuple[Any, ...]:
        """What is kept of a compiled form.

        Not the listing of its types, and of what it calls no environment without constants, which
        machine code reads nothing of: to make hundreds of them took most of the time of a load.
        """
        library, *others, _, reload_init, environments = result._reduce()
        if not self.callable_by_kernels:
            name, kind, (code, _) = library
            bitcode = _names_only(result.codegen._create_empty_module(name), result.fndesc)
            library = name, kind, (code, bitcode)
        with_constants = tuple(each for each in environments if each.consts)
        return library, *others, "", reload_init, with_constants

    def _file(self, signature: Any, processor: tuple[str, ...]) -> str:
        """The name for a signature on ``processor``, by these versions with these settings."""
        key = (
            tuple(map(str, signature)),
            processor,
            self._line,
            (sysconfig.get_config_var("SOABI"), numba.__version__),
            (_config.BOUNDSCHECK, int(_config.OPT), _config.DEBUGINFO_DEFAULT),
        )
        digest = hashlib.sha256(repr(key).encode()).hexdigest()
        return f"{self._name}.{digest[:32]}"

    def _warn(self, error: Exception) -> None:
        if not KernelStore._warned:
            KernelStore._warned = True
            reason: object = error
            if isinstance(error, OSError):
                reason = f"{error.filename or self._folder}: {error.strerror}"
            _log.warning("kernel cache: %s; kernels are compiled again", reason)


def install(stored: Path, target: Path) -> int:
    """Write the kernel in ``stored``, of a cache, as :data:`INSTALLED` has it; the bytes it takes.

    ``target`` takes the place of :data:`INSTALLED`.
    """
    path = target / stored.parent.name / stored.name
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, zlib.compress(read_whole(stored), _COMPRESSION))
    path.chmod(0o444)
    return path.stat().st_size


def _names_only(module: Any, names: Any) -> bytes:
    """The bitcode of a library of which only its wrapper for Python is known, and not called."""
    nothing = _ir.FunctionType(_ir.VoidType(), ())
    wrapper = _ir.Function(module, nothing, names.llvm_cpython_wrapper_name)
    _ir.IRBuilder(wrapper.append_basic_block()).ret_void()
    bitcode: bytes = _binding.parse_assembly(str(module)).as_bitcode()
    return bitcode


@cache
def _in_use(folder: Path) -> None:
    """Once in a process."""
    used(folder)


@cache
def _is_portable() -> bool:
    """Whether this processor executes installed kernels."""
    has = _binding.get_host_cpu_features()
    return all(has.get(feature, False) for feature in _NEEDED)
