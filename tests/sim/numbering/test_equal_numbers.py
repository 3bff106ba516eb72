"""Bytes with the same number are the same, whatever the input: of random programs, and of the same
programs with one field of one instruction changed."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from chained_programs import Chain, chains
from changed_programs import changed
from darwinn_formats.errors import FormatError
from darwinn_sim.kernel.field import random_elements
from hypothesis import given
from hypothesis import strategies as st
from numbered_runs import Traces
from stimulus import constrained_random
from tensor_programs import INPUT_BYTES, SOURCES, TensorProgram, programs

_CHANGES = 3


def attack(program: Chain | TensorProgram, seed: int) -> None:
    """Nothing of a program or of changed ones contradicts what is known of its bytes."""
    random = np.random.default_rng(seed)
    images = [random.bytes(INPUT_BYTES) for _ in range(4)]
    images += [random.bytes(7) * INPUT_BYTES, b"\xff" * INPUT_BYTES, bytes(INPUT_BYTES)]
    inputs = [{"image": each[:INPUT_BYTES]} for each in images]
    traces = Traces(inputs, {"image": random_elements(random, INPUT_BYTES)})
    executable = program.executable()
    assert not traces.contradictions(program.chip(), executable)
    source = Random(seed)
    for _ in range(_CHANGES):
        other = changed(executable, source)
        try:
            found = traces.contradictions(program.chip(), other.executable)
        except FormatError:
            continue
        assert not found, other.what


@constrained_random(8)
@given(chain=chains(), seed=st.integers(0, 2**32 - 1))
def test_chains(chain: Chain, seed: int) -> None:
    attack(chain, seed)


@pytest.mark.parametrize("operation", SOURCES)
@constrained_random(3)
@given(data=st.data(), seed=st.integers(0, 2**32 - 1))
def test_instructions(operation: str, data: st.DataObject, seed: int) -> None:
    found = data.draw(programs(operation))
    attack(found[seed % len(found)], seed)
