"""What became of a model: the rows of its operators, and figures of the whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from darwinn_formats import tflite
from darwinn_sim import chip

from darwinn_testbench.compilation.times import inference_of, phase_cycles, timed
from darwinn_testbench.compiler.stages.build import FOLDED, Built, Fate, Piece
from darwinn_testbench.compiler.stages.executable import COMPILER
from darwinn_testbench.compiler.stages.operations import AnyOperation
from darwinn_testbench.explain.conditions import (
    SECOND_PIECE,
    SUPPORTED,
    UNSPECIFIED,
    UNSUPPORTED,
    objections,
)
from darwinn_testbench.explain.graph import graph_of
from darwinn_testbench.explain.placement import Place
from darwinn_testbench.report import Row, Verdict

CACHE_BYTES = chip.TILES * chip.WIDE_ROWS * chip.ROW_BYTES
"""Memory of the chip for parameters."""


@dataclass(frozen=True, kw_only=True)
class CompileRow(Row):
    """An operator of a model: where it runs, why, and how the vendor's log would call that.

    ``piece`` is the number of the chip's piece that has it, None on the CPU. ``file`` is the model
    that it is written to, where there are several.
    """

    number: int
    operator: str
    place: Place
    reason: str
    status: str
    piece: int | None = None
    file: str = ""

    @property
    def case(self) -> str:
        """With the file, if there are several."""
        return ": ".join(filter(None, (self.file, self.name)))


@dataclass(frozen=True, kw_only=True)
class LayerRow:
    """What an operator became on the chip.

    ``phases`` are its steps between barriers, ``piece`` the piece that they are in, ``tiles`` how
    many tiles compute, ``bands`` how often its image is computed in part. ``bytes`` of narrow
    memory hold its result on each tile. ``kept`` and ``streamed`` are bytes of its parameters that
    stay on the chip or come with each inference. ``cycles`` are those of the event model from the
    end of what is before it to its own end, None if they were not asked for.
    """

    number: int
    operator: str
    phases: tuple[str, ...]
    kept: int
    streamed: int
    piece: int = 0
    tiles: int = 0
    bands: int = 1
    bytes: int = 0
    cycles: int | None = None
    file: str = ""


@dataclass(frozen=True, kw_only=True)
class FileRow:
    """A model that was compiled: its sizes, and how the parameter memory is used.

    ``remaining`` is what is left of it after all models that share it. ``milliseconds`` are
    predicted for its pieces on the chip, None if that was not asked for.
    """

    name: str
    verdict: Verdict
    operators_on_chip: int
    operators_on_cpu: int
    subgraphs: int
    input_bytes: int
    output_bytes: int
    cached_bytes: int
    remaining_bytes: int
    streamed_bytes: int
    instruction_bytes: int
    milliseconds: float | None = None


def rows_of(model: tflite.Model, fates: Sequence[Fate], file: str = "") -> tuple[CompileRow, ...]:
    """Each operator: the reasons are those of ``explain`` where its conditions have one."""
    nodes = graph_of(model).nodes
    rows = []
    for fate in fates:
        reason, status = fate.reason, SUPPORTED
        if fate.behind is not None:
            status = SECOND_PIECE
        elif not fate.on_chip:
            against = [each for each in objections(nodes[fate.number]) if each.condition.sure]
            status = against[0].condition.message if against else UNSPECIFIED
            reason = against[0].text if against and not _is_ours(fate, status) else _ours(fate)
        outputs = nodes[fate.number].outputs
        rows.append(
            CompileRow(
                name=outputs[0].name if outputs else str(fate.number),
                verdict=Verdict.PASS,
                number=fate.number,
                operator=fate.name,
                place=Place.CHIP if fate.on_chip else Place.CPU,
                reason=reason,
                status=status,
                piece=fate.piece if fate.on_chip else None,
                file=file,
            )
        )
    return tuple(rows)


def _is_ours(fate: Fate, status: str) -> bool:
    """Whether the reason is this compiler's own: it has what the vendor's has never had."""
    return fate.reason == FOLDED or (status == UNSUPPORTED and fate.reason != "not supported")


def _ours(fate: Fate) -> str:
    """A reason of this compiler, where the chip could."""
    return "not compiled yet" if fate.reason == "not supported" else fate.reason


def why_nothing(rows: Sequence[CompileRow]) -> str:
    """Why no operator goes to the chip."""
    reasons = Counter(f"{row.operator}: {row.reason}" for row in rows)
    named = "; ".join(list(reasons)[:3])
    return f"no operator goes to the chip ({named})" if rows else "there are no operators"


def figures_of(
    rows: Sequence[CompileRow],
    size: int,
    built: Built | None,
    *,
    compile_seconds: float,
    seconds: float,
    shared: int = 0,
    times: bool = False,
) -> dict[str, Any]:
    """The figures of a model of ``size`` bytes.

    ``shared`` are bytes of the parameter memory that other models take. With ``times`` the layers
    have cycles.
    """
    pieces = built.pieces if built else ()
    executables = [each for piece in pieces for each in piece.package.executables]
    kept = sum(piece.cache.bytes for piece in pieces)
    return {
        "compiler": COMPILER,
        "input_bytes": size,
        "output_bytes": len(built.data) if built else 0,
        "cached_bytes": kept,
        "remaining_bytes": CACHE_BYTES - kept - shared,
        "streamed_bytes": sum(len(inference_of(piece).parameters) for piece in pieces),
        "instruction_bytes": sum(
            len(chunk.bitstream) for each in executables for chunk in each.instruction_bitstreams
        ),
        "narrow_bytes": max((piece.placement.narrow_bytes for piece in pieces), default=0),
        "subgraphs": len(pieces),
        "operators_on_chip": sum(row.place is Place.CHIP for row in rows),
        "operators_on_cpu": sum(row.place is Place.CPU for row in rows),
        **_layers(rows, pieces, times=times),
        "compile_seconds": compile_seconds,
        "seconds": seconds,
    }


def _layers(rows: Sequence[CompileRow], pieces: Sequence[Piece], *, times: bool) -> dict[str, Any]:
    """What each operator became, and the predicted milliseconds of all pieces if asked for."""
    found: list[LayerRow] = []
    seconds = 0.0
    for number, piece in enumerate(pieces):
        cycles: Sequence[int | None] = [None] * len(piece.phases)
        if times:
            result = timed(inference_of(piece))
            seconds += result.seconds
            cycles = phase_cycles(piece, result)
        found += (
            _layer(row, number, piece, cycles)
            for row in rows
            if any(phase.operation == row.number for phase in piece.phases)
        )
    order = sorted(found, key=lambda layer: layer.number)
    return {"layers": tuple(order), "milliseconds": 1e3 * seconds if times else None}


def _layer(row: CompileRow, number: int, piece: Piece, cycles: Sequence[int | None]) -> LayerRow:
    mine = [k for k, phase in enumerate(piece.phases) if phase.operation == row.number]
    loaded = [each for k in mine for each in piece.phases[k].load]
    kept = sum(each.rows.size for each in loaded if piece.cache.segments_of(each))
    total = sum(each.rows.size for each in loaded)
    operations = [each for each in piece.graph.operations if each.number == row.number]
    counted = [cycles[k] for k in mine]
    return LayerRow(
        number=row.number,
        operator=row.operator,
        phases=tuple(piece.phases[k].what for k in mine),
        kept=kept + piece.resident.get(row.number, 0),
        streamed=total - kept,
        piece=number,
        cycles=None if None in counted else sum(filter(None, counted)),
        file=row.file,
        **_placed(operations[-1], piece) if operations else {},
    )


def _placed(operation: AnyOperation, piece: Piece) -> dict[str, int]:
    """Tiles that compute an operation, bands, and bytes of its result on each tile."""
    place = piece.graph.operations.index(operation)
    chain = next((c for c in piece.placement.chains if c.first <= place <= c.last), None)
    view = piece.placement
    if chain is not None and operation.result.index not in (*view.parts, *view.copies):
        view = view.in_band(0)
    storage = view.of(operation.result)
    if operation.result.is_vector:
        tiles = min(-(-operation.result.channels // chip.LANES), chip.TILES)
    else:
        tiles = sum(storage.own_pixels(tile) > 0 for tile in range(chip.TILES))
    return {"tiles": tiles, "bands": chain.bands if chain else 1, "bytes": storage.bytes}


def file_row(name: str, verdict: Verdict, figures: dict[str, Any]) -> FileRow:
    """The figures of a model as a row of those of several."""
    fields = FileRow.__dataclass_fields__
    return FileRow(
        name=name, verdict=verdict, **{key: figures[key] for key in fields if key in figures}
    )
