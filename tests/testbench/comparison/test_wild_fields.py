"""Values that strangers' executables set matter: others are a deadlock, or give other bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from darwinn_formats.darwinn import CompiledModel, Executable
from darwinn_sim.accelerator import Accelerator
from darwinn_sim.errors import Deadlock
from darwinn_sim.isa.codec import decode, encode
from darwinn_sim.isa.table import BY_NAME
from darwinn_testbench.chip.model import open_models
from numpy.typing import NDArray

Values = NDArray[np.int64]


def compiled(wild: Path, name: str) -> CompiledModel:
    (model,) = open_models(wild / f"darwinn/{name}_edgetpu.tflite")
    return model.compiled


def changed(
    executable: Executable, name: str, edit: Callable[[dict[str, Values]], int]
) -> Executable:
    """The executable with the fields of all its instructions called ``name`` edited; there are
    some whose values change, as many as ``edit`` says.
    """
    chunks, places = [], 0
    for chunk in executable.instruction_bitstreams:
        program = decode(chunk.bitstream)
        if BY_NAME[name].opcode in program.columns:
            places += edit(program.columns[BY_NAME[name].opcode])
        chunks.append(replace(chunk, bitstream=encode(program)))
    assert places, "the change changes nothing"
    return replace(executable, instruction_bitstreams=tuple(chunks))


def outputs(model: CompiledModel, executable: Executable) -> dict[str, bytes]:
    """What an inference gives, of the same random bytes each time."""
    random = np.random.default_rng(11)
    accelerator = Accelerator()
    if model.caching is not None:
        accelerator.run(model.caching, {})
    images = {each.name: random.bytes(each.size_bytes) for each in executable.input_layers}
    return accelerator.run(executable, images).outputs


@pytest.mark.parametrize("added", [1, -1])
def test_another_count_of_tokens_is_a_deadlock(wild: Path, added: int) -> None:
    """The tiles of this program pass four tokens: three are passed over, five never come."""

    def count(columns: dict[str, Values]) -> int:
        counting = columns["producer_count_valid"] != 0
        columns["producer_count"][counting] += added
        return int(counting.sum())

    model = compiled(wild, "padding_2x2x3")
    assert outputs(model, model.inference)
    with pytest.raises(Deadlock) as caught:
        outputs(model, changed(model.inference, "TileFence", count))
    text = f"ring_producer_a (flag 17) is 4, awaited at {4 + added}"
    assert any(text in line for line in caught.value.waiting)
    assert ("has been passed" in str(caught.value)) == (added < 0)


@pytest.mark.parametrize(
    ("name", "instruction", "field", "value"),
    [
        ("mnist_lenet_quant", "TensorMax", "mac_disable", 0),
        ("yolov5n_int8_160", "TensorInterpolate", "apply_bias", 0),
        ("yolov5n_int8_160", "TensorInterpolate", "x_start", 1),
    ],
    ids=["four byte planes", "bilinear", "another pixel"],
)
def test_another_value_gives_other_bytes(
    wild: Path, name: str, instruction: str, field: str, value: int
) -> None:
    def put(columns: dict[str, Values]) -> int:
        places = columns[field] != value
        columns[field][places] = value
        return int(places.sum())

    model = compiled(wild, name)
    other = outputs(model, changed(model.inference, instruction, put))
    assert other != outputs(model, model.inference)
