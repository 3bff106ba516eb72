"""Proofs in verifications: verdicts, figures, options, and judgements that are kept."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from darwinn_formats.limits import Limits, limited, limits
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.comparison.verify import verify
from darwinn_testbench.compiler import (
    compile_network,
    edgetpu_model,
    random_convolution,
    random_dense,
    uncompiled,
)
from darwinn_testbench.compiler.classifier import classifier_model, colour_network
from darwinn_testbench.proof import verdict
from darwinn_testbench.proof.prove import FunctionProof
from darwinn_testbench.report import Report, Verdict

NETWORK = random_dense((12, 9, 5), 3)
COMPILED = edgetpu_model(NETWORK, compile_network(NETWORK))
REFERENCE = uncompiled(NETWORK)


pytestmark = pytest.mark.usefixtures("nothing_judged")


def run(*arguments: Any, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any]]:
    code = run_command_line(["verify", *map(str, arguments), "--runs", "1", "--json"])
    return code, json.loads(capsys.readouterr().out)


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    paths = tmp_path / "dense_edgetpu.tflite", tmp_path / "dense.tflite"
    for path, data in zip(paths, (COMPILED, REFERENCE), strict=True):
        path.write_bytes(data)
    return paths


def test_a_proved_model_has_that_verdict(
    files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    code, report = run(files[0], "--reference", files[1], capsys=capsys)
    assert (code, report["verdict"]) == (0, "proved")
    proof = report["proof"]
    assert proof["every_output"] is True
    assert (proof["operators"], proof["judged"]) == (2, "judged")
    assert not proof.get("sampled")
    assert not proof.get("refuted")
    assert [(each["elements"], each["proved"]) for each in proof["outputs"]] == [(5, 5)]
    assert "2 of 2 operators proved for every input" in report["message"]


def test_without_a_proof_it_passes(
    files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    code, report = run(files[0], "--reference", files[1], "--no-proof", capsys=capsys)
    assert (code, report["verdict"]) == (0, "pass")
    assert report["proof"]["judged"] == "not judged"
    code, report = run(files[0], "--reference", files[1], "--require-proof", capsys=capsys)
    assert (code, report["verdict"]) == (0, "proved")


def test_without_hazards_the_function_is_proved(
    files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    code, report = run(files[0], "--reference", files[1], "--no-hazards", capsys=capsys)
    assert (code, report["verdict"]) == (0, "pass")
    assert report["proof"]["every_output"] and "hazards not judged" in report["message"]


def test_what_is_only_sampled_is_not_proved(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Operators on the CPU are run, and no more."""
    paths = tmp_path / "classifier_edgetpu.tflite", tmp_path / "classifier.tflite"
    package = compile_network(colour_network())
    for path, data in zip(paths, (classifier_model(package), classifier_model()), strict=True):
        path.write_bytes(data)
    code, report = run(paths[0], "--reference", paths[1], capsys=capsys)
    assert (code, report["verdict"]) == (0, "pass")
    code, report = run(paths[0], "--reference", paths[1], "--require-proof", capsys=capsys)
    assert (code, report["verdict"]) == (1, "not-proved")


def test_without_a_reference_nothing_is_proved(
    files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    code, report = run(files[0], "--require-proof", capsys=capsys)
    assert (code, report["verdict"]) == (1, "not-proved")
    assert "proof" not in report


def proof_of(report: Report[Any]) -> Any:
    return report.figures["proof"]


def test_a_proof_is_kept_and_made_again_where_it_cannot_be_read(nothing_judged: Path) -> None:
    first, second = (verify(COMPILED, REFERENCE, runs=1) for _ in range(2))
    assert proof_of(first).judged == "judged"
    assert proof_of(second).judged == "kept from before"
    assert first.verdict is second.verdict is Verdict.PROVED
    (path,) = nothing_judged.rglob("function.*")
    whole = path.read_bytes()
    for damaged in (b"", whole[: len(whole) // 2], b"no pickle", b"cos\nabort\n."):
        path.write_bytes(damaged)
        again = verify(COMPILED, REFERENCE, runs=1)
        assert proof_of(again).judged == "judged"
        assert again.verdict is Verdict.PROVED
        assert path.read_bytes() == whole


def test_a_proof_has_more_time_than_an_inference(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that ends in time on values ended in "sampled" on numbers, which take longer."""
    seen: list[Limits] = []

    def prove(*_: object) -> FunctionProof:
        seen.append(limits())
        return FunctionProof(reason="not asked")

    monkeypatch.setattr(verdict, "prove", prove)
    with limited(Limits(seconds=3, memory=1 << 30)):
        verify(COMPILED, REFERENCE, runs=1)
        assert limits() == Limits(seconds=3, memory=1 << 30)
    assert seen == [Limits(seconds=30, memory=1 << 30)]


def test_a_proof_of_other_files_is_another_one(nothing_judged: Path) -> None:
    """Of the same program beside another network nothing is taken from before."""
    verify(COMPILED, REFERENCE, runs=1)
    layers = list(NETWORK.layers)
    weights = layers[0].weights.copy()
    weights[0, 0] ^= 1
    layers[0] = replace(layers[0], weights=weights)
    other = replace(NETWORK, layers=tuple(layers))
    report = verify(edgetpu_model(other, compile_network(other)), uncompiled(other), runs=1)
    assert proof_of(report).judged == "judged"
    assert len(list(nothing_judged.rglob("function.*"))) == 2


def test_a_weight_that_no_input_of_a_run_shows_is_a_mismatch() -> None:
    """The proof finds what the comparison of one inference does not have to."""
    layers = list(NETWORK.layers)
    weights = layers[0].weights.copy()
    weights[0, 0] ^= 1
    layers[0] = replace(layers[0], weights=weights)
    other = replace(NETWORK, layers=tuple(layers))
    faulty = edgetpu_model(NETWORK, compile_network(other))
    report = verify(faulty, REFERENCE, runs=1)
    assert report.verdict is Verdict.MISMATCH
    (refuted,) = proof_of(report).refuted
    assert refuted.difference.constant == "layer_0/weights"
    assert refuted.difference.place == (0, 0)


def test_outputs_in_another_order_are_refuted() -> None:
    """The chip makes each element of the network, and sends it as another one."""
    last = NETWORK.layers[-1]
    order = [1, 0, *range(2, len(last.bias))]
    names = ("weights", "bias", "weight_scales")
    swapped = replace(last, **{name: getattr(last, name)[order] for name in names})
    other = replace(NETWORK, layers=(*NETWORK.layers[:-1], swapped))
    report = verify(edgetpu_model(NETWORK, compile_network(other)), REFERENCE, runs=1)
    (refuted,) = proof_of(report).refuted
    assert (refuted.index, refuted.missing, refuted.elements) == (1, 2, 5)
    assert report.verdict is Verdict.MISMATCH
    assert report.message.startswith("another function: operator 1 FULLY_CONNECTED: 2 of 5")


def test_another_model_is_not_proved() -> None:
    network = random_convolution(4, 8, 4, 4, 0)
    moved = replace(network, input=replace(network.input, zero_point=network.input.zero_point + 9))
    compiled = edgetpu_model(moved, compile_network(moved))
    report = verify(compiled, uncompiled(network), runs=1, anyway=True)
    proof = proof_of(report)
    assert proof.judged == "not judged"
    assert "--anyway" in proof.reason
    assert report.verdict is not Verdict.PROVED
