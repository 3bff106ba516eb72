"""How `explain --chips` and `cycles --pipeline --reference` show a cut for several chips."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType

from darwinn_testbench.cli.console import wrapped
from darwinn_testbench.compilation.segments import Cut, CutStage
from darwinn_testbench.report import Column, counted, significant, table

_COLUMNS: tuple[Column[CutStage], ...] = (
    Column("stage", lambda stage: stage.stage, "right"),
    Column("operators", lambda stage: f"{stage.first}-{stage.last}", "right"),
    Column("ms", lambda stage: significant(stage.milliseconds), "right"),
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
            f"predicted: {significant(times.throughput, 4)} inferences a second, bounded by stage "
            f"{times.bottleneck}; one inference takes {significant(times.latency_milliseconds)} ms "
            f"alone ({cut.chip}, host link {cut.host} for each chip; no segment was compiled)"
        ),
    ]
