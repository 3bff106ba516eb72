"""Cocotb's way to start a simulation of Verilator, within the bound of every program."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from typing import IO

from cocotb_tools.runner import Verilator

from darwinn_rtl import bounded


class Simulator(Verilator):
    """Raises :class:`bounded.Unended` where a simulation does not end."""

    def _execute_cmds(
        self, cmds: Sequence[Sequence[str]], cwd: object, stdout: IO[str] | None = None
    ) -> None:
        for command in cmds:
            done = bounded.run(
                command, cwd=cwd, env=self.env, stdout=stdout, stderr=subprocess.STDOUT
            )
            if done.returncode:
                raise RuntimeError(f"the simulation ended with code {done.returncode}")
