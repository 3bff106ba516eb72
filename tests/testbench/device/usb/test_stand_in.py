"""The stand-in for libusb-1.0: programs in processes of their own use it as the real one."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import libusb_client
import libusb_scenarios
import pytest
from darwinn_sim.device.worker import Worker
from darwinn_sim.usb.descriptors import Mode, Speed
from darwinn_sim.usb.function import UsbFunction, Watcher
from darwinn_sim.usb.messages import HELD_BYTES
from darwinn_testbench.device.clock import Clock
from darwinn_testbench.device.sockets import private_folder
from darwinn_testbench.device.usb import wrapped
from darwinn_testbench.device.usb.log import Faults
from echo_chip import echo, slow_echo
from libusb_client import COMPLETED, TIMED_OUT

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")

LIBUSB_1_0_26 = """
alloc_streams alloc_transfer attach_kernel_driver bulk_transfer cancel_transfer claim_interface
clear_halt close control_transfer detach_kernel_driver dev_mem_alloc dev_mem_free error_name
event_handler_active event_handling_ok exit free_bos_descriptor free_config_descriptor
free_container_id_descriptor free_device_list free_pollfds free_ss_endpoint_companion_descriptor
free_ss_usb_device_capability_descriptor free_streams free_transfer
free_usb_2_0_extension_descriptor get_active_config_descriptor get_bos_descriptor get_bus_number
get_config_descriptor get_config_descriptor_by_value get_configuration get_container_id_descriptor
get_device get_device_address get_device_descriptor get_device_list get_device_speed
get_max_iso_packet_size get_max_packet_size get_next_timeout get_parent get_pollfds get_port_number
get_port_numbers get_port_path get_ss_endpoint_companion_descriptor
get_ss_usb_device_capability_descriptor get_string_descriptor_ascii get_usb_2_0_extension_descriptor
get_version handle_events handle_events_completed handle_events_locked handle_events_timeout
handle_events_timeout_completed has_capability hotplug_deregister_callback hotplug_get_user_data
hotplug_register_callback init interrupt_event_handler interrupt_transfer kernel_driver_active
lock_event_waiters lock_events open open_device_with_vid_pid pollfds_handle_timeouts ref_device
release_interface reset_device set_auto_detach_kernel_driver set_configuration set_debug
set_interface_alt_setting set_log_cb set_option set_pollfd_notifiers setlocale strerror
submit_transfer transfer_get_stream_id transfer_set_stream_id try_lock_events unlock_event_waiters
unlock_events unref_device wait_for_event wrap_sys_device
"""
"""Every function that <libusb.h> 1.0.26 declares, without its prefix."""

Scenario = Callable[..., Any]


@pytest.fixture
def scenario(tmp_path: Path) -> Scenario:
    """Runs one of ``libusb_scenarios`` with an echo chip plugged in; gives what it returns."""

    def run(
        name: str,
        *arguments: str,
        mode: Mode = Mode.APPLICATION,
        speed: Speed = Speed.SUPER,
        chips: int = 1,
        make: Any = echo,
        clock: Clock = Clock.CHIP,
        watchers: tuple[Watcher, ...] = (),
    ) -> Any:
        result = tmp_path / "result"
        script = libusb_scenarios.__file__
        new = partial(UsbFunction, make, speed=speed, mode=mode, watchers=watchers)
        functions = [new() for _ in range(chips)]
        with ExitStack() as stack:
            for function in functions:
                stack.enter_context(Worker(function))
            command = [sys.executable, script, name, str(result), *arguments]
            assert wrapped.run_command(functions, command, clock) == 0
        return json.loads(result.read_text())

    return run


def test_several_devices_are_at_ports_of_their_own(scenario: Scenario) -> None:
    """Each answers for itself, another process has one of them, and one resets alone."""
    assert scenario("several_devices", chips=3) == {
        "ports": [1, 2, 3],
        "own addresses": True,
        "echoes": ["first", "secon", "third"],
        "busy": ["LIBUSB_SUCCESS", "LIBUSB_ERROR_BUSY"],
        "untouched": "after",
        "hot plug": 3,
        "after": ["LIBUSB_SUCCESS", "LIBUSB_SUCCESS"],
    }


def test_one_of_several_devices_can_become_another_one(scenario: Scenario) -> None:
    """Firmware for the second alone: the others wait for theirs."""
    assert scenario("one_gets_firmware", mode=Mode.BOOT, chips=2) == {
        "reset": "LIBUSB_ERROR_NOT_FOUND",
        "told": [[2, libusb_client.BOOT[0]], [1, libusb_client.APPLICATION[0]]],
        "now": [list(libusb_client.BOOT), list(libusb_client.APPLICATION)],
        "echo": "right",
    }


@pytest.mark.parametrize(
    ("clock", "read"),
    [(Clock.CHIP, ["LIBUSB_SUCCESS", "right"]), (Clock.WALL, ["LIBUSB_ERROR_TIMEOUT", ""])],
)
def test_time_outs_count_the_time_of_their_clock(
    scenario: Scenario, clock: Clock, read: list[str]
) -> None:
    """The chip computes for a second: a program that waits for less has its answer by its clock."""
    found = scenario("slow_chip", make=slow_echo, clock=clock)
    assert found["called"] == read
    assert found["ended"] == (COMPLETED if clock is Clock.CHIP else TIMED_OUT)
    # Where nothing is computed, both clocks go on.
    assert 0.2 <= found["idle"] < 10


def test_what_nothing_takes_is_said(scenario: Scenario) -> None:
    """A transfer of more than the chip asks for and can hold times out, and a line says why."""
    said: list[str] = []
    found = scenario("too_much", watchers=(Faults(said.append),))
    assert found["status"] == "LIBUSB_ERROR_TIMEOUT"
    assert HELD_BYTES <= found["moved"] < 102_400
    (line,) = said
    assert "endpoint 1 is full: no descriptor asks for 65,536 bytes" in line
    assert "message 1 after an instruction chunk (102,405 bytes of tag 1)" in line


def test_every_function_is_exported() -> None:
    library = wrapped.stand_in() / "libusb-1.0.so.0"
    listed = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True)
    exported = {line.split()[-1] for line in listed.stdout.splitlines()}
    assert exported == {f"libusb_{name}" for name in LIBUSB_1_0_26.split()}


def test_a_program_gets_what_the_chip_sends(scenario: Scenario) -> None:
    assert scenario("echo", "50") == [f"{number:05}" for number in range(50)]


def test_without_a_device_none_is_listed(scenario: Scenario) -> None:
    assert scenario("nothing_plugged_in") == 0


def test_calls_end_when_their_time_is_over(scenario: Scenario) -> None:
    answers = scenario("calls_that_wait")
    assert 0.2 <= answers.pop("waited") < 5
    assert answers == {
        "read": ["LIBUSB_ERROR_TIMEOUT", 0],
        "stall": "LIBUSB_ERROR_PIPE",
        "bad endpoint": "LIBUSB_ERROR_PIPE",
        "then": "right",
    }


def test_transfers_end_in_their_callbacks(scenario: Scenario) -> None:
    assert scenario("transfers") == {
        "ended": {
            "late": [libusb_client.TIMED_OUT, 0],
            "cancelled": [libusb_client.CANCELLED, 0],
            "output": [libusb_client.COMPLETED, 5],
            "event": [libusb_client.COMPLETED, 16],
        },
        "busy": "LIBUSB_ERROR_BUSY",
        "again": "LIBUSB_ERROR_NOT_FOUND",
        "over": "LIBUSB_ERROR_NOT_FOUND",
    }


def test_calls_and_transfers_wait_at_once(scenario: Scenario) -> None:
    assert scenario("calls_and_transfers_at_once") == {
        "ended": {"late": libusb_client.TIMED_OUT, "after": libusb_client.COMPLETED},
        "echoed": "while",
        "meanwhile": True,
        "waited": "LIBUSB_ERROR_TIMEOUT",
    }


def test_several_threads_call_at_once(scenario: Scenario) -> None:
    expected = "".join(f"{number:05}" for number in range(200))
    assert scenario("calls_of_several_threads", "200") == [expected, 200]


def test_a_program_may_poll_descriptors_itself(scenario: Scenario) -> None:
    assert scenario("handled_from_a_poll_loop") == {
        "quiet": 0,
        "ready": 1,
        "before": [],
        "after": [5],
        "quick": True,
        "next timeout": 0,
        "handles timeouts": 1,
    }


@pytest.mark.parametrize("speed", Speed)
def test_a_reset_after_firmware_is_told_as_hot_plug(scenario: Scenario, speed: Speed) -> None:
    boot, application = map(list, (libusb_client.BOOT, libusb_client.APPLICATION))
    assert scenario("firmware_and_hot_plug", mode=Mode.BOOT, speed=speed) == {
        "before": boot,
        "uploaded": "rest",
        "reset": "LIBUSB_ERROR_NOT_FOUND",
        "old": "LIBUSB_ERROR_NO_DEVICE",
        "again": "LIBUSB_SUCCESS",
        "told": [[1, boot], [2, boot], [1, application]],
        "refused": "LIBUSB_ERROR_INVALID_PARAM",
    }


def test_what_makes_no_sense_is_not_supported(scenario: Scenario) -> None:
    assert scenario("the_rest") == {
        "streams": "LIBUSB_ERROR_NOT_SUPPORTED",
        "wrap": "LIBUSB_ERROR_NOT_SUPPORTED",
        "usbdk": "LIBUSB_ERROR_NOT_SUPPORTED",
        "detach": "LIBUSB_ERROR_NOT_FOUND",
        "claim": "LIBUSB_SUCCESS",
        "configure claimed": "LIBUSB_ERROR_BUSY",
        "setting": "LIBUSB_SUCCESS",
        "release": "LIBUSB_SUCCESS",
        "release again": "LIBUSB_ERROR_NOT_FOUND",
        "claim another": "LIBUSB_ERROR_NOT_FOUND",
        "configure": "LIBUSB_SUCCESS",
        "configure 2": "LIBUSB_ERROR_NOT_FOUND",
        "get": "LIBUSB_SUCCESS",
        "text": "LIBUSB_ERROR_PIPE",
        "clear": "LIBUSB_SUCCESS",
        "clear another": "LIBUSB_ERROR_NOT_FOUND",
        "configuration": 1,
        "active": 0,
        "speed": 4,
        "bus": 2,
        "ports": [1, 1],
        "packet": 1024,
        "no packet": "LIBUSB_ERROR_NOT_FOUND",
        "hot plug": 1,
        "unknown": "**UNKNOWN**",
        "said": "Pipe error",
    }


def test_closing_wakes_whoever_handles_events(scenario: Scenario) -> None:
    assert scenario("close_wakes_the_handler") == [False, True]


def test_one_process_at_a_time(scenario: Scenario, tmp_path: Path) -> None:
    assert scenario("two_at_once", str(tmp_path / "held")) == ["LIBUSB_ERROR_BUSY", "right"]


@pytest.mark.parametrize("point", range(12))
def test_a_killed_process_leaves_a_clean_device(
    scenario: Scenario, tmp_path: Path, point: int
) -> None:
    assert scenario("killed_at", str(tmp_path / "there"), str(point)) == "right"


def test_a_fault_is_seen_by_the_program_and_mended_by_a_reset(scenario: Scenario) -> None:
    assert scenario("fault") == {
        "error": [0, "01000000"],
        "status": True,
        "write": "LIBUSB_ERROR_PIPE",
        "read": "LIBUSB_ERROR_PIPE",
        "reset": "LIBUSB_SUCCESS",
        "then": "right",
    }


def test_a_child_after_fork_is_a_client_of_its_own(scenario: Scenario) -> None:
    assert scenario("in_a_child_after_fork") == [0, "right"]


def test_garbage_on_the_socket_ends_that_connection_alone(scenario: Scenario) -> None:
    assert scenario("garbage_then_echo") == "right"


def test_faults_are_counted_and_said(tmp_path: Path) -> None:
    said: list[str] = []
    faults = Faults(said.append)
    function = UsbFunction(echo, mode=Mode.APPLICATION, watchers=(faults,))
    with Worker(function):
        script = libusb_scenarios.__file__
        wrapped.run_command([function], [sys.executable, script, "fault", str(tmp_path / "result")])
    assert faults.count == 1
    assert said == ["fault: message at byte 0 of endpoint 1: tag 9 is none that a host sends"]


def test_the_socket_is_for_this_user_alone() -> None:
    with private_folder() as folder:
        assert folder.stat().st_mode & 0o777 == 0o700
    assert not folder.exists()


@pytest.mark.parametrize("how", ["called", "ended"])
def test_a_program_outlives_the_device(tmp_path: Path, how: str) -> None:
    """The chip's process is killed: nothing hangs in the program."""
    result = tmp_path / "result"
    script = Path(libusb_scenarios.__file__).parent / "echo_device.py"
    subprocess.run(
        [sys.executable, script, libusb_scenarios.__file__, "device_goes_away", str(result), how],
        timeout=60,
        check=False,
    )
    libusb_scenarios.wait_for(result)
    answers = json.loads(result.read_text())
    assert answers == {
        "called": ["LIBUSB_ERROR_NO_DEVICE"] if how == "called" else [],
        "ended": [libusb_client.NO_DEVICE] if how == "ended" else [],
        "read": "LIBUSB_ERROR_NO_DEVICE",
        "devices": 0,
    }
