"""What reports say of a file or of a run as a whole, beside their rows: keys of the JSON object.

``NotRequired`` is what is there where it was asked for, or where there is something to say. None of
these keys has to be there in a report of what failed before there were rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NotRequired, TypedDict

from darwinn_sim.isa.grading import Assumption

from darwinn_testbench.chip.ahead import Lifted
from darwinn_testbench.chip.bit_coverage import CoverageRow
from darwinn_testbench.chip.completion import Completion
from darwinn_testbench.chip.cpu_operators import CpuOperator
from darwinn_testbench.chip.cpu_time import CpuTime
from darwinn_testbench.chip.cycles import CyclesRow
from darwinn_testbench.chip.dma_check import DmaFigures
from darwinn_testbench.chip.execution import TapFigures
from darwinn_testbench.chip.hazards import Hazards
from darwinn_testbench.chip.schedules import Schedules
from darwinn_testbench.chip.stage_times import PipelineTimes, TurnTimes
from darwinn_testbench.comparison.excitation import ExcitationFigures
from darwinn_testbench.comparison.first_difference import PairingFigures
from darwinn_testbench.comparison.function_tables import FunctionTables
from darwinn_testbench.comparison.operator_coverage import OperatorFigures
from darwinn_testbench.compilation.bins import Bin, Crossed
from darwinn_testbench.compilation.outcome import FileRow, LayerRow
from darwinn_testbench.compilation.segments import Cut
from darwinn_testbench.difference.difference import AspectFigures, FileFigures
from darwinn_testbench.engine import Engine
from darwinn_testbench.evaluation.run import Accuracy, Confusion
from darwinn_testbench.explain.advice import Advice
from darwinn_testbench.explain.crossing import Piece
from darwinn_testbench.layers.check import TensorRow
from darwinn_testbench.layers.localise import Divergence
from darwinn_testbench.layers.view import PortFigures, ScalarCoreFigures
from darwinn_testbench.profile.operators import KindTime
from darwinn_testbench.profile.profile import ProfileFigures
from darwinn_testbench.programs.operators import ProgramPort
from darwinn_testbench.programs.taps import ValueTap
from darwinn_testbench.proof.parameters import Parameters
from darwinn_testbench.proof.verdict import Proof
from darwinn_testbench.survey.field_values import FieldValues
from darwinn_testbench.survey.plan import LeftOut


class _Package(TypedDict):
    min_runtime_version: int | None
    compiler_version: str | None
    model_identifier: str | None
    virtual_chip_id: int | None
    executables: int
    multi_chip: list[_Package]


class _Part(TypedDict):
    same: int
    of: int


class _Assumed(TypedDict):
    assumptions: tuple[Assumption, ...]


class _OnCpu(TypedDict):
    cpu_operators: NotRequired[tuple[CpuOperator, ...]]
    cpu_seconds: NotRequired[float]


class _Inferences(TypedDict):
    seed: int
    inferences: int
    random_inputs: bool
    seconds: float
    states: NotRequired[list[str]]
    lifted: NotRequired[Lifted]
    schedules: NotRequired[Schedules]
    hazards: NotRequired[Hazards]
    completion: NotRequired[Completion]


class Inspected(TypedDict):
    """`inspect`."""

    kind: str
    size: int
    sha256: str
    packages: NotRequired[list[_Package]]
    models: NotRequired[int]
    description: NotRequired[Mapping[str, Any]]


class _InspectedFile(Inspected):
    file: str


class SeveralInspected(TypedDict):
    """`inspect FILE FILE...`; those that could be read."""

    files: list[_InspectedFile]


class Covered(TypedDict):
    """`inspect --coverage`."""

    files: list[str]
    total: CoverageRow


class Transferred(_Assumed):
    """`dma`."""

    seed: int
    with_tiles: bool


class Explained(_Assumed):
    """`explain`."""

    basis: str
    compiled: str | None
    operators: Mapping[str, int]
    unmatched: list[str]
    agreement: NotRequired[_Part]
    pieces: tuple[Piece, ...]
    cache_bytes: int
    chip: str
    host: str
    advice: tuple[Advice, ...]
    certainty: NotRequired[Mapping[str, int]]
    not_covered: NotRequired[tuple[str, ...]]
    cut: NotRequired[Cut]


class CompiledFigures(TypedDict):
    """`compile`."""

    compiler: str
    input_bytes: int
    output_bytes: int
    cached_bytes: int
    remaining_bytes: int
    streamed_bytes: int
    instruction_bytes: int
    narrow_bytes: int
    subgraphs: int
    operators_on_chip: int
    operators_on_cpu: int
    layers: tuple[LayerRow, ...]
    files: tuple[FileRow, ...]
    milliseconds: float | None
    compile_seconds: float
    seconds: float


class GeneratedFigures(TypedDict):
    """`generate`."""

    seed: int
    networks: int
    checked: bool
    engine: Engine
    bins: tuple[Bin, ...]
    programs: tuple[Crossed, ...]
    seconds: float


class Layers(_Assumed):
    """`layers`."""

    model: int
    seed: int
    ports: tuple[PortFigures, ...]
    scalar_core: ScalarCoreFigures | None
    cpu_operators: NotRequired[tuple[CpuOperator, ...]]


class Ran(_Inferences, _OnCpu):
    """`run`."""

    model: int | None
    function: NotRequired[str | None]
    engine: NotRequired[Engine]
    stopped: bool
    narrow_bytes: int | None
    narrow_bytes_declared: int | None
    warnings: list[str]
    taps: list[TapFigures] | list[ValueTap]
    printed: NotRequired[str]
    assumptions: NotRequired[tuple[Assumption, ...]]


class Verified(_Inferences, _Assumed, _OnCpu):
    """`verify`, and `report`, which is one with a page."""

    reference: str | None
    expected: NotRequired[str | None]
    model: int | None
    function: NotRequired[str | None]
    engine: NotRequired[Engine]
    stall_seed: NotRequired[int]
    policy: str | None
    further_inferences: int
    excitation: ExcitationFigures
    dma: NotRequired[list[DmaFigures]]
    tensors: NotRequired[list[TensorRow]]
    pairings: NotRequired[list[PairingFigures]]
    divergences: list[Divergence]
    operators: NotRequired[OperatorFigures]
    functions: NotRequired[FunctionTables]
    proof: NotRequired[Proof]
    parameters: NotRequired[Parameters]
    warnings: NotRequired[list[str]]


class Timed(_Assumed):
    """`cycles`."""

    cycle_accuracy: str
    chip: str
    clock_hz: float
    host: str
    fixed_milliseconds: float
    cpu: NotRequired[tuple[CpuTime, ...]]


class PipelineTimed(Timed):
    """`cycles --pipeline`; `pipeline` if each stage could be timed."""

    pipeline: NotRequired[PipelineTimes]
    cut: NotRequired[Cut]


class TurnsTimed(Timed):
    """`cycles --one-chip`; `turns` if each model could be timed."""

    turns: NotRequired[TurnTimes]


class Guarded(_Assumed):
    """`cycles --baseline`."""

    chip: str
    host: str
    files: int
    updated: bool
    unmeasured: list[CyclesRow]


class Profiled(_Assumed):
    """`profile`."""

    model: int
    profile: ProfileFigures


class OperatorsSeen(TypedDict):
    """`layers` of a program of another format."""

    format: str
    function: str | None
    seed: int
    random_inputs: bool
    warnings: list[str]
    ports: tuple[ProgramPort, ...]


class OperatorsTimed(OperatorsSeen):
    """`profile` of a program of another format."""

    measured_by: str
    calls: int
    first_seconds: float
    seconds: float
    kinds: tuple[KindTime, ...]


class Imported(TypedDict):
    """`import`."""

    format: str
    function: str
    measured_by: str
    warnings: list[str]
    ports: tuple[ProgramPort, ...]
    calls: int
    first_seconds: float
    seconds: float
    kinds: tuple[KindTime, ...]


class Looked(_Assumed, _OnCpu):
    """`classify`, `detect`, `segment` and `pose`."""

    pictures: int
    input: str
    fit: str
    reference: NotRequired[str]
    warnings: list[str]
    seconds: float


class Evaluated(TypedDict):
    """`evaluate`."""

    dataset: str
    reference: str | None
    fit: str
    folders: list[str]
    warnings: list[str]
    pictures: int
    tasks: int
    taken_from_journal: int
    seconds: float
    chip_accuracy: Accuracy
    reference_accuracy: NotRequired[Accuracy]
    agreement: NotRequired[int]
    confusion: NotRequired[tuple[Confusion, ...]]
    worst: NotRequired[list[str]]


class HostParameter(TypedDict):
    """A parameter of a host's description."""

    value: float
    unit: str
    source: str
    confidence: str
    least: NotRequired[float]
    most: NotRequired[float]


class Calibrated(TypedDict):
    """`calibrate`."""

    chip: str
    base: str
    models: int
    clock_told: bool
    clocks: dict[str, float]
    mean_error: float
    worst_error: float
    mean_left_out_error: float | None
    worst_left_out_error: float | None
    parameters: dict[str, HostParameter]
    at_most: float


class Predicted(TypedDict):
    """`accuracy`."""

    chip: str
    points: NotRequired[int]
    worst_error: NotRequired[float]
    mean_error: NotRequired[float]
    mean_mac_error: NotRequired[float]
    mean_roofline_error: NotRequired[float]


class HarnessWritten(TypedDict):
    """`harness new`, `harness export`."""

    action: str


class HarnessTested(TypedDict):
    """`harness test`."""

    seed: int
    data_bytes: int


class Sampled(TypedDict):
    """`sample`."""

    seed: int


class WarmedUp(TypedDict):
    """`warm-up`."""

    seconds: float
    cache_bytes: int
    removed_bytes: int


class Replayed(TypedDict):
    """`device --replay`."""

    events: int
    differences: int
    cut_short: bool


class Compared(TypedDict):
    """`diff`."""

    files: tuple[FileFigures, ...]
    aspects: tuple[AspectFigures, ...]
    model: int
    seed: int
    chip: str
    host: str


class Regressed(_Assumed):
    """`regress`."""

    tasks: int
    passed: int
    ran: int
    taken_from_journal: int
    seconds: float


class Surveyed(_Assumed):
    """`survey`."""

    verdicts: Mapping[str, int]
    taken_from_journal: int
    seed: int
    runs: int | None
    hazards: bool
    strict: bool
    chip: str
    seconds: float
    fields: tuple[FieldValues, ...]
    left_out: tuple[LeftOut, ...]


class Nothing(TypedDict):
    """`disasm`: rows alone."""
