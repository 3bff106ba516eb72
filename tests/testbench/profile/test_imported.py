"""`darwinn import`: times of ETDumps, names of ETRecords."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pytest
from darwinn_formats import flatbuffer as fb
from darwinn_formats.errors import FormatError
from darwinn_formats.executorch.builder import ProgramBuilder
from darwinn_formats.executorch.etdump import Dump, Event, ProfileEvent, RunData, load_dump
from darwinn_formats.executorch.etrecord import load_record
from darwinn_reference.executorch import ExecutorchReference
from darwinn_reference.executorch.original import unavailable
from darwinn_reference.protocol import Datum
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.errors import InputError
from darwinn_testbench.profile import original
from darwinn_testbench.profile.imported import import_times
from darwinn_testbench.profile.operator_graph import operator_nodes
from darwinn_testbench.report import Verdict
from hypothesis import given, settings
from hypothesis import strategies as st

F32 = np.float32


def event(name: str, instruction: int, ticks: int, part: str = "") -> Event:
    return Event(ProfileEvent(name, 0, instruction, -1, part, b"", 1000, 1000 + ticks))


def operator(number: int, name: str, ticks: int) -> list[Event]:
    """The events of a kernel: what it computes, and with what the runtime does around it."""
    return [event(f"native_call_{name}", number, ticks - 1), event("OPERATOR_CALL", number, ticks)]


def delegate(number: int, ticks: int, **parts: int) -> list[Event]:
    return [
        *(event("", number, taken, name) for name, taken in parts.items()),
        event("DELEGATE_CALL", number, ticks),
    ]


def call(*operators: list[Event], whole: int) -> RunData:
    events = [each for events in operators for each in events]
    return RunData("Execute", events=(*events, event("Method::execute", -1, whole)))


LOADING = RunData("Default", events=(event("Method::init", -1, 5), Event()))


def dump(*runs: RunData, prefix: bool = True) -> bytes:
    return fb.write(Dump(0, (LOADING, *runs)), size_prefix=prefix)


def program() -> bytes:
    """sin, then a sum with a constant."""
    built = ProgramBuilder()
    method = built.method()
    x = method.input(F32, (2, 3), name="x")
    sine, total = (method.tensor(F32, (2, 3)) for _ in range(2))
    method.call("aten::sin.out", x, outputs=[sine])
    method.call("aten::add.out", sine, built.constant(np.ones((2, 3), F32)), 1, outputs=[total])
    method.output(total)
    return built.build()


def node(handle: int, module: str, line: int) -> dict[str, Any]:
    library = 'File "/env/site-packages/torch/nn/linear.py", line 9, in forward\n    pass'
    return {
        "target": "executorch.exir.dialects.edge.ops.aten.sin.default",
        "metadata": {
            "debug_handle": str(handle),
            "nn_module_stack": f"L__self__,,net.Net;L__self__m,{module},torch.nn.modules.Linear",
            "stack_trace": f'File "net.py", line {line}, in forward\n    x\n  {library}',
        },
    }


def record(**changes: Any) -> bytes:
    tables: dict[str, Any] = {
        "ETRECORD_V0": "",
        "debug_handle_map": {"forward": {"0": 1, "1": [2, 3]}},
        "delegate_map": {"forward": {"1": {"name": "X", "delegate_map": {"gemm": [3]}}}},
        "edge_dialect_exported_program/forward": {
            "graph_module": {
                "graph": {"nodes": [node(1, "a", 4), node(2, "b", 5), node(3, "c", 6)]}
            }
        },
        "edge_dialect_exported_program/forward_state_dict": "tensors",
    }
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, table in (tables | changes).items():
            if table is not None:
                archive.writestr(name, table if isinstance(table, str) else json.dumps(table))
    return stream.getvalue()


def test_times_are_medians_of_the_calls_behind_the_first() -> None:
    calls = [
        call(operator(0, "sin.out", ticks), operator(1, "add.out", 2 * ticks), whole=4 * ticks)
        for ticks in (9000, 100, 300, 200)
    ]
    for prefix in (True, False):
        report = import_times([dump(*calls, prefix=prefix)])
        assert report.verdict is Verdict.PASS
        assert [(row.name, row.kind) for row in report.rows] == [
            ("forward.0", "sin.out"),
            ("forward.1", "add.out"),
        ]
        assert [row.seconds for row in report.rows] == pytest.approx([200e-9, 400e-9])
        assert report.figures["calls"] == 3
        assert report.figures["seconds"] == pytest.approx(800e-9)
        assert report.figures["first_seconds"] == pytest.approx(36e-6)
    (only,) = import_times([dump(calls[0])], ticks_per_second=1e6).rows[:1]
    assert only.seconds == pytest.approx(9e-3)


@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 3), st.integers(2, 1000)), min_size=1, max_size=6),
        min_size=2,
        max_size=5,
    )
)
@settings(deadline=None)
def test_what_runs_often_counts_together(runs: list[list[tuple[int, int]]]) -> None:
    calls = [call(*(operator(n, "op", ticks) for n, ticks in run), whole=9999) for run in runs]
    rows = {row.name: row for row in import_times([dump(*calls)]).rows}
    measured = runs[1:]
    for number in {n for run in measured for n, _ in run}:
        totals = [sum(ticks for n, ticks in run if n == number) for run in measured]
        assert rows[f"forward.{number}"].seconds * 1e9 == pytest.approx(median(totals))
    assert sum(row.share for row in rows.values()) == pytest.approx(1)


def test_parts_of_a_delegate_are_within_it() -> None:
    report = import_times([dump(call(delegate(0, 50, gemm=20, softmax=10), whole=60))])
    whole, gemm, softmax = report.rows
    assert (whole.kind, whole.has_parts, whole.depth) == ("DELEGATE_CALL", True, 0)
    assert whole.total_seconds == pytest.approx(50e-9)
    assert whole.seconds == pytest.approx(20e-9)
    assert [(each.name, each.kind, each.depth) for each in (gemm, softmax)] == [
        ("forward.0.0", "gemm", 1),
        ("forward.0.1", "softmax", 1),
    ]


def test_a_record_says_where_operators_are_from() -> None:
    calls = dump(call(operator(0, "sin.out", 10), delegate(1, 50, gemm=20, other=1), whole=60))
    report = import_times([record(), calls])
    assert [row.location for row in report.rows] == [
        "net.py:4 forward (a Linear)",
        "net.py:5 forward (b Linear); net.py:6 forward (c Linear)",
        "net.py:6 forward (c Linear)",
        "",
    ]
    assert load_record(record()).origins["forward"][1].operation == "aten.sin.default"


def test_a_program_gives_names_and_values() -> None:
    calls = dump(call(operator(0, "sin.out", 10), operator(1, "add.out", 20), whole=40))
    report = import_times([calls], program())
    first, second = report.rows
    assert (first.kind, second.kind) == ("aten::sin.out", "aten::add.out")
    assert second.inputs == ("forward.0",)
    assert second.constant_bytes == 24
    assert [node.key for node in operator_nodes(report)] == [
        "input x",
        "operator:forward.0",
        "operator:forward.1",
        "output output0",
    ]


@pytest.mark.parametrize(
    ("sources", "reason"),
    [
        ([b"what is this"], "neither an ETDump nor an ETRecord"),
        ([record()], "one ETDump is needed"),
        ([dump(), dump()], "one ETDump is needed"),
        ([dump()], "no call of a method"),
    ],
)
def test_what_is_missing_is_said(sources: list[bytes], reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        import_times(sources)


def test_a_method_that_is_not_there() -> None:
    calls = dump(call(operator(0, "sin.out", 10), whole=40))
    with pytest.raises(InputError, match="there is no method other, only forward"):
        import_times([calls], program(), function="other")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"debug_handle_map": "{"}, "debug_handle_map: is no JSON"),
        ({"debug_handle_map": [1]}, "a list where a table belongs"),
        ({"debug_handle_map": {"forward": {"x": 1}}}, "'x' where a number belongs"),
        ({"debug_handle_map": '{"forward": {"0": Infinity}}'}, "inf where a number belongs"),
        ({"delegate_map": {"forward": {"1": 7}}}, "a int where a table belongs"),
        ({"edge_dialect_exported_program/forward": {"graph_module": {}}}, "where a table belongs"),
        ({"ETRECORD_V0": None}, "has no member ETRECORD_V0"),
    ],
)
def test_records_that_are_not_valid(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(FormatError, match=reason):
        load_record(record(**changes))


def test_events_do_not_end_before_they_begin() -> None:
    late = Event(ProfileEvent("OPERATOR_CALL", 0, 0, -1, "", b"", 1000, 999))
    with pytest.raises(FormatError, match="end_time: is 999, before the start at 1000"):
        load_dump(dump(RunData("Execute", events=(late,))))


@pytest.mark.parametrize(
    ("noted", "reason"),
    [
        (operator(0, "cos.out", 10), "0 of forward is cos.out, in the program aten::sin.out"),
        (operator(2, "sin.out", 10), "2 of forward is sin.out, in the program not there"),
        (operator(1, "sin.out", 10), "another program, or of another method"),
    ],
)
def test_a_dump_of_another_program(noted: list[Event], reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        import_times([dump(call(noted, whole=40))], program())


def test_many_operators_take_time_by_their_number() -> None:
    # Each part is summed once: it took minutes when all were looked at for each.
    parts = delegate(0, 10**6, **{f"part{number}": 5 for number in range(20_000)})
    report = import_times([dump(call(parts, whole=10**6))])
    whole, *others = report.rows
    assert (whole.has_parts, len(others)) == (True, 20_000)
    assert whole.seconds == pytest.approx((10**6 - 5 * 20_000) / 1e9)
    assert sum(row.share for row in report.rows) == pytest.approx(1)


def test_csv_of_a_name_that_is_no_text() -> None:
    graph = {"graph_module": {"graph": {"nodes": [node(1, "\udfff", 4)]}}}
    names = record(**{"edge_dialect_exported_program/forward": graph})
    report = import_times([dump(call(operator(0, "sin.out", 10), whole=40)), names])
    assert b"(\\udfff Linear)" in report.to_csv()


def test_damaged_files_are_one_error() -> None:
    random = np.random.default_rng(1)
    whole = dump(call(operator(0, "sin.out", 10), delegate(1, 50, gemm=20), whole=60))
    for data, load in ((whole, load_dump), (record(), load_record)):
        for _ in range(200):
            damaged = bytearray(data)
            for at in random.integers(0, len(data), 3):
                damaged[at] = random.integers(256)
            cut = bytes(damaged[: random.integers(8, len(data) + 1)])
            try:
                load(cut)
            except FormatError:
                continue


def test_import_on_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    paths = [tmp_path / name for name in ("run.etdp", "model.etrecord", "model.pte", "page.html")]
    calls = dump(call(operator(0, "sin.out", 10), operator(1, "add.out", 20), whole=40))
    for path, data in zip(paths, (calls, record(), program()), strict=False):
        path.write_bytes(data)
    run, model, pte, page = map(str, paths)
    words = ["import", run, model, "--program", pte, "--html", page]
    assert run_command_line(words) == 0
    assert "net.py:4 forward (a Linear)" in capsys.readouterr().out
    assert "ExecuTorch's runtime" in paths[3].read_text().replace("&#39;", "'")
    assert run_command_line([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["command"] == "import"
    assert run_command_line(["import", pte]) == 2
    assert "neither an ETDump nor an ETRecord" in capsys.readouterr().err


class Noting(ExecutorchReference):
    """Stands for a runtime that notes times."""

    def noted(self, inputs: Sequence[Datum], *, function: str | None = None, calls: int) -> bytes:
        assert [np.asarray(value).shape for value in inputs] == [(2, 3)]
        return dump(
            *(
                call(operator(0, "sin.out", 10), operator(1, "add.out", 20), whole=40 + number)
                for number in range(calls)
            )
        )


def test_a_profile_of_the_original_runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(original, "open_program", lambda source, **_: Noting(source))
    report = original.profile_original(program(), calls=3, seed=5)
    assert (report.command, report.verdict, report.figures["calls"]) == ("profile", Verdict.PASS, 3)
    assert report.figures["measured_by"].startswith("the original runtime")
    assert report.figures["first_seconds"] == pytest.approx(40e-9)
    assert report.figures["seconds"] == pytest.approx(42e-9)
    assert [row.kind for row in report.rows] == ["aten::sin.out", "aten::add.out"]
    monkeypatch.setattr(original, "open_program", lambda source, **_: ExecutorchReference(source))
    whole = original.profile_original(program(), calls=2)
    assert (len(whole.rows), whole.figures["calls"]) == (0, 2)
    assert whole.figures["seconds"] > 0


@pytest.mark.skipif(bool(unavailable()), reason=unavailable())
def test_a_profile_of_the_installed_runtime() -> None:
    report = original.profile_original(program(), calls=2)
    assert [row.kind for row in report.rows] == ["aten::sin.out", "aten::add.out"]
    assert all(row.executions == 1 for row in report.rows)
    assert 0 < sum(row.seconds for row in report.rows) <= report.figures["seconds"]
