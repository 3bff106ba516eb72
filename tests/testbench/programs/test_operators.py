"""Operators of programs: which run, how often, whose values they read; `layers` and `profile`."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest
from darwinn_formats.executorch import schema
from darwinn_formats.executorch.builder import ProgramBuilder
from darwinn_formats.executorch.xnnpack import schema as graph_schema
from darwinn_formats.executorch.xnnpack.schema import Datatype
from darwinn_reference.arrays import AnyArray
from darwinn_reference.executorch import ExecutorchReference
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.errors import InputError
from darwinn_testbench.profile.beside import OfOperators, Profile, beside
from darwinn_testbench.profile.operator_graph import drawn_kind, operator_nodes
from darwinn_testbench.profile.operator_page import operator_page
from darwinn_testbench.profile.operators import profile_operators
from darwinn_testbench.profile.profile import profile
from darwinn_testbench.programs.operators import OperatorRow, view_operators
from darwinn_testbench.programs.recorder import Recorder
from darwinn_testbench.report import Report, Verdict
from sample_files import sample
from xnnpack_graphs import GraphBuilder

F32 = np.float32
ROUNDS = 3


def loop() -> bytes:
    """sin of x, then ROUNDS times: y = y + x; a branch that is never taken; 2 * y."""
    program = ProgramBuilder()
    method = program.method()
    x = method.input(F32, (2, 3), name="x")
    y, never, twice = (method.tensor(F32, (2, 3)) for _ in range(3))
    counter, done = method.argument(0), method.argument(False)
    method.call("aten::sin.out", x, outputs=[y])
    method.call("aten::add.out", y, x, 1, outputs=[y])
    method.call("executorch_prim::add.Scalar", counter, 1, returns=counter)
    method.call("executorch_prim::eq.Scalar", counter, ROUNDS, returns=done)
    method.step(schema.JumpFalseCall(done.index, 1))
    method.call("executorch_prim::sub.Scalar", counter, ROUNDS, returns=counter)
    method.step(schema.JumpFalseCall(method.argument(False).index, 8))
    method.call("aten::cos.out", y, outputs=[never])
    weights = program.constant(np.full((2, 3), 2, F32))
    method.call("aten::mul.out", y, weights, outputs=[twice])
    method.output(twice)
    return program.build()


def delegated() -> bytes:
    """|-x| by XNNPACK."""
    graph = GraphBuilder()
    x = graph.input(Datatype.FP32, (2, 4))
    between = graph.value(Datatype.FP32, (2, 4))
    y = graph.output(Datatype.FP32, (2, 4))
    graph.node(graph_schema.Negate(input_id=x, output_id=between))
    graph.node(graph_schema.Abs(input_id=between, output_id=y))
    return graph.program()


def by_name(report: Report[OperatorRow]) -> dict[str, OperatorRow]:
    return {row.name: row for row in report.rows}


def test_operators_of_a_loop() -> None:
    report = view_operators(loop())
    rows = by_name(report)
    assert [row.number for row in report.rows] == list(range(len(rows)))
    assert {name: row.executions for name, row in rows.items()} == {
        "forward.0": 1,
        **{f"forward.{number}": ROUNDS for number in (1, 2, 3, 4)},
        **{f"forward.{number}": 1 for number in (5, 6, 8)},
    }
    assert rows["forward.0"].inputs == ("x",)
    assert set(rows["forward.1"].inputs) == {"forward.0", "forward.1", "x"}
    assert set(rows["forward.3"].inputs) == {"forward.2"}
    assert rows["forward.4"].inputs == ("forward.3",)
    assert rows["forward.8"].inputs == ("forward.1",)
    assert rows["forward.8"].constant_bytes == 24
    assert rows["forward.8"].output_tensors == ("float32 2x3",)
    (x, y) = report.figures["ports"]
    assert (x.name, x.direction, x.tensors) == ("x", "input", ("float32 2x3",))
    assert (y.direction, y.operators) == ("output", ("forward.8",))


def test_nodes_of_a_delegate_are_parts_of_its_call() -> None:
    report = view_operators(delegated())
    rows = by_name(report)
    call, first, second = report.rows
    assert (call.name, call.kind, call.has_parts, call.depth) == (
        "forward.0",
        "XnnpackBackend",
        True,
        0,
    )
    assert [(row.name, row.depth) for row in (first, second)] == [
        ("forward.0.0", 1),
        ("forward.0.1", 1),
    ]
    assert first.inputs == ("input0",)
    assert rows["forward.0.1"].inputs == ("forward.0.0",)
    assert report.figures["ports"][-1].operators == ("forward.0.1",)


def test_taps_see_values_between_nodes_and_may_replace_them() -> None:
    x = np.arange(8, dtype=F32).reshape(2, 4)
    seen: dict[str, np.ndarray] = {}
    reference = ExecutorchReference(delegated())

    def look(entry: object) -> None:
        seen[entry.name] = entry.data.copy()  # type: ignore[attr-defined]

    reference.run([x], tap=look)
    assert list(seen) == ["forward.0%1", "%1"]
    np.testing.assert_array_equal(seen["forward.0%1"], -x)
    replaced = reference.run(
        [x], tap=lambda entry: np.full((2, 4), -7, F32) if "." in entry.name else None
    )
    np.testing.assert_array_equal(replaced[0].data, np.full((2, 4), 7))


def test_results_are_the_same_with_an_observer() -> None:
    x = np.linspace(-1, 1, 6, dtype=F32).reshape(2, 3)
    (output,) = ExecutorchReference(loop()).run([x], observer=Recorder())
    expected: AnyArray = 2 * (np.sin(x) + ROUNDS * x)
    assert isinstance(output.data, np.ndarray)
    assert np.allclose(output.data, expected, rtol=1e-6)


def test_times_add_up() -> None:
    report = profile_operators(delegated(), calls=3)
    call, *nodes = report.rows
    assert call.total_seconds >= call.seconds
    assert all(row.seconds == row.total_seconds >= 0 for row in nodes)
    assert sum(row.share for row in report.rows) == pytest.approx(1)
    assert report.figures["calls"] == 3
    kinds = report.figures["kinds"]
    assert sum(each.seconds for each in kinds) == pytest.approx(
        sum(row.seconds for row in report.rows)
    )


def test_a_call_that_fails_is_a_fault_with_the_operators_before_it() -> None:
    program = ProgramBuilder()
    method = program.method()
    x = method.input(F32, (2,))
    y, z = (method.tensor(F32, (2,)) for _ in range(2))
    method.call("aten::sin.out", x, outputs=[y])
    method.call("aten::repeat.out", y, [-1], outputs=[z])
    method.output(z)
    for report in (view_operators(program.build()), profile_operators(program.build())):
        assert report.verdict is Verdict.FAULT
        assert "aten::repeat.out" in report.message
        assert report.to_json()


def test_one_call_takes_one_set_of_inputs() -> None:
    sets = [{"x": np.zeros((2, 3), F32)}] * 2
    with pytest.raises(InputError, match="2 sets of inputs"):
        view_operators(loop(), sets)


def test_the_graph_has_the_parts_and_not_the_whole() -> None:
    nodes = {node.key: node for node in operator_nodes(view_operators(delegated()))}
    assert set(nodes) == {
        "input input0",
        "operator:forward.0.0",
        "operator:forward.0.1",
        "output output0",
    }
    assert nodes["output output0"].before == ("operator:forward.0.1",)


@pytest.mark.parametrize(
    ("kind", "drawn"),
    [
        ("aten::convolution.out", "conv"),
        ("XNNDepthwiseConv2d", "depthwise"),
        ("main_dispatch_3_conv_2d_nhwc_1x8x8x16", "conv"),
        ("main_dispatch_0_matmul_64x64x64_f32", "dense"),
        ("aten::mm.out", "dense"),
        ("aten::addmm.out", "dense"),
        ("fully_connected", "dense"),
        ("aten::avg_pool2d.out", "average pool"),
        ("tfrt.mul.i32", "multiply"),
        ("aten::add.out", "add"),
        ("aten::permute_copy.out", "move"),
        ("aten::hardtanh.out", ""),
    ],
)
def test_operations_are_drawn_by_the_words_of_their_names(kind: str, drawn: str) -> None:
    assert drawn_kind(kind) == drawn


def test_layers_of_a_program_on_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, graph = tmp_path / "loop.pte", tmp_path / "loop.dot"
    path.write_bytes(loop())
    assert run_command_line(["layers", str(path), "--graph", str(graph), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in printed["rows"]][:2] == ["forward.0", "forward.1"]
    assert '"operator:forward.0" -> "operator:forward.1";' in graph.read_text()
    assert run_command_line(["layers", str(path)]) == 0
    assert "aten::mul.out" in capsys.readouterr().out


def test_profile_of_a_program_on_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, page = tmp_path / "loop.pte", tmp_path / "loop.html"
    path.write_bytes(loop())
    assert run_command_line(["profile", str(path), "--csv", "-", "--runs", "2"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert rows[1]["executions"] == str(ROUNDS)
    assert run_command_line(["profile", str(path), "--html", str(page)]) == 0
    assert "forward.8" in page.read_text()
    assert "aten::mul.out" in capsys.readouterr().out


def test_the_page_of_a_fault_is_written() -> None:
    assert b"forward" in operator_page(profile_operators(loop(), calls=1))


@pytest.mark.parametrize(
    ("command", "options", "said"),
    [
        ("layers", ["--model", "1"], "--model"),
        ("profile", ["--timeline", "t.pftrace"], "--timeline"),
        ("profile", ["--host", "usb2"], "--host"),
    ],
)
def test_options_of_compiled_models_are_refused(
    command: str,
    options: list[str],
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "loop.pte"
    path.write_bytes(loop())
    assert run_command_line([command, str(path), *options]) == 2
    assert f"{said}: only for DarwiNN files" in capsys.readouterr().err


def test_a_report_has_the_verdict_and_where_it_differs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, page = tmp_path / "loop.pte", tmp_path / "loop.html"
    path.write_bytes(loop())
    words = ["report", str(path), "--output", str(page), "--runs", "1", "--json"]
    assert run_command_line([*words, "--reference", str(path)]) == 0
    assert json.loads(capsys.readouterr().out)["verdict"] == "pass"
    text = page.read_text()
    assert "forward.8" in text
    assert "Outputs" in text
    assert run_command_line([*words, "--chip-only"]) == 2
    assert "--chip-only: only for DarwiNN files" in capsys.readouterr().err


def test_compiled_models_and_programs_stand_side_by_side(tmp_path: Path) -> None:
    sample(tmp_path)
    reports: list[Profile | OfOperators] = [
        profile(tmp_path / "dense_edgetpu.tflite"),
        profile_operators(tmp_path / "dense.pte", calls=1),
    ]
    text = beside(reports, ["1.html", "2.html"]).decode()
    assert "multipliers used" in text
    assert "ms a call" in text
    assert "multipliers used" not in beside(reports[1:], ["2.html"]).decode()
