"""Kernels that only kernels call are compiled no further than their callers need.

numba optimises each function with all that it calls, and makes machine code of it. A caller does
both again with its own copy, and nothing else executes a kernel without a wrapper for Python. To
leave both to the callers halves the time in which the model is compiled.
"""

from __future__ import annotations

from typing import Any

from llvmlite import binding
from numba.core import codegen, compiler

# numba's own types know neither its compiler nor its libraries.
_binding: Any = binding
_compiler: Any = compiler
_Compiler: Any = compiler.Compiler
_Library: Any = codegen.JITCodeLibrary

LINKED = "linked"
"""How the code of such a kernel is kept: to be linked, and not to be executed."""


class LinkedLibrary(_Library):  # type: ignore[misc]
    """The code of a kernel that only kernels call, and of what it calls."""

    def get_pointer_to_function(self, name: str) -> int:
        """Give no address, as for a function that is not there: Python calls none of these."""
        self._ensure_finalized()
        return 0

    def serialize_using_object_code(self) -> tuple[str, str, bytes]:
        """Give the code that callers link, which is all that is stored."""
        return self.name, LINKED, self._final_module.as_bitcode()

    @classmethod
    def read(cls, target: Any, name: str, code: bytes) -> LinkedLibrary:
        """The library of which ``code`` was stored."""
        library = cls(target.codegen(), name)
        library._final_module = _binding.parse_bitcode(code)
        library._finalize_final_module()
        return library

    @property
    def codegen(self) -> Any:
        """The code generator of this library."""
        return _Codegen(self._codegen)

    def _optimize_final_module(self) -> None:
        """Leave it to callers."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True


class _Codegen:
    """numba's ``codegen``, for a function that has no machine code and thus no environment."""

    def __init__(self, codegen: Any) -> None:
        self._codegen = codegen

    def __getattr__(self, name: str) -> Any:
        return getattr(self._codegen, name)

    def set_env(self, name: str, environment: Any) -> None:
        """Leave it to callers (:func:`set_environments`)."""


class InnerCompiler(_Compiler):  # type: ignore[misc]
    """numba's compiler, which makes a :class:`LinkedLibrary`."""

    def __init__(self, typing: Any, target: Any, library: Any, *others: Any) -> None:
        super().__init__(typing, target, LinkedLibrary(target.codegen(), LINKED), *others)


def rebuilt(target: Any, library: tuple[str, str, bytes], *stored: Any) -> Any:
    """Rebuild the compiler's result for a function from ``library`` and ``stored``, as kept."""
    descriptor, environment, signature, objectmode, lifted, annotation, _, environments = stored
    code = LinkedLibrary.read(target, library[0], library[2])
    return _compiler.compile_result(
        target_context=target,
        typing_context=target.typing_context,
        library=code,
        entry_point=target.get_executable(code, descriptor, environment),
        environment=environment,
        fndesc=descriptor,
        signature=signature,
        objectmode=objectmode,
        lifted=lifted,
        type_annotation=annotation,
        reload_init=[],
        referenced_envs=environments,
    )


def set_environments(result: Any) -> None:
    """Give machine code the environments, numba's places for Python's objects, of all it holds.

    numba does so where it loads what was stored. Where it compiles, each function sets its own.
    """
    for each in result._find_referenced_environments():
        result.library.codegen.set_env(each.env_name, each)
