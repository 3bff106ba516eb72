"""Settings of what times executables: the chip and the host link."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Annotated

from darwinn_formats.files import Source
from darwinn_sim.chips import selected_name
from darwinn_sim.timing.description import built_in

from darwinn_testbench.engine import Engine
from darwinn_testbench.report.shell import as_file
from darwinn_testbench.request import settings
from darwinn_testbench.request.record import Request, words_of
from darwinn_testbench.request.records import Calls, Drawn, OfFiles, OfProgram
from darwinn_testbench.request.scope import Scope
from darwinn_testbench.request.setting import Setting, Use

DEFAULT_CHIP = selected_name()
"""The chip that this process simulates."""
NO_HOST = "none"
"""Stands for a host link of endless speed without a fixed cost."""

Chip = Annotated[
    str,
    Setting(
        "--chip NAME",
        f"Chip description: {', '.join(built_in('chips'))}, or a TOML file (`darwinn docs "
        "timing`).",
        scope=Scope.CHIP,
        use=Use.FILE,
        offers=tuple(built_in("chips")),
        suffix=".toml",
        project=True,
    ),
]
Host = Annotated[
    str | None,
    Setting(
        "--host NAME",
        f"Host link: {', '.join(built_in('hosts'))}, a TOML file, or {NO_HOST} for an "
        "infinitely fast one; by default that of the chip description.",
        scope=Scope.CHIP,
        use=Use.FILE,
        offers=(*built_in("hosts"), NO_HOST),
        suffix=".toml",
        project=True,
    ),
]


Operations = Annotated[
    bool,
    Setting(
        "--operations/--no-operations",
        "Whether to say what each layer computes, which takes a functional run.",
        scope=Scope.CHIP,
    ),
]


@dataclass(frozen=True, kw_only=True)
class Timed(Request):
    """The chip and the host link whose times are told."""

    chip_name: Chip = DEFAULT_CHIP
    host_name: Host = None


@dataclass(frozen=True, kw_only=True)
class CycleTiming(Request):
    """How executables are timed, one by one.

    ``chip_only`` False also runs the operators that are left to the CPU, and measures them on this
    machine (``cpu_time.CpuTime``, in the figures under ``cpu``).
    """

    chip: Chip = DEFAULT_CHIP
    host: Host = None
    executable: settings.Executable = None
    chip_only: settings.ChipOnly = False
    assumptions: settings.Assumptions = True


@dataclass(frozen=True)
class FileTiming(CycleTiming):
    """The same, of one file."""

    source: Source
    chip_only: settings.ChipOnly = field(default=True, kw_only=True)


@dataclass(frozen=True)
class Profiling(OfFiles, Timed):
    """Where the cycles of an inference go. ``operations`` recovers what each layer computes and how
    many bytes it needs, which takes a functional run; a ``reference`` takes an inference."""

    source: Source
    _: KW_ONLY
    reference: settings.Names = None
    maps: settings.NetworkMaps = ()
    operations: Operations = True
    assumptions: settings.Assumptions = True


@dataclass(frozen=True)
class Profile(Calls, Profiling):
    """Where the time goes of a compiled model, or of a program of another format."""

    seed: settings.ProgramSeed = field(default=0, kw_only=True)
    engine: settings.RunEngine = field(default=Engine.MODEL, kw_only=True)


@dataclass(frozen=True)
class ChipPage(Timed, OfFiles, Drawn):
    """The page of a compiled model: its verdict, times, memory, DMA and outputs."""

    source: Source
    reference: settings.Reference = None
    _: KW_ONLY
    maps: settings.Maps = ()
    chip_only: settings.ChipOnly = False
    strict: settings.StrictPage = True
    assumptions: settings.Assumptions = True
    require_reference: settings.RequireReference = False


@dataclass(frozen=True)
class ProgramPage(OfProgram, Drawn):
    """The page of a program of another format: its verdict, and its operators with their times."""

    source: Source
    reference: settings.Reference = None
    inputs: settings.ProgramInputs = None
    _: KW_ONLY
    maps: settings.Maps = ()
    require_reference: settings.RequireReference = False
    data: Sequence[Source] = ()


@dataclass(frozen=True)
class Page(ProgramPage, ChipPage):
    """The page of either."""


@dataclass(frozen=True, kw_only=True)
class _Advised(OfFiles, Timed):
    """What a command that is advised takes over."""


def advised(command: str, file: str, request: Request, **more: object) -> str:
    """``darwinn COMMAND FILE``, for a shell, with the chip, link and model of a request."""
    plain = vars(request.part(_Advised, **more))
    return shlex.join(["darwinn", command, as_file(file), *words_of(_Advised, plain)])
