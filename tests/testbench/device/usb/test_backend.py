"""The backend of PyUSB where its users end, close it and come back in whatever order."""

from __future__ import annotations

import ctypes
import errno
import signal
import struct
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from typing import Any

import pytest

pytest.importorskip("usb.core", reason="PyUSB is not installed")

import usb.core
import usb.util
from darwinn_sim.device.worker import Worker
from darwinn_sim.usb.descriptors import Mode
from darwinn_sim.usb.function import UsbFunction
from darwinn_testbench.device.clock import Clock
from darwinn_testbench.device.usb.pyusb import Backend
from echo_chip import RUN, echo, slow_echo

SECONDS = 20
PROGRAM = struct.pack("<II", 6, 0) + bytes((1, 5, 3, 5, 4, 0)) + struct.pack("<II", 5, 1)


def new_backend() -> Backend:
    function = UsbFunction(echo, mode=Mode.APPLICATION)
    stack = ExitStack()
    stack.enter_context(Worker(function))
    return Backend(function, stack)


@pytest.fixture
def backend() -> Iterator[Backend]:
    with new_backend() as made:
        yield made


def opened(backend: Backend) -> Any:
    device = usb.core.find(backend=backend, idVendor=0x18D1)
    assert device is not None
    device.ctrl_transfer(0x40, 0, RUN & 0xFFFF, RUN >> 16, (1).to_bytes(8, "little"))
    return device


def echoed(device: Any, text: bytes) -> bytes:
    device.write(1, PROGRAM + text)
    return bytes(device.read(0x81, 64, 1000 * SECONDS))


@pytest.mark.parametrize("clock", Clock)
def test_time_outs_count_the_time_of_their_clock(clock: Clock) -> None:
    """The chip computes for a second, of which the clock of the chip knows nothing."""
    function = UsbFunction(slow_echo, mode=Mode.APPLICATION)
    stack = ExitStack()
    stack.enter_context(Worker(function))
    with Backend(function, stack, clock) as backend:
        device = opened(backend)
        device.write(1, PROGRAM + b"right")
        if clock is Clock.CHIP:
            assert bytes(device.read(0x81, 64, 300)) == b"right"
        else:
            with pytest.raises(usb.core.USBTimeoutError):
                device.read(0x81, 64, 300)
        # Where nothing is computed, both clocks go on.
        begin = time.monotonic()
        with suppress(usb.core.USBTimeoutError):
            device.read(0x82, 64, 300)
            device.read(0x82, 64, 300)
        assert time.monotonic() - begin >= 0.3


@pytest.mark.usefixtures("signals_not_ignored")
def test_an_interrupted_read_takes_nothing_of_the_next(backend: Backend) -> None:
    device = opened(backend)
    main = threading.get_ident()
    timer = threading.Timer(0.2, lambda: signal.pthread_kill(main, signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        device.read(0x81, 64, 1000 * SECONDS)
    assert echoed(device, b"right") == b"right"


def test_the_address_of_an_endpoint_says_where_bytes_go(backend: Backend) -> None:
    """As by libusb, whichever function is called: what is sent here is a header of zeros."""
    device = opened(backend)
    assert device.read(1, 4).tolist() == 4 * [0]
    device.reset()
    device = opened(backend)
    device.write(1, PROGRAM + b"right")
    assert device.write(0x81, bytes(5), 1000 * SECONDS) == 5


def test_an_endpoint_that_is_not_there_is_not_found(backend: Backend) -> None:
    device = opened(backend)
    device.clear_halt(0x81)
    with pytest.raises(usb.core.USBError, match="Entity not found"):
        device.clear_halt(0x99)


def test_a_thread_that_is_ended_takes_nothing_of_the_next(backend: Backend) -> None:
    device = opened(backend)
    ended = threading.Event()

    def read_for_ever() -> None:
        try:
            with suppress(SystemExit):
                while True:
                    with suppress(usb.core.USBTimeoutError):
                        device.read(0x81, 64, 50)
        finally:
            ended.set()

    thread = threading.Thread(target=read_for_ever)
    thread.start()
    assert thread.ident is not None
    kill = ctypes.pythonapi.PyThreadState_SetAsyncExc
    assert kill(ctypes.c_ulong(thread.ident), ctypes.py_object(SystemExit)) == 1
    assert ended.wait(SECONDS)
    assert echoed(device, b"right") == b"right"


def test_closing_ends_what_waits() -> None:
    backend = new_backend()
    device = opened(backend)
    with ThreadPoolExecutor(1) as threads:
        reading = threads.submit(device.read, 0x81, 64, 0)
        with pytest.raises(TimeoutError):
            reading.result(0.2)
        backend.close()
        error = reading.exception(SECONDS)
    assert isinstance(error, usb.core.USBError)
    assert error.errno == errno.ENODEV


@pytest.mark.parametrize(
    "use",
    [
        lambda device: device.read(0x81, 64, 0),
        lambda device: device.write(1, b"text", 0),
        lambda device: device.ctrl_transfer(0xC0, 0, RUN & 0xFFFF, RUN >> 16, 8),
        lambda device: device.reset(),
        lambda device: device.set_configuration(),
        lambda device: usb.util.claim_interface(device, 0),
        lambda device: device.clear_halt(1),
    ],
)
def test_after_closing_there_is_no_device(use: Callable[[Any], object]) -> None:
    backend = new_backend()
    device = opened(backend)
    backend.close()
    with pytest.raises(usb.core.USBError) as caught:
        use(device)
    assert caught.value.errno == errno.ENODEV
    assert usb.core.find(backend=backend, idVendor=0x18D1) is None
    usb.util.dispose_resources(device)
    backend.close()


def test_a_claimed_interface_keeps_the_configuration_as_by_libusb(backend: Backend) -> None:
    device = usb.core.find(backend=backend, idVendor=0x18D1)
    usb.util.claim_interface(device, 0)
    with pytest.raises(usb.core.USBError) as caught:
        device.set_configuration(1)
    assert caught.value.errno == errno.EBUSY
    usb.util.release_interface(device, 0)
    device.set_configuration(1)


def test_two_backends_are_two_devices(backend: Backend) -> None:
    with new_backend() as second:
        devices = opened(backend), opened(second)

        def use(number: int) -> bool:
            texts = [b"%d%04d" % (number, each) for each in range(50)]
            return [echoed(devices[number], each) for each in texts] == texts

        with ThreadPoolExecutor(2) as threads:
            assert all(threads.map(use, range(2)))
    assert echoed(devices[0], b"still") == b"still"
