"""Faults of executables: each kind changes what it says, and an argument is never wrong."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest
from darwinn_formats.darwinn import CompiledModel, dump, load
from darwinn_sim.units.identities import BLOCK
from darwinn_testbench.chip.model import open_models
from darwinn_testbench.compiler.network import random_convolution
from darwinn_testbench.compiler.package import compile_network
from equivalence import (
    NO_PARTNER,
    NOT_NEEDED,
    SAME,
    SAME_RESULTS,
    Computed,
    Truth,
    argument,
    computed,
    outputs_of,
    truth,
)
from executable_faults import (
    DATA_KINDS,
    KINDS,
    ByteChange,
    Fault,
    FaultKind,
    Subject,
    drawn,
    faulty,
    faulty_file,
)
from fixed_faults import FIRST, OTHERS, fixed_faults
from parameter_roles import Role, roles_of

IMAGE = 8, 8, 4, 8, 3
"""Height, width, channels in and out, and seed of the convolution that is compiled here."""


@pytest.fixture(scope="module")
def convolution() -> CompiledModel:
    (model,) = load(dump(compile_network(random_convolution(*IMAGE)))).models
    return model


@pytest.fixture(scope="module")
def right(convolution: CompiledModel) -> Computed:
    return computed(convolution)


def test_the_parameters_of_a_convolution_are_weights_and_biases(convolution: CompiledModel) -> None:
    """As many as the network has, which the compiler here lays out."""
    roles = roles_of(convolution)
    count = {role: len(roles.places(role)) for role in Role}
    assert count[Role.WEIGHT] == 3 * 3 * 4 * 8
    assert count[Role.BIAS] == 4 * 8
    assert count[Role.OTHER] == 0


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_the_same_seed_draws_the_same(convolution: CompiledModel, kind: FaultKind) -> None:
    subject = Subject(convolution)
    found = [drawn(subject, kind, "seed", 3) for _ in range(2)]
    assert found[0] == found[1]
    for fault in found[0]:
        assert faulty(convolution, fault) != convolution


def test_a_file_differs_where_the_fault_is(corpus: Path) -> None:
    path = corpus / "darwinn" / f"{OTHERS[0]}_edgetpu.tflite"
    data = path.read_bytes()
    (bound,) = open_models(path)
    for kind in KINDS:
        for fault in drawn(Subject(bound.compiled), kind, "0", 1):
            changed = faulty_file(data, bound.compiled, fault)
            (again,) = open_models(changed)
            made = faulty(bound.compiled, fault)
            assert again.compiled.inference == made.inference
            assert again.compiled.caching == made.caching
            assert len(changed) == len(data)


def flipped(model: CompiledModel, role: Role, bit: int, number: int = 0) -> CompiledModel:
    """A bit of the ``number``-th byte of a role."""
    executable, place = map(int, roles_of(model).places(role)[number])
    parameters = Subject(model).executables[executable].parameters
    change = ByteChange(executable, place, parameters[place] ^ 1 << bit)
    return faulty(model, Fault("test", "", octets=(change,)))


def test_a_program_is_equivalent_to_itself(convolution: CompiledModel, right: Computed) -> None:
    assert argument(right, computed(replace(convolution))) == SAME


@pytest.mark.parametrize("role", [Role.WEIGHT, Role.BIAS])
def test_a_changed_parameter_is_not_equivalent(
    convolution: CompiledModel, right: Computed, role: Role
) -> None:
    """The highest bit of a weight; of a bias one that no rounding hides."""
    changed = flipped(convolution, role, 7, number=0 if role is Role.WEIGHT else 1)
    assert truth(right, changed)[0] is Truth.DIFFERENT


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_no_input_contradicts_an_argument(
    convolution: CompiledModel, right: Computed, kind: FaultKind
) -> None:
    for fault in drawn(Subject(convolution), kind, "arguments", 2):
        model = faulty(convolution, fault)
        if truth(right, model)[0] is Truth.EQUIVALENT:
            made = computed(model)
            inputs = [
                {each.name: Random(seed).randbytes(each.size_bytes) for each in layers}
                for layers in [right.executable.input_layers]
                for seed in range(20)
            ]
            assert made.lifted.run(inputs) == right.lifted.run(inputs), fault


def with_scale(program: Computed, factor: float) -> Computed:
    """A program whose first stage with results has other scales."""
    stages = list(program.stages)
    place = next(k for k, stage in enumerate(stages) if stage.row >= 0)
    stages[place] = replace(stages[place], scale=stages[place].scale * np.float32(factor))
    return replace(program, stages=tuple(stages))


def test_scales_are_equivalent_if_they_agree_on_every_sum(right: Computed) -> None:
    place = next(k for k, stage in enumerate(right.stages) if stage.row >= 0)
    stage = right.stages[place]
    # Sums of so little that every result is the zero point, whatever the scale.
    small = replace(stage, scale=np.full_like(stage.scale, 1e-12))
    stages = (*right.stages[:place], small, *right.stages[place + 1 :])
    still = replace(right, stages=stages)
    assert argument(still, with_scale(still, 2)) == SAME_RESULTS
    assert argument(right, with_scale(right, 2)) is None


def test_a_lane_that_nothing_takes_may_hold_anything(right: Computed) -> None:
    stage = right.stages[-1]
    other = replace(stage, weights=stage.weights ^ 1)
    nothing = {name: np.zeros_like(each) for name, each in right.outputs.items()}
    unread, changed = (
        replace(right, outputs=nothing, stages=(*right.stages[:-1], each))
        for each in (stage, other)
    )
    assert argument(unread, changed) == NOT_NEEDED
    assert argument(right, replace(right, stages=(*right.stages[:-1], other))) is None


def test_a_weight_of_a_constant_zero_adds_nothing(right: Computed) -> None:
    stage = right.stages[-1]
    operands = stage.operands.copy()
    operands[:, 0] = stage.zero
    weights = stage.weights.copy()
    weights[0] += 5
    one = replace(stage, operands=operands)
    pair = [
        replace(right, stages=(*right.stages[:-1], each))
        for each in (one, replace(one, weights=weights))
    ]
    assert argument(*pair) == NO_PARTNER
    operands[-1, 0] = stage.zero + 1
    assert argument(*pair) is None


def test_the_output_stage_is_that_of_the_chip(right: Computed) -> None:
    """Against the lifted program, on sums that its inputs make."""
    stage = next(stage for stage in right.stages if stage.row >= 0)
    size = sum(each.size_bytes for each in right.executable.input_layers)
    (name,) = (each.name for each in right.executable.input_layers)
    data = Random(3).randbytes(size)
    values = np.arange(right.identities + 256)
    begin = 256 + BLOCK
    values[begin : begin + size] = np.frombuffer(data, np.uint8)
    sums = (values[stage.operands] - stage.zero) @ stage.weights + stage.offset
    found = [
        outputs_of(sums[:, lane], stage.scale[lane], right.tensor[stage.row], stage.table)
        for lane in range(stage.lanes)
    ]
    (given,) = right.lifted.run([{name: data}])[0].values()
    made = stage.made[:, [0]] + np.arange(stage.lanes)
    by_number = np.zeros(right.identities + 256, np.int64)
    by_number[made + 256] = np.stack([each for each in found if each is not None], axis=1)
    (numbers,) = right.outputs.values()
    written = numbers >= 256
    assert np.array_equal(by_number[numbers[written]], np.frombuffer(given, np.uint8)[written])


def test_the_fixed_faults_are_of_every_kind_and_known(corpus: Path) -> None:
    """Of one small model here; the counts are those of the first time."""
    faults = list(fixed_faults(corpus, OTHERS[0]))
    assert [each.kind for each in faults] == [
        kind.name for kind in DATA_KINDS if kind.name != "function table"
    ]
    known = {each.kind: each.equivalent for each in faults}
    assert known["padding"] is True and known["bias"] is False
    assert FIRST not in OTHERS


@pytest.mark.nightly
def test_there_are_sixty_fixed_faults(corpus: Path) -> None:
    faults = list(fixed_faults(corpus))
    assert len(faults) == 62
    assert {each.kind for each in faults} == {kind.name for kind in DATA_KINDS}
