"""The builds of the chip's kernels: what is compiled for which kind of run.

numba compiles the kernels once for each pair of types: of the core, and of what sees the run. The
hooks (``kernel.hooks``) choose by these types what the units call. Each build takes half a minute
to two minutes of processor time, once for a user, so that kinds of runs share one where what tells
them apart costs little: taps, stop points, strict mode and runs for any input are fields that the
kernels read.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

from darwinn_sim.kernel import numbering, order, state
from darwinn_sim.kernel.structure import Records
from darwinn_sim.units.observation import Seen, new_notebook, new_observation


class _Types(NamedTuple):
    core: Callable[[], Records[state.Core]]
    seen: Callable[[], Seen]


class Build(Enum):
    """A build, with what makes a core and what sees nothing of a run."""

    PLAIN = _Types(state.new_core, new_observation)
    """Runs on data."""
    NOTES = _Types(state.new_core, new_notebook)
    """Runs on identities (``lifting``) and on marks (``analysis``): nothing is computed."""
    HAZARDS = _Types(order.new_core, new_observation)
    """Runs on data, with clocks that order all accesses."""
    NUMBERS = _Types(numbering.new_core, new_observation)
    """Runs on value numbers (``numbering``)."""

    @classmethod
    def of(cls, *, hazards: bool, numbered: bool) -> Build:
        """That of a chip on which runs are on data, or on numbers."""
        if numbered:
            return cls.NUMBERS
        return cls.HAZARDS if hazards else cls.PLAIN

    def new_core(self) -> Records[state.Core]:
        """The scalar core after power-up: an array of one."""
        return self.value.core()

    def new_seen(self) -> Seen:
        """What sees a run, and watches for nothing."""
        return self.value.seen()
