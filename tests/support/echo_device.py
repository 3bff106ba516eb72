"""An echo chip with a command that uses it, in a process of its own.

python echo_device.py SCRIPT [ARGUMENT...]
"""

from __future__ import annotations

import sys

from darwinn_sim.device.worker import Worker
from darwinn_sim.usb.descriptors import Mode
from darwinn_sim.usb.function import UsbFunction
from darwinn_testbench.device.usb.wrapped import run_command
from echo_chip import echo

if __name__ == "__main__":
    function = UsbFunction(echo, mode=Mode.APPLICATION)
    with Worker(function):
        sys.exit(run_command([function], [sys.executable, *sys.argv[1:]]))
