"""Compute how long the executables of a file take on the chip, and the host's share of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from darwinn_formats.darwinn import CompiledModel, Executable, load
from darwinn_formats.errors import FormatError
from darwinn_formats.files import Source, name_of
from darwinn_sim import timing
from darwinn_sim.chips import selected_name
from darwinn_sim.chips.selected import selected
from darwinn_sim.errors import SimulationError
from darwinn_sim.isa import grading
from darwinn_sim.isa.codec import DecodeError
from darwinn_sim.isa.grading import Assumption
from darwinn_sim.machine.completeness import incomplete_note
from darwinn_sim.machine.lowering import lower_executable

from darwinn_testbench.chip.cpu_operators import CpuOperator, cpu_operators, named_operators
from darwinn_testbench.chip.inspection import check_number
from darwinn_testbench.chip.model import executable_of_stream
from darwinn_testbench.errors import InputError
from darwinn_testbench.report import Report, Row, Verdict, judged, significant, verdict_of
from darwinn_testbench.report.result import PYTHON_ONLY
from darwinn_testbench.request.record import takes
from darwinn_testbench.request.timing import NO_HOST, CycleTiming, FileTiming

if TYPE_CHECKING:
    from darwinn_testbench.chip.cpu_time import CpuTime, CpuTimer

HARNESS = "harness"
"""The link of the SystemVerilog harness, and so of the chip that it stands for."""


def link_of(chip: timing.ChipDescription, host: str | None) -> timing.HostLink | None:
    """The link ``host``, by default the one of the chip; None for one of endless speed.

    Raises ``InputError`` for a link that does not belong to the chip, ``FormatError`` for none.
    """
    name = host or chip.host
    if name == NO_HOST:
        return None
    if name not in timing.built_in("hosts") and Path(name).suffix != ".toml":
        known = ", ".join((*timing.built_in("hosts"), NO_HOST))
        raise FormatError("", f"neither a TOML file nor one of {known}", file=name)
    link = timing.host_link(name)
    check_pair(chip, link)
    return link


def check_pair(chip: timing.ChipDescription, link: timing.HostLink) -> None:
    """Raise ``InputError`` if one of the two is the harness, without real time, and one is not."""
    if has_nominal_clock(chip) != (link.name == HARNESS):
        raise InputError(
            f"chip {chip.name} and host link {link.name}: the {HARNESS}'s link belongs to the "
            f"{HARNESS}, whose cycles have no length in seconds"
        )


def harness_name() -> str:
    """The description of the harness with the chip that this process simulates."""
    return selected_name() if has_nominal_clock(selected()) else HARNESS


def has_nominal_clock(chip: timing.ChipDescription) -> bool:
    """Whether the chip is the harness: its clock has no frequency, 1 MHz is a convention."""
    return chip.host == HARNESS


@dataclass(frozen=True, kw_only=True)
class CyclesRow(Row):
    """One run of one executable, approximately as long as on the chip.

    ``cycles`` are those from the request to the last interrupt; ``milliseconds`` holds the host's
    fixed cost and its copies of outputs, too. The time lies within ``least_milliseconds`` and
    ``most_milliseconds`` nine times out of ten, as far as the intervals of the host's parameters
    say; ``host_milliseconds`` of it are the host's, and its link's while the chip waits.
    ``first_milliseconds`` are those of the first inference, which loads the cached parameters
    before (None where nothing is cached, or that is not timed).
    ``fixed_share`` is the share of the fixed cost. ``waiting`` is the tensor units' share of the
    cycles by what they do or wait for. ``lower_bound`` and ``estimate`` follow from the contents of
    the executable, without simulation; ``estimated_cycles`` is the compiler's own estimate (None
    where it left none). What cannot be timed has None for all of them but that. ``assumed`` is what
    the program assumes, also where it fails; ``file`` is whose executable it is. ``timing`` is the
    whole result, None among the rows of several files: it holds the program. ``nominal``: the chip
    is the harness, whose cycles have no length.
    """

    type: str
    file: str = field(default="", metadata=PYTHON_ONLY)
    cycles: int | None = None
    milliseconds: float | None = None
    least_milliseconds: float | None = None
    most_milliseconds: float | None = None
    host_milliseconds: float | None = None
    device_milliseconds: float | None = None
    first_milliseconds: float | None = None
    fixed_share: float | None = None
    lower_bound: float | None = None
    estimate: float | None = None
    estimated_cycles: int | None = None
    utilisation: float | None = None
    waiting: dict[str, float] = field(default_factory=dict)
    timing: timing.Timing | None = field(default=None, repr=False, metadata=PYTHON_ONLY)
    assumed: tuple[Assumption, ...] = field(default=(), repr=False, metadata=PYTHON_ONLY)
    nominal: bool = field(default=False, repr=False, metadata=PYTHON_ONLY)

    drawn = ("cycles",)
    unit = "cycles"

    @property
    def cycles_text(self) -> str:
        """The cycles for people; a dash where there are none."""
        return "-" if self.cycles is None else f"{self.cycles:,}"

    @property
    def milliseconds_text(self) -> str:
        """The milliseconds for people; a nominal clock makes none."""
        if self.milliseconds is None or self.nominal:
            return "-"
        least, most = self.least_milliseconds, self.most_milliseconds
        if least is None or most is None or least == most:
            return f"{self.milliseconds:.3f}"
        return f"{significant(self.milliseconds)} ({significant(least)} to {significant(most)})"

    @property
    def host_share(self) -> float | None:
        """Share of the host and its link in the time; None where there is none."""
        if self.host_milliseconds is None or not self.milliseconds:
            return None
        return self.host_milliseconds / self.milliseconds

    @property
    def cells(self) -> dict[str, str]:
        """Type, cycles and milliseconds; of what cannot be timed the type alone."""
        return {
            "type": self.type,
            "cycles": self.cycles_text,
            "ms": self.milliseconds_text,
        }


def time_file(asked: FileTiming) -> Report[CyclesRow]:
    """Time each executable of a file by itself.

    An executable that refuses or fails gives a row that says so.

    Raises:
        FormatError, OSError: a file is not valid or cannot be read.
        InputError: no such executable, or a bare stream whose transfers cannot be told.
    """
    chip_description = timing.chip_description(asked.chip)
    return _time_file(asked, _Timer(chip_description, link_of(chip_description, asked.host)))


def _time_file(asked: FileTiming, timer: _Timer) -> Report[CyclesRow]:
    """As :func:`time_file`, on a chip and a link that several files may share."""
    source, executable, assumptions = asked.source, asked.executable, asked.assumptions
    file = load(source)
    executables = file.executables if file.stream is None else (executable_of_stream(file),)
    check_number("executable", executable, len(executables), file.file)
    on_cpu = cpu_operators(file)
    rows: list[CyclesRow] = []
    for number, each in enumerate(executables):
        if executable in (None, number):
            asked.progress("timing", len(rows), None)
            name = f"executable {number}"
            row = timer.time(each, assumptions)
            rows.append(replace(row, name=name, file=file.file))
    if executable is None and file.stream is None:
        rows = _with_first(rows, executables, file.models)
    cpu: tuple[CpuTime, ...] = ()
    if on_cpu and not asked.chip_only:
        asked.progress("measuring the operators on the CPU", len(rows), None)
        cpu = (timer.on_cpu.time(source, file),)
    return Report(
        command="cycles",
        file=file.file,
        rows=tuple(rows),
        figures=_figures(timer.chip, timer.host, cpu, (row.assumed for row in rows)),
        message="; ".join(
            [
                *(row.message for row in rows if row.verdict is Verdict.PASS and row.message),
                _summary(timer.chip, timer.host),
                *([_covered(on_cpu, cpu)] if on_cpu else []),
            ]
        ),
    )


_NO_MATTER = frozenset({"file_offset", "parameters", "parameter_caching_token", "name"})
"""Members of an executable, or of its parts, that no time depends on; of parameters their number
counts."""


class _Timer:
    """Times executables on one chip and link; a program that comes again is timed once.

    Unless it ``keeps`` them, the rows have no :class:`timing.Timing`: those of hundreds of files
    take gigabytes.
    """

    def __init__(
        self, chip: timing.ChipDescription, host: timing.HostLink | None, *, keeps: bool = True
    ) -> None:
        self.chip, self.host, self._keeps = chip, host, keeps
        self._known: dict[tuple[object, ...], CyclesRow] = {}

    @cached_property
    def on_cpu(self) -> CpuTimer:
        """Measures operators on the CPU."""
        # Imported here: no other call should wait for what runs whole models.
        from darwinn_testbench.chip.cpu_time import CpuTimer

        return CpuTimer()

    def time(self, executable: Executable, assumptions: bool) -> CyclesRow:
        """The row of an executable, without a name; raises as :func:`time_executable`."""
        key = (assumptions, len(executable.parameters), _program_of(executable))
        row = self._known.get(key)
        if row is None:
            row = time_executable(executable, "", self.chip, self.host, assumptions)
            row = self._known[key] = row if self._keeps else replace(row, timing=None)
        return row


def _program_of(part: object) -> object:
    """All that the time of an executable, or a part of it, depends on."""
    if isinstance(part, tuple):
        return tuple(map(_program_of, part))
    if not is_dataclass(part):
        return bytes(part) if isinstance(part, memoryview) else part
    names = (each.name for each in fields(part) if each.name not in _NO_MATTER)
    return (type(part), *(_program_of(getattr(part, name)) for name in names))


def _with_first(
    rows: Sequence[CyclesRow], executables: Sequence[Executable], models: Sequence[CompiledModel]
) -> list[CyclesRow]:
    """Add the time of the first inference to those that need cached parameters.

    The driver loads them in the same request, so the host's fixed cost counts once.
    """
    row_of = {id(each): row for each, row in zip(executables, rows, strict=True)}
    first: dict[int, float] = {}
    for model in models:
        if model.caching is None:
            continue
        loading = row_of[id(model.caching)].device_milliseconds
        later = row_of[id(model.inference)].milliseconds
        if loading is not None and later is not None:
            first[id(model.inference)] = loading + later
    return [
        replace(row, first_milliseconds=first.get(id(each)))
        for each, row in zip(executables, rows, strict=True)
    ]


measure = takes(FileTiming, "measure")(time_file)


def _covered(operators: Sequence[CpuOperator], measured: Sequence[CpuTime]) -> str:
    """What of a whole model the times in the rows are of, where the chip does not run all of it."""
    names = named_operators(operators)
    if not measured or measured[0].milliseconds is None:
        return f"chip and host link alone, without the operators on the CPU: {names}"
    return f"rows: chip and host link; on this machine's CPU {measured[0].milliseconds_text} more"


def measure_files(
    sources: Sequence[Source],
    opened: Callable[[Source], Source] = lambda source: source,
    timed: CycleTiming | None = None,
) -> Report[CyclesRow]:
    """``measure`` of several files as one report; its rows then have the names of their files.

    Of several files one that cannot be timed is a row, and the others are timed.

    Args:
        sources: the files.
        opened: what to look at for a source; it may raise what ``measure`` raises.
        timed: how they are timed.
    """
    asked = timed or CycleTiming()

    description = timing.chip_description(asked.chip)
    link = link_of(description, asked.host)
    timer = _Timer(description, link, keeps=len(sources) == 1)

    def of_one(source: Source) -> Report[CyclesRow]:
        return _time_file(asked.part(FileTiming, source=opened(source)), timer)

    if len(sources) == 1:
        return of_one(sources[0])
    reports: list[Report[CyclesRow]] = []
    for source in sources:
        try:
            reports.append(of_one(source))
        except (FormatError, OSError, InputError, SimulationError) as error:
            reports.append(unmeasured(source, error))
    cpu = tuple(each for report in reports for each in report.figures.get("cpu", ()))
    return Report(
        command="cycles",
        file=f"{len(reports)} files",
        figures=_figures(description, link, cpu, (each.assumptions for each in reports)),
        rows=tuple(
            replace(row, name=": ".join(filter(None, (Path(report.file).name, row.name))))
            for report in reports
            for row in report.rows
        ),
        message=_summary(description, link),
    )


def unmeasured(source: Source, error: Exception) -> Report[CyclesRow]:
    """The report of a file that cannot be timed: a row without a time."""
    verdict, text = judged(error)
    file = name_of(source)
    message = text.removeprefix(f"{file}: ")
    row = CyclesRow(name="", verdict=verdict, message=message, type="", file=file)
    return Report(command="cycles", file=file, rows=(row,))


def _figures(
    chip: timing.ChipDescription,
    host: timing.HostLink | None,
    cpu: tuple[CpuTime, ...],
    assumed: Iterable[tuple[Assumption, ...]],
) -> dict[str, Any]:
    return {
        "cycle_accuracy": "approximate",
        "chip": chip.name,
        "clock_hz": (host.clocked(chip) if host else chip).clock.value,
        "host": host.name if host else NO_HOST,
        "fixed_milliseconds": 1e3 * host.fixed_seconds.value if host else 0.0,
        "assumptions": grading.merged(assumed),
        **({"cpu": cpu} if cpu else {}),
    }


def _summary(chip: timing.ChipDescription, host: timing.HostLink | None) -> str:
    link = f"host link {host.name}" if host else "a host link of endless speed"
    clocked = host.clocked(chip) if host else chip
    return (
        f"cycle-approximate, {chip.name} at {rate_of(clocked)}, {link}; "
        "darwinn docs timing says how far to trust it"
    )


def rate_of(chip: timing.ChipDescription) -> str:
    """The clock in words, which say so if it is none."""
    nominal = "nominal " if has_nominal_clock(chip) else ""
    return f"{nominal}{chip.clock.value / 1e6:g} MHz"


def time_executable(
    executable: Executable,
    name: str,
    chip: timing.ChipDescription,
    host: timing.HostLink | None,
    assumptions: bool = True,
) -> CyclesRow:
    """The row of one executable; raises ``FormatError`` if it cannot be linked."""
    facts: dict[str, Any] = {
        "name": name,
        "type": executable.type.name,
        "estimated_cycles": executable.estimated_cycles_64bit or None,
    }
    try:
        program = lower_executable(executable, assumptions=assumptions, addresses=False)
        facts["assumed"] = program.assumptions
        result = timing.simulate(executable, chip, host, assumptions=assumptions, program=program)
        bound = timing.static_bound(program, program.sizes, chip, host)
    except (SimulationError, DecodeError) as error:
        verdict = verdict_of(error) or Verdict.FAULT
        return CyclesRow(verdict=verdict, message=str(error), **facts)
    spent = result.waiting()
    total = sum(spent.values())
    least, most = timing.interval(result)
    return CyclesRow(
        verdict=Verdict.PASS,
        message=incomplete_note(program.chunks),
        cycles=result.cycles,
        milliseconds=1e3 * result.seconds,
        least_milliseconds=1e3 * least,
        most_milliseconds=1e3 * most,
        host_milliseconds=1e3 * timing.shares(result).host,
        device_milliseconds=1e3 * result.device_seconds,
        fixed_share=result.fixed_share,
        lower_bound=bound.lower,
        estimate=bound.estimate,
        utilisation=result.utilisation,
        waiting={cause.label: cycles / total for cause, cycles in spent.items() if cycles},
        timing=result,
        nominal=has_nominal_clock(chip),
        **facts,
    )
