"""`darwinn run` and `darwinn verify` on programs of other formats, and with them as references."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NoReturn
from xml.etree import ElementTree

import numpy as np
import pytest
from darwinn_formats import flatbuffer
from darwinn_formats.errors import ExecutionError, Unavailable
from darwinn_formats.executorch import schema
from darwinn_formats.executorch.builder import ProgramBuilder
from darwinn_reference.executorch import ExecutorchReference
from darwinn_reference.executorch.original import unavailable
from darwinn_reference.iree import why_not
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.comparison.verify import verify
from darwinn_testbench.engine import Engine
from darwinn_testbench.errors import InputError
from darwinn_testbench.programs.run import run_program
from darwinn_testbench.report import Verdict

BEF = """func.func @double(%c: !tfrt.chain, %a: i32) -> (!tfrt.chain, i32) {
  %b = tfrt.add.i32 %a, %a
  tfrt.return %c, %b : !tfrt.chain, i32
}
"""


def add_program(weight: float = 1.0, *, more: float = 1.0) -> bytes:
    """x + weight, then times ``more``."""
    program = ProgramBuilder()
    method = program.method("forward")
    x = method.input(np.float32, (2, 3), name="x")
    y = method.tensor(np.float32, (2, 3))
    z = method.tensor(np.float32, (2, 3))
    method.call(
        "aten::add.out", x, program.constant(np.full((2, 3), weight, np.float32)), 1, outputs=[y]
    )
    method.call(
        "aten::mul.out", y, program.constant(np.full((2, 3), more, np.float32)), outputs=[z]
    )
    method.output(z)
    return program.build()


def command(*arguments: object) -> int:
    return run_command_line([str(each) for each in arguments])


# --- run ------------------------------------------------------------------------------------------


def test_a_program_runs_on_given_and_random_inputs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, data, result = tmp_path / "p", tmp_path / "x.npy", tmp_path / "y.npz"
    path.write_bytes(add_program(2.0))
    np.save(data, np.arange(12, dtype=np.float32).reshape(2, 2, 3))
    assert command("run", path, "--inputs", data, "--output", result, "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert [(row["run"], row["minimum"]) for row in report["rows"]] == [(0, 2.0), (1, 8.0)]
    with np.load(result) as outputs:
        np.testing.assert_array_equal(outputs["output0"], np.arange(12).reshape(2, 2, 3) + 2)
    one, two = (run_program(path, seed=seed, runs=2) for seed in (1, 1))
    assert [row.sha256 for row in one.rows] == [row.sha256 for row in two.rows]
    assert len({row.sha256 for row in one.rows}) == 2


def test_text_of_a_bef_file_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, data = tmp_path / "double.txt", tmp_path / "a.npy"
    path.write_text(BEF)
    np.save(data, np.array([3, -4], np.int32))
    assert command("run", path, "--inputs", data, "--json") == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["minimum"] for row in rows] == [6, -8]


SUITE = """func.func @hello() -> !tfrt.chain {
  %c = tfrt.new.chain
  %x = tfrt.constant.i32 42
  %d = tfrt.print.i32 %x, %c
  tfrt.return %d : !tfrt.chain
}
func.func @broken() -> i32 {
  %c = tfrt.new.chain
  %x = "tfrt_test.fail"() : () -> i32 // expected-error {{something bad happened}}
  tfrt.return %x : i32
}
"""


def test_a_bef_file_of_several_functions_is_run_as_a_test(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "suite.mlir"
    path.write_text(SUITE)
    assert command("run", path) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[2:4] == ["--- Running 'hello':", "int32 = 42"]
    path.write_text(SUITE.partition(" // expected")[0] + SUITE.partition("}}")[2])
    assert command("run", path, "--json") == 1
    report = json.loads(capsys.readouterr().out)
    assert "something bad happened" in report["warnings"][0]
    assert command("run", path, "--function", "hello", "--json") == 0
    assert json.loads(capsys.readouterr().out)["printed"] == "int32 = 42\n"


def test_a_function_has_to_be_there_or_to_be_chosen(
    corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, options in (
        ("pte/g_multi_method.pte", []),
        ("pte/g_multi_method.pte", ["--function", "no"]),
        ("vmfb/v17/state_util.vmvx.vmfb", []),
    ):
        assert command("run", corpus / name, *options) == 2
        assert command("verify", corpus / name, *options) == 2
        assert len(capsys.readouterr().err.splitlines()) == 2


@pytest.mark.parametrize(
    "arguments", [["--until", "layer:1"], ["--strict"], ["--model", "1"], ["--function", "no"]]
)
def test_what_a_program_does_not_have_is_refused(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "p"
    path.write_bytes(add_program())
    assert command("run", path, *arguments) == 2
    error = capsys.readouterr().err
    assert len(error.splitlines()) == 1
    assert arguments[0] in error or "no method no" in error


@pytest.mark.skipif(not unavailable(), reason="the original runtime is installed")
def test_an_original_that_is_not_installed_is_named_with_its_extra(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "p"
    path.write_bytes(add_program())
    assert command("verify", path, "--engine", "original") == 3
    assert "darwinn-testbench[executorch]" in capsys.readouterr().err


def test_there_is_no_original_of_a_chip_or_of_bef(
    samples: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "double.txt"
    path.write_text(BEF)
    for file in (path, samples / "dense.package"):
        assert command("run", file, "--engine", "original") == 3
        assert "original" in capsys.readouterr().err


# --- stored results -------------------------------------------------------------------------------


def test_a_bundle_is_judged_by_its_own_test_cases(
    corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command("verify", corpus / "pte" / "bundled_program.bpte", "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert len(report["rows"]) == 10
    assert {row["decided_by"] for row in report["rows"]} == {"stored outputs"}
    assert not report["random_inputs"]


def bundle(expected: float) -> bytes:
    """A program that adds 1, with the test case that zeros become ``expected``."""

    def stored(value: float) -> schema.BundledValue:
        data = np.full((2, 3), value, np.float32).tobytes()
        return schema.BundledValue(
            schema.BundledTensor(schema.ScalarType.FLOAT32, (2, 3), data, (0, 1))
        )

    case = schema.MethodTestCase((stored(0.0),), (stored(expected),))
    suite = schema.MethodTestSuite("forward", (case,))
    program = flatbuffer.Span(memoryview(add_program(1.0)))
    return flatbuffer.write(schema.BundledProgram(2, (suite,), program))


def test_a_wrong_expectation_of_a_bundle_is_a_mismatch() -> None:
    assert verify(bundle(1.0)).verdict is Verdict.PASS
    wrong = verify(bundle(1.25))
    assert wrong.verdict is Verdict.MISMATCH
    assert "6 of 6 elements differ" in wrong.rows[0].message


STORED = (
    ("pte/d_qint8_io", ""),
    ("pte/f_kv_cache", ""),
    ("pte/f_mutable_init", ""),
    ("pte/i_external_const", ""),
    ("pte/g_multi_method", "get_name"),
    ("vmfb/v15/scalar_ctl.vmvx", ""),
    ("vmfb/v17/state_util.vmvx", ""),
    ("vmfb/v17/matmul_i8_dyn.vmvx", ""),
)


@pytest.mark.parametrize(("name", "function"), STORED)
def test_stored_calls_are_repeated_and_judged(corpus: Path, name: str, function: str) -> None:
    path = corpus / f"{name}.{'pte' if name.startswith('pte') else 'vmfb'}"
    stored = corpus / f"{name}{'.' * bool(function)}{function}.npz"
    report = verify(path, expected=stored, function=function or None)
    assert report.verdict is Verdict.PASS, report.message
    assert report.figures["inferences"] == len({row.run for row in report.rows})


def test_one_wrong_stored_number_is_found(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with np.load(corpus / "pte" / "f_kv_cache.npz") as stored:
        arrays = dict(stored)
    arrays["call2_out0"].flat[3] += 0.01
    np.savez(tmp_path / "wrong.npz", **arrays)
    junit = tmp_path / "result.xml"
    code = command(
        "verify",
        corpus / "pte" / "f_kv_cache.pte",
        "--expected",
        tmp_path / "wrong.npz",
        "--junit",
        junit,
        "--json",
    )
    assert code == 1
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["run"] for row in rows if row["verdict"] == "mismatch"] == [2]
    suite = ElementTree.parse(junit).find("testsuite")
    assert suite is not None
    assert suite.get("failures") == "1"


def test_outputs_of_the_chip_are_compared_with_stored_ones(
    samples: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    device, data, stored = samples / "dense.package", tmp_path / "x.npy", tmp_path / "y.npz"
    np.save(data, np.random.default_rng(2).integers(-128, 128, (3, 1, 1, 200), np.int8))
    assert command("run", device, "--inputs", data, "--output", stored) == 0
    assert command("verify", device, "--inputs", data, "--expected", stored) == 0
    with np.load(stored) as outputs:
        np.save(tmp_path / "wrong.npy", outputs["output"] ^ 1)
    assert command("verify", device, "--inputs", data, "--expected", tmp_path / "wrong.npy") == 1
    capsys.readouterr()
    assert command("verify", device, "--expected", stored) == 2
    error = capsys.readouterr().err
    assert "no pairing fits the shapes" in error
    assert "--map" not in error


@pytest.mark.parametrize("dtype", ["complex64", "U1", "M8[s]", [("a", "i4")]])
@pytest.mark.parametrize("name", ["y.npy", "y.npz", "calls.npz"])
def test_stored_outputs_are_numbers(
    dtype: Any, name: str, samples: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    array: Any = np.zeros((1, 72), dtype)
    key = "call0_out0" if name == "calls.npz" else "output"
    if name.endswith(".npy"):
        np.save(tmp_path / name, array)
    else:
        np.savez(tmp_path / name, **{key: array})
    assert command("verify", samples / "dense.package", "--expected", tmp_path / name) == 2
    assert "data of dtype" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["dense.package", "dense.pte"])
def test_stored_outputs_of_random_inputs_are_verified_by_their_seed(
    name: str, samples: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stored = tmp_path / "y.npz"
    again = ("verify", samples / name, "--expected", stored, "--runs", "2", "--seed")
    assert command("run", samples / name, "--seed", "5", "--runs", "2", "--output", stored) == 0
    assert command(*again, "5") == 0
    capsys.readouterr()
    assert command(*again, "6") == 1
    shown = capsys.readouterr().out
    assert "2 calls, inputs drawn from seed 6" in shown
    assert "next: --seed N or --inputs names the inputs" in shown


@pytest.mark.parametrize("name", ["h_xnnpack_f32", "h_xnnpack_inline"])
def test_a_delegate_of_xnnpack_runs_under_both(corpus: Path, name: str) -> None:
    path, stored = (corpus / "pte" / f"{name}.{suffix}" for suffix in ("pte", "npz"))
    assert command("verify", path, "--expected", stored) == 0
    assert command("verify", path, "--expected", stored, "--engine", "original") == (
        3 if unavailable() else 0
    )


@pytest.mark.skipif(why_not() is not None, reason=why_not() or "")
def test_machine_code_runs_under_its_original(corpus: Path) -> None:
    name = corpus / "vmfb" / "v17" / "conv_stablehlo.llvmcpu"
    report = verify(f"{name}.vmfb", expected=f"{name}.npz", engine=Engine.ORIGINAL)
    assert report.verdict is Verdict.PASS, report.message


# --- references -----------------------------------------------------------------------------------


def test_two_programs_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    left, right = tmp_path / "left", tmp_path / "right"
    left.write_bytes(add_program(1.0))
    right.write_bytes(add_program(1.0))
    assert command("verify", left, "--reference", right, "--runs", 2) == 0
    right.write_bytes(add_program(1.5))
    assert command("verify", left, "--reference", right, "--json", "--runs", 1) == 1
    (row,) = json.loads(capsys.readouterr().out.partition("{\n")[2].join(["{\n", ""]))["rows"]
    assert (row["decided_by"], row["counterpart"]) == ("reference", "output0")
    assert row["comparison"]["differing"] == 6


@pytest.mark.parametrize("network", ["dense", "convolution"])
def test_a_model_before_compilation_is_a_reference_of_a_program(
    samples: Path, network: str
) -> None:
    """The quantised graph in LiteRT against its export: at most a step of the output apart."""
    report = verify(samples / f"{network}.tflite", samples / f"{network}.pte", runs=2)
    assert report.verdict is Verdict.PASS, report.message
    assert {row.policy for row in report.rows} == {"lsb:1"}


def test_native_functions_come_from_a_module_that_is_named(
    samples: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def judged(*options: object) -> int:
        return command(
            "verify", samples / "dense.package", "--reference", samples / "dense.bef", *options
        )

    assert judged() == 3
    assert "darwinn.fully_connected (--natives MODULE gives them)" in capsys.readouterr().err
    own, empty = tmp_path / "own.py", tmp_path / "empty.py"
    own.write_text("from darwinn_testbench.compiler.natives import NATIVES\n")
    empty.write_text("")
    assert judged("--natives", own) == 0
    for missing, reason in ((empty, "no mapping NATIVES"), ("no.such.module", "ModuleNotFound")):
        assert judged("--natives", missing) == 2
        assert reason in capsys.readouterr().err


def test_a_compiled_file_is_no_reference(samples: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for reference in ("convolution_edgetpu.tflite", "convolution.package"):
        code = command(
            "verify", samples / "convolution.package", "--reference", samples / reference
        )
        assert code == 2
        assert "is itself compiled for the Edge TPU" in capsys.readouterr().err


def test_the_judged_model_is_named(samples: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for each in ("verify", "run", "layers", "profile"):
        assert command(each, samples / "dense_chips.package", "--model", 1) == 0
        assert "model 1 of 2 (--model 0 is the other)" in capsys.readouterr().out
    assert command("verify", samples / "dense_chips.package", "--model", 2) == 2
    assert "models are 0 to 1" in capsys.readouterr().err


def test_inspect_numbers_models_and_counts_layers(
    samples: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command("inspect", samples / "dense_chips.package", "--json") == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["model"] for row in rows] == [0, 0, 1, 1]
    layers = {row["type"]: row["program_layers"] for row in rows}
    assert layers == {"PARAMETER_CACHING": 0, "EXECUTION_ONLY": 1}
    assert command("run", samples / "dense.package", "--tap", "layer:7") == 2
    assert "there is no layer 7 in the program: layers are 0 to 1" in capsys.readouterr().err
    assert command("disasm", samples / "dense.package", "--executable", 9) == 2
    assert "there is no executable 9: executables are 0 to 1" in capsys.readouterr().err


def test_names_that_differ_are_mapped(samples: Path, capsys: pytest.CaptureFixture[str]) -> None:
    device, reference = samples / "dense.package", samples / "dense.tflite"
    for maps in (["output=output"], ["output=0", "input=0"]):
        options = [word for text in maps for word in ("--map", text)]
        assert command("verify", device, "--reference", reference, *options) == 0
    # Another tensor of the graph has another size: it is not what the layer is.
    assert command("verify", device, "--reference", reference, "--map", "output=layer_0") == 2
    assert "output" in capsys.readouterr().err
    assert command("verify", device, "--reference", reference, "--map", "output=9") == 2
    assert "there is no output 9, only 0 output" in capsys.readouterr().err


def test_what_is_no_program_is_no_reference(samples: Path, tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"\x05" * 64)
    with pytest.raises(InputError, match="no program of ExecuTorch, IREE, BEF"):
        verify(samples / "dense.pte", path)


def test_a_reference_that_fails_refuses_and_does_not_blame_the_chip(samples: Path) -> None:
    class Failing(ExecutorchReference):
        def run(self, *_: object, **__: object) -> NoReturn:
            raise ExecutionError("it broke")

    with pytest.raises(Unavailable, match="the reference Failing fails: it broke"):
        verify(samples / "dense.package", Failing(samples / "dense.pte"))
