"""Running compiled models: a row of results for each output of each inference."""

from __future__ import annotations

import hashlib
import io
import os
import time
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from darwinn_formats.darwinn import Executable, ExecutableType
from darwinn_formats.files import Source
from darwinn_reference.arrays import AnyArray
from darwinn_sim.analysis.narrow_usage import used_narrow_bytes
from darwinn_sim.errors import IncompleteProgram, SimulationError
from darwinn_sim.isa import grading
from darwinn_sim.machine.examine import StopPoint, Tap, TappedBytes

from darwinn_testbench.chip.ahead import Lifted
from darwinn_testbench.chip.array_files import member_name
from darwinn_testbench.chip.completion import Completion, check_completion, confirmed
from darwinn_testbench.chip.cpu_operators import named_operators
from darwinn_testbench.chip.hazards import (
    AFTER_A_FAULT,
    LEFT_OUT,
    MOST_GIVEN,
    STOPPED,
    Hazards,
    check_hazards,
)
from darwinn_testbench.chip.inputs import Origin, choose_inputs, few_runs, origin_of
from darwinn_testbench.chip.pipeline import Pipeline, Segment, SegmentInference
from darwinn_testbench.chip.preload import Preload
from darwinn_testbench.chip.schedules import Inferred, Schedules, check_schedules, faulted
from darwinn_testbench.chip.session import Session
from darwinn_testbench.chip.whole import (
    WholeModel,
    cpu_figures,
    open_segment,
)
from darwinn_testbench.errors import InputError
from darwinn_testbench.report import Report, Row, Verdict, verdict_of, worst
from darwinn_testbench.report.progress import ProgressCallback
from darwinn_testbench.report.remarked import remarked
from darwinn_testbench.report.result import PYTHON_ONLY
from darwinn_testbench.request import settings
from darwinn_testbench.request.record import takes
from darwinn_testbench.request.records import Drawn, OnChip
from darwinn_testbench.request.scope import Scope

_Again = Schedules | Hazards | Completion
"""What comes of inferences that are made again."""


@dataclass(frozen=True, kw_only=True)
class TensorOutputRow(Row):
    """One output tensor of one inference. ``seconds`` is for the whole inference.

    ``inputs_kind`` and ``inputs_seed`` are what its inputs were drawn from; None of given ones.
    """

    run: int
    shape: tuple[int, ...]
    dtype: str
    sha256: str
    seconds: float
    tensor: AnyArray = field(repr=False, metadata=PYTHON_ONLY)
    inputs_kind: str | None = None
    inputs_seed: int | None = None

    @property
    def array(self) -> AnyArray:
        """The tensor."""
        return self.tensor

    @property
    def origin(self) -> str:
        """Kind and seed of the inputs; empty if they were given."""
        return "" if self.inputs_kind is None else f"{self.inputs_kind} {self.inputs_seed}"

    @property
    def why(self) -> str:
        """What fails is told with the inputs that show it."""
        told = self.verdict.failed and self.inputs_kind is not None
        return f"{super().why} (inputs {self.origin})" if told else super().why

    @property
    def case(self) -> str:
        """Outputs have the same name in every run."""
        return f"run {self.run}: {self.name}"

    @property
    def duration(self) -> float:
        """Seconds of the inference."""
        return self.seconds


@dataclass(frozen=True, kw_only=True)
class RunRow(TensorOutputRow):
    """One output tensor of one inference, with its range."""

    minimum: float | None
    maximum: float | None


@dataclass(frozen=True)
class TapFigures:
    """What one tap copied in one inference: ``data`` is uint8, or the words of a layer."""

    run: int
    tap: str
    bytes: int
    sha256: str
    data: AnyArray = field(repr=False, metadata=PYTHON_ONLY)


@dataclass(frozen=True)
class ChipRun(OnChip, Drawn):
    """A run of a compiled model.

    ``then`` are the further segments of a :class:`Pipeline`, in their order; the rows are then the
    results of the whole. ``preloads`` are in wide memory before anything runs.
    """

    source: Source
    inputs: settings.Inputs = None
    _: KW_ONLY
    then: Sequence[Source] = ()
    until: StopPoint | None = None
    taps: Sequence[Tap] = ()
    preloads: Sequence[Preload] = ()


@remarked
def chip_run(asked: ChipRun) -> Report[RunRow]:
    """Run a compiled model on given inputs (files, or arrays by tensor name, one mapping for each
    inference), or on drawn sets (``inputs.choose_inputs``), one if neither ``runs`` nor
    ``inputs_kind`` says otherwise. Operators that are left to the CPU run as well, in LiteRT
    (:mod:`whole`), unless ``chip_only``, ``until`` or ``taps`` is given. What comes of
    ``schedules`` and ``hazards`` is in the figures (``schedules.Schedules``, ``hazards.Hazards``).

    A fault ends the run; the rows of the inferences before it stay, and one row tells the fault.

    Raises:
        FormatError, OSError: the file is not valid or cannot be read.
        InputError: the file has no such model, or an input is missing.
    """
    asked.refuse(Scope.PROGRAM)
    seed, inputs, until, taps = asked.seed, asked.inputs, asked.until, asked.taps
    schedules, hazards, progress = asked.schedules, asked.hazards, asked.progress
    few = few_runs(asked.runs, asked.inputs_kind)
    options: dict[str, Any] = {
        "strict": asked.strict,
        "seed": seed,
        "assumptions": asked.assumptions,
        "chip_only": asked.chip_only or bool(until or taps),
    }
    first = open_segment(
        asked.source, asked.others, model=asked.model, preloads=asked.preloads, **options
    )
    pipeline = Pipeline([first, *(open_segment(each, **options) for each in asked.then)])
    session, bound = first.sessions[0], first.sessions[0].model
    sets = choose_inputs(inputs, first.ports, seed=seed, runs=few, inputs_kind=asked.inputs_kind)
    _refuse_looking(until, taps, is_pipeline=bool(asked.then), again=bool(schedules or hazards))
    rows: list[RunRow] = []
    taps_found: list[TapFigures] = []
    warnings: list[str] = []
    stopped, cpu_seconds = False, 0.0
    used: int | None = None
    done: list[Inferred] = []
    again: list[_Again] = []
    judges = hazards is not False and until is None
    fault: SimulationError | None = None
    start = seed if asked.schedule_seed is None else asked.schedule_seed
    begin = time.perf_counter()
    pipeline.expect(sets)
    try:
        used = used_narrow_bytes(session.program)
        for number, tensors in enumerate(sets):
            progress(f"inference {number + 1} of {len(sets)}", number, len(sets))
            segments: Sequence[SegmentInference]
            if first is session and not asked.then:
                found = session.infer(tensors, until=until, taps=taps, as_far_as_it_goes=True)
                segments = (found,)
            else:
                segments = pipeline.infer(tensors)
            for one in (one for segment in segments for one in segment.on_chip):
                stopped |= one.result.stopped
                taps_found += [_tap_figures(number, tapped) for tapped in one.result.tapped]
                warnings += [f"inference {number}: {text}" for text in one.result.warnings]
                if one.result.incomplete:
                    raise IncompleteProgram(len(session.program.chunks))
            seconds = sum(segment.seconds for segment in segments)
            cpu_seconds += sum(segment.cpu_seconds for segment in segments)
            results = pipeline.results(segments)
            if schedules or (judges and len(done) < MOST_GIVEN):
                done.append(Inferred(tensors, pipeline.sent(segments)))
            rows += [
                run_row(number, name, tensor, seconds, origin_of(sets, number))
                for name, tensor in results.items()
            ]
        again += _again(pipeline, done, schedules, start, judges=judges, progress=progress)
    except SimulationError as error:
        fault = error
        if schedules and len(done) < len(sets) and (last := faulted(error, sets[len(done)])):
            again = [check_schedules(pipeline, [*done, *last], schedules, start, progress)]
    if fault is not None or not judges:
        again.append(_why_not(hazards, fault))
    return Report(
        command="run",
        file=bound.file,
        rows=tuple(rows),
        figures={
            "model": asked.model,
            "seed": seed,
            "inferences": len(sets),
            "random_inputs": inputs is None,
            "seconds": time.perf_counter() - begin,
            "stopped": stopped,
            "narrow_bytes": used,
            "narrow_bytes_declared": declared_narrow_bytes(bound.compiled.inference),
            "warnings": warnings,
            "taps": taps_found,
            "assumptions": grading.merged(each.assumed for each in pipeline.sessions),
            **states_figure(pipeline.sessions),
            **lifted_figure(pipeline.sessions),
            **cpu_figures(pipeline.segments, cpu_seconds),
            **{_FIGURES[type(each)]: each for each in again},
        },
        decided=_decided(fault, again),
        message="; ".join(filter(None, (str(fault or _note(first)), *map(str, again)))),
    )


run = takes(ChipRun, "run")(chip_run)


def _refuse_looking(
    until: StopPoint | None, taps: Sequence[Tap], *, is_pipeline: bool, again: bool
) -> None:
    """Refuse to look inside where that has no meaning."""
    if is_pipeline and (until or taps):
        raise InputError("a stop point or a tap belongs to one segment: run that segment alone")
    if until and again:
        raise InputError("schedules and hazards are of whole inferences: a stopped run has none")


def _note(first: Segment) -> str:
    """What was run of the file, where there is a choice."""
    if isinstance(first, WholeModel):
        return f"the whole model, on the CPU: {named_operators(first.operators)}"
    model = first.sessions[0].model
    return "; ".join(filter(None, (model.note, model.alone)))


def _again(
    pipeline: Pipeline,
    done: Sequence[Inferred],
    schedules: int,
    seed: int,
    *,
    judges: bool,
    progress: ProgressCallback,
) -> Iterator[_Again]:
    """What comes of the program in other orders."""
    if schedules:
        yield check_schedules(pipeline, done, schedules, seed, progress)
    if judges:
        inputs = [each.inputs for each in done]
        hazards = check_hazards(pipeline, inputs, progress)
        completion = check_completion(pipeline, inputs, progress)
        yield confirmed(hazards, completion)
        yield completion


def _why_not(hazards: bool | None, fault: SimulationError | None) -> Hazards:
    if hazards is False:
        return LEFT_OUT
    return STOPPED if fault is None else AFTER_A_FAULT


_FIGURES = {Schedules: "schedules", Hazards: "hazards", Completion: "completion"}
"""What inferences that were made again are called in the figures."""


def _decided(fault: SimulationError | None, again: Sequence[_Again]) -> Verdict | None:
    """The verdict that is not that of the rows; None if there is none. What is a fault in one order
    and none in another is a race.
    """
    found = worst(each.verdict for each in again)
    if found.failed:
        return found
    return None if fault is None else verdict_of(fault)


def states_figure(sessions: Sequence[Session]) -> dict[str, list[str]]:
    """Names of the variables that go from one inference into the next; nothing without any."""
    names = [name for session in sessions for name in session.states]
    return {"states": names} if names else {}


def lifted_figure(sessions: Sequence[Session]) -> dict[str, Lifted]:
    """What came of making inferences many at a time; nothing where that was not tried."""
    found = [session.lifted for session in sessions if session.lifted is not None]
    return {"lifted": found[0]} if found else {}


def lifted_line(figures: Mapping[str, Any]) -> list[str]:
    """The line that says so, from the figures of a report."""
    return [str(figures["lifted"])] if "lifted" in figures else []


def states_line(figures: Mapping[str, Any]) -> list[str]:
    """The line that says so, from the figures of a report."""
    names = figures.get("states", ())
    return [f"state from one inference to the next: {', '.join(names)}"] if names else []


def declared_narrow_bytes(executable: Executable) -> int | None:
    """Narrow memory per tile that the compiler says is used, in bytes; None if it does not say.

    Executables that use none and those that do not say both hold 0; a parameter-caching one uses
    none.
    """
    declared = executable.used_narrow_memory_bytes_per_tile
    return declared or (0 if executable.type is ExecutableType.PARAMETER_CACHING else None)


def digest(tensor: AnyArray) -> str:
    """SHA-256 of a tensor's bytes in row-major order."""
    return hashlib.sha256(np.ascontiguousarray(tensor).tobytes()).hexdigest()


def row_fields(
    number: int, name: str, tensor: AnyArray, seconds: float, origin: Origin | None
) -> dict[str, Any]:
    """The fields of a :class:`TensorOutputRow` that passes."""
    return {
        "name": name,
        "verdict": Verdict.PASS,
        "run": number,
        "shape": tensor.shape,
        "dtype": str(tensor.dtype),
        "sha256": digest(tensor),
        "seconds": seconds,
        "tensor": tensor,
        "inputs_kind": None if origin is None else origin.kind.value,
        "inputs_seed": None if origin is None else origin.seed,
    }


def run_row(
    number: int, name: str, tensor: AnyArray, seconds: float, origin: Origin | None
) -> RunRow:
    """The row of an output; what has no order has no range, and of truths it is of 0 and 1."""
    ordered = tensor.size > 0 and tensor.dtype.kind in "biuf"
    values = tensor.view(np.uint8) if tensor.dtype.kind == "b" else tensor
    return RunRow(
        **row_fields(number, name, tensor, seconds, origin),
        minimum=values.min().item() if ordered else None,
        maximum=values.max().item() if ordered else None,
    )


def _tap_figures(number: int, tapped: TappedBytes) -> TapFigures:
    data = np.ascontiguousarray(tapped.data)
    return TapFigures(number, str(tapped.tap), data.nbytes, digest(data), data)


def outputs_as(target: str | os.PathLike[str], report: Report[RunRow]) -> bytes:
    """The outputs of ``report`` in the form that the name of ``target`` asks for.

    ``.npz``: every output by name, then ``tap0``, ``tap1`` ... in the order of the taps; ``.npy``:
    the only output; any other name: its bytes. Several inferences give a further leading
    dimension. Names are members of an ``.npz`` as :func:`member_name` says.

    Raises:
        InputError: several outputs, or none, for a form that holds one.
    """
    arrays = output_arrays(report)
    suffix = Path(target).suffix.lower()
    stream = io.BytesIO()
    if suffix == ".npz":
        taps = {f"tap{number}": tap.data for number, tap in enumerate(report.figures["taps"])}
        if both := taps.keys() & arrays:
            raise InputError(f"{target}: {min(both)} is an output and a tap")
        with zipfile.ZipFile(stream, "w") as archive:
            for name, array in {**arrays, **taps}.items():
                write_member(archive, name, array)
        return stream.getvalue()
    if len(arrays) != 1:
        raise InputError(
            f"{target}: the run gave {len(arrays)} outputs ({', '.join(arrays) or 'none'}) and "
            "this form holds one; name an .npz"
        )
    (array,) = arrays.values()
    if suffix == ".npy":
        np.save(stream, array, allow_pickle=False)
        return stream.getvalue()
    return array.tobytes()


def output_arrays(report: Report[RunRow]) -> dict[str, AnyArray]:
    """The outputs by name; of several inferences with a further leading dimension.

    Raises:
        InputError: an output has another size in each inference.
    """
    arrays: dict[str, AnyArray] = {}
    for name in dict.fromkeys(row.name for row in report.rows):
        found = [row.tensor for row in report.rows if row.name == name]
        if len({each.shape for each in found}) > 1:
            sizes = ", ".join("x".join(map(str, each.shape)) for each in found)
            raise InputError(f"--output: {name} has other sizes in each run ({sizes}): --runs 1")
        arrays[name] = found[0] if len(found) == 1 else np.stack(found)
    return arrays


def write_member(archive: zipfile.ZipFile, name: str, array: AnyArray) -> None:
    """Add an array to an .npz, as ``np.savez`` does, which takes names for its own arguments."""
    with archive.open(f"{member_name(name)}.npy", "w", force_zip64=True) as member:
        np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)
