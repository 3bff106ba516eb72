"""Recurrent layers: an LSTM goes to the chip, with its states; other forms are refused by name."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from darwinn_formats import tflite
from darwinn_formats.files import Content
from darwinn_formats.tflite import ActivationFunctionType
from darwinn_reference.errors import ModelError, Unsupported
from darwinn_reference.tflite.model import CpuModel
from darwinn_testbench.chip.cycles import measure
from darwinn_testbench.chip.model import open_models
from darwinn_testbench.chip.session import Session
from darwinn_testbench.compilation.compile import (
    Compiled,
    CompileOptions,
    compile_model,
    compile_models,
)
from darwinn_testbench.explain.placement import Place
from darwinn_testbench.report import Verdict
from numpy.typing import NDArray
from recurrent_models import Lstm, Unrolled, assigned, loop


def compiled(lstm: Lstm, *, check: bool = True) -> Compiled:
    """An LSTM, compiled."""
    return compile_model(Content(lstm.model(), "lstm.tflite"), CompileOptions(check=check))


@pytest.mark.parametrize(
    "lstm",
    [
        Lstm(),
        Lstm(steps=1, units=8),
        Lstm(steps=7, inputs=3, units=1, time_major=True, zero_point=-128),
        Lstm(steps=5, inputs=40, units=24, zero_point=127),
        Lstm(steps=2, inputs=1, units=70),
        Lstm(cell_scale=2**-11, cell_clip=100.0),
    ],
    ids=repr,
)
def test_an_lstm_on_the_chip_equals_its_arithmetic(lstm: Lstm) -> None:
    """Units that fill no word or several blocks of lanes, one step, time first."""
    result = compiled(lstm)
    assert [row.place for row in result.report.rows] == [Place.CHIP]
    assert result.report.verdict is Verdict.PASS, result.report.headline
    assert "equal the chip arithmetic on every byte" in result.report.headline
    assert "keeps states" in result.report.headline


@pytest.mark.parametrize("clip", [0.25, 2.0])
def test_a_new_cell_is_bounded_by_cell_clip(clip: float) -> None:
    """As TensorFlow Lite does it: the bound is a whole number of steps. Tanh is of what is left."""
    lstm = Lstm(steps=12, units=8, bias=200_000, seed=3, cell_clip=clip)
    result = compiled(lstm)
    assert result.report.verdict is Verdict.PASS, result.report.headline
    (model,) = open_models(Content(result.data, "lstm_edgetpu.tflite"))
    x = np.zeros((1, lstm.steps, lstm.inputs), np.int8)
    reference = CpuModel.load(Content(lstm.model(), "lstm.tflite"), model.compiled.inference)
    (assumed,) = reference.chip.run([x]).assumed.values()
    assert assumed == f"the new cell of an LSTM is bounded by cell_clip {clip}"
    cell = Session(model).infer({"x": x}).outputs["cell_variable_output"]
    assert np.abs(cell.astype(np.int32)).max() == int(clip / lstm.cell_scale)


def test_states_go_from_one_inference_to_the_next() -> None:
    """As variables of the model before compilation."""
    lstm = Lstm(steps=3, units=6)
    result = compiled(lstm, check=False)
    (model,) = open_models(Content(result.data, "lstm_edgetpu.tflite"))
    reference = CpuModel.load(Content(lstm.model(), "lstm.tflite"), model.compiled.inference)
    graph = reference.network
    hidden, cell, output = (graph.tensor(name) for name in ("hidden", "cell", "y"))
    assert hidden and cell and output
    session = Session(model)
    random = np.random.default_rng(5)
    given: dict[int, NDArray[np.generic]] = {}
    for _ in range(5):
        x = random.integers(-128, 128, (1, lstm.steps, lstm.inputs), np.int8)
        expected = reference.chip.run([x], given)
        found = session.infer({"x": x}).outputs
        np.testing.assert_array_equal(found["y"], expected[output.index])
        given = {each.index: expected[each.index] for each in (hidden, cell)}
        for each in (hidden, cell):
            state = found[f"{each.name}_variable_output"]
            np.testing.assert_array_equal(state.reshape(each.shape), given[each.index])
    assert (given[cell.index] != 0).any()


def test_a_cell_at_the_end_of_its_range_stays_there() -> None:
    """Sums beyond 32 bits on the way to a new cell, whose own sum has 32."""
    lstm = Lstm(steps=12, units=8, bias=200_000, cell_scale=2**-14, seed=3)
    result = compiled(lstm)
    assert result.report.verdict is Verdict.PASS, result.report.headline
    (model,) = open_models(Content(result.data, "lstm_edgetpu.tflite"))
    x = np.zeros((1, lstm.steps, lstm.inputs), np.int8)
    cell = Session(model).infer({"x": x}).outputs["cell_variable_output"]
    assert cell.max() == np.iinfo(np.int16).max


def test_the_compiled_model_has_the_states_as_the_vendors_compiler_writes_them() -> None:
    """Variables that the operator reads; it gives no tensors of their next values."""
    graph = tflite.load(compiled(Lstm(), check=False).data).subgraphs[0]
    (operator,) = graph.operators
    names = [graph.tensors[index].name for index in operator.inputs]
    assert names == ["x", "hidden", "cell"]
    assert [graph.tensors[index].is_variable for index in operator.inputs] == [False, True, True]
    assert [graph.tensors[index].name for index in graph.inputs] == ["x"]
    assert [graph.tensors[index].name for index in operator.outputs] == ["y"]


def test_the_public_lstm_is_compiled_as_far_and_as_fast_as_by_the_vendor(
    corpus: Path, tmp_path: Path
) -> None:
    """Its steps are a loop: unrolled, its instructions alone took longer to come."""
    name = "keras_lstm_mnist_ptq"
    result = compile_model(corpus / "tflite" / f"{name}.tflite")
    assert {row.place for row in result.report.rows} == {Place.CHIP}
    assert result.report.verdict is Verdict.PASS, result.report.headline
    target = tmp_path / f"{name}_edgetpu.tflite"
    target.write_bytes(result.data)
    ours, theirs = (
        next(row.cycles for row in measure(path).rows if row.type == "EXECUTION_ONLY")
        for path in (target, corpus / "darwinn" / target.name)
    )
    assert ours and theirs
    assert ours < theirs


def test_each_step_takes_as_long_whatever_the_number_of_steps(tmp_path: Path) -> None:
    """No step moves what the steps before it made."""
    target = tmp_path / "lstm_edgetpu.tflite"
    cycles = {}
    for steps in (50, 200, 800):
        target.write_bytes(compiled(Lstm(steps=steps, units=20), check=False).data)
        rows = [row for row in measure(target).rows if row.type != "PARAMETER_CACHING"]
        cycles[steps] = rows[0].cycles or 0
    assert cycles[800] - cycles[200] < 4.2 * (cycles[200] - cycles[50])


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"sequences": 2}, "more than one image|several sequences"),
        ({"sequences": 2, "time_major": True}, "several sequences"),
        ({"activation": ActivationFunctionType.RELU}, "activation RELU"),
        ({"left_out": (1, 5, 12)}, "input 5 is absent"),
        ({"left_out": (18,)}, "input 18 is absent"),
        ({"several_zero_points": True}, "several zero points of weights"),
        ({"cell_scale": 8.0}, "a cell whose scale is too far from 1"),
    ],
    ids=str,
)
def test_other_forms_stay_on_the_cpu_by_name(change: dict[str, object], reason: str) -> None:
    """Nothing of them is computed in another way than the reference knows."""
    result = compiled(replace(Lstm(), **change))  # type: ignore[arg-type]
    (row,) = result.report.rows
    assert row.place is Place.CPU
    assert not result.data
    assert re.search(reason, row.reason), row.reason


@pytest.mark.parametrize("scale", [0.0, float("inf"), float("nan"), -1.0])
def test_a_scale_that_is_not_positive_and_finite_is_bad_input(scale: float) -> None:
    with pytest.raises(ModelError, match=rf"\(cell\): scale {scale:g} is not positive and finite"):
        compiled(replace(Lstm(), cell_scale=scale))


def test_models_with_states_share_a_chip() -> None:
    """Each turn begins with the states of a new model, else it would give other bytes."""
    models = [Content(Lstm(seed).model(), f"lstm_{seed}.tflite") for seed in (1, 2)]
    for result in compile_models(models, CompileOptions(check=True)):
        assert result.report.verdict is Verdict.PASS, result.report.headline


def test_a_segment_has_the_states_of_its_layers() -> None:
    """Variables are no inputs of a segment, which has their values itself."""
    options = CompileOptions(check=True, num_segments=2)
    first, second = compile_models([Content(Lstm().twice(), "lstms.tflite")], options)
    for result in (first, second):
        assert result.report.verdict is Verdict.PASS, result.report.headline
        graph = tflite.load(result.data).subgraphs[0]
        assert not any(graph.tensors[index].is_variable for index in graph.inputs)


@pytest.mark.parametrize("kind", ["unrolled_lstm", "unrolled_gru"])
def test_an_unrolled_layer_is_proved(kind: str) -> None:
    """Its operators are those of any network: nothing of it keeps a state."""
    network = Unrolled(3, steps=3, inputs=5, units=6)
    model = Content(getattr(network, kind)(), f"{kind}.tflite")
    result = compile_model(model, CompileOptions(check=True))
    assert {row.place for row in result.report.rows} == {Place.CHIP}
    assert result.report.verdict is Verdict.PROVED, result.report.headline


def test_a_loop_is_refused_by_name() -> None:
    """The compiler takes one graph, as the vendor's does."""
    with pytest.raises(Unsupported, match="control flow that the compiler does not have: WHILE"):
        compile_model(Content(loop(), "loop.tflite"))


def test_an_operator_without_results_stays_in_the_model() -> None:
    """An assignment to a variable is no constant that nothing has to compute."""
    result = compile_model(Content(assigned(), "assigned.tflite"), CompileOptions(check=False))
    places = {row.operator: row.place for row in result.report.rows}
    assert places.pop("ADD") is Place.CHIP
    assert set(places.values()) == {Place.CPU}
    model = tflite.load(result.data)
    names = [model.code(each).operator.name for each in model.subgraphs[0].operators]
    assert names == ["VAR_HANDLE", "READ_VARIABLE", "CUSTOM", "ASSIGN_VARIABLE"]
