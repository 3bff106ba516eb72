"""What the fuzzer has found, reduced: mutants that ended as none may, and end well now."""

from __future__ import annotations

import pytest
from sample_files import sample

from tests.fuzz.ends import EVERYTHING
from tests.fuzz.harness import Harness, Task
from tests.fuzz.mutants import Mutant, Seeds
from tests.fuzz.mutation import Edit

EXECUTABLES = ("serialized_multi_executable", "serialized_executables")
OUTPUT = ("subgraphs", 0, "tensors", 1, "quantization")

FOUND = {
    "a method without a name": Mutant(
        "executorch",
        "convolution.pte",
        (Edit((0, "execution_plan", 0, "name"), "set", ("",)),),
    ),
    "a descriptor of a bare stream whose tag is none": Mutant(
        "stream",
        "convolution",
        (Edit(("bitstream",), "field", (8, "store_register", 0, 5)),),
    ),
    "an executable without chunks": Mutant(
        "darwinn",
        "dense_slices_edgetpu.tflite",
        (Edit((*EXECUTABLES, 1, "instruction_bitstreams"), "drop", (0, 1)),),
    ),
    "more inferences in a run than there can be buffers": Mutant(
        "darwinn",
        "dense.package",
        (Edit((*EXECUTABLES, 0, "batch_size"), "set", (179343,)),),
    ),
    "the head of an array with a backslash": Mutant(
        "inputs", "x.npy", patches=(Edit((), "copy", (2517, 16, 1, 15)),)
    ),
    "a tile that rows wait for in an incomplete program": Mutant(
        "darwinn",
        "dense_slices_edgetpu.tflite",
        (
            Edit(
                (*EXECUTABLES, 1, "instruction_bitstreams", 0, "bitstream"),
                "copy instructions",
                (12, 9, 2, 21),
            ),
            Edit(
                (*EXECUTABLES, 1, "instruction_bitstreams", 0, "bitstream"),
                "field",
                (49, "program_end", 0, 0),
            ),
        ),
    ),
    "a scale beyond what a product may have": Mutant(
        "tflite", "dense.tflite", patches=(Edit((), "put", (46463, "7c")),)
    ),
    "a quantisation without arguments": Mutant(
        "executorch", "convolution.pte", patches=(Edit((), "put", (856, "20")),)
    ),
    "a result larger than the tensor that it is for": Mutant(
        "executorch", "convolution.pte", patches=(Edit((), "put", (1946, "04")),)
    ),
    "parameters behind the last row of wide memory": Mutant(
        "darwinn",
        "convolution_slices_edgetpu.tflite",
        patches=(Edit((), "put", (7824, "f8ffffffffffffff")),),
    ),
    "a zero point that is no value of the type": Mutant(
        "tflite",
        "convolution.tflite",
        (Edit((*OUTPUT, "zero_point", 0), "set", (-4286300945349869568,)),),
    ),
}


@pytest.fixture(scope="module")
def harness(tmp_path_factory: pytest.TempPathFactory) -> Harness:
    folder = tmp_path_factory.mktemp("samples")
    sample(folder)
    return Harness(Seeds(folder), ("--max-memory=512",))


@pytest.mark.parametrize("name", FOUND)
def test_what_was_found_ends_well(harness: Harness, name: str) -> None:
    outcome = harness.outcome(Task(EVERYTHING, FOUND[name]))
    assert outcome.done
    assert not outcome.findings, outcome
