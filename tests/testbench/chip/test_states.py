"""Variables last from one inference to the next, wherever a model runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from darwinn_reference.tflite.litert import LiteRtReference
from darwinn_testbench import Interpreter, Session, open_models
from darwinn_testbench.chip.execution import run
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.comparison.compare import Comparison
from darwinn_testbench.comparison.operator_coverage import LiteRtParts, Region
from darwinn_testbench.comparison.sides import TfliteProgram
from darwinn_testbench.comparison.verify import verify
from darwinn_testbench.errors import InputError
from darwinn_testbench.policy import Exact
from darwinn_testbench.report import Verdict
from whole_models import STATE, stateful_expected, stateful_model, stateful_network

LSTM = "keras_lstm_mnist_ptq"
NETWORK = stateful_network()
EXPECTED = stateful_expected(NETWORK, 3)


def test_a_session_feeds_variables_back_until_they_are_reset() -> None:
    assert not np.array_equal(EXPECTED[0], EXPECTED[1])
    (model,) = open_models(stateful_model(NETWORK))
    session = Session(model, strict=True)
    for _ in range(2):
        found = [session.infer({}).outputs[NETWORK.result] for _ in range(3)]
        assert np.array_equal(found, EXPECTED)
        assert np.array_equal(session.states[STATE], EXPECTED[-1])
        session.reset_states()
    # A caller can say what a variable is.
    assert np.array_equal(session.infer({STATE: EXPECTED[0]}).outputs[NETWORK.result], EXPECTED[1])


def test_the_interpreter_keeps_them_too() -> None:
    interpreter = Interpreter(model_content=stateful_model(NETWORK))
    interpreter.allocate_tensors()
    index = interpreter.get_output_details()[0]["index"]
    for _ in range(2):
        for expected in EXPECTED:
            interpreter.invoke()
            assert np.array_equal(interpreter.get_tensor(index), expected)
            assert np.array_equal(interpreter.get_tensor(0), expected)
        interpreter.reset_all_variables()


def test_what_a_caller_does_to_outputs_does_not_reach_the_next_inference() -> None:
    (model,) = open_models(stateful_model(NETWORK))
    session = Session(model)
    interpreter = Interpreter(model_content=stateful_model(NETWORK))
    interpreter.allocate_tensors()
    output = interpreter.tensor(interpreter.get_output_details()[0]["index"])
    for expected in EXPECTED:
        found = session.infer({}).outputs[NETWORK.result]
        interpreter.invoke()
        for result in (found, output()):
            assert np.array_equal(result, expected)
            result[:] = 77


def test_run_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "stateful_edgetpu.tflite"
    path.write_bytes(stateful_model(NETWORK))
    report = run(path, runs=3)
    assert np.array_equal([row.tensor for row in report.rows], EXPECTED)
    assert report.figures["states"] == [STATE]
    assert run_command_line(["run", str(path), "--runs", "2"]) == 0
    assert f"state from one inference to the next: {STATE}" in capsys.readouterr().out


def test_many_inferences_do_not_go_together_and_the_reason_is_said(tmp_path: Path) -> None:
    path = tmp_path / "stateful_edgetpu.tflite"
    path.write_bytes(stateful_model(NETWORK))
    found = run(path, runs=40).figures
    assert found["lifted"].reason == "variables go from one inference to the next"


def test_what_a_variable_is_said_to_be_fits_it() -> None:
    (model,) = open_models(stateful_model(NETWORK))
    session = Session(model)
    for given, message in (
        ({STATE: EXPECTED[0].astype(np.float32)}, f"{STATE}.*dtype float32"),
        ({STATE: EXPECTED[0].ravel()[:-1]}, f"{STATE}.*one inference takes"),
        ({"typo": EXPECTED[0]}, "there is no input typo"),
    ):
        with pytest.raises(InputError, match=message):
            session.infer(given)
    assert np.array_equal(session.infer({}).outputs[NETWORK.result], EXPECTED[0])


def test_a_stateful_model_is_verified_over_its_inferences(corpus: Path) -> None:
    """The oracle begins each inference with the state that the chip has; equal inputs differ."""
    compiled = corpus / "darwinn" / f"{LSTM}_edgetpu.tflite"
    uncompiled = corpus / "tflite" / f"{LSTM}.tflite"
    (model,) = open_models(compiled)
    (port,) = model.ports
    image = np.random.default_rng(2).integers(0, 256, port.shape, port.dtype)
    report = verify(compiled, uncompiled, [{port.name: image}] * 3, layers=True)
    assert report.verdict is Verdict.PASS
    assert len({row.sha256 for row in report.rows if row.name.endswith("_output")}) == 6
    assert report.figures["states"] == ["tfl.pseudo_qconst", "tfl.pseudo_qconst1"]


def test_litert_as_a_program_keeps_them(corpus: Path) -> None:
    path = corpus / "tflite" / f"{LSTM}.tflite"
    program, reference = TfliteProgram(path), LiteRtReference(path)
    (source,) = (reference.network.tensors[index] for index in reference.network.inputs)
    image = np.random.default_rng(2).integers(0, 256, source.shape, np.uint8)
    first, second = (np.asarray(program.run([image])[0].data) for _ in range(2))
    states = {
        each.index: reference.run([image])[each.index]
        for each in reference.network.tensors
        if each.variable
    }
    (output,) = reference.network.outputs
    assert np.array_equal(second, reference.run([image], states)[output])
    assert not np.array_equal(first, second)
    program.reset()
    assert np.array_equal(np.asarray(program.run([image])[0].data), first)


def test_litert_judges_an_operator_from_the_state_that_it_began_with(corpus: Path) -> None:
    """Where the oracle lacks it; among the values of a run are the states that it ended with."""
    path = corpus / "tflite" / f"{LSTM}.tflite"
    reference = LiteRtReference(path)
    network = reference.network
    image = np.random.default_rng(2).integers(0, 256, (1, 28, 28), np.uint8)
    before = reference.run([image])
    begins = {each.index: before[each.index] for each in network.tensors if each.variable}
    values = reference.run([image], begins)
    (lstm,) = (each for each in network.operators if "LSTM" in each.name)
    sources = [k for k in lstm.inputs if k >= 0 and network.tensors[k].constant is None]
    region = Region(lstm.outputs[0], (lstm.index,), tuple(sorted(sources)))
    parts = LiteRtParts(path.read_bytes(), network)
    judged = parts.judge([region], values, Exact(), begins)[region.tensor]
    assert isinstance(judged, Comparison)
    assert judged.differing == 0
