"""Writes phases as instructions: each ends with a barrier, and its parameters are there before.

This is the one place that decides when parameters come in. They arrive while the phase before
works, unless rows of tensors travel on the ring then, or either phase uses all of wide memory.
"""

from __future__ import annotations

from collections.abc import Sequence

from darwinn_formats.darwinn import Description
from darwinn_sim import chip
from darwinn_sim.isa.codes import DescriptorTag, InfeedSource, InputFifo, ScalarFlag

from darwinn_testbench.compiler.assembler import (
    Assembler,
    Transfer,
    Watcher,
    signal,
    wait,
    walk,
)
from darwinn_testbench.compiler.parameters import UNIT_BYTES
from darwinn_testbench.compiler.program import barrier, through_buffer, wrapped
from darwinn_testbench.compiler.stages.phases import Phase, Piece


_CHUNK_BUNDLES = chip.PROGRAM_BUNDLES * 3 // 4
"""A phase begins a new chunk when the one before has more bundles: no phase has as many as are
left."""


class Stream:
    """Parameters from the host, in the order in which phases need them."""

    def __init__(self, program: Assembler, phases: Sequence[Phase]) -> None:
        self._program = program
        self._units = sum(_units(piece) for phase in phases for piece in phase.load)
        self._sent = 0

    @property
    def is_empty(self) -> bool:
        """Whether no phase needs any."""
        return not self._units

    def open(self) -> None:
        """Ask the host for all of them; they wait in the parameter buffer as far as it goes."""
        size = self._units * UNIT_BYTES
        self._program.transfer(
            Transfer(Description.BASE_ADDRESS_PARAMETER, "", size, DescriptorTag.PARAMETERS)
        )
        # Unit k may only come in when unit k - 2048, whose place it takes, has been sent.
        room = Watcher(
            ScalarFlag.PARAMETER_INFEED,
            depth=0,
            expected=1 - min(self._units, chip.PARAMETER_UNITS),
        )
        self._program.emit(
            "PopInput",
            through_buffer("PopInput", 0, self._units, chip.PARAMETER_UNITS),
            signal(),
            wait("PopInput", room),
            fifo=InputFifo.PARAMETERS,
        )

    def load(self, pieces: Sequence[Piece]) -> None:
        """Have pieces sent to their tiles."""
        program = self._program
        for piece in pieces:
            rows = piece.rows
            program.tile(
                "RingConsumerA",
                piece.tiles,
                walk("RingConsumerA", "wide_write", piece.row, [(len(rows), 1)]),
            )
            popped = Watcher(
                ScalarFlag.PARAMETER_POP, depth=0, expected=wrapped(self._sent + 1)
            )
            program.emit(
                "RingInfeed",
                through_buffer("RingInfeed", self._sent, _units(piece), chip.PARAMETER_UNITS),
                signal(),
                wait("RingInfeed", popped),
                fifo=InfeedSource.PARAMETERS,
                targets=piece.tiles,
                row_words=rows.shape[1] // chip.WORD_BYTES - 1,
                sync_increment=1,
            )
            self._sent += _units(piece)


def _units(piece: Piece) -> int:
    return piece.rows.size // UNIT_BYTES


def parameters_of(phases: Sequence[Phase]) -> bytes:
    """The parameters of phases, in the order in which they are streamed."""
    return b"".join(piece.rows.tobytes() for phase in phases for piece in phase.load)


def write_phases(program: Assembler, first: Sequence[Phase], phases: Sequence[Phase]) -> None:
    """Write the phases ``first``, then have parameters come, and write ``phases``.

    What is first has no parameters: it brings inputs, which the host sends before it is asked for
    parameters.
    """
    for phase in first:
        phase.emit(program)
        barrier(program)
    stream = Stream(program, phases)
    if not stream.is_empty:
        stream.open()
    loaded = -1
    for number, phase in enumerate(phases):
        if program.bundles > _CHUNK_BUNDLES:
            program.next_chunk()
        if phase.load and loaded < number:
            stream.load(phase.load)
            loaded = number
            barrier(program)
        following = _next_load(phases, number)
        if following is not None and loaded < following and _fits(phase, phases[following]):
            stream.load(phases[following].load)
            loaded = following
        phase.emit(program)
        barrier(program)


def _next_load(phases: Sequence[Phase], number: int) -> int | None:
    return next((k for k in range(number + 1, len(phases)) if phases[k].load), None)


def _fits(phase: Phase, following: Phase) -> bool:
    """Whether the parameters of a later phase can come in while this one works."""
    return not (phase.uses_ring or phase.alone or following.alone)
