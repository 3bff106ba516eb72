"""The original IREE runtime, where it is installed, behind the same protocol as our reference."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from darwinn_formats.files import Source
from darwinn_formats.iree import load

from darwinn_testbench.errors import ExecutionError, Unsupported
from darwinn_testbench.policy import AnyArray
from darwinn_testbench.reference.iree.reference import choose, ports_of, public_functions
from darwinn_testbench.reference.protocol import Datum, Output, Port, Tap

RUNTIME = "iree.runtime"
DRIVER = "local-sync"
_NUMBERS = {"i": np.int32, "I": np.int64, "f": np.float32, "F": np.float64}


def why_not() -> str | None:
    """Why the original runtime cannot be used, or None if it can."""
    try:
        importlib.import_module(RUNTIME)
    except ImportError as error:
        return f"the original runtime is not installed (extra 'iree'): {error}"
    return None


class OriginalIree:
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
        self.module = load(self._data).module
        self._functions = public_functions(self.module)
        self.reset()

    @property
    def functions(self) -> tuple[str, ...]:
        """Names of what can be called, in the order of the file."""
        return tuple(self._functions)

    def inputs(self, function: str | None = None) -> tuple[Port, ...]:
        """Inputs of a function, as the module declares them."""
        return tuple(entry.port for entry in ports_of(self._functions[self._name(function)])[0])

    def outputs(self, function: str | None = None) -> tuple[Port, ...]:
        """Outputs of a function, as the module declares them."""
        return tuple(entry.port for entry in ports_of(self._functions[self._name(function)])[1])

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
        name = self._name(function)
        arguments = [entry.item() if np.ndim(entry) == 0 else entry for entry in _arrays(inputs)]
        try:
            results = self._bound[name](*arguments)
        except (RuntimeError, ValueError, TypeError) as error:
            raise ExecutionError(f"{name}: {error}") from None
        convention = self._functions[name].convention
        assert convention is not None
        values = results if isinstance(results, tuple | list) else (results,)
        return tuple(
            Output(port.name, _datum(letter, value))
            for letter, port, value in zip(
                convention.results, self.outputs(name), values, strict=True
            )
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

    def _name(self, function: str | None) -> str:
        return choose(self._functions, function)


def _arrays(inputs: Sequence[Datum]) -> list[Any]:
    return [np.asarray(entry) for entry in inputs]


def _datum(letter: str, value: Any) -> Datum:
    if letter != "r":
        return np.array(value, _NUMBERS[letter])
    array: AnyArray = np.array(value.to_host())
    return array
