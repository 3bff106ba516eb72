"""Proof of function: an executable is the same function of its inputs as its network."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
from darwinn_formats.darwinn import Executable
from darwinn_sim.kernel.field import random_elements
from darwinn_sim.lifting.walk import NotLifted
from darwinn_sim.numbering.run import Elements, number_program
from numpy.typing import NDArray

from darwinn_testbench.chip.model import BoundLayer
from darwinn_testbench.chip.session import Session
from darwinn_testbench.comparison.expectation import References
from darwinn_testbench.policy import AnyArray
from darwinn_testbench.proof.network import ChipNumbers, NetworkNumbers, OperatorProof


@dataclass(frozen=True)
class OutputProof:
    """How many elements of an output are the same function on the chip as in the network."""

    name: str
    elements: int
    proved: int
    reason: str = ""


@dataclass(frozen=True)
class FunctionProof:
    """What is proved of a program. ``reason``: why nothing could be tried."""

    operators: tuple[OperatorProof, ...] = ()
    outputs: tuple[OutputProof, ...] = ()
    reason: str = ""

    @property
    def proved(self) -> bool:
        """Every element of every output is the same function of the inputs."""
        return bool(self.outputs) and all(each.proved == each.elements for each in self.outputs)

    @property
    def refuted(self) -> tuple[OperatorProof, ...]:
        """Operators with elements that the chip does not make."""
        return tuple(each for each in self.operators if each.missed)

    @property
    def sampled(self) -> tuple[OperatorProof, ...]:
        """Operators without terms."""
        return tuple(each for each in self.operators if each.reason)


def prove(session: Session, references: References) -> FunctionProof:
    """Compare what a program computes with what a network says, for all inputs.

    ``session`` has made an inference. The chip is left as after another one.
    """
    model, network = session.model, references.cpu.network
    executable = model.compiled.inference
    random = np.random.default_rng(_seed(executable, references.cpu.data))
    inputs: dict[str, Elements] = {}
    given: dict[int, Elements] = {}
    for bound in model.inputs:
        tensor = network.tensor(references.name(bound.port.name))
        if tensor is None or bound.constant is not None:
            return FunctionProof(reason=f"input {bound.port.name} is no tensor of the network")
        if bound.port.dtype.itemsize != 1:
            return FunctionProof(reason=f"input {bound.port.name} has elements of 16 bits")
        elements = random_elements(random, tensor.size)
        given[tensor.index] = elements.reshape(tensor.shape)
        inputs[bound.layer.name] = _sent(bound, elements, random)
    chip = ChipNumbers()
    try:
        numbered = number_program(session.accelerator, executable, inputs, chip)
    except NotLifted as fault:
        return FunctionProof(reason=str(fault))
    for each in inputs.values():
        chip.enter(each)
    found = NetworkNumbers(
        network,
        references.cpu.chip.choices,
        references.on_chip,
        chip,
        numbered.maxima,
        given,
    )
    outputs = tuple(
        _compared(bound, numbered.outputs[bound.layer.name], found, references)
        for bound in model.outputs
    )
    return FunctionProof(tuple(found.operators), outputs)


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
    bound: BoundLayer, numbers: Elements, found: NetworkNumbers, references: References
) -> OutputProof:
    name, elements = bound.port.name, int(np.prod(bound.port.shape))
    index = references.outputs.get(name)
    if index is None or index not in found.numbers:
        return OutputProof(name, elements, 0, "an operator before it has no rule of proof")
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
