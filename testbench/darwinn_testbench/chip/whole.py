"""Whole models: the operators on the chip, and those that the compiler has left to the CPU.

A ``.tflite`` of the Edge TPU compiler is a graph in which some operators are custom ones, for the
chip. The others run in LiteRT, with its reference kernels: the same on every machine. Those that
LiteRT lacks and the vendor's library adds are in :mod:`darwinn_testbench.chip.operators`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from darwinn_formats import tflite
from darwinn_formats.brief import brief
from darwinn_formats.darwinn import DarwinnFile, load
from darwinn_formats.darwinn.loader import CUSTOM_OPERATOR, flatten
from darwinn_formats.errors import Unavailable
from darwinn_formats.files import Source, content_of, errors_name, name_of, read_once
from darwinn_reference.arrays import AnyArray
from darwinn_reference.errors import ModelError
from darwinn_reference.tflite import indexing
from darwinn_reference.tflite.litert import (
    KNOWN_CUSTOM_OPERATORS,
    TIME_LIMIT,
    LiteRtProcess,
)
from darwinn_sim.errors import IncompleteProgram

from darwinn_testbench.chip.ahead import number_of, what_follows
from darwinn_testbench.chip.cpu_operators import (
    name_of_operator,
    named_operators,
    operators_on_cpu,
)
from darwinn_testbench.chip.inputs import TensorMap, TensorPort, require_set
from darwinn_testbench.chip.model import BoundModel, bind_file, choose_model, port_of
from darwinn_testbench.chip.operators.chip_operator import ChipOperator
from darwinn_testbench.chip.operators.custom_operator import CustomOperator, PlacedOperator
from darwinn_testbench.chip.operators.kinds import NAMES, OnChip
from darwinn_testbench.chip.operators.parts import PartedGraph
from darwinn_testbench.chip.pipeline import Segment
from darwinn_testbench.chip.preload import Preload
from darwinn_testbench.chip.session import Inference, Session
from darwinn_testbench.errors import InputError

REFERENCE_KERNELS = "BUILTIN_REF"
"""LiteRT's kernels that give the same bytes on every machine."""
FAST_KERNELS = "AUTO"
"""Those that an application gets, which it is timed with."""

HINT = "--chip-only leaves the operators on the CPU out"

InferOnChip = Callable[[Session, TensorMap], Inference]
"""Makes an inference of a model on its chip."""


@brief
@dataclass(frozen=True)
class WholeInference:
    """One inference of a whole model: outputs of the graph by name, and the chip's runs in it.

    ``seconds`` are those of this machine for chip and CPU, ``cpu_seconds`` those of the operators
    that a real machine's CPU runs as well.
    """

    outputs: dict[str, AnyArray]
    on_chip: tuple[Inference, ...]
    seconds: float
    cpu_seconds: float


class WholeModel:
    """All operators of a compiled model; a :class:`pipeline.Segment`.

    Args:
        data: its bytes.
        model: what is in them; a model that is not compiled has no operators on the chip.
        file: its name.
        sessions: the model of each custom operator of the chip, by the operator's number.
        infer: makes the chip's inferences; by default the session itself.
        kernels: of LiteRT, by the name of its ``OpResolverType``.
        stand_in: takes the place of each custom operator of the chip; no session is used then.
        process: LiteRT's; by default one of its own.

    Raises:
        FormatError, InputError: the graph does not fit what is in the custom operators.
        ModelError: LiteRT cannot run an operator, or a shape is not static.
        Unavailable: there is a custom operator that nobody here knows.
    """

    def __init__(
        self,
        data: bytes,
        model: tflite.Model,
        file: str,
        sessions: dict[int, Session],
        infer: InferOnChip | None = None,
        kernels: str = REFERENCE_KERNELS,
        stand_in: OnChip | None = None,
        process: LiteRtProcess | None = None,
    ) -> None:
        self.operators = operators_on_cpu(model)
        refuse_unknown(file, model, [each.operator for each in self.operators])
        self.file, self._sessions, self._infer = file, sessions, infer
        self._done: list[Inference] = []
        options: dict[str, object] = {"kernels": kernels, "threads": 1, "preserve": False}
        process = process or LiteRtProcess(file, TIME_LIMIT)
        self._parts = PartedGraph(data, model, file, stand_in or self._on_chip, process, options)
        self._model, self._graph = model, model.subgraphs[0]
        self._inputs = self._named(
            [k for k in self._graph.inputs if not self._graph.tensors[k].is_variable]
        )
        self._outputs = self._named(self._graph.outputs)
        self._prepared = False

    def _named(self, indices: Sequence[int]) -> dict[str, int]:
        """Tensors by names of their own: of several of a name the later ones get their number."""
        names: dict[str, int] = {}
        for number, index in enumerate(indices):
            name = self._graph.tensors[index].name or f"value{number}"
            while name in names:
                name = f"{name}#{number}"
            names[name] = index
        return names

    def _on_chip(self, place: PlacedOperator) -> CustomOperator:
        session = self._sessions[place.index]
        return ChipOperator(place, session, partial(self._run_on_chip, session))

    def _run_on_chip(self, session: Session, tensors: TensorMap) -> Inference:
        infer = self._infer or _as_far_as_it_goes
        done = infer(session, tensors)
        if done.result.incomplete:
            raise IncompleteProgram(len(session.program.chunks))
        self._done.append(done)
        return done

    @cached_property
    def ports(self) -> tuple[TensorPort, ...]:
        """The inputs of the graph."""
        return tuple(
            replace(self._port(name, index), limits=self._limits(index))
            for name, index in self._inputs.items()
        )

    @property
    def results(self) -> tuple[TensorPort, ...]:
        """The outputs of the graph; some operators decide shapes only when they run."""
        return tuple(self._port(name, index) for name, index in self._outputs.items())

    def _limits(self, index: int) -> tuple[float, float] | None:
        """What a floating point input can be, by the QUANTIZE that follows it; what integers can
        be that index a table.
        """
        if port_of(self._graph.tensors[index]).dtype.kind != "f":
            limit = self._index_limit(index)
            return None if not limit else (0, limit - 1)
        for operator in self._graph.operators:
            if index in operator.inputs and name_of_operator(self._model, operator) == "QUANTIZE":
                port = port_of(self._graph.tensors[operator.outputs[0]])
                if port.scale and port.dtype.kind in "iu":
                    ends = np.iinfo(port.dtype)
                    least, greatest = (
                        port.scale * (int(end) - port.zero_point) for end in (ends.min, ends.max)
                    )
                    return least, greatest
        return None

    def _index_limit(self, index: int) -> int | None:
        """The size of what an integer input indexes."""
        steps = (
            indexing.Step(
                name_of_operator(self._model, each),
                each.inputs,
                each.outputs,
                getattr(each.builtin_options, "axis", 0),
            )
            for each in self._graph.operators
        )
        return indexing.index_limit(steps, lambda each: self._graph.tensors[each].shape, index)

    def _port(self, name: str, index: int) -> TensorPort:
        return replace(port_of(self._graph.tensors[index]), name=name)

    @property
    def sessions(self) -> tuple[Session, ...]:
        """The models on chips, in the order in which they run."""
        return tuple(self._sessions[k] for k in sorted(self._sessions))

    def sent_by(self, *numbers: int) -> frozenset[str]:
        """Names of the graph's outputs that the models of these numbers send."""
        operators = (
            self._graph.operators[place]
            for place, session in self._sessions.items()
            if session.model.number in numbers
        )
        sent = {index for operator in operators for index in operator.outputs}
        return frozenset(name for name, index in self._outputs.items() if index in sent)

    def prepare(self) -> None:
        """Make everything ready: LiteRT's operators, and the chip with program and parameters.

        Raises:
            ModelError: LiteRT refuses an operator.
            SimulationError: the chip's program is refused, or the loading of its parameters fails.
        """
        if self._prepared:
            return
        try:
            self._parts.prepare()
        except ModelError as error:
            raise ModelError(error.file, f"{error.reason} ({HINT})") from None
        self._prepared = True

    def reset_states(self) -> None:
        """Give variables the value that they have before the first inference."""
        for session in self.sessions:
            session.reset_states()
        if self._prepared:
            self._parts.reset()

    def expect(self, sets: Sequence[TensorMap] | int, more: int = 0) -> None:
        """Say how many inferences follow (:meth:`Session.expect`): what the chip is given is known
        when operators before it have run.

        Raises:
            InputError: as :meth:`Session.expect`.
        """
        known, unknown = what_follows(sets, self._require)
        count, further = len(known) + unknown, number_of(more)
        for session in self.sessions:
            session.expect(count, further)

    def _require(self, tensors: object) -> TensorMap:
        return require_set(tensors, self.ports)

    def infer(self, tensors: TensorMap) -> WholeInference:
        """One inference on ``tensors``, by the names of the graph's inputs.

        Raises:
            InputError: ``tensors`` are no set of inputs (:func:`inputs.require_set`).
            ModelError: an operator fails in LiteRT.
            SimulationError: the chip's program fails.
        """
        given = self._require(tensors)
        self.prepare()
        values = self._parts.values
        for port in self.ports:
            values[self._inputs[port.name]] = given[port.name].reshape(port.shape)
        self._done = []
        cpu_seconds = self._parts.run()
        done = tuple(self._done)
        return WholeInference(
            {name: values[index] for name, index in self._outputs.items()},
            done,
            sum(each.seconds for each in done) + cpu_seconds,
            cpu_seconds,
        )


def _as_far_as_it_goes(session: Session, tensors: TensorMap) -> Inference:
    return session.infer(tensors, as_far_as_it_goes=True)


def cpu_figures(segments: Sequence[Segment], seconds: float) -> dict[str, Any]:
    """What reports say of the operators on the CPU; nothing where there are none."""
    whole = [each for each in segments if isinstance(each, WholeModel)]
    found = [operator for each in whole for operator in each.operators]
    return {"cpu_operators": tuple(found), "cpu_seconds": seconds} if found else {}


def cpu_line(figures: Mapping[str, Any]) -> list[str]:
    """The line that says so, from the figures of a report."""
    operators = figures.get("cpu_operators", ())
    if not operators:
        return []
    seconds = figures["cpu_seconds"]
    return [f"on the CPU: {named_operators(operators)}; {seconds:.3f} s in all on this machine"]


def refuse_unknown(file: str, model: tflite.Model, operators: Sequence[int]) -> None:
    """Refuse custom operators that neither LiteRT nor this program has.

    Raises:
        Unavailable: naming the first.
    """
    graph = model.subgraphs[0]
    unknown = [
        f"operator {number} is {model.code(graph.operators[number]).custom_code!r}"
        for number in operators
        if model.code(graph.operators[number]).operator is tflite.BuiltinOperator.CUSTOM
        and model.code(graph.operators[number]).custom_code not in NAMES | KNOWN_CUSTOM_OPERATORS
    ]
    if unknown:
        reason = "a custom operator that neither LiteRT nor this program knows"
        raise Unavailable(f"{file}: {unknown[0]}, {reason} ({HINT})")


def open_segment(
    source: Source,
    companions: Sequence[Source] = (),
    *,
    model: int = 0,
    chip_only: bool = False,
    preloads: Sequence[Preload] = (),
    **options: Any,
) -> Segment:
    """A compiled model ready to run, whole where operators are left to the CPU.

    Without any, or ``chip_only``, it is the :class:`Session` of model number ``model``. ``options``
    are those of :class:`Device`, which all custom operators share.

    Raises:
        FormatError, OSError: a file is not valid or cannot be read.
        InputError: there is no such model, or the graph does not fit what is in it.
        ModelError, Unavailable: as :class:`WholeModel`.
    """
    source = read_once(source)
    file = load(source)
    bounds = bind_file(file, companions)
    session = Session(choose_model(bounds, model), preloads=preloads, **options)
    if chip_only or not session.model.on_cpu:
        return session
    if model:
        raise InputError(f"{file.file}: model {model} is a part of the whole: {HINT}, and runs it")
    return whole_of(source, file, bounds, session)


def whole_of(
    source: Source,
    file: DarwinnFile,
    bounds: Sequence[BoundModel],
    session: Session,
    infer: InferOnChip | None = None,
) -> WholeModel:
    """The whole model of a file, the session of one of its models being ``session``.

    Raises:
        as :class:`WholeModel`.
    """
    sessions: dict[int, Session] = {}
    for place in file.operators:
        held = {id(each) for package in flatten(place.packages) for each in package.executables}
        models = [each for each in bounds if id(each.compiled.inference) in held]
        if len(models) != 1:
            reason = "exactly one, for one chip, is implemented"
            raise InputError(
                f"{file.file}: a custom operator with {len(models)} models: {reason} ({HINT})"
            )
        own = models[0].number == session.model.number
        sessions[place.operator] = session if own else Session(models[0], device=session.device)
    assert file.shell is not None
    return WholeModel(content_of(source), file.shell, file.file, sessions, infer)


@dataclass(frozen=True)
class GraphEnds:
    """Inputs and outputs of a graph, whoever computes them, the chip or the CPU.

    ``unwritten`` are names of outputs that no operator writes. ``on_chip`` counts the operators
    that are executables.
    """

    inputs: tuple[TensorPort, ...] = ()
    outputs: tuple[TensorPort, ...] = ()
    unwritten: tuple[str, ...] = ()
    on_chip: int = 0


NO_GRAPH = GraphEnds()
"""The ends of what has no graph around it."""


def ends_of(model: tflite.Model) -> GraphEnds:
    """The ends of a model's first graph; variables are none."""
    if not model.subgraphs:
        return NO_GRAPH
    graph = model.subgraphs[0]
    inputs, outputs = (
        tuple(port_of(graph.tensors[k]) for k in indices if not graph.tensors[k].is_variable)
        for indices in (graph.inputs, graph.outputs)
    )
    written = {index for operator in graph.operators for index in operator.outputs}
    constant = {
        index
        for index, tensor in enumerate(graph.tensors)
        if tensor.is_variable or len(model.buffers[tensor.buffer].data)
    }
    unwritten = [graph.tensors[k].name for k in graph.outputs if k not in written | constant]
    on_chip = sum(
        model.code(operator).custom_code == CUSTOM_OPERATOR for operator in graph.operators
    )
    return GraphEnds(inputs, outputs, tuple(unwritten), on_chip)


def open_uncompiled(source: Source, kernels: str = REFERENCE_KERNELS) -> WholeModel:
    """A model that is not compiled for the chip, all of it in LiteRT.

    Raises:
        as :class:`WholeModel`, and InputError for a model that is compiled.
    """
    data, file = content_of(source), name_of(source)
    with errors_name(source):
        model = tflite.load(data)
    if any(code.custom_code == CUSTOM_OPERATOR for code in model.operator_codes):
        raise InputError(f"{file} is compiled for the Edge TPU: give the model before compilation")
    return WholeModel(data, model, file, {}, None, kernels)
