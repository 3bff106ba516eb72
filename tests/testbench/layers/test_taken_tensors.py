"""One operator without chip arithmetic leaves the others compared byte for byte."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from darwinn_formats import darwinn
from darwinn_reference.errors import ModelError
from darwinn_reference.tflite import chip_arithmetic, litert
from darwinn_reference.tflite.graph import Network, Operator
from darwinn_reference.tflite.rules import rule_of
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.comparison.check import OutputRow
from darwinn_testbench.comparison.verify import verify
from darwinn_testbench.compiler import uncompiled
from darwinn_testbench.compiler.network import random_dense
from darwinn_testbench.compiler.package import compile_network
from darwinn_testbench.layers.check import Finding
from darwinn_testbench.report import Report, Verdict
from faulty_networks import INPUT, LAYERS, NETWORK, with_wrong_weights

Declare = Callable[..., None]

DEVICES: dict[tuple[int, ...], bytes] = {
    wrong: darwinn.dump(compile_network(with_wrong_weights(NETWORK, wrong)))
    for wrong in ((), (0,), (1,), (2,), (0, 2))
}
"""The compiled sample with a wrong byte in the results of these layers."""


@pytest.fixture
def declare(monkeypatch: pytest.MonkeyPatch) -> Declare:
    """Declares operators to have no chip arithmetic."""

    def declared(*operators: int) -> None:
        def rule(network: Network, operator: Operator) -> object:
            return None if operator.index in operators else rule_of(network, operator)

        monkeypatch.setattr(chip_arithmetic, "rule_of", rule)

    return declared


def judge(folder: Path, wrong: tuple[int, ...] = (), **options: Any) -> Report[OutputRow]:
    reference = folder / "model.tflite"
    reference.write_bytes(uncompiled(NETWORK))
    return verify(DEVICES[wrong], reference, [{"input": INPUT}], proof=False, **options)


def how(report: Report[OutputRow]) -> list[str]:
    return [str(each.how) for each in report.figures["operators"].records]


def test_all_operators_are_exact_where_all_can_be_computed(tmp_path: Path) -> None:
    report = judge(tmp_path)
    figures = report.figures["operators"]
    assert (figures.exact, figures.policy, figures.missing) == (3, 0, 0)
    assert str(figures) == "3 of 3 operators compared byte for byte"
    assert "compared byte for byte" not in report.message


@pytest.mark.parametrize("cut", [0, 1, 2])
def test_one_operator_by_policy_and_the_others_byte_for_byte(
    cut: int, tmp_path: Path, declare: Declare
) -> None:
    declare(cut)
    report = judge(tmp_path)
    assert report.verdict is Verdict.PASS
    assert how(report) == ["policy" if k == cut else "exact" for k in range(3)]
    record = report.figures["operators"].records[cut]
    assert f"operator {cut} FULLY_CONNECTED" in record.reason
    assert record.identified
    assert record.layers == (() if cut == 2 else (cut,))
    assert f"2 of 3 operators compared byte for byte, 1 by policy ({cut} FULLY_CONN" in (
        report.message
    )
    (row,) = report.rows
    assert row.decided_by == ("LiteRT" if cut == 2 else "chip arithmetic")


@pytest.mark.parametrize("cut", [0, 1, 2])
@pytest.mark.parametrize("wrong", [0, 1, 2])
def test_a_wrong_byte_before_inside_and_after_is_a_mismatch(
    cut: int, wrong: int, tmp_path: Path, declare: Declare
) -> None:
    declare(cut)
    report = judge(tmp_path, (wrong,))
    assert report.verdict is Verdict.MISMATCH
    (row,) = report.rows
    if wrong == cut and cut < 2:
        # All that follows is computed from the wrong byte: only LiteRT can tell.
        assert row.chip_arithmetic is not None
        assert not row.chip_arithmetic.differing
        assert "against LiteRT from the same bytes" in row.message
        assert f"outside the policy: {cut} FULLY_CONNECTED" in report.message
    if wrong < cut:
        assert ", by FULLY_CONNECTED: 1 of" in row.message
    if wrong > cut:
        assert row.decided_by == "chip arithmetic"
        assert row.chip_arithmetic is not None
        assert row.chip_arithmetic.differing


def test_two_operators_after_each_other(tmp_path: Path, declare: Declare) -> None:
    """Nothing exact follows from the first: LiteRT tells which layer it is."""
    declare(0, 1)
    report = judge(tmp_path)
    assert report.verdict is Verdict.PASS
    assert how(report) == ["policy", "policy", "exact"]
    assert judge(tmp_path, (1,)).verdict is Verdict.MISMATCH
    assert judge(tmp_path, (2,)).verdict is Verdict.MISMATCH


def test_what_litert_lacks_too_is_not_compared_at_all(
    tmp_path: Path, declare: Declare, monkeypatch: pytest.MonkeyPatch
) -> None:
    declare(1)

    class Refusing:
        def __init__(self, *_: object) -> None:
            raise ModelError("model", "it lacks FULLY_CONNECTED")

    monkeypatch.setattr("darwinn_testbench.comparison.operator_coverage.LiteRtPart", Refusing)
    report = judge(tmp_path)
    assert report.verdict is Verdict.PASS
    assert how(report) == ["exact", "missing", "exact"]
    assert "1 not at all (1 FULLY_CONNECTED)" in report.message
    assert "it lacks FULLY_CONNECTED" in report.figures["operators"].records[1].reason
    assert judge(tmp_path, require_reference=True).verdict is Verdict.NOT_COMPARED


def test_a_tensor_that_no_layer_holds_is_passed_over(tmp_path: Path, declare: Declare) -> None:
    """50 outputs are computed as 56: LiteRT then judges two operators together."""
    declare(0)
    network = random_dense([64, 50, 40, 32], 3)
    reference = tmp_path / "model.tflite"
    reference.write_bytes(uncompiled(network))
    device = darwinn.dump(compile_network(network))
    report = verify(device, reference, [{"input": INPUT}], proof=False)
    assert report.verdict is Verdict.PASS
    assert how(report) == ["policy", "policy", "exact"]
    assert all("operator 0 " in each for each in report.figures["operators"].reasons)


def test_layers_and_localise_say_what_was_taken(tmp_path: Path, declare: Declare) -> None:
    declare(1)
    report = judge(tmp_path, (0, 2), layers=True, localise=True)
    findings = [row.finding for row in report.figures["tensors"]]
    assert findings == [Finding.DIFFERS, Finding.TAKEN, Finding.DIFFERS]
    assert "operator 1 FULLY_CONNECTED" in report.figures["tensors"][1].message
    assert [each.name for each in report.figures["divergences"]] == [LAYERS[0], LAYERS[2]]


def test_the_command_says_it_in_a_line_and_in_json(
    tmp_path: Path, declare: Declare, capsys: pytest.CaptureFixture[str]
) -> None:
    declare(1)
    reference, device = tmp_path / "model.tflite", tmp_path / "device"
    reference.write_bytes(uncompiled(NETWORK))
    device.write_bytes(DEVICES[()])
    arguments = ["verify", str(device), "--reference", str(reference)]
    assert run_command_line(arguments) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "operators: 2 of 3 operators compared byte for byte, 1 by policy" in printed
    assert "not byte for byte: operator 1 FULLY_CONNECTED: no chip arithmetic" in printed
    assert run_command_line([*arguments, "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)["operators"]
    assert (figures["exact"], figures["policy"], figures["missing"]) == (2, 1, 0)
    assert [each["how"] for each in figures["records"]] == ["exact", "policy", "exact"]


@pytest.mark.parametrize("operators", [(3,), (7, 8), (26,)], ids=str)
def test_operators_of_a_real_network(
    operators: tuple[int, ...], corpus: Path, declare: Declare
) -> None:
    declare(*operators)
    name = "mobilenet_v1_0.25_128_quant"
    report = verify(
        corpus / "darwinn" / f"{name}_edgetpu.tflite",
        corpus / "tflite" / f"{name}.tflite",
        proof=False,
    )
    assert report.verdict is Verdict.PASS
    chosen = [each for each in report.figures["operators"].records if each.how != "exact"]
    assert tuple(each.operator for each in chosen) == operators
    assert all(each.how == "policy" for each in chosen)


def test_a_part_of_a_model_runs_in_litert(tmp_path: Path) -> None:
    data = uncompiled(NETWORK)
    whole = litert.LiteRtReference(data)
    values = whole.run([INPUT])
    second = whole.network.operators[1]
    part = litert.LiteRtPart(
        data, whole.network, [second.index], [second.inputs[0]], second.outputs
    )
    (output,) = second.outputs
    assert (part.run(values)[output] == values[output]).all()
