"""Compile models for the chip, and give nothing out that was not verified.

The stages are in ``compiler.stages``. What they make is judged as any compiled model: by the full
verdict with its proof, without a value of an instruction field that no known executable holds.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from darwinn_formats import tflite
from darwinn_formats.brief import brief
from darwinn_formats.errors import ExecutionError, FormatError
from darwinn_formats.files import Content, Source, content_of, name_of
from darwinn_reference.errors import Unsupported

from darwinn_testbench.comparison.verify import verify
from darwinn_testbench.compilation.outcome import (
    CompileRow,
    figures_of,
    file_row,
    rows_of,
    why_nothing,
)
from darwinn_testbench.compilation.segments import segmented
from darwinn_testbench.compilation.sharing import check_sharing
from darwinn_testbench.compilation.times import Always, Predicted
from darwinn_testbench.compiler.stages.build import Asked, Built, build_together
from darwinn_testbench.errors import InputError
from darwinn_testbench.explain.placement import is_compiled
from darwinn_testbench.report import Report, Verdict, counted, worst
from darwinn_testbench.report.progress import ProgressCallback, silent

OLDEST_RUNTIME = 14
"""The executables need this runtime version."""
_DEFECT = "a defect of this compiler, nothing is written"


@dataclass(frozen=True)
class CompileOptions:
    """How models are compiled.

    Attributes:
        intermediate_tensors: names at which the chip's part ends.
        min_runtime_version: least runtime version that the executable may need.
        num_segments: pieces for several chips, one after another.
        multiple_subgraphs: further pieces on the chip whatever they take; else only those that
            take less time than their operators on the CPU.
        timeout: seconds after which it is given up; 0: never.
        check: judge what comes out.
        times: predict the cycles of each layer.
    """

    intermediate_tensors: Sequence[str] = ()
    min_runtime_version: int = OLDEST_RUNTIME
    num_segments: int = 1
    multiple_subgraphs: bool = False
    timeout: float = 0.0
    check: bool = True
    times: bool = False

    def refuse_unfit(self, models: int = 1) -> None:
        """Refuse what is not implemented, by name, of so many models.

        Raises:
            Unsupported: it is not.
        """
        segments = f"--num_segments {self.num_segments}"
        asked = {
            f"--min_runtime_version {self.min_runtime_version} (below {OLDEST_RUNTIME})": (
                self.min_runtime_version < OLDEST_RUNTIME
            ),
            f"{segments} of {models} models": self.num_segments > 1 < models,
            f"{segments} with --intermediate_tensors": bool(
                self.num_segments > 1 and self.intermediate_tensors
            ),
        }
        missing = sorted(name for name, given in asked.items() if given)
        if missing:
            raise Unsupported("options", missing, "this compiler")


@brief
@dataclass(frozen=True, eq=False)
class Compiled:
    """A compiled model.

    ``name`` is that of the model, without suffix. ``data`` is the file, empty where nothing goes to
    the chip or a check failed; ``report`` says what became of each operator.
    """

    data: bytes
    report: Report[CompileRow]
    built: Built | None = field(default=None, repr=False)
    name: str = ""


@dataclass(frozen=True)
class _Model:
    """A model that is to be compiled."""

    file: str
    name: str
    data: bytes
    model: tflite.Model


def compile_model(
    source: Source, options: CompileOptions | None = None, *, progress: ProgressCallback = silent
) -> Compiled:
    """Compile a TensorFlow Lite model for one chip.

    Raises:
        FormatError, ModelError, OSError: it cannot be read, or is no model.
        InputError: it is compiled already, or an option names a tensor that it does not have.
        Unsupported: an option is not implemented, or makes several files.
        ExecutionError: the timeout has passed.
    """
    wanted = options or CompileOptions()
    if wanted.num_segments > 1:
        raise Unsupported("options", [f"--num_segments {wanted.num_segments}"], "one file")
    (compiled,) = compile_models([source], wanted, progress=progress)
    return compiled


def compile_models(
    sources: Sequence[Source],
    options: CompileOptions | None = None,
    *,
    progress: ProgressCallback = silent,
) -> tuple[Compiled, ...]:
    """Compile a model in segments, or models whose parameters share the memory of one chip.

    Models that are compiled together stay on the chip together: the first one's parameters have
    memory first. Segments are models for a chip each, of about the same predicted time.

    Raises:
        FormatError, ModelError, OSError: one cannot be read, or is no model.
        InputError: one is compiled already, an option names a tensor that it does not have, it has
            fewer operators than segments are asked for, or two models have one name.
        Unsupported: an option is not implemented, or a model has several graphs.
        ExecutionError: the timeout has passed.
    """
    wanted = options or CompileOptions()
    wanted.refuse_unfit(len(sources))
    begin = time.perf_counter()
    progress("reading", 0, None)
    models = [_opened(source) for source in sources]
    names = [each.name for each in models]
    if len(set(names)) < len(names):
        raise InputError(f"two models have one name: {', '.join(names)}")
    worth = Always() if wanted.multiple_subgraphs else Predicted()
    if wanted.num_segments > 1:
        progress("cutting", 0, None)
        model = models[0]
        parts = segmented(model.model, model.name, wanted.num_segments, worth)
        models = [replace(model, name=name, model=each, data=data) for name, each, data, _ in parts]
        built = tuple(each for *_, each in parts)
        groups = [[k] for k in range(len(built))]
    else:
        progress("compiling", 0, None)
        asked = [
            Asked(each.model, each.name, _ends(each, wanted.intermediate_tensors, len(models) > 1))
            for each in models
        ]
        built = build_together(asked, worth)
        groups = [list(range(len(built)))]
    _within(wanted, begin)
    seconds = time.perf_counter() - begin
    found: list[Compiled] = []
    for group in groups:
        found += _judged_together(
            [(models[k], built[k]) for k in group], wanted, begin, seconds, progress
        )
    return tuple(found)


def _opened(source: Source) -> _Model:
    file = name_of(source)
    data = content_of(source)
    try:
        model = tflite.load(data)
    except FormatError as fault:
        raise fault.with_file(file) from None
    if is_compiled(model):
        raise InputError(f"{file} is compiled already")
    if len(model.subgraphs) > 1:
        raise Unsupported("control flow", _calls(model), "the compiler")
    return _Model(file, Path(file).stem, data, model)


def _calls(model: tflite.Model) -> list[str]:
    """The operators that call other graphs of a model, or how many graphs it has."""
    names = (model.code(each).operator.name for each in model.subgraphs[0].operators)
    return sorted(_CALLS.intersection(names)) or [f"{len(model.subgraphs)} graphs"]


_CALLS = frozenset({"CALL", "CALL_ONCE", "IF", "STABLEHLO_WHILE", "WHILE"})


def _within(options: CompileOptions, begin: float) -> None:
    if options.timeout and time.perf_counter() - begin > options.timeout:
        raise ExecutionError(f"not compiled within {options.timeout:g} s (--timeout_sec)")


def _ends(opened: _Model, names: Sequence[str], several: bool) -> dict[int, str]:
    """The operators that read tensors at which the chip's part ends.

    Of ``several`` models each may have some of the tensors.
    """
    graph = opened.model.subgraphs[0]
    known = {tensor.name for tensor in graph.tensors}
    unknown = [name for name in names if name not in known]
    if unknown and not several:
        raise InputError(
            f"{opened.file}: no tensor is called {unknown[0]!r} (--intermediate_tensors)"
        )
    ends = {index: graph.tensors[index].name for index in range(len(graph.tensors))}
    return {
        number: f"behind the intermediate tensor {ends[index]}"
        for number, operator in enumerate(graph.operators)
        for index in operator.inputs
        if index >= 0 and ends[index] in names
    }


def _judged_together(
    members: Sequence[tuple[_Model, Built]],
    options: CompileOptions,
    begin: float,
    seconds: float,
    progress: ProgressCallback,
) -> list[Compiled]:
    """Judge what shares a chip: each piece, and that all of them leave each other alone."""
    pieces = [piece for _, built in members for piece in built.pieces]
    shared = ""
    if options.check and len(pieces) > 1:
        progress("running all pieces on one chip", 0, None)
        shared = check_sharing([piece.part[1] for piece in pieces])
    kept = sum(piece.cache.bytes for piece in pieces)
    found = []
    for opened, built in members:
        judged = _judge(opened.file, built, progress) if options.check and built.data else []
        _within(options, begin)
        mine = sum(piece.cache.bytes for piece in built.pieces)
        rows = rows_of(opened.model, built.fates)
        figures = figures_of(
            rows,
            len(opened.data),
            built,
            compile_seconds=seconds,
            seconds=time.perf_counter() - begin,
            shared=kept - mine,
            times=options.times,
        )
        verdict, said = _said(rows, built, judged, shared, figures)
        report = Report(
            command="compile",
            file=opened.file,
            rows=rows,
            figures={**figures, "files": (file_row(opened.name, verdict, figures),)},
            decided=verdict,
            message=said,
        )
        data = b"" if verdict.failed else built.data
        found.append(Compiled(data, report, built, opened.name))
    return found


def _judge(file: str, built: Built, progress: ProgressCallback) -> list[Report[Any]]:
    """Judge each piece by itself: operators on the CPU have other roundings in its arithmetic."""
    found = []
    for number, piece in enumerate(built.pieces):
        before, after = piece.part
        which = "the chip's part" if len(built.pieces) == 1 else f"piece {number}"
        found.append(
            verify(
                Content(after, f"{file}, {which} compiled"),
                Content(before, f"{file}, {which}"),
                assumptions=False,
                # It is the model: if that is doubted, its bytes decide.
                anyway=True,
                progress=progress,
            )
        )
    return found


def _said(
    rows: Sequence[CompileRow],
    built: Built,
    judged: Sequence[Report[Any]],
    shared: str,
    figures: dict[str, Any],
) -> tuple[Verdict, str]:
    """The verdict of a model, and the sentence about it."""
    if not built.data:
        return Verdict.REFUSED, why_nothing(rows)
    said = f"{figures['operators_on_chip']} of {counted(len(rows), 'operator')} on the chip"
    if len(built.pieces) > 1:
        said += f" in {len(built.pieces)} pieces"
    if shared:
        return Verdict.MISMATCH, f"{_DEFECT}: {shared}"
    if not judged:
        return Verdict.RAN, f"{said}; not verified (--no-check)"
    verdict = worst(each.verdict for each in judged)
    if verdict.failed:
        wrong = next(each for each in judged if each.verdict is verdict)
        return verdict, f"{_DEFECT}: {wrong.headline}"
    return verdict, "; ".join([said, *(each.headline for each in judged)])


def together(compiled: Sequence[Compiled], file: str) -> Report[CompileRow]:
    """The report of several compiled models as one, as ``--json`` prints it.

    Figures are sums; ``remaining_bytes`` is the least, ``narrow_bytes`` the most.
    """
    if len(compiled) == 1:
        return compiled[0].report
    reports = [each.report for each in compiled]
    figures = dict(reports[0].figures)
    for key in _SUMS:
        figures[key] = sum(each.figures[key] for each in reports)
    figures["remaining_bytes"] = min(each.figures["remaining_bytes"] for each in reports)
    figures["narrow_bytes"] = max(each.figures["narrow_bytes"] for each in reports)
    figures["seconds"] = max(each.figures["seconds"] for each in reports)
    figures["milliseconds"] = (
        None
        if figures["milliseconds"] is None
        else sum(each.figures["milliseconds"] for each in reports)
    )
    figures["layers"] = tuple(
        replace(layer, file=each.name)
        for each in compiled
        for layer in each.report.figures["layers"]
    )
    figures["files"] = tuple(row for each in reports for row in each.figures["files"])
    return Report(
        command="compile",
        file=file,
        rows=tuple(replace(row, file=each.name) for each in compiled for row in each.report.rows),
        figures=figures,
        decided=worst(each.verdict for each in reports),
        message="; ".join(f"{each.name}: {each.report.headline}" for each in compiled),
    )


_SUMS = (
    "input_bytes",
    "output_bytes",
    "cached_bytes",
    "streamed_bytes",
    "instruction_bytes",
    "subgraphs",
    "operators_on_chip",
    "operators_on_cpu",
)
