"""Programs that cannot be executed here are shown all the same: `layers`, graphs and `inspect`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from darwinn_formats import executorch
from darwinn_formats import flatbuffer as fb
from darwinn_formats.executorch import schema
from darwinn_formats.executorch.builder import ProgramBuilder
from darwinn_testbench.cli.application import run_command_line

F32 = np.float32
SIZES = (2, 3)


def foreign_program() -> bytes:
    """A kernel, a delegate of two inputs, an operator that nobody has, and another delegate."""
    program = ProgramBuilder()
    method = program.method()
    x = method.input(F32, SIZES, name="x")
    a, b, c, d = (method.tensor(F32, SIZES) for _ in range(4))
    place = schema.BackendDelegateDataReference()
    method.delegates += [schema.BackendDelegate(name, place) for name in ("Ethos", "Vgf")]
    method.call("aten::abs.out", x, outputs=[a])
    method.step(schema.DelegateCall(0, (x.index, a.index, b.index)))
    method.call("vendor::special.out", b, a, outputs=[c])
    method.step(schema.DelegateCall(1, (c.index, d.index)))
    method.output(d)
    root, segments = program.program()
    blob = schema.BackendDelegateInlineData(fb.Span(memoryview(b"blob")))
    return executorch.dump(replace(root, backend_delegate_data=(blob,)), segments)


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    path = tmp_path / "foreign.pte"
    path.write_bytes(foreign_program())
    return path


def asked(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, dict[str, Any]]:
    code = run_command_line([*map(str, words), "--json"])
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return code, found


def test_operators_and_delegates_that_are_missing_are_shown_with_their_readers(
    foreign: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    graph = tmp_path / "graph.dot"
    code, found = asked(capsys, "layers", foreign, "--graph", graph)
    assert code == 0
    rows = {row["name"]: row for row in found["rows"]}
    assert [row["kind"] for row in rows.values()] == [
        "aten::abs.out",
        "Ethos",
        "vendor::special.out",
        "Vgf",
    ]
    assert [row["inputs"] for row in rows.values()] == [
        ["x"],
        ["x", "forward.0"],
        ["forward.1", "forward.0"],
        ["forward.2"],
    ]
    (warning,) = found["warnings"]
    assert "not executed" in warning
    missing = "operators and delegates that the reference does not have: "
    assert missing + "Ethos, Vgf, vendor::special.out" in warning
    assert "vendor::special.out" in graph.read_text()


@pytest.mark.parametrize("command", ["run", "profile"])
def test_what_is_missing_is_refused_where_values_or_times_count(
    foreign: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    code, found = asked(capsys, command, foreign)
    assert (code, found["verdict"]) == (3, "refused")
    # All at once, whatever kind it is.
    assert "operators and delegates" in found["message"]
    assert all(name in found["message"] for name in ("vendor::special.out", "Ethos", "Vgf"))


def test_inspect_names_foreign_delegates(foreign: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = asked(capsys, "inspect", foreign)
    assert code == 0
    (method,) = found["description"]["methods"]
    assert [each["id"] for each in method["delegates"]] == ["Ethos", "Vgf"]


@pytest.mark.parametrize("name", ["add", "conv_stablehlo", "matmul_i8_dyn", "tosa_mlp"])
def test_dispatches_of_machine_code_are_those_of_the_same_module_in_bytecode(
    corpus: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """Two compilations of a source differ in the code of dispatches, and little in their order."""
    folder = corpus / "vmfb" / "v17"
    code, found = asked(capsys, "layers", folder / f"{name}.llvmcpu.vmfb")
    assert code == 0
    assert any("machine code" in each or "not executed" in each for each in found["warnings"])
    code, other = asked(capsys, "layers", folder / f"{name}.vmvx.vmfb")
    assert code == 0
    last, reference = found["rows"][-1], other["rows"][-1]
    assert last["kind"] == reference["kind"]
    assert found["ports"][0] == other["ports"][0]
    assert [port["direction"] for port in found["ports"]] == [
        port["direction"] for port in other["ports"]
    ]
    readers = [row for row in found["rows"] if "input0" in row["inputs"]]
    assert readers


NATIVES = """
import numpy as np

NATIVES = {
    "vendor::special.out": lambda left, right: left - right,
    "Ethos": lambda x, a: x + a,
    "Vgf": lambda c: (c * 2,),
}
"""


def test_natives_take_the_place_of_operators_and_delegates(
    foreign: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, found = asked(capsys, "run", foreign)
    assert code == 3
    assert "(--natives MODULE gives them)" in found["message"]
    (tmp_path / "natives.py").write_text(NATIVES)
    values = np.array([[1, -2, 3], [-4, 5, -6]], F32)
    np.save(tmp_path / "x.npy", values)
    output = tmp_path / "out.npz"
    words = ("--natives", tmp_path / "natives.py", "--inputs", tmp_path / "x.npy")
    assert asked(capsys, "run", foreign, *words, "--output", output)[0] == 0
    # x + |x| - |x|, twice.
    (found_values,) = np.load(output).values()
    np.testing.assert_array_equal(found_values, values * 2)
    wrong = NATIVES.replace("(c * 2,)", "(c, c)")
    (tmp_path / "natives.py").write_text(wrong)
    code, found = asked(capsys, "run", foreign, *words)
    assert code == 1
    assert "Vgf gives 2 results, not 1" in found["message"]
