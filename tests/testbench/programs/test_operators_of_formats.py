"""What operators are in IREE modules and BEF files, and that times and sources follow them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import iree_modules
import numpy as np
import pytest
from darwinn_formats import tfrt
from darwinn_reference.executorch import ExecutorchReference
from darwinn_reference.iree import IreeReference
from darwinn_reference.iree.seeing import operation_of
from darwinn_reference.tfrt import TfrtReference
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.compiler import NATIVES
from darwinn_testbench.errors import InputError
from darwinn_testbench.profile.operators import profile_operators
from darwinn_testbench.programs.operators import OperatorRow, view_operators
from darwinn_testbench.programs.recorder import Recorder
from darwinn_testbench.report import Report, Verdict
from sample_files import sample

FLOW = """
func.func @double(%c: !tfrt.chain, %x: i32) -> (!tfrt.chain, i32) {
  %y = tfrt.add.i32 %x, %x
  tfrt.return %c, %y : !tfrt.chain, i32
}
func.func @main(%x: i32, %n: i32) -> i32 {
  %c = tfrt.new.chain
  %d, %y = tfrt.repeat.i32 %n, %c, %x : !tfrt.chain, i32 {
    %e, %z = tfrt.call @double(%c, %x) : (!tfrt.chain, i32) -> (!tfrt.chain, i32)
    tfrt.return %e, %z : !tfrt.chain, i32
  }
  %one = tfrt.constant.i32 1
  %sum = tfrt.add.i32 %y, %one
  tfrt.return %sum : i32
}
"""

TENSORS = """
func.func @main() -> !t.tensor {
  %c = tfrt.new.chain
  %a = tfrt_dht.create_uninitialized_tensor.f32.2 [2 : i64, 3 : i64]
  %d = tfrt_dht.fill_tensor_with_constant.f32 %a, %c 2.0 : f32
  %e = tfrt_dht.print_tensor %a, %d
  tfrt.return %a : !t.tensor
}
"""

SYNC = """
func.func @main(%x: i32) -> i32 attributes {tfrt.sync} {
  %y = tfrt.add.i32 %x, %x
  %z = tfrt.add.i32 %y, %x
  tfrt.return %z : i32
}
"""


def bef(text: str) -> bytes:
    return tfrt.dump(tfrt.from_text(text, "case.mlir"))


def by_kind(report: Report[OperatorRow]) -> dict[str, OperatorRow]:
    return {row.kind: row for row in report.rows}


def test_kernels_run_as_often_as_their_functions_are_called() -> None:
    report = view_operators(bef(FLOW), [{"arg0": np.int32(3), "arg1": np.int32(4)}])
    assert report.verdict is Verdict.PASS, report.message
    rows = {row.name: row for row in report.rows}
    assert rows["double.k1"].kind == "tfrt.add.i32"
    assert rows["double.k1"].executions == 4
    repeat = next(row for row in report.rows if row.kind == "tfrt.repeat.i32")
    assert (repeat.executions, repeat.has_parts, repeat.depth) == (1, True, 0)
    (call,) = (row for row in report.rows if row.kind == "tfrt.call")
    assert call.executions == 4
    assert call.name.startswith("region.k")
    assert rows["double.k1"].depth == call.depth + 1
    last = rows["main.k4"]
    assert last.kind == "tfrt.add.i32"
    assert repeat.name in last.inputs
    assert next(row for row in report.rows if row.kind == "tfrt.constant.i32").name in last.inputs
    (output,) = TfrtReference(bef(FLOW)).run([3, 4], function="main")
    assert output.data == 3 * 2**4 + 1


def test_kernels_that_fill_a_tensor_write_it() -> None:
    report = view_operators(bef(TENSORS), function="main")
    rows = by_kind(report)
    fill = rows["tfrt_dht.fill_tensor_with_constant.f32"]
    assert fill.inputs == (rows["tfrt_dht.create_uninitialized_tensor.f32.2"].name,)
    assert fill.output_tensors == ("float32 2x3",)
    assert rows["tfrt_dht.print_tensor"].inputs == (fill.name,)
    assert report.figures["ports"][-1].operators == (fill.name,)


def test_kernels_of_synchronous_functions_are_seen() -> None:
    report = view_operators(bef(SYNC), [{"arg0": np.int32(3)}])
    first, second = report.rows
    assert second.inputs == (first.name,)


def test_taps_see_tensors_of_synchronous_functions() -> None:
    text = TENSORS.replace("-> !t.tensor {", "-> !t.tensor attributes {tfrt.sync} {")
    seen: list[Any] = []
    TfrtReference(bef(text)).run([], function="main", tap=seen.append)
    assert [entry.operation for entry in seen][-1] == "tfrt_dht.fill_tensor_with_constant.f32"


def test_native_functions_of_a_network_are_operators(tmp_path: Path) -> None:
    sample(tmp_path)
    path = tmp_path / "dense.bef"
    with pytest.raises(InputError, match="does not say its type"):
        view_operators(path, natives=NATIVES)
    (port,) = ExecutorchReference(tmp_path / "dense.pte").inputs()
    assert port.shape is not None
    x = np.zeros([size or 1 for size in port.shape], np.int8)
    report = profile_operators(path, [{"arg0": x}], natives=NATIVES, calls=1)
    assert report.verdict is Verdict.PASS, report.message
    natives = [row for row in report.rows if row.kind == "native function"]
    assert natives
    assert all(row.depth for row in natives)


def test_functions_and_imports_of_a_module_are_operators() -> None:
    source: list[iree_modules.Source] = [
        "start",
        ("call", [iree_modules.IMPORT, [iree_modules.ref(0)], [iree_modules.ref(1)]]),
        ("call", [iree_modules.IMPORT, [iree_modules.ref(1)], [iree_modules.ref(2)]]),
        ("return", [[iree_modules.ref(2)]]),
    ]
    data = iree_modules.module(
        [iree_modules.FunctionSource("f", "0r_r", source)],
        imported_functions=iree_modules.imports(("custom.gain", "0r_r")),
    )
    reference = IreeReference(data, natives={"custom.gain": lambda array: array * 2})
    recorder = Recorder()
    x = np.arange(4, dtype=np.float32)
    (output,) = reference.run([x], observer=recorder)
    np.testing.assert_array_equal(np.asarray(output.data, np.float32), 4 * x)
    (plain,) = reference.run([x])
    np.testing.assert_array_equal(np.asarray(plain.data, np.float32), 4 * x)
    seen = recorder.seen
    assert list(seen) == ["input0", "f", "custom.gain", "output0"]
    assert seen["f"].is_nesting
    assert seen["custom.gain"].executions == 2
    assert set(seen["custom.gain"].sources) == {"input0", "custom.gain"}
    assert list(map(str, seen["custom.gain"].writes)) == ["float32 4"]


def test_dispatches_read_what_was_written_where_they_read(corpus: Path) -> None:
    path = corpus / "vmfb" / "v17" / "conv_stablehlo.vmvx.vmfb"
    report = view_operators(path)
    function, fill, copied, convolution = report.rows
    assert (function.kind, function.has_parts) == ("function", True)
    assert fill.kind == "fill"
    # The image is copied into an array of zeros, which the convolution reads with its margin.
    assert copied.inputs == ("input0",)
    assert convolution.kind == "conv"
    assert set(convolution.inputs) == {fill.name, copied.name}
    assert convolution.output_tensors == ("float32 64",)
    assert convolution.location.startswith("<stdin>:4:8")
    assert report.figures["ports"][-1].operators == (convolution.name,)


@pytest.mark.parametrize(
    ("name", "operation"),
    [
        ("main_dispatch_0_matmul_64x64x64_f32", "matmul"),
        ("conv_dispatch_1_conv_4x4x4x3x3x3_f32", "conv"),
        ("f_dispatch_12_slow_memcpy", "slow_memcpy"),
        ("f_dispatch_3_matmul_like_DxDx16_f32", "matmul_like"),
        ("f_dispatch_7_reduction_1024x9_i8xi32", "reduction"),
        ("entry", "entry"),
    ],
)
def test_what_a_dispatch_computes_follows_from_its_name(name: str, operation: str) -> None:
    assert operation_of(name) == operation


def test_views_of_a_file_as_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "tensors.mlir"
    path.write_text(TENSORS)
    assert run_command_line(["profile", str(path), "--runs", "1", "--json"]) == 0
    assert "tfrt_dht.fill_tensor_with_constant.f32" in capsys.readouterr().out
