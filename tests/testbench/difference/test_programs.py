"""Two programs of another format: what differs, what it is called, and the gates for a server."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.compiler import (
    NATIVES,
    DenseNetwork,
    bef_file,
    executorch_program,
    random_convolution,
    random_dense,
)
from darwinn_testbench.difference.difference import difference
from darwinn_testbench.difference.gates import Gate
from darwinn_testbench.difference.programs import GAP, PORTABLE, SHARE
from darwinn_testbench.difference.rows import Aspect, DifferenceRow
from darwinn_testbench.errors import InputError
from darwinn_testbench.report import Report, Verdict
from sample_files import sample

NETWORK = random_dense((20, 12, 5), 3)


def with_weight(network: DenseNetwork, value: int) -> DenseNetwork:
    """The network with another number as one weight of its last layer."""
    last = network.layers[-1]
    weights = last.weights.copy()
    weights[2, 7] = value
    return replace(network, layers=(*network.layers[:-1], replace(last, weights=weights)))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("programs")
    networks = {"old": with_weight(NETWORK, -100), "new": with_weight(NETWORK, 100)}
    for name, network in networks.items():
        (folder / f"{name}.pte").write_bytes(executorch_program(network))
        (folder / f"{name}.bef").write_bytes(bef_file(network))
    other = random_convolution(6, 5, 4, 3, 0)
    (folder / "other.pte").write_bytes(executorch_program(other))
    return folder


def different(report: Report[DifferenceRow]) -> dict[str, tuple[object, object]]:
    """Figures that differ, by aspect and name."""
    return {f"{row.aspect}: {row.name}": (row.a, row.b) for row in report.rows if not row.equal}


def test_a_weight_that_is_another_is_found_with_what_follows(files: Path) -> None:
    report = difference(files / "old.pte", files / "new.pte")
    assert report.verdict is Verdict.MISMATCH
    assert {row.aspect for row in report.rows if not row.equal} == {
        Aspect.CONSTANTS,
        Aspect.OUTPUTS,
    }
    (constant,) = (r for r in report.rows if r.aspect is Aspect.CONSTANTS and not r.equal)
    assert constant.change == "1 of 60 bytes differ (int8 5x12)"
    gaps = [row.b for row in report.rows if row.name.endswith(GAP)]
    assert len(gaps) == 5
    assert max(float(gap or 0) for gap in gaps) > 0


@pytest.mark.parametrize(
    "name",
    [
        "pte/b_linear_relu.pte",
        "pte/h_xnnpack_f32.pte",
        "pte/g_multi_method.pte",
        "vmfb/v17/add.vmvx.vmfb",
        "vmfb/v15/qmatmul_const.vmvx.vmfb",
    ],
)
def test_a_program_does_not_differ_from_itself(corpus: Path, name: str) -> None:
    path = corpus / name
    report = difference(path, path, only=[each for each in Aspect if each in SHOWN])
    assert report.verdict is Verdict.PASS, different(report)
    assert {row.aspect for row in report.rows} >= SHOWN - {Aspect.MEMORY}


SHOWN = {
    Aspect.FUNCTIONS,
    Aspect.OPERATORS,
    Aspect.DELEGATES,
    Aspect.SIZES,
    Aspect.MEMORY,
    Aspect.CONSTANTS,
}
"""Aspects that nothing is executed for."""


def test_operators_delegates_and_memory_of_other_networks(corpus: Path, files: Path) -> None:
    report = difference(files / "old.pte", corpus / "pte" / "h_xnnpack_f32.pte", only=list(SHOWN))
    found = different(report)
    assert found[f"delegates: {PORTABLE}"] == (13, 0)
    assert found[f"delegates: {SHARE}"] == (0.0, 100.0)
    assert found["delegates: XnnpackBackend"] == (0, 1)
    assert found["operators: Conv2d"] == (0, 2)
    assert found["operators: aten::addmm.out"] == (2, 0)
    assert found["functions: forward, input 0"][1] == "input0 (float32 1x3x16x16)"
    size = (files / "old.pte").stat().st_size
    assert found["sizes: file"] == (size, (corpus / "pte" / "h_xnnpack_f32.pte").stat().st_size)


def test_bef_files_are_compared_with_their_natives(files: Path) -> None:
    values = [{"arg0": np.arange(20, dtype=np.int8).reshape(1, 20)}]
    one, two = files / "old.bef", files / "new.bef"
    same = difference(one, one, natives=NATIVES, inputs=values)
    assert same.verdict is Verdict.PASS, different(same)
    other = difference(one, two, natives=NATIVES, inputs=values)
    assert {row.aspect for row in other.rows if not row.equal} == {
        Aspect.CONSTANTS,
        Aspect.OUTPUTS,
    }


def test_what_cannot_be_executed_is_compared_all_the_same(corpus: Path) -> None:
    path = corpus / "vmfb" / "v17" / "add.llvmcpu.vmfb"
    report = difference(path, path, only=list(SHOWN))
    assert report.verdict is Verdict.PASS
    assert any("embedded-elf" in row.name for row in report.rows)


GATES = [
    (["size=0", "portable=0", "constants=1", "memory=0%"], 0),
    (["constants=0"], 1),
    (["gap=0"], 1),
    (["gap=1000"], 0),
]


@pytest.mark.parametrize(("gates", "code"), GATES)
def test_gates_alone_decide(
    files: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    gates: list[str],
    code: int,
) -> None:
    junit = tmp_path / "result.xml"
    words = [each for gate in gates for each in ("--gate", gate)]
    command = ["diff", str(files / "old.pte"), str(files / "new.pte"), *words, "--json"]
    assert run_command_line([*command, "--junit", str(junit)]) == code
    found = json.loads(capsys.readouterr().out)
    assert found["verdict"] == ("mismatch" if code else "pass")
    rows = [row for row in found["rows"] if row["aspect"] == "gates"]
    assert [row["verdict"] for row in rows] == ["mismatch" if code else "pass"] * len(gates)
    cases = ElementTree.parse(junit).getroot().iter("testcase")
    names = {case.get("name"): case.find("failure") for case in cases}
    for row in rows:
        assert (names[f"gates {row['name']}"] is not None) == bool(code)
    # Weights and outputs differ; a server must not count that as a failure.
    assert {name for name, failure in names.items() if failure is not None} == {
        f"gates {row['name']}" for row in rows if code
    }


def test_a_gate_of_what_is_not_known_does_not_hold(files: Path) -> None:
    report = difference(files / "old.pte", files / "other.pte", gates=["gap=1", "size=900%"])
    gap, size = (row for row in report.rows if row.aspect is Aspect.GATES)
    assert (gap.verdict, size.verdict) == (Verdict.MISMATCH, Verdict.PASS)
    assert gap.message.startswith("not known: inputs cannot be paired")
    assert report.verdict is Verdict.MISMATCH


@pytest.mark.parametrize("gate", ["speed=1", "size", "size=x", "size=-1", "size=1%%"])
def test_a_gate_that_is_none_is_refused(files: Path, gate: str) -> None:
    with pytest.raises(InputError, match=f"--gate .*expected NAME=LIMIT.*{', '.join(Gate)}"):
        difference(files / "old.pte", files / "new.pte", gates=[gate])


def test_what_does_not_fit_the_files_is_refused(
    files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sample(tmp_path)
    compiled = str(tmp_path / "dense_edgetpu.tflite")
    old, bef = str(files / "old.pte"), str(files / "old.bef")
    refused = {
        (old, bef): "diff compares programs of one format",
        (old, compiled): "no program of another format",
        (old, old, "--only", "cycles"): "--only cycles: such files are compared in functions",
        (old, old, "--reference", compiled): "--reference is for compiled models",
        (compiled, compiled, "--gate", "size=1"): "--gate is for programs of other formats",
        (compiled, compiled, "--only", "operators"): "--only operators: such files",
    }
    for words, reason in refused.items():
        assert run_command_line(["diff", *words]) == 2
        assert reason in capsys.readouterr().err
