"""`darwinn diff` on compiled samples that differ in one known thing."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest
from changed_programs import changed
from corpus_models import path_of
from darwinn_formats import darwinn
from darwinn_formats.darwinn import Package
from darwinn_formats.tflite import BuiltinOperator
from darwinn_testbench.chip.cycles import measure
from darwinn_testbench.chip.execution import run
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.comparison.layer_names import layer_names
from darwinn_testbench.compiler import (
    compile_network,
    compile_stand_alone,
    edgetpu_model,
    random_convolution,
    random_dense,
    uncompiled,
)
from darwinn_testbench.difference.difference import difference
from darwinn_testbench.difference.layers import aligned
from darwinn_testbench.difference.page import page_of
from darwinn_testbench.difference.rows import NOT_KNOWN, Aspect, DifferenceRow
from darwinn_testbench.difference.side import CACHING, INFERENCE
from darwinn_testbench.errors import InputError
from darwinn_testbench.layers.rows import LayerRow
from darwinn_testbench.layers.view import view_layers
from darwinn_testbench.report import Report, Verdict
from hypothesis import given
from hypothesis import strategies as st
from sample_runs import change, flip_parameter, set_field
from whole_models import with_floats

NETWORK = random_dense([48, 48, 24], 1)
PACKAGE = compile_network(NETWORK)
MODEL = edgetpu_model(NETWORK, PACKAGE)
CHIP_ASPECTS = {
    Aspect.EXECUTABLES,
    Aspect.INSTRUCTIONS,
    Aspect.LAYERS,
    Aspect.MEMORY,
    Aspect.PARAMETERS,
    Aspect.DMA,
    Aspect.CYCLES,
    Aspect.OUTPUTS,
}
PLACE = 1100
"""A byte of the parameters that moves some outputs and not others."""


def compiled(package: Package) -> bytes:
    return edgetpu_model(NETWORK, package)


def aspects(report: Report[DifferenceRow]) -> set[Aspect]:
    """Those that differ."""
    return {row.aspect for row in report.rows if row.verdict is Verdict.MISMATCH}


def found(report: Report[DifferenceRow], name: str, part: str = INFERENCE) -> DifferenceRow:
    (row,) = [row for row in report.rows if (row.name, row.part) == (name, part)]
    return row


def caching_first(package: Package) -> int:
    """The number of the executable that caches parameters."""
    return next(k for k, each in enumerate(package.executables) if each.parameters)


def test_a_model_does_not_differ_from_itself_nor_from_its_package() -> None:
    for other in (MODEL, darwinn.dump(PACKAGE)):
        report = difference(MODEL, other)
        assert report.verdict is Verdict.PASS
        assert {row.aspect for row in report.rows} == CHIP_ASPECTS
        assert all(row.equal and not row.change for row in report.rows)


def test_a_parameter_that_is_another_one_is_found_with_what_follows() -> None:
    which = caching_first(PACKAGE)
    other = compiled(change(PACKAGE, which, flip_parameter(PLACE)))
    report = difference(MODEL, other)
    assert aspects(report) == {Aspect.PARAMETERS, Aspect.OUTPUTS}
    row = found(report, "cached, contents", "")
    size = len(PACKAGE.executables[which].parameters)
    assert row.change == (
        f"1 of {size:,} bytes differ ({100 / size:.3g} %), from byte {PLACE:,} on"
    )
    only = difference(MODEL, other, only=[Aspect.CYCLES, Aspect.DMA])
    assert only.verdict is Verdict.PASS
    assert {row.aspect for row in only.rows} == {Aspect.CYCLES, Aspect.DMA}


def test_outputs_are_those_of_run_element_by_element() -> None:
    other = compiled(change(PACKAGE, caching_first(PACKAGE), flip_parameter(PLACE)))
    rows = difference(MODEL, other, only=[Aspect.OUTPUTS], seed=3, runs=4).rows
    tensors = [run(each, seed=3, runs=4).rows for each in (MODEL, other)]
    assert len(rows) == 4
    assert {row.equal for row in rows} == {True, False}
    for row, mine, others in zip(rows, *tensors, strict=True):
        assert row.part == f"run {mine.run} ({mine.origin})"
        steps = np.abs(mine.tensor.astype(int) - others.tensor.astype(int))
        count = np.count_nonzero(steps)
        assert row.equal is not bool(count)
        if count:
            share = 100 * count / steps.size
            assert row.change == f"{count} of {steps.size} ({share:.3g} %), by {steps.max()}"


def test_cached_and_streamed_parameters_of_one_network_give_the_same_outputs() -> None:
    alone = compiled(compile_stand_alone(NETWORK))
    report = difference(MODEL, alone)
    assert Aspect.OUTPUTS not in aspects(report)
    size = len(PACKAGE.executables[caching_first(PACKAGE)].parameters)
    assert (found(report, "cached, bytes", "").a, found(report, "streamed, bytes", "").b) == (
        *(size, size),
    )
    assert found(report, "parameter infeed").b == size
    row = found(report, "type", CACHING)
    assert (row.a, row.b, row.change) == ("PARAMETER_CACHING", None, "only in A")
    assert difference(MODEL, alone, only=[Aspect.OUTPUTS]).verdict is Verdict.PASS


@pytest.mark.parametrize("seed", range(12))
def test_the_first_instruction_that_differs_is_named_with_its_field(seed: int) -> None:
    which = next(k for k, each in enumerate(PACKAGE.executables) if not each.parameters)
    other = changed(PACKAGE.executables[which], Random(seed))
    package = change(PACKAGE, which, lambda _: other.executable)
    report = difference(MODEL, compiled(package), only=[Aspect.INSTRUCTIONS])
    row = found(report, "first difference")
    place, field, old, new = re.fullmatch(r"(.*): (\w+)\[\d+\] (\S+) -> (\S+)", other.what).groups()  # type: ignore[union-attr]
    assert (row.a, row.b) == (place, place)
    assert row.change.startswith(f"{field} ")
    if "(" not in row.change:
        assert row.change == f"{field} {old} → {new}"


def test_cycles_are_those_of_cycles_and_the_layers_have_a_cause() -> None:
    other = edgetpu_model(network := random_dense([48, 200, 24], 1), compile_network(network))
    rows = difference(MODEL, other, only=[Aspect.CYCLES])
    times = [
        next(row.cycles or 0 for row in measure(each).rows if row.type == "EXECUTION_ONLY")
        for each in (MODEL, other)
    ]
    row = found(rows, "cycles")
    assert [row.a, row.b] == times
    assert row.change == f"{times[1] - times[0]:+,} ({100 * (times[1] / times[0] - 1):+.1f} %)"
    layers = [row for row in rows.rows if row.layer is not None]
    assert len(layers) == 2
    assert any(re.search(r"\), [a-z ]+ [+-][\d,]+$", row.change) for row in layers)


def test_what_cannot_be_run_is_refused_and_the_rest_compared() -> None:
    """An instruction that the model of the chip does not execute: what needs no run is compared."""
    which = next(k for k, each in enumerate(PACKAGE.executables) if not each.parameters)
    edit = set_field("TensorMac", "register_sources", 1)
    other = compiled(change(PACKAGE, which, edit))
    report = difference(MODEL, other)
    failed = {row.aspect: row for row in report.rows if row.name == NOT_KNOWN}
    assert set(failed) == {Aspect.LAYERS, Aspect.MEMORY, Aspect.CYCLES, Aspect.OUTPUTS}
    assert all(row.verdict is Verdict.REFUSED and row.message for row in failed.values())
    assert aspects(report) == {Aspect.INSTRUCTIONS}
    only = difference(MODEL, other, only=[Aspect.PARAMETERS, Aspect.CYCLES])
    assert only.verdict is Verdict.REFUSED


def test_models_of_other_inputs_are_compared_but_for_their_outputs() -> None:
    network = random_convolution(8, 8, 4, 6, 1, kernel=3)
    other = edgetpu_model(network, compile_network(network))
    report = difference(MODEL, other)
    (row,) = [row for row in report.rows if row.aspect is Aspect.OUTPUTS]
    assert (row.name, row.a, row.b) == ("inputs", "int8 48", "uint8 8x8x4")
    assert row.verdict is Verdict.MISMATCH


LAYERS = view_layers(MODEL).rows


@given(*(st.lists(st.integers(0, 4), max_size=12) for _ in range(2)))
def test_every_layer_is_put_somewhere_once_and_in_order(left: list[int], right: list[int]) -> None:
    mine, others = (
        [replace(LAYERS[0], number=number, kind=f"kind {kind}") for number, kind in enumerate(each)]
        for each in (left, right)
    )
    pairs = aligned(mine, others)
    assert [each for each, _ in pairs if each is not None] == mine
    assert [each for _, each in pairs if each is not None] == others
    assert (None, None) not in pairs
    if left == right:
        assert all(a is not None and b is not None for a, b in pairs)


def kinds(pairs: Collection[tuple[LayerRow | None, LayerRow | None]]) -> list[tuple[str, ...]]:
    return [tuple("-" if each is None else each.kind for each in pair) for pair in pairs]


def test_a_layer_that_was_added_stands_alone() -> None:
    few = [replace(LAYERS[0], kind=kind) for kind in "abcd"]
    more = [few[0], replace(LAYERS[0], kind="new"), *few[1:]]
    assert kinds(aligned(few, more)) == [
        *(("a", "a"), ("-", "new"), ("b", "b"), ("c", "c"), ("d", "d")),
    ]


def test_the_page_has_layers_that_only_one_side_has() -> None:
    """In the totals' section their sum, in the chart a bar each."""
    longer = random_dense([48, 48, 48, 24], 1)
    other = edgetpu_model(longer, compile_network(longer))
    for a, b in ((MODEL, other), (other, MODEL)):
        report = difference(a, b, only=(Aspect.CYCLES,))
        text = page_of(report).decode()
        data = re.search(r'<script type="application/json" id="data">(.*)</script>', text)
        assert data is not None
        charts = [each["columns"] for each in json.loads(data[1])["charts"]]
        drawn: dict[str, float] = {}
        for columns in charts:
            names, values = columns["name"], columns["value"]
            drawn |= zip([names["of"][at] for at in names["at"]], values, strict=True)
        lone = [row for row in report.rows if row.layer is not None and None in (row.a, row.b)]
        assert lone
        for row in lone:
            assert drawn[row.name] == int(row.b or 0) - int(row.a or 0) != 0
        totals = text.partition("<h2>Totals</h2>")[2].partition("</section>")[0]
        cycles = found(report, "cycles")
        assert f"{cycles.a:,}" in totals
        assert f"{cycles.b:,}" in totals


def test_layers_of_one_tensor_belong_together_whatever_they_are_called() -> None:
    """Names decide before operation and result; where only one side has a name these do."""
    mine = [replace(LAYERS[0], kind=kind, tensor=kind) for kind in "abc"]
    others = [replace(each, kind="other", tensor=each.tensor) for each in mine[1:]]
    assert kinds(aligned(mine, others)) == [("a", "-"), ("b", "other"), ("c", "other")]
    unnamed = [replace(each, tensor="") for each in mine[1:]]
    assert kinds(aligned(mine, unnamed)) == [("a", "-"), ("b", "b"), ("c", "c")]


def test_layers_have_the_names_of_the_network() -> None:
    """Of a reference of both, or of one side alone; rows that are about no layer have none."""
    reference = uncompiled(NETWORK)
    alone = compiled(compile_stand_alone(NETWORK))
    names = [layer_names(each, reference) for each in (MODEL, alone)]
    for references, known in (
        ((reference, reference), names),
        ((None, reference), [{}, names[1]]),
        ((reference, None), [names[0], {}]),
    ):
        report = difference(
            MODEL, alone, only=[Aspect.LAYERS, Aspect.CYCLES], references=references
        )
        assert len([row for row in report.rows if row.layer is not None]) == 8
        for row in report.rows:
            expected = tuple(None if row.layer is None else each.get(row.layer) for each in known)
            assert row.names == expected
        printed = report.to_dict()["rows"]
        assert ["names" in each for each in printed] == [
            row.layer is not None for row in report.rows
        ]
    (two,) = [row for row in report.rows if row.name == "layer 1 computes"]
    assert two.network == "FULLY_CONNECTED output"


def test_a_reference_of_another_network_is_refused() -> None:
    other = uncompiled(random_dense([32, 24], 1))
    with pytest.raises(InputError, match="not the model before compilation"):
        difference(MODEL, MODEL, only=[Aspect.LAYERS], references=(None, other))


def test_exit_codes_are_those_of_diff(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    Path("a.tflite").write_bytes(MODEL)
    Path("b.tflite").write_bytes(
        compiled(change(PACKAGE, caching_first(PACKAGE), flip_parameter(PLACE)))
    )
    assert run_command_line(["diff", "a.tflite", "a.tflite"]) == 0
    assert run_command_line(["diff", "a.tflite", "b.tflite", "--only", "cycles,dma"]) == 0
    capsys.readouterr()
    assert run_command_line(["diff", "a.tflite", "b.tflite", "--html", "page.html"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= 80 for line in lines[:-2])
    assert any("bytes differ" in line for line in lines)
    page = Path("page.html").read_text()
    assert "mismatch" in page
    assert len(page) < 1_500_000
    titles = re.findall(r"<h2>(.*?)</h2>", page)
    assert titles[:4] == ["Totals", "Files", "Aspects", "Cycles"]
    assert titles[-1] == "Instructions"
    assert "equal for the same inputs. B computes something else." in page
    assert run_command_line(["diff", "a.tflite", "b.tflite", "--only", "looks"]) == 2
    assert run_command_line(["diff", "a.tflite", "page.html"]) == 2
    Path("network.tflite").write_bytes(uncompiled(NETWORK))
    named = ["diff", "a.tflite", "b.tflite", "--html", "page.html", "--reference"]
    assert run_command_line([*named, "network.tflite"]) == 1
    assert "FULLY_CONNECTED layer_0" not in page
    assert "FULLY_CONNECTED layer_0" in Path("page.html").read_text()
    assert run_command_line([*named, "A=network.tflite", "-r", "B=network.tflite"]) == 1
    assert run_command_line([*named, "A=network.tflite", "-r", "network.tflite"]) == 2
    assert run_command_line([*named, "absent.tflite"]) == 2
    capsys.readouterr()
    assert run_command_line(["diff", "a.tflite", "b.tflite", "--json", "--only", "parameters"]) == 1
    printed = json.loads(capsys.readouterr().out)
    assert [each["aspect"] for each in printed["aspects"]] == ["parameters"]
    assert [row["name"] for row in printed["rows"]] == [
        *("cached, bytes", "cached, contents", "streamed, bytes"),
    ]


def test_a_model_compiled_with_others_streams_what_it_has_no_room_for(corpus: Path) -> None:
    alone, together = (
        path_of(corpus, f"mobilenet_v1_0.25_128_quant{name}")
        for name in ("", "_cocompiled_with_3quant")
    )
    report = difference(alone, together, only=[Aspect.PARAMETERS, Aspect.OUTPUTS], runs=2)
    assert aspects(report) == {Aspect.PARAMETERS}
    cached, streamed = (found(report, f"{name}, bytes", "") for name in ("cached", "streamed"))
    assert (streamed.a, cached.a) == (0, int(cached.b or 0) + int(streamed.b or 0))


def test_operators_on_the_cpu_count_unless_only_the_chip_does() -> None:
    whole, other = (with_floats(MODEL, last) for last in (BuiltinOperator.ABS, BuiltinOperator.NEG))
    report = difference(whole, other)
    assert aspects(report) == {Aspect.EXECUTABLES, Aspect.OUTPUTS}
    row = found(report, "operators on the CPU", "")
    assert (row.a, row.b) == ("QUANTIZE, DEQUANTIZE, ABS", "QUANTIZE, DEQUANTIZE, NEG")
    alone = difference(whole, other, only=[Aspect.OUTPUTS], chip_only=True)
    assert alone.verdict is Verdict.PASS
