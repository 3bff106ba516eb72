"""Machine code of functions, by LLVM."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from darwinn_formats.iree import Function

from darwinn_reference.iree.compiled.emit import ENTRY, emit
from darwinn_reference.iree.compiled.layout import Layout
from darwinn_reference.iree.compiled.loops import worth_compiling
from darwinn_reference.iree.compiled.templates import LIBRARY, LIBRARY_PREFIX

_FULL_SPEED = 600
"""Instructions of the longest function for which LLVM generates code at leisure.

A dispatch of a network has some 200, for which that takes 0.05 s; it grows with their square. For
longer ones code is generated in a tenth of the time, and takes three times as long to run.
"""
_AT_LEISURE, _QUICKLY = 1, 0
_PASSES = 2
_LOCK = threading.Lock()


@dataclass(frozen=True, slots=True)
class Code:
    """Machine code of a function: ``run`` takes the address of a frame."""

    layout: Layout
    run: Callable[[int], int]


def code_of(function: Function, *, tracked: bool = False) -> Code | None:
    """Machine code of a function, or None of one that is interpreted, which no ``tracked`` one is:
    its code notes where it reads and writes.
    """
    layout = Layout(function, tracked=tracked)
    if not tracked and not worth_compiling(layout):
        return None
    level = _AT_LEISURE if len(layout.instructions) <= _FULL_SPEED else _QUICKLY
    return Code(layout, _compiled(emit(layout), level))


@lru_cache(maxsize=256)
def _compiled(text: str, level: int) -> Callable[[int], int]:
    with _LOCK:
        return _Loaded(_machine_code(text, level)).run


def _machine_code(text: str, level: int) -> bytes:
    """Object file of a module of LLVM."""
    llvm, target = _llvm(), _target(level)
    module = llvm.parse_assembly(text)
    # Of LLVM's passes those without which it is slow: all of them take as long again, and gain 3 %.
    passes = llvm.create_new_function_pass_manager()
    passes.add_sroa_pass()
    passes.add_simplify_cfg_pass()
    passes.add_instruction_combine_pass()
    options = llvm.create_pipeline_tuning_options(speed_level=_PASSES)
    passes.run(module.get_function(ENTRY), llvm.create_pass_builder(target, options))
    code: bytes = target.emit_object(module)
    return code


class _Loaded:
    """An object file in memory, as long as this is referred to."""

    def __init__(self, code: bytes) -> None:
        llvm = _llvm()
        target = _new_target(_QUICKLY)
        self.engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target)
        self.engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        self.engine.finalize_object()
        self.call = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(
            self.engine.get_function_address(ENTRY)
        )

    def run(self, frame: int) -> int:
        """Run the function."""
        status: int = self.call(frame)
        return status


@cache
def _llvm() -> Any:
    """LLVM, with this processor and the functions of the C library made known to it."""
    from llvmlite import binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    library = ctypes.CDLL(None)
    for name in LIBRARY:
        address = ctypes.cast(getattr(library, name), ctypes.c_void_p).value
        llvm.add_symbol(LIBRARY_PREFIX + name, address)
    return llvm


def _new_target(level: int) -> Any:
    """This processor, to generate code for; an engine takes the one that it gets."""
    llvm = _llvm()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=level,
        jit=True,
    )


@cache
def _target(level: int) -> Any:
    return _new_target(level)
