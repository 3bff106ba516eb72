"""Whole models: what the chip computes, and what the compiler has left to the CPU."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from corpus_models import path_of
from darwinn_formats import flatbuffer, tflite
from darwinn_formats.darwinn import load
from darwinn_formats.errors import Unavailable
from darwinn_formats.tflite import BuiltinOperator
from darwinn_reference.tflite.litert import LiteRtProcess
from darwinn_testbench import Interpreter
from darwinn_testbench.chip import ahead, cpu_time
from darwinn_testbench.chip.cpu_time import MEASUREMENTS, cpu_times
from darwinn_testbench.chip.cycles import measure
from darwinn_testbench.chip.execution import run
from darwinn_testbench.chip.inputs import TensorMap, random_inputs
from darwinn_testbench.chip.pipeline import Pipeline
from darwinn_testbench.chip.session import Session
from darwinn_testbench.chip.whole import WholeInference, WholeModel, open_segment
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.comparison.check import CHIP_ARITHMETIC, CPU_OPERATORS
from darwinn_testbench.comparison.cpu_part import FROM_CHIP, FROM_ORACLE
from darwinn_testbench.comparison.verify import verify
from darwinn_testbench.compiler import compile_network, edgetpu_model, random_dense, uncompiled
from darwinn_testbench.errors import InputError
from darwinn_testbench.layers.view import view_layers
from darwinn_testbench.policy import parse
from darwinn_testbench.profile.report import make_report
from darwinn_testbench.report import Verdict
from sample_runs import change, flip_parameter
from whole_models import (
    random_floats,
    renamed,
    segments,
    whole_expected,
    whole_model,
    with_floats,
)

NETWORK = random_dense([24, 24], 1)
PLAIN = edgetpu_model(NETWORK, compile_network(NETWORK))
COMPILED = with_floats(PLAIN, BuiltinOperator.ABS)
REFERENCE = with_floats(uncompiled(NETWORK), BuiltinOperator.ABS)
WRONG_CHIP = with_floats(
    edgetpu_model(NETWORK, change(compile_network(NETWORK), 1, flip_parameter(300))),
    BuiltinOperator.ABS,
)
WRONG_CPU = with_floats(PLAIN, BuiltinOperator.NEG)


def named(model: bytes, name: str) -> bytes:
    """The model with ABS in place of a custom operator that nobody has."""
    read = tflite.load(model)
    codes = tuple(
        tflite.OperatorCode(32, name, 1, 32)
        if int(code.builtin_code) == BuiltinOperator.ABS
        else code
        for code in read.operator_codes
    )
    return flatbuffer.write(replace(read, operator_codes=codes))


def test_what_is_given_is_what_the_whole_model_gives() -> None:
    networks = segments()
    model = whole_model(networks)
    for seed in range(3):
        floats = random_floats(seed)
        report = run(model, [{"floats0": floats}], strict=True)
        (row,) = report.rows
        assert row.name == "floats2"
        assert np.array_equal(row.tensor, whole_expected(networks, floats))
    names = [each.name for each in report.figures["cpu_operators"]]
    assert names == ["QUANTIZE", "DEQUANTIZE"] * 2
    assert report.figures["cpu_seconds"] > 0


def test_it_gives_what_the_interpreter_gives() -> None:
    interpreter = Interpreter(model_content=COMPILED)
    interpreter.allocate_tensors()
    floats = random_floats(5)
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], floats)
    interpreter.invoke()
    found = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    (row,) = run(COMPILED, [{"floats in": floats}]).rows
    assert np.array_equal(row.tensor, found)


def test_the_chip_alone_is_the_model_without_the_others() -> None:
    plain, alone = run(PLAIN, runs=3), run(COMPILED, runs=3, chip_only=True)
    assert [row.sha256 for row in plain.rows] == [row.sha256 for row in alone.rows]
    assert "cpu_operators" not in alone.figures
    assert "without QUANTIZE, DEQUANTIZE, ABS" in alone.message
    assert "CPU" not in plain.message
    assert plain.figures.keys() == alone.figures.keys()


def test_every_byte_is_compared_and_what_with_is_said() -> None:
    report = verify(COMPILED, REFERENCE, strict=True, require_reference=True)
    assert report.verdict is Verdict.PASS, report.message
    chip, whole = report.rows[:2]
    assert (chip.name, chip.of_whole_model) == (NETWORK.result, False)
    assert (whole.name, whole.of_whole_model) == ("last", True)
    assert (whole.decided_by, whole.expected_from) == (CHIP_ARITHMETIC, FROM_ORACLE)
    assert whole.litert is not None
    assert FROM_ORACLE in report.message
    assert "expected_from" not in report.to_dict()["rows"][0]
    alone = verify(COMPILED, REFERENCE, strict=True, chip_only=True)
    chips = [row.sha256 for row in report.rows if not row.of_whole_model]
    assert [row.sha256 for row in alone.rows] == chips


def test_a_wrong_operator_on_the_cpu_is_found_beside_a_right_chip() -> None:
    report = verify(WRONG_CPU, REFERENCE, runs=1)
    chip, whole = report.rows
    assert (chip.verdict, whole.verdict) == (Verdict.PASS, Verdict.MISMATCH)
    assert verify(WRONG_CPU, REFERENCE, runs=1, chip_only=True).verdict is Verdict.PROVED


def with_outputs(model: bytes, *names: tuple[str, str]) -> bytes:
    """The model with these tensors as outputs, each under a new name."""
    read = tflite.load(renamed(model, dict(names)))
    (graph,) = read.subgraphs
    places = {each.name: k for k, each in enumerate(graph.tensors)}
    outputs = tuple(places[name] for _, name in names)
    return flatbuffer.write(replace(read, subgraphs=(replace(graph, outputs=outputs),)))


def test_outputs_of_the_cpu_are_mapped_where_their_names_differ(tmp_path: Path) -> None:
    """Two outputs that the reference has in another order, and calls otherwise."""
    compiled = with_outputs(COMPILED, ("floats out", "floats out"), ("last", "last"))
    reference = with_outputs(REFERENCE, ("last", "absolute"), ("floats out", "plain"))
    assert verify(compiled, reference, runs=1).verdict is Verdict.MISMATCH
    for maps in (
        ("floats out=plain", "last=absolute"),
        ("last=0", "floats out=1", "floats in=floats in"),
    ):
        report = verify(compiled, reference, runs=1, maps=maps, require_reference=True)
        assert report.verdict is Verdict.PASS, report.message
        own = [row for row in report.rows if row.of_whole_model]
        assert [(row.name, row.expected_from) for row in own] == [
            *(("floats out", FROM_ORACLE), ("last", FROM_ORACLE)),
        ]
    with pytest.raises(InputError, match="no output nothing, only 0 absolute, 1 plain"):
        verify(compiled, reference, runs=1, maps=["last=nothing"])
    paths = [str(tmp_path / name) for name in ("compiled.tflite", "reference.tflite")]
    for path, data in zip(paths, (compiled, reference), strict=True):
        Path(path).write_bytes(data)
    command = ["verify", paths[0], "--reference", paths[1], "--runs", "1"]
    assert run_command_line(command) == 1
    assert run_command_line([*command, "--map", "last=absolute", "--map", "floats out=1"]) == 0


def test_a_wrong_chip_is_found_in_both() -> None:
    report = verify(WRONG_CHIP, REFERENCE, runs=2, policy=parse("exact"))
    assert report.verdict is Verdict.MISMATCH


def test_under_a_policy_the_cpu_is_judged_from_the_chip_s_bytes() -> None:
    policy = parse("lsb:255")
    (chip, whole) = verify(COMPILED, REFERENCE, runs=1, policy=policy).rows
    assert (whole.decided_by, whole.expected_from) == (CPU_OPERATORS, FROM_CHIP)
    assert (chip.verdict, whole.verdict) == (Verdict.PASS, Verdict.PASS)
    (chip, whole) = verify(WRONG_CPU, REFERENCE, runs=1, policy=policy).rows
    assert (chip.verdict, whole.verdict) == (Verdict.PASS, Verdict.MISMATCH)


def test_without_a_reference_nothing_passes() -> None:
    report = verify(COMPILED, runs=1)
    assert [row.verdict for row in report.rows] == [Verdict.RAN] * 2
    required = verify(COMPILED, runs=1, require_reference=True)
    assert required.verdict is Verdict.NOT_COMPARED


def test_stored_outputs_are_those_of_the_whole(tmp_path: Path) -> None:
    (tmp_path / "m.tflite").write_bytes(COMPILED)
    (tmp_path / "wrong.tflite").write_bytes(WRONG_CPU)
    model, outputs = str(tmp_path / "m.tflite"), str(tmp_path / "outputs.npz")
    assert run_command_line(["run", model, "--seed", "4", "--output", outputs]) == 0
    words = ["--expected", outputs, "--seed", "4"]
    assert run_command_line(["verify", model, *words]) == 0
    assert run_command_line(["verify", str(tmp_path / "wrong.tflite"), *words]) == 1


def test_a_custom_operator_that_nobody_has_is_refused_by_name() -> None:
    model = named(COMPILED, "Telepathy")
    with pytest.raises(Unavailable, match=r"'Telepathy'.*--chip-only"):
        run(model)
    with pytest.raises(Unavailable, match="Telepathy"):
        verify(model, runs=1)
    assert run(model, chip_only=True).verdict is Verdict.PASS


def test_a_tensor_that_nothing_gives_is_refused() -> None:
    read = tflite.load(COMPILED)
    (graph,) = read.subgraphs
    first, *others = graph.operators
    for operators, outputs in ((others, graph.outputs), ([first], graph.outputs)):
        cut = replace(graph, operators=tuple(operators), outputs=outputs)
        model = flatbuffer.write(replace(read, subgraphs=(cut,)))
        with pytest.raises(InputError, match="before an operator computes it"):
            Interpreter(model_content=model)
    of_itself = replace(first, inputs=first.outputs)
    for operators in (others, [of_itself, *others]):
        cut = replace(graph, operators=tuple(operators))
        with pytest.raises(InputError, match="before an operator computes it"):
            run(flatbuffer.write(replace(read, subgraphs=(cut,))))


def test_a_part_of_several_is_chosen_with_chip_only() -> None:
    model = whole_model(segments())
    with pytest.raises(InputError, match="--chip-only"):
        run(model, model=1)
    (row,) = run(model, model=1, chip_only=True).rows
    assert row.name == "from1"


def test_other_orders_of_the_units_are_compared_at_the_chip() -> None:
    schedules = run(whole_model(segments()), schedules=2).figures["schedules"]
    assert (schedules.count, schedules.differences) == (2, ())


def test_segments_of_which_the_last_has_operators_on_the_cpu() -> None:
    first, second = segments()
    second = replace(second, source=first.result)
    one = edgetpu_model(first, compile_network(first))
    two = with_floats_behind(edgetpu_model(second, compile_network(second)))
    report = run(one, then=[two], runs=1)
    assert [row.name for row in report.rows] == ["floats out"]
    assert [each.name for each in report.figures["cpu_operators"]] == ["DEQUANTIZE"]


def with_floats_behind(model: bytes) -> bytes:
    whole = tflite.load(with_floats(model))
    (graph,) = whole.subgraphs
    cut = replace(graph, operators=graph.operators[1:], inputs=graph.operators[0].outputs)
    return flatbuffer.write(replace(whole, subgraphs=(cut,)))


def test_times_say_what_they_cover() -> None:
    whole, alone, plain = (
        measure(COMPILED, chip_only=False),
        measure(COMPILED, chip_only=True),
        measure(PLAIN, chip_only=False),
    )
    (cpu,) = whole.figures["cpu"]
    assert cpu.milliseconds > 0
    assert "measured on this machine" in str(cpu)
    assert "this machine's CPU" in whole.message
    assert "without the operators on the CPU" in alone.message
    assert "CPU" not in plain.message
    assert [row.cycles for row in whole.rows] == [row.cycles for row in plain.rows]
    (cpu,) = measure(named(COMPILED, "Telepathy"), chip_only=False).figures["cpu"]
    assert cpu.milliseconds is None
    assert "Telepathy" in str(cpu)


@pytest.mark.parametrize(
    ("operator", "courses"), [(BuiltinOperator.ABS, 1), (BuiltinOperator.COS, 3)]
)
def test_the_chip_is_not_run_to_measure_a_time_on_the_cpu(
    monkeypatch: pytest.MonkeyPatch, operator: BuiltinOperator, courses: int
) -> None:
    monkeypatch.setattr(Session, "infer", lambda *_, **__: pytest.fail("the chip was run"))
    made = []
    infer = WholeModel.infer

    def counted(whole: WholeModel, tensors: TensorMap) -> WholeInference:
        made.append(infer(whole, tensors))
        return made[-1]

    monkeypatch.setattr(WholeModel, "infer", counted)
    (found,) = cpu_times(with_floats(PLAIN, operator))
    assert found.milliseconds is not None
    assert found.least_milliseconds is not None
    assert found.most_milliseconds is not None
    assert found.least_milliseconds <= found.milliseconds <= found.most_milliseconds
    assert len(made) == courses * (1 + MEASUREMENTS)
    values = {each.outputs["last"].tobytes() for each in made}
    assert len(values) == courses


def test_what_is_found_decides_how_long_a_decoder_takes(corpus: Path) -> None:
    name = "ssd_mobilenet_v1_coco_quant_postprocess_segment_1_of_2"
    (found,) = cpu_times(path_of(corpus, name))
    assert found.least_milliseconds is not None
    assert found.most_milliseconds is not None
    assert found.most_milliseconds > 1.5 * found.least_milliseconds


def test_the_time_of_own_code_is_a_lower_bound(corpus: Path) -> None:
    name = "posenet_mobilenet_v1_075_353_481_16_quant_decoder"
    (found,) = cpu_times(path_of(corpus, name))
    assert found.most_milliseconds is None
    assert "or more" in str(found)


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
def test_models_share_a_process_of_litert_until_one_ends_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started: list[LiteRtProcess] = []

    def start(*arguments: Any) -> LiteRtProcess:
        started.append(LiteRtProcess(*arguments))
        return started[-1]

    monkeypatch.setattr(cpu_time, "LiteRtProcess", start)
    timer, file = cpu_time.CpuTimer(), load(COMPILED)
    assert all(timer.time(COMPILED, file).milliseconds for _ in range(3))
    assert len(started) == 1
    infer = WholeModel.infer

    def ending(whole: WholeModel, tensors: TensorMap) -> WholeInference:
        if len(started) == 1:
            started[0].running.process.kill()
            started[0].running.process.wait()
        return infer(whole, tensors)

    monkeypatch.setattr(WholeModel, "infer", ending)
    assert timer.time(COMPILED, file).milliseconds
    assert len(started) == 2


def test_many_inferences_use_the_lifted_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the chip is given is not known before, but how often."""
    found = run(COMPILED, runs=ahead.REPEATED)
    assert found.figures["lifted"].inferences == ahead.REPEATED - 1
    monkeypatch.setattr(ahead, "REPEATED", 1000)
    plain = run(COMPILED, runs=len(found.rows))
    assert "lifted" not in plain.figures
    assert [row.sha256 for row in found.rows] == [row.sha256 for row in plain.rows]


def test_layers_and_the_page_name_the_operators_on_the_cpu() -> None:
    found = view_layers(COMPILED)
    assert [str(each) for each in found.figures["cpu_operators"]] == [
        "0 QUANTIZE",
        "2 DEQUANTIZE",
        "3 ABS",
    ]
    assert "cpu_operators" not in view_layers(PLAIN).figures
    assert b"On the CPU" in make_report(COMPILED, runs=1).html
    assert b"On the CPU" not in make_report(PLAIN, runs=1).html


def test_the_command_leaves_them_out_where_it_is_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "m.tflite"
    path.write_bytes(COMPILED)
    for words, there in ((["run"], True), (["run", "--chip-only"], False)):
        assert run_command_line([*words, str(path), "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert ("cpu_operators" in found) is there
        assert [row["name"] for row in found["rows"]] == ["last" if there else NETWORK.result]


@pytest.mark.parametrize(
    "name",
    ["deeplabv3_mnv2_dm05_pascal_quant", "posenet_mobilenet_v1_075_353_481_16_quant_decoder"],
)
def test_real_models_are_right_to_their_ends(corpus: Path, name: str) -> None:
    reference = corpus / "tflite" / f"{name}.tflite"
    report = verify(path_of(corpus, name), reference, runs=1, proof=False, hazards=False)
    assert report.verdict is Verdict.PASS, report.message
    assert any(row.of_whole_model for row in report.rows)


def test_a_whole_model_refuses_what_is_no_set_of_its_inputs() -> None:
    whole = open_segment(COMPILED)
    ((name, array),) = random_inputs(whole.ports, seed=3, runs=1)[0].items()
    for given, message in (
        ({}, f"no data for {name}"),
        ({name: array, "typo": array}, "there is no input typo"),
        ({name: array.ravel()[:-1]}, "one inference takes"),
        ([array], "map names"),
    ):
        for refused in (whole.infer, lambda sets: whole.expect([sets])):
            with pytest.raises(InputError, match=message):
                refused(given)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=f"no data for {name}"):
        Pipeline([whole]).infer({})
    with pytest.raises(InputError, match="got str"):
        whole.expect("100")  # type: ignore[arg-type]
    wanted = whole.infer({name: array}).outputs
    found = whole.infer({name: array.ravel()}).outputs
    assert all(np.array_equal(found[each], wanted[each]) for each in wanted)
