"""Where two programs begin to differ: errors planted in networks put together otherwise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from darwinn_formats.errors import ExecutionError
from darwinn_formats.executorch.builder import ProgramBuilder
from darwinn_formats.limits import Limits, limited
from darwinn_reference.arrays import AnyArray
from darwinn_reference.protocol import Intermediate, Tap
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.comparison.first_difference import (
    BY_NAME,
    BY_ORDER,
    BY_VALUE,
    Judge,
    RunTapped,
    first_differences,
)
from darwinn_testbench.comparison.verify import verify
from darwinn_testbench.policy import Exact, LsbBudget
from darwinn_testbench.report import Verdict
from hypothesis import given, settings
from hypothesis import strategies as st
from sample_files import sample

F32 = np.float32
JUDGE = Judge.of(None, Exact())
SHAPE = (1, 3, 4, 5)


@dataclass(frozen=True)
class Step:
    """A layer: ``reads`` are steps (-1: the input), ``group`` says what is put together."""

    name: str
    reads: tuple[int, ...]
    scale: float
    bias: float
    group: int


def network(seed: int, count: int, group_sizes: Sequence[int]) -> list[Step]:
    """Layers in groups; the first of a group may also read the end of one before the last."""
    random = np.random.default_rng(seed)
    steps: list[Step] = []
    ends = [-1]
    for group in range(count):
        size = group_sizes[group % len(group_sizes)]
        for place in range(size):
            reads: tuple[int, ...] = (len(steps) - 1,) if place else (ends[-1],)
            if not place and len(ends) > 2 and random.integers(2):
                reads = (ends[-1], int(random.choice(ends[1:-1])))
            number = len(steps)
            scale, bias = random.uniform(0.5, 1.5), random.uniform(-1, 1)
            steps.append(Step(f"s{number}", reads, float(scale), float(bias), group))
        ends.append(len(steps) - 1)
    return steps


def run_of(
    steps: Sequence[Step],
    x: AnyArray,
    *,
    fused: bool,
    wrong: Sequence[int] = (),
    arrange: Callable[[AnyArray], AnyArray] = lambda data: data,
    back: Callable[[AnyArray], AnyArray] = lambda data: data,
) -> RunTapped:
    """A program of the layers that shows every value, or those of whole groups only."""

    def run(tap: Tap) -> None:
        values: dict[int, AnyArray] = {-1: x}
        for number, step in enumerate(steps):
            total = sum((values[each] for each in step.reads), np.zeros_like(x))
            data = (np.tanh(total) * F32(step.scale) + F32(step.bias)).astype(F32)
            if number in wrong:
                data = data + np.linspace(0.5, 1.5, data.size, dtype=F32).reshape(data.shape)
            values[number] = data
            last = number + 1 == len(steps) or steps[number + 1].group != step.group
            if fused and not last:
                continue
            name = f"g{step.group}" if fused else step.name
            shown = np.ascontiguousarray(arrange(data))
            given = tap(Intermediate(name, number, "layer", shown))
            if given is not None:
                assert given.shape == shown.shape
                values[number] = back(given)

    return run


def input_of(seed: int) -> AnyArray:
    return np.random.default_rng(seed).standard_normal(SHAPE).astype(F32)


@given(st.integers(0, 1 << 16), st.integers(2, 5), st.data())
@settings(max_examples=40, deadline=None)
def test_a_layer_that_is_wrong_is_named(seed: int, count: int, data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    steps, x = network(seed, count, sizes), input_of(seed)
    wrong = data.draw(st.integers(0, len(steps) - 1))
    flat = data.draw(st.booleans())
    reference = run_of(
        steps,
        x,
        fused=True,
        arrange=(lambda v: v.reshape(-1)) if flat else (lambda v: v.transpose(0, 2, 3, 1)),
    )
    own = run_of(steps, x, fused=False, wrong=[wrong])
    found, pairing = first_differences(own, reference, 7, JUDGE)
    group = {f"{step.name}, by layer" for step in steps if step.group == steps[wrong].group}
    assert found, pairing
    assert found[0].name == f"g{steps[wrong].group}"
    assert found[0].where in group
    assert found[0].first
    assert found[0].run == 7
    assert found[0].differing


@given(st.integers(0, 1 << 16), st.integers(1, 5))
@settings(max_examples=20, deadline=None)
def test_what_is_right_differs_nowhere(seed: int, count: int) -> None:
    steps, x = network(seed, count, [1, 3]), input_of(seed)
    own = run_of(steps, x, fused=False)
    reference = run_of(steps, x, fused=True, arrange=lambda v: v.transpose(0, 2, 3, 1))
    found, pairing = first_differences(own, reference, 0, JUDGE)
    assert not found
    assert pairing.paired == pairing.reference_values == count


def branches(order: str, wrong: str = "", *, shows_halves: bool = False) -> RunTapped:
    """s, two branches a and b of it, their sum c, and d: computed in some order."""
    reads = {"s": "", "a": "s", "b": "s", "c": "ab", "d": "c"}
    scales = {"s": 1.1, "a": 0.7, "b": 1.3, "c": 0.9, "d": 1.2}

    def run(tap: Tap) -> None:
        values: dict[str, AnyArray] = {}
        for name in order:
            total = sum((values[each] for each in reads[name]), np.zeros(SHAPE, F32))
            total = total if reads[name] else input_of(0)
            data = (np.tanh(total) * F32(scales[name]) + F32(0.1)).astype(F32)
            if shows_halves:
                half = tap(Intermediate(f"half {name}", 0, "half", data / 2))
                data = data if half is None else half * 2
            if name == wrong:
                data = data + np.linspace(0.5, 1.5, data.size, dtype=F32).reshape(SHAPE)
            given = tap(Intermediate(name, 0, "layer", data.copy()))
            values[name] = data if given is None else given

    return run


@pytest.mark.parametrize("order", ["sabcd", "sbacd"])
@pytest.mark.parametrize("wrong", list("sabcd"))
def test_branches_may_be_computed_in_another_order(order: str, wrong: str) -> None:
    reference = branches("sbacd" if order == "sabcd" else "sabcd")
    own = branches(order, wrong, shows_halves=True)
    found, pairing = first_differences(own, reference, 0, JUDGE)
    assert [(each.name, each.where) for each in found] == [(wrong, f"{wrong}, by layer")]
    assert (pairing.how, pairing.paired) == (BY_VALUE, 5)


def test_nothing_is_searched_where_outputs_agree() -> None:
    steps, x = network(4, 4, [2]), input_of(4)
    runs = 0

    def own(tap: Tap) -> None:
        nonlocal runs
        runs += 1
        run_of(steps, x, fused=False, wrong=[3])(tap)

    found, pairing = first_differences(own, run_of(steps, x, fused=True), 0, JUDGE, differs=False)
    assert (found, runs, pairing.paired) == ([], 2, 1)
    assert first_differences(own, run_of(steps, x, fused=True), 0, JUDGE)[0]


def test_two_errors_are_two_differences() -> None:
    steps, x = network(1, 5, [1, 2]), input_of(1)
    wrong = [1, 4]
    own = run_of(steps, x, fused=False, wrong=wrong)
    found, _ = first_differences(own, run_of(steps, x, fused=True), 0, JUDGE)
    assert [each.name for each in found] == [f"g{steps[each].group}" for each in wrong]
    assert [each.first for each in found] == [True, False]


def test_values_of_one_program_are_paired_by_name_and_others_in_step_by_order() -> None:
    steps, x = network(2, 4, [1]), input_of(2)
    own = run_of(steps, x, fused=False, wrong=[1, 3])
    found, pairing = first_differences(own, run_of(steps, x, fused=False), 0, JUDGE)
    assert (pairing.how, pairing.paired) == (BY_NAME, 4)
    assert [each.name for each in found] == ["s1", "s3"]
    moved = run_of(steps, x, fused=True, arrange=lambda v: v.transpose(0, 2, 3, 1))
    found, pairing = first_differences(own, moved, 0, JUDGE)
    assert (pairing.how, pairing.paired) == (BY_ORDER, 4)
    assert [each.name for each in found] == ["g1", "g3"]
    assert found[0].paired == f"{BY_ORDER}, NHWC to NCHW"


def test_the_reference_follows_where_only_that_can() -> None:
    steps, x = network(3, 3, [1, 2]), input_of(3)
    own = run_of(steps, x, fused=True, wrong=[2])
    reference = run_of(steps, x, fused=False)
    found, pairing = first_differences(own, reference, 0, JUDGE, reference_follows=True)
    assert pairing.how == BY_VALUE
    assert found[0].where == f"g{steps[2].group}, by layer"
    assert found[0].name in {step.name for step in steps if step.group == steps[2].group}
    assert (pairing.values, pairing.reference_values) == (3, len(steps))


def test_signs_of_bytes_and_policies_of_integers() -> None:
    def bytes_of(values: Sequence[int], dtype: Any) -> RunTapped:
        def run(tap: Tap) -> None:
            tap(Intermediate("a", 0, "op", np.array(values, dtype)))

        return run

    own, reference = bytes_of([-128, 0, 5], np.int8), bytes_of([0, 128, 134], np.uint8)
    exact, _ = first_differences(own, reference, 0, JUDGE)
    assert [(each.differing, each.max_difference) for each in exact] == [(1, 1)]
    assert exact[0].paired == f"{BY_NAME}, sign changed"
    assert not first_differences(own, reference, 0, Judge.of(None, LsbBudget(1)))[0]


def test_values_that_cannot_be_held_are_an_error() -> None:
    steps, x = network(0, 2, [1]), input_of(0)
    own = run_of(steps, x, fused=False)
    with limited(Limits(memory=100)), pytest.raises(ExecutionError, match="more than 100 bytes"):
        first_differences(own, own, 0, JUDGE)


def chain(*, fused: bool, wrong: bool = False) -> bytes:
    """relu(x * 2 + 1) and its cosine: with another operator between where it is not ``fused``."""
    program = ProgramBuilder()
    method = program.method()
    x = method.input(F32, (1, 4), name="x")
    twice, plus, relu, cosine = (method.tensor(F32, (1, 4)) for _ in range(4))
    two = program.constant(np.full((1, 4), 2, F32))
    one = program.constant(np.full((1, 4), 1.5 if wrong else 1, F32))
    if fused:
        method.call("aten::add.out", one, x, 2, outputs=[plus])
    else:
        method.call("aten::mul.out", x, two, outputs=[twice])
        method.call("aten::add.out", twice, one, 1, outputs=[plus])
    method.call("aten::relu.out", plus, outputs=[relu])
    method.call("aten::cos.out", relu, outputs=[cosine])
    method.output(cosine)
    return program.build()


def test_two_programs_that_are_put_together_otherwise() -> None:
    right = verify(chain(fused=False), chain(fused=True), localise=True, runs=1)
    assert right.verdict is Verdict.PASS
    assert not right.figures["divergences"]
    (pairing,) = right.figures["pairings"]
    assert (pairing.how, pairing.paired, pairing.reference_values) == (BY_VALUE, 3, 3)
    wrong = verify(chain(fused=False, wrong=True), chain(fused=True), localise=True, runs=1)
    assert wrong.verdict is Verdict.MISMATCH
    first = wrong.figures["divergences"][0]
    assert first.operation == "aten::add.out"
    assert first.where.endswith("aten::add.out")


def test_a_model_before_compilation_shows_its_values(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sample(tmp_path)
    ours, theirs = tmp_path / "dense.pte", tmp_path / "dense.tflite"
    for left, right in ((ours, theirs), (theirs, ours)):
        report = verify(left, right, localise=True, runs=1)
        assert report.verdict is Verdict.PASS
        (pairing,) = report.figures["pairings"]
        assert pairing.paired == min(pairing.values, pairing.reference_values)
    words = ["verify", str(ours), "--reference", str(theirs), "--localise", "--runs", "1"]
    assert run_command_line(words) == 0
    assert "values of run 0: 2 of 13 values paired" in capsys.readouterr().out
