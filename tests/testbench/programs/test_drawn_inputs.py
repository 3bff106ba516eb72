"""Generated inputs of programs: open sizes, indices of tables, and cases that a file brings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from darwinn_formats.executorch.builder import MethodBuilder, ProgramBuilder, Value
from darwinn_reference.executorch import ExecutorchReference
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.programs.probing import smaller_ports
from darwinn_testbench.programs.run import choose_values, inputs_of

F32, I64 = np.float32, np.int64
ROWS = 11


def asked(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, dict[str, Any]]:
    code = run_command_line([*map(str, words), "--json"])
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return code, found


# --- sizes that are bounded -----------------------------------------------------------------------


def adding(*sizes: int) -> bytes:
    """A program of two inputs and their sum, whose sizes are bounds."""
    program = ProgramBuilder()
    method = program.method()
    x, y, z = (method.tensor(F32, sizes, is_bound=True) for _ in range(3))
    method.inputs += [x.index, y.index]
    method.call("aten::add.out", x, y, 1, outputs=[z])
    method.output(z)
    return program.build()


def fixed_product(rows: int, inner: int) -> bytes:
    """A program whose rows are bounded, and whose columns only look as if they were."""
    program = ProgramBuilder()
    method = program.method()
    x = method.input(F32, (rows, inner), is_bound=True)
    y = method.tensor(F32, (rows, 3), is_bound=True)
    weights = program.constant(np.ones((inner, 3), F32))
    method.call("aten::mm.out", x, weights, outputs=[y])
    method.output(y)
    return program.build()


def test_the_upper_bound_is_drawn_and_every_second_time_less(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "add.pte"
    path.write_bytes(adding(8, 3))
    code, found = asked(capsys, "run", path)
    assert (code, found["rows"][0]["shape"]) == (0, [8, 3])
    assert "drawn as 8x3, the upper bound, which the program leaves open" in found["warnings"][0]
    code, found = asked(capsys, "verify", path, "--reference", path)
    assert code == 0
    assert [row["shape"] for row in found["rows"]] == [[8, 3], [4, 2]] * 2 + [[8, 3]]
    assert "8x3, the upper bound, and every second time as 4x2" in found["warnings"][0]


def test_outputs_of_other_sizes_are_not_written_as_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, target = tmp_path / "add.pte", tmp_path / "outputs.npz"
    path.write_bytes(adding(8, 3))
    code, found = asked(capsys, "run", path, "--runs", 2, "--output", target)
    assert code == 2
    assert "has other sizes in each run (8x3, 4x2): --runs 1" in found["message"]
    assert not target.exists()


def test_a_bound_that_is_the_only_size_stays() -> None:
    reference = ExecutorchReference(fixed_product(6, 5))
    ports = inputs_of(reference, None, "")
    smaller = smaller_ports(reference, ports, None)
    assert [port.shape for port in smaller] == [(3, 5)]
    sets = choose_values(None, ports, seed=0, runs=3, smaller=smaller)
    assert [each[ports[0].name].shape for each in sets] == [(6, 5), (3, 5), (6, 5)]


def test_a_reference_of_one_size_decides_the_size(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = ProgramBuilder()
    method = program.method()
    x, y = method.input(F32, (5, 2)), method.input(F32, (5, 2))
    z = method.tensor(F32, (5, 2))
    method.call("aten::add.out", x, y, 1, outputs=[z])
    method.output(z)
    (tmp_path / "fixed.pte").write_bytes(program.build())
    (tmp_path / "open.pte").write_bytes(adding(8, 3))
    words = ("verify", tmp_path / "open.pte", "--reference", tmp_path / "fixed.pte")
    code, found = asked(capsys, *words)
    assert code == 0, found["message"]
    assert {tuple(row["shape"]) for row in found["rows"]} == {(5, 2)}


# --- indices --------------------------------------------------------------------------------------


def embedding(method: MethodBuilder, program: ProgramBuilder, tokens: Value, count: int) -> Value:
    table = program.constant(np.arange(ROWS * 2, dtype=F32).reshape(ROWS, 2))
    result = method.tensor(F32, (count, 2))
    method.call("aten::embedding.out", table, tokens, -1, False, False, outputs=[result])
    return result


def of_tokens(way: str) -> bytes:
    """A program that takes indices of the rows of a table, in several ways."""
    program = ProgramBuilder()
    method = program.method()
    tokens = method.input(I64, (1, 40))
    flat = method.tensor(I64, (40,))
    method.call("aten::view_copy.out", tokens, [-1], outputs=[flat])
    table = program.constant(np.arange(ROWS, dtype=F32))
    result = method.tensor(F32, (40,))
    if way == "embedding":
        result = embedding(method, program, flat, 40)
    elif way == "gather":
        method.call("aten::gather.out", table, 0, flat, False, outputs=[result])
    elif way == "index_select":
        method.call("aten::index_select.out", table, -1, flat, outputs=[result])
    else:
        method.call("aten::index.Tensor_out", table, [flat], outputs=[result])
    method.output(result)
    return program.build()


@pytest.mark.parametrize("way", ["embedding", "gather", "index_select", "index"])
def test_indices_are_drawn_from_the_table_that_reads_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], way: str
) -> None:
    path = tmp_path / "tokens.pte"
    path.write_bytes(of_tokens(way))
    reference = ExecutorchReference(path)
    (port,) = reference.inputs()
    assert port.limit == ROWS
    for drawn in choose_values(None, [port], seed=1, runs=10):
        tokens = drawn[port.name]
        assert 0 <= tokens.min() <= tokens.max() < ROWS
        reference.run([tokens])
    noise = choose_values(None, [port], seed=0, runs=1)[0][port.name]
    assert {*noise.ravel().tolist()} > {0, ROWS - 1}
    assert asked(capsys, "layers", path)[0] == 0


def test_integers_that_index_nothing_take_all_values() -> None:
    program = ProgramBuilder()
    method = program.method()
    x, y = method.input(I64, (100,)), method.tensor(I64, (100,))
    method.call("aten::abs.out", x, outputs=[y])
    method.output(y)
    (port,) = ExecutorchReference(program.build()).inputs()
    assert port.limit is None
    assert np.abs(choose_values(None, [port], seed=0, runs=1)[0][port.name]).max() > 1 << 60


# --- a bundled program ----------------------------------------------------------------------------


def test_a_bundled_program_runs_its_own_cases(
    corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = corpus / "pte" / "bundled_program.bpte"
    code, found = asked(capsys, "verify", path)
    assert code == 0
    expected = [row["sha256"] for row in found["rows"]]
    code, found = asked(capsys, "run", path)
    assert (code, found["random_inputs"]) == (0, False)
    assert [row["sha256"] for row in found["rows"]] == expected
    code, found = asked(capsys, "run", path, "--runs", "2")
    assert (code, found["random_inputs"], len(found["rows"])) == (0, True, 2)
