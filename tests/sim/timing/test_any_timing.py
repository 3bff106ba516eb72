"""No rates and latencies stop a good program, and none change how much it moves."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from random import Random

import averaging_program
import numpy as np
import pytest
from corpus_models import path_of
from darwinn_formats.darwinn import Executable, load
from darwinn_sim import timing
from darwinn_testbench.compiler.network import random_convolution, random_dense
from darwinn_testbench.compiler.package import compile_network, compile_stand_alone
from nightly import nightly_seed, nightly_too, note
from random_timing import random_chip, random_link
from strangers import stranger

TIMINGS = 10
TIMINGS_OF_A_MODEL = 2
NIGHTLY_TIMINGS = 100

CORPUS = ("dense_256", "bright_16x16", "looming_64x64_3x3", "keras_lstm_mnist_ptq")
WILD = (
    "padding_2x2x3",
    "stride_64x64x3",
    "testconv1",
    "mnist_lenet_quant",
    "dense_2x2x3x100x200",
    "one_layer_layer1_FC_Nodes900_ActNone",
    "conv_chain_two_32",
)


def counts(result: timing.Timing) -> list[object]:
    """What a run moves and does, whenever it does so."""
    return [
        result.tile_elements.tolist(),
        result.chip_elements.tolist(),
        result.executions[:, 0].tolist(),
        result.ring_rows,
        result.ring_words,
        sorted((each.kind.value, each.number, each.size) for each in result.transfers),
    ]


def check(executable: Executable, timings: int, first_seed: int) -> None:
    """Time it with rates and latencies of several seeds; all runs end, with the same counts."""
    expected = counts(timing.simulate(executable))
    cycles = []
    for seed in range(first_seed, first_seed + timings):
        print(f"seed {seed}")
        random = Random(seed)
        result = timing.simulate(executable, random_chip(random), random_link(random))
        assert counts(result) == expected
        cycles.append(result.cycles)
    assert np.unique(cycles).size > 1, "they differ in time"


@cache
def sample(name: str) -> Executable:
    if name == "averages":
        return averaging_program.executable()
    if name == "dense":
        return compile_stand_alone(random_dense((64, 64), 1)).executables[-1]
    return compile_network(random_convolution(8, 8, 4, 4, 3)).executables[-1]


@nightly_too
@pytest.mark.parametrize("name", ["averages", "dense", "convolution"])
def test_samples_end_at_any_rate(name: str, nightly: bool) -> None:
    seed = nightly_seed() if nightly else 0
    timings = NIGHTLY_TIMINGS if nightly else TIMINGS
    check(sample(name), timings, seed)
    if nightly:
        note(f"timings of {name}", timings, seed)


def models(path: Path, name: str, nightly: bool) -> None:
    seed = nightly_seed() if nightly else 0
    timings = NIGHTLY_TIMINGS if nightly else TIMINGS_OF_A_MODEL
    for model in load(path).models:
        for executable in filter(None, (model.caching, model.inference)):
            check(executable, timings, seed)
    if nightly:
        note(f"timings of {name}", timings, seed)


@nightly_too
@pytest.mark.parametrize("name", CORPUS)
def test_real_models_end_at_any_rate(corpus: Path, name: str, nightly: bool) -> None:
    models(path_of(corpus, name), name, nightly)


@nightly_too
@pytest.mark.parametrize("name", WILD)
def test_executables_of_strangers_end_at_any_rate(name: str, nightly: bool) -> None:
    models(stranger(name), name, nightly)
