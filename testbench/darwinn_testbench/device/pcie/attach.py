"""A simulated chip on a PCIe bus."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from darwinn_formats.limits import limits
from darwinn_sim.accelerator import compile_kernels
from darwinn_sim.device.chip import behind_pcie
from darwinn_sim.device.pace import Pace
from darwinn_sim.host.register_space import silent
from darwinn_sim.pcie.function import PcieFunction, Watcher


def new_function(
    watchers: tuple[Watcher, ...] = (),
    log: Callable[[str], None] = silent,
    pace: Pace | None = None,
) -> PcieFunction:
    """The device after power-up, without anything that computes yet; its kernels are compiled.

    Args:
        watchers: see what passes on the bus.
        log: told what is unusual about register accesses.
        pace: when interrupts leave.
    """
    pace = pace or Pace()
    # Programs do not wait as long as that takes.
    compile_kernels()
    make_chip = partial(behind_pcie, allowed=limits(), log=log, pace=pace)
    function = PcieFunction(make_chip, watchers=watchers)
    function.patience = pace.left
    return function
