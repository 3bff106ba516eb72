"""Two files side by side: what they differ in, aspect by aspect."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from darwinn_formats.files import name_of
from darwinn_sim import timing
from darwinn_sim.errors import SimulationError
from darwinn_sim.isa.codec import DecodeError

from darwinn_testbench.chip.cycles import link_of
from darwinn_testbench.difference import layers, program, programs, resources
from darwinn_testbench.difference.gates import ASPECTS, judged, parse_bound
from darwinn_testbench.difference.outputs import outputs
from darwinn_testbench.difference.rows import Aspect, DifferenceRow, unknown
from darwinn_testbench.difference.side import Comparing, Side
from darwinn_testbench.errors import InputError
from darwinn_testbench.programs.formats import format_of
from darwinn_testbench.report import Report, Verdict, counted, one_line, verdict_of, worst
from darwinn_testbench.request.record import takes
from darwinn_testbench.request.scope import Scope
from darwinn_testbench.request.timing import NO_HOST

Look = Callable[[Side, Side], Iterator[DifferenceRow]]

_LOOKS: Mapping[Aspect, Look] = {
    Aspect.EXECUTABLES: program.executables,
    Aspect.INSTRUCTIONS: program.instructions,
    Aspect.LAYERS: layers.layers,
    Aspect.MEMORY: resources.memory,
    Aspect.PARAMETERS: resources.parameters,
    Aspect.DMA: resources.dma,
    Aspect.CYCLES: layers.cycles,
    Aspect.OUTPUTS: outputs,
}
"""What looks at each aspect."""


@dataclass(frozen=True)
class FileFigures:
    """One of the two files. Nothing here counts as a difference: two files have two names."""

    file: str
    kind: str
    size: int
    sha256: str
    compiler: str
    runtime: int | None
    token: str


@dataclass(frozen=True)
class AspectFigures:
    """An aspect: how many figures were compared, and how many differ."""

    aspect: Aspect
    compared: int
    different: int
    message: str = ""

    @property
    def said(self) -> str:
        """What came of it, for people."""
        if self.message:
            return self.message
        if not self.different:
            return "none"
        return f"{self.different:,} of {counted(self.compared, 'figure')}"


def compared(asked: Comparing) -> Report[DifferenceRow]:
    """Compare two compiled models, or two programs of one other format.

    The verdict is PASS without a difference, MISMATCH with one; an aspect that cannot be looked at
    is a row with that verdict. The figures are ``files`` (two ``FileFigures``), ``aspects``
    (``AspectFigures``), ``model``, ``seed``, ``chip`` and ``host``.

    Raises:
        FormatError, OSError: a file is not valid or cannot be read.
        InputError: no such model, programs of two formats, or something that does not fit them.
        ModelError, Unavailable: operators on the CPU cannot be run.
    """
    if format_of(asked.a) is not None or format_of(asked.b) is not None:
        return _programs(asked)
    if asked.gates:
        raise InputError("--gate is for programs of other formats than compiled models")
    asked.refuse(Scope.PROGRAM)
    _refuse_aspects(asked.only, _LOOKS)
    description = timing.chip_description(asked.chip_name)
    link = link_of(description, asked.host_name)
    left, right = (
        Side(each, asked, description, link, reference)
        for each, reference in zip((asked.a, asked.b), asked.references, strict=True)
    )
    only = asked.only
    rows: list[DifferenceRow] = []
    aspects: list[AspectFigures] = []
    for aspect, look in _LOOKS.items():
        if not only or aspect in only:
            asked.progress(aspect.value, len(aspects), len(only) or len(_LOOKS))
            found = tuple(_looked(aspect, look, left, right))
            rows += found
            aspects.append(_figures(aspect, found))
    return Report(
        command="diff",
        file=f"{left.bound.file} {right.bound.file}",
        rows=tuple(rows),
        figures={
            "files": tuple(_file_figures(side) for side in (left, right)),
            "aspects": tuple(aspects),
            "model": asked.model,
            "seed": asked.seed,
            "chip": description.name,
            "host": link.name if link else NO_HOST,
        },
        message=_message(aspects),
    )


def _programs(asked: Comparing) -> Report[DifferenceRow]:
    asked.refuse(Scope.CHIP)
    if any(each is not None for each in asked.references):
        raise InputError("--reference is for compiled models")
    bounds = tuple(map(parse_bound, asked.gates))
    _refuse_aspects(asked.only, programs.LOOKS)
    left, right = programs.sides_of(asked)
    wanted = {*asked.only, *(ASPECTS[each.gate] for each in bounds)} if asked.only else None
    rows: list[DifferenceRow] = []
    aspects: list[AspectFigures] = []
    for aspect, look in programs.LOOKS.items():
        if wanted is None or aspect in wanted:
            asked.progress(aspect.value, len(aspects), len(programs.LOOKS))
            found = tuple(look(left, right))
            rows += found
            aspects.append(_figures(aspect, found))
    gates = tuple(judged(bounds, rows))
    if gates:
        aspects.append(_figures(Aspect.GATES, gates))
    return Report(
        command="diff",
        file=f"{name_of(left.source)} {name_of(right.source)}",
        rows=(*gates, *rows),
        figures={
            "files": tuple(
                FileFigures(
                    name_of(side.source), side.format.name, side.size, side.sha256, "", None, ""
                )
                for side in (left, right)
            ),
            "aspects": tuple(aspects),
            "model": asked.model,
            "seed": asked.seed,
            "chip": "",
            "host": NO_HOST,
        },
        decided=worst(each.verdict for each in gates) if gates else None,
        message=_gates_message(gates) if gates else _message(aspects),
    )


def _gates_message(gates: Sequence[DifferenceRow]) -> str:
    failed = [each for each in gates if not each.equal]
    if not failed:
        return f"all gates hold: {', '.join(each.name for each in gates)}"
    said = (f"{each.name} ({each.message or f'{each.a:,} to {each.b:,}'})" for each in failed)
    return f"gates that do not hold: {', '.join(said)}"


def _refuse_aspects(only: Collection[Aspect], looks: Mapping[Aspect, object]) -> None:
    wrong = [aspect for aspect in only if aspect not in looks]
    if wrong:
        known = ", ".join(aspect.value for aspect in looks)
        raise InputError(f"--only {wrong[0]}: such files are compared in {known}")


difference = takes(Comparing, "difference")(compared)


def _looked(aspect: Aspect, look: Look, a: Side, b: Side) -> Iterator[DifferenceRow]:
    """The rows of an aspect, up to what cannot be looked at."""
    try:
        yield from look(a, b)
    except (SimulationError, DecodeError) as error:
        yield unknown(aspect, verdict_of(error) or Verdict.FAULT, one_line(error))


def _figures(aspect: Aspect, rows: Sequence[DifferenceRow]) -> AspectFigures:
    different = sum(row.verdict is Verdict.MISMATCH for row in rows)
    message = next((row.message for row in rows if row.message), "")
    return AspectFigures(aspect, len(rows), different, message)


def _message(aspects: Sequence[AspectFigures]) -> str:
    names = [each.aspect.value for each in aspects if each.different]
    if names:
        return f"they differ in {', '.join(names)}"
    if any(each.message for each in aspects):
        return ""
    return f"no difference in {', '.join(each.aspect.value for each in aspects)}"


def _file_figures(side: Side) -> FileFigures:
    package = side.file.packages[0] if side.file.packages else None
    token = side.bound.compiled.inference.parameter_caching_token
    return FileFigures(
        side.bound.file,
        side.file.kind,
        side.file.size,
        side.file.sha256,
        (package.compiler_version or "") if package else "",
        package.min_runtime_version if package else None,
        f"{token:#018x}",
    )
