"""Compile a model for the chip, and give nothing out that was not verified.

The stages are in ``compiler.stages``. What they make is judged as any compiled model: by the full
verdict with its proof, without a value of an instruction field that no known executable holds.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from darwinn_formats import tflite
from darwinn_formats.brief import brief
from darwinn_formats.errors import ExecutionError, FormatError
from darwinn_formats.files import Content, Source, content_of, name_of
from darwinn_reference.errors import Unsupported
from darwinn_sim import chip

from darwinn_testbench.comparison.verify import verify
from darwinn_testbench.compiler.stages.build import Built, Fate, build
from darwinn_testbench.compiler.stages.executable import COMPILER
from darwinn_testbench.errors import InputError
from darwinn_testbench.explain.conditions import (
    SECOND_PIECE,
    SUPPORTED,
    UNSPECIFIED,
    objections,
)
from darwinn_testbench.explain.graph import graph_of
from darwinn_testbench.explain.placement import Place, is_compiled
from darwinn_testbench.report import Report, Row, Verdict
from darwinn_testbench.report.progress import ProgressCallback, silent

OLDEST_RUNTIME = 14
"""The executables need this runtime version."""
CACHE_BYTES = chip.TILES * chip.WIDE_ROWS * chip.ROW_BYTES
"""Memory of the chip for parameters."""
_DEFECT = "a defect of this compiler, nothing is written"


@dataclass(frozen=True)
class CompileOptions:
    """How a model is compiled.

    Attributes:
        intermediate_tensors: names at which the chip's part ends.
        min_runtime_version: least runtime version that the executable may need.
        num_segments: pieces for several chips, one after another.
        multiple_subgraphs: more than one piece on one chip.
        timeout: seconds after which it is given up; 0: never.
        check: judge what comes out.
    """

    intermediate_tensors: Sequence[str] = ()
    min_runtime_version: int = OLDEST_RUNTIME
    num_segments: int = 1
    multiple_subgraphs: bool = False
    timeout: float = 0.0
    check: bool = True

    def refuse_unfit(self) -> None:
        """Refuse what is not implemented, by name.

        Raises:
            Unsupported: it is not.
        """
        asked = {
            f"--min_runtime_version {self.min_runtime_version} (below {OLDEST_RUNTIME})": (
                self.min_runtime_version < OLDEST_RUNTIME
            ),
            f"--num_segments {self.num_segments}": self.num_segments != 1,
            "--enable_multiple_subgraphs": self.multiple_subgraphs,
        }
        missing = sorted(name for name, given in asked.items() if given)
        if missing:
            raise Unsupported("options", missing, "this compiler")


@dataclass(frozen=True, kw_only=True)
class CompileRow(Row):
    """An operator of the model: where it runs, why, and how the vendor's log would call that."""

    number: int
    operator: str
    place: Place
    reason: str
    status: str


@dataclass(frozen=True, kw_only=True)
class LayerRow:
    """What an operator became on the chip.

    ``phases`` are its steps between barriers; ``kept`` and ``streamed`` bytes of its parameters
    that stay on the chip or come with each inference.
    """

    number: int
    operator: str
    phases: tuple[str, ...]
    kept: int
    streamed: int


@brief
@dataclass(frozen=True, eq=False)
class Compiled:
    """A compiled model.

    ``data`` is the file, empty where nothing goes to the chip or a check failed; ``report`` says
    what became of each operator.
    """

    data: bytes
    report: Report[CompileRow]
    built: Built | None = field(default=None, repr=False)


def compile_model(
    source: Source, options: CompileOptions | None = None, *, progress: ProgressCallback = silent
) -> Compiled:
    """Compile a TensorFlow Lite model.

    Raises:
        FormatError, ModelError, OSError: it cannot be read, or is no model.
        InputError: it is compiled already, or an option names a tensor that it does not have.
        Unsupported: an option is not implemented.
        ExecutionError: the timeout has passed.
    """
    wanted = options or CompileOptions()
    wanted.refuse_unfit()
    file = name_of(source)
    begin = time.perf_counter()
    progress("reading", 0, None)
    data = content_of(source)
    try:
        model = tflite.load(data)
    except FormatError as fault:
        raise fault.with_file(file) from None
    if is_compiled(model):
        raise InputError(f"{file} is compiled already")
    stays = _ends(model, wanted.intermediate_tensors, file)
    progress("compiling", 0, None)
    built = build(model, Path(file).stem, stays)
    seconds = time.perf_counter() - begin
    _within(wanted, begin)
    rows = _rows(model, built.fates)
    if not built.data:
        return Compiled(b"", _nothing(file, rows, data, seconds), built)
    judged = None
    if wanted.check:
        # The chip's part by itself: operators on the CPU have other roundings in its arithmetic.
        before, after = built.part
        judged = verify(
            Content(after, f"{file}, the chip's part compiled"),
            Content(before, f"{file}, the chip's part"),
            assumptions=False,
            progress=progress,
        )
        _within(wanted, begin)
    report = _report(file, rows, data, built, judged, seconds, time.perf_counter() - begin)
    return Compiled(b"" if report.verdict.failed else built.data, report, built)


def _within(options: CompileOptions, begin: float) -> None:
    if options.timeout and time.perf_counter() - begin > options.timeout:
        raise ExecutionError(f"not compiled within {options.timeout:g} s (--timeout_sec)")


def _ends(model: tflite.Model, names: Sequence[str], file: str) -> dict[int, str]:
    """The operators that read tensors at which the chip's part ends."""
    graph = model.subgraphs[0]
    known = {tensor.name for tensor in graph.tensors}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise InputError(f"{file}: no tensor is called {unknown[0]!r} (--intermediate_tensors)")
    ends = {index: graph.tensors[index].name for index in range(len(graph.tensors))}
    return {
        number: f"behind the intermediate tensor {ends[index]}"
        for number, operator in enumerate(graph.operators)
        for index in operator.inputs
        if index >= 0 and ends[index] in names
    }


def _rows(model: tflite.Model, fates: Sequence[Fate]) -> tuple[CompileRow, ...]:
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
            reason = against[0].text if against else _ours(fate)
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
            )
        )
    return tuple(rows)


def _ours(fate: Fate) -> str:
    """A reason of this compiler, where the chip could."""
    return "not compiled yet" if fate.reason == "not supported" else fate.reason


def _nothing(
    file: str, rows: tuple[CompileRow, ...], data: bytes, seconds: float
) -> Report[CompileRow]:
    reasons = Counter(f"{row.operator}: {row.reason}" for row in rows)
    named = "; ".join(list(reasons)[:3])
    return Report(
        command="compile",
        file=file,
        rows=rows,
        figures=_figures(rows, data, None, seconds, seconds),
        decided=Verdict.REFUSED,
        message=f"no operator goes to the chip ({named})" if rows else "there are no operators",
    )


def _report(
    file: str,
    rows: tuple[CompileRow, ...],
    data: bytes,
    built: Built,
    judged: Report[Any] | None,
    seconds: float,
    total: float,
) -> Report[CompileRow]:
    on_chip = sum(row.place is Place.CHIP for row in rows)
    said = f"{on_chip} of {len(rows)} operators on the chip"
    verdict = Verdict.RAN
    if judged is None:
        said += "; not verified (--no-check)"
    elif judged.verdict.failed:
        verdict = judged.verdict
        said = f"{_DEFECT}: {judged.headline}"
    else:
        verdict = judged.verdict
        said += f"; {judged.headline}"
    return Report(
        command="compile",
        file=file,
        rows=rows,
        figures=_figures(rows, data, built, seconds, total),
        decided=verdict,
        message=said,
    )


def _figures(
    rows: Sequence[CompileRow], data: bytes, built: Built | None, seconds: float, total: float
) -> dict[str, Any]:
    executables = built.package.executables if built and built.package else ()
    kept = built.cache.bytes if built and built.cache else 0
    streamed = len(executables[0].parameters) if executables else 0
    return {
        "compiler": COMPILER,
        "input_bytes": len(data),
        "output_bytes": len(built.data) if built else 0,
        "cached_bytes": kept,
        "remaining_bytes": CACHE_BYTES - kept,
        "streamed_bytes": streamed,
        "instruction_bytes": sum(
            len(chunk.bitstream) for each in executables for chunk in each.instruction_bitstreams
        ),
        "narrow_bytes": built.placement.narrow_bytes if built and built.placement else 0,
        "subgraphs": int(bool(executables)),
        "operators_on_chip": sum(row.place is Place.CHIP for row in rows),
        "operators_on_cpu": sum(row.place is Place.CPU for row in rows),
        "layers": _layers(rows, built),
        "compile_seconds": seconds,
        "seconds": total,
    }


def _layers(rows: Sequence[CompileRow], built: Built | None) -> tuple[LayerRow, ...]:
    """What each operator became: its phases, and where its parameters are."""
    if built is None or built.cache is None:
        return ()
    found = []
    for row in rows:
        phases = [phase for phase in built.phases if phase.operation == row.number]
        if not phases:
            continue
        pieces = [piece for phase in phases for piece in phase.load]
        kept = sum(piece.rows.size for piece in pieces if built.cache.segments_of(piece))
        total = sum(piece.rows.size for piece in pieces)
        found.append(
            LayerRow(
                number=row.number,
                operator=row.operator,
                phases=tuple(phase.what for phase in phases),
                kept=kept,
                streamed=total - kept,
            )
        )
    return tuple(found)
