"""The original IREE runtime, where it is installed, behind the same protocol as our reference."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from darwinn_formats.errors import ExecutionError
from darwinn_formats.files import Source
from darwinn_formats.iree import load

from darwinn_reference.arrays import AnyArray
from darwinn_reference.errors import Unsupported
from darwinn_reference.iree.interface import NUMBERS, Interface
from darwinn_reference.protocol import Datum, Output, Tap

RUNTIME = "iree.runtime"
DRIVER = "local-sync"


def why_not() -> str | None:
    """Why the original runtime cannot be used, or None if it can."""
    try:
        importlib.import_module(RUNTIME)
    except ImportError as error:
        return f"the original runtime is not installed (extra 'iree'): {error}"
    return None


class OriginalIree(Interface):
    """A module that the original runtime executes; see ``protocol.Reference``.

    It runs machine code (llvm-cpu) of this computer too, but only the bytecode version that it
    was built for, and no modules that import ``hal_inline``. It has no taps.
    """

    def __init__(self, program: Source) -> None:
        """Load a program.

        Raises:
            FormatError: our loader refuses the file.
            Unsupported: the runtime is not installed.
            ExecutionError: the runtime refuses the program.
        """
        reason = why_not()
        if reason is not None:
            raise Unsupported("runtimes", [reason])
        self._runtime: Any = importlib.import_module(RUNTIME)
        self._data = program if isinstance(program, bytes) else Path(program).read_bytes()
        super().__init__(load(self._data).module)
        self.reset()

    def run(
        self, inputs: Sequence[Datum], *, function: str | None = None, tap: Tap | None = None
    ) -> tuple[Output, ...]:
        """Call a function; globals keep their values for the next call.

        Raises:
            ExecutionError: the runtime refuses the inputs, or fails.
            Unsupported: a tap is asked for.
        """
        if tap is not None:
            raise Unsupported("features of the original runtime", ["taps"])
        name = self.name_of(function)
        letters = [letter for letter, _ in self.signature(name).arguments]
        arguments: list[Any] = [
            np.asarray(entry) if letter == "r" else np.asarray(entry).item()
            for letter, entry in zip(letters, inputs, strict=False)
        ]
        try:
            results = self._bound[name](*arguments)
        except (RuntimeError, ValueError, TypeError) as error:
            raise ExecutionError(f"{name}: {error}") from None
        values = results if isinstance(results, tuple | list) else (results,)
        return tuple(
            Output(declared.port.name, _datum(letter, value))
            for (letter, declared), value in zip(self.signature(name).results, values, strict=True)
        )

    def reset(self) -> None:
        """Put the globals back to what they were after loading."""
        try:
            context = self._runtime.SystemContext(config=self._runtime.Config(DRIVER))
            module = self._runtime.VmModule.copy_buffer(context.instance, self._data)
            context.add_vm_module(module)
        except (RuntimeError, ValueError) as error:
            raise ExecutionError(f"the original runtime: {error}") from None
        self._bound: Any = context.modules[self.module.name]


def _datum(letter: str, value: Any) -> Datum:
    if letter != "r":
        return np.array(value, NUMBERS[letter])
    array: AnyArray = np.array(value.to_host())
    return array
