"""Is every output byte right? A compiled model on the simulated chip against CPU references.

Two references, both of the model before compilation: the chip's own arithmetic, which decides, and
LiteRT, whose rounding differs a little and which is reported (docs/comparison.md).
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from darwinn_formats.files import Source
from darwinn_sim.errors import IncompleteProgram, SimulationError

from darwinn_testbench.chip.dma_check import DmaFigures, dma_figures
from darwinn_testbench.chip.execution import (
    Inference,
    Session,
    TensorOutputRow,
    choose_model,
    row_fields,
)
from darwinn_testbench.chip.inputs import (
    Inputs,
    Origin,
    Tensor,
    TensorPort,
    choose_inputs,
    few_runs,
    origin_of,
)
from darwinn_testbench.chip.model import BoundModel, open_models
from darwinn_testbench.comparison.compare import Comparison, compare
from darwinn_testbench.comparison.excitation import Excitation
from darwinn_testbench.comparison.expectation import Expectation, References, device_inputs
from darwinn_testbench.comparison.operator_coverage import OperatorFigures, OperatorRecord
from darwinn_testbench.engine import Engine
from darwinn_testbench.errors import InputError
from darwinn_testbench.layers.candidates import layer_taps
from darwinn_testbench.layers.check import Finding, TensorRow
from darwinn_testbench.layers.localise import Divergence
from darwinn_testbench.policy import LITERT_LAYER, Exact, Policy
from darwinn_testbench.reference.tflite.graph import Network
from darwinn_testbench.report import Report, Verdict, verdict_of, worst
from darwinn_testbench.report.progress import ProgressCallback, silent

if TYPE_CHECKING:
    from darwinn_testbench.comparison.rtl_check import RtlCheck

CHIP_ARITHMETIC = "chip arithmetic"
LITERT = "LiteRT"
COMPLETION = "completion"
NOTHING = "nothing"
_MOST_ASSUMPTIONS = 3
"""Assumptions that a message names; the rows hold all."""
_RECURRENT = "UNIDIRECTIONAL_SEQUENCE_LSTM"
"""What may decide an output's verdict: COMPLETION if no reference was given, NOTHING if the given
one does not compute the output."""


@dataclass(frozen=True, kw_only=True)
class OutputRow(TensorOutputRow):
    """One output of one inference.

    ``decided_by`` says what the verdict rests on: chip arithmetic, LiteRT under ``policy``, or,
    without a reference, that the program ran to its end. A comparison is None where it could not
    be made; ``..._missing`` then says why. ``rtl`` compares what the RTL gave with the model's
    bytes, ``rtl_cycles`` is what it took. ``seconds`` is for the whole inference.
    ``reference_assumes`` names the operators of the chip arithmetic whose rule no file has shown.
    """

    decided_by: str
    policy: str
    chip_arithmetic: Comparison | None = None
    chip_arithmetic_missing: str = ""
    reference_assumes: tuple[str, ...] = ()
    litert: Comparison | None = None
    litert_missing: str = ""
    rtl: Comparison | None = None
    rtl_cycles: int | None = None


def verify(
    source: Source,
    reference: str | os.PathLike[str] | None = None,
    inputs: Inputs = None,
    *,
    model: int = 0,
    companions: Sequence[Source] = (),
    seed: int = 0,
    runs: int | None = None,
    inputs_kind: Sequence[str] = (),
    policy: Policy | None = None,
    strict: bool = False,
    layers: bool = False,
    localise: bool = False,
    maps: Sequence[str] = (),
    engine: Engine = Engine.MODEL,
    waves: Path | None = None,
    require_reference: bool = False,
    assumptions: bool = True,
    progress: ProgressCallback = silent,
) -> Report[OutputRow]:
    """Run a compiled model on the simulated chip and judge every output of every inference.

    Args:
        source: the compiled model.
        reference: the same model before compilation, as ``.tflite``; without it the verdict is at
            best RAN: the program ran to its end, and its DMA is as its hints say.
        inputs: files, or arrays by tensor name, one mapping for each inference; without them
            ``runs`` sets of the kinds ``inputs_kind`` are drawn (``inputs.choose_inputs``), one of
            each kind by default; on the RTL, which takes its time, one.
        model: which model of the file.
        companions: files compiled together with it, of which one may cache its parameters.
        policy: how far an output may be from LiteRT; then that decides. Without it an output must
            equal the chip's arithmetic on every byte, and where that cannot be computed, be within
            ``LITERT_LAYER`` of LiteRT.
        strict: reading memory that nothing has written is a fault.
        layers: also compare what each layer leaves in the tiles with the chip's arithmetic; the
            rows (``layer_check.TensorRow``) are in the figures under ``tensors``.
        localise: also name the first tensor that differs, and each further one that does so of
            itself (``localise.Divergence``, in the figures under ``divergences``).
        maps: ``NAME=OTHER`` for inputs and outputs that have other names in the reference, where
            OTHER is a name or an index.
        engine: RTL runs everything in Verilog as well, whose outputs must equal the model's.
        waves: file for the waves of the RTL, an FST.
        require_reference: an output that is compared with no reference fails (NOT_COMPARED).
        assumptions: execute values whose meaning is assumed (docs/isa.md, "Values by grade");
            those that the model holds are in the figures under ``assumptions``.

    Raises:
        FormatError, OSError: a file is not valid or cannot be read.
        InputError, PolicyError, ModelError: an argument does not fit the model.
        Unavailable: the engine is not there.
    """
    bound = choose_model(open_models(source, companions), model)
    uncompared = Verdict.NOT_COMPARED if require_reference else Verdict.RAN
    tapped = layers or localise
    if tapped and reference is None:
        raise InputError("layers are compared with the model before compilation: give --reference")
    references = None if reference is None else References(reference, bound, maps)
    ports = bound.ports if references is None else references.ports
    if engine is Engine.RTL:
        runs = few_runs(runs, inputs_kind)
    sets = choose_inputs(inputs, ports, seed=seed, runs=runs, inputs_kind=inputs_kind)
    session = Session(bound, strict=strict, seed=seed, assumptions=assumptions)
    rtl = _open_rtl(bound, seed, waves, progress) if engine is Engine.RTL else None
    excitation = Excitation(None if references is None else references.cpu.network)
    rows: list[OutputRow] = []
    tensor_rows: list[TensorRow] = []
    divergences: list[Divergence] = []
    operators: list[Sequence[OperatorRecord]] = []
    transfers: list[DmaFigures] = []
    warnings: list[str] = []
    fault: SimulationError | None = None
    begin = time.perf_counter()
    try:
        progress("loading parameters", 0, len(sets))
        caching = session.load_parameters()
        if caching is not None and bound.compiled.caching is not None:
            name = "parameter caching"
            transfers.append(dma_figures(bound.compiled.caching, caching.transfers, name))
        if rtl is not None:
            transfers += rtl.load_parameters()
        for number, tensors in enumerate(sets):
            progress(f"inference {number + 1} of {len(sets)}", number, len(sets))
            origin = origin_of(sets, number)
            expectation = references.expect(tensors) if references else None
            given = device_inputs(bound, tensors, expectation)
            looks = tapped or (expectation is not None and expectation.incomplete)
            taps = layer_taps(session.program) if looks else ()
            inference = session.infer(given, taps=taps, as_far_as_it_goes=True)
            name = f"inference {number}"
            warnings += [f"{name}: {text}" for text in inference.result.warnings]
            issued = inference.result.transfers
            transfers.append(dma_figures(bound.compiled.inference, issued, name))
            if inference.result.incomplete:
                raise IncompleteProgram(len(session.program.chunks))
            if references is not None and expectation is not None:
                expectation = references.complete(
                    expectation, session.program, inference, tensors, policy
                )
                operators.append(expectation.coverage.records)
            excitation.add(inference.outputs, {} if expectation is None else expectation.values)
            judged = [
                _judge(number, origin, inference, item.port, expectation, policy, uncompared)
                for item in bound.outputs
            ]
            if rtl is not None:
                judged, moved = rtl.check(judged, given, number)
                transfers.append(moved)
            rows += judged
            if layers and references is not None and expectation is not None:
                tensor_rows += references.check_layers(
                    expectation, session.program, inference, number
                )
            if localise and references is not None and expectation is not None:
                divergences += references.localise(
                    expectation, session.program, inference, tensors, number
                )
    except SimulationError as error:
        fault = error
    finally:
        if rtl is not None:
            rtl.close()
    coverage = OperatorFigures.of(operators)
    return Report(
        command="verify",
        file=bound.file,
        rows=tuple(rows),
        figures={
            "reference": None if reference is None else os.fspath(reference),
            "model": model,
            "seed": seed,
            "inferences": len(sets),
            "random_inputs": inputs is None,
            "policy": None if policy is None else str(policy),
            "seconds": time.perf_counter() - begin,
            "excitation": excitation.figures(),
            "dma": transfers,
            "tensors": tensor_rows,
            "divergences": divergences,
            "assumptions": session.assumed,
            "operators": coverage,
            "warnings": warnings,
        },
        decided=_decide(rows, transfers, fault, references is not None, uncompared, coverage),
        message=_summary(rows, tensor_rows, transfers, coverage, fault, bound.note),
    )


def _open_rtl(
    bound: BoundModel, seed: int, waves: Path | None, progress: ProgressCallback
) -> RtlCheck:
    from darwinn_testbench.comparison.rtl_check import RtlCheck

    progress("building the RTL", 0, 1)
    return RtlCheck(bound, seed, waves)


def _judge(
    number: int,
    origin: Origin | None,
    inference: Inference,
    port: TensorPort,
    expectation: Expectation | None,
    policy: Policy | None,
    uncompared: Verdict,
) -> OutputRow:
    tensor = inference.outputs[port.name]
    row = OutputRow(
        **row_fields(number, port.name, tensor, inference.seconds, origin),
        decided_by=COMPLETION,
        policy="",
    )
    if expectation is None:
        return replace(row, verdict=uncompared)
    chip, chip_missing = expectation.find_chip(port.name)
    litert, litert_missing = expectation.references.find(expectation.litert, port.name)
    row = replace(
        row,
        chip_arithmetic=_compare(tensor, port, chip, Exact()),
        chip_arithmetic_missing=chip_missing,
        reference_assumes=expectation.references.assumed(expectation.chip, port.name),
        litert=_compare(tensor, port, litert, policy or LITERT_LAYER),
        litert_missing=litert_missing,
    )
    if policy is not None:
        return _decided_by_litert(row)
    if row.chip_arithmetic is not None:
        decided = _decided(row, CHIP_ARITHMETIC, row.chip_arithmetic)
        row = _with_assumptions(_explained(decided, expectation.references.cpu.network))
    else:
        own = expectation.find_litert(port.name)
        reason = f"no chip-arithmetic oracle: {chip_missing}"
        row = _decided_by_litert(replace(row, litert=own or row.litert), reason)
    problems = expectation.problems(port.name)
    if not problems:
        return row
    message = "; ".join(filter(None, (row.message, *problems)))
    return replace(row, verdict=worst((row.verdict, Verdict.MISMATCH)), message=message)


def _decided_by_litert(row: OutputRow, reason: str = "") -> OutputRow:
    if row.litert is not None:
        return _decided(row, LITERT, row.litert, reason)
    message = "; ".join(filter(None, (reason, f"no LiteRT: {row.litert_missing}")))
    return replace(row, verdict=Verdict.REFUSED, decided_by=NOTHING, message=message)


def _with_assumptions(row: OutputRow) -> OutputRow:
    """The row, its message with what the reference assumes."""
    if not row.reference_assumes:
        return row
    rest = len(row.reference_assumes) - _MOST_ASSUMPTIONS
    more = (f"{rest} more",) if rest > 0 else ()
    said = "; ".join(row.reference_assumes[:_MOST_ASSUMPTIONS] + more)
    return replace(row, message="; ".join(filter(None, (row.message, f"assumed: {said}"))))


def _explained(row: OutputRow, network: Network) -> OutputRow:
    """The row, with a word on a difference to LiteRT that is no error of rounding."""
    recurrent = any(each.name == _RECURRENT for each in network.operators)
    if row.message or not recurrent or row.litert is None or not row.litert.differing:
        return row
    return replace(
        row,
        message="differs from LiteRT by construction: the compiler quantises the sums of an LSTM's "
        "gates to 8 bits (docs/comparison.md)",
    )


def _decided(row: OutputRow, by: str, comparison: Comparison, reason: str = "") -> OutputRow:
    return replace(
        row,
        verdict=Verdict(comparison.verdict),
        decided_by=by,
        policy=comparison.policy,
        message="; ".join(filter(None, (reason, comparison.reason))),
    )


def _compare(
    tensor: Tensor, port: TensorPort, reference: Tensor | None, policy: Policy
) -> Comparison | None:
    if reference is None:
        return None
    if reference.size == tensor.size:
        # Graphs differ in dimensions of size 1, never in the order of elements.
        reference = reference.reshape(tensor.shape)
    return compare(tensor, reference, policy, zero_point=port.zero_point)


def _decide(
    rows: Sequence[OutputRow],
    transfers: Sequence[DmaFigures],
    fault: SimulationError | None,
    referenced: bool,
    uncompared: Verdict,
    coverage: OperatorFigures,
) -> Verdict | None:
    """A fault, or the outputs, without a reference also what is wrong with the DMA.

    DMA that is as hinted is no comparison of outputs; a model without outputs is not compared.
    Whoever requires a reference requires it of every operator.
    """
    if fault is not None:
        return verdict_of(fault)
    outputs = [row.verdict for row in rows] or [uncompared]
    if coverage.missing and uncompared.failed:
        outputs.append(uncompared)
    wrong = [row.verdict for row in transfers if row.verdict.failed]
    return worst(outputs if referenced else outputs + wrong)


def _summary(
    rows: Sequence[OutputRow],
    tensors: Sequence[TensorRow],
    transfers: Sequence[DmaFigures],
    coverage: OperatorFigures,
    fault: SimulationError | None,
    note: str,
) -> str:
    """One line: what was checked, and with what result; ``note`` says which model it was."""
    if fault is not None:
        return str(fault)
    parts = [_count(rows, by) for by in _SUMMARIES]
    by_rtl = [row.rtl for row in rows if row.rtl is not None]
    if by_rtl:
        equal = sum(each.differing == 0 for each in by_rtl)
        parts.append(f"{equal} of {len(by_rtl)} outputs of the RTL equal the model's")
    found = Counter(row.finding for row in tensors)
    if found:
        shown = [each for each in Finding if found[each] or each is not Finding.TAKEN]
        counts = ", ".join(f"{found[finding]} {finding}" for finding in shown)
        parts.append(f"tensors within: {counts}")
    if coverage.policy or coverage.missing:
        parts.append(str(coverage))
    wrong = [row for row in transfers if row.verdict.failed]
    if wrong:
        parts.append(f"the DMA of {len(wrong)} runs differs from the hints")
    else:
        hinted = any(row.hints for row in transfers)
        parts.append("DMA as hinted" if hinted else "there are no DMA hints to compare with")
    return "; ".join(filter(None, [*parts, note]))


_SUMMARIES = {
    CHIP_ARITHMETIC: "equal the chip arithmetic on every byte",
    LITERT: "are within the policy of LiteRT",
    COMPLETION: "were produced without a fault and compared with nothing (give --reference)",
    NOTHING: "could be judged: no reference computes them",
}


def _agrees(row: OutputRow) -> bool:
    """Whether the model's output is right; the RTL's is another question."""
    deciding = {CHIP_ARITHMETIC: row.chip_arithmetic, LITERT: row.litert}.get(row.decided_by)
    return row.decided_by == COMPLETION if deciding is None else deciding.verdict == "pass"


def _count(rows: Sequence[OutputRow], decided_by: str) -> str:
    judged = [row for row in rows if row.decided_by == decided_by]
    passed = sum(map(_agrees, judged))
    return f"{passed} of {len(judged)} outputs {_SUMMARIES[decided_by]}" if judged else ""
