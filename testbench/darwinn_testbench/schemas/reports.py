"""Which command prints which rows and figures, and the schemas that follow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from darwinn_testbench.accuracy.measured import CalibrationRow
from darwinn_testbench.accuracy.predict import AccuracyRow
from darwinn_testbench.chip.bit_coverage import CoverageRow
from darwinn_testbench.chip.cycles import CyclesRow
from darwinn_testbench.chip.disassembly import ChunkRow
from darwinn_testbench.chip.dma_check import DmaFigures
from darwinn_testbench.chip.execution import RunRow
from darwinn_testbench.chip.inspection import ExecutableRow
from darwinn_testbench.chip.stage_times import StageRow, TurnRow
from darwinn_testbench.comparison.check import OutputRow
from darwinn_testbench.compilation.generate import GeneratedRow
from darwinn_testbench.compilation.outcome import CompileRow
from darwinn_testbench.compiler import SampleRow
from darwinn_testbench.device.answers import Answers
from darwinn_testbench.difference.rows import DifferenceRow
from darwinn_testbench.evaluation.task import EvaluationRow
from darwinn_testbench.explain.explain import ExplainRow
from darwinn_testbench.kernels import KernelsRow
from darwinn_testbench.layers.rows import LayerRow
from darwinn_testbench.own_design import HarnessFile, HarnessTest
from darwinn_testbench.profile.operators import OperatorTimeRow
from darwinn_testbench.profile.profile import ProfileRow
from darwinn_testbench.programs.contents import FunctionRow, PartRow
from darwinn_testbench.programs.operators import OperatorRow
from darwinn_testbench.regression.baseline import MetricRow
from darwinn_testbench.regression.task import Outcome
from darwinn_testbench.report import Verdict
from darwinn_testbench.report.result import JSON_VERSION, Row
from darwinn_testbench.schemas import figures
from darwinn_testbench.schemas.types import Schema, Schemas
from darwinn_testbench.survey.task import SurveyRow
from darwinn_testbench.vision.look import PictureRow

_VERIFIED = ((OutputRow, figures.Verified),)
_LOOKED = ((PictureRow, figures.Looked),)

COMMANDS: Mapping[str, tuple[tuple[Any, Any], ...]] = {
    "inspect": (
        (ExecutableRow, figures.Inspected),
        (FunctionRow, figures.Inspected),
        (ExecutableRow | FunctionRow | Row, figures.SeveralInspected),
        (CoverageRow, figures.Covered),
    ),
    "disasm": ((ChunkRow, figures.Nothing), (PartRow, figures.Nothing)),
    "dma": ((DmaFigures, figures.Transferred),),
    "explain": ((ExplainRow, figures.Explained),),
    "compile": ((CompileRow, figures.CompiledFigures),),
    "generate": ((GeneratedRow, figures.GeneratedFigures),),
    "diff": ((DifferenceRow, figures.Compared),),
    "layers": ((LayerRow, figures.Layers), (OperatorRow, figures.OperatorsSeen)),
    "run": ((RunRow, figures.Ran),),
    "verify": _VERIFIED,
    "report": _VERIFIED,
    "cycles": (
        (CyclesRow, figures.Timed),
        (StageRow, figures.PipelineTimed),
        (TurnRow, figures.TurnsTimed),
        (MetricRow, figures.Guarded),
    ),
    "profile": (
        (ProfileRow, figures.Profiled),
        (OperatorTimeRow, figures.OperatorsTimed),
    ),
    "import": ((OperatorTimeRow, figures.Imported),),
    "calibrate": ((CalibrationRow, figures.Calibrated),),
    "accuracy": ((AccuracyRow, figures.Predicted),),
    "regress": ((Outcome, figures.Regressed),),
    "survey": ((SurveyRow, figures.Surveyed),),
    "classify": _LOOKED,
    "detect": _LOOKED,
    "segment": _LOOKED,
    "pose": _LOOKED,
    "evaluate": ((EvaluationRow, figures.Evaluated),),
    "device": ((Answers, figures.Replayed),),
    "harness": ((HarnessFile, figures.HarnessWritten), (HarnessTest, figures.HarnessTested)),
    "sample": ((SampleRow, figures.Sampled),),
    "warm-up": ((KernelsRow, figures.WarmedUp),),
}
"""Rows and figures of each kind of report that a command prints with `--json`."""

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema_of(command: str, *, open_ended: bool = True) -> Schema:
    """The JSON Schema of what `darwinn COMMAND --json` prints.

    ``open_ended``: objects may have further keys, which a later version may add.
    """
    schemas = Schemas(open_ended=open_ended)
    kinds = [_report(schemas, command, row, told) for row, told in COMMANDS[command]]
    return {
        "$schema": _DIALECT,
        "title": f"darwinn {command} --json",
        "anyOf": [*kinds, _report(schemas, command, None, figures.Nothing)],
        "$defs": dict(sorted(schemas.definitions.items())),
    }


def _report(schemas: Schemas, command: str, row: Any, told: Any) -> Schema:
    """A report with rows of that kind; None: the report of what failed before it had any."""
    schema = schemas.object_of(told)
    common: Schema = {
        "command": {"const": command},
        "json_version": {"const": JSON_VERSION},
        "verdict": schemas.of(Verdict),
        "file": {"type": "string"},
        "message": {"type": "string"},
        "rows": {"type": "array", "maxItems": 0} if row is None else schemas.of(list[row]),
    }
    return {
        **schema,
        "properties": common | schema["properties"],
        "required": [*common, *schema["required"]],
    }
