"""A simulated chip as a USB device, with a thread that computes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from darwinn_formats.limits import limits
from darwinn_sim.accelerator import compile_kernels
from darwinn_sim.device.chip import behind_usb
from darwinn_sim.device.pace import Pace
from darwinn_sim.device.worker import Worker
from darwinn_sim.host.register_space import silent
from darwinn_sim.usb.descriptors import Mode, Speed
from darwinn_sim.usb.function import UsbFunction, Watcher


def new_function(
    *,
    speed: Speed = Speed.SUPER,
    boot: bool = True,
    watchers: tuple[Watcher, ...] = (),
    log: Callable[[str], None] = silent,
    pace: Pace | None = None,
) -> UsbFunction:
    """The device after power-up, without anything that computes yet.

    Args:
        speed: of the cable.
        boot: it waits for firmware; otherwise it begins as if it had some.
        watchers: see what passes on the cable.
        log: told what is unusual about register accesses.
        pace: when outputs and interrupts leave.
    """
    pace = pace or Pace()
    mode = Mode.BOOT if boot else Mode.APPLICATION
    make_chip = partial(behind_usb, allowed=limits(), log=log, pace=pace)
    function = UsbFunction(make_chip, speed=speed, mode=mode, watchers=watchers)
    function.patience = pace.left
    return function


@contextmanager
def attached(
    *,
    speed: Speed = Speed.SUPER,
    boot: bool = True,
    watchers: tuple[Watcher, ...] = (),
    log: Callable[[str], None] = silent,
    pace: Pace | None = None,
) -> Iterator[UsbFunction]:
    """The device, computing; kernels are compiled before it is there, since clients do not wait.

    Arguments are those of :func:`new_function`.
    """
    compile_kernels()
    function = new_function(speed=speed, boot=boot, watchers=watchers, log=log, pace=pace)
    with Worker(function):
        yield function
