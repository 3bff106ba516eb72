"""Compare a program's transfers with the compiler's hints: DMA trace and DMA hints.

The trace comes from executing the scalar core. The hints only say what is expected of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Annotated, Any

import numpy as np
from darwinn_formats.brief import brief
from darwinn_formats.darwinn import CompiledModel, Executable, load
from darwinn_formats.files import Source
from darwinn_sim.accelerator import Accelerator
from darwinn_sim.errors import IncompleteProgram, SimulationError
from darwinn_sim.host.buffers import layer_bytes
from darwinn_sim.host.dma_trace import DmaComparison, Transfer, compare_with_hints
from darwinn_sim.isa import grading
from darwinn_sim.isa.grading import Assumption

from darwinn_testbench.chip.inspection import check_number
from darwinn_testbench.chip.model import executable_of_stream
from darwinn_testbench.report import EXIT_CODES, Report, Row, Verdict, verdict_of
from darwinn_testbench.report.result import PYTHON_ONLY
from darwinn_testbench.request import settings
from darwinn_testbench.request.record import takes
from darwinn_testbench.request.records import Seeded
from darwinn_testbench.request.setting import Setting


@brief
@dataclass(frozen=True, kw_only=True)
class DmaFigures(Row):
    """One run of one executable: how its transfers compare with its hints.

    ``issued`` counts transfers, interrupts and fences, ``beyond_hints`` those that follow hints
    which cover the run only in part. ``entries`` pairs each hint with what the chip did.
    """

    type: str
    hints: int
    issued: int = 0
    fully_deterministic: bool
    beyond_hints: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    entries: list[Any] = field(default_factory=list)
    comparison: DmaComparison | None = field(default=None, repr=False, metadata=PYTHON_ONLY)

    drawn = ("bytes_in", "bytes_out")
    unit = "bytes"


@dataclass(frozen=True)
class DmaCheck(Seeded):
    """What the executables of a file move, against their hints. ``with_tiles`` runs the whole
    chip, in place of the scalar core and its DMA alone."""

    source: Source
    _: KW_ONLY
    executable: settings.Executable = None
    with_tiles: Annotated[
        bool,
        Setting("--full", "Run the tiles too, and not only the scalar core with its DMA."),
    ] = False
    assumptions: settings.Assumptions = True


def checked_dma(asked: DmaCheck) -> Report[DmaFigures]:
    """Run every executable of a file and compare its DMA with its hints.

    Only the scalar core and its DMA run, with inputs, outputs and scratch filled from ``seed``, so
    that this works for programs whose tile instructions are refused; ``with_tiles`` runs the whole
    chip. Without ``assumptions`` what is executed may hold no assumed value. An executable that
    refuses or fails gives a row that says so. A bare instruction stream has no hints: its transfers
    are shown, and nothing is judged. What has nothing to be compared with is RAN, not PASS.

    Raises:
        FormatError, OSError: the file is not valid or cannot be read.
        InputError: no such executable, or a bare stream whose buffers cannot be told.
        SimulationError: the scalar core of a bare stream fails.
    """
    seed, executable, with_tiles = asked.seed, asked.executable, asked.with_tiles
    file = load(asked.source)
    bare = file.stream is not None
    executables = (executable_of_stream(file),) if bare else file.executables
    check_number("executable", executable, len(executables), file.file)
    rows: dict[int, DmaFigures] = {}
    assumed: list[tuple[Assumption, ...]] = []
    for done, group in enumerate(_groups(executables, file.models)):
        asked.progress("running", done, None)
        accelerator = Accelerator(seed=seed, dma_only=not with_tiles, assumptions=asked.assumptions)
        for number, row in _run_group(executables, group, accelerator):
            rows[number] = row
        assumed.append(accelerator.assumed)
    chosen = tuple(rows[k] for k in range(len(executables)) if executable in (None, k))
    return Report(
        command="dma",
        file=file.file,
        rows=chosen,
        figures={
            "seed": seed,
            "with_tiles": with_tiles,
            "assumptions": grading.merged(assumed),
        },
        message="; ".join(
            [
                "a bare instruction stream: there are no hints to compare with"
                if bare
                else _summary(chosen),
                *(row.message for row in chosen if not EXIT_CODES[row.verdict] and row.message),
            ]
        ),
    )


check_dma = takes(DmaCheck, "check_dma")(checked_dma)


def _summary(rows: Sequence[DmaFigures]) -> str:
    right = sum(row.verdict is Verdict.PASS for row in rows)
    silent = sum(row.verdict is Verdict.RAN for row in rows)
    text = f"{right} of {len(rows)} executables move what their hints say"
    return f"{text}; {silent} without hints to compare with" if silent else text


def dma_figures(
    executable: Executable, transfers: Sequence[Transfer], name: str = ""
) -> DmaFigures:
    """The comparison of one run of ``executable`` with its hints, as a row."""
    comparison = compare_with_hints(executable.dma_hints, transfers)
    first = comparison.first_difference
    message = ""
    if first is not None:
        hint = first.hint.text() if first.hint else "nothing"
        issued = first.issued.text() if first.issued else "nothing"
        message = f"entry {first.index}: the hint says {hint}, the chip did {issued}"
    elif (merged := comparison.merged) is not None and merged.hint is not None:
        same = merged.hint.size - merged.against
        message = (
            f"entry {merged.index}: one {merged.hint.direction.value} hint stands for neighbours "
            f"of both directions, {same:,} bytes and {merged.against:,} the other way: right by "
            "descriptors (PCIe), but a host that goes by hints (USB) would go wrong"
        )
    return DmaFigures(
        name=name or executable.name,
        verdict=_verdict(executable, comparison),
        message=message,
        type=executable.type.name,
        hints=len(executable.dma_hints.hints),
        issued=len(transfers),
        fully_deterministic=comparison.fully_deterministic,
        beyond_hints=comparison.beyond_hints,
        bytes_in=_bytes(transfers, "infeed"),
        bytes_out=_bytes(transfers, "outfeed"),
        entries=[row.as_json() for row in comparison.rows],
        comparison=comparison,
    )


def _verdict(executable: Executable, comparison: DmaComparison) -> Verdict:
    if not comparison.equal:
        return Verdict.MISMATCH
    return Verdict.PASS if executable.dma_hints.hints else Verdict.RAN


def _bytes(transfers: Sequence[Transfer], direction: str) -> int:
    return sum(each.size for each in transfers if each.direction.value == direction)


def _groups(
    executables: Sequence[Executable], models: Iterable[CompiledModel]
) -> Iterator[tuple[Executable, ...]]:
    """Executables that run one after another on one chip: the pairs, then whatever is left."""
    paired: list[Executable] = []
    for model in models:
        group = _members(model)
        paired += group
        yield group
    for executable in executables:
        if not any(executable is each for each in paired):
            yield (executable,)


def _members(model: CompiledModel) -> tuple[Executable, ...]:
    return (model.inference,) if model.caching is None else (model.caching, model.inference)


def _run_group(
    executables: Sequence[Executable],
    group: Sequence[Executable],
    accelerator: Accelerator,
) -> Iterator[tuple[int, DmaFigures]]:
    """Numbers of the executables of ``group``, with what each of them moves."""
    generator = np.random.default_rng(accelerator.seed)
    for executable in group:
        number = next(k for k, each in enumerate(executables) if each is executable)
        inputs = {
            layer.name: generator.bytes(layer_bytes(layer) * max(1, executable.batch_size))
            for layer in executable.input_layers
        }
        name = f"executable {number}"
        try:
            result = accelerator.run(executable, inputs, as_far_as_it_goes=True)
            row = dma_figures(executable, result.transfers, name)
            yield number, _noted(row, executable) if result.incomplete else row
        except SimulationError as error:
            yield number, _failed(executable, name, error)


def _noted(row: DmaFigures, executable: Executable) -> DmaFigures:
    """The row with a note that it goes as far as the chunks that there are."""
    note = str(IncompleteProgram(len(executable.instruction_bitstreams)))
    return replace(row, message="; ".join(filter(None, (row.message, note))))


def _failed(executable: Executable, name: str, error: SimulationError) -> DmaFigures:
    return DmaFigures(
        name=name,
        verdict=verdict_of(error) or Verdict.FAULT,
        message=str(error),
        type=executable.type.name,
        hints=len(executable.dma_hints.hints),
        fully_deterministic=executable.dma_hints.fully_deterministic,
    )
