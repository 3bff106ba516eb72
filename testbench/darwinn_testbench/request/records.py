"""The requests: what can be asked of a compiled model or a program, one record for each question.

Records of a domain hold what several questions have in common: how inputs are drawn, how the chip
runs, what executes a program of another format, how outputs are judged.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from typing import Final

from darwinn_formats.files import Source

from darwinn_testbench.engine import Engine
from darwinn_testbench.request import settings
from darwinn_testbench.request.inputs import Keep, split_data
from darwinn_testbench.request.record import Entry, Request
from darwinn_testbench.request.scope import Scope


@dataclass(frozen=True)
class HostOptions:
    """What the command line of TFRT's executor says besides the file.

    Attributes:
        work_queue: as there: ``s``, or ``mstd`` with threads and blocking threads (``mstd:8,64``).
        init_function: runs before any other.
        error_codes: errors show their code.
    """

    work_queue: settings.WorkQueue = None
    init_function: settings.InitFunction = None
    error_codes: settings.ErrorCodes = False

    def __bool__(self) -> bool:
        """Whether anything is said."""
        return self != PLAIN_HOST


PLAIN_HOST: Final = HostOptions()
"""A host of which nothing is said."""


@dataclass(frozen=True, kw_only=True)
class Seeded(Request):
    """What is drawn, and what memory holds that nothing has written, follows from a seed."""

    seed: settings.Seed = 0


@dataclass(frozen=True, kw_only=True)
class Drawn(Seeded):
    """How inputs are drawn where none are given."""

    runs: settings.Runs = None
    inputs_kind: settings.InputsKind = ()


@dataclass(frozen=True, kw_only=True)
class OfFiles(Request):
    """Which model of a file, and the files beside it: ``others`` were compiled together with it,
    ``external`` is data of a program (.ptd, .irpa)."""

    model: settings.Model = 0
    companions: settings.FurtherFiles = ()

    @cached_property
    def _sorted(self) -> tuple[list[Source], list[Source]]:
        return split_data(self.companions)

    @property
    def external(self) -> Sequence[Source]:
        """Data of programs of other formats."""
        return self._sorted[0]

    @property
    def others(self) -> Sequence[Source]:
        """Files that were compiled together with the model."""
        return self._sorted[1]

    def _names(self, entry: Entry, scope: Scope) -> Iterable[str]:
        if entry.name != "companions":
            return super()._names(entry, scope)
        found = {Scope.CHIP: ("--with", self.others), Scope.PROGRAM: ("--data", self.external)}
        option, files = found.get(scope, ("", ()))
        return [option] if files else []


@dataclass(frozen=True, kw_only=True)
class OnChip(OfFiles):
    """How the chip runs a compiled model."""

    schedules: settings.Schedules = 0
    schedule_seed: settings.ScheduleSeed = None
    chip_only: settings.ChipOnly = False
    hazards: settings.Hazards = None
    strict: settings.Strict = False
    assumptions: settings.Assumptions = True


@dataclass(frozen=True, kw_only=True)
class OfProgram(Request):
    """Which function of a program of another format is called, and what it needs."""

    function: settings.Function = None
    natives: settings.Natives = None


@dataclass(frozen=True, kw_only=True)
class OnHost(Request):
    """What is said of the host of a BEF file."""

    host: HostOptions = PLAIN_HOST


@dataclass(frozen=True, kw_only=True)
class Judged(Request):
    """How outputs are judged, and what is looked at besides."""

    expected: settings.Expected = None
    maps: settings.Maps = ()
    policy: settings.Policy = None
    anyway: settings.Anyway = False
    proof: settings.Proof = True
    require_proof: settings.RequireProof = False
    require_reference: settings.RequireReference = False
    parameters: settings.Parameters = False
    layers: settings.Layers = False
    localise: settings.Localise = False


@dataclass(frozen=True, kw_only=True)
class Executed(Request):
    """What executes it in the place of the project's own, and what of that can be chosen."""

    engine: settings.VerifyEngine = Engine.MODEL
    waves: settings.Waves = None
    stall_seed: settings.StallSeed = None


@dataclass(frozen=True)
class Verification(OnHost, OfProgram, Executed, OnChip, Judged, Drawn):
    """Is every output of ``source`` right?"""

    source: Source
    reference: settings.Reference = None
    inputs: settings.Inputs = None


@dataclass(frozen=True)
class LayerView(OfFiles, Seeded):
    """Which layers a compiled model has. ``chip_only`` leaves out the operators beside the chip's
    (``CpuOperator``, in the figures under ``cpu_operators``)."""

    source: Source
    _: KW_ONLY
    chip_only: settings.ChipOnly = False
    assumptions: settings.Assumptions = True


@dataclass(frozen=True)
class Naming(OfFiles, Seeded):
    """Which operators of a network the layers compute."""

    source: Source
    reference: settings.Names = None
    _: KW_ONLY
    maps: settings.NetworkMaps = ()
    assumptions: settings.Assumptions = True


@dataclass(frozen=True)
class Call(OfProgram, Seeded):
    """One call of a function of a program, on inputs that are given or drawn."""

    source: Source
    inputs: settings.ProgramInputs = None
    _: KW_ONLY
    data: Sequence[Source] = ()


@dataclass(frozen=True)
class Calls(Call):
    """Calls whose operators are timed."""

    calls: settings.Calls = field(default=None, kw_only=True)


@dataclass(frozen=True)
class ProgramRun(OnHost, OfProgram, Drawn):
    """A run of a program of another format. ``taps`` are names of values, or of operations;
    ``keep`` takes the values as they come."""

    source: Source
    inputs: settings.Inputs = None
    _: KW_ONLY
    engine: settings.RunEngine = Engine.MODEL
    data: Sequence[Source] = ()
    taps: settings.Taps = ()
    keep: Keep | None = None


@dataclass(frozen=True)
class Layers(Call, Naming, LayerView):
    """The layers of a compiled model, or the operators of a program."""


@dataclass(frozen=True)
class Run(OnHost, OfProgram, OnChip, Drawn):
    """A run of a compiled model, or of a program of another format."""

    source: Source
    inputs: settings.Inputs = None
    _: KW_ONLY
    engine: settings.RunEngine = Engine.MODEL
    until: settings.Until = None
    taps: settings.Taps = ()
    preloads: settings.Preloads = ()
    then: settings.Then = ()
