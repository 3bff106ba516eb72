"""What a file declares is refused with its field before memory is taken for it."""

from __future__ import annotations

import os
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import averaging_program as sample
import numpy as np
import pytest
from averaging_program import Operation
from darwinn_formats import tflite
from darwinn_formats.errors import FormatError
from darwinn_formats.files import digest_of, read_file
from darwinn_formats.limits import Limits, limited
from darwinn_reference.errors import ModelError
from darwinn_reference.tflite.graph import check_size
from darwinn_sim.accelerator import Accelerator
from darwinn_sim.errors import SimulationError
from darwinn_testbench.chip.inputs import TensorPort, random_inputs
from darwinn_testbench.chip.preload import parse as parse_preload
from darwinn_testbench.compiler import sample as write_samples
from darwinn_testbench.request.inputs import InputKind

LIMIT = 1 << 22
LARGE = 1 << 27
MOST = 1 << 26
"""A chip that is powered up anew after an error takes half of it."""
IMAGE = bytes(sample.INPUT_BYTES)


def refused(error: type[Exception], words: str, act: Callable[[], Any]) -> None:
    """``act`` fails with these words, and takes no memory for what was declared."""
    with limited(Limits(memory=LIMIT)):
        tracemalloc.start()
        try:
            with pytest.raises(error, match=words):
                act()
            assert tracemalloc.get_traced_memory()[1] < MOST
        finally:
            tracemalloc.stop()


def test_layers_and_scratch_of_an_executable() -> None:
    accelerator = Accelerator()
    plain = sample.executable()
    (output,) = plain.output_layers
    large = {
        "OUTPUT_ACTIVATION": replace(plain, output_layers=(replace(output, size_bytes=LARGE),)),
        "SCRATCH": replace(plain, scratch_size_bytes=LARGE),
    }
    for field, changed in large.items():
        words = f"{field}: buffer '.*' has {LARGE} bytes.*--max-memory"
        refused(FormatError, words, partial(accelerator.run, changed, {"image": IMAGE}))
    # Within the default limit it runs.
    accelerator.run(replace(plain, scratch_size_bytes=LARGE), {"image": IMAGE})


def test_a_file_of_holes(tmp_path: Path) -> None:
    path = tmp_path / "holes.tflite"
    with path.open("wb") as stream:
        stream.truncate(1 << 36)
    refused(FormatError, "size: more than 1073741824 bytes", partial(read_file, path))


@pytest.mark.parametrize("name", ["/dev/zero", "a pipe"])
def test_what_never_ends_is_not_waited_for(tmp_path: Path, name: str) -> None:
    """Nor does it take all memory, as what lies in wide memory, or among the files of a case."""
    path = Path(name) if name.startswith("/") else tmp_path / "pipe"
    if path.parent == tmp_path:
        os.mkfifo(path)
    assert digest_of(path) is None
    if path.parent != tmp_path:
        refused(FormatError, "size: more than", partial(parse_preload, f"wide:0:0={path}"))


def descriptor_of(size: int) -> list[Operation]:
    """The sample, whose output descriptor asks for ``size`` bytes."""
    moves = {"alu_op": 15, "alu_immediate": 1, "alu_destination": 5}
    program = sample.operations()
    place = [fields.get("alu_b") for _, fields in program].index(sample.OUTPUT_BYTES)
    program[place] = ("Scalar", moves | {"alu_b": size})
    return program


def test_descriptors_of_a_scalar_core_alone() -> None:
    """Without tiles, what they would send is made up: as much as the descriptor says."""
    accelerator = Accelerator(dma_only=True)
    program = sample.executable(descriptor_of(0x7FFF_FFF0))
    accelerator.run(sample.executable(), {"image": IMAGE})
    refused(SimulationError, "page", lambda: accelerator.run(program, {"image": IMAGE}))


def test_random_data_comes_in_pieces_as_it_came_at_once() -> None:
    whole = np.random.default_rng(5).integers(0, 256, 10_001, np.uint8)
    pieces = np.random.default_rng(5)
    parts = [pieces.integers(0, 256, count, np.uint8) for count in (4096, 4096, 1809)]
    assert (np.concatenate(parts) == whole).all()


def test_inputs_that_would_be_drawn() -> None:
    port = TensorPort("x", (1 << 20, 1 << 20), np.dtype(np.float32), 0.0, 0)
    refused(
        FormatError,
        "input x: 4398046511104 bytes are more than .*--max-memory",
        lambda: random_inputs([port], 0, 1, [InputKind.NOISE])[0],
    )


def test_tensors_of_a_network(tmp_path: Path) -> None:
    write_samples(tmp_path)
    model = tflite.load(tmp_path / "dense.tflite")
    graph = model.subgraphs[0]
    large = replace(graph.tensors[0], shape=(1, LIMIT, 2))
    graph = replace(graph, tensors=(large, *graph.tensors[1:]))
    refused(ModelError, "elements, more than .*--max-memory", lambda: check_size(graph, "x"))
