"""Does a program compute what another one does, or what is stored?

Either side is a compiled model on the simulated chip, a model before compilation, or a program of
another format. Inputs and outputs are paired (:mod:`pairing`), values are converted as
quantisation and layout ask (:mod:`conversion`), and every output is judged by one declared policy.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from darwinn_formats.files import Source
from darwinn_sim.errors import SimulationError

from darwinn_testbench.chip.execution import TensorOutputRow, row_fields
from darwinn_testbench.chip.inputs import Inputs
from darwinn_testbench.comparison.cases import Case, cases_of
from darwinn_testbench.comparison.compare import Comparison, compare
from darwinn_testbench.comparison.conversion import convert, default_policy
from darwinn_testbench.comparison.excitation import Excitation
from darwinn_testbench.comparison.pairing import Maps, Pair, arrange, pair, parse_maps
from darwinn_testbench.comparison.program_localise import (
    RunTapped,
    localise_device,
    localise_programs,
)
from darwinn_testbench.comparison.sides import DeviceProgram, Side, open_reference, open_side
from darwinn_testbench.engine import Engine
from darwinn_testbench.errors import ExecutionError, InputError, Unavailable
from darwinn_testbench.layers.localise import Divergence
from darwinn_testbench.policy import FLOAT_REFERENCE, NAMED, Exact, Policy
from darwinn_testbench.programs.handler import Natives
from darwinn_testbench.programs.run import unique
from darwinn_testbench.reference.protocol import Datum, Output, Port, Reference, Tap
from darwinn_testbench.report import Report, Verdict, verdict_of
from darwinn_testbench.report.progress import ProgressCallback, silent

COMPLETION = "completion"
STORED = "stored outputs"
REFERENCE = "reference"
"""What may decide an output's verdict."""


@dataclass(frozen=True, kw_only=True)
class ComparedRow(TensorOutputRow):
    """One output of one call, compared with its counterpart.

    ``conversion`` says what was done to the counterpart's values before they were compared;
    ``comparison`` is None where there was nothing to compare with. ``seconds`` is for the call.
    """

    counterpart: str
    conversion: str
    decided_by: str
    policy: str
    comparison: Comparison | None = None


def verify_against(
    source: Source,
    reference: Source | Reference | None = None,
    inputs: Inputs = None,
    *,
    expected: str | os.PathLike[str] | None = None,
    function: str | None = None,
    maps: Sequence[str] = (),
    model: int = 0,
    companions: Sequence[Source] = (),
    natives: Natives | None = None,
    engine: Engine = Engine.MODEL,
    policy: Policy | None = None,
    seed: int = 0,
    runs: int | None = None,
    inputs_kind: Sequence[str] = (),
    strict: bool = False,
    localise: bool = False,
    require_reference: bool = False,
    assumptions: bool = True,
    progress: ProgressCallback = silent,
) -> Report[ComparedRow]:
    """Run ``source`` and judge every output by a reference, or by stored outputs.

    Args:
        source: a compiled model, or a program of another format.
        reference: a program of any format, not compiled for the Edge TPU, or an object that runs.
        inputs: files, or arrays by the names of ``source``; without them the inputs of
            ``expected``, or ``runs`` sets of the kinds ``inputs_kind`` that are drawn from ``seed``
            (``inputs.choose_inputs``): one of each by default, of stored outputs one.
        expected: stored outputs in place of a reference (``stored.read_stored``). A bundled
            ExecuTorch program needs neither: its test cases are judged.
        function: which function of a program, and of the reference if it has one of this name.
        maps: which input or output of the reference is which: ``NAME=OTHER``, where OTHER is a
            name or an index, and ``:nchw`` or a shape such as ``:1x8`` may follow.
        model, companions: which model of a compiled file, and files compiled together with it.
        natives: native functions of BEF files.
        engine: what executes programs of other formats.
        policy: how far an output may be from its counterpart. Without it integers have to be equal,
            quantised ones within ``policy.FLOAT_REFERENCE`` of a floating point counterpart, and
            floating point outputs within ``float32-reassociated`` (``float32`` of stored ones).
        strict: reading memory that nothing has written is a fault.
        localise: also find the first value that differs (:mod:`localise`).
        require_reference: an output that is compared with nothing fails (NOT_COMPARED, not RAN).
        assumptions: execute values of a compiled model whose meaning is assumed.

    Raises:
        FormatError, OSError: a file is not valid or cannot be read.
        InputError, PolicyError, ModelError: an argument does not fit.
        Unsupported, Unavailable: a program needs what its engine does not have; it is named.
    """
    if reference is not None and expected is not None:
        raise InputError("--reference and --expected are two answers: give one")
    if localise and reference is None:
        raise InputError("--localise compares values within two programs: give --reference")
    left = open_side(
        source,
        function=function,
        engine=engine,
        natives=natives,
        model=model,
        companions=companions,
        seed=seed,
        strict=strict,
        assumptions=assumptions,
    )
    right = None if reference is None else open_reference(reference, engine, natives)
    cases = cases_of(source, left, inputs, expected, function, seed, runs, inputs_kind)
    uncompared = Verdict.NOT_COMPARED if require_reference else Verdict.RAN
    job = _Job(left, right, maps, policy, localise, uncompared)
    begin = time.perf_counter()
    fault: Exception | None = None
    try:
        for number, case in enumerate(cases):
            progress(f"call {number + 1} of {len(cases)}", number, len(cases))
            job.run(number, case)
    except (SimulationError, ExecutionError) as error:
        if isinstance(error, Unavailable):
            raise
        fault = error
    rows = tuple(job.rows)
    return Report(
        command="verify",
        file=left.file,
        rows=rows,
        figures={
            "reference": None if right is None else right.file,
            "expected": None if expected is None else os.fspath(expected),
            "model": None if left.device is None else model,
            "function": function,
            "engine": engine,
            "seed": seed,
            "inferences": len(cases),
            "random_inputs": cases.drawn,
            "policy": None if policy is None else str(policy),
            "seconds": time.perf_counter() - begin,
            "excitation": job.excitation.figures(),
            "divergences": job.divergences,
            "assumptions": () if left.device is None else left.device.session.assumed,
        },
        decided=verdict_of(fault) if fault else None if rows else uncompared,
        message=str(fault) if fault is not None else _summary(rows, right, left),
    )


class _Job:
    """The calls of one verification."""

    def __init__(
        self,
        left: Side,
        right: Side | None,
        maps: Sequence[str],
        policy: Policy | None,
        localise: bool,
        uncompared: Verdict,
    ) -> None:
        self.left, self.right, self.policy, self.localise = left, right, policy, localise
        self.maps, self.uncompared = maps, uncompared
        self.decider = STORED if right is None else REFERENCE
        self.excitation = Excitation()
        self.rows: list[ComparedRow] = []
        self.divergences: list[Divergence] = []
        self.calls: list[tuple[str | None, Sequence[Datum]]] = []
        self.references: list[tuple[str | None, Sequence[Datum]]] = []

    def run(self, number: int, case: Case) -> None:
        """Make a call on both sides and judge its outputs."""
        if case.fresh:
            self.left.program.reset()
        given = self._maps(case.function)
        expected = case.stored
        if self.right is not None:
            expected = self._expect(case, given)
        ports = self.left.inputs(case.function)
        self.left.prepare()
        start = time.perf_counter()
        values = [case.inputs[port.name] for port in ports]
        outputs = self.left.program.run(values, function=case.function)
        seconds = time.perf_counter() - start
        actual = _realised(outputs, self.left.outputs(case.function))
        self.excitation.add({port.name: np.asarray(data) for port, data in actual}, {})
        if expected is None:
            ran = [_row(number, port, data, COMPLETION, seconds, case) for port, data in actual]
            self.rows += [replace(row, verdict=self.uncompared) for row in ran]
            return
        wanted = _realised(expected, None)
        for each in self._pairs(actual, wanted, given, stored=self.right is None):
            (data,) = (data for port, data in actual if port is each.left)
            row = _row(number, each.left, data, self.decider, seconds, case)
            self.rows.append(self._judge(row, each, data, wanted[each.position][1]))
        if self.localise and self.right is not None:
            self.calls.append((case.function, values))
            self._localise(number)

    def _localise(self, number: int) -> None:
        assert self.right is not None
        rows = [row for row in self.rows if row.run == number]
        reference = _again(self.right.program, self.references)
        try:
            if self.left.device is None:
                own = _again(self.left.program, self.calls)
                found = localise_programs(own, reference, number)
            else:
                found = self._localise_device(self.left.device, rows, reference, number)
        except ExecutionError as error:
            raise Unavailable(f"--localise: {error}") from error
        wrong = next((row for row in rows if row.verdict is Verdict.MISMATCH), None)
        if wrong is not None and not found:
            found = [_of_output(wrong)]
        self.divergences += found

    def _localise_device(
        self, device: DeviceProgram, rows: Sequence[ComparedRow], reference: RunTapped, number: int
    ) -> list[Divergence]:
        _, values = self.calls[-1]
        exact = all(row.policy == str(Exact()) for row in rows)
        return localise_device(
            device.session.program,
            device.taps(values),
            reference,
            [np.asarray(value) for value in self.references[-1][1]],
            [port.shape for port in device.model.tensor_ports],
            self.policy or (Exact() if exact else FLOAT_REFERENCE),
            number,
        )

    def _maps(self, function: str | None) -> Maps:
        return parse_maps(self.maps, self.left.inputs(function), self.left.outputs(function))

    def _expect(self, case: Case, maps: Maps) -> tuple[Output, ...]:
        assert self.right is not None
        function = case.function if case.function in self.right.program.functions else None
        ports = self.right.inputs(function)
        pairs = pair(
            self.left.inputs(case.function),
            ports,
            maps.inputs,
            kind="input",
            files=(self.left.file, self.right.file),
            device=self.left.device is not None,
            all_right=True,
        )
        values: list[Datum] = [None] * len(ports)
        for each in pairs:
            given = convert(np.asarray(case.inputs[each.left.name]), each.left, each.right).values
            shape = each.shape or each.right.shape
            values[each.position] = arrange(given, each.layout, shape, where=str(each.right))
        self.references.append((function, values))
        try:
            return self.right.program.run(values, function=function)
        except Unavailable:
            raise
        except ExecutionError as error:
            raise Unavailable(f"the reference {self.right.file} fails: {error}") from error

    def _pairs(
        self,
        actual: Sequence[tuple[Port, Datum]],
        wanted: Sequence[tuple[Port, Datum]],
        maps: Maps,
        *,
        stored: bool,
    ) -> tuple[Pair, ...]:
        return pair(
            [port for port, _ in actual],
            [port for port, _ in wanted],
            maps.outputs,
            kind="output",
            files=(self.left.file, STORED if self.right is None else self.right.file),
            device=self.left.device is not None and not stored,
            all_right=stored,
        )

    def _judge(self, row: ComparedRow, each: Pair, actual: Datum, expected: Datum) -> ComparedRow:
        row = replace(row, counterpart=each.right.name)
        tensor, wanted = np.asarray(actual), np.asarray(expected)
        if tensor.dtype.kind not in "fiub" or wanted.dtype.kind not in "fiub":
            same = type(actual) is type(expected) and actual == expected
            return (
                row
                if same
                else replace(
                    row, verdict=Verdict.MISMATCH, message=f"{actual!r} instead of {expected!r}"
                )
            )
        try:
            converted = convert(wanted, each.right, each.left)
            values = arrange(
                converted.values, each.layout.back, tensor.shape, where=str(each.right)
            )
        except InputError as error:
            return replace(row, verdict=Verdict.MISMATCH, message=str(error))
        policy = self.policy or (
            NAMED["float32"]
            if self.right is None and tensor.dtype.kind == "f"
            else default_policy(converted)
        )
        found = compare(tensor, values, policy, zero_point=each.left.zero_point or 0)
        how = [converted.how, str(each.layout.back)]
        return replace(
            row,
            verdict=Verdict(found.verdict),
            message=found.reason,
            policy=found.policy,
            comparison=found,
            conversion=", ".join(filter(None, how)),
        )


def _again(program: Reference, calls: Sequence[tuple[str | None, Sequence[Datum]]]) -> RunTapped:
    """Makes the last of the calls again; the others bring the program's state to where it was."""

    def run(tap: Tap) -> None:
        program.reset()
        for function, values in calls[:-1]:
            program.run(values, function=function)
        function, values = calls[-1]
        program.run(values, function=function, tap=tap)

    return run


def _of_output(row: ComparedRow) -> Divergence:
    """An output that differs although nothing that corresponds before it does."""
    comparison = row.comparison
    return Divergence(
        run=row.run,
        first=True,
        name=row.counterpart,
        operation="what follows the last value that both sides have",
        where=f"output {row.name}",
        elements=row.tensor.size,
        differing=row.tensor.size if comparison is None else comparison.outside,
        max_difference=0 if comparison is None else comparison.max_difference,
    )


def _realised(outputs: Sequence[Output], ports: Sequence[Port] | None) -> list[tuple[Port, Datum]]:
    """Ports of results, with the types and shapes that they turned out to have."""
    named = ports or unique([Port(each.name, None, None) for each in outputs])
    found: list[tuple[Port, Datum]] = []
    for port, each in zip(named, outputs, strict=True):
        data = each.data
        known: dict[str, Any] = {"scale": each.scale, "zero_point": each.zero_point}
        if data is not None and not isinstance(data, str):
            array = np.asarray(data)
            known |= {"dtype": array.dtype, "shape": array.shape}
        found.append((replace(port, **known), data))
    return found


def _row(
    number: int, port: Port, data: Datum, decided_by: str, seconds: float, case: Case
) -> ComparedRow:
    return ComparedRow(
        **row_fields(number, port.name, np.asarray(data), seconds, case.origin),
        counterpart="",
        conversion="",
        decided_by=decided_by,
        policy="",
    )


def _summary(rows: Sequence[ComparedRow], right: Side | None, left: Side) -> str:
    """One line: what was checked, and with what result."""
    by = {row.decided_by for row in rows}
    if by <= {COMPLETION}:
        head = f"{len(rows)} of {len(rows)} outputs were produced"
        text = f"{head} and compared with nothing (give --reference or --expected)"
    else:
        policies = Counter(row.policy for row in rows if row.policy)
        names = " and ".join(policies) or "exact"
        passed = sum(row.verdict is Verdict.PASS for row in rows)
        other = STORED if right is None else right.file
        text = f"{passed} of {len(rows)} outputs agree with {other} ({names})"
    return "; ".join(filter(None, [text, _model_note(left)]))


def _model_note(left: Side) -> str:
    return "" if left.device is None else left.device.model.note
