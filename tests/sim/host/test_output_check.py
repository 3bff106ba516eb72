"""Outputs that nothing has written, and those that differ: which element, of which layer."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from darwinn_formats.darwinn import Buffer, Description, Executable, Layer, OutputLayer
from darwinn_sim.host.output_check import (
    Elements,
    differing_output,
    known_outputs,
    unknown_output,
)
from darwinn_testbench.compiler import compile_network, random_dense

(MODEL,) = (
    each for each in compile_network(random_dense((64, 12), 1)).executables if each.output_layers
)
(LAYER,) = MODEL.output_layers
SIZE = 12


def request(known: object, executable: Executable = MODEL) -> Any:
    buffer = Buffer(Description.BASE_ADDRESS_OUTPUT_ACTIVATION, LAYER.name or "", 0)
    mapped = SimpleNamespace(region=SimpleNamespace(payload_known=known))
    return SimpleNamespace(executable=executable, buffers={buffer: mapped})


def test_what_is_not_tracked_or_not_mapped_is_no_error() -> None:
    assert unknown_output(request(None)) is None
    nothing: Any = SimpleNamespace(executable=MODEL, buffers={})
    assert unknown_output(nothing) is None
    assert known_outputs(nothing) == {LAYER.name: b""}


@pytest.mark.parametrize("places", [[0], [11], [3, 7]])
def test_the_first_element_and_their_number_are_told(places: list[int]) -> None:
    known = np.ones(4096, np.bool_)
    known[places] = False
    assert unknown_output(request(known)) == Elements(LAYER.name, places[0], len(places))


def test_what_lies_behind_the_elements_does_not_count() -> None:
    known = np.zeros(4096, np.bool_)
    known[:SIZE] = True
    assert unknown_output(request(known)) is None


def test_two_runs_differ_where_elements_do() -> None:
    name = LAYER.name or ""
    one = bytes(4096)
    other = bytearray(one)
    assert differing_output(MODEL, {name: one}, {name: bytes(other)}) is None
    other[5] = other[9] = 1
    found = differing_output(MODEL, {name: one}, {name: bytes(other)})
    assert found == Elements(LAYER.name, 5, 2)


BYTES = Layer("a", 3, any_layer=OutputLayer()), Layer("b", 2, any_layer=OutputLayer())
TWICE = Executable(batch_size=2, output_layers=BYTES)
"""Layers that do not say where their elements are: each byte is one."""


@pytest.mark.parametrize("wrong", [None, ("a", 0), ("a", 1), ("b", 0), ("b", 1)])
def test_every_layer_of_every_inference_is_looked_at(wrong: tuple[str, int] | None) -> None:
    description = Description.BASE_ADDRESS_OUTPUT_ACTIVATION
    outputs = {each.name: bytes(2 * each.size_bytes) for each in BYTES}
    others = {name: bytearray(each) for name, each in outputs.items()}
    buffers = {}
    for layer in BYTES:
        for batch in range(2):
            known = np.ones(layer.size_bytes, np.bool_)
            if (layer.name, batch) == wrong:
                known[1] = False
                others[layer.name][batch * layer.size_bytes + 1] = 9
            region = SimpleNamespace(payload_known=known)
            buffers[Buffer(description, layer.name, batch)] = SimpleNamespace(region=region)
    expected = None if wrong is None else Elements(wrong[0], 1, 1)
    given: Any = SimpleNamespace(executable=TWICE, buffers=buffers)
    assert unknown_output(given) == expected
    known_bytes = {
        name: bytes(one == other for one, other in zip(outputs[name], others[name], strict=True))
        for name in outputs
    }
    assert known_outputs(given) == known_bytes
    found = differing_output(TWICE, outputs, {name: bytes(each) for name, each in others.items()})
    assert found == expected
