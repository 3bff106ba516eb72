"""Times that another runtime has noted, as a profile: ExecuTorch's ETDump, with names of its
ETRecord.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any

from darwinn_formats import executorch
from darwinn_formats.errors import ExecutionError
from darwinn_formats.executorch.etdump import Dump, ProfileEvent, is_dump, load_dump
from darwinn_formats.executorch.etrecord import Record, is_record, load_record
from darwinn_formats.files import Source, content_of, name_of
from darwinn_reference.errors import names_of
from darwinn_reference.executorch.looking import operator_of
from darwinn_reference.executorch.reference import DEFAULT_METHOD

from darwinn_testbench.errors import InputError
from darwinn_testbench.profile.operators import OperatorTimeRow, kinds
from darwinn_testbench.programs.operators import OperatorRow, ProgramPort, view_operators
from darwinn_testbench.report import Report, Verdict, counted, significant
from darwinn_testbench.request.inputs import Inputs

TICKS = 1e9
"""Ticks of a second on computers where the runtime reads a clock: nanoseconds."""

_CALL = "Method::execute"
_WHOLE = ("OPERATOR_CALL", "DELEGATE_CALL")
_KERNEL = "native_call_"


def import_times(
    sources: Sequence[Source],
    program: Source | None = None,
    inputs: Inputs = None,
    *,
    data: Sequence[Source] = (),
    function: str | None = None,
    ticks_per_second: float = TICKS,
) -> Report[OperatorTimeRow]:
    """The times in an ETDump, in the form of ``profile``: medians of its calls without the first.

    ``sources`` are the dump and, for where instructions came from, the record, in any order;
    ``program`` gives operators their full names, and, where the CPU reference executes it, what
    they read and give. ``function`` is the method that was called.

    Raises:
        FormatError, OSError: a file is not valid or cannot be read.
        InputError: no dump among the files, a further one, or no such method; a dump without calls,
            or of another program.
    """
    dump, record = _loaded(sources)
    file = None if program is None else executorch.load(program, external=data)
    known = (file.methods if file else ()) or (record.methods if record else ())
    if function is not None and known and function not in known:
        raise InputError(f"there is no method {function}, only {names_of(known)}")
    method = function or (known[0] if len(known) == 1 else DEFAULT_METHOD)
    calls = list(_calls(dump))
    if not calls:
        raise InputError(f"{name_of(sources[0])}: no call of a method is in it ({_CALL})")
    measured = calls[1:] or calls
    names = _Names(method, file.method(method) if file and method in file.methods else None, record)
    names.refuse_others(calls, name_of(sources[0]))
    rows = tuple(_rows(measured, names, ticks_per_second))
    warnings: list[str] = []
    ports: tuple[ProgramPort, ...] = ()
    if program is not None:
        rows, ports, warnings = _with_values(rows, program, inputs, data, function)
    seconds = median(each.whole for each in measured) / ticks_per_second
    return Report(
        command="import",
        file=name_of(sources[0]),
        rows=rows,
        figures={
            "format": "ExecuTorch",
            "function": method,
            "measured_by": "ExecuTorch's runtime, where the dump was made",
            "warnings": warnings,
            "ports": ports,
            "calls": len(measured),
            "first_seconds": calls[0].whole / ticks_per_second,
            "seconds": seconds,
            "kinds": kinds(rows),
        },
        decided=Verdict.PASS,
        message=f"{significant(1000 * seconds)} ms a call, {counted(len(rows), 'operator')}, "
        f"median of {counted(len(measured), 'call')}",
    )


def _loaded(sources: Sequence[Source]) -> tuple[Dump, Record | None]:
    dumps: list[Dump] = []
    records: list[Record] = []
    for source in sources:
        content = content_of(source)
        if is_record(content):
            records.append(load_record(source))
        elif is_dump(content[:12]):
            dumps.append(load_dump(source))
        else:
            raise InputError(f"{name_of(source)}: neither an ETDump nor an ETRecord")
    if len(dumps) != 1 or len(records) > 1:
        raise InputError("one ETDump is needed, and at most one ETRecord beside it")
    return dumps[0], records[0] if records else None


@dataclass(eq=False)
class _Operator:
    """Ticks of an instruction in a call, or of a part of a delegate (``part``)."""

    instruction: int
    part: str
    kind: str = ""
    executions: int = 0
    ticks: int = 0


@dataclass(eq=False)
class _Call:
    """What a call took, and its operators by instruction and part, in order of instructions."""

    whole: int
    operators: dict[tuple[int, str], _Operator] = field(default_factory=dict)

    def of(self, event: ProfileEvent, part: str = "") -> _Operator:
        key = (event.instruction_id, part)
        return self.operators.setdefault(key, _Operator(*key))


def _calls(dump: Dump) -> Iterator[_Call]:
    """The calls of a dump; loading a method is none."""
    for run in dump.run_data:
        events = run.profiled
        whole = [each.ticks for each in events if each.name == _CALL]
        if not whole:
            continue
        call = _Call(sum(whole))
        for event in events:
            _note(call, event)
        yield call


def _note(call: _Call, event: ProfileEvent) -> None:
    if event.instruction_id < 0:
        return
    if event.part:
        part = call.of(event, event.part)
        part.kind, part.ticks = event.part, part.ticks + event.ticks
        part.executions += 1
    elif event.name.startswith(_KERNEL):
        call.of(event).kind = event.name.removeprefix(_KERNEL)
    elif event.name in _WHOLE:
        found = call.of(event)
        found.kind = found.kind or event.name
        found.ticks += event.ticks
        found.executions += 1


def _operation(kind: str) -> str:
    """A kernel's name without its library and its overload: ``add`` of ``aten::add.out``."""
    return kind.rpartition("::")[2].partition(".")[0]


@dataclass(frozen=True)
class _Names:
    """What operators are called and where they came from."""

    method: str
    plan: Any
    record: Record | None

    def kind(self, each: _Operator) -> str:
        if each.part or not self._is_known(each):
            return each.kind
        return operator_of(self.plan, 0, each.instruction).kind

    def location(self, each: _Operator) -> str:
        found = (
            self.record.origins_of(self.method, each.instruction, each.part) if self.record else ()
        )
        if found:
            return "; ".join(dict.fromkeys(map(str, found)))
        if each.part or not self._is_known(each):
            return ""
        return operator_of(self.plan, 0, each.instruction).location

    def refuse_others(self, calls: Sequence[_Call], file: str) -> None:
        """Refuse times of instructions that the program has not, or has otherwise.

        Raises:
            InputError: the dump is of another program, or of another method.
        """
        if self.plan is None:
            return
        for each in (each for call in calls for each in call.operators.values() if not each.part):
            known = self._is_known(each)
            kind = operator_of(self.plan, 0, each.instruction).kind if known else "not there"
            # Overloads may differ; what has no name of its own is only noted to have run.
            if known and (each.kind in _WHOLE or _operation(each.kind) == _operation(kind)):
                continue
            raise InputError(
                f"{file}: instruction {each.instruction} of {self.method} is {each.kind}, in the "
                f"program {kind}: the dump is of another program, or of another method (--function)"
            )

    def _is_known(self, each: _Operator) -> bool:
        """Whether the program has the instruction."""
        if self.plan is None or not self.plan.chains:
            return False
        return each.instruction < len(self.plan.chains[0].instructions)


def _rows(
    calls: Sequence[_Call], names: _Names, ticks_per_second: float
) -> Iterator[OperatorTimeRow]:
    order: dict[tuple[int, str], _Operator] = {}
    for call in calls:
        order = {**call.operators, **order}
    # An instruction before its parts, which the runtime notes first.
    keys = sorted(order, key=lambda key: (key[0], bool(key[1])))

    def taken(key: tuple[int, str]) -> float:
        ticks = [call.operators[key].ticks if key in call.operators else 0 for call in calls]
        return median(ticks) / ticks_per_second

    totals = {key: taken(key) for key in keys}
    within: dict[int, float] = {}
    for instruction, part in keys:
        if part:
            within[instruction] = within.get(instruction, 0.0) + totals[instruction, part]
    own = {
        key: totals[key] if key[1] else max(0.0, totals[key] - within.get(key[0], 0.0))
        for key in keys
    }
    whole = sum(own.values()) or 1.0
    parts: dict[int, int] = {}
    for number, key in enumerate(keys):
        each = order[key]
        name = f"{names.method}.{each.instruction}"
        if each.part:
            name = f"{name}.{parts.setdefault(key[0], 0)}"
            parts[key[0]] += 1
        yield OperatorTimeRow(
            name=name,
            verdict=Verdict.PASS,
            number=number,
            kind=names.kind(each),
            location=names.location(each),
            depth=int(bool(each.part)),
            has_parts=not each.part and each.instruction in within,
            executions=each.executions,
            inputs=(),
            input_tensors=(),
            output_tensors=(),
            constant_bytes=0,
            seconds=own[key],
            total_seconds=totals[key],
            share=own[key] / whole,
        )


def _with_values(
    rows: Sequence[OperatorTimeRow],
    program: Source,
    inputs: Inputs,
    data: Sequence[Source],
    function: str | None,
) -> tuple[tuple[OperatorTimeRow, ...], tuple[ProgramPort, ...], list[str]]:
    """The rows with what their operators read and give, as a call on the CPU reference shows it."""
    try:
        seen = view_operators(program, inputs, function=function, data=data)
    except (ExecutionError, InputError) as error:
        return tuple(rows), (), [f"what operators read is not known: {error}"]
    known: dict[str, OperatorRow] = {row.name: row for row in seen.rows if not row.depth}
    # Parts of a delegate are the runtime's own: what is read from them is read from the delegate.
    whole = {row.name: row.name.rsplit(".", row.depth)[0] for row in seen.rows}
    joined = []
    for row in rows:
        found = known.get(row.name)
        if found is not None and not row.depth:
            row = replace(
                row,
                inputs=_renamed(found.inputs, whole),
                input_tensors=found.input_tensors,
                output_tensors=found.output_tensors,
                constant_bytes=found.constant_bytes,
                location=row.location or found.location,
            )
        joined.append(row)
    ports: Sequence[ProgramPort] = seen.figures["ports"]
    renamed = tuple(replace(each, operators=_renamed(each.operators, whole)) for each in ports)
    return tuple(joined), renamed, []


def _renamed(names: Sequence[str], whole: dict[str, str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(whole.get(each, each) for each in names))
