"""Compiled models by USB: a client of PyUSB gets the bytes that `darwinn run` gets."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from corpus_models import MODELS, model_of, path_of
from darwinn_sim.usb.descriptors import Speed
from darwinn_testbench.chip.inputs import random_inputs
from darwinn_testbench.chip.model import BoundModel, open_models
from darwinn_testbench.chip.session import Session
from darwinn_testbench.compiler.files import sample as write_samples

pytest.importorskip("usb.core", reason="PyUSB is not installed")

import usb.core
import usb.util
import usb_inference
import usb_two_models
from darwinn_testbench.device import pyusb_backend
from darwinn_testbench.device.usb.attach import attached
from darwinn_testbench.device.usb.wrapped import run_command
from usb_client import UsbClient

SEED = 20


def expected(model: BoundModel) -> dict[str, bytes]:
    (tensors,) = random_inputs(model.ports, seed=SEED, runs=1)
    return Session(model).infer(tensors).result.outputs


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The smallest sample."""
    folder = tmp_path_factory.mktemp("samples")
    write_samples(folder)
    return folder / "dense_edgetpu.tflite"


@pytest.fixture
def backend() -> Iterator[Any]:
    with pyusb_backend() as made:
        yield made


@pytest.mark.parametrize("speed", Speed)
@pytest.mark.parametrize("boot", [True, False])
def test_a_sample_runs_in_this_process(sample: Path, speed: Speed, boot: bool) -> None:
    (model,) = open_models(sample)
    with pyusb_backend(speed=speed, boot=boot) as backend:
        assert usb_inference.outputs_by_usb(model, SEED, backend) == expected(model)


@pytest.mark.parametrize("name", MODELS)
def test_a_model_runs_in_this_process(corpus: Path, backend: Any, name: str) -> None:
    model = model_of(corpus, name)
    assert usb_inference.outputs_by_usb(model, SEED, backend) == expected(model)
    assert backend.function.fault is None


@pytest.mark.parametrize("name", ["dense_256", "keras_lstm_mnist_ptq", "gabor_64x64_7k_4o_2s"])
def test_a_model_runs_by_an_endpoint_for_each_kind_of_data(
    corpus: Path, backend: Any, name: str
) -> None:
    model = model_of(corpus, name)
    assert usb_inference.outputs_by_usb(model, SEED, backend, multiple=True) == expected(model)


def by_libusb(path: Path, folder: Path) -> dict[str, bytes]:
    """Outputs by a process that opens the device with the stand-in for libusb."""
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    result = folder / "result"
    with attached() as function:
        script = usb_inference.__file__
        command = [sys.executable, script, str(path), str(SEED), str(result)]
        assert run_command([function], command) == 0
        assert function.fault is None
    return {name: bytes.fromhex(text) for name, text in json.loads(result.read_text()).items()}


def test_a_sample_runs_by_libusb(sample: Path, tmp_path: Path) -> None:
    (model,) = open_models(sample)
    assert by_libusb(sample, tmp_path) == expected(model)


def test_two_models_keep_their_parameters_on_two_chips(sample: Path, tmp_path: Path) -> None:
    """They take turns after both have loaded theirs: one chip would hold those of the second."""
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    write_samples(tmp_path, seed=1)
    paths = [sample, tmp_path / "dense_edgetpu.tflite"]
    result = tmp_path / "result"
    script = usb_two_models.__file__
    with attached(boot=False) as first, attached(boot=False) as second:
        command = [sys.executable, script, str(SEED), str(result), *map(str, paths)]
        assert run_command([first, second], command) == 0
        assert first.fault is None and second.fault is None
    got = [
        {name: bytes.fromhex(text) for name, text in each.items()}
        for each in json.loads(result.read_text())
    ]
    models = [model for path in paths for model in open_models(path)]
    assert got == [expected(model) for model in models]
    assert got[0] != got[1]


@pytest.mark.parametrize("name", MODELS)
def test_a_model_runs_by_libusb(corpus: Path, tmp_path: Path, name: str) -> None:
    path = path_of(corpus, name)
    (model,) = open_models(path)
    assert by_libusb(path, tmp_path) == expected(model)


def test_models_take_turns_on_one_device(corpus: Path, backend: Any) -> None:
    """Programs are recognised by what is sent: nobody says which model it is."""
    names = ("dense_256", "mobilenet_v1_0.25_128_quant", "bright_16x16")
    models = [model_of(corpus, name) for name in names]
    for model in (*models, *models):
        assert usb_inference.outputs_by_usb(model, SEED, backend) == expected(model)


class CablePulled(Exception):
    """The client goes no further."""


class Unlucky(UsbClient):
    """A client whose cable is pulled before a transfer."""

    left = 0

    def _count(self) -> None:
        if not self.left:
            raise CablePulled
        self.left -= 1

    def send_stream(self, data: bytes, endpoint: int = 1) -> None:
        self._count()
        super().send_stream(data, endpoint)

    def receive(self, size: int) -> bytes:
        self._count()
        return super().receive(size)

    def event(self) -> tuple[int, int, int]:
        self._count()
        return super().event()


def test_the_cable_may_be_pulled_at_any_transfer(sample: Path, backend: Any) -> None:
    (model,) = open_models(sample)
    (tensors,) = random_inputs(model.ports, seed=SEED, runs=1)
    inputs, compiled = model.to_device(tensors), model.compiled
    want = expected(model)
    pulled = 0
    while True:
        client = Unlucky(backend)
        client.left = pulled
        try:
            if compiled.caching is not None:
                client.run(compiled.caching, {})
            client.run(compiled.inference, inputs)
            break
        except CablePulled:
            backend.function.reset()
            usb.util.dispose_resources(client.device)
        assert usb_inference.outputs_by_usb(model, SEED, backend) == want
        pulled += 1
    assert pulled > 5


def test_an_old_device_is_gone_after_a_reset(backend: Any) -> None:
    device = usb.core.find(backend=backend)
    for block, data in enumerate((b"firmware", b"")):
        device.ctrl_transfer(0x21, 1, block, 0, data)
        device.ctrl_transfer(0xA1, 3, 0, 0, 6)
    with pytest.raises(usb.core.USBError, match="Entity not found"):
        device.reset()
    with pytest.raises(usb.core.USBError, match="No such device"):
        device.ctrl_transfer(0x80, 6, 0x100, 0, 18)
    found = usb.core.find(backend=backend)
    assert (found.idVendor, found.idProduct) == (0x18D1, 0x9302)
    assert (found.bus, found.port_number) == (device.bus, device.port_number)
    assert found.address != device.address


def test_errors_are_those_of_libusb(backend: Any) -> None:
    client = UsbClient(backend)
    with pytest.raises(usb.core.USBTimeoutError):
        client.device.read(0x82, 16, timeout=50)
    with pytest.raises(usb.core.USBError, match="Pipe error"):
        client.device.ctrl_transfer(0xC0, 7, 0, 0, 8)
    client.send(9, b"no such tag")
    with pytest.raises(usb.core.USBError, match="Pipe error"):
        client.receive(1)
    assert bytes(client.device.read(0x83, 4)) == b"\x01\0\0\0"
    assert client.read(0x486F0)


def test_a_program_that_is_none_is_a_fault(
    sample: Path, backend: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    client = UsbClient(backend)
    client.send(0, bytes(range(256)) * 16)
    with pytest.raises(usb.core.USBError, match="Pipe error"):
        client.event()
    assert backend.function.fault is not None
    assert capsys.readouterr().err.startswith("darwinn device: fault: ")
    usb.util.dispose_resources(client.device)
    (model,) = open_models(sample)
    assert usb_inference.outputs_by_usb(model, SEED, backend) == expected(model)
