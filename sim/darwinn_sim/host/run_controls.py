"""Run controls: the host lets units run and halts them, and sees in what state they are."""

from __future__ import annotations

from functools import partial

from darwinn_sim.host.register_file import RegisterFile
from darwinn_sim.host.registers import RUN_CONTROLS, RegisterFault

RUN, HALT = 1, 2
"""Commands of the host."""

_STATE_OF_COMMAND = {0: 0, RUN: 1, HALT: 4}
"""Run status that a unit without work reaches at each command."""


def install_run_controls(registers: RegisterFile) -> None:
    """Let the run status of units follow their run controls."""
    for unit, run in RUN_CONTROLS.items():
        registers.on_write(
            f"{unit}_run_control",
            partial(_run_control, registers, unit, run.control, run.status is not None),
        )


def _run_control(
    registers: RegisterFile, unit: str, offset: int, has_status: bool, command: int
) -> None:
    if command not in _STATE_OF_COMMAND:
        raise RegisterFault(offset, f"run control command {command} of {unit} is not modelled")
    if has_status:
        registers.set(f"{unit}_run_status", _STATE_OF_COMMAND[command])


def scalar_core_runs(registers: RegisterFile) -> bool:
    """Whether the host lets the scalar core run."""
    return registers.get("scalar_core_run_control") == RUN
