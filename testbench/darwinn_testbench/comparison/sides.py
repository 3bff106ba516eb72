"""Everything that can run and be compared, behind the protocol of the CPU references:

- a compiled model on the simulated chip
- a model before compilation in LiteRT
- programs of other formats
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from darwinn_formats import tflite
from darwinn_formats.darwinn import load
from darwinn_formats.darwinn.loader import CUSTOM_OPERATOR
from darwinn_formats.darwinn.schema import IDENTIFIER as PACKAGE_IDENTIFIER
from darwinn_formats.errors import ExecutionError, FormatError, Unavailable
from darwinn_formats.files import Source, content_of, name_of, read_once
from darwinn_reference.arrays import AnyArray
from darwinn_reference.errors import ModelError
from darwinn_reference.protocol import (
    Datum,
    Intermediate,
    Output,
    Port,
    Reference,
    Steps,
    Tap,
)
from darwinn_reference.tflite import indexing
from darwinn_reference.tflite.graph import Network, TensorValues
from darwinn_reference.tflite.litert import LiteRtReference
from darwinn_sim.errors import SimulationError
from darwinn_sim.machine.examine import Tap as ChipTap
from darwinn_sim.machine.examine import TappedBytes

from darwinn_testbench.chip.dma_check import DmaFigures, dma_figures
from darwinn_testbench.chip.hazards import MOST_GIVEN
from darwinn_testbench.chip.inputs import TensorMap, TensorPort
from darwinn_testbench.chip.model import BoundModel, bind_file, choose_model
from darwinn_testbench.chip.pipeline import Segment
from darwinn_testbench.chip.schedules import Inferred, faulted
from darwinn_testbench.chip.session import Device, Inference, Session
from darwinn_testbench.chip.whole import (
    NO_GRAPH,
    GraphEnds,
    WholeInference,
    WholeModel,
    ends_of,
    whole_of,
)
from darwinn_testbench.comparison.asked import Asked
from darwinn_testbench.comparison.pairing import Layout
from darwinn_testbench.errors import InputError
from darwinn_testbench.layers.candidates import layer_taps
from darwinn_testbench.programs.formats import format_of, open_program
from darwinn_testbench.programs.natives import load_natives
from darwinn_testbench.programs.run import inputs_of, unique

FUNCTION = "main"
"""The only function of what has no names for functions."""


@dataclass(eq=False)
class DeviceProgram:
    """A compiled model on a chip, the simulated one or the one in RTL (``protocol.Reference``).

    ``dma`` is what was moved, against its hints; ``label`` is what the chip is called in it.
    ``done`` are its inferences, the first ``most_done`` of them (None: all), if they are to be made
    again. With ``whole`` inputs and outputs are
    those of the whole model, of which this is the chip's part; ``given`` is what the chip was given
    in the last inference. ``ends`` are those of the compiled graph, whole or not.
    """

    functions = (FUNCTION,)

    model: BoundModel
    session: Session
    dma: list[DmaFigures] = field(default_factory=list)
    label: str = ""
    done: list[Inferred] | None = None
    most_done: int | None = None
    whole: WholeModel | None = None
    ends: GraphEnds = NO_GRAPH
    given: TensorMap = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._before = dict(self.session.states)
        self._watch: Callable[[TensorMap], Inference] = self._infer

    def inputs(self, function: str | None = None) -> tuple[Port, ...]:
        """The tensors that a caller supplies."""
        return tuple(map(port_of, self.segment.ports))

    def outputs(self, function: str | None = None) -> tuple[Port, ...]:
        """The tensors that are sent to the host."""
        return tuple(map(port_of, self.segment.results))

    @property
    def segment(self) -> Segment:
        """The whole model, or the chip's part if that is all."""
        return self.whole or self.session

    def run(
        self, inputs: Sequence[Datum], *, function: str | None = None, tap: Tap | None = None
    ) -> tuple[Output, ...]:
        """One inference.

        Raises:
            SimulationError: the program fails, or uses what the model of the chip lacks.
        """
        if tap is not None:
            raise ExecutionError("layers of a chip are seen through its own taps")
        self._before = dict(self.session.states)
        self._watch = self._infer
        tensors = self._tensors(inputs)
        results = (self.whole.infer(tensors) if self.whole else self._infer(tensors)).outputs
        return tuple(
            Output(port.name, results[port.name], port.scale, port.zero_point)
            for port in self.outputs()
        )

    def load_parameters(self) -> None:
        """Run the parameter-caching executable, if there is one; raises as :meth:`run` does."""
        result, caching = self.session.load_parameters(), self.model.compiled.caching
        if result is not None and caching is not None:
            name = f"parameter caching{self.label}"
            self.dma.append(dma_figures(caching, result.transfers, name))

    def infer(self, tensors: TensorMap, number: int, taps: Sequence[ChipTap] = ()) -> Inference:
        """One inference on ``tensors`` (by port name), as far as its program goes.

        Raises:
            SimulationError: the program fails, or uses what the chip lacks.
        """
        inference = self._infer(tensors, taps, as_far_as_it_goes=True)
        name = f"inference {number}{self.label}"
        issued = inference.result.transfers
        self.dma.append(dma_figures(self.model.compiled.inference, issued, name))
        return inference

    def infer_whole(
        self, tensors: TensorMap, number: int, taps: Sequence[ChipTap] = ()
    ) -> tuple[WholeInference, Inference]:
        """One inference of the whole model, and the chip's part in it, made by :meth:`infer`."""
        assert self.whole is not None
        made: list[Inference] = []

        def watched(given: TensorMap) -> Inference:
            made.append(self.infer(given, number, taps))
            return made[0]

        self._watch = watched
        return self.whole.infer(tensors), made[0]

    def in_whole(self, session: Session, tensors: TensorMap) -> Inference:
        """An inference that the whole model asks for: of this model, or of another one of it."""
        if session is not self.session:
            return session.infer(tensors, as_far_as_it_goes=True)
        self.given = tensors
        return self._watch(tensors)

    def _infer(
        self, tensors: TensorMap, taps: Sequence[ChipTap] = (), *, as_far_as_it_goes: bool = False
    ) -> Inference:
        given = {**self.session.states, **tensors}
        try:
            found = self.session.infer(given, taps=taps, as_far_as_it_goes=as_far_as_it_goes)
        except SimulationError as error:
            if self.done is not None:
                self.done += faulted(error, given)
            raise
        if self.done is not None and (self.most_done is None or len(self.done) < self.most_done):
            self.done.append(Inferred(given, found.outputs))
        return found

    def prepare(self) -> None:
        """Do what a first inference would do besides; raises as :meth:`run` does."""
        if self.whole is not None:
            self.whole.prepare()
        self.session.prepare()

    def taps(self, inputs: Sequence[Datum]) -> tuple[TappedBytes, ...]:
        """What every layer writes in the last inference again; raises as :meth:`run` does."""
        taps = layer_taps(self.session.program)
        given = self.given if self.whole else self._tensors(inputs)
        again = {**self._before, **given}
        return tuple(self.session.infer(again, taps=taps).result.tapped)

    def _tensors(self, inputs: Sequence[Datum]) -> dict[str, AnyArray]:
        together = zip(self.segment.ports, inputs, strict=True)
        return {port.name: np.asarray(value) for port, value in together}

    def reset(self) -> None:
        """Give variables their initial values; the chip itself keeps no others."""
        self.segment.reset_states()


class RtlProgram(DeviceProgram):
    """A compiled model on the chip in RTL, beside the simulated one, whose ``dma`` it shares.

    Its waves go to the file ``waves``, if there is one; ``stall_seed`` is as of ``RtlAccelerator``.

    Raises:
        Unavailable: the RTL cannot be built here.
    """

    def __init__(
        self, beside: DeviceProgram, seed: int, waves: Path | None, stall_seed: int | None
    ) -> None:
        # Imported here: nothing else needs what builds the RTL.
        from darwinn_rtl.chip.engine import RtlAccelerator

        self._accelerator = RtlAccelerator(seed=seed, waves=waves, stall_seed=stall_seed)
        session = Session(beside.model, device=Device(accelerator=self._accelerator))
        super().__init__(beside.model, session, beside.dma, " (RTL)")

    def close(self) -> None:
        """End the simulation; the waves are complete then."""
        self._accelerator.close()


class TfliteProgram:
    """A TensorFlow Lite model in LiteRT (``protocol.Reference``).

    Raises:
        FormatError, ModelError: it is no valid model, or LiteRT refuses it.
        InputError: it is compiled for the Edge TPU.
    """

    functions = (FUNCTION,)

    def __init__(self, source: Source) -> None:
        data = content_of(source)
        self.litert = LiteRtReference(data, file=name_of(source))
        self.network = self.litert.network
        self._states: dict[int, AnyArray] = {}

    def inputs(self, function: str | None = None) -> tuple[Port, ...]:
        """Inputs of the graph."""
        return self._ports(self.network.inputs)

    def outputs(self, function: str | None = None) -> tuple[Port, ...]:
        """Outputs of the graph."""
        return self._ports(self.network.outputs)

    def run(
        self, inputs: Sequence[Datum], *, function: str | None = None, tap: Tap | None = None
    ) -> tuple[Output, ...]:
        """Run the graph; LiteRT computes it as a whole, so a tap sees but cannot replace values.

        Raises:
            ExecutionError: LiteRT fails.
            Unavailable: the tap gives another value to go on from.
        """
        try:
            values = self.litert.run([np.asarray(value) for value in inputs], self._states)
            results = self.litert.outputs_of(values)
        except ModelError as error:
            raise ExecutionError(str(error)) from error
        if tap is not None:
            self._show(values, tap)
        variables = (each.index for each in self.network.tensors if each.variable)
        self._states = {index: values[index] for index in variables if index in values}
        return tuple(
            Output(port.name, data, port.scale, port.zero_point)
            for port, data in zip(self.outputs(), results, strict=True)
        )

    def _show(self, values: TensorValues, tap: Tap) -> None:
        """Show what the operators have computed, in their order."""
        names: set[str] = set()
        for step, operator in enumerate(self.network.operators):
            for index in operator.outputs:
                if index not in values:
                    continue
                name = self.network.tensors[index].name
                name = f"{name}#{index}" if name in names else name
                names.add(name)
                if tap(Intermediate(name, step, operator.name, values[index])) is not None:
                    raise Unavailable("LiteRT cannot go on from given values")

    def reset(self) -> None:
        """Give variables their initial values."""
        self._states = {}

    def _ports(self, indices: Sequence[int]) -> tuple[Port, ...]:
        return tuple(_graph_port(self.network, index) for index in indices)


@dataclass(frozen=True, eq=False)
class Side:
    """A program with its name, and whether the order of its inputs and outputs says something.

    ``channels_last`` is how its images are stored by convention; None: there is none.
    """

    program: Reference
    file: str
    channels_last: bool | None = None

    @property
    def device(self) -> DeviceProgram | None:
        """The compiled model; None for other programs."""
        return self.program if isinstance(self.program, DeviceProgram) else None

    @property
    def has_layers(self) -> bool:
        """Whether inputs and outputs are a chip's layers, whose order is the compiler's choice."""
        return self.device is not None and self.device.whole is None

    def usual_layout(self, other: Side) -> Layout:
        """How images of this side are brought to the other side, by the conventions of both."""
        if {self.channels_last, other.channels_last} != {True, False}:
            return Layout.SAME
        return Layout.TO_NHWC if other.channels_last else Layout.TO_NCHW

    def prepare(self) -> None:
        """Do what is no part of a call, so that it is not timed with it; raises as a call does."""
        if self.device is not None:
            self.device.prepare()

    def inputs(self, function: str | None) -> tuple[Port, ...]:
        """Inputs, with names of their own."""
        return inputs_of(self.program, function, self.file)

    def outputs(self, function: str | None) -> tuple[Port, ...]:
        """Outputs, with names of their own."""
        return unique(self.program.outputs(function))


def open_side(asked: Asked) -> Side:
    """The left side: whatever a file is, ready to run.

    Raises:
        FormatError, ModelError, OSError: the file is not valid or cannot be read.
        InputError: there is no such model.
        Unsupported, Unavailable: a program needs what its engine does not have; it is named.
    """
    source, found = asked.source, format_of(asked.source)
    if found is not None:
        program: Reference = _open_program(asked, source, asked.function)
        return Side(program, name_of(source), found.channels_last)
    program = TfliteProgram(source) if is_uncompiled(source) else open_device(asked)
    return Side(program, name_of(source), channels_last=True)


def open_device(asked: Asked) -> DeviceProgram:
    """A compiled model on the simulated chip; raises as :func:`open_side`."""
    source = read_once(asked.source)
    file = load(source)
    bounds = bind_file(file, asked.others)
    bound = choose_model(bounds, asked.model)
    session = Session(bound, strict=asked.strict, seed=asked.seed, assumptions=asked.assumptions)
    again = asked.schedules or asked.hazards is not False
    ends = NO_GRAPH if file.shell is None else ends_of(file.shell)
    device = DeviceProgram(bound, session, done=[] if again else None, ends=ends)
    device.most_done = None if asked.schedules else MOST_GIVEN
    if not asked.chip_only and bound.on_cpu:
        device.whole = whole_of(source, file, bounds, session, device.in_whole)
    return device


def open_reference(asked: Asked) -> Side | None:
    """A reference: a file that is not compiled itself, or an object that runs as it is.

    Raises as :func:`open_side`, and InputError for a compiled file.
    """
    reference = asked.reference
    if not isinstance(reference, bytes | str | os.PathLike):
        return None if reference is None else Side(reference, type(reference).__name__)
    refuse_compiled(reference)
    if is_uncompiled(reference):
        return Side(TfliteProgram(reference), name_of(reference), channels_last=True)
    found = format_of(reference)
    channels_last = None if found is None else found.channels_last
    return Side(_open_program(asked, reference), name_of(reference), channels_last)


def _open_program(asked: Asked, source: Source, function: str | None = None) -> Reference:
    return open_program(
        source,
        function=function,
        natives=load_natives(asked.natives),
        host=asked.host_of(source),
        data=asked.data_of(source),
        engine=asked.engine,
    )


def is_uncompiled(source: Source) -> bool:
    """Whether a file is a TensorFlow Lite model that is not compiled for the Edge TPU.

    Raises:
        FormatError: it starts as a TensorFlow Lite model and is none.
        OSError: it cannot be read.
    """
    data = content_of(source)
    return data[4:8] == tflite.IDENTIFIER and not _has_custom_operator(data, source)


def _has_custom_operator(data: bytes, source: Source) -> bool:
    try:
        model = tflite.load(data)
    except FormatError as error:
        raise error.with_file(name_of(source)) from None
    return any(code.custom_code == CUSTOM_OPERATOR for code in model.operator_codes)


def refuse_compiled(source: Source) -> None:
    """Refuse a file that is compiled for the Edge TPU where a reference is wanted.

    Raises:
        InputError: it is one.
        OSError: it cannot be read.
    """
    data = content_of(source)
    is_graph = data[4:8] == tflite.IDENTIFIER
    if data[4:8] == PACKAGE_IDENTIFIER or (is_graph and _has_custom_operator(data, source)):
        raise InputError(
            f"{name_of(source)} is itself compiled for the Edge TPU: a reference is the model "
            "before compilation (.tflite), or a program of another format"
        )


def port_of(port: TensorPort) -> Port:
    """The port of a tensor of a compiled model."""
    quantisation = (port.scale, port.zero_point) if port.scale else ()
    return Port(port.name, port.dtype, port.shape, *quantisation)


def _graph_port(network: Network, index: int) -> Port:
    tensor = network.tensors[index]
    if not tensor.quantised:
        steps, limit = _steps_of(network, index), _index_limit(network, index)
        return Port(tensor.name, tensor.dtype, tensor.shape, steps=steps, limit=limit)
    return Port(tensor.name, tensor.dtype, tensor.shape, *tensor.quantisation)


def _index_limit(network: Network, index: int) -> int | None:
    """The size of what an integer input indexes."""
    if network.tensors[index].dtype.kind not in "iu":
        return None
    steps = (
        indexing.Step(each.name, each.inputs, each.outputs, int(each.options.get("axis", 0)))
        for each in network.operators
    )
    return indexing.index_limit(steps, lambda each: network.tensors[each].shape, index)


def _steps_of(network: Network, index: int) -> Steps | None:
    """What a floating point input or output is rounded to by the operators beside it."""
    readers = [each for each in network.operators if index in each.inputs]
    beside = [each.outputs[0] for each in readers if each.name == "QUANTIZE"]
    if len(beside) != len(readers):
        return None
    if not readers:
        writers = [each for each in network.operators if index in each.outputs]
        beside = [each.inputs[0] for each in writers if each.name == "DEQUANTIZE"]
    for stored in (network.tensors[each] for each in beside):
        if stored.quantised and stored.dtype.kind in "iu":
            return Steps(*stored.quantisation, stored.dtype)
    return None
