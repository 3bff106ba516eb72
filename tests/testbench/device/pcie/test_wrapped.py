"""Commands with the device in their machine: exit status, faults, what cannot be."""

from __future__ import annotations

import platform
import signal
import sys
import time
from pathlib import Path

import pytest
from apex_script import Script
from bus_chip import BusChip, program
from darwinn_formats.errors import Unavailable
from darwinn_sim.pcie.function import PcieFunction
from darwinn_testbench.device import command
from darwinn_testbench.device.pcie.wrapped import run_command
from darwinn_testbench.errors import InputError

pytestmark = pytest.mark.usefixtures("library")


def run(*command: str | Path) -> tuple[int, int, list[str]]:
    """Status, faults, and what was said."""
    said: list[str] = []
    status, faults = run_command([(PcieFunction(BusChip), said.append)], [*map(str, command)])
    return status, faults, said


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("", 0),
        ("sys.exit(7)", 7),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", 128 + signal.SIGKILL),
    ],
)
def test_the_status_is_the_commands(text: str, status: int) -> None:
    assert run(sys.executable, "-c", f"import sys; {text}") == (status, 0, [])


def test_python_finds_the_device() -> None:
    text = (
        "import os, stat; assert os.listdir('/sys/class/apex') == ['apex_0'];"
        "assert stat.S_ISCHR(os.stat('/dev/apex_0').st_mode); assert os.path.exists('/dev/apex_0');"
        "one = os.open('/dev/apex_0', os.O_RDWR); two = os.open('/dev/apex_0', os.O_RDWR);"
        "import mmap; page = mmap.mmap(one, 4096, offset=0x48000);"
        "assert page[0x578:0x580] == (16).to_bytes(8, 'little');"
        "os.close(one); os.close(two)"
    )
    assert run(sys.executable, "-c", text) == (0, 0, [])


SEVERAL = """
import mmap, os, sys
assert sorted(os.listdir('/sys/class/apex')) == ['apex_0', 'apex_1', 'apex_2']
files = [os.open(f'/dev/apex_{number}', os.O_RDWR) for number in range(3)]
assert len({os.fstat(each).st_rdev for each in files}) == 3
pages = [memoryview(mmap.mmap(each, 4096, offset=0x48000)).cast('Q') for each in files]
for number, page in enumerate(pages):
    page[0x590 // 8] = 0x1000 * (number + 1)
assert [page[0x590 // 8] for page in pages] == [0x1000, 0x2000, 0x3000]
os.close(files[1])
assert pages[1][0x590 // 8] == 0xFFFF_FFFF_FFFF_FFFF
assert [pages[0][0x590 // 8], pages[2][0x590 // 8]] == [0x1000, 0x3000]
assert not os.path.exists('/dev/apex_3')
"""


def test_several_devices_have_registers_of_their_own() -> None:
    """Also after one of them is closed."""
    said: list[str] = []
    devices = [(PcieFunction(BusChip), said.append) for _ in range(3)]
    assert run_command(devices, [sys.executable, "-c", SEVERAL]) == (0, 0)
    assert said == []


ERRORS = r"""
import ctypes, errno, fcntl, mmap, os, stat
libc = ctypes.CDLL(None, use_errno=True)
device = os.open("/dev/apex_0", os.O_RDWR)
table = mmap.mmap(-1, 2 * mmap.PAGESIZE)
at = ctypes.addressof(ctypes.c_char.from_buffer(table))
assert libc.mprotect(ctypes.c_void_p(at), mmap.PAGESIZE, mmap.PROT_READ) == 0
libc.ioctl.argtypes = [ctypes.c_int, ctypes.c_ulong, ctypes.c_void_p]
def error(request, argument):
    ctypes.set_errno(0)
    return libc.ioctl(device, request, argument) and ctypes.get_errno()
PARTITION, ENTRIES = 0x4020DC07, 0xC020DC05
assert error(PARTITION, 1) == error(PARTITION, None) == errno.EFAULT
assert error(PARTITION, at + mmap.PAGESIZE) == 0
assert error(ENTRIES, at) == errno.EFAULT
assert error(ENTRIES, at + mmap.PAGESIZE) == 0
assert table[mmap.PAGESIZE + 8 :][:8] == (8192).to_bytes(8, "little")
assert error(0xDC63, None) == error(0x4020DC63, at) == error(0x4400DC07, at) == errno.ENOTTY
for move in (lambda: os.read(device, 8), lambda: os.write(device, bytes(8))):
    try:
        move()
    except OSError as found:
        assert found.errno == errno.EINVAL
    else:
        raise AssertionError
assert stat.S_ISCHR(os.fstat(device).st_mode) and os.fstat(device).st_rdev
assert stat.S_ISREG(os.fstat(os.memfd_create("other")).st_mode)
"""


def test_what_the_device_cannot_do_is_the_kernels_error() -> None:
    assert run(sys.executable, "-c", ERRORS) == (0, 0, [])


def test_a_command_that_is_not_there() -> None:
    with pytest.raises(InputError, match="no/such/command: No such file"):
        run("no/such/command")
    with pytest.raises(InputError, match="the command is empty"):
        run("", "argument")


def test_a_command_that_waits_for_ever_after_a_fault_is_ended(
    client: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "GRACE_SECONDS", 0.3)
    script = Script(tmp_path)
    code = program((9, 1, 0))
    script.lines.append(f"queue {script.map(len(code), 1, code):#x} {len(code)}")
    begin = time.monotonic()
    status, faults, said = run(client, script.write("wait 1"))
    assert (status, faults) == (128 + signal.SIGTERM, 1)
    assert "descriptor tag 9" in said[0]
    assert time.monotonic() - begin < 30


def test_other_machines_are_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    with pytest.raises(Unavailable, match=r"--pcie needs Linux on x86-64.*riscv64"):
        run("true")
