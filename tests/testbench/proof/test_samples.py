"""The project's own compiled networks are proved, and none with a fault is."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from darwinn_formats.errors import FormatError
from darwinn_sim.errors import SimulationError
from darwinn_sim.isa.codec import DecodeError
from darwinn_testbench.chip.model import BoundModel, open_models
from darwinn_testbench.compiler import compile_network, random_convolution, random_dense, uncompiled
from darwinn_testbench.compiler.classifier import classifier_model, colour_network
from darwinn_testbench.compiler.network import Convolution, Sample
from darwinn_testbench.proof.prove import FunctionProof
from equivalence import Computed, Truth, computed, truth
from executable_faults import KINDS, FaultKind, Subject, drawn, faulty
from proofs import bound_sample, proof_of, proof_of_faulty, proof_of_sample

DENSE = [((20, 16, 7), 0), ((1, 1), 1), ((70, 65), 2), ((5, 4, 3, 2), 3), ((64, 64), 4)]
CONVOLUTIONS = [
    ((4, 8, 4, 3), {}),
    ((8, 4, 8, 20), {"signed": True}),
    ((5, 6, 4, 5), {"kernel": 1}),
    ((6, 6, 4, 4), {"kernel": 5, "signed": True}),
]


def assert_proved(found: FunctionProof, operators: int) -> None:
    assert found.proved
    assert found.operators == operators
    assert not found.sampled
    assert not found.refuted
    assert not found.reason


@pytest.mark.parametrize(("sizes", "seed"), DENSE)
def test_dense_samples_are_proved(sizes: tuple[int, ...], seed: int) -> None:
    network = random_dense(sizes, seed)
    assert_proved(proof_of_sample(network, compile_network(network)), len(sizes) - 1)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(("sizes", "options"), CONVOLUTIONS)
def test_convolutions_are_proved(
    sizes: tuple[int, int, int, int], options: dict[str, int], seed: int
) -> None:
    network = random_convolution(*sizes, seed, **options)  # type: ignore[arg-type]
    assert_proved(proof_of_sample(network, compile_network(network)), 1)


def test_the_classifier_s_layer_is_proved() -> None:
    bound = bound_classifier()
    assert_proved(proof_of(bound, classifier_model()), 1)


def bound_classifier() -> BoundModel:
    (bound,) = open_models(classifier_model(compile_network(colour_network())))
    return bound


# --- faults --------------------------------------------------------------------------------------

FAULTY: tuple[tuple[str, Sample], ...] = (
    ("dense", random_dense((20, 16, 7), 5)),
    ("convolution", random_convolution(4, 8, 4, 4, 5)),
    ("signed convolution", random_convolution(4, 8, 4, 4, 6, signed=True)),
)
OF_A_KIND = 3


@cache
def subject_of(name: str) -> tuple[BoundModel, Subject, Computed, bytes]:
    network = dict(FAULTY)[name]
    bound = bound_sample(network, compile_network(network))
    return bound, Subject(bound.compiled), computed(bound.compiled), uncompiled(network)


@cache
def held(name: str) -> frozenset[int]:
    """Bytes of cached parameters that say anything of the network: those of channels that there are
    not are computed with, and cut from results."""
    network = dict(FAULTY)[name]
    if not isinstance(network, Convolution):
        return frozenset(range(1 << 20))
    streams = []
    for seed in range(12):
        random = np.random.default_rng(seed)
        limits = np.iinfo(network.weights.dtype)
        weights = random.integers(limits.min, limits.max, network.weights.shape, limits.dtype)
        bias = random.integers(-(1 << 31), (1 << 31) - 1, network.bias.shape, np.int32)
        other = replace(network, weights=weights, bias=bias)
        caching = bound_sample(other, compile_network(other)).compiled.caching
        assert caching is not None
        streams.append(np.frombuffer(bytes(caching.parameters), np.uint8))
    return frozenset(np.flatnonzero(np.ptp(streams, axis=0)).tolist())


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("name", [name for name, _ in FAULTY])
def test_what_is_proved_with_a_fault_is_equivalent(name: str, kind: FaultKind) -> None:
    """By an argument of its own; and what is equivalent is never called another function."""
    bound, subject, right, reference = subject_of(name)
    for fault in drawn(subject, kind, f"proof/{name}", OF_A_KIND):
        model = faulty(bound.compiled, fault)
        try:
            found = proof_of_faulty(bound, model, reference)
        except (SimulationError, FormatError, DecodeError):
            continue
        known, why = truth(right, model)
        print(f"{fault}: {known} ({why}), proved: {found.proved}")
        nowhere = bool(fault.octets) and held(name).isdisjoint(each.place for each in fault.octets)
        if found.proved:
            assert known is Truth.EQUIVALENT or nowhere, f"{fault}: {known}: {why}"
            assert known is not Truth.DIFFERENT
        elif known is Truth.EQUIVALENT:
            assert not found.refuted, f"{fault}: {why}"
