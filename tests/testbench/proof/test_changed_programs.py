"""A program with one field of one instruction changed is proved only if it gives the same bytes."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest
from changed_programs import changed
from darwinn_formats.errors import FormatError
from darwinn_sim.errors import SimulationError
from darwinn_sim.isa.codec import DecodeError
from darwinn_testbench.chip.model import BoundModel
from darwinn_testbench.chip.session import Session
from darwinn_testbench.compiler import compile_network, random_convolution, random_dense, uncompiled
from darwinn_testbench.compiler.network import Sample
from nightly import nightly_too
from proofs import bound_sample, proof_of_faulty

SAMPLES: dict[str, Sample] = {
    "dense": random_dense((20, 16, 7), 8),
    "convolution": random_convolution(4, 8, 4, 4, 9),
    "signed convolution": random_convolution(6, 6, 4, 4, 10, signed=True),
}
CHANGES, CHANGES_OF_A_NIGHT = 8, 400
_INPUTS = 12


def outputs(bound: BoundModel) -> list[dict[str, bytes]]:
    """What a model gives for some inputs, one after another."""
    session, random = Session(bound), np.random.default_rng(0)
    found = []
    for _ in range(_INPUTS):
        given = {
            port.name: np.frombuffer(random.bytes(port.elements), port.dtype).reshape(port.shape)
            for port in bound.ports
        }
        found.append({name: each.tobytes() for name, each in session.infer(given).outputs.items()})
    return found


@pytest.mark.parametrize("name", SAMPLES)
@nightly_too
def test_what_is_proved_gives_the_same(name: str, *, nightly: bool) -> None:
    network = SAMPLES[name]
    bound = bound_sample(network, compile_network(network))
    right, reference, source = outputs(bound), uncompiled(network), Random(f"changed/{name}")
    proved = 0
    for _ in range(CHANGES_OF_A_NIGHT if nightly else CHANGES):
        other = changed(bound.compiled.inference, source)
        model = replace(bound.compiled, inference=other.executable)
        try:
            if not proof_of_faulty(bound, model, reference).proved:
                continue
            proved += 1
            assert outputs(replace(bound, compiled=model)) == right, other.what
        except (SimulationError, DecodeError, FormatError):
            continue
    print(f"{name}: {proved} proved")
