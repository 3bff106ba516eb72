"""Models through /dev/apex_0, with the tests' own client: the bytes of `darwinn run`.

Each session is recorded, and replayed. A session of the vendor's driver is replayed, too.
"""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
import pytest
from apex_script import Call, Replay, Script, calls_of
from corpus_models import MODELS, model_of
from darwinn_testbench.chip.inputs import random_inputs
from darwinn_testbench.chip.model import BoundModel, open_models
from darwinn_testbench.chip.session import Device as Chip
from darwinn_testbench.chip.session import Session
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.device.pcie.attach import new_function
from darwinn_testbench.device.pcie.events import (
    DECODER,
    Event,
    Interrupt,
    MemoryWrite,
    Recorder,
    RegisterRead,
)
from darwinn_testbench.device.pcie.replay import Player, replay
from darwinn_testbench.device.pcie.server import Device, Server
from darwinn_testbench.device.pcie.wrapped import environment, shim
from darwinn_testbench.device.trace import Octets, RecordedSession, SessionFile
from darwinn_testbench.report import Verdict

TRACE = "dense_edgetpu.pcie.trace"
COUNTS = 0x486D0


@pytest.fixture
def device(tmp_path: Path) -> Iterator[tuple[Path, Path]]:
    """The folder of a device, and the file that its session is written to."""
    folder, session = tmp_path / "device", tmp_path / "session"
    folder.mkdir()
    said: list[str] = []
    with SessionFile(session) as file:
        function = new_function((Recorder(file.write),))
        with Server(Device(function, said.append), folder):
            yield folder, session
    assert said == []
    found = replay(RecordedSession(session), new_function)
    assert found.verdict is Verdict.PASS, found.rows


def calls(*models: BoundModel, runs: int = 2) -> list[Call]:
    """What inferences ask of an accelerator, of one model after another on one chip."""
    chip = Chip()
    with calls_of(chip.accelerator) as found:
        for model in models:
            session = Session(model, device=chip)
            for tensors in random_inputs(model.ports, seed=11, runs=runs):
                session.infer(tensors)
    return found


def comes_out(client: Path, folder: Path, script: Replay) -> None:
    command, environ = [client, script.path], environment(shim(), folder)
    assert subprocess.run(command, env=environ, timeout=600, check=False).returncode == 0
    script.check()


@pytest.mark.parametrize("name", ["dense", "convolution", "dense_stand_alone"])
def test_samples(client: Path, device: tuple[Path, Path], tmp_path: Path, name: str) -> None:
    assert run_command_line(["sample", str(tmp_path / "sample")]) == 0
    asked = calls(*open_models(tmp_path / "sample" / f"{name}_edgetpu.tflite"), runs=3)
    comes_out(client, device[0], Replay(tmp_path, asked))


@pytest.mark.parametrize("name", MODELS)
def test_models_of_the_corpus(
    client: Path, device: tuple[Path, Path], tmp_path: Path, corpus: Path, name: str
) -> None:
    asked = calls(model_of(corpus, name))
    comes_out(client, device[0], Replay(tmp_path, asked))


def test_parameters_and_inferences_are_queued_at_once(
    client: Path, device: tuple[Path, Path], tmp_path: Path, corpus: Path
) -> None:
    asked = calls(model_of(corpus, "mobilenet_v1_0.25_128_quant"))
    comes_out(client, device[0], Replay(tmp_path, asked, at_once=True))


def test_programs_follow_each_other_on_one_device(
    client: Path, device: tuple[Path, Path], tmp_path: Path, corpus: Path
) -> None:
    names = ("dense_256", "bright_16x16", "dense_256")
    for name in names:
        asked = calls(model_of(corpus, name), runs=1)
        comes_out(client, device[0], Replay(tmp_path, asked))
    both = calls(*(model_of(corpus, name) for name in names))
    comes_out(client, device[0], Replay(tmp_path, both))


@pytest.mark.parametrize("last", ["close", "drop", "die", "kill"])
def test_a_program_leaves_in_the_middle_of_an_inference(
    client: Path, tmp_path: Path, corpus: Path, last: str
) -> None:
    """Wherever in it: the next program gets right results, on a chip that knows nothing of it."""
    long = calls(model_of(corpus, "mobilenet_v2_1.0_224_quant"), runs=1)
    short = calls(model_of(corpus, "mobilenet_v1_0.25_128_quant"))
    said: list[str] = []
    random = np.random.default_rng(3)
    device = Device(new_function(), said.append)
    with Server(device, tmp_path):
        environ = environment(shim(), tmp_path)
        for _ in range(4):
            script = Script(tmp_path)
            for call in long:
                script.queue(call)
            script.lines.append(f"sleep {random.uniform(0, 0.5):.3f}")
            path = script.write("sleep 60" if last == "kill" else last)
            process = subprocess.Popen([client, path], env=environ)
            if last == "kill":
                time.sleep(random.uniform(0, 0.8))
                process.kill()
            assert process.wait(60) in (0, -signal.SIGKILL)
        comes_out(client, tmp_path, Replay(tmp_path, short))
    assert said == []
    assert device.faults == 0


@pytest.mark.parametrize(
    "name",
    [
        "gabor_64x64_7k_4o_2s",
        # The one in two chunks.
        pytest.param("deeplab_mobilenet_edgetpu_slim_cityscapes_quant", marks=pytest.mark.nightly),
    ],
)
def test_a_program_may_be_late(
    client: Path, device: tuple[Path, Path], tmp_path: Path, corpus: Path, name: str
) -> None:
    """With each chunk: waiting for one is no deadlock."""
    asked = calls(model_of(corpus, name))
    comes_out(client, device[0], Replay(tmp_path, asked, late=0.2))


def answers(events: list[Event]) -> list[str]:
    """What differs."""
    player = Player(new_function(), events)
    player.play()
    return [place.message for place in player.places if place.differences]


def test_the_vendors_driver_would_get_the_same(traces: Path) -> None:
    found = replay(RecordedSession(traces / TRACE), new_function)
    assert found.verdict is Verdict.PASS, found.rows
    assert found.message == "125 events, no difference"


def test_one_changed_bit_of_what_it_got_is_found(traces: Path) -> None:
    events = list(RecordedSession(traces / TRACE).events(DECODER))
    random = np.random.default_rng(5)
    for number, event in enumerate(events):
        match event:
            case RegisterRead():
                bits = 2 if event.offset == COUNTS else 8 * event.size
                flipped = event.value ^ 1 << int(random.integers(bits))
                wrong: Event = msgspec.structs.replace(event, value=flipped)
            case MemoryWrite():
                data = np.frombuffer(event.data.b, np.uint8).copy()
                data[random.integers(data.size)] ^= 1 << int(random.integers(8))
                wrong = msgspec.structs.replace(event, data=Octets(data.tobytes()))
            case Interrupt():
                wrong = Interrupt(event.vector ^ 1 << int(random.integers(3)))
            case _:
                continue
        assert answers([*events[:number], wrong, *events[number + 1 :]]), (number, wrong)
