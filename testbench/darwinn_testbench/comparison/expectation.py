"""The outputs that the CPU references of an uncompiled model expect of a compiled one.

Its tensors are found through the inputs and outputs of the compiled model, which carry their names,
or through names that the caller maps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

import numpy as np
from darwinn_formats.files import Source
from darwinn_reference.arrays import AnyArray
from darwinn_reference.errors import ModelError
from darwinn_reference.tflite.graph import ABSENT, Network, NetworkTensor, TensorValues
from darwinn_reference.tflite.model import CpuModel

from darwinn_testbench.chip.inputs import TensorMap, TensorPort
from darwinn_testbench.chip.model import BoundLayer, BoundModel
from darwinn_testbench.chip.whole import NO_GRAPH, GraphEnds
from darwinn_testbench.comparison import graph_ends
from darwinn_testbench.comparison.another_model import Twin
from darwinn_testbench.comparison.compare import Comparison
from darwinn_testbench.comparison.operator_coverage import Coverage, LiteRtParts
from darwinn_testbench.comparison.pairing import parse_maps
from darwinn_testbench.comparison.sides import port_of, refuse_compiled
from darwinn_testbench.errors import InputError
from darwinn_testbench.layers.on_chip import RENAMING, same_bytes, tensors_on_chip
from darwinn_testbench.layers.taken_tensors import TakenTensor
from darwinn_testbench.proof.prove import Uncompiled


class References:
    """The CPU references of an uncompiled model, looked at through the outputs of a compiled one.

    ``bound`` is the compiled model, ``ports`` are the inputs of the uncompiled graph. ``maps`` are
    names of its tensors for those of the compiled model, where they differ, as for :func:`verify`;
    ``ends`` are those of the compiled graph, which operators on the CPU may be at. The chip sends
    the tensors ``outputs``, by port name, is given ``inputs``, and computes ``on_chip``;
    ``lacking`` are outputs of the network that are none of the compiled graph; ``groups`` are those
    of the same bytes; ``parts`` runs parts of it in LiteRT. ``anyway`` compares with another model
    than the compiled one was compiled from; ``differences`` then says what is another.

    Raises:
        FormatError, ModelError: the model is not valid, or of a kind that no reference reads.
        InputError: the compiled model was compiled from another model, or it is compiled itself.
        OSError: the file cannot be read.
    """

    def __init__(
        self,
        path: Source,
        bound: BoundModel,
        maps: Sequence[str] = (),
        ends: GraphEnds = NO_GRAPH,
        *,
        anyway: bool = False,
    ) -> None:
        refuse_compiled(path)
        self.anyway, self.bound = anyway, bound
        self.differences: list[str] = []
        self.cpu = CpuModel.load(path, bound.compiled.inference)
        network = self.cpu.network
        self.names = _tensor_names(network, bound, ends, maps)
        self.names |= _named_in_order(network, bound, self.names)
        self.ports = tuple(_port(network, network.tensors[index]) for index in network.inputs)
        self.outputs: dict[str, int] = {}
        self._unmatched: dict[str, str] = {}
        for output in bound.outputs:
            name = output.port.name
            try:
                self.outputs[name] = self._match(output, "output")
            except ModelError as error:
                self._unmatched[name] = error.reason
        computed = (tensor for tensor in network.tensors if tensor.constant is None)
        if bound.outputs and not any(tensor.quantised for tensor in computed):
            raise InputError(
                f"{self.cpu.file} is a float model: no tensor that it computes is quantised; "
                "name the quantised model that the executable was compiled from"
            )
        for given in bound.inputs:
            # A model that names its inputs otherwise gives them in order.
            with suppress(ModelError):
                self._match(given, "input")
        ports = [network.tensor(self.name(port.name)) for port in bound.ports]
        self.inputs = frozenset(network.inputs).union(each.index for each in ports if each)
        self.on_chip = frozenset(tensors_on_chip(network, self.inputs, self.outputs.values()))
        self.groups = same_bytes(network)
        self.parts = LiteRtParts(self.cpu.data, network)
        self.twin = Twin(
            network,
            bound.compiled.caching,
            bound.compiled.inference,
            tuple(self.outputs.values()),
            self.inputs,
        )
        self._note(self.twin.differences())
        self.lacking: list[str] = []
        if ends is not NO_GRAPH:
            self._note(graph_ends.difference(ends, network, self.name, in_order=not maps))
            self.lacking = graph_ends.lacking(ends, network, self.name)

    @property
    def uncompiled(self) -> Uncompiled:
        """The network, for a proof."""
        cpu = self.cpu
        return Uncompiled(
            cpu.network, cpu.data, cpu.chip.choices, self.on_chip, self.outputs, self.names
        )

    def name(self, port: str) -> str:
        """The name that the tensor of a port has in the uncompiled graph."""
        return self.names.get(port, port)

    def _match(self, compiled: BoundLayer, what: str) -> int:
        """The tensor of an input or output; ModelError if none has its name."""
        layer = replace(compiled.layer, name=self.name(compiled.layer.name))
        (matched,) = self.cpu.match([layer])
        if matched.difference and not matched.comparable:
            raise InputError(f"{self._another}: {what} {compiled.port.name}: {matched.difference}")
        if matched.difference:
            self._note(f"{what} {compiled.port.name}: {matched.difference}")
        return matched.tensor.index

    @property
    def _another(self) -> str:
        return f"{self.cpu.file} is not the model before compilation"

    def _note(self, difference: str) -> None:
        """Refuse another model, unless it is compared all the same."""
        if not difference:
            return
        if not self.anyway:
            raise InputError(
                f"{self._another}: {difference}; `darwinn verify --anyway` compares nevertheless"
            )
        self.differences.append(f"{self._another}: {difference}")

    def expect(self, inputs: TensorMap, states: TensorMap) -> Expectation:
        """Every tensor of the graph for ``inputs`` (by port name), by both references.

        ``states`` are the variables that the chip begins with, by port name.
        """
        values = [inputs[port.name] for port in self.ports]
        variables = self._variables(states)
        litert: TensorValues | str
        try:
            litert = self.cpu.litert.run(values, variables)
        except ModelError as error:
            # Whatever LiteRT cannot run is decided, or refused, without it.
            litert = str(error)
        return Expectation(self, self._on_chip(values, variables, litert), litert, variables)

    def _on_chip(
        self,
        values: Sequence[AnyArray],
        variables: Mapping[int, AnyArray],
        litert: TensorValues | str,
    ) -> TensorValues:
        """The chip's arithmetic, from the tensors on that operators on the CPU give to the chip."""
        given = dict(variables)
        if not isinstance(litert, str):
            within = self.inputs.difference(self.cpu.network.inputs)
            given |= {index: litert[index] for index in within if index in litert}
        return self.cpu.chip.run(values, given)

    def _variables(self, states: TensorMap) -> dict[int, AnyArray]:
        found = ((self.cpu.network.tensor(self.name(name)), states[name]) for name in states)
        return {
            tensor.index: value.reshape(tensor.shape)
            for tensor, value in found
            if tensor is not None
            and tensor.variable
            and (tensor.dtype, tensor.size) == (value.dtype, value.size)
        }

    def find(self, values: TensorValues | str, output: str) -> tuple[AnyArray | None, str]:
        """What a reference expects of an output, or None and the reason why there is nothing."""
        if isinstance(values, str):
            return None, values
        index = self.outputs.get(output)
        if index is None:
            return None, self._unmatched[output]
        if index in values.missing:
            return None, values.missing[index]
        return values[index], ""

    def assumed(self, values: TensorValues, output: str) -> tuple[str, ...]:
        """What the chip arithmetic of an output rests on that no file has shown."""
        index = self.outputs.get(output)
        if index is None or index not in values or not values.assumed:
            return ()
        return tuple(
            f"operator {each.index} {each.name}: {values.assumed[each.index]}"
            for each in self.cpu.network.operators_before(index)
            if each.index in values.assumed
        )


@dataclass(frozen=True)
class Expectation:
    """What the references say of one inference; text in place of LiteRT's values is the reason.

    ``variables`` are the values that variables began with, by tensor of the graph. ``coverage``
    says how each operator was compared (see :mod:`tapped_inference`).
    """

    references: References
    chip: TensorValues
    litert: TensorValues | str
    variables: Mapping[int, AnyArray] = field(default_factory=dict)
    coverage: Coverage = field(default_factory=Coverage)

    @property
    def incomplete(self) -> bool:
        """Whether the oracle lacks a tensor that the chip computes."""
        return not self.references.on_chip.isdisjoint(self.chip.missing)

    def find_chip(self, output: str) -> tuple[AnyArray | None, str]:
        """The chip arithmetic of an output; none of one that was taken from the chip."""
        taken = self._taken_as(output)
        if taken is not None:
            return None, "; ".join(taken.reasons)
        return self.references.find(self.chip, output)

    def find_litert(self, output: str) -> Comparison | None:
        """How a taken output compares with LiteRT from the chip's own bytes; None of others."""
        taken = self._taken_as(output)
        judged = None if taken is None else self.coverage.judged.get(taken.tensor)
        return None if isinstance(judged, str) else judged

    def problems(self, output: str) -> list[str]:
        """What is wrong before an output and does not show in it."""
        index = self.references.outputs.get(output)
        return [] if index is None else self.coverage.problems(self.references.cpu.network, index)

    def _taken_as(self, output: str) -> TakenTensor | None:
        """The taken tensor that an output is, if it is one, or has the same bytes."""
        group = self.references.groups.get(self.references.outputs.get(output, ABSENT), ())
        taken = self.coverage.taken
        return next((taken[k] for k in group if k in taken), None)

    @property
    def values(self) -> dict[int, AnyArray]:
        """The tensors of the graph: in the chip's arithmetic, or else LiteRT's."""
        known = {} if isinstance(self.litert, str) else dict(self.litert)
        return known | dict(self.chip)

    def intermediate(self, port: str) -> AnyArray | None:
        """The value of a tensor within the graph, which a later part of a pipeline starts from."""
        tensor = self.references.cpu.network.tensor(self.references.name(port))
        for values in (self.litert, self.chip):
            if tensor is not None and not isinstance(values, str) and tensor.index in values:
                return values[tensor.index]
        return None


def _tensor_names(
    network: Network, bound: BoundModel, ends: GraphEnds, maps: Sequence[str]
) -> dict[str, str]:
    """Names of tensors of the graph by names of ports, as ``maps`` say."""
    inputs = {port.name: port_of(port) for port in (*bound.ports, *ends.inputs)}
    sent = (each.port for each in bound.outputs)
    outputs = {port.name: port_of(port) for port in (*sent, *ends.outputs)}
    said = parse_maps(maps, list(inputs.values()), list(outputs.values()))
    names = {}
    for kind, each_said, indices in (
        ("input", said.inputs, network.inputs),
        ("output", said.outputs, network.outputs),
    ):
        for name, each in each_said.items():
            if each.channels_last is not None or each.shape is not None:
                raise InputError(
                    f"--map {name}: both sides are NHWC, so it takes no layout or shape"
                )
            tensor = network.tensor(each.right)
            if tensor is None and each.right.isdigit() and int(each.right) < len(indices):
                tensor = network.tensors[indices[int(each.right)]]
            if tensor is None:
                known = ", ".join(f"{k} {network.tensors[i].name}" for k, i in enumerate(indices))
                raise InputError(f"--map: there is no {kind} {each.right}, only {known}")
            names[name] = tensor.name
    return names


def _port(network: Network, tensor: NetworkTensor) -> TensorPort:
    scale, zero_point = tensor.quantisation
    return TensorPort(
        name=tensor.name,
        shape=tensor.shape,
        dtype=tensor.dtype,
        scale=scale,
        zero_point=zero_point,
        limits=_limits(network, tensor),
    )


def _limits(network: Network, tensor: NetworkTensor) -> tuple[float, float] | None:
    """What a floating point tensor can be, by the QUANTIZE that follows; None if it is not known.

    Operators that only give it another shape may lie between.
    """
    same = {tensor.index}
    for operator in network.operators if tensor.dtype.kind == "f" else ():
        if same.isdisjoint(operator.inputs[:1]):
            continue
        if operator.name in RENAMING:
            same.update(operator.outputs)
        for result in (network.tensors[index] for index in operator.outputs[:1]):
            if operator.name == "QUANTIZE" and result.quantised and result.dtype.kind in "iu":
                ends = np.iinfo(result.dtype)
                scale, zero_point = result.quantisation
                low, high = (scale * (end - zero_point) for end in (ends.min, ends.max))
                return (low, high) if np.isfinite(high - low) else None
    return None


def _named_in_order(
    network: Network, bound: BoundModel, names: Mapping[str, str]
) -> dict[str, str]:
    """Names of inputs by order, if the network knows none of them by name."""
    known = [network.tensor(names.get(port.name, port.name)) for port in bound.ports]
    if len(bound.ports) != len(network.inputs) or any(tensor is not None for tensor in known):
        return {}
    inputs = (network.tensors[index] for index in network.inputs)
    return {port.name: tensor.name for port, tensor in zip(bound.ports, inputs, strict=True)}


def device_inputs(
    ports: Sequence[TensorPort], tensors: TensorMap, expectation: Expectation | None
) -> dict[str, AnyArray]:
    """What ``ports`` are fed: inputs of the uncompiled graph, or tensors within it, by name.

    A graph that names its inputs otherwise gives them in order.

    Raises:
        InputError: the graph has no such tensor, or one of another size or type.
    """
    named = {port.name for port in ports if _find(port.name, tensors, expectation) is not None}
    if len(ports) == len(tensors) and not named:
        return {
            port.name: _fit(tensor, port)
            for port, tensor in zip(ports, tensors.values(), strict=True)
        }
    chosen: dict[str, AnyArray] = {}
    for port in ports:
        tensor = _find(port.name, tensors, expectation)
        if tensor is None:
            raise InputError(
                f"{port}: the uncompiled model has no tensor of this name: is it the same model?"
            )
        chosen[port.name] = _fit(tensor, port)
    return chosen


def _find(name: str, tensors: TensorMap, expectation: Expectation | None) -> AnyArray | None:
    """An input of the uncompiled graph, or a tensor within it."""
    own = name if expectation is None else expectation.references.name(name)
    if own in tensors or expectation is None:
        return tensors.get(own)
    return expectation.intermediate(name)


def _fit(tensor: AnyArray, port: TensorPort) -> AnyArray:
    if tensor.dtype != port.dtype or tensor.size != port.elements:
        raise InputError(
            f"{port}: the uncompiled model has {tensor.dtype} "
            f"{'x'.join(map(str, tensor.shape))} in its place: is it the same model?"
        )
    return tensor.reshape(port.shape)
