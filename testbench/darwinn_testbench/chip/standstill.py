"""Find out whether a program stands still because of the order in which its host serves it.

The host sends what it was asked for in that order, and a chunk of instructions behind all that was
asked for before (docs/order.md, "Deadlocks"). A transfer without room on the chip holds back all
behind it. The event model has such a host, and buffers of the sizes in the chip's record.
"""

from __future__ import annotations

from darwinn_formats.darwinn import Executable
from darwinn_sim import timing
from darwinn_sim.errors import Deadlock
from darwinn_sim.machine.lowering import lower_executable

from darwinn_testbench.chip.pipeline import Pipeline
from darwinn_testbench.chip.session import Session
from darwinn_testbench.report import one_line

_HOSTS = ("usb3", "pcie")
"""One that sends before it is asked, and one that does not. Other rates change no order."""


def standstill(pipeline: Pipeline) -> str:
    """The host with which a program of ``pipeline`` waits for ever, and where; empty if none does.

    Raises:
        SimulationError, FormatError, DecodeError: the event model cannot say it.
    """
    executables: dict[int, tuple[Session, Executable]] = {}
    for session in pipeline.sessions:
        compiled = session.model.compiled
        for each in (compiled.caching, compiled.inference):
            if each is not None:
                executables[id(each)] = session, each
    several = len({session.file for session, _ in executables.values()}) > 1
    for session, executable in executables.values():
        found = _standstill(executable, assumptions=session.accelerator.assumptions)
        if found:
            return f"{session.file}: {found}" if several else found
    return ""


def _standstill(executable: Executable, *, assumptions: bool) -> str:
    program = lower_executable(executable, assumptions=assumptions, addresses=False)
    for host in _HOSTS:
        link = timing.host_link(host)
        try:
            timing.simulate(executable, host=link, assumptions=assumptions, program=program)
        except Deadlock as error:
            return f"with host link {host}: {one_line(error)}"
    return ""
