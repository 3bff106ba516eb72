"""How `explain --chips` and `cycles --pipeline --reference` show a cut for several chips."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType

from darwinn_testbench.cli.console import wrapped
from darwinn_testbench.compilation.segments import Cut, CutStage
from darwinn_testbench.report import Column, counted, table

_COLUMNS: tuple[Column[CutStage], ...] = (
    Column("stage", lambda stage: stage.stage, "right"),
    Column("operators", lambda stage: f"{stage.first}-{stage.last}", "right"),
    Column("ms", lambda stage: f"{stage.milliseconds:.3g}", "right"),
    Column("in, bytes", lambda stage: stage.input_bytes, "right"),
    Column("out, bytes", lambda stage: stage.output_bytes, "right"),
    Column("hands on", lambda stage: ", ".join(stage.handed_on), may_shrink=True),
)


def shown(cut: Cut) -> Sequence[RenderableType]:
    """The stages of a cut, and what the pipeline would do."""
    times = cut.times
    return [
        f"a cut for {counted(len(cut.stages), 'chip')}, by the compiler's balance",
        table(_COLUMNS, cut.stages),
        wrapped(
            f"predicted: {times.throughput:.4g} inferences a second, bounded by stage "
            f"{times.bottleneck}; one inference takes {times.latency_milliseconds:.3g} ms alone "
            f"({cut.chip}, host link {cut.host} for each chip; no segment was compiled)"
        ),
    ]
