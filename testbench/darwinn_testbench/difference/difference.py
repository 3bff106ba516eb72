"""Two compiled models side by side: what they differ in, aspect by aspect."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from darwinn_sim import timing
from darwinn_sim.errors import SimulationError
from darwinn_sim.isa.codec import DecodeError

from darwinn_testbench.chip.cycles import link_of
from darwinn_testbench.difference import layers, program, resources
from darwinn_testbench.difference.outputs import outputs
from darwinn_testbench.difference.rows import Aspect, DifferenceRow, unknown
from darwinn_testbench.difference.side import Comparing, Side
from darwinn_testbench.report import Report, Verdict, counted, one_line, verdict_of
from darwinn_testbench.request.record import takes
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
    """Compare two compiled models.

    The verdict is PASS without a difference, MISMATCH with one; an aspect that cannot be looked at
    is a row with that verdict. The figures are ``files`` (two ``FileFigures``), ``aspects``
    (``AspectFigures``), ``model``, ``seed``, ``chip`` and ``host``.

    Raises:
        FormatError, OSError: a file is not valid or cannot be read.
        InputError: no such model, or inputs or a reference that do not fit.
        ModelError, Unavailable: operators on the CPU cannot be run.
    """
    description = timing.chip_description(asked.chip_name)
    link = link_of(description, asked.host_name)
    left, right = (
        Side(each, asked, description, link, reference)
        for each, reference in zip((asked.a, asked.b), asked.references, strict=True)
    )
    only = asked.only
    rows: list[DifferenceRow] = []
    aspects: list[AspectFigures] = []
    for aspect in Aspect:
        if not only or aspect in only:
            asked.progress(aspect.value, len(aspects), len(only) or len(Aspect))
            found = tuple(_looked(aspect, _LOOKS[aspect], left, right))
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
