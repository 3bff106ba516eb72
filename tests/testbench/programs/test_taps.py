"""`darwinn run --tap` of programs of other formats: values within, written as they come."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from darwinn_formats.executorch import schema
from darwinn_formats.executorch.builder import ProgramBuilder
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.errors import InputError
from darwinn_testbench.programs import taps
from darwinn_testbench.programs.run import run_program
from darwinn_testbench.programs.stored import read_stored
from darwinn_testbench.programs.taps import ValueTap

F32 = np.float32
X = np.linspace(-1, 1, 6, dtype=F32).reshape(2, 3)


def chain() -> bytes:
    """cos(sin(x)), and -x besides, which is no output."""
    program = ProgramBuilder()
    method = program.method()
    x = method.input(F32, (2, 3), name="x")
    sine, cosine, negated = (method.tensor(F32, (2, 3)) for _ in range(3))
    method.call("aten::sin.out", x, outputs=[sine])
    method.call("aten::neg.out", x, outputs=[negated])
    method.call("aten::cos.out", sine, outputs=[cosine])
    method.output(cosine)
    return program.build()


def endless() -> bytes:
    program = ProgramBuilder()
    method = program.method()
    x = method.input(F32, (2,), name="x")
    y = method.tensor(F32, (2,))
    method.call("aten::sin.out", x, outputs=[y])
    method.step(schema.JumpFalseCall(method.argument(False).index, 0))
    method.output(y)
    return program.build()


def found(report_taps: object) -> list[ValueTap]:
    assert isinstance(report_taps, list)
    return report_taps


def test_values_are_named_by_value_or_operation() -> None:
    report = run_program(chain(), [{"x": X}], taps=["aten::sin.*", "aten::neg.out"])
    sine, negated = found(report.figures["taps"])
    np.testing.assert_allclose(sine.data, np.sin(X), rtol=1e-6)
    np.testing.assert_array_equal(negated.data, -X)
    assert (sine.operation, sine.step, sine.shape, sine.dtype) == (
        "aten::sin.out",
        0,
        (2, 3),
        "float32",
    )
    (named,) = found(run_program(chain(), [{"x": X}], taps=[negated.tap]).figures["taps"])
    assert named.sha256 == negated.sha256


def test_a_tap_of_nothing_says_what_there_is() -> None:
    with pytest.raises(InputError, match=r"--tap nothing: no value or operation .*%\d, %\d"):
        run_program(chain(), [{"x": X}], taps=["*", "nothing"])


def test_values_of_a_loop_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(taps, "MOST_VALUES", 20)
    kept: list[str] = []
    with pytest.raises(InputError, match="more than 20 values"):
        run_program(
            endless(),
            [{"x": np.zeros(2, F32)}],
            taps=["*"],
            keep=lambda name, _: kept.append(name),
        )
    assert kept == [f"tap{number}" for number in range(20)]


def test_what_somebody_keeps_is_not_held() -> None:
    kept: dict[str, np.ndarray] = {}
    report = run_program(
        chain(), [{"x": X}], taps=["*"], keep=lambda name, data: kept.update({name: data.copy()})
    )
    values = found(report.figures["taps"])
    assert all(not each.data.size for each in values)
    assert [kept[each.member].tobytes() for each in values]
    assert all(kept[each.member].shape == each.shape for each in values)


def test_an_archive_has_values_and_outputs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, target, x = tmp_path / "chain.pte", tmp_path / "values.npz", tmp_path / "x.npy"
    path.write_bytes(chain())
    np.save(x, np.stack([X, 2 * X]))
    words = ["run", str(path), "--inputs", str(x), "--tap", "*", "--output", str(target)]
    assert run_command_line([*words, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["taps"]
    assert [each["run"] for each in told] == [0, 0, 0, 1, 1, 1]
    with np.load(target) as stored:
        assert set(stored.files) == {f"tap{number}" for number in range(6)} | {"output0"}
        np.testing.assert_allclose(stored["tap3"], np.sin(2 * X), rtol=1e-6)
        assert stored["output0"].shape == (2, 2, 3)
    # Stored outputs are compared without the taps.
    assert [len(each.outputs) for each in read_stored(target, 2)] == [1, 1]
    assert run_command_line(words) == 0
    assert "aten::neg.out" in capsys.readouterr().out


def test_other_forms_and_engines_have_no_room_for_taps(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "chain.pte"
    path.write_bytes(chain())
    words = ["run", str(path), "--tap", "*", "--output", str(tmp_path / "x.npy")]
    assert run_command_line(words) == 2
    assert "an .npz" in capsys.readouterr().err
    assert not (tmp_path / "x.npy").exists()
    missing = ["--inputs", str(tmp_path / "missing.npy"), "--tap", "*"]
    assert run_command_line(["run", str(path), *missing, "--output", str(tmp_path / "y.npz")]) == 2
    assert "missing.npy" in capsys.readouterr().err
    assert not list(tmp_path.glob("*y.npz*"))


def test_a_fault_keeps_what_was_seen() -> None:
    program = ProgramBuilder()
    method = program.method()
    x = method.input(F32, (2,), name="x")
    y = method.tensor(F32, (2,))
    method.call("aten::sin.out", x, outputs=[y])
    method.call("aten::repeat.out", y, [-1], outputs=[y])
    method.output(y)
    report = run_program(program.build(), [{"x": np.zeros(2, F32)}], taps=["*"])
    assert report.verdict.failed
    assert [each.operation for each in found(report.figures["taps"])] == ["aten::sin.out"]


def test_the_range_of_truths_is_of_numbers() -> None:
    program = ProgramBuilder()
    method = program.method()
    x = method.input(F32, (2, 3), name="x")
    y = method.tensor(np.bool_, (2, 3))
    method.call("aten::gt.Scalar_out", x, 0.0, outputs=[y])
    method.output(y)
    (row,) = json.loads(run_program(program.build(), [{"x": X}]).to_json())["rows"]
    assert row["dtype"] == "bool"
    assert [type(row[side]) for side in ("minimum", "maximum")] == [int, int]
    assert (row["minimum"], row["maximum"]) == (0, 1)
