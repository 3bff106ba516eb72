"""Does a program compute what another one does, or what is stored?

Either side is a compiled model on the simulated chip, a model before compilation, or a program of
another format. Inputs and outputs are paired (:mod:`pairing`), values are converted as
quantisation and layout ask (:mod:`conversion`), and every output is judged by one declared policy.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from darwinn_formats.errors import ExecutionError, Unavailable
from darwinn_reference.protocol import Datum, Output, Port, Reference, Tap

from darwinn_testbench.chip.inputs import TensorMap
from darwinn_testbench.comparison.asked import Asked
from darwinn_testbench.comparison.cases import Case, borrowed, cases_of
from darwinn_testbench.comparison.check import (
    COMPLETION,
    REFERENCE,
    STORED,
    Check,
    OutputRow,
    decided,
    row_of,
)
from darwinn_testbench.comparison.compare import compare
from darwinn_testbench.comparison.constants import constants_of_both, differing
from darwinn_testbench.comparison.conversion import Comparable, comparable, convert, quantised
from darwinn_testbench.comparison.first_difference import (
    Judge,
    PairingFigures,
    RunTapped,
    first_differences,
)
from darwinn_testbench.comparison.pairing import Layout, Maps, Pair, arrange, pair, parse_maps
from darwinn_testbench.comparison.program_localise import localise_device
from darwinn_testbench.comparison.sides import (
    DeviceProgram,
    TfliteProgram,
    open_reference,
    open_side,
)
from darwinn_testbench.errors import InputError
from darwinn_testbench.layers.localise import Divergence
from darwinn_testbench.policy import FLOAT_REFERENCE, NAMED, Exact, Policy
from darwinn_testbench.programs.run import drawn_sizes, unique
from darwinn_testbench.report import Verdict, worst
from darwinn_testbench.report.progress import ProgressCallback

_IMAGE_RANK = 4
_CHANNELS_LAST = Layout.TO_NHWC.value


@dataclass(frozen=True)
class Attempt:
    """How inputs without a type are given: as integers or floats, and in which order."""

    integers: bool
    layout: Layout


class ProgramCheck(Check):
    """The calls of a program, against a reference, stored outputs, or nothing.

    Raises:
        FormatError, OSError: a file is not valid or cannot be read.
        InputError, PolicyError, ModelError: an argument does not fit.
        Unsupported, Unavailable: a program needs what its engine does not have; it is named.
    """

    noun = "call"

    def __init__(self, asked: Asked) -> None:
        if asked.reference is not None and asked.expected is not None:
            raise InputError("--reference and --expected are two answers: give one")
        if asked.localise and asked.reference is None:
            raise InputError("--localise compares values within two programs: give --reference")
        self.left, self.right = open_side(asked), open_reference(asked)
        super().__init__(asked, self.left.file, cases_of(asked, self.left, self.right), None)
        self._attempt: Attempt | None = None
        self._moved: bool | None = None
        self.calls: list[tuple[str | None, Sequence[Datum]]] = []
        self.references: list[tuple[str | None, Sequence[Datum]]] = []
        self.pairings: list[PairingFigures] = []
        self.constants: list[Divergence] = []

    def begin(self, progress: ProgressCallback) -> None:
        """Compare constants, where both sides are programs; a chip is prepared with its call."""
        if self.right is not None and self.left.device is None:
            self.constants = differing(*constants_of_both(self.left.program, self.right.program))

    def go_further(self, progress: ProgressCallback) -> None:
        """As :class:`Check`: there are no such calls, what they would cost is not known."""

    def close(self) -> None:
        """Nothing is held open."""

    def run(self, number: int, case: Case) -> None:
        """Make a call on both sides and judge its outputs."""
        if case.fresh:
            self.left.program.reset()
        case = self._in_order(case)
        given = self._maps(case.function)
        expected = case.stored if self.right is None else self._expect(case, given)
        ports = self.left.inputs(case.function)
        self.left.prepare()
        start = time.perf_counter()
        values = [case.inputs[port.name] for port in ports]
        outputs = self.left.program.run(values, function=case.function)
        seconds = time.perf_counter() - start
        actual = _realised(outputs, self.left.outputs(case.function))
        self.excitation.add({port.name: np.asarray(data) for port, data in actual}, {})
        rows = {
            port.name: replace(row_of(number, port.name, data, seconds, case), counterpart="")
            for port, data in actual
        }
        if expected is None:
            self.rows += [replace(row, verdict=self.asked.uncompared) for row in rows.values()]
            return
        wanted, data = self._wanted(expected, case), {port.name: data for port, data in actual}
        for each in self._pairs([port for port, _ in actual], [port for port, _ in wanted], given):
            name = each.left.name
            self.rows.append(self._judge(rows[name], each, data[name], wanted[each.position][1]))
        if self.asked.localise:
            self.calls.append((case.function, values))
            self._localise(number)

    def _in_order(self, case: Case) -> Case:
        """A case of drawn images in the order in which the left side takes them, if it does not say
        its types: as the right side has them, or with their channels behind.
        """
        ports = self.left.inputs(case.function)
        if not self.cases.drawn or all(port.dtype is not None for port in ports):
            return case
        moved = replace(case, inputs=_channels_last(case.inputs))
        if self._moved is None:
            self._moved = not self._runs(case) and self._runs(moved)
        return moved if self._moved else case

    def _runs(self, case: Case) -> bool:
        values = [case.inputs[port.name] for port in self.left.inputs(case.function)]
        try:
            self.left.program.run(values, function=case.function)
        except ExecutionError:
            return False
        finally:
            self.left.program.reset()
        return True

    def _wanted(self, expected: Sequence[Output], case: Case) -> list[tuple[Port, Datum]]:
        """What the right side gave, with the steps that its program says."""
        found = _realised(expected, None)
        if self.right is None:
            return found
        ports = self.right.outputs(self._function_of(case))
        if len(ports) != len(found):
            return found
        together = zip(found, ports, strict=True)
        return [(replace(port, steps=said.steps), data) for (port, data), said in together]

    def _function_of(self, case: Case) -> str | None:
        """The function of the right side that a call is compared with."""
        assert self.right is not None
        return case.function if case.function in self.right.program.functions else None

    def _localise(self, number: int) -> None:
        assert self.right is not None
        rows = [row for row in self.rows if row.run == number]
        reference = _again(self.right.program, self.references)
        try:
            if self.left.device is None:
                own = _again(self.left.program, self.calls)
                found, pairing = first_differences(
                    own,
                    reference,
                    number,
                    self._judge_of(rows),
                    reference_follows=isinstance(self.left.program, TfliteProgram),
                    differs=any(row.verdict is Verdict.MISMATCH for row in rows),
                )
                self.pairings.append(pairing)
            else:
                found = self._localise_device(self.left.device, rows, reference, number)
        except ExecutionError as error:
            raise Unavailable(f"--localise: {error}") from error
        wrong = next((row for row in rows if row.verdict is Verdict.MISMATCH), None)
        if wrong is not None and not found:
            found = [_of_output(wrong)]
        self.divergences += found

    def _judge_of(self, rows: Sequence[OutputRow]) -> Judge:
        """How far values may be off: as outputs, which are exact unless one side has floats."""
        exact = all(row.policy == str(Exact()) for row in rows)
        return Judge.of(self.asked.policy, Exact() if exact else FLOAT_REFERENCE)

    def _localise_device(
        self, device: DeviceProgram, rows: Sequence[OutputRow], reference: RunTapped, number: int
    ) -> list[Divergence]:
        _, values = self.calls[-1]
        exact = all(row.policy == str(Exact()) for row in rows)
        return localise_device(
            device.session.program,
            device.taps(values),
            reference,
            [np.asarray(value) for value in self.references[-1][1]],
            [port.shape for port in device.model.tensor_ports],
            self.asked.policy or (Exact() if exact else FLOAT_REFERENCE),
            number,
        )

    def _maps(self, function: str | None) -> Maps:
        return parse_maps(self.asked.maps, self.left.inputs(function), self.left.outputs(function))

    def _expect(self, case: Case, maps: Maps) -> tuple[Output, ...]:
        assert self.right is not None
        function = self._function_of(case)
        ports = self.right.inputs(function)
        pairs = pair(
            self._left_ports(case, ports),
            ports,
            maps.inputs,
            kind="input",
            files=(self.left.file, self.right.file),
            device=self.left.has_layers,
            all_right=True,
            usual=self.left.usual_layout(self.right),
        )
        failures: list[ExecutionError] = []
        for attempt in self._attempts(pairs):
            try:
                outputs = self._run_right(function, _converted(case, pairs, attempt))
            except Unavailable:
                raise
            except ExecutionError as error:
                failures.append(error)
                if self._attempt is None:
                    self.right.program.reset()
                continue
            self._attempt = attempt
            return outputs
        reason = f"the reference {self.right.file} fails: {failures[0]}"
        raise Unavailable(reason) from failures[0]

    def _attempts(self, pairs: Sequence[Pair]) -> Sequence[Attempt]:
        """Ways to give inputs to a right side that does not say their types: the one that it took,
        or those that it may take.
        """
        if self._attempt is not None:
            return [self._attempt]
        untyped = [each for each in pairs if each.right.dtype is None]
        integers = (True, False) if any(each.left.steps for each in untyped) else (False,)
        images = any(each.left.shape and len(each.left.shape) == _IMAGE_RANK for each in untyped)
        moves = (Layout.SAME, Layout.TO_NHWC) if images else (Layout.SAME,)
        return [Attempt(*each) for each in product(integers, moves)]

    def _run_right(self, function: str | None, values: Sequence[Datum]) -> tuple[Output, ...]:
        assert self.right is not None
        outputs = self.right.program.run(values, function=function)
        self.references.append((function, values))
        return outputs

    def _left_ports(self, case: Case, others: Sequence[Port]) -> list[Port]:
        """Inputs of the left side; of one without a type what the other side says of it."""
        own, found = self.left.inputs(case.function), []
        for port, said in zip(own, borrowed(own, others), strict=True):
            data = np.asarray(case.inputs[port.name])
            known = port.dtype is not None or data.dtype != said.dtype
            found.append(port if known else replace(said, shape=data.shape))
        return found

    def _pairs(
        self, actual: Sequence[Port], wanted: Sequence[Port], maps: Maps
    ) -> tuple[Pair, ...]:
        stored = self.right is None
        return pair(
            actual,
            wanted,
            maps.outputs,
            kind="output",
            files=(self.left.file, STORED if self.right is None else self.right.file),
            device=self.left.has_layers and not stored,
            all_right=stored,
            usual=Layout.SAME if self.right is None else self.left.usual_layout(self.right),
        )

    def _judge(self, row: OutputRow, each: Pair, actual: Datum, expected: Datum) -> OutputRow:
        by = STORED if self.right is None else REFERENCE
        row = replace(row, counterpart=each.right.name, decided_by=by)
        tensor, wanted = np.asarray(actual), np.asarray(expected)
        if tensor.dtype.kind not in "fiub" or wanted.dtype.kind not in "fiub":
            same = type(actual) is type(expected) and actual == expected
            return row if same else _mismatch(row, f"{actual!r} instead of {expected!r}")
        asked = self.asked.policy
        # What is stored is of the same program, whose steps say nothing then.
        left = each.left if self.right is not None else replace(each.left, steps=None)
        try:
            back, where = each.layout.back, str(each.right)
            wanted = arrange(wanted, back, tensor.shape, where=where)
            both = comparable(tensor, left, wanted, each.right, asked)
        except InputError as error:
            return _mismatch(row, str(error))
        exactly = self.right is None and tensor.dtype.kind == "f"
        policy = asked or (NAMED["float32"] if exactly else self._default(both, each))
        found = compare(both.actual, both.expected, policy, zero_point=both.zero_point)
        how = ", ".join(filter(None, [both.how, str(back)]))
        return decided(replace(row, comparison=found, conversion=how), by, found)

    def _default(self, both: Comparable, each: Pair) -> Policy:
        """The policy that follows from both sides; LiteRT rounds twice (``LITERT_LAYER``)."""
        sides = [self.left.program, None if self.right is None else self.right.program]
        rounds = any(isinstance(program, TfliteProgram) for program in sides)
        quantised_values = bool(each.left.scale or each.right.scale)
        return FLOAT_REFERENCE if rounds and quantised_values else both.policy

    @property
    def _device(self) -> DeviceProgram | None:
        return self.left.device

    def _sides(self) -> dict[str, Any]:
        asked = self.asked
        return {
            "reference": None if self.right is None else self.right.file,
            "expected": None if asked.expected is None else os.fspath(asked.expected),
            "model": None if self.left.device is None else asked.model,
            "function": asked.function,
            "engine": asked.engine,
        }

    def _found(self) -> dict[str, Any]:
        device = self.left.device
        return {
            "divergences": self._differences,
            **({"pairings": self.pairings} if self.pairings else {}),
            **({"warnings": warnings} if (warnings := self._drawn_sizes()) else {}),
            "assumptions": () if device is None else device.session.assumed,
        }

    def _drawn_sizes(self) -> list[str]:
        drawn = self.cases.drawn and self.left.device is None
        if not drawn:
            return []
        declared = self.left.inputs(self.asked.function)
        return drawn_sizes(declared, self.cases.ports, self.cases.smaller)

    def _verdict(self) -> Verdict | None:
        if not self.rows:
            return self.asked.uncompared
        # An error that the outputs of these inputs do not show is one all the same.
        found = worst(row.verdict for row in self.rows)
        return Verdict.MISMATCH if self._differences and not found.failed else None

    @property
    def _differences(self) -> list[Divergence]:
        """What differs within: what ``--localise`` found, else the constants that differ."""
        return self.divergences or self.constants

    @property
    def _inner_difference(self) -> str:
        """The first value that differs within, where all outputs agree."""
        if not self._differences or any(row.verdict.failed for row in self.rows):
            return ""
        first = self._differences[0]
        return f"{first.where} is not {first.name} of the reference, though all outputs agree"

    def _summary(self) -> str:
        rows, device = self.rows, self.left.device
        if all(row.decided_by == COMPLETION for row in rows):
            head = f"{len(rows)} of {len(rows)} outputs were produced"
            text = f"{head} and compared with nothing (give --reference or --expected)"
        else:
            names = " and ".join(dict.fromkeys(row.policy for row in rows if row.policy))
            passed = sum(row.verdict is Verdict.PASS for row in rows)
            other = STORED if self.right is None else self.right.file
            text = f"{passed} of {len(rows)} outputs agree with {other} ({names or 'exact'})"
        note = "" if device is None else device.model.note
        return "; ".join(filter(None, [self._inner_difference, text, note]))


def _converted(case: Case, pairs: Sequence[Pair], attempt: Attempt) -> list[Datum]:
    """Inputs as the right side takes them; the attempt is about those that have no type there."""
    values: list[Datum] = [None] * len(pairs)
    for each in pairs:
        data = np.asarray(case.inputs[each.left.name])
        given, layout = convert(data, each.left, each.right).values, each.layout
        if each.right.dtype is None:
            stepped = quantised(data, each.left) if attempt.integers else None
            given = given if stepped is None else stepped
            layout = attempt.layout if data.ndim == _IMAGE_RANK and not each.shape else layout
        shape = each.shape or each.right.shape
        values[each.position] = arrange(given, layout, shape, where=str(each.right))
    return values


def _channels_last(inputs: TensorMap) -> TensorMap:
    """Images with their channels behind rows and columns, where they are before them."""
    return {
        name: np.ascontiguousarray(np.transpose(data, _CHANNELS_LAST))
        if data.ndim == _IMAGE_RANK
        else data
        for name, data in inputs.items()
    }


def _mismatch(row: OutputRow, message: str) -> OutputRow:
    return replace(row, verdict=Verdict.MISMATCH, message=message)


def _again(program: Reference, calls: Sequence[tuple[str | None, Sequence[Datum]]]) -> RunTapped:
    """Makes the last of the calls again; the others bring the program's state to where it was."""

    def run(tap: Tap) -> None:
        program.reset()
        for function, values in calls[:-1]:
            program.run(values, function=function)
        function, values = calls[-1]
        program.run(values, function=function, tap=tap)

    return run


def _of_output(row: OutputRow) -> Divergence:
    """An output that differs although nothing that corresponds before it does."""
    comparison = row.comparison
    return Divergence(
        run=row.run,
        first=True,
        name=row.counterpart or "",
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
