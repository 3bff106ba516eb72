"""Verification on real models: right models pass, and what is made wrong is found and named."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from corpus_models import by_night
from darwinn_formats.darwinn import (
    DmaHints,
    Executable,
    ExecutableType,
    FormatError,
    MultiExecutable,
    Package,
    dump,
    load,
)
from darwinn_reference.errors import ModelError
from darwinn_reference.tflite import rules
from darwinn_sim.isa.codec import decode, encode
from darwinn_sim.isa.table import BY_NAME
from darwinn_testbench.chip.dma_check import check_dma
from darwinn_testbench.comparison.verify import verify
from darwinn_testbench.errors import InputError
from darwinn_testbench.policy import LsbBudget
from darwinn_testbench.report import Verdict

NAMED = "mobilenet_v1_0.25_128_quant"
GABOR = "gabor_64x64_7k_4o_2s"
DENSE = "dense_256"
LARGE = ("mobilenet_v1_1.0_224_quant_embedding_extractor", "mobilenet_v2_1.0_224_quant")
MODELS = (
    DENSE,
    "dense_1024",
    GABOR,
    "looming_64x64_3x3",
    "bright_16x16",
    "bright_64x64",
    "mobilenet_v1_0.25_128_quant",
    "mobilenet_v1_0.25_128_quant_2019",
    "mobilenet_v1_0.5_160_quant",
    *LARGE,
)
"""Models of which every output byte must equal the chip arithmetic."""


def compiled(corpus: Path, name: str) -> Path:
    return corpus / "darwinn" / f"{name}_edgetpu.tflite"


def uncompiled(corpus: Path, name: str) -> Path:
    return corpus / "tflite" / f"{name}.tflite"


def package_with(
    source: Path | bytes, change: Callable[[Executable], Executable], kind: ExecutableType
) -> bytes:
    """The package of a real model, with its executable of one type changed."""
    (package,) = load(source).packages
    executables = tuple(change(each) if each.type is kind else each for each in package.executables)
    changed: Package = dataclasses.replace(
        package, serialized_multi_executable=MultiExecutable(executables)
    )
    return dump(changed)


def with_field(
    source: Path | bytes, instruction: str, field: str, value: int, kind: ExecutableType
) -> bytes:
    """The package of the dense model with one field of all instructions of a name changed."""

    def change(executable: Executable) -> Executable:
        chunks = []
        for bitstream in executable.instruction_bitstreams:
            program = decode(bitstream.bitstream)
            columns = program.columns.get(BY_NAME[instruction].opcode)
            if columns is not None:
                columns[field].reshape(len(columns[field]), -1)[:, 0] = value
            chunks.append(dataclasses.replace(bitstream, bitstream=encode(program)))
        return dataclasses.replace(executable, instruction_bitstreams=tuple(chunks))

    whole = compiled(source, DENSE) if isinstance(source, Path) else source
    return package_with(whole, change, kind)


@pytest.mark.parametrize("name", by_night(MODELS, LARGE))
def test_every_output_byte_equals_the_chip_arithmetic(corpus: Path, name: str) -> None:
    report = verify(compiled(corpus, name), uncompiled(corpus, name), runs=2, strict=True)
    assert report.verdict.passed, report.message
    assert [row.decided_by for row in report.rows] == ["chip arithmetic"] * 2
    assert all(row.litert is not None for row in report.rows)
    assert all(row.verdict is Verdict.PASS for row in report.figures["dma"])


@pytest.mark.parametrize("name", [DENSE, "dense_1024"])
def test_dense_models_equal_litert(corpus: Path, name: str) -> None:
    report = verify(compiled(corpus, name), uncompiled(corpus, name), runs=5)
    assert [row.litert.differing for row in report.rows if row.litert] == [0] * 5


def test_an_lstm_says_why_it_differs_from_litert(corpus: Path) -> None:
    name = "keras_lstm_mnist_ptq"
    report = verify(compiled(corpus, name), uncompiled(corpus, name))
    assert report.verdict is Verdict.PASS
    assert all(
        ("by construction" in row.message) == bool(row.litert.differing)
        for row in report.rows
        if row.litert
    )
    assert any(row.message for row in report.rows)


def test_a_bare_package_is_verified_as_its_file_is(corpus: Path) -> None:
    data = package_with(compiled(corpus, GABOR), lambda each: each, ExecutableType.EXECUTION_ONLY)
    assert load(data).kind == "package"
    report = verify(data, uncompiled(corpus, GABOR))
    whole = verify(compiled(corpus, GABOR), uncompiled(corpus, GABOR))
    assert report.verdict is Verdict.PROVED
    assert report.rows[0].sha256 == whole.rows[0].sha256


def test_parameters_may_come_from_a_companion(corpus: Path, tmp_path: Path) -> None:
    (package,) = load(compiled(corpus, DENSE)).packages
    files = {each.type: tmp_path / f"{each.type.name}.bin" for each in package.executables}
    for each in package.executables:
        files[each.type].write_bytes(dump(Package.of(each)))
    alone = files[ExecutableType.EXECUTION_ONLY]
    with pytest.raises(FormatError, match="no executable caches the parameters"):
        verify(alone, uncompiled(corpus, DENSE))
    companions = [files[ExecutableType.PARAMETER_CACHING]]
    report = verify(alone, uncompiled(corpus, DENSE), companions=companions)
    assert report.verdict is Verdict.PROVED


def test_a_changed_parameter_is_a_mismatch(corpus: Path) -> None:
    def spoil(executable: Executable) -> Executable:
        parameters = np.frombuffer(executable.parameters, np.uint8).copy()
        parameters[len(parameters) // 2 :] ^= 0x40
        return dataclasses.replace(executable, parameters=parameters.tobytes())

    data = package_with(compiled(corpus, DENSE), spoil, ExecutableType.PARAMETER_CACHING)
    report = verify(data, uncompiled(corpus, DENSE), runs=1)
    assert report.verdict is Verdict.MISMATCH
    (row,) = report.rows
    assert row.chip_arithmetic is not None
    assert row.chip_arithmetic.differing > 0
    assert "0 of 1 outputs" in report.message


def test_a_program_without_its_parameters_deadlocks_or_mismatches(corpus: Path) -> None:
    def empty(executable: Executable) -> Executable:
        return dataclasses.replace(executable, parameters=executable.parameters[:64])

    data = package_with(compiled(corpus, DENSE), empty, ExecutableType.PARAMETER_CACHING)
    report = verify(data, uncompiled(corpus, DENSE))
    assert report.verdict in (Verdict.FAULT, Verdict.MISMATCH)
    assert report.message


def test_hints_that_lie_are_found(corpus: Path) -> None:
    def lie(executable: Executable) -> Executable:
        hints = executable.dma_hints.hints
        swapped = DmaHints((hints[0], *hints[:0:-1]), executable.dma_hints.fully_deterministic)
        return dataclasses.replace(executable, dma_hints=swapped)

    data = package_with(compiled(corpus, DENSE), lie, ExecutableType.EXECUTION_ONLY)
    report = check_dma(data)
    assert report.verdict is Verdict.MISMATCH
    assert [row.verdict for row in report.rows] == [Verdict.MISMATCH, Verdict.PASS]
    assert "the hint says" in report.rows[0].message
    assert verify(data).verdict is Verdict.MISMATCH
    # The hints are an expectation, never an input: the outputs are as right as before. A host that
    # follows the hints sends something else, of which nothing is proved.
    compared = verify(data, uncompiled(corpus, DENSE))
    assert compared.verdict is Verdict.PASS
    assert "sampled: DMA that differs from its hints" in compared.message


def test_a_watcher_of_no_flag_is_refused_by_name(corpus: Path) -> None:
    data = with_field(corpus, "RingInfeed", "watcher_flag", 14, ExecutableType.PARAMETER_CACHING)
    report = verify(data, uncompiled(corpus, DENSE))
    assert report.verdict is Verdict.REFUSED
    assert "watcher_flag = 14" in report.message


@pytest.mark.parametrize("name", ["main", "narrow_write"])
def test_a_traversal_longer_than_its_limits_stays_within_memory(corpus: Path, name: str) -> None:
    field = f"{name}_alternate_limit"
    alternate = with_field(corpus, "TensorMac", field, 16_383, ExecutableType.EXECUTION_ONLY)
    loop = f"{name}_alternate_loop"
    data = with_field(alternate, "TensorMac", loop, 1, ExecutableType.EXECUTION_ONLY)
    assert verify(data, uncompiled(corpus, DENSE)).verdict is not Verdict.BAD_INPUT


def test_another_model_is_not_taken_for_the_reference(corpus: Path) -> None:
    with pytest.raises((InputError, ModelError)):
        verify(compiled(corpus, DENSE), uncompiled(corpus, "dense_1024"))


def test_a_declared_policy_decides_by_litert(corpus: Path) -> None:
    files = compiled(corpus, GABOR), uncompiled(corpus, GABOR)
    tight, loose = (verify(*files, policy=LsbBudget(1, percent)) for percent in (0.1, 2.0))
    assert tight.verdict is Verdict.MISMATCH
    assert loose.verdict is Verdict.PASS
    assert loose.rows[0].policy == "lsb:1,2%"


def test_given_arrays_and_files_are_the_same_inputs(corpus: Path, tmp_path: Path) -> None:
    files = compiled(corpus, DENSE), uncompiled(corpus, DENSE)
    values = np.arange(256, dtype=np.uint8)
    np.save(tmp_path / "in.npy", values)
    by_array = verify(*files, [{"serving_default_keras_tensor:0": values}])
    by_file = verify(*files, [tmp_path / "in.npy"])
    assert by_array.verdict is Verdict.PROVED
    assert by_array.rows[0].sha256 == by_file.rows[0].sha256


def test_what_the_reference_assumes_is_named_with_the_verdict(
    corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assumed = dataclasses.replace(rules.RULES["SOFTMAX"], assumption="a rule of its own")
    monkeypatch.setattr(rules, "RULES", {**rules.RULES, "SOFTMAX": assumed})
    (row,) = verify(compiled(corpus, NAMED), uncompiled(corpus, NAMED), runs=1).rows
    assert row.verdict is Verdict.PASS
    assert row.reference_assumes == ("operator 30 SOFTMAX: a rule of its own",)
    assert "assumed: operator 30 SOFTMAX: a rule of its own" in row.message
