"""Each byte of a program's parameters is found in its network, and each weight in the program."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest
from corpus_models import by_night
from darwinn_formats.darwinn import CompiledModel
from darwinn_formats.files import Source
from darwinn_testbench.chip.hazards import Judgement
from darwinn_testbench.chip.model import BoundModel, open_models
from darwinn_testbench.chip.session import Session
from darwinn_testbench.comparison.expectation import References
from darwinn_testbench.comparison.verify import verify
from darwinn_testbench.compiler import (
    compile_network,
    edgetpu_model,
    random_convolution,
    random_dense,
    uncompiled,
)
from darwinn_testbench.compiler.network import Sample
from darwinn_testbench.proof.attribution import Attribution, Kind, _Round, attribute
from darwinn_testbench.proof.parameters import Parameters, summary
from proofs import bound_sample, proof_of_faulty

SAMPLES: tuple[Sample, ...] = (
    random_dense((20, 16, 7), 0),
    random_dense((70, 65), 2),
    random_convolution(4, 8, 4, 3, 0),
    random_convolution(8, 4, 8, 20, 1, signed=True),
    random_convolution(5, 6, 4, 5, 0, kernel=1),
)
QUICK = ("dense_256", "mobilenet_v1_0.25_128_quant")
MODELS = by_night((*QUICK, "mobilenet_v2_1.0_224_quant"), ("mobilenet_v2_1.0_224_quant",))


def attribution(bound: BoundModel, reference: Source) -> tuple[Attribution, Parameters]:
    session = Session(bound)
    uncompiled_model = References(reference, bound, anyway=True).uncompiled
    found = attribute(session, uncompiled_model)
    return found, summary(found, session, uncompiled_model)


def with_octets(model: CompiledModel, octets: dict[int, int]) -> CompiledModel:
    """The model with other bytes of parameters, those that are cached first."""
    parts = {each.type: bytearray(each.parameters) for each in executables(model)}
    for place, value in octets.items():
        rest = place
        for part in parts.values():
            if rest < len(part):
                part[rest] = value
                break
            rest -= len(part)
    changed = [replace(each, parameters=bytes(parts[each.type])) for each in executables(model)]
    return replace(model, caching=changed[0] if model.caching else None, inference=changed[-1])


def executables(model: CompiledModel) -> list:  # type: ignore[type-arg]
    return [each for each in (model.caching, model.inference) if each is not None]


def assert_whole(found: Attribution, figures: Parameters) -> None:
    """Every weight and bias is there, at places that hold its value."""
    assert not figures.reason
    assert figures.found == figures.elements > 0
    assert not figures.changed
    for index, kind in found.constants().items():
        places = found.places(index, kind)
        held = np.zeros(len(found.octets(index)), np.uint8)
        held[found.element[places]] = found.data[places]
        assert np.array_equal(held, found.octets(index))
    total = sum(int(np.count_nonzero(found.kind == kind)) for kind in Kind)
    assert total == figures.bytes == len(found.data)


@pytest.mark.parametrize("number", range(len(SAMPLES)))
def test_samples_are_whole(number: int) -> None:
    network = SAMPLES[number]
    bound = bound_sample(network, compile_network(network))
    found, figures = attribution(bound, uncompiled(network))
    assert_whole(found, figures)
    assert not figures.unexplained_bytes


@pytest.mark.parametrize("name", MODELS)
def test_models_are_whole(corpus: Path, name: str) -> None:
    (bound,) = open_models(corpus / "darwinn" / f"{name}_edgetpu.tflite")
    found, figures = attribution(bound, corpus / "tflite" / f"{name}.tflite")
    assert_whole(found, figures)


@pytest.fixture(scope="module")
def mobilenet(corpus: Path) -> tuple[BoundModel, Path, Attribution]:
    (bound,) = open_models(corpus / "darwinn" / f"{QUICK[1]}_edgetpu.tflite")
    reference = corpus / "tflite" / f"{QUICK[1]}.tflite"
    return bound, reference, attribution(bound, reference)[0]


def test_a_proof_names_the_weight_of_a_changed_byte(
    mobilenet: tuple[BoundModel, Path, Attribution],
) -> None:
    bound, reference, found = mobilenet
    random = Random(0)
    for layer in random.sample(found.layers, 3):
        index = layer.inputs[1]
        place = int(random.choice(found.places(index, Kind.WEIGHT).tolist()))
        octet = int(found.data[place]) ^ 1
        proof = proof_of_faulty(bound, with_octets(bound.compiled, {place: octet}), reference)
        (wrong,) = proof.refuted
        named, tensor = wrong.difference, found.network.tensors[index]
        assert named is not None
        assert named.operator == layer.index
        assert named.constant == tensor.name
        assert np.ravel_multi_index(named.place, tensor.shape) == found.element[place]
        assert named.there == octet


def test_nothing_depends_on_padding(mobilenet: tuple[BoundModel, Path, Attribution]) -> None:
    bound, reference, found = mobilenet
    places = np.flatnonzero(found.kind == Kind.PADDING)
    other = {int(place): int(found.data[place]) ^ 0xFF for place in places}
    assert other
    assert proof_of_faulty(bound, with_octets(bound.compiled, other), reference).proved


def test_each_changed_byte_is_named(mobilenet: tuple[BoundModel, Path, Attribution]) -> None:
    """Of several layers, of which only the first is refuted."""
    bound, reference, found = mobilenet
    random = Random(1)
    octets = {}
    for layer in random.sample(found.layers, 4):
        for place in random.sample(found.places(layer.inputs[1], Kind.WEIGHT).tolist(), 2):
            octets[int(place)] = int(found.data[place]) ^ 0x10
    changed = replace(bound, compiled=with_octets(bound.compiled, octets))
    _, figures = attribution(changed, reference)
    assert figures.found == figures.elements
    named = {(each.tensor, each.index): each.there for each in figures.changed}
    expected = {}
    for place, octet in octets.items():
        tensor = found.network.tensors[int(found.tensor[place])]
        index = np.unravel_index(int(found.element[place]), tensor.shape)
        expected[tensor.name, tuple(map(int, index))] = octet
    assert named == expected


def test_verify_says_what_parameters_are(tmp_path: Path) -> None:
    """Once found, it is kept."""
    network = SAMPLES[0]
    compiled, reference = tmp_path / "sample_edgetpu.tflite", tmp_path / "sample.tflite"
    compiled.write_bytes(edgetpu_model(network, compile_network(network)))
    reference.write_bytes(uncompiled(network))
    for _ in range(2):
        report = verify(compiled, reference, runs=1, hazards=False, parameters=True)
        figures = report.figures["parameters"]
        assert figures.found == figures.elements
        assert sum(each.bytes for each in figures.constants) == (
            figures.weight_bytes + figures.bias_bytes
        )
        assert f"parameters: {figures.bytes:,} bytes" in report.message
    assert figures.judged is Judgement.KEPT
    assert "parameters" not in verify(compiled, reference, runs=1, hazards=False).figures


def test_another_model_is_not_looked_at(tmp_path: Path) -> None:
    compiled = edgetpu_model(SAMPLES[0], compile_network(SAMPLES[0]))
    other = uncompiled(random_dense((20, 16, 7), 1))
    report = verify(compiled, other, runs=1, hazards=False, parameters=True, anyway=True)
    assert "not attributed" in str(report.figures["parameters"])


@pytest.mark.parametrize("kind", [Kind.WEIGHT, Kind.BIAS])
def test_a_wrong_place_does_not_stand_the_test(monkeypatch: pytest.MonkeyPatch, kind: Kind) -> None:
    """Two bytes that are each other's: by values alone they may well be alike."""
    network = SAMPLES[0]
    bound = bound_sample(network, compile_network(network))
    found_as_it_is = _Round.attribute

    def largest(found: Attribution) -> int:
        return int(found.tensor[found.kind == kind].max())

    def swap(self: _Round) -> bool:
        more = found_as_it_is(self)
        places = self._found.places(largest(self._found), kind)
        ends = places[[0, -1]]
        self._found.element[ends] = self._found.element[ends[::-1]]
        return more

    monkeypatch.setattr(_Round, "attribute", swap)
    found, figures = attribution(bound, uncompiled(network))
    assert found.reason
    assert not figures.found
