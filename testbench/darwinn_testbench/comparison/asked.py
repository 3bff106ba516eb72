"""What a verification is asked to do."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from darwinn_formats.files import Source
from darwinn_formats.signatures import is_executorch

from darwinn_testbench.chip.inputs import Inputs
from darwinn_testbench.engine import Engine
from darwinn_testbench.policy import Policy
from darwinn_testbench.programs.formats import format_of
from darwinn_testbench.programs.handler import PLAIN_HOST, HostOptions, Natives, head_of
from darwinn_testbench.reference.protocol import Reference
from darwinn_testbench.report import Verdict


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What :func:`darwinn_testbench.comparison.verify.verify` was asked; see there."""

    source: Source
    reference: Source | Reference | None
    inputs: Inputs
    expected: str | os.PathLike[str] | None
    function: str | None
    maps: Sequence[str]
    model: int
    companions: Sequence[Source]
    data: Sequence[Source]
    natives: Natives | None
    host: HostOptions
    engine: Engine
    waves: Path | None
    stall_seed: int | None
    policy: Policy | None
    seed: int
    runs: int | None
    inputs_kind: Sequence[str]
    schedules: int
    schedule_seed: int | None
    anyway: bool
    proof: bool
    require_proof: bool
    parameters: bool
    chip_only: bool
    hazards: bool | None
    strict: bool
    layers: bool
    localise: bool
    require_reference: bool
    assumptions: bool

    @property
    def uncompared(self) -> Verdict:
        """The verdict of what is compared with nothing."""
        return Verdict.NOT_COMPARED if self.require_reference else Verdict.RAN

    def host_of(self, side: Source | Reference | None) -> HostOptions:
        """What is said of the host, for one of the sides: nothing where it has none."""
        if not isinstance(side, bytes | str | os.PathLike):
            return PLAIN_HOST
        found = format_of(side)
        return self.host if found is not None and found.handler.has_host else PLAIN_HOST

    def data_of(self, side: Source | Reference | None) -> Sequence[Source]:
        """The external data for one of the sides: none where it is no ExecuTorch program."""
        if isinstance(side, bytes | str | os.PathLike) and is_executorch(head_of(side)):
            return self.data
        return ()
