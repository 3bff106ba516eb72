"""An LSTM as phases: steps of 8 and 16 bits, as a public program computes it (docs/chip-facts.md).

The states are on all tiles, so each tile computes all steps for itself, and none has to tell
another what it found. What a step is fed has been computed before, by a layer over all steps.

The steps are one program that runs as often as there are steps. Only narrow-to-wide can read at an
address that a register has, so it brings what a step is fed to one place. None can write at one. So
two instructions of the mesh, which begin before the steps and end behind them, take the hidden
state of each step from the one place where it is to a place of its own on a neighbour.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np
from darwinn_sim import chip
from darwinn_sim.chip import WORD_BYTES
from darwinn_sim.isa.builder import Values
from darwinn_sim.isa.codes import TileFlag, TileUnit, WatcherSide

from darwinn_testbench.compiler.assembler import COUNTER, Assembler, Watcher, signal, wait, walk
from darwinn_testbench.compiler.parameters import UNIT_BYTES
from darwinn_testbench.compiler.program import ALL_TILES, barrier
from darwinn_testbench.compiler.stages.compute import HEAD_ROWS, Part, Sums, compute
from darwinn_testbench.compiler.stages.operands import BYTE_SPAN, unchanged
from darwinn_testbench.compiler.stages.operations import OutputStage, Recurrent
from darwinn_testbench.compiler.stages.parts import copying
from darwinn_testbench.compiler.stages.phases import Areas, Phase, Piece
from darwinn_testbench.compiler.stages.placement import Placement
from darwinn_testbench.compiler.stages.rows import (
    GROUP,
    Rows,
    identity,
    lane_rows,
    one_hot,
    spread_out,
)
from darwinn_testbench.compiler.stages.storage import TILES, Storage, column_of
from darwinn_testbench.compiler.stages.vectors import on_all_tiles, pack_rows
from darwinn_testbench.compiler.stages.writer import merged, write

_SIZE = 2
"""Bytes of a number of 16 bits."""
_GATES = 4
_ROWS = 2
"""Rows of 16-bit weights that multiply a word: two channels a step."""
_LANES = GROUP * GROUP
"""Weights of four channels: each on the diagonal, zero points off it."""
_ON_DIAGONAL = [2 * GROUP * (k // _ROWS) + _ROWS * k + k % _ROWS for k in range(GROUP)]
"""Those on the diagonal where rows have two of a lane."""
_WEST, _EAST = "MeshWest", "MeshEast"
_LAST_COLUMN = chip.GRID_COLUMNS - 1
_GO_ON = TileUnit.MESH_WEST, TileUnit.MESH_EAST
_MADE = TileFlag.MESH_INBOUND_FROM_NORTH
"""What counts hidden states, and goes on counting: a place is written twice for each."""
_MARKS = 2
_MOST_STEPS = (1 << 15) // _MARKS - 1
"""Steps of which a watcher can count the marks."""
_PACKED = 1 + _ROWS
"""Rows of weights that a step makes of four channels: of the candidate, and of the cell."""
_AS_IT_IS = OutputStage(
    np.ones(1, np.float32),
    np.zeros(1, np.int32),
    np.float32(0),
    np.float32((1 << 16) - 1),
    0,
    wide=True,
)
"""The stage of numbers of 16 bits that come out as they are."""


@dataclass(frozen=True)
class _Places:
    """Bytes of narrow memory that a step needs: where each of them begins.

    Attributes:
        fed: what the step is fed, a byte for each unit of each gate.
        back: what comes back from the hidden state, likewise.
        gates: the three gates.
        candidate: the candidate.
        weights: the candidate on diagonals.
        wide_weights: the cell, then its function, on diagonals of 16 bits.
        gated: the candidate times its gate, 16 bits each, as all that follow.
        kept: the cell times its gate.
        zeros: zero points.
        squashed: the function of the cell.
        made: the hidden states of all steps.
        mark: a word that is written when a hidden state is there.
        end: the first byte behind them.
    """

    fed: int
    back: int
    gates: int
    candidate: int
    weights: int
    wide_weights: int
    gated: int
    kept: int
    zeros: int
    squashed: int
    made: int
    mark: int
    end: int


def _places(operation: Recurrent, base: int = 0) -> _Places:
    """Places of an LSTM from byte ``base`` on."""
    units, steps = operation.hidden.pitch, operation.source.pixels
    numbers = (_SIZE,) * 4
    sizes = (_GATES, _GATES, _GATES - 1, 1, GROUP, GROUP * _SIZE, *numbers, steps)
    spans = (*(units * size for size in sizes), WORD_BYTES)
    return _Places(*accumulate(spans, initial=base))


def recurrent_bytes(operation: Recurrent) -> int:
    """Bytes of narrow memory that an LSTM needs for itself."""
    return _places(operation).end


def recurrent_phases(operation: Recurrent, placement: Placement, areas: Areas) -> Iterator[Phase]:
    """The phases of an LSTM."""
    steps = _Steps.of(operation, placement, areas)
    number, load = operation.number, steps.constants.pieces
    yield Phase(number, "LSTM: zero points", steps.zero_points, load, alone=steps.alone)
    yield Phase(number, "LSTM: steps", steps.all_steps, alone=steps.alone)
    yield Phase(number, "LSTM: results", steps.results, alone=steps.alone)


@dataclass(frozen=True)
class _Constants:
    """Rows of weights that are the same for all units, and where in wide memory each begins."""

    rows: tuple[Rows, ...]
    copy: int
    add: int
    spread: int
    wide_spread: int
    shares: int
    back: int
    end: int

    @classmethod
    def of(cls, operation: Recurrent, row: int) -> _Constants:
        """Those of an LSTM, from row ``row`` on."""
        blocks = lane_rows(
            np.pad(
                operation.weights,
                [(0, 0), (0, operation.hidden.pitch - operation.weights.shape[1])],
                constant_values=operation.weight_zero_point,
            ).reshape(len(operation.weights), -1, GROUP),
            operation.weight_zero_point,
            operation.back,
        )
        rows = (
            identity(),
            one_hot((1, 1)),
            spread_out(),
            _wide_diagonal(operation.cell.zero_point),
            _shares(operation.shares, operation.cell.zero_point),
            *blocks,
        )
        begins = list(accumulate((len(each) for each in rows), initial=row))
        copy, add, spread, wide_spread, shares, back = begins[: len(rows) - len(blocks) + 1]
        return cls(rows, copy, add, spread, wide_spread, shares, back, begins[-1])

    @property
    def pieces(self) -> list[Piece]:
        """The rows as parameters of all tiles."""
        begins = accumulate((len(each) for each in self.rows), initial=self.copy)
        return [Piece(ALL_TILES, row, each) for row, each in zip(begins, self.rows, strict=False)]


def _wide_diagonal(zero_point: int) -> Rows:
    """Rows that bring four numbers of 16 bits to the diagonal; off it are zero points."""
    weights = np.zeros((_LANES, _ROWS, WORD_BYTES), np.uint8)
    bias = np.full(_LANES, zero_point, np.int32)
    for channel, lane in enumerate(_ON_DIAGONAL):
        weights[lane, channel // 2, channel % 2] = 1
        bias[lane] = 0
    (rows,) = lane_rows(weights, 0, replace(_AS_IT_IS, bias=bias))
    return rows


def _shares(shares: tuple[int, int], zero_point: int) -> Rows:
    """Rows of 16-bit weights for four numbers of each operand, then for four zero points.

    Sums wrap at 32 bits. So zero points are taken off by products: what is left at last has no more
    than 32 bits, whatever a sum was before.
    """
    rows = np.full((3 * GROUP, UNIT_BYTES // WORD_BYTES, _SIZE), zero_point, np.uint16)
    lanes = np.arange(GROUP)
    for operand, share in enumerate(shares):
        rows[operand * GROUP + lanes, lanes] += np.uint16(share)
        rows[len(shares) * GROUP + operand, :GROUP] -= np.uint16(share)
    return rows.reshape(len(rows), -1).view(np.uint8)


@dataclass(frozen=True)
class _Steps:
    """The steps, each as what writes its instructions."""

    operation: Recurrent
    places: _Places
    fed: Storage
    result: Storage
    hidden: int
    cell: int
    constants: _Constants
    alone: bool

    @classmethod
    def of(cls, operation: Recurrent, placement: Placement, areas: Areas) -> _Steps:
        """Those of an LSTM.

        Raises:
            ValueError: its weights do not fit, or it has too many steps.
        """
        if operation.source.pixels > _MOST_STEPS:
            raise ValueError(f"more than {_MOST_STEPS:,} steps")
        groups = operation.hidden.pitch // GROUP
        size = _Constants.of(operation, 0).end + _PACKED * groups
        row, alone = areas.take(size)
        index = operation.result.index
        return cls(
            operation,
            _places(operation, placement.scratch[index]),
            placement.copies[operation.source.index],
            placement.of(operation.result),
            placement.copies[operation.hidden.index].base,
            placement.copies[operation.cell.index].base,
            _Constants.of(operation, row),
            alone,
        )

    @property
    def _groups(self) -> int:
        """Words of the units."""
        return self.operation.hidden.pitch // GROUP

    def all_steps(self, program: Assembler) -> None:
        """A step, as often as there are pixels."""
        pitch = self.operation.source.pitch // WORD_BYTES
        first = self.fed.base // WORD_BYTES
        self._take_hidden(program)
        program.repeat(
            range(first, first + self.operation.source.pixels * pitch, pitch),
            lambda: self._step(program),
        )

    def _step(self, program: Assembler) -> None:
        """A step, part after part."""
        for part in (
            (self._rows_of_fed,),
            (self._take_fed, self._back),
            (self._gates,),
            (self._candidate,),
            (self._spread_candidate, self._spread_cell),
            (self._rows_of_candidate, self._rows_of_numbers),
            (self._gated, self._kept),
            (self._new_cell, self._squashed),
            (self._spread_squashed,),
            (self._rows_of_numbers,),
            (self._emitted,),
            (self._mark_hidden,),
        ):
            for emit in part:
                emit(program)
            barrier(program, _GO_ON, [_MADE])

    def _rows_of_fed(self, program: Assembler) -> None:
        """What the step is fed, from where the register says."""
        loops = [(GROUP, 1), (self._groups, GROUP)]
        pack_rows(program, 0, loops, self.constants.end, self._groups, register=COUNTER)

    def _take_fed(self, program: Assembler) -> None:
        """The same, at its place."""
        program.tile(
            "WideToNarrow",
            ALL_TILES,
            walk("WideToNarrow", "wide_read", self.constants.end, [(self._groups, 1)]),
            walk(
                "WideToNarrow",
                "narrow_write",
                self.places.fed // WORD_BYTES,
                [(GROUP, 1), (self._groups, GROUP)],
            ),
            row_loop=1,
        )

    def _take_hidden(self, program: Assembler) -> None:
        """Send the hidden state of each step to a neighbour, when it is there.

        The last column is sent east, the others west: nothing goes over the edge.
        """
        pitch = self.operation.hidden.pitch // WORD_BYTES
        there = Watcher(_MADE, depth=1, expected=1, stride=_MARKS)
        for unit, columns, step in (
            (_WEST, range(1, _LAST_COLUMN + 1), -1),
            (_EAST, range(_LAST_COLUMN - 1, _LAST_COLUMN), 1),
        ):
            by_tile: dict[int, Values] = {}
            for tile in TILES:
                loops = [(pitch, 1), (self.operation.source.pixels, 0)]
                if column_of(tile) in columns:
                    sent = walk(unit, "narrow_read", self.hidden // WORD_BYTES, loops)
                    told = merged(signal("read_producer", depth=1), wait(unit, there))
                    by_tile[tile] = merged(by_tile.get(tile, {}), sent, told)
                if column_of(tile) - step in columns:
                    loops = [(pitch, 1), (self.operation.source.pixels, pitch)]
                    base = self.places.made // WORD_BYTES
                    taken = walk(unit, "narrow_write", base, loops)
                    by_tile[tile] = merged(by_tile.get(tile, {}), taken)
            write(program, unit, by_tile)

    def _mark_hidden(self, program: Assembler) -> None:
        """Tell that a hidden state is there; end when it has been sent.

        The first word says that it is there. The second one waits for those that send it.
        """
        unit = "MeshSouth"
        by_tile: dict[int, Values] = {}
        for tile in TILES:
            sending = []
            if column_of(tile) > 0:
                sending.append(TileFlag.MESH_OUTBOUND_FOR_WEST)
            if column_of(tile) == _LAST_COLUMN - 1:
                sending.append(TileFlag.MESH_OUTBOUND_FOR_EAST)
            if not sending:
                continue
            sent = (Watcher(flag, 0, 0, 1, side=WatcherSide.SECOND) for flag in sending)
            by_tile[tile] = merged(
                walk(unit, "narrow_write", self.places.mark // WORD_BYTES, [(_MARKS, 0)]),
                signal("write_producer"),
                wait(unit, *sent),
                {"immediate_valid": 1},
            )
        write(program, unit, by_tile)

    def results(self, program: Assembler) -> None:
        """What the steps made, each tile its own pixels."""
        image, pitch = self.operation.result, self.operation.hidden.pitch
        parts = {}
        for tile in TILES:
            (top, bottom), (left, right) = self.result.own(tile)
            if bottom <= top or right <= left:
                continue
            parts[tile] = Part(
                self.places.made + (top * image.width + left) * pitch,
                self.result.address(tile, top, left),
                bottom - top,
                right - left,
                [],
                (pitch, image.width * pitch),
                (pitch, self.result.row_pitch),
            )
        compute(program, self._copying(), parts)

    def _copying(self) -> Sums:
        image = self.operation.hidden
        return copying(unchanged(image), image, self._groups, self.constants.copy)

    def zero_points(self, program: Assembler) -> None:
        """Zero points of 16 bits, whatever is read."""
        stage = replace(
            _AS_IT_IS,
            low=np.float32(0),
            high=np.float32(0),
            zero_point=self.operation.cell.zero_point,
        )
        sums = self._sums(stage, self.constants.copy, 1)
        on_all_tiles(program, sums, self.hidden, self.places.zeros, [(1, 0)])

    def _back(self, program: Assembler) -> None:
        """The weights times the hidden state."""
        lanes = _GATES * self.operation.hidden.pitch
        blocks = -(-lanes // chip.LANES)
        sums = Sums(
            self.operation.back,
            self.operation.hidden.zero_point,
            self.operation.weight_zero_point,
            self._groups,
            blocks,
            min(lanes, chip.LANES),
            lanes - (blocks - 1) * chip.LANES,
            0,
            self.constants.back,
            HEAD_ROWS + self._groups,
            [(self._groups, 1)],
        )
        on_all_tiles(program, sums, self.hidden, self.places.back, [(self._groups, GROUP)])

    def _gates(self, program: Assembler) -> None:
        self._functions(program, self.operation.gate, 0, _GATES - 1, self.places.gates)

    def _candidate(self, program: Assembler) -> None:
        self._functions(program, self.operation.candidate, _GATES - 1, 1, self.places.candidate)

    def _functions(
        self, program: Assembler, stage: OutputStage, first: int, count: int, target: int
    ) -> None:
        """A function of what is fed and what comes back, added up, of some of the gates."""
        at = first * self.operation.hidden.pitch
        sums = replace(
            self._sums(stage, self.constants.add, 2 * _ROWS),
            blocks=count * self._groups,
            wide_weights=True,
        )
        distance = self.places.back - self.places.fed
        read = [(_ROWS, _SIZE), (2, distance)]
        on_all_tiles(program, sums, self.places.fed + at, target, read)

    def _spread_candidate(self, program: Assembler) -> None:
        """The candidate on diagonals."""
        stage = self.operation.candidate
        zero_point = stage.zero_point
        copy = replace(
            _AS_IT_IS,
            low=np.float32(-zero_point),
            high=np.float32(BYTE_SPAN - zero_point),
            zero_point=zero_point,
            wide=False,
        )
        sums = replace(
            self._sums(copy, self.constants.spread, 1, zero_point),
            lanes=_LANES,
            last_lanes=_LANES,
        )
        on_all_tiles(program, sums, self.places.candidate, self.places.weights, [(1, 0)])

    def _spread_cell(self, program: Assembler) -> None:
        self._spread_numbers(program, self.cell)

    def _spread_squashed(self, program: Assembler) -> None:
        self._spread_numbers(program, self.places.squashed)

    def _spread_numbers(self, program: Assembler, source: int) -> None:
        """Numbers of 16 bits on diagonals."""
        # That it has biases of each lane is all that counts of this stage.
        stage = replace(_AS_IT_IS, bias=np.zeros(_LANES, np.int32))
        sums = replace(
            self._sums(stage, self.constants.wide_spread, _ROWS),
            lanes=_LANES,
            last_lanes=_LANES,
            read_block=GROUP * _SIZE,
            wide_values=True,
        )
        read = [(_ROWS, WORD_BYTES)]
        on_all_tiles(program, sums, source, self.places.wide_weights, read)

    def _rows_of_candidate(self, program: Assembler) -> None:
        loops = [(GROUP, 1), (self._groups, GROUP)]
        row = self.constants.end + _ROWS * self._groups
        pack_rows(program, self.places.weights, loops, row, self._groups)

    def _rows_of_numbers(self, program: Assembler) -> None:
        rows = _ROWS * self._groups
        loops = [(GROUP, 1), (rows, GROUP)]
        pack_rows(program, self.places.wide_weights, loops, self.constants.end, rows)

    def _gated(self, program: Assembler) -> None:
        """Input gate times candidate."""
        sums = replace(
            self._sums(self.operation.gated, self.constants.end + _ROWS * self._groups, 1),
            weight_zero_point=self.operation.candidate.zero_point,
            block_rows=1,
        )
        on_all_tiles(program, sums, self.places.gates, self.places.gated, [(1, 0)])

    def _kept(self, program: Assembler) -> None:
        """Forget gate times cell."""
        self._times_numbers(program, self.operation.kept, 1, self.places.kept)

    def _emitted(self, program: Assembler) -> None:
        """Output gate times the function of the cell."""
        self._times_numbers(program, self.operation.emitted, 2, self.hidden)

    def _times_numbers(
        self, program: Assembler, stage: OutputStage, gate: int, target: int
    ) -> None:
        """A gate times numbers of 16 bits, which are in rows."""
        sums = replace(
            self._sums(stage, self.constants.end, _ROWS),
            weight_zero_point=self.operation.cell.zero_point,
            block_rows=_ROWS,
            wide_weights=True,
        )
        source = self.places.gates + gate * self.operation.hidden.pitch
        on_all_tiles(program, sums, source, target, [(_ROWS, _SIZE)])

    def _new_cell(self, program: Assembler) -> None:
        self._add_up(program, self.operation.memory, self.cell)

    def _squashed(self, program: Assembler) -> None:
        self._add_up(program, self.operation.squashed, self.places.squashed)

    def _add_up(self, program: Assembler, stage: OutputStage, target: int) -> None:
        """The shares of both operands in the new cell."""
        sums = replace(
            self._sums(stage, self.constants.shares, 3 * GROUP),
            weight_zero_point=self.operation.cell.zero_point,
            read_block=GROUP * _SIZE,
            wide_weights=True,
            wide_values=True,
        )
        apart = self.places.kept - self.places.gated
        read = [(GROUP, _SIZE), (3, apart)]
        on_all_tiles(program, sums, self.places.gated, target, read)

    def _sums(self, stage: OutputStage, row: int, taps: int, zero_point: int = 0) -> Sums:
        """Sums of a word of each unit's bytes, by weights that are the same for all."""
        groups = self._groups
        return Sums(stage, zero_point, 0, taps, groups, GROUP, GROUP, GROUP, row, 0, [(taps, 1)])
