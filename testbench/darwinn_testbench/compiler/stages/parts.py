"""What each tile computes of an image, and computations that several kinds of operations share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from darwinn_sim.isa.builder import PROGRAM_BUNDLES

from darwinn_testbench.compiler.assembler import Assembler
from darwinn_testbench.compiler.stages.compute import Part, Sums, compute
from darwinn_testbench.compiler.stages.operations import Image, OutputStage, Reach
from darwinn_testbench.compiler.stages.phases import Phase
from darwinn_testbench.compiler.stages.rows import GROUP
from darwinn_testbench.compiler.stages.storage import TILES, Storage


def parts_of(
    rows: Reach,
    columns: Reach,
    source: Storage,
    result: Storage,
    pixel: Sequence[tuple[int, int]],
    *,
    channel: int = 0,
    source_channel: int = 0,
) -> dict[int, Part]:
    """What each tile computes of an image: ``pixel`` are the loops within a pixel of the source."""
    pitch, row_pitch = source.image.pitch, source.row_pitch
    parts = {}
    for tile in TILES:
        if not result.own_pixels(tile):
            continue
        (top, _), (left, _) = result.own(tile)
        height, width = result.computed(tile)
        parts[tile] = Part(
            source.address(tile, rows.first(top), columns.first(left)) + source_channel,
            result.address(tile, top, left) + channel,
            height,
            width,
            [
                *pixel,
                (columns.kernel, columns.dilation * pitch),
                (rows.kernel, rows.dilation * row_pitch),
            ],
            (columns.stride * pitch, rows.stride * row_pitch),
            (result.image.pitch, result.row_pitch),
        )
    return parts


def emitting(sums: Sums, parts: dict[int, Part]) -> Callable[[Assembler], None]:
    """What writes a computation."""
    return lambda program: compute(program, sums, parts)


Computation = tuple[Sums, dict[int, Part]]
"""What all tiles have in common, and what each of them computes."""


@dataclass(frozen=True)
class Several:
    """What writes several computations, one after another."""

    computations: Sequence[Computation]

    def __call__(self, program: Assembler) -> None:
        """Write them."""
        for sums, parts in self.computations:
            compute(program, sums, parts)


def emitting_all(computations: Sequence[Computation]) -> Several:
    """What writes several computations, one after another."""
    return Several(computations)


_FEW = 8
"""Computations that have room in program memory in any case: 16 instructions each."""
_MOST_BUNDLES = PROGRAM_BUNDLES // 4


def short_enough(phase: Phase) -> Iterator[Phase]:
    """A phase of several computations in parts for which program memory has room."""
    several = phase.emit
    if not isinstance(several, Several) or len(several.computations) <= _FEW:
        yield phase
        return
    load, chosen, bundles = phase.load, list[Computation](), 0
    for each in several.computations:
        trial = Assembler()
        empty = trial.bundles
        compute(trial, *each)
        bundles += trial.bundles - empty
        if chosen and bundles > _MOST_BUNDLES:
            yield replace(phase, emit=Several(chosen), load=load)
            load, chosen, bundles = (), [], trial.bundles - empty
        chosen.append(each)
    yield replace(phase, emit=Several(chosen), load=load)


def copying(stage: OutputStage, image: Image, groups: int, row: int) -> Sums:
    """Each word by itself, with weights of 1."""
    return Sums(stage, image.zero_point, 0, 1, groups, GROUP, GROUP, GROUP, row, 0, [(1, 0)])
