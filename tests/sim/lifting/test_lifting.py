"""What a lifted program gives is what runs of it give, or it is not lifted."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import numba
import numpy as np
import pytest
from changed_programs import changed
from corpus_models import MODELS, model_of
from darwinn_sim.accelerator import Accelerator
from darwinn_sim.errors import SimulationError
from darwinn_sim.kernel.compiled import OPTIONS
from darwinn_sim.lifting import codes, kernels, program, stages
from darwinn_sim.lifting.program import lift
from darwinn_sim.lifting.walk import NotLifted
from darwinn_sim.units import identities
from darwinn_testbench.compiler.network import Sample, random_convolution, random_dense
from hypothesis import given
from hypothesis import strategies as st
from lifted_runs import assert_same, inputs_of, ready
from nightly import check_cases, nightly_too

SEEDS = st.integers(0, 2**32 - 1)
WIDTHS = st.one_of(st.integers(1, 24), st.integers(25, 300), st.sampled_from([64, 128, 256]))
LARGE = {
    "deeplab_mobilenet_edgetpu_slim_cityscapes_quant",
    "deeplabv3_mnv2_dm05_pascal_quant",
    "posenet_mobilenet_v1_075_353_481_16_quant_decoder",
}
"""Models of the corpus that are not lifted: they take too much memory."""
COMPUTED = {"mobilenet_v1_0.25_128_quant_2019": 24_025, "mobilenet_v2_1.0_224_quant": 24_025}
"""Operations of the scalar core that models end in."""


@st.composite
def networks(draw: st.DrawFn) -> Sample:
    if draw(st.booleans()):
        return random_dense(draw(st.lists(WIDTHS, min_size=2, max_size=4)), draw(SEEDS))
    return random_convolution(
        draw(st.integers(1, 12)),
        draw(st.integers(1, 20)),
        4 * draw(st.integers(1, 4)),
        draw(st.integers(1, 64)),
        draw(SEEDS),
        kernel=draw(st.sampled_from([1, 3, 5])),
        signed=draw(st.booleans()),
    )


@nightly_too
def test_a_lifted_network_gives_what_runs_give(*, nightly: bool) -> None:
    cases = st.tuples(networks(), st.booleans(), SEEDS)
    check_cases("lifted networks", cases, check_network, 15, nightly=nightly)


@pytest.mark.parametrize(
    ("widths", "stands_alone"), [([1024, 1024], False), ([1, 1, 1], True)], ids=["large", "small"]
)
def test_a_lifted_network_of_any_size_gives_what_runs_give(
    widths: list[int], stands_alone: bool
) -> None:
    check_network((random_dense(widths, 0), stands_alone, 0))


def check_network(case: tuple[Sample, bool, int]) -> None:
    network, stands_alone, seed = case
    accelerator, executable = ready(network, stands_alone)
    before = accelerator.chip.contents()
    lifted = lift(accelerator, executable)
    after = accelerator.chip.contents()
    assert np.array_equal(before.tiles, after.tiles)
    assert_same(accelerator, executable, lifted, seed)


@nightly_too
def test_a_changed_program_gives_the_same_or_is_not_lifted(*, nightly: bool) -> None:
    cases = st.tuples(st.booleans(), SEEDS)
    check_cases("lifted changed programs", cases, check_changed, 25, nightly=nightly)


def check_changed(case: tuple[bool, int]) -> None:
    convolves, seed = case
    network = random_convolution(4, 6, 8, 20, 1) if convolves else random_dense([40, 70, 10], 1)
    accelerator, executable = ready(network, stands_alone=True)
    other = changed(executable, Random(seed)).executable
    try:
        for each in inputs_of(other, 1, seed):
            accelerator.run(other, each)
        lifted = lift(accelerator, other)
    except (SimulationError, NotLifted):
        return
    assert_same(accelerator, other, lifted, seed)


@pytest.mark.parametrize("name", MODELS)
def test_a_real_model_gives_what_runs_give(corpus: Path, name: str) -> None:
    model = model_of(corpus, name).compiled
    accelerator = Accelerator()
    if model.caching is not None:
        accelerator.run(model.caching, {})
    accelerator.run(model.inference, inputs_of(model.inference, 0, 0)[0])
    try:
        lifted = lift(accelerator, model.inference)
    except NotLifted as error:
        assert name in LARGE
        assert str(error).endswith("take more than the limit of memory")
        return
    assert name not in LARGE
    assert len(lifted._plan.operations) == COMPUTED.get(name, 0)
    assert_same(accelerator, model.inference, lifted, 1)


def test_sums_that_are_too_large_for_float32_are_made_otherwise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    accelerator, executable = ready(random_dense([300, 64, 10], 5), stands_alone=True)
    for bound in (1 << 21, 1 << 12):
        # In parts first, then with whole numbers.
        monkeypatch.setattr(stages, "EXACT", bound)
        assert_same(accelerator, executable, lift(accelerator, executable), 5)


@pytest.mark.parametrize("bound", [1, 2000, 1 << 20])
def test_what_is_gathered_at_once_is_bounded(monkeypatch: pytest.MonkeyPatch, bound: int) -> None:
    """To one position at least; as many as fit are."""
    accelerator, executable = ready(random_convolution(4, 6, 8, 20, 1), stands_alone=True)
    lifted = lift(accelerator, executable)
    gather, seen = kernels.gather, []

    def watched(*given: Any) -> None:
        _, _, _, inputs, _, _, gathered = given
        seen.append((gathered.nbytes, gathered.shape[1] // inputs))
        gather(*given)

    monkeypatch.setattr(program, "_GATHERED", bound)
    monkeypatch.setattr(kernels, "gather", watched)
    assert_same(accelerator, executable, lifted, 7)
    assert seen
    assert all(size <= bound or positions == 1 for size, positions in seen)
    assert any(positions > 1 for _, positions in seen) is (bound > 1)


@given(st.lists(st.integers(0, 1 << 30), min_size=1, max_size=50))
def test_a_byte_is_known_from_its_octets(drawn: list[int]) -> None:
    numbers = np.array([*drawn, 0, 65791, 65792, 65793, (1 << 24) - 257, (1 << 24) - 256])
    needed = codes.octets_needed(int(numbers.max()) + 1)
    found = np.zeros(len(numbers), np.int32)
    for k in range(needed):
        codes.add_octets(found, codes.octets(numbers, 8 * k), 8 * k)
    codes.identify(found, 256)
    assert found.tolist() == (numbers + 256).tolist()
    constants = np.zeros(256, np.int32)
    for k in range(needed):
        codes.add_octets(constants, np.arange(256).astype(np.uint8), 8 * k)
    codes.identify(constants, 256)
    assert constants.tolist() == list(range(256))


EDGES = (0, 65_791, 65_792, 131_583, (1 << 24) - 257, (1 << 24) - 256, (1 << 25) - 512)
"""Identities at which codes leave out a constant's, or go on to another high octet."""

_numba: Any = numba
_next_identities = _numba.njit(**OPTIONS)(
    lambda walk, size, words: identities.next_identities(walk[0], size, words)
)


@given(st.sampled_from(EDGES), st.integers(-9, 9), st.sampled_from([1, 2, 4]), st.integers(0, 70))
def test_identities_follow_each_other(edge: int, away: int, size: int, count: int) -> None:
    """As octets of all runs say them, in the bytes of each word that have one."""
    first = max(edge + away, 0)
    found = np.zeros(size * count, np.int32)
    for shift in range(0, 32, 8):
        walk = identities.no_notes().walk
        walk["shift"], walk["identity"] = shift, first
        words = np.full(count, 0xFFFF_FFFF, np.uint32)
        _next_identities(walk, size, words)
        assert int(walk["identity"][0]) == first + size * count
        octets = words.view(np.uint8).reshape(count, 4)
        assert not octets[:, size:].any()
        codes.add_octets(found, np.ascontiguousarray(octets[:, :size]).reshape(-1), shift)
    codes.identify(found, 256)
    assert found.tolist() == list(range(256 + first, 256 + first + size * count))
