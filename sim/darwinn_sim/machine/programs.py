"""Programs by their chunks: what a chip that fetches them recognises, and has lowered before.

Nobody tells a chip which program it runs. Chunks that differ only in immediates of scalar moves,
where addresses stand, are the same program: the tables of the first are patched. All else is
lowered anew. What is known of a program may be longer than what has been fetched of it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from darwinn_sim.isa.codec import DecodeError
from darwinn_sim.isa.codes import AluOperation
from darwinn_sim.isa.fields import BUNDLE_BYTES
from darwinn_sim.isa.table import BY_NAME
from darwinn_sim.machine.lowering import LoweredProgram, lower, patch

MAX_BYTES = 1 << 29
"""Bytes of lowered programs that are kept; a larger one is lowered each time."""

Shapes = tuple[bytes, ...]
"""Digests of chunks without the immediates of their moves."""


class _Kept(NamedTuple):
    program: LoweredProgram
    shapes: Shapes
    size: int


class Programs:
    """Lowered programs; the longest unused are given up.

    Args:
        dma_only: lower only what the scalar core executes itself.
        assumptions: take values that are executed by an assumed rule.
        max_bytes: of programs that are kept.
    """

    def __init__(
        self, *, dma_only: bool = False, assumptions: bool = True, max_bytes: int = MAX_BYTES
    ) -> None:
        self.lowered = 0
        """How often a program has been lowered."""
        self._dma_only, self._assumptions = dma_only, assumptions
        self._max_bytes = max_bytes
        self._beginning: dict[Shapes, _Kept] = {}
        self._kept: OrderedDict[Shapes, _Kept] = OrderedDict()

    @property
    def kept_bytes(self) -> int:
        """Bytes of the programs that are kept."""
        return sum(kept.size for kept in self._kept.values())

    def find(self, chunks: Sequence[bytes]) -> LoweredProgram:
        """The program that begins with ``chunks``, with the addresses that stand in them.

        Raises:
            UnsupportedInstruction: something in them is not implemented.
            DecodeError: they are no instruction streams.
        """
        shapes = tuple(map(_shape, chunks))
        kept = self._beginning.get(shapes)
        if kept is not None and self._takes(kept.program, chunks):
            self._kept.move_to_end(kept.shapes)
            return kept.program
        self.lowered += 1
        program = lower(chunks, dma_only=self._dma_only, assumptions=self._assumptions)
        self._keep(_Kept(program, shapes, _bytes_of(program)))
        return program

    def _takes(self, program: LoweredProgram, chunks: Sequence[bytes]) -> bool:
        try:
            for number, chunk in enumerate(chunks):
                patch(program, number, chunk, assumptions=self._assumptions)
        except DecodeError:
            return False
        return True

    def _keep(self, new: _Kept) -> None:
        if new.size > self._max_bytes:
            return
        for count in range(1, len(new.shapes) + 1):
            beginning = new.shapes[:count]
            known = self._beginning.get(beginning)
            if known is not None and known.shapes == beginning:
                self._forget(known)
            self._beginning.setdefault(beginning, new)
        self._kept[new.shapes] = new
        while self.kept_bytes > self._max_bytes:
            self._forget(next(iter(self._kept.values())))

    def _forget(self, kept: _Kept) -> None:
        self._kept.pop(kept.shapes, None)
        for count in range(1, len(kept.shapes) + 1):
            if self._beginning.get(kept.shapes[:count]) is kept:
                del self._beginning[kept.shapes[:count]]


_PLACES = {field.name: (field.offset, field.width) for field in BY_NAME["Scalar"].fields}
_WORD_BITS = 64


def _field(words: NDArray[np.uint64], name: str) -> NDArray[np.uint64]:
    """A field of bundles, which are two words each."""
    offset, width = _PLACES[name]
    column: NDArray[np.uint64] = words[:, offset // _WORD_BITS]
    return (column >> np.uint64(offset % _WORD_BITS)) & np.uint64((1 << width) - 1)


def _shape(chunk: bytes) -> bytes:
    """Digest of a chunk without the immediates of its moves."""
    whole = len(chunk) // BUNDLE_BYTES * BUNDLE_BYTES
    words = np.frombuffer(chunk[:whole], "<u8").reshape(-1, 2).copy()
    moves = (
        (_field(words, "opcode") == BY_NAME["Scalar"].opcode)
        & (_field(words, "alu_op") == AluOperation.MOVE)
        & (_field(words, "alu_immediate") == 1)
    )
    offset, width = _PLACES["alu_b"]
    immediate = np.uint64(((1 << width) - 1) << offset % _WORD_BITS)
    words[moves, offset // _WORD_BITS] &= ~immediate
    return blake2b(words.tobytes() + chunk[whole:], digest_size=16).digest()


def _bytes_of(program: LoweredProgram) -> int:
    """Bytes of a program: its tables, the chunks decoded, and the chunks themselves."""
    arrays = [
        program.unpatched,
        *program.tables.tensor_plan,
        *(each for each in program.tables if isinstance(each, np.ndarray)),
        *(
            column
            for chunk in program.chunks
            for columns in chunk.columns.values()
            for column in columns.values()
        ),
    ]
    return sum(each.nbytes for each in arrays) + sum(map(len, program.streams))
