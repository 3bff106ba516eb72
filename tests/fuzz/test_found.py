"""What the fuzzer has found, reduced: mutants that ended as none may, and end well now."""

from __future__ import annotations

import pytest
from darwinn_testbench.compiler import sample

from tests.fuzz.ends import EVERYTHING
from tests.fuzz.harness import Harness, Task
from tests.fuzz.mutants import Mutant, Seeds
from tests.fuzz.mutation import Edit

OUTPUT = ("subgraphs", 0, "tensors", 1, "quantization")

FOUND = {
    "a method without a name": Mutant(
        "executorch",
        "convolution.pte",
        (Edit((0, "execution_plan", 0, "name"), "set", ("",)),),
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
    return Harness(Seeds(folder))


@pytest.mark.parametrize("name", FOUND)
def test_what_was_found_ends_well(harness: Harness, name: str) -> None:
    outcome = harness.outcome(Task(EVERYTHING, FOUND[name]))
    assert outcome.done
    assert not outcome.findings, outcome
