"""Numbers of a network of one operator, in tests, beside keys of what its elements are."""

from __future__ import annotations

import numpy as np
from darwinn_reference.tflite.call import CompilerChoices
from darwinn_reference.tflite.graph import Network
from darwinn_sim.numbering.run import Sets
from darwinn_testbench.proof.maxima import Maxima
from darwinn_testbench.proof.number_set import NumberSet
from darwinn_testbench.proof.terms import Elements, StageTerms, outputs_of
from darwinn_testbench.proof.unsigned import unsigned
from slow_forms import Key

_NONE = np.zeros(0, np.int64)
EMPTY = Sets(np.zeros(0, np.uint64), _NONE, _NONE, np.zeros(0, np.uint64))
MODULUS = (1 << 61) - 1


def drawn_numbers(
    network: Network, random: np.random.Generator, *, known_too: bool = True
) -> dict[int, Elements]:
    """Numbers of the inputs: of few bytes that are not known, and of some that are if asked for."""
    few = random.integers(256, MODULUS, 30, np.uint64)
    found = {}
    for index in network.inputs:
        shape = network.tensors[index].shape
        numbers = random.choice(few, shape)
        known = random.random(shape) < random.choice([0, 0.2 if known_too else 0])
        found[index] = np.where(known, random.integers(0, 256, shape, np.uint64), numbers)
    return found


def numbers_of(
    network: Network,
    numbers: dict[int, Elements],
    stages: list[StageTerms] | None = None,
    choices: CompilerChoices | None = None,
) -> list[int]:
    """The numbers of all outputs, one after another; ``stages`` as of ``outputs_of``."""
    raised = unsigned(network)
    maxima = Maxima(NumberSet().have, EMPTY)
    choices = CompilerChoices() if choices is None else choices
    found = outputs_of(raised, raised.operators[0], numbers, choices, maxima, stages)
    return [int(each) for index in network.outputs for each in found[index].reshape(-1)]


def assert_same_classes(numbers: list[int], keys: list[Key]) -> None:
    """Equal numbers where keys are equal, and nowhere else; constants and bytes are themselves."""
    assert len(numbers) == len(keys)
    pairs = set(zip(numbers, keys, strict=True))
    for number, key in pairs:
        kind, *rest = key if isinstance(key, tuple) else ("", None)
        if kind in ("constant", "byte"):
            assert number == rest[0]
        else:
            assert number >= 256
    assert len(pairs) == len(set(numbers)) == len(set(keys))
