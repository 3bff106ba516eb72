"""What programs do with libusb, by name, each in a process of its own.

    python libusb_scenarios.py SCENARIO RESULT [ARGUMENT...]

writes what the scenario returns to the file RESULT as JSON.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from ctypes import byref, c_int, c_void_p
from pathlib import Path
from typing import Any

from libusb_client import PROGRAM, Bus, HotPlug, Time, error_name, opened

SET_PARENT_DEATH_SIGNAL = 1


def echo(times: str = "1") -> Any:
    bus = opened()
    return [bus.echo(b"%05d" % number).decode() for number in range(int(times))]


def slow_chip() -> Any:
    """A read and a transfer of 0.3 s while the chip computes longer, then one while it idles."""
    bus = opened()
    ended: list[int] = []
    bus.message(0, PROGRAM)
    bus.message(1, b"right")
    bus.transfer(0x82, 64, lambda what: ended.append(what.status), timeout=300)
    status, data = bus.read(0x81, 64, timeout=300)
    bus.handle_until(lambda: bool(ended))
    begin = time.monotonic()
    bus.read(0x83, 64, timeout=200)
    idle = time.monotonic() - begin
    return {"called": [error_name(bus, status), data.decode()], "ended": ended[0], "idle": idle}


def too_much() -> Any:
    """Input bytes of which the program asks for five."""
    bus = opened()
    bus.message(0, PROGRAM)
    payload = bytes(102_405)
    status, moved = bus.write(struct.pack("<II", len(payload), 1) + payload, timeout=2500)
    return {"status": error_name(bus, status), "moved": moved}


def several_devices() -> Any:
    """Three of them, each with a handle of its own."""
    buses = [opened(number) for number in range(3)]
    devices = buses[0].devices()
    lib = buses[0].lib
    addresses = {lib.libusb_get_device_address(each) for each in devices}
    found: dict[str, Any] = {
        "ports": [lib.libusb_get_port_number(each) for each in devices],
        "own addresses": len(addresses) == len(devices),
        "echoes": [
            bus.echo(text) for bus, text in zip(buses, (b"first", b"secon", b"third"), strict=True)
        ],
    }
    buses[0].close()
    found["echoes"] = [each.decode() for each in found["echoes"]]
    found["busy"] = other_process("open_two")
    # The other process has gone, and its device was reset: those of this one were not.
    found["untouched"] = buses[2].echo(b"after").decode()
    arrived: list[int] = []

    def note(*_: Any) -> int:
        arrived.append(1)
        return 0

    callback = HotPlug(note)
    lib.libusb_hotplug_register_callback(
        buses[1].context, 1, 1, -1, -1, -1, callback, None, byref(c_int())
    )
    found["hot plug"] = len(arrived)
    buses[1].close()
    found["after"] = other_process("open_two")
    return found


def open_two() -> Any:
    return [error_name(bus, bus.open(number)) for number, bus in ((0, Bus()), (1, Bus()))]


def other_process(name: str) -> Any:
    """What a scenario gives in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result"
        subprocess.run([sys.executable, __file__, name, str(result)], check=True, timeout=60)
        return json.loads(result.read_text())


def one_gets_firmware() -> Any:
    """The second device of two; hot-plug events say which one has left and arrived."""
    bus = Bus()
    told: list[tuple[int, int]] = []

    def note(_: Any, device: int, event: int, __: Any) -> int:
        told.append((event, bus.identity(c_void_p(device))[0]))
        return 0

    callback = HotPlug(note)
    bus.lib.libusb_hotplug_register_callback(
        bus.context, 3, 0, -1, -1, -1, callback, None, byref(c_int())
    )
    assert bus.open(1) == 0
    for block, image in enumerate((b"firmware", b"")):
        assert bus.control(0x21, 1, block, 0, image) == len(image)
        assert len(bus.control(0xA1, 3, 0, 0, 6)) == 6
    reset = error_name(bus, bus.lib.libusb_reset_device(bus.handle))
    bus.close()
    bus.handle_until(lambda: len(told) >= 2)
    now = [bus.identity(each) for each in bus.devices()]
    return {"reset": reset, "told": told, "now": now, "echo": opened(1).echo(b"right").decode()}


def nothing_plugged_in() -> Any:
    os.environ.pop("DARWINN_USB_SOCKET")
    return len(Bus().devices())


def calls_that_wait() -> Any:
    """Their time-outs, and requests that are refused."""
    bus = opened()
    begin = time.monotonic()
    status, data = bus.read(0x81, 64, timeout=200)
    waited = time.monotonic() - begin
    return {
        "read": [error_name(bus, status), len(data)],
        "waited": waited,
        "stall": error_name(bus, bus.control(0x80, 6, 0x300, 0, 255)),
        "bad endpoint": error_name(bus, bus.read(0x8F, 64)[0]),
        "then": bus.echo(b"right").decode(),
    }


def transfers() -> Any:
    """Completed, timed out, cancelled; in the callbacks."""
    bus = opened()
    ended: dict[str, tuple[int, int]] = {}

    def note(name: str) -> Callable[[Any], None]:
        return lambda what: ended.__setitem__(name, (what.status, what.actual_length))

    late = bus.transfer(0x83, 4, note("late"), timeout=100)
    bus.handle_until(lambda: "late" in ended)
    first = bus.transfer(0x83, 4, note("cancelled"))
    busy = bus.lib.libusb_submit_transfer(first)
    assert bus.lib.libusb_cancel_transfer(first) == 0
    again = bus.lib.libusb_cancel_transfer(first)
    bus.handle_until(lambda: "cancelled" in ended)
    over = bus.lib.libusb_cancel_transfer(first)
    bus.transfer(0x81, 64, note("output"))
    bus.transfer(0x82, 16, note("event"))
    bus.message(0, PROGRAM)
    bus.message(1, b"async")
    bus.handle_until(lambda: {"output", "event"} <= ended.keys())
    bus.lib.libusb_free_transfer(late)
    return {
        "ended": ended,
        "busy": error_name(bus, busy),
        "again": error_name(bus, again),
        "over": error_name(bus, over),
    }


def calls_and_transfers_at_once() -> Any:
    """A thread that waits in a call reads for all; whoever is left when it ends reads on."""
    bus = opened()
    ended: dict[str, int] = {}
    waited: list[int] = []
    caller = threading.Thread(
        target=lambda: waited.append(bus.read(0x83, 4, timeout=1500)[0]), daemon=True
    )
    caller.start()
    time.sleep(0.2)
    bus.transfer(0x83, 4, lambda what: ended.__setitem__("late", what.status), timeout=100)
    bus.handle_until(lambda: "late" in ended)
    bus.message(0, PROGRAM)
    bus.message(1, b"while")
    echoed = bus.read(0x81, 64)[1].decode()
    bus.transfer(0x81, 64, lambda what: ended.__setitem__("after", what.status))
    meanwhile = caller.is_alive()
    caller.join()
    bus.message(0, PROGRAM)
    bus.message(1, b"after")
    bus.handle_until(lambda: "after" in ended)
    return {
        "ended": ended,
        "echoed": echoed,
        "meanwhile": meanwhile,
        "waited": error_name(bus, waited[0]),
    }


def calls_of_several_threads(times: str) -> Any:
    """One thread for each endpoint; what comes on each, in order."""
    bus = opened()
    came: dict[int, list[str]] = {0x81: [], 0x82: []}

    def take(endpoint: int) -> None:
        for _ in range(int(times)):
            status, data = bus.read(endpoint, 64 if endpoint == 0x81 else 16)
            came[endpoint].append(data.decode("latin-1") if status == 0 else str(status))

    threads = [threading.Thread(target=take, args=(endpoint,), daemon=True) for endpoint in came]
    for thread in threads:
        thread.start()
    for number in range(int(times)):
        bus.message(0, PROGRAM)
        bus.message(1, b"%05d" % number)
    for thread in threads:
        thread.join(30)
    return ["".join(came[0x81]), len(came[0x82])]


def handled_from_a_poll_loop() -> Any:
    """A program that waits for descriptors itself."""
    bus = opened()
    ended: list[int] = []
    listed = bus.lib.libusb_get_pollfds(bus.context)
    descriptor = listed[0].contents
    poller = select.poll()
    poller.register(descriptor.fd, descriptor.events)
    while poller.poll(0):
        bus.handle_events(0)
    quiet = poller.poll(50)
    bus.transfer(0x81, 64, lambda what: ended.append(what.actual_length))
    bus.message(0, PROGRAM)
    bus.message(1, b"polls")
    ready = poller.poll(10_000)
    before = list(ended)
    begin = time.monotonic()
    bus.handle_events(0)
    time_left = Time()
    answers = {
        "quiet": len(quiet),
        "ready": len(ready),
        "before": before,
        "after": ended,
        "quick": time.monotonic() - begin < 1,
        "next timeout": bus.lib.libusb_get_next_timeout(bus.context, byref(time_left)),
        "handles timeouts": bus.lib.libusb_pollfds_handle_timeouts(bus.context),
    }
    bus.lib.libusb_free_pollfds(listed)
    return answers


def firmware_and_hot_plug() -> Any:
    """A reset makes another device of it, which callbacks are told of."""
    bus = Bus()
    told: list[tuple[int, tuple[int, int]]] = []

    def plugged(context: int, device: int, event: int, data: int) -> int:
        told.append((event, bus.identity(c_void_p(device))))
        return 0

    callback = HotPlug(plugged)
    number = c_int()
    register = bus.lib.libusb_hotplug_register_callback
    assert register(bus.context, 3, 1, -1, -1, -1, callback, None, byref(number)) == 0
    refused = register(bus.context, 8, 0, -1, -1, -1, callback, None, None)
    before = bus.identity()
    assert bus.open() == 0
    for block, data in enumerate((b"x" * 256, b"rest", b"")):
        assert bus.control(0x21, 1, block, 0, data) == len(data)
        assert len(bus.control(0xA1, 3, 0, 0, 6)) == 6
    uploaded = bus.control(0xA1, 2, 1, 0, 256)
    reset = bus.lib.libusb_reset_device(bus.handle)
    old = bus.control(0x80, 6, 0x100, 0, 18)
    bus.close()
    bus.handle_until(lambda: len(told) == 3)
    assert bus.open() == 0
    again = bus.lib.libusb_reset_device(bus.handle)
    bus.lib.libusb_hotplug_deregister_callback(bus.context, number)
    return {
        "before": before,
        "uploaded": uploaded.decode(),
        "reset": error_name(bus, reset),
        "old": error_name(bus, old),
        "again": error_name(bus, again),
        "told": told,
        "refused": error_name(bus, refused),
    }


def the_rest() -> Any:
    """What makes no sense here, and what is only looked at."""
    bus = opened()
    lib = bus.lib
    device = bus.devices()[0]
    buffer = ctypes.create_string_buffer(64)
    value = c_int()
    ports = ctypes.create_string_buffer(7)
    names = {
        "streams": lib.libusb_alloc_streams(bus.handle, 1, buffer, 1),
        "wrap": lib.libusb_wrap_sys_device(bus.context, 3, byref(c_void_p())),
        "usbdk": lib.libusb_set_option(bus.context, 1),
        "detach": lib.libusb_detach_kernel_driver(bus.handle, 0),
        "claim": lib.libusb_claim_interface(bus.handle, 0),
        "configure claimed": lib.libusb_set_configuration(bus.handle, 1),
        "setting": lib.libusb_set_interface_alt_setting(bus.handle, 0, 0),
        "release": lib.libusb_release_interface(bus.handle, 0),
        "release again": lib.libusb_release_interface(bus.handle, 0),
        "claim another": lib.libusb_claim_interface(bus.handle, 1),
        "configure": lib.libusb_set_configuration(bus.handle, 1),
        "configure 2": lib.libusb_set_configuration(bus.handle, 2),
        "get": lib.libusb_get_configuration(bus.handle, byref(value)),
        "text": lib.libusb_get_string_descriptor_ascii(bus.handle, 1, buffer, 64),
        "clear": lib.libusb_clear_halt(bus.handle, 0x81),
        "clear another": lib.libusb_clear_halt(bus.handle, 0x99),
    }
    return {
        **{name: error_name(bus, status) for name, status in names.items()},
        "configuration": value.value,
        "active": lib.libusb_kernel_driver_active(bus.handle, 0),
        "speed": lib.libusb_get_device_speed(device),
        "bus": lib.libusb_get_bus_number(device),
        "ports": [lib.libusb_get_port_numbers(device, ports, 7), ports.raw[0]],
        "packet": lib.libusb_get_max_packet_size(device, 0x81),
        "no packet": error_name(bus, lib.libusb_get_max_packet_size(device, 0x8F)),
        "hot plug": lib.libusb_has_capability(1),
        "unknown": error_name(bus, 77),
        "said": lib.libusb_strerror(-9).decode(),
    }


def close_wakes_the_handler() -> Any:
    """A thread that handles events is to go on when the device is closed."""
    bus = opened()
    bus.handle_events(0)
    returned = threading.Event()

    def handle() -> None:
        bus.lib.libusb_handle_events(bus.context)
        returned.set()

    thread = threading.Thread(target=handle, daemon=True)
    thread.start()
    time.sleep(0.2)
    before = returned.is_set()
    bus.close()
    return [before, returned.wait(10)]


def hold(path: str) -> Any:
    """Open the device, say so, and keep it until killed."""
    bus = opened()
    bus.message(0, PROGRAM)
    Path(path).touch()
    time.sleep(60)


def two_at_once(path: str) -> Any:
    """While another process has it, it is busy; when that is killed, it is free and clean."""
    with start("hold", path) as other:
        wait_for(Path(path))
        bus = Bus()
        busy = bus.open()
        other.send_signal(signal.SIGKILL)
        other.wait()
    return [error_name(bus, busy), opened().echo(b"right").decode()]


def killed_at(path: str, point: str) -> Any:
    """Another process is killed at a point of its work; the next one gets right results."""
    with start("work_until", path, point) as other:
        wait_for(Path(path))
        other.send_signal(signal.SIGKILL)
        other.wait()
    return opened().echo(b"right").decode()


def work_until(path: str, point: str) -> Any:
    """Do the steps of an inference until one, and wait there."""
    bus = Bus()
    assert bus.open() == 0
    stream = struct.pack("<II", 6, 0) + PROGRAM + struct.pack("<II", 5, 1) + b"wrong"
    steps: list[Callable[[], object]] = [
        bus.start,
        lambda: bus.write(stream[:3]),
        lambda: bus.write(stream[3:10]),
        lambda: bus.write(stream[10:20]),
        lambda: bus.write(stream[20:]),
        lambda: bus.transfer(0x83, 4, lambda what: None),
        lambda: bus.read(0x81, 2),
        lambda: bus.message(0, PROGRAM),
        lambda: bus.write(struct.pack("<II", 1 << 20, 1) + bytes(1000)),
        lambda: bus.transfer(0x82, 16, lambda what: None),
        lambda: bus.message(9, b"no such tag"),
    ]
    for step in steps[: int(point)]:
        step()
    Path(path).touch()
    time.sleep(60)


def fault() -> Any:
    """What a program sees when the chip can do no more, and that a reset helps."""
    bus = opened()
    bus.control(0x40, 0, 0xC060, 4, (1).to_bytes(8, "little"))
    bus.message(9, b"no such tag")
    error = bus.read(0x83, 4)
    status = bus.control(0xC0, 0, 0x86F0, 4, 8)
    write = bus.message(0, PROGRAM)[0]
    read = bus.read(0x81, 64)[0]
    reset = bus.lib.libusb_reset_device(bus.handle)
    bus.start()
    return {
        "error": [error[0], error[1].hex()],
        "status": any(status),
        "write": error_name(bus, write),
        "read": error_name(bus, read),
        "reset": error_name(bus, reset),
        "then": bus.echo(b"right").decode(),
    }


def in_a_child_after_fork() -> Any:
    """A child has a connection of its own."""
    bus = opened()
    bus.close()
    child = os.fork()
    if not child:
        own = opened()
        os._exit(own.echo(b"child") != b"child")
    _, status = os.waitpid(child, 0)
    return [os.waitstatus_to_exitcode(status), opened().echo(b"right").decode()]


def device_goes_away(how: str) -> Any:
    """The chip's process dies: what waits ends, and nothing hangs."""
    bus = opened()
    ended: list[int] = []
    called: list[int] = []
    caller = threading.Thread(target=lambda: called.append(bus.read(0x82, 16, timeout=0)[0]))
    if how == "called":
        caller.start()
        time.sleep(0.2)
    else:
        bus.transfer(0x81, 64, lambda what: ended.append(what.status))
    # This process is to outlive its parent, which has asked for the contrary.
    ctypes.CDLL(None).prctl(SET_PARENT_DEATH_SIGNAL, 0)
    os.kill(os.getppid(), signal.SIGKILL)
    if how == "called":
        caller.join(30)
    else:
        bus.handle_until(lambda: bool(ended))
    return {
        "called": [error_name(bus, status) for status in called],
        "ended": ended,
        "read": error_name(bus, bus.read(0x81, 64)[0]),
        "devices": len(bus.devices()),
    }


def garbage_then_echo() -> Any:
    """Others write whatever they like to the socket."""
    garbage = (
        b"\xff" * 20,
        struct.pack("<IIIII", 7, 1, 0x101, 0, 1 << 31),
        struct.pack("<IIIII", 5, 1, 0x100, 8, 3) + b"abc",
        struct.pack("<IIIII", 8, 1, 77, 0, 0),
        struct.pack("<IIIII", 6, 1, 0x101, 0, 100) + b"half",
    )
    for data in garbage:
        with socket.socket(socket.AF_UNIX) as other:
            other.connect(os.environ["DARWINN_USB_SOCKET"])
            other.sendall(data)
    return opened().echo(b"right").decode()


def start(*arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, __file__, arguments[0], "unused", *arguments[1:]])


def wait_for(path: Path) -> None:
    end = time.monotonic() + 20
    while not path.exists():
        assert time.monotonic() < end, f"{path} did not appear"
        time.sleep(0.01)


if __name__ == "__main__":
    name, result, *rest = sys.argv[1:]
    answer = globals()[name](*rest)
    # Whole, or not there: somebody may wait for it.
    Path(f"{result}.new").write_text(json.dumps(answer))
    Path(f"{result}.new").replace(result)
