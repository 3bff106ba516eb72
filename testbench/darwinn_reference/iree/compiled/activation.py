"""Activations whose blocks are machine code."""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from darwinn_formats.errors import ExecutionError
from darwinn_formats.iree import Function, Instruction

from darwinn_reference.errors import Unsupported
from darwinn_reference.iree.activation import Activation
from darwinn_reference.iree.binding import Call
from darwinn_reference.iree.branches import copies
from darwinn_reference.iree.budget import Budget
from darwinn_reference.iree.compiled.build import Code
from darwinn_reference.iree.compiled.layout import (
    COPIES,
    Layout,
    Word,
    access_of,
    copied_references,
    references_changed,
)
from darwinn_reference.iree.compiled.ranges import Ranges
from darwinn_reference.iree.effects import ACCESSES
from darwinn_reference.iree.imports import PlacedError
from darwinn_reference.iree.memory import (
    ELEMENT_CODES,
    ELEMENT_SIZES,
    Buffer,
    address_of,
)
from darwinn_reference.iree.state import State

_TURN = 1 << 20
"""Blocks that run between two looks at the clock, a few milliseconds."""
_HOST_TURN = 16
"""Operations that the interpreter runs between two looks at the clock."""

_NOWHERE = -1
"""The first address of accesses that there are none of: the largest there is, without a sign."""

_Callback = ctypes.CFUNCTYPE(None, ctypes.c_int64)


class CompiledActivation(Activation):
    """The registers of a function whose blocks are compiled.

    The steps of the interpreter are there for what is left to it (``emit.py``). Where code that is
    tracked has read and written is added to ``ranges``.
    """

    def __init__(
        self,
        function: Function,
        state: State,
        call: Call,
        budget: Budget,
        code: Code,
        ranges: Ranges | None = None,
    ) -> None:
        super().__init__(function, state, call, budget)
        layout = code.layout
        self.code = code
        self.ranges = ranges
        self.frame = np.zeros(layout.words, np.int64)
        self.words = memoryview(self.frame.data)
        self.words[Word.CELLS] = address_of(self.registers.cells)
        self.words[Word.GLOBALS] = address_of(state.global_memory)
        self.callback = _Callback(self.act)
        self.words[Word.HOST] = ctypes.cast(self.callback, ctypes.c_void_p).value or 0
        self.address: int = self.frame.ctypes.data
        self.acted = 0
        self.failure: BaseException | None = None
        self.failed = 0
        self.steps = self._steps(layout)
        self.changes = _changes(layout)
        self.calls = {each.pc for each in layout.instructions if each.mnemonic.startswith("call")}
        self.counts: dict[int, list[tuple[int, str, bool]]] = {
            each: [] for each in layout.references
        }
        for access, word in layout.counts.items():
            self.counts[access.reference].append((word, access.element, access.stores))

    def _steps(self, layout: Layout) -> dict[int, Callable[[], Any]]:
        """The interpreter's steps by the numbers of operations."""
        steps: dict[int, Callable[[], Any]] = {}
        for block in self.blocks:
            steps |= zip(block.places, (*block.steps, block.leave), strict=True)
        for number, branch in enumerate(layout.copies, COPIES):
            steps[number] = copies(self.registers, branch.references)
        return steps

    def run_blocks(self) -> None:
        """Run the machine code, with the arguments in their registers."""
        for reference in self.counts:
            self.describe(reference)
        self.words[Word.BLOCKS] = self.budget.grant(_TURN)
        if self.ranges is not None:
            for first, behind in self.code.layout.ranges.values():
                self.words[first], self.words[behind] = _NOWHERE, 0
        try:
            with self.interruptible():
                failed = self.code.run(self.address)
        finally:
            self.budget.give(self.words[Word.BLOCKS])
        if self.ranges is not None:
            for access, (first, behind) in self.code.layout.ranges.items():
                self.ranges.add(access, self.words[first], self.words[behind])
        if failed:
            self.fail()

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Within, note what the handler of a signal raises: it runs before the first line of
        ``act``, so that ctypes gets the error, and reports it as one that nobody can catch.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = sys.unraisablehook

        def note(error: Any) -> None:
            if "ctypes callback" in (error.err_msg or ""):
                self.failure = error.exc_value
            else:
                before(error)

        sys.unraisablehook = note
        try:
            yield
        finally:
            sys.unraisablehook = before

    def fail(self) -> None:
        """Raise what the host noted, with the place where it was."""
        error, self.failure = self.failure, None
        assert error is not None
        if isinstance(error, ExecutionError) and not isinstance(error, PlacedError | Unsupported):
            pc = self.failed if self.failed >= 0 else ~self.failed
            raise self.placed(error, pc) from None
        raise error

    def act(self, number: int) -> None:
        """Run an operation for the machine code, which then is done, or note the error."""
        try:
            if number < 0:
                self.words[Word.BLOCKS] = self.budget.take(_TURN)
            elif number in self.calls:
                self.budget.give(self.words[Word.BLOCKS])
                self.words[Word.BLOCKS] = 0
                self.steps[number]()
                self.words[Word.BLOCKS] = self.budget.grant(_TURN)
            else:
                self.steps[number]()
            self.acted += 1
            if not self.acted % _HOST_TURN:
                self.budget.look()
            for reference in self.changes.get(number, ()):
                self.describe(reference)
        except BaseException as error:  # Nothing passes through machine code.
            self.failure, self.failed = error, number
        else:
            self.words[Word.DONE] = 1

    def describe(self, reference: int) -> None:
        """Write into the frame what a register of references points to."""
        words, value = self.words, self.registers.references[reference]
        if not isinstance(value, Buffer):
            for word, _, _ in self.counts[reference]:
                words[word] = 0
            return
        words[self.code.layout.addresses[reference]] = value.address
        for word, element, stores in self.counts[reference]:
            # The first store of a type is the interpreter's: it marks the buffer, or refuses.
            if stores and element not in value.stores:
                words[word] = 0
            else:
                words[word] = len(value.memory) // ELEMENT_SIZES[ELEMENT_CODES[element]]


def _changes(layout: Layout) -> dict[int, tuple[int, ...]]:
    """Registers of references that have to be described again, by the numbers of operations."""
    changes = {each.pc: _changed(layout, each) for each in layout.instructions}
    for number, branch in enumerate(layout.copies, COPIES):
        changes[number] = layout.changed(tuple(copied_references(branch)))
    return {number: references for number, references in changes.items() if references}


def _changed(layout: Layout, instruction: Instruction) -> tuple[int, ...]:
    if instruction.mnemonic in ACCESSES:
        access = access_of(instruction)
        return (access.reference,) if access.stores else ()
    return layout.changed(tuple(references_changed(instruction)))
