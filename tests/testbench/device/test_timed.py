"""`--timed`: predictions are those of `darwinn cycles`, and what is said of them."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest
from darwinn_formats.darwinn import load
from darwinn_sim import timing
from darwinn_sim.errors import Deadlock
from darwinn_sim.machine.lowering import LoweredProgram, lower
from darwinn_testbench.chip.cycles import measure
from darwinn_testbench.chip.inputs import random_inputs
from darwinn_testbench.chip.model import open_models
from darwinn_testbench.chip.session import Session
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.device.timed import Timed
from sample_files import sample


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("samples")
    sample(folder)
    return folder / "dense_edgetpu.tflite"


def programs(model: Path) -> list[LoweredProgram]:
    return [
        lower([bytes(part.bitstream) for part in each.instruction_bitstreams])
        for each in load(model).executables
    ]


@pytest.mark.parametrize("link", ["usb2", "usb3", "pcie"])
def test_predictions_are_those_of_cycles(model: Path, link: str) -> None:
    timed = Timed(link, print, log=False)
    rows = measure(model, host=link).rows
    for program, row in zip(programs(model), rows, strict=True):
        seconds = timed.predict(program, len(program.chunks))
        assert row.milliseconds is not None and row.timing is not None
        # An application copies its outputs after the device has answered.
        answered = 1e-3 * row.milliseconds - row.timing.copy_seconds
        assert seconds == pytest.approx(answered, rel=1e-12)


def test_each_program_is_predicted_once(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    simulate = timing.simulate_linked

    def counted(*arguments: object) -> timing.Timing:
        calls.append(1)
        return simulate(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(timing, "simulate_linked", counted)
    timed = Timed("usb3", print, log=False)
    for _ in range(3):
        for program in programs(model):
            assert timed.predict(program, len(program.chunks))
    assert len(calls) == len(programs(model))


def test_what_cannot_be_timed_is_said_once(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> timing.Timing:
        raise Deadlock(("nobody",))

    monkeypatch.setattr(timing, "simulate_linked", refuse)
    said: list[str] = []
    timed = Timed("usb3", said.append, log=True)
    for program in programs(model):
        seconds = timed.predict(program, len(program.chunks))
        assert seconds is None
        timed.pace._told(1.0, seconds)
    timed.end()
    assert len(said) == 2
    assert said[0].startswith("timed: a program cannot be timed, and is not: ")
    assert said[1].endswith(f"; {len(programs(model))} not timed")


def test_times_are_said() -> None:
    said: list[str] = []
    timed = Timed("pcie", said.append, log=True)
    for took in (0.0001, 0.5, 0.5):
        timed.pace._told(took, 0.001)
    timed.end()
    assert said == [
        "a program: predicted 1.000 ms, computed in 0.100 ms",
        "a program: predicted 1.000 ms, computed in 500.000 ms",
        "timed: the model takes 500.000 ms for a program of 1.000 ms: where it is slower than the "
        "chip, its time counts",
        "a program: predicted 1.000 ms, computed in 500.000 ms",
        "timed: 3 programs, predicted 3.000 ms (beagle-max, host link pcie), computed in "
        "1,000.100 ms; 2 later than predicted",
    ]


@pytest.mark.skipif(not shutil.which("cc"), reason="there is no C compiler")
def test_a_command_is_timed(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("usb.core", reason="PyUSB is not installed")
    import usb_inference

    result = tmp_path / "result"
    program = (sys.executable, usb_inference.__file__, str(model), "3", str(result))
    assert run_command_line(["device", "--usb", "--booted", "--timed", "--", *program]) == 0
    (bound,) = open_models(model)
    (tensors,) = random_inputs(bound.ports, seed=3, runs=1)
    expected = Session(bound).infer(tensors).result.outputs
    found = json.loads(result.read_text())
    assert {name: bytes.fromhex(data) for name, data in found.items()} == expected
    last = capsys.readouterr().err.splitlines()[-1]
    count = 2 + (bound.compiled.caching is not None)
    assert last.startswith(f"darwinn device: timed: {count} programs, predicted ")
    assert "host link usb3" in last


def test_a_replay_waits_for_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["device", "--replay", "x", "--timed"]) == 2
    assert "--replay takes no --timed" in capsys.readouterr().err
