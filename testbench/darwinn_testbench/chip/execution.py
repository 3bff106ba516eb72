"""Compiled models on the simulated chip: parameters loaded once, then any number of inferences."""

from __future__ import annotations

import hashlib
import io
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from darwinn_formats.darwinn import CompiledModel, Executable, ExecutableType
from darwinn_formats.files import Source
from darwinn_sim.accelerator import Accelerator, RunResult, compile_kernels
from darwinn_sim.analysis.narrow_usage import used_narrow_bytes
from darwinn_sim.errors import IncompleteProgram, SimulationError
from darwinn_sim.isa import grading
from darwinn_sim.isa.codec import DecodeError
from darwinn_sim.isa.grading import Assumption
from darwinn_sim.machine.examine import StopPoint, Tap, TappedBytes
from darwinn_sim.machine.lowering import LoweredProgram

from darwinn_testbench.chip.inputs import (
    Inputs,
    Origin,
    Tensor,
    TensorMap,
    TensorPort,
    choose_inputs,
    few_runs,
    origin_of,
)
from darwinn_testbench.chip.inspection import check_number
from darwinn_testbench.chip.model import BoundModel, open_models
from darwinn_testbench.chip.preload import Preload
from darwinn_testbench.errors import InputError
from darwinn_testbench.report import Report, Row, Verdict, verdict_of
from darwinn_testbench.report.progress import ProgressCallback, silent
from darwinn_testbench.report.result import PYTHON_ONLY


@dataclass(frozen=True)
class Inference:
    """One inference: output tensors by name, what the chip did, and the seconds it took here.

    The seconds are those of the run: without compilation, decoding and the loading of parameters.
    """

    outputs: dict[str, Tensor]
    result: RunResult
    seconds: float


class Device:
    """A chip, and the parameters that are cached on it.

    Models that were compiled together carry the same token and have their parameters in different
    places, so all of them stay cached; a model with another token makes all be loaded anew.
    ``strict`` makes reading memory that nothing has written a fault; ``seed`` fills such memory.
    ``preloads`` are in wide memory before anything runs. Without ``assumptions`` a program that
    holds assumed values is refused. ``accelerator`` is the chip itself, if it is to be another one.
    """

    def __init__(
        self,
        *,
        strict: bool = False,
        seed: int = 0,
        preloads: Sequence[Preload] = (),
        assumptions: bool = True,
        accelerator: Accelerator | None = None,
    ) -> None:
        self.accelerator = accelerator or Accelerator(
            strict=strict, seed=seed, assumptions=assumptions
        )
        self._preloads = preloads
        self._power_ups = 0
        self._token: int | None = None
        self._cached: list[Executable] = []

    def cache(self, model: CompiledModel) -> RunResult | None:
        """Make the chip ready for ``model``; None if its parameters are there, or it has none.

        Raises:
            SimulationError: the parameter-caching executable fails.
        """
        if self._power_ups != self.accelerator.power_ups:
            self._power_ups = self.accelerator.power_ups
            self._token = None
            for preload in self._preloads:
                preload.apply(self.accelerator)
        if self._token != model.token:
            self._token, self._cached = model.token, []
        caching = model.caching
        if caching is None or any(caching is each for each in self._cached):
            return None
        result = self.accelerator.run(caching, {})
        self._cached.append(caching)
        return result


class Session:
    """A model on a chip, which keeps its state from one inference to the next.

    Sessions can share a ``device``; without one the session has a chip of its own, made with the
    other arguments (see :class:`Device`).
    """

    def __init__(
        self,
        model: BoundModel,
        *,
        device: Device | None = None,
        strict: bool = False,
        seed: int = 0,
        preloads: Sequence[Preload] = (),
        assumptions: bool = True,
    ) -> None:
        self.model = model
        self.device = device or Device(
            strict=strict, seed=seed, preloads=preloads, assumptions=assumptions
        )
        self.caching: RunResult | None = None

    @property
    def accelerator(self) -> Accelerator:
        """The chip."""
        return self.device.accelerator

    @property
    def assumed(self) -> tuple[Assumption, ...]:
        """What the results of the chip rest on without evidence; see ``Accelerator.assumed``."""
        return self.accelerator.assumed

    @property
    def program(self) -> LoweredProgram:
        """The inference's program as the chip executes it; see :meth:`Accelerator.load`."""
        return self.accelerator.load(self.model.compiled.inference)

    def prepare(self) -> None:
        """What an inference needs and is no part of it: kernels, program and parameters.

        Raises:
            SimulationError: as :meth:`infer`.
        """
        # First, so that what is refused does not wait for the kernels.
        _ = self.program
        compile_kernels()
        self.load_parameters()

    def load_parameters(self) -> RunResult | None:
        """Run the parameter-caching executable unless the chip holds its parameters.

        Returns what its last run did; None if it never ran here.

        Raises:
            SimulationError: the program fails, or uses what the model of the chip lacks.
        """
        self.caching = self.device.cache(self.model.compiled) or self.caching
        return self.caching

    def infer(
        self,
        tensors: TensorMap,
        *,
        until: StopPoint | None = None,
        taps: Sequence[Tap] = (),
        as_far_as_it_goes: bool = False,
    ) -> Inference:
        """One inference on ``tensors`` (by port name), prepared first if need be.

        The options are those of :meth:`Accelerator.run`.

        Raises:
            SimulationError: the program fails, or uses what the model of the chip lacks.
        """
        self.prepare()
        inputs = self.model.to_device(tensors)
        begin = time.perf_counter()
        try:
            result = self.accelerator.run(
                self.model.compiled.inference,
                inputs,
                until=until,
                taps=taps,
                as_far_as_it_goes=as_far_as_it_goes,
            )
        except ValueError as error:
            if isinstance(error, DecodeError) or not (until or taps):
                raise
            # A stop point or a tap that this program does not have, seen before it runs.
            raise InputError(str(error)) from error
        seconds = time.perf_counter() - begin
        return Inference(self.model.from_device(result.outputs), result, seconds)


class Pipeline:
    """Segments of a model, each on a chip of its own, in the order in which they run.

    A segment takes what any segment before it gives, or the first one takes, under the same name.

    Raises:
        InputError: a tensor that a segment takes is missing, given several times, or of another
            shape or type; or several segments give a result of one name.
    """

    def __init__(self, segments: Sequence[Session]) -> None:
        self.segments = tuple(segments)
        models = [segment.model for segment in self.segments]
        taken: set[str] = set()
        for k, model in enumerate(models[1:], 1):
            for port in model.ports:
                _check_given(port, model, models[:k], models[k:])
            taken |= {port.name for port in model.ports}
        self._results = _results_of(models, taken)

    def infer(self, tensors: TensorMap) -> tuple[Inference, ...]:
        """One inference on the inputs of the first segment: what each segment did.

        Raises:
            SimulationError: a program fails, or uses what the model of the chip lacks.
        """
        known = dict(tensors)
        done: list[Inference] = []
        for segment in self.segments:
            names = [port.name for port in segment.model.ports]
            done.append(segment.infer({name: known[name] for name in names}))
            known |= done[-1].outputs
        return tuple(done)

    def results(self, done: Sequence[Inference]) -> dict[str, Tensor]:
        """The outputs of the whole: of the last segment, and of others what no segment takes."""
        return {
            name: tensor
            for names, inference in zip(self._results, done, strict=True)
            for name, tensor in inference.outputs.items()
            if name in names
        }


def _check_given(
    port: TensorPort, taker: BoundModel, before: Sequence[BoundModel], later: Sequence[BoundModel]
) -> None:
    """Raise ``InputError`` unless exactly one of the segments before gives what ``port`` takes."""
    first = before[0]
    givers = [(first.file, each) for each in first.ports if each.name == port.name]
    givers += [(model.file, each) for model in before for each in _outputs(model, port.name)]
    if not givers:
        files = ", ".join(model.file for model in before)
        text = f"{taker.file}: its input {port} is given by none before it ({files})"
        after = [model.file for model in later if _outputs(model, port.name)]
        raise InputError(f"{text}; {after[0]} gives it, but runs later" if after else text)
    if len(givers) > 1:
        files = " and ".join(file for file, _ in givers)
        raise InputError(f"{taker.file}: its input {port} is ambiguous: it comes from {files}")
    ((file, found),) = givers
    if (found.shape, found.dtype) != (port.shape, port.dtype):
        raise InputError(f"{taker.file}: its input {port} comes from {file} as {found}")


def _outputs(model: BoundModel, name: str) -> list[TensorPort]:
    return [item.port for item in model.outputs if item.port.name == name]


def _results_of(models: Sequence[BoundModel], taken: set[str]) -> list[set[str]]:
    """Names of each segment's outputs that leave the pipeline."""
    names = [{item.port.name for item in model.outputs} for model in models]
    results = [each - taken for each in names[:-1]] + [names[-1]]
    for (one, own), (other, others) in combinations(zip(models, results, strict=True), 2):
        for name in sorted(own & others):
            raise InputError(f"{one.file} and {other.file} both give a result {name}")
    return results


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
    tensor: Tensor = field(repr=False, metadata=PYTHON_ONLY)
    inputs_kind: str | None = None
    inputs_seed: int | None = None

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
    data: Tensor = field(repr=False, metadata=PYTHON_ONLY)


def run(
    source: Source,
    inputs: Inputs = None,
    *,
    model: int = 0,
    companions: Sequence[Source] = (),
    then: Sequence[Source] = (),
    seed: int = 0,
    runs: int | None = None,
    inputs_kind: Sequence[str] = (),
    until: StopPoint | None = None,
    taps: Sequence[Tap] = (),
    preloads: Sequence[Preload] = (),
    strict: bool = False,
    assumptions: bool = True,
    progress: ProgressCallback = silent,
) -> Report[RunRow]:
    """Run a compiled model on ``inputs`` (files, or arrays by tensor name, one mapping for each
    inference), or on drawn sets (``inputs.choose_inputs``), one if neither ``runs`` nor
    ``inputs_kind`` says otherwise. ``preloads`` are in wide memory before anything runs. ``then``
    are the further segments of a :class:`Pipeline`, in their order; the rows are then the results
    of the whole. Without ``assumptions`` assumed values are refused.

    A fault ends the run; the rows of the inferences before it stay, and one row tells the fault.

    Raises:
        FormatError, OSError: the file is not valid or cannot be read.
        InputError: the file has no such model, or an input is missing.
    """
    bound = choose_model(open_models(source, companions), model)
    few = few_runs(runs, inputs_kind)
    sets = choose_inputs(inputs, bound.ports, seed=seed, runs=few, inputs_kind=inputs_kind)
    options: dict[str, Any] = {"strict": strict, "seed": seed, "assumptions": assumptions}
    session = Session(bound, preloads=preloads, **options)
    following = [choose_model(open_models(each), 0) for each in then]
    pipeline = Pipeline([session, *(Session(segment, **options) for segment in following)])
    if then and (until or taps):
        raise InputError("a stop point or a tap belongs to one segment: run that segment alone")
    rows: list[RunRow] = []
    taps_found: list[TapFigures] = []
    warnings: list[str] = []
    stopped = False
    used: int | None = None
    fault: SimulationError | None = None
    begin = time.perf_counter()
    try:
        used = used_narrow_bytes(session.program)
        for number, tensors in enumerate(sets):
            progress(f"inference {number + 1} of {len(sets)}", number, len(sets))
            if then:
                segments = pipeline.infer(tensors)
            else:
                found = session.infer(tensors, until=until, taps=taps, as_far_as_it_goes=True)
                segments = (found,)
            for segment in segments:
                stopped |= segment.result.stopped
                taps_found += [_tap_figures(number, tapped) for tapped in segment.result.tapped]
                warnings += [f"inference {number}: {text}" for text in segment.result.warnings]
            seconds = sum(segment.seconds for segment in segments)
            if any(segment.result.incomplete for segment in segments):
                raise IncompleteProgram(len(session.program.chunks))
            rows += [
                run_row(number, name, tensor, seconds, origin_of(sets, number))
                for name, tensor in pipeline.results(segments).items()
            ]
    except SimulationError as error:
        fault = error
    return Report(
        command="run",
        file=bound.file,
        rows=tuple(rows),
        figures={
            "model": model,
            "seed": seed,
            "inferences": len(sets),
            "random_inputs": inputs is None,
            "seconds": time.perf_counter() - begin,
            "stopped": stopped,
            "narrow_bytes": used,
            "narrow_bytes_declared": declared_narrow_bytes(bound.compiled.inference),
            "warnings": warnings,
            "taps": taps_found,
            "assumptions": grading.merged(each.assumed for each in pipeline.segments),
        },
        decided=None if fault is None else verdict_of(fault),
        message=bound.note if fault is None else str(fault),
    )


def choose_model(models: Sequence[BoundModel], number: int) -> BoundModel:
    """The model of that number; InputError if there is none."""
    check_number("model", number, len(models), models[0].file if models else "the file")
    return models[number]


def declared_narrow_bytes(executable: Executable) -> int | None:
    """Narrow memory per tile that the compiler says is used, in bytes; None if it does not say.

    Executables that use none and those that do not say both hold 0; a parameter-caching one uses
    none.
    """
    declared = executable.used_narrow_memory_bytes_per_tile
    return declared or (0 if executable.type is ExecutableType.PARAMETER_CACHING else None)


def digest(tensor: Tensor) -> str:
    """SHA-256 of a tensor's bytes in row-major order."""
    return hashlib.sha256(np.ascontiguousarray(tensor).tobytes()).hexdigest()


def row_fields(
    number: int, name: str, tensor: Tensor, seconds: float, origin: Origin | None
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
    number: int, name: str, tensor: Tensor, seconds: float, origin: Origin | None
) -> RunRow:
    """The row of an output; what has no order has no range."""
    ordered = tensor.size > 0 and tensor.dtype.kind in "biuf"
    return RunRow(
        **row_fields(number, name, tensor, seconds, origin),
        minimum=tensor.min().item() if ordered else None,
        maximum=tensor.max().item() if ordered else None,
    )


def _tap_figures(number: int, tapped: TappedBytes) -> TapFigures:
    data = np.ascontiguousarray(tapped.data)
    return TapFigures(number, str(tapped.tap), data.nbytes, digest(data), data)


def outputs_as(target: str | os.PathLike[str], report: Report[RunRow]) -> bytes:
    """The outputs of ``report`` in the form that the name of ``target`` asks for.

    ``.npz``: every output by name, then ``tap0``, ``tap1`` ... in the order of the taps; ``.npy``:
    the only output; any other name: its bytes. Several inferences give a further leading
    dimension.

    Raises:
        InputError: several outputs, or none, for a form that holds one.
    """
    arrays = {
        name: np.stack([row.tensor for row in report.rows if row.name == name])
        for name in dict.fromkeys(row.name for row in report.rows)
    }
    arrays = {name: stack[0] if len(stack) == 1 else stack for name, stack in arrays.items()}
    suffix = Path(target).suffix.lower()
    stream = io.BytesIO()
    if suffix == ".npz":
        taps = {f"tap{number}": tap.data for number, tap in enumerate(report.figures["taps"])}
        np.savez(stream, allow_pickle=False, **arrays, **taps)
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
