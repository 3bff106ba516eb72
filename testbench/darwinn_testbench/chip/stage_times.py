"""Times of several models that work together: stages of a pipeline, or turns on one chip."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from darwinn_formats.darwinn import load
from darwinn_formats.darwinn.schema import ExecutableType
from darwinn_formats.errors import FormatError
from darwinn_formats.files import Source, name_of, read_once
from darwinn_sim.errors import SimulationError
from darwinn_sim.host.dma_trace import TransferKind
from darwinn_sim.isa import grading

from darwinn_testbench.chip.cycles import CyclesRow, time_file, unmeasured
from darwinn_testbench.errors import InputError
from darwinn_testbench.report import Report, Row, Verdict, counted, significant
from darwinn_testbench.report.verdict import worst
from darwinn_testbench.request.timing import CycleTiming, FileTiming

_SEGMENT = re.compile(r"segment_(\d+)_of_(\d+)")
"""How the compiler names the files of segments."""

_Timing = TypeVar("_Timing", bound=Row)


@dataclass(frozen=True, kw_only=True)
class StageRow(Row):
    """A model of a pipeline, which has a chip of its own.

    ``milliseconds`` are those of an inference of this stage, host and link included, within
    ``least_milliseconds`` and ``most_milliseconds`` nine times out of ten; ``busy`` is its share of
    the time of the slowest stage. ``loading_milliseconds`` load its cached parameters, once before.
    ``input_bytes`` and ``output_bytes`` cross its link at each inference, and
    ``parameter_bytes`` of parameters that are not cached.
    """

    stage: int
    milliseconds: float | None = None
    least_milliseconds: float | None = None
    most_milliseconds: float | None = None
    busy: float | None = None
    loading_milliseconds: float | None = None
    input_bytes: int | None = None
    output_bytes: int | None = None
    parameter_bytes: int | None = None

    drawn = ("milliseconds",)
    unit = "milliseconds"


@dataclass(frozen=True, kw_only=True)
class TurnRow(Row):
    """A model that takes its turn on a chip that several models share.

    ``milliseconds`` are those of its inference; ``swap_milliseconds`` before it load its cached
    parameters again, which a model since its last turn has displaced (0: they stay), and
    ``swap_bytes`` are their bytes. Models of one ``token`` keep their parameters beside each other;
    one without parameters to cache has none, and displaces those of all.
    """

    milliseconds: float | None = None
    swap_milliseconds: float | None = None
    swap_bytes: int | None = None
    token: str = ""

    drawn = ("milliseconds", "swap_milliseconds")
    unit = "milliseconds"


@dataclass(frozen=True)
class PipelineTimes:
    """A pipeline whose stages each have a chip, in time.

    ``latency_milliseconds`` are those of one inference alone: the sum of the stages.
    ``filled_milliseconds`` are those of one while the pipeline is full: each stage holds one
    inference and hands it on when the next stage is free. ``throughput`` counts inferences a
    second of a full pipeline; ``bottleneck`` is the stage (from 0) that bounds it, and
    ``interval_milliseconds`` its time. ``even_throughput`` would be that of stages of equal times.
    """

    latency_milliseconds: float
    filled_milliseconds: float
    interval_milliseconds: float
    throughput: float
    even_throughput: float
    bottleneck: int
    bottleneck_file: str

    @classmethod
    def of(cls, times: Sequence[float], files: Sequence[str]) -> PipelineTimes:
        """From the times of its stages in milliseconds, and their names."""
        slowest = max(times)
        # Stages before it wait for it with what they have done; those behind it wait for work.
        bound = times.index(slowest)
        return cls(
            latency_milliseconds=sum(times),
            filled_milliseconds=(bound + 1) * slowest + sum(times[bound + 1 :]),
            interval_milliseconds=slowest,
            throughput=1e3 / slowest,
            even_throughput=1e3 * len(times) / sum(times),
            bottleneck=bound,
            bottleneck_file=files[bound],
        )


@dataclass(frozen=True)
class TurnTimes:
    """Models that take turns on one chip: times of a round in which each infers once.

    ``swap_milliseconds`` of ``round_milliseconds`` load parameters; ``rounds_per_second``.
    """

    round_milliseconds: float
    swap_milliseconds: float
    rounds_per_second: float


@dataclass(frozen=True)
class _Timed:
    """A file: the times of its executables, and what it may be cached together with."""

    file: str
    report: Report[CyclesRow]
    token: int
    """0: its inferences cache nothing."""

    @property
    def inferences(self) -> tuple[CyclesRow, ...]:
        return tuple(row for row in self.report.rows if not _is_loading(row))

    @property
    def loadings(self) -> tuple[CyclesRow, ...]:
        return tuple(row for row in self.report.rows if _is_loading(row))

    @property
    def failure(self) -> tuple[Verdict, str] | None:
        """Why it has no time."""
        failed = [row for row in self.report.rows if row.timing is None]
        if not failed:
            return None
        return worst([row.verdict for row in failed]), failed[0].message

    def moved(self, *kinds: TransferKind) -> int:
        """Bytes that inferences move over the link."""
        return sum(
            each.size
            for row in self.inferences
            if row.timing is not None
            for each in row.timing.transfers
            if each.kind in kinds
        )


def _is_loading(row: CyclesRow) -> bool:
    return row.type == ExecutableType.PARAMETER_CACHING.name


def stage_order(files: Sequence[str]) -> list[str]:
    """Files in the order of a pipeline: by the numbers that the compiler gives to segments.

    Files with other names stay in the order in which they were given.

    Raises:
        InputError: numbers say that a segment is missing, or there are segments of several cuts.
    """
    found = [_SEGMENT.search(Path(file).name) for file in files]
    numbers = [(int(each[1]), int(each[2])) for each in found if each]
    if len(numbers) != len(files):
        return list(files)
    counts = sorted({count for _, count in numbers})
    if len(counts) > 1:
        cuts = " and ".join(map(str, counts))
        raise InputError(f"segments of several cuts, into {cuts} segments: name those of one")
    missing = sorted(set(range(counts[0])) - {number for number, _ in numbers})
    if missing or len(numbers) != counts[0]:
        what = f"segment {missing[0]} of {counts[0]} is missing" if missing else "a segment twice"
        raise InputError(f"{counted(len(files), 'file')} of a pipeline: {what}")
    by_number = sorted(zip(numbers, files, strict=True), key=lambda each: each[0])
    return [file for _, file in by_number]


Opened = Callable[[Source], Source]


def pipeline_times(
    sources: Sequence[Source], opened: Opened, asked: CycleTiming
) -> Report[StageRow]:
    """Time the stages of a pipeline, each with a chip of its own.

    Args:
        sources: the models, in their order.
        opened: what to look at for a source.
        asked: how they are timed.

    Raises:
        FormatError, OSError: a file is not valid or cannot be read.
        InputError: a stage takes a tensor that no stage before it gives, or there is one stage.
    """
    if len(sources) < 2:
        raise InputError("a pipeline has two models or more; one was given")
    # Imported here: times of files one by one do not wait for what runs whole models.
    from darwinn_testbench.chip.pipeline import Pipeline
    from darwinn_testbench.chip.whole import open_segment

    held = [read_once(opened(source)) for source in sources]
    Pipeline([open_segment(each, assumptions=asked.assumptions) for each in held])
    timed = [_time(each, asked) for each in held]
    rows = [_stage(number, each) for number, each in enumerate(timed)]
    times = [row.milliseconds for row in rows if row.milliseconds is not None]
    figures: dict[str, Any] = dict(_common(timed))
    message = timed[0].report.message
    if len(times) == len(rows):
        slowest = max(times)
        rows = [replace(row, busy=(row.milliseconds or 0.0) / slowest) for row in rows]
        figures["pipeline"] = told = PipelineTimes.of(times, [row.name for row in rows])
        message = _told(told, figures)
    return _report(rows, figures, message)


def turn_times(sources: Sequence[Source], opened: Opened, asked: CycleTiming) -> Report[TurnRow]:
    """Time models that take turns on one chip, in the order in which they are given.

    Raises:
        FormatError, OSError: a file is not valid or cannot be read.
        InputError: there is one model.
    """
    if len(sources) < 2:
        raise InputError("two models or more share a chip; one was given")
    timed = [_time(read_once(opened(source)), asked) for source in sources]
    rows = [_turn(each, loads) for each, loads in zip(timed, _loads(timed), strict=True)]
    figures: dict[str, Any] = dict(_common(timed))
    message = timed[0].report.message
    if all(row.milliseconds is not None for row in rows):
        swaps = sum(row.swap_milliseconds or 0.0 for row in rows)
        total = swaps + sum(row.milliseconds or 0.0 for row in rows)
        figures["turns"] = TurnTimes(total, swaps, 1e3 / total)
        cost = (
            f"{significant(swaps)} ms of it load parameters that the model before has displaced; "
            "models compiled together keep theirs"
            if swaps
            else "no parameters are loaded again"
        )
        message = (
            f"a round of {counted(len(rows), 'inference')} takes {significant(total)} ms, {cost}; "
            f"{_conditions(figures)}"
        )
    return _report(rows, figures, message)


def _report(rows: Sequence[_Timing], figures: Mapping[str, Any], message: str) -> Report[_Timing]:
    return Report(
        command="cycles",
        file=f"{len(rows)} files",
        rows=tuple(rows),
        figures=figures,
        message=message,
    )


def _time(source: Source, asked: CycleTiming) -> _Timed:
    tokens = {
        each.parameter_caching_token
        for each in load(source).executables
        if each.type is not ExecutableType.PARAMETER_CACHING
    }
    if len(tokens) > 1:
        raise InputError(f"{name_of(source)}: several models in one file do not share a chip")
    try:
        report = time_file(asked.part(FileTiming, source=source))
    except (FormatError, InputError, SimulationError) as error:
        report = unmeasured(source, error)
    return _Timed(name_of(source), report, *tokens)


def _loads(timed: Sequence[_Timed]) -> list[bool]:
    """Which models load their parameters in a round, not the first.

    As the vendor's driver decides it: before an inference with another token than the last one, or
    with none, it forgets all that is cached.
    """
    cached: set[int] = set()
    current = 0
    loads = [False] * len(timed)
    for _ in range(2):
        for number, each in enumerate(timed):
            if not each.token or each.token != current:
                cached.clear()
            current = each.token
            loads[number] = bool(each.loadings) and number not in cached
            cached |= {number} if each.loadings else set()
    return loads


def _common(timed: Sequence[_Timed]) -> Mapping[str, Any]:
    """What the reports of all files say: they are timed alike."""
    figures = next((each.report.figures for each in timed if each.report.figures), {})
    cpu = tuple(one for each in timed for one in each.report.figures.get("cpu", ()))
    return {
        **figures,
        "assumptions": grading.merged(each.report.assumptions for each in timed),
        **({"cpu": cpu} if cpu else {}),
    }


def _total(rows: Sequence[CyclesRow], name: str) -> float | None:
    values = [getattr(row, name) for row in rows]
    return None if None in values else float(sum(values))


def _stage(number: int, timed: _Timed) -> StageRow:
    name = Path(timed.file).name
    if timed.failure is not None:
        verdict, message = timed.failure
        return StageRow(name=name, stage=number, verdict=verdict, message=message)
    return StageRow(
        name=name,
        stage=number,
        verdict=Verdict.PASS,
        milliseconds=_total(timed.inferences, "milliseconds"),
        least_milliseconds=_total(timed.inferences, "least_milliseconds"),
        most_milliseconds=_total(timed.inferences, "most_milliseconds"),
        loading_milliseconds=_total(timed.loadings, "milliseconds"),
        input_bytes=timed.moved(TransferKind.INPUT),
        output_bytes=timed.moved(TransferKind.OUTPUT),
        parameter_bytes=timed.moved(TransferKind.PARAMETER),
    )


def _turn(timed: _Timed, loads: bool) -> TurnRow:
    name = Path(timed.file).name
    token = f"{timed.token:#018x}" if timed.token else ""
    if timed.failure is not None:
        verdict, message = timed.failure
        return TurnRow(name=name, verdict=verdict, message=message, token=token)
    loadings = timed.loadings if loads else ()
    return TurnRow(
        name=name,
        verdict=Verdict.PASS,
        milliseconds=_total(timed.inferences, "milliseconds"),
        swap_milliseconds=_total(loadings, "milliseconds"),
        swap_bytes=sum(
            each.size
            for row in loadings
            if row.timing is not None
            for each in row.timing.transfers
            if each.kind is TransferKind.PARAMETER
        ),
        token=token,
    )


def _told(times: PipelineTimes, figures: Mapping[str, Any]) -> str:
    alone, filled = map(significant, (times.latency_milliseconds, times.filled_milliseconds))
    return (
        f"{significant(times.throughput, 4)} inferences a second, bounded by stage "
        f"{times.bottleneck} ({times.bottleneck_file}); one inference takes {alone} ms alone "
        f"and {filled} ms in a full pipeline; an even cut would give "
        f"{significant(times.even_throughput, 4)} a second; {_conditions(figures)} for each chip"
    )


def _conditions(figures: Mapping[str, Any]) -> str:
    return f"cycle-approximate, {figures['chip']}, host link {figures['host']}"
