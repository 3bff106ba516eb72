"""Compare a compiled model with the network that it was made from: is every output byte right?

There are two references, both of the model before compilation. The chip's own arithmetic decides.
LiteRT, whose rounding differs a little, is reported (docs/comparison.md). The RTL may run beside
the model of the chip. Without a network the program runs, and its DMA is judged.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from darwinn_reference.arrays import AnyArray
from darwinn_reference.tflite.graph import Network
from darwinn_sim.errors import IncompleteProgram, SimulationError

from darwinn_testbench.chip.dma_check import DmaFigures
from darwinn_testbench.chip.execution import lifted_figure, states_figure
from darwinn_testbench.chip.inputs import (
    DrawnSets,
    TensorMap,
    TensorPort,
    choose_inputs,
    few_runs,
    further_runs,
)
from darwinn_testbench.chip.session import Inference
from darwinn_testbench.chip.whole import WholeInference, WholeModel
from darwinn_testbench.comparison.asked import Asked
from darwinn_testbench.comparison.cases import Case, Cases
from darwinn_testbench.comparison.check import (
    CHIP_ARITHMETIC,
    COMPLETION,
    LITERT,
    NOTHING,
    RTL,
    Check,
    OutputRow,
    decided,
    row_of,
)
from darwinn_testbench.comparison.compare import Comparison, compare
from darwinn_testbench.comparison.expectation import Expectation, References, device_inputs
from darwinn_testbench.comparison.function_tables import FunctionTables
from darwinn_testbench.comparison.operator_coverage import OperatorFigures, OperatorRecord
from darwinn_testbench.comparison.sides import DeviceProgram, RtlProgram, open_device
from darwinn_testbench.comparison.tapped_inference import TappedInference
from darwinn_testbench.comparison.visible import Search, shown_in
from darwinn_testbench.comparison.whole_judge import WholeJudge
from darwinn_testbench.engine import Engine
from darwinn_testbench.errors import InputError
from darwinn_testbench.layers.candidates import layer_taps
from darwinn_testbench.layers.check import Finding, TensorRow
from darwinn_testbench.policy import LITERT_LAYER, Exact, Policy
from darwinn_testbench.proof.makers import Makers, makers_of
from darwinn_testbench.proof.parameters import Parameters, parameters_of
from darwinn_testbench.proof.parameters import without as without_parameters
from darwinn_testbench.proof.verdict import LEFT_OUT, Proof, proof_of, without
from darwinn_testbench.report import Verdict, counted, one_line, worst
from darwinn_testbench.report.progress import ProgressCallback

_MOST_ASSUMPTIONS = 3
"""Assumptions that a message names; the rows hold all."""
_STATES = "the model keeps states from one inference to the next"
_RECURRENT = "UNIDIRECTIONAL_SEQUENCE_LSTM"
_SUMMARIES = {
    CHIP_ARITHMETIC: "equal the chip arithmetic on every byte",
    LITERT: "are within the policy of LiteRT",
    COMPLETION: "were produced without a fault and compared with nothing (give --reference)",
    NOTHING: "could be judged: no reference computes them",
}


class ChipCheck(Check):
    """The inferences of a compiled model.

    Raises:
        FormatError, OSError: a file is not valid or cannot be read.
        InputError, PolicyError, ModelError: an argument does not fit the model.
        Unavailable: the RTL cannot be built here.
    """

    noun = "inference"

    def __init__(self, asked: Asked, progress: ProgressCallback) -> None:
        self.device = open_device(asked)
        bound = self.device.model
        self.tapped = asked.layers or asked.localise
        self.references: References | None = None
        if isinstance(asked.reference, bytes | str | os.PathLike):
            self.references = References(
                asked.reference, bound, asked.maps, self.device.ends, anyway=asked.anyway
            )
        elif self.tapped or asked.parameters:
            what = "layers" if self.tapped else "parameters"
            raise InputError(
                f"{what} are compared with the model before compilation: give --reference"
            )
        whole = self.device.whole
        alone = bound.ports if whole is None else whole.ports
        ports = alone if self.references is None else self.references.ports
        on_rtl = asked.engine is Engine.RTL
        runs = few_runs(asked.runs, asked.inputs_kind) if on_rtl else asked.runs
        sets = choose_inputs(
            asked.inputs, ports, seed=asked.seed, runs=runs, inputs_kind=asked.inputs_kind
        )
        network = None if self.references is None else self.references.cpu.network
        super().__init__(asked, bound.file, Cases(sets, drawn=asked.inputs is None), network)
        self.rtl: RtlProgram | None = None
        if on_rtl:
            progress("building the RTL", 0, 1)
            self.rtl = RtlProgram(self.device, asked.seed, asked.waves, asked.stall_seed)
        same = {(port.name, port.shape, port.dtype) for port in ports} == {
            (port.name, port.shape, port.dtype) for port in bound.ports
        }
        self._expected = sets if same and not self.tapped and self.rtl is None else ()
        self.tensors: list[TensorRow] = []
        self.operators: list[Sequence[OperatorRecord]] = []
        self.functions = FunctionTables()
        self._makers: Makers | None = None
        self._proof_tried: Proof | None = None
        self.warnings: list[str] = []
        if self.references is not None:
            self.warnings += self.references.differences
        self.whole = (
            None
            if whole is None
            else WholeJudge(
                asked, whole, bound.number, self.references, tuple(self._further(asked, whole))
            )
        )

    def _further(self, asked: Asked, whole: WholeModel) -> Iterator[References]:
        """The reference for each executable of the graph but the one that is judged."""
        if self.references is None:
            return
        for session in whole.sessions:
            if session.model.number != self.device.model.number:
                assert isinstance(asked.reference, bytes | str | os.PathLike)
                yield References(asked.reference, session.model, asked.maps, anyway=asked.anyway)

    def begin(self, progress: ProgressCallback) -> None:
        """Load the parameters."""
        progress("loading parameters", 0, len(self.cases))
        self.device.load_parameters()
        if self.rtl is not None:
            self.rtl.load_parameters()
        # What cannot be executed is refused as such, before its tables are looked at.
        _ = self.device.session.program
        self.functions = FunctionTables.of(self.device.model.compiled.inference)
        if self._expected and self.whole is None:
            self.device.session.expect(self._expected)

    def prove(self, progress: ProgressCallback) -> Proof | None:
        """That the executable is the same function of its inputs as the network."""
        references, session = self.references, self.device.session
        if references is None:
            return None
        proof = self._function_proof(references, progress)
        if not proof.refuted:
            return proof
        shown = shown_in(self.rows)
        if shown is None:
            progress("proof: an input that shows the difference", 0, 1)
            search = Search(session, references, proof.refuted[0])
            shown = search.shown(tuple(self.cases))
        return replace(proof, shown=shown)

    def _function_proof(self, references: References, progress: ProgressCallback) -> Proof:
        """What is proved of the function, without an input that shows a difference; once."""
        if self._proof_tried is None:
            if not self.asked.proof:
                self._proof_tried = LEFT_OUT
            elif reason := self._not_one_function(references):
                self._proof_tried = without(reason)
            else:
                session = self.device.session
                self._proof_tried = proof_of(session, references.uncompiled, progress)
        return self._proof_tried

    def attribute(self, progress: ProgressCallback) -> Parameters | None:
        """Which element of the network each byte of the parameters is."""
        references, session = self.references, self.device.session
        if references is None or not self.asked.parameters:
            return None
        if reason := self._not_one_function(references):
            return without_parameters(reason)
        return parameters_of(session, references.uncompiled, progress)

    def _not_one_function(self, references: References) -> str:
        """Why the executable and the network are not both one function of the inputs; or empty."""
        if references.differences:
            return "the reference is another model (--anyway)"
        return _STATES if self.device.session.states else ""

    @property
    def _is_proved(self) -> bool:
        proof, hazards, completion = self.proof, self.hazards, self.completion
        of_function = proof is not None and proof.every_output and not self._never_proved
        ends = completion is not None and completion.cannot_deadlock
        return of_function and ends and hazards is not None and hazards.proved

    @property
    def _never_proved(self) -> str:
        """The parts that are known only for the inputs of the run, in words."""
        if self.references is None:
            return ""
        whole = not self.asked.chip_only
        lacking = self.references.lacking
        asked = {
            f"output {', '.join(lacking)} of the reference, which the compiled graph lacks": (
                whole and bool(lacking)
            ),
            "further executables of the graph": whole and self.device.ends.on_chip > 1,
            "DMA that differs from its hints": bool(self._wrong_dma),
            "operators on the CPU": self.whole is not None,
            "results of the RTL": self.rtl is not None,
            "agreement under --policy": self.asked.policy is not None,
            "a function table that no public program holds": not self.functions.all_public,
        }
        found = [what for what, there in asked.items() if there]
        return f"sampled: {', '.join(found)}" if found else ""

    def close(self) -> None:
        """End the simulation of the RTL; its waves are complete then."""
        if self.rtl is not None:
            self.rtl.close()

    def run(self, number: int, case: Case) -> None:
        """Make an inference, and judge its outputs and, if asked for, its layers."""
        tensors = case.inputs
        states = dict(self.device.session.states)
        references = self.references
        expectation = None if references is None else references.expect(tensors, states)
        looks = self.tapped or (expectation is not None and expectation.incomplete)
        program = self.device.session.program
        taps = layer_taps(program) if looks else ()
        wholly: WholeInference | None = None
        if self.whole is None:
            given: TensorMap = device_inputs(self.device.model.ports, tensors, expectation)
            inference = self.device.infer(given, number, taps)
        else:
            taken = device_inputs(self.whole.model.ports, tensors, expectation)
            wholly, inference = self.device.infer_whole(taken, number, taps)
            given = self.device.given
        self.warnings += [f"inference {number}: {text}" for text in inference.result.warnings]
        if inference.result.incomplete:
            raise IncompleteProgram(len(program.chunks))
        seen: TappedInference | None = None
        if expectation is not None:
            policy = self.asked.policy
            sides = expectation, program, inference, tensors
            seen = TappedInference(*sides, number, policy, self._makers_of_tensors)
            expectation = seen.expectation
            self.operators.append(expectation.coverage.records)
        self.excitation.add(inference.outputs, {} if expectation is None else expectation.values)
        rows = [
            self._judge(number, case, inference, item.port, expectation)
            for item in self.device.model.outputs
        ]
        self.rows += rows if self.rtl is None else self._beside(self.rtl, rows, given, number)
        if self.whole is not None and wholly is not None:
            self.rows += self.whole.judge(number, case, wholly, inference, expectation)
        if seen is not None and self.asked.layers:
            self.tensors += seen.check_layers()
        if seen is not None and self.asked.localise:
            self.divergences += seen.localise()

    def _makers_of_tensors(self) -> Mapping[int, frozenset[int]]:
        """The layers of tensors, asked for once; with a warning where they are not known."""
        if not self.tapped:
            return {}
        if self._makers is None:
            self._makers = self._found_makers()
            if self._makers.reason:
                self.warnings.append(
                    f"layers and tensors are paired by value: {self._makers.reason}"
                )
        return self._makers.layers

    def _found_makers(self) -> Makers:
        references, session = self.references, self.device.session
        assert references is not None
        if not self.asked.proof:
            return Makers(reason="--no-proof")
        if session.states:
            return Makers(reason=_STATES)
        try:
            return makers_of(session, references.uncompiled)
        except SimulationError as error:
            session.accelerator.power_up()
            return Makers(reason=one_line(error))

    def go_further(self, progress: ProgressCallback) -> None:
        """As :class:`Check`, but not in these cases: with layers, operators on the CPU or an RTL,
        which take longer than the chip's work says; under a policy, which someone fitted to the
        given inputs; if the outputs are proved.
        """
        asked, sets = self.asked, self.cases.calls
        slow = self.tapped or self.rtl is not None or self.whole is not None
        chosen = asked.runs is not None or asked.inputs_kind or asked.policy is not None
        if chosen or slow or self.references is None:
            return
        if not isinstance(sets, DrawnSets) or not _all_pass(self.rows):
            return
        work = int(self.device.session.accelerator.chip.core["work"])
        if self._function_proof(self.references, progress).every_output:
            # Further inputs can show nothing.
            return
        more = replace(sets, runs=sets.runs + further_runs(work))
        for number in range(sets.runs, more.runs):
            progress(f"further inference {number} of {more.runs}", number, more.runs)
            self._run_further(number, Case(more[number], origin=more.origin(number)))
            self.further += 1

    def _run_further(self, number: int, case: Case) -> None:
        """An inference that is judged as the others, and forgotten if it passes."""
        rows, dma, done = self.rows, self.device.dma, self.device.done
        before = len(rows), len(dma), len(done or ())
        self.run(number, case)
        if _all_pass(rows[before[0] :]):
            del rows[before[0] :]
            if not any(row.verdict.failed for row in dma[before[1] :]):
                del dma[before[1] :]
            if done is not None:
                del done[before[2] :]

    def _judge(
        self,
        number: int,
        case: Case,
        inference: Inference,
        port: TensorPort,
        expectation: Expectation | None,
    ) -> OutputRow:
        tensor = inference.outputs[port.name]
        row = row_of(number, port.name, tensor, inference.seconds, case)
        if expectation is None:
            return replace(row, verdict=self.asked.uncompared)
        references, policy = expectation.references, self.asked.policy
        chip, chip_missing = expectation.find_chip(port.name)
        litert, litert_missing = references.find(expectation.litert, port.name)
        row = replace(
            row,
            chip_arithmetic=_compare(tensor, port, chip, Exact()),
            chip_arithmetic_missing=chip_missing,
            reference_assumes=references.assumed(expectation.chip, port.name),
            litert=_compare(tensor, port, litert, policy or LITERT_LAYER),
            litert_missing=litert_missing,
        )
        if policy is not None:
            return _decided_by_litert(row)
        if row.chip_arithmetic is not None:
            row = decided(row, CHIP_ARITHMETIC, row.chip_arithmetic)
            row = _with_assumptions(_explained(row, references.cpu.network))
        else:
            own = expectation.find_litert(port.name)
            reason = f"no chip-arithmetic oracle: {chip_missing}"
            row = _decided_by_litert(replace(row, litert=own or row.litert), reason)
        return _worsened(row, *expectation.problems(port.name))

    def _beside(
        self, rtl: RtlProgram, rows: Sequence[OutputRow], given: TensorMap, number: int
    ) -> list[OutputRow]:
        """The rows of an inference, with what the same one in RTL gave."""
        inference = rtl.infer(given, number)
        cycles = inference.result.statistics["rtl_cycles"]
        ports = {item.port.name: item.port for item in rtl.model.outputs}
        checked = []
        for row in rows:
            found = compare(
                inference.outputs[row.name],
                row.tensor,
                Exact(),
                zero_point=ports[row.name].zero_point,
            )
            row = replace(row, rtl=found, rtl_cycles=cycles)
            if row.verdict is Verdict.RAN:
                # A comparison where the model had none.
                row = replace(row, verdict=Verdict.PASS, decided_by=RTL, policy=found.policy)
            if found.reason:
                row = _worsened(row, f"the RTL differs from the model: {found.reason}")
            checked.append(row)
        return checked

    @property
    def _device(self) -> DeviceProgram:
        return self.device

    def _sides(self) -> dict[str, Any]:
        file = None if self.references is None else self.references.cpu.file
        return {"reference": file, "model": self.asked.model}

    def _found(self) -> dict[str, Any]:
        return {
            "dma": self.device.dma,
            "tensors": self.tensors,
            "divergences": self.divergences,
            "assumptions": self.device.session.assumed,
            "operators": self._coverage,
            "functions": self.functions,
            "warnings": self.warnings,
            **states_figure([self.device.session]),
            **lifted_figure([self.device.session]),
            **({} if self.whole is None else self.whole.figures),
        }

    @property
    def _coverage(self) -> OperatorFigures:
        return OperatorFigures.of(self.operators)

    @property
    def _wrong_dma(self) -> list[DmaFigures]:
        return [row for row in self.device.dma if row.verdict.failed]

    def _verdict(self) -> Verdict:
        """The verdict of the outputs, the inner tensors and the function tables; without a
        reference also of the DMA.

        DMA that is as hinted is no comparison of outputs. A model without outputs is not compared.
        A required reference is required for every operator.
        """
        uncompared = self.asked.uncompared
        found = [row.verdict for row in self.rows] or [uncompared]
        if self._coverage.missing and uncompared.failed:
            found.append(uncompared)
        found += [row.verdict for row in self.tensors]
        refuted = self.proof is not None and self.proof.refuted
        if self.functions.wrong or self.divergences or refuted:
            found.append(Verdict.MISMATCH)
        if self.references is None:
            found += [row.verdict for row in self._wrong_dma]
        return worst(found)

    def _summary(self) -> str:
        parts = [self._count(by, text) for by, text in _SUMMARIES.items()]
        if self.further and _all_pass(self.rows):
            parts.append(f"outputs of {counted(self.further, 'further input set')} pass as well")
        by_rtl = [row.rtl for row in self.rows if row.rtl is not None]
        if by_rtl:
            equal = sum(each.differing == 0 for each in by_rtl)
            stalls = self.asked.stall_seed
            held = "" if stalls is None else f", held back at random from seed {stalls},"
            parts.append(f"{equal} of {len(by_rtl)} outputs of the RTL{held} equal the model's")
        parts.append(_within(self.tensors))
        coverage = self._coverage
        if coverage.policy or coverage.missing:
            parts.append(str(coverage))
        if self.whole is not None:
            parts.append(self.whole.summary(self.rows))
        if self.functions.wrong:
            parts.append(f"{counted(len(self.functions.wrong), 'function table')} wrong")
        if self._wrong_dma:
            parts.append(f"the DMA of {len(self._wrong_dma)} runs differs from the hints")
        else:
            hinted = any(row.hints for row in self.device.dma)
            parts.append("DMA as hinted" if hinted else "there are no DMA hints to compare with")
        alone = self.device.model.alone if self.whole is None else ""
        return "; ".join(filter(None, [*parts, self.device.model.note, alone]))

    def _count(self, decided_by: str, text: str) -> str:
        """How many of the outputs that it decides agree; what the RTL gave is another question."""
        judged = [
            row for row in self.rows if row.decided_by == decided_by and not row.of_whole_model
        ]
        deciding = [
            row.chip_arithmetic if decided_by == CHIP_ARITHMETIC else row.litert for row in judged
        ]
        agree = sum(each is not None and each.passed for each in deciding)
        count = {COMPLETION: len(judged), NOTHING: 0}.get(decided_by, agree)
        return f"{count} of {len(judged)} outputs {text}" if judged else ""


def _within(tensors: Sequence[TensorRow]) -> str:
    """The number of inner tensors that are right, and the first wrong one."""
    if not tensors:
        return ""
    found = Counter(row.finding for row in tensors)
    shown = [each for each in Finding if found[each] or each is not Finding.TAKEN]
    counts = ", ".join(f"{found[finding]} {finding}" for finding in shown)
    wrong = next((row for row in tensors if row.finding is Finding.DIFFERS), None)
    first = "" if wrong is None else f"; the first: {wrong.place}: {wrong.message}"
    return f"inner tensors: {counts}{first}"


def _all_pass(rows: Sequence[OutputRow]) -> bool:
    return all(row.verdict is Verdict.PASS for row in rows)


def _decided_by_litert(row: OutputRow, reason: str = "") -> OutputRow:
    if row.litert is not None:
        return decided(row, LITERT, row.litert, reason)
    message = "; ".join(filter(None, (reason, f"no LiteRT: {row.litert_missing}")))
    return replace(row, verdict=Verdict.REFUSED, decided_by=NOTHING, message=message)


def _worsened(row: OutputRow, *reasons: str) -> OutputRow:
    """The row, a mismatch for these reasons if there are any."""
    if not reasons:
        return row
    message = "; ".join(filter(None, (row.message, *reasons)))
    return replace(row, verdict=worst((row.verdict, Verdict.MISMATCH)), message=message)


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
        "gates to 8 bits (darwinn docs comparison)",
    )


def _compare(
    tensor: AnyArray, port: TensorPort, reference: AnyArray | None, policy: Policy
) -> Comparison | None:
    if reference is None:
        return None
    if reference.size == tensor.size:
        # Graphs differ in dimensions of size 1, never in the order of elements.
        reference = reference.reshape(tensor.shape)
    return compare(tensor, reference, policy, zero_point=port.zero_point)
