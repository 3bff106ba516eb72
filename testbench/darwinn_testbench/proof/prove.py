"""Proof of function: an executable is the same function of its inputs as its network."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from darwinn_formats.darwinn import Executable
from darwinn_reference.arrays import AnyArray
from darwinn_reference.tflite.call import CompilerChoices
from darwinn_reference.tflite.graph import ABSENT, Network, Operator
from darwinn_sim.kernel.field import CONSTANTS, random_elements
from darwinn_sim.kernel.numbering import Made
from darwinn_sim.kernel.structure import Records
from darwinn_sim.lifting.walk import NotLifted
from darwinn_sim.numbering.run import Collector, Elements, Numbered, number_program
from numpy.typing import NDArray

from darwinn_testbench.chip import kept
from darwinn_testbench.chip.model import BoundLayer
from darwinn_testbench.chip.session import Session
from darwinn_testbench.proof.difference import (
    Results,
    Surplus,
    TermDifference,
    difference,
    single_multiple,
)
from darwinn_testbench.proof.network import NetworkNumbers, OperatorProof
from darwinn_testbench.proof.number_set import NumberSet
from darwinn_testbench.proof.result_layers import ResultLayers
from darwinn_testbench.proof.terms import NOT_REACHED, StageTerms, takes_own_ways

NO_ELEMENT = "the program computes no element of it as its rule says"


@dataclass(frozen=True, eq=False)
class Uncompiled:
    """The network before compilation, from the bytes ``data`` of its file.

    ``choices`` are what it leaves to the compiler. Of its tensors ``on_chip`` are those that the
    chip computes, and ``outputs`` those that it sends, by port; ``names`` have the name of a tensor
    for a port of another name.
    """

    network: Network
    data: bytes
    choices: CompilerChoices
    on_chip: Collection[int]
    outputs: Mapping[str, int]
    names: Mapping[str, str]

    def name(self, port: str) -> str:
        """The name of the tensor of a port."""
        return self.names.get(port, port)


def path_of(kind: str, session: Session, uncompiled: Uncompiled) -> Path:
    """The path at which findings about a program and its network are kept."""
    compiled = session.model.compiled
    names = sorted(uncompiled.names.items())
    subjects = compiled.inference, compiled.caching, uncompiled.data, names
    return kept.path_of(kind, *subjects, session.device.preloads)


@dataclass(frozen=True)
class OutputProof:
    """How many elements of an output are the same function on the chip as in the network."""

    name: str
    elements: int
    proved: int
    reason: str = ""

    @property
    def wrong(self) -> bool:
        """Some of its elements are another function."""
        return not self.reason and self.proved < self.elements


@dataclass(frozen=True)
class OperatorVerdict:
    """An operator that is not proved.

    ``reason`` says why it is only sampled. Without a reason, ``missing`` of its ``elements`` are
    another function, and ``difference`` names the difference. ``layers`` of the program compute it,
    as far as known.
    """

    index: int
    name: str
    elements: int = 0
    missing: int = 0
    reason: str = ""
    difference: TermDifference | None = None
    layers: tuple[int, ...] = ()

    def __str__(self) -> str:
        named = f"operator {self.index} {self.name}"
        if self.reason:
            return f"{named}: {self.reason}"
        if self.difference is not None:
            return str(self.difference)
        return f"{named}: {self.missing:,} of {self.elements:,} elements are another function"


@dataclass(frozen=True)
class FunctionProof:
    """The result of a proof. ``reason`` says why none could be tried.

    Those of the ``operators`` on the chip are proved that are neither ``sampled`` nor ``refuted``.
    """

    operators: int = 0
    sampled: tuple[OperatorVerdict, ...] = ()
    refuted: tuple[OperatorVerdict, ...] = ()
    outputs: tuple[OutputProof, ...] = ()
    reason: str = ""

    @property
    def proved(self) -> bool:
        """Every element of every output is the same function of the inputs."""
        return bool(self.outputs) and all(each.proved == each.elements for each in self.outputs)


class NumberedInference(NamedTuple):
    """Of the program: ``chip`` has all its numbers. ``inputs``: those it is sent, by layer, and
    ``given`` those of the network's tensors."""

    inputs: Mapping[str, Elements]
    given: Mapping[int, Elements]
    chip: NumberSet
    numbered: Numbered


def prove(session: Session, uncompiled: Uncompiled) -> FunctionProof:
    """Compare a program with a network, for all inputs.

    The chip is left as after an inference.
    """
    try:
        program = numbered_inference(session, uncompiled, NumberSet())
        return _Proof(session, uncompiled, program).result()
    except NotLifted as reason:
        return FunctionProof(reason=str(reason))


def numbered_inference(
    session: Session, uncompiled: Uncompiled, chip: NumberSet
) -> NumberedInference:
    """An inference on numbers, all of which ``chip`` takes.

    Raises:
        NotLifted: what the program does may depend on data, or an input is none of the network's.
        SimulationError: the program fails.
    """
    # Flags are as an inference leaves them, and parameters are there.
    session.infer({port.name: np.zeros(port.shape, port.dtype) for port in session.ports})
    given, inputs = numbers_of_inputs(session, uncompiled)
    executable = session.model.compiled.inference
    numbered = number_program(session.accelerator, executable, inputs, chip)
    # The scalar core computes some outputs: they are no tile's results.
    for each in (*inputs.values(), *numbered.outputs.values()):
        chip.enter(each[each >= CONSTANTS])
    return NumberedInference(inputs, given, chip, numbered)


def numbers_of_inputs(
    session: Session, uncompiled: Uncompiled
) -> tuple[dict[int, Elements], dict[str, Elements]]:
    """Numbers of the network's inputs, by tensor, and of the bytes that the chip is sent, by layer.

    Raises:
        NotLifted: an input of the program is none of the network.
    """
    model, network = session.model, uncompiled.network
    executable = model.compiled.inference
    random = np.random.default_rng(_seed(executable, uncompiled.data))
    inputs: dict[str, Elements] = {}
    given: dict[int, Elements] = {}
    for bound in model.inputs:
        tensor = network.tensor(uncompiled.name(bound.port.name))
        if tensor is None or bound.constant is not None or tensor.variable:
            raise NotLifted(f"the network has no input {bound.port.name}")
        if bound.port.dtype.itemsize != 1 or bound.port.elements != tensor.size:
            raise NotLifted(f"input {bound.port.name} is not one byte for each element")
        elements = random_elements(random, tensor.size)
        given[tensor.index] = elements.reshape(tensor.shape)
        inputs[bound.layer.name] = _sent(bound, elements, random)
    return given, inputs


class _Proof:
    """A program and its network. They are compared once, and again if a difference may change
    nothing.
    """

    def __init__(
        self, session: Session, uncompiled: Uncompiled, program: NumberedInference
    ) -> None:
        self._session, self._uncompiled, self._program = session, uncompiled, program
        self._results: Results | None = None
        # Of most programs nothing more is asked: numbers of large networks take gigabytes.
        self._network = self._numbers(kept=set(uncompiled.outputs.values()))

    def _numbers(self, kept: Collection[int] | None = None) -> NetworkNumbers:
        uncompiled, program = self._uncompiled, self._program
        return NetworkNumbers(
            uncompiled.network,
            uncompiled.choices,
            uncompiled.on_chip,
            program.chip,
            program.numbered.maxima,
            program.given,
            kept,
            None if self._results is None else self._resolve,
        )

    def result(self) -> FunctionProof:
        """What is proved."""
        outputs = self._outputs()
        first = self._first_wrong(outputs)
        if first is not None:
            # Once more, with an eye on differences that change nothing.
            self._results = Results()
            self._run(self._results)
            self._network = self._numbers()
            outputs = self._outputs()
            first = self._first_wrong(outputs)
        refuted = None if first is None else self._explained(first)
        return self._judged(outputs, refuted)

    def _run(self, collector: Collector) -> None:
        """Number the program again, for other results."""
        number_program(
            *(self._session.accelerator, self._session.model.compiled.inference),
            *(self._program.inputs, collector),
        )

    def _resolve(
        self, operator: Operator, missing: NDArray[np.int64], stage: StageTerms
    ) -> Mapping[int, np.uint64]:
        assert self._results is not None
        return self._results.harmless(self._network.network, operator, missing, stage)

    def _outputs(self) -> tuple[OutputProof, ...]:
        numbered = self._program.numbered
        return tuple(
            _compared(bound, numbered.outputs[bound.layer.name], self._network, self._uncompiled)
            for bound in self._session.model.outputs
        )

    def _first_wrong(self, outputs: Sequence[OutputProof]) -> OperatorProof | None:
        """The first operator with elements that the chip does not make, and that matter."""
        ends = {self._uncompiled.outputs[each.name] for each in outputs if each.wrong}
        for each in self._network.operators:
            if each.reason and each.reason != NOT_REACHED:
                ends |= {k for k in each.operator.inputs if self._network.absent.get(k)}
        before = {
            each.index for end in ends for each in self._uncompiled.network.operators_before(end)
        }
        wrong = (each for each in self._network.operators if each.missed)
        return next((each for each in wrong if each.operator.index in before), None)

    def _explained(self, wrong: OperatorProof) -> OperatorVerdict:
        """What differs in an operator."""
        operator = wrong.operator
        found = OperatorVerdict(operator.index, operator.name, wrong.elements, wrong.missed)
        stages: list[StageTerms] = []
        made = self._network.terms(operator, stages)
        output = operator.outputs[0]
        if len(stages) == 1 and output in wrong.missing:
            term = self._term(operator, wrong.missing[output], stages[0])
            found = replace(found, difference=term, layers=self._layers(stages[0]))
        elif not (
            stages or self._makes_some(wrong, made) or self._network.begins_alike(operator, self)
        ):
            return OperatorVerdict(operator.index, operator.name, reason=NO_ELEMENT)
        return found

    def _makes_some(self, wrong: OperatorProof, made: Mapping[int, Elements]) -> bool:
        """Whether the program makes some elements in the way of the operator's rule.

        Programs may take an extreme in a way of their own. Elements that are constants, or come out
        as they went in, are those of every way.
        """
        if wrong.missed == wrong.elements or not takes_own_ways(wrong.operator.name):
            return wrong.missed < wrong.elements
        numbers = self._network.numbers
        given = [numbers[k].reshape(-1) for k in wrong.operator.inputs if k in numbers]
        own = (each[each >= CONSTANTS] for each in made.values())
        known = np.concatenate([*given, np.empty(0, np.uint64)])
        return any(bool(self.have(each[~np.isin(each, known)]).any()) for each in own)

    def have(self, numbers: Elements) -> NDArray[np.bool_]:
        """As :class:`terms.Program`."""
        return self._program.chip.have(np.ascontiguousarray(numbers))

    def multiplies(self, sums: Elements) -> bool:
        """As :class:`terms.Program`."""
        return single_multiple(np.unique(self._surplus()["total"]), sums)[0] >= 0

    def _surplus(self) -> Records[Made]:
        """Results of the program that are none of the network."""
        known = NumberSet()
        for each in self._network.numbers.values():
            known.enter(each.reshape(-1))
        surplus = Surplus(known)
        self._run(surplus)
        return surplus.made()

    def _misplaced(self, outputs: Sequence[OutputProof]) -> list[OperatorVerdict]:
        """What gives outputs of which the chip makes every element, and sends another one."""
        found = []
        for each in outputs:
            end = self._uncompiled.outputs.get(each.name, ABSENT)
            before = self._uncompiled.network.operators_before(end)
            if each.wrong and before:
                place, missing = (before[-1].index, before[-1].name), each.elements - each.proved
                found.append(OperatorVerdict(*place, each.elements, missing))
        return found

    def _term(
        self, operator: Operator, missing: NDArray[np.int64], stage: StageTerms
    ) -> TermDifference | None:
        # By the values of the file, not by those of the chip's bytes.
        network, numbers = self._uncompiled.network, self._network.numbers
        return difference(network, operator, numbers, missing, stage, self._surplus())

    def _layers(self, stage: StageTerms) -> tuple[int, ...]:
        """Layers of which many sums are those of an operator."""
        assert self._results is not None
        made, same = self._results.with_sums(stage.totals)
        of = ResultLayers(made, self._session.program.chunks)
        return tuple(sorted(of.made_of(same)))

    def _judged(
        self, outputs: tuple[OutputProof, ...], found: OperatorVerdict | None
    ) -> FunctionProof:
        sampled = [
            OperatorVerdict(each.operator.index, each.operator.name, reason=each.reason)
            for each in self._network.operators
            if each.reason
        ]
        refuted = self._misplaced(outputs) if found is None else []
        if found is not None:
            (sampled if found.reason else refuted).append(found)
            done = {each.index for each in (*sampled, *refuted)}
            sampled += [
                OperatorVerdict(each.operator.index, each.operator.name, reason=NOT_REACHED)
                for each in self._network.operators
                if each.missed and each.operator.index not in done
            ]
        sampled.sort(key=lambda each: each.index)
        operators = len(self._network.operators)
        return FunctionProof(operators, tuple(sampled), tuple(refuted), outputs)


def _seed(executable: Executable, network: bytes) -> list[int]:
    """The same in every proof of the same files, and of no others."""
    digest = hashlib.sha256(network)
    for chunk in executable.instruction_bitstreams:
        digest.update(chunk.bitstream)
    digest.update(executable.parameters)
    return list(digest.digest())


def _sent(bound: BoundLayer, elements: Elements, random: np.random.Generator) -> Elements:
    """Numbers of the bytes that the chip is sent for an input; padding is nobody's."""
    place: NDArray[np.int64] | int = 0
    # From 1 on: padding is 0.
    numbers = np.arange(1, elements.size + 1)
    for shift in range(0, int(elements.size).bit_length(), 8):
        octets = (numbers >> shift & 0xFF).astype(np.uint8)
        sent = bound.to_device(_as_stored(octets, bound).reshape(bound.port.shape))
        place = place | np.frombuffer(sent, np.uint8).astype(np.int64) << shift
    found = random_elements(random, np.size(place))
    mine = (place > 0) & (place <= elements.size)
    found[mine] = elements[np.asarray(place)[mine] - 1]
    return found


def _as_stored(octets: NDArray[np.uint8], bound: BoundLayer) -> AnyArray:
    """Bytes of the chip as values of a tensor."""
    signed = bound.port.dtype == np.int8
    return (octets ^ np.uint8(0x80)).view(np.int8) if signed else octets


def _compared(
    bound: BoundLayer, numbers: Elements, found: NetworkNumbers, uncompiled: Uncompiled
) -> OutputProof:
    name, elements = bound.port.name, int(np.prod(bound.port.shape))
    index = uncompiled.outputs.get(name)
    if index is None or index not in found.numbers:
        return OutputProof(name, elements, 0, NOT_REACHED)
    places = _places(bound, numbers.size)
    if places is None:
        return OutputProof(name, elements, 0, "its elements have 16 bits")
    expected = found.numbers[index].reshape(-1)
    same = numbers[places.reshape(-1)] == expected
    return OutputProof(name, elements, int(np.count_nonzero(same)))


def _places(bound: BoundLayer, size: int) -> NDArray[np.int64] | None:
    """Where the bytes of a tensor's elements are in a layer, in device order; None if an element
    has several."""
    places = np.zeros(bound.port.shape, np.int64)
    for shift in range(0, size.bit_length(), 8):
        octets = (np.arange(size) >> shift & 0xFF).astype(np.uint8)
        tensor = bound.from_device(octets.tobytes())
        if tensor.dtype.itemsize != 1:
            return None
        octets = tensor.view(np.uint8)
        if tensor.dtype == np.int8:
            octets = octets ^ np.uint8(0x80)
        places |= octets.astype(np.int64) << shift
    return places
