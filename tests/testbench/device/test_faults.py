"""Faults of the chip and damaged models: both interpreters say what is wrong, and go on."""

from __future__ import annotations

import shutil
from typing import Any

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter as LiteRt
from ai_edge_litert.interpreter import load_delegate
from darwinn_formats import tflite
from darwinn_formats.errors import FormatError
from darwinn_reference.errors import ModelError
from darwinn_sim.errors import Deadlock, SimulationError
from darwinn_testbench import Interpreter
from darwinn_testbench.compiler import compile_network, edgetpu_model, random_dense
from darwinn_testbench.device.delegate import build
from darwinn_testbench.errors import InputError
from sample_runs import change, expected, random_input, set_field
from whole_models import segments, whole_model

NETWORK = random_dense([8, 8], 0)
INFERENCE = 0
FENCE = set_field("ScalarFence", "tile_fence_count", 2, index=0)


def model(*, deadlocks: bool = False) -> bytes:
    package = compile_network(NETWORK)
    return edgetpu_model(NETWORK, change(package, INFERENCE, FENCE) if deadlocks else package)


def computes(interpreter: Any) -> bool:
    image = random_input(NETWORK, 0)
    interpreter.set_tensor(0, image)
    interpreter.invoke()
    return np.array_equal(interpreter.get_tensor(1).ravel(), expected(NETWORK, image))


def test_a_deadlock_is_told_by_the_interpreter_each_time() -> None:
    interpreter = Interpreter(model_content=model(deadlocks=True))
    interpreter.allocate_tensors()
    for _ in range(2):
        with pytest.raises(Deadlock, match="tile fence 2"):
            interpreter.invoke()


@pytest.mark.skipif(not shutil.which("cc"), reason="there is no C compiler")
def test_a_deadlock_is_told_by_the_delegate_which_goes_on() -> None:
    delegate = load_delegate(str(build.library()))
    interpreters = [
        LiteRt(model_content=model(deadlocks=deadlocks), experimental_delegates=[delegate])
        for deadlocks in (True, False)
    ]
    for each in interpreters:
        each.allocate_tensors()
    faulty, good = interpreters
    for _ in range(2):
        with pytest.raises(RuntimeError, match=r"darwinn: .*tile fence 2"):
            faulty.invoke()
        assert computes(good)


def damaged(content: bytes, random: np.random.Generator, outside: list[int]) -> bytes:
    """The model with one to three other bytes, mostly outside of the packages in it."""
    changed = bytearray(content)
    for _ in range(int(random.integers(1, 4))):
        anywhere = int(random.integers(len(changed)))
        place = outside[int(random.integers(len(outside)))] if random.random() < 0.8 else anywhere
        changed[place] = int(random.integers(256))
    return bytes(changed)


# The first seed is of a model whose operators before the chip's give a larger tensor than declared.
@pytest.mark.parametrize("seed", [1911057826, 0])
def test_damaged_models_end_in_an_error_of_ours_or_run(seed: int) -> None:
    content = whole_model(segments())
    graph = tflite.load(content).subgraphs[0]
    options = [each.custom_options for each in graph.operators if each.custom_options]
    inside = {k for each in options for k in range(each.offset, each.offset + len(each))}
    outside = [k for k in range(len(content)) if k not in inside]
    random = np.random.default_rng(seed)
    for number in range(30):
        try:
            interpreter = Interpreter(
                model_content=damaged(content, random, outside), time_limit=30
            )
            interpreter.allocate_tensors()
            interpreter.invoke()
        except (FormatError, InputError, ModelError, SimulationError) as error:
            assert str(error)
        except Exception as error:
            raise AssertionError(f"model {number} of seed {seed}") from error
