"""Several pieces of a model, several segments, several models: what shares a chip, and what not."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from darwinn_formats import tflite
from darwinn_formats.darwinn import ExecutableType, load
from darwinn_formats.files import Content
from darwinn_formats.tflite import BuiltinOperator
from darwinn_reference.errors import Unsupported
from darwinn_reference.tflite.chip_arithmetic import ChipArithmetic
from darwinn_reference.tflite.graph import Operator
from darwinn_sim import timing
from darwinn_testbench.chip.execution import run
from darwinn_testbench.chip.inputs import random_inputs
from darwinn_testbench.chip.whole import open_segment
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.comparison.check import CHIP_ARITHMETIC
from darwinn_testbench.comparison.verify import verify
from darwinn_testbench.compilation import compile as compilation
from darwinn_testbench.compilation import sharing
from darwinn_testbench.compilation.balance import Costs, balanced
from darwinn_testbench.compilation.compile import Compiled, CompileOptions, compile_models
from darwinn_testbench.compilation.outcome import CACHE_BYTES
from darwinn_testbench.compilation.segments import best_cut
from darwinn_testbench.compilation.times import inference_of, phase_cycles, timed
from darwinn_testbench.compiler.random_networks import RandomNetwork, random_network
from darwinn_testbench.compiler.stages import planning
from darwinn_testbench.compiler.stages.executable import submodel
from darwinn_testbench.errors import InputError
from darwinn_testbench.report import Verdict

PAIR = [ExecutableType.EXECUTION_ONLY, ExecutableType.PARAMETER_CACHING]


def over_floats(network: RandomNetwork) -> None:
    """The last value as floats and back: that is on the CPU, whatever the chip learns."""
    source = network.values[-1]
    tensor = tflite.Tensor(source.shape, tflite.TensorType.FLOAT32, 0, "floats", None)
    floats = replace(source, index=network._add(tensor))
    network._operate(BuiltinOperator.DEQUANTIZE, (source.index,), floats)
    result = network._value(source.shape, source.scale, source.zero_point)
    network._operate(BuiltinOperator.QUANTIZE, (floats.index,), result)


def cut_twice(channels: int = 8) -> bytes:
    """Three convolutions, floats before and behind the middle one."""
    network = RandomNetwork(3, (1, 6, 6, 4), signed=True)
    network.layer(network.values[0], channels, 3)
    over_floats(network)
    network.layer(network.values[-1], channels, 3)
    over_floats(network)
    network.layer(network.values[-1], channels, 1)
    return network.finish()


def compiled(models: Sequence[bytes], **options: object) -> tuple[Compiled, ...]:
    sources = [Content(data, f"m{number}.tflite") for number, data in enumerate(models)]
    return compile_models(sources, CompileOptions(**options))  # type: ignore[arg-type]


def pieces_of(result: Compiled) -> list[int | None]:
    return [row.piece for row in result.report.rows]


def test_all_pieces_go_to_the_chip_on_demand_and_share_its_memory() -> None:
    (result,) = compiled([cut_twice()], multiple_subgraphs=True)
    assert result.report.verdict is Verdict.PROVED, result.report.headline
    assert pieces_of(result) == [0, None, None, 1, None, None, 2]
    assert result.report.figures["subgraphs"] == 3
    file = load(Content(result.data, "m"))
    assert [each.type for each in file.executables] == PAIR * 3
    assert len({each.parameter_caching_token for each in file.executables}) == 1
    # Each piece has rows of its own.
    assert result.built is not None
    rows = [
        (block.tile, row)
        for piece in result.built.pieces
        for block in piece.cache.blocks
        for row in range(block.row, block.row + len(block.rows))
    ]
    assert len(set(rows)) == len(rows)


def test_the_whole_model_gives_what_the_pieces_give_one_by_one() -> None:
    data = cut_twice()
    (several,) = compiled([data], multiple_subgraphs=True, check=False)
    whole = open_segment(Content(several.data, "m"))
    (tensors,) = random_inputs(whole.ports, 5, 1)
    found = whole.infer(tensors)
    assert len(found.on_chip) == 3
    plain = run(Content(several.data, "m"), [tensors]).rows
    assert plain[-1].tensor.tobytes() == next(iter(found.outputs.values())).tobytes()


def test_verify_judges_what_each_piece_sends() -> None:
    """The CPU gives one output, and the last piece the other."""
    network = RandomNetwork(6, (1, 6, 6, 4), signed=True)
    network.layer(network.values[0], 8, 3)
    over_floats(network)
    network.layer(network.values[-1], 300, 3)
    over_floats(network)
    network.show(network.values[-1])
    network.layer(network.values[-1], 8, 1)
    data = network.finish()
    (several,) = compiled([data], multiple_subgraphs=True, check=False)
    assert pieces_of(several)[-1] == 2
    reference = Content(data, "reference.tflite")
    words: dict[str, Any] = {"runs": 2, "hazards": False, "proof": False}
    report = verify(Content(several.data, "m"), reference, **words)
    assert report.verdict is Verdict.PASS, report.headline
    last = [row for row in report.rows if row.of_whole_model]
    assert len(last) == 4 and {row.decided_by for row in last} == {CHIP_ARITHMETIC}
    blob = bytes(load(Content(several.data, "m")).executables[-1].parameters)
    assert several.data.count(blob) == 1
    changed = several.data.replace(blob, bytes(each ^ 0x10 for each in blob))
    with pytest.raises(InputError, match="not the model before compilation"):
        verify(Content(changed, "m"), reference, **words)
    report = verify(Content(changed, "m"), reference, **words, anyway=True)
    assert report.verdict is Verdict.MISMATCH
    assert [row.verdict.failed for row in report.rows if row.of_whole_model].count(True) == 2


def test_the_oracle_computes_of_each_piece_its_own_operators(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not the whole network for each further piece."""
    network = RandomNetwork(6, (1, 6, 6, 4), signed=True)
    network.layer(network.layer(network.values[0], 8, 3), 8, 3)
    over_floats(network)
    network.layer(network.layer(network.values[-1], 8, 3), 8, 1)
    over_floats(network)
    data = network.finish()
    (several,) = compiled([data], multiple_subgraphs=True, check=False)
    asked: Counter[int] = Counter()
    run = ChipArithmetic._run

    def counted(self: ChipArithmetic, operator: Operator, values: Any) -> Any:
        asked[operator.index] += 1
        return run(self, operator, values)

    monkeypatch.setattr(ChipArithmetic, "_run", counted)
    words: dict[str, Any] = {"runs": 1, "hazards": False, "proof": False}
    report = verify(Content(several.data, "m"), Content(data, "reference.tflite"), **words)
    assert report.verdict is Verdict.PASS, report.headline
    own = {row.number for row in several.report.rows if row.piece == 1}
    assert {asked[number] - asked[0] for number in own} == {1}


def test_a_further_piece_is_made_where_it_is_predicted_to_take_less_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (small,) = compiled([cut_twice()], check=False)
    assert pieces_of(small) == [0, *[None] * 6]
    assert small.report.rows[3].reason == "behind 1 DEQUANTIZE"
    assert small.report.rows[3].status == "More than one subgraph is not supported"
    (large,) = compiled([cut_twice(500)], check=False)
    assert pieces_of(large) == [0, None, None, 1, None, None, 2]
    monkeypatch.setattr(timing, "interval", lambda timed: (0.0, 1e3))
    (against,) = compiled([cut_twice(500)], check=False)
    assert "a further piece may take 1000000.00 ms" in " ".join(
        row.reason for row in against.report.rows
    )


def test_what_comes_before_the_largest_piece_is_a_piece_of_its_own() -> None:
    network = RandomNetwork(3, (1, 6, 6, 4), signed=True)
    network.layer(network.values[0], 8, 3)
    over_floats(network)
    for _ in range(3):
        network.layer(network.values[-1], 8, 3)
    data = network.finish()
    (result,) = compiled([data], multiple_subgraphs=True)
    assert pieces_of(result) == [0, None, None, 1, 1, 1]
    assert result.report.verdict is Verdict.PROVED, result.report.headline


def test_models_compiled_together_have_one_token_and_rows_of_their_own() -> None:
    models = [random_network(7, 3, ["CONV_2D"]), random_network(8, 3, ["CONV_2D"])]
    both = compiled(models)
    assert [each.report.verdict for each in both] == [Verdict.PROVED] * 2
    files = [load(Content(each.data, each.name)) for each in both]
    assert [[each.type for each in file.executables] for file in files] == [PAIR, PAIR]
    assert len({e.parameter_caching_token for file in files for e in file.executables}) == 1
    used = sum(each.report.figures["cached_bytes"] for each in both)
    for each in both:
        figures = each.report.figures
        assert figures["remaining_bytes"] == CACHE_BYTES - used
    alone = compiled(models[:1])[0]
    assert load(Content(alone.data, "m")).executables[0].parameter_caching_token not in {
        e.parameter_caching_token for file in files for e in file.executables
    }


def test_later_models_stream_what_has_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "rows_to_keep", lambda phases, areas, most: 3)
    monkeypatch.setattr(planning, "_allotted", lambda wanted, most: [3, *(0 for _ in wanted[1:])])
    models = [random_network(7, 3, ["CONV_2D"]), random_network(8, 3, ["CONV_2D"])]
    first, second = compiled(models)
    assert first.report.figures["cached_bytes"] > 0
    assert second.report.figures["cached_bytes"] == 0
    assert second.report.figures["streamed_bytes"] > 0
    assert first.report.verdict is second.report.verdict is Verdict.PROVED


def test_models_that_overwrite_each_other_are_a_defect(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them in the same rows: each is right alone, and wrong behind the other."""
    monkeypatch.setattr(planning, "_ends", lambda kept: ((rows, rows) for rows in kept))
    models = [random_network(7, 3, ["CONV_2D"]), random_network(8, 3, ["CONV_2D"])]
    both = compiled(models)
    assert [each.report.verdict for each in both] == [Verdict.MISMATCH] * 2
    assert "gives other bytes" in both[0].report.message
    assert not any(each.data for each in both)


def test_parameters_that_are_loaded_again_are_found() -> None:
    models = [random_network(7, 3, ["CONV_2D"]), random_network(8, 3, ["CONV_2D"])]
    separate = [compiled([each], check=False)[0] for each in models]
    parts = [each.built.pieces[0].part[1] for each in separate if each.built]
    assert "loads its parameters 2 times" in sharing.check_sharing(parts)


def test_segments_are_balanced_and_give_the_same_as_the_whole(tmp_path: Path) -> None:
    network = RandomNetwork(5, (1, 12, 12, 8), signed=True)
    for _ in range(6):
        network.layer(network.values[-1], 24, 3)
    data = network.finish()
    (whole,) = compiled([data], check=False)
    parts = compiled([data], num_segments=3, times=True)
    assert [each.name for each in parts] == [f"m0_segment_{k}_of_3" for k in range(3)]
    assert all(each.report.verdict is Verdict.PROVED for each in parts)
    assert sum(len(each.report.rows) for each in parts) == 6
    milliseconds = [each.report.figures["milliseconds"] for each in parts]
    assert max(milliseconds) < 1.5 * min(milliseconds)
    files = []
    for each in parts:
        files.append(tmp_path / f"{each.name}_edgetpu.tflite")
        files[-1].write_bytes(each.data)
    (tensors,) = random_inputs(open_segment(files[0]).ports, 5, 1)
    expected = run(Content(whole.data, "m"), [tensors]).rows[-1].tensor
    found = run(files[0], [tensors], then=files[1:]).rows[-1].tensor
    assert found.tobytes() == expected.tobytes()


class WithoutTensors(Costs):
    """Costs of operators whose tensors take no time."""

    def __init__(self, operators: Sequence[float]) -> None:
        self.operators = list(operators)

    def segment(self, first: int, behind: int) -> float:
        return sum(self.operators[first:behind])


@pytest.mark.parametrize(
    ("costs", "on_chip", "count", "cuts"),
    [
        ([1, 1, 1, 1], [0, 1, 2, 3], 2, (0, 2, 4)),
        ([9, 1, 1, 1], [0, 1, 2, 3], 2, (0, 1, 4)),
        ([1, 1, 1, 9], [0, 1, 2], 2, (0, 2, 4)),
        ([5, 1, 1, 5], [1, 2], 2, (0, 2, 4)),
        ([2, 2, 2], [0, 1, 2], 3, (0, 1, 2, 3)),
    ],
)
def test_cuts_make_the_slowest_segment_as_fast_as_possible(
    costs: list[float], on_chip: list[int], count: int, cuts: tuple[int, ...]
) -> None:
    assert balanced(WithoutTensors(costs), on_chip, count) == cuts


def narrow_in_the_middle() -> bytes:
    """Convolutions over many channels, but for one result in the middle that has few."""
    network = RandomNetwork(5, (1, 24, 24, 8), signed=True)
    for channels in (32, 32, 32, 4, 32, 32):
        network.layer(network.values[-1], channels, 3)
    return network.finish()


def test_a_cut_is_where_few_bytes_cross_and_its_times_are_near_those_of_its_segments() -> None:
    data = narrow_in_the_middle()
    cut = best_cut(Content(data, "m"), 2)
    first, second = cut.stages
    assert (first.first, first.last, second.first, second.last) == (0, 3, 4, 5)
    assert first.output_bytes == second.input_bytes == 24 * 24 * 4
    made = compiled([data], num_segments=2, check=False, times=True)
    assert [len(each.report.rows) for each in made] == [4, 2]
    for stage, segment in zip(cut.stages, made, strict=True):
        assert stage.milliseconds == pytest.approx(segment.report.figures["milliseconds"], rel=0.1)
    slowest = max(first.milliseconds, second.milliseconds)
    assert cut.times.interval_milliseconds == slowest
    with pytest.raises(InputError, match="7 segments: only 6 operators"):
        best_cut(Content(data, "m"), 7)


def test_commands_say_what_other_cut_is_faster(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = narrow_in_the_middle()
    model = tmp_path / "net.tflite"
    model.write_bytes(data)
    assert run_command_line(["explain", str(model), "--chips", "2", "--json"]) == 0
    cut = json.loads(capsys.readouterr().out)["cut"]
    assert [stage["last"] for stage in cut["stages"]] == [3, 5]
    wide, narrow = tmp_path / "wide", tmp_path / "narrow"
    for folder, behind in ((wide, 1), (narrow, 4)):
        folder.mkdir()
        numbers = (range(behind), range(behind, 6))
        parts = [submodel(tflite.load(data), each) for each in numbers]
        for k, part in enumerate(compiled(parts, check=False)):
            (folder / f"net_segment_{k}_of_2_edgetpu.tflite").write_bytes(part.data)
    words = ["cycles", "--pipeline", "--reference", str(model)]
    assert run_command_line([*words, str(wide)]) == 0
    printed = capsys.readouterr().out
    assert "a cut for 2 chips, by the compiler's balance" in printed
    assert cut["stages"][0]["handed_on"][0] in printed
    assert run_command_line([*words, str(narrow)]) == 0
    assert "no faster cut" in capsys.readouterr().out
    assert run_command_line([*words, str(wide), "--host", "usb2"]) == 2
    assert "predicted for beagle-max and usb3" in capsys.readouterr().err
    assert run_command_line(["cycles", str(wide), "--reference", str(model)]) == 2


def test_the_command_writes_segments_by_the_vendors_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "net.tflite"
    model.write_bytes(random_network(3, 2, ["CONV_2D"]))
    words = ["compile", str(model), "-n", "2", "--no-check", "--explain-schedule"]
    assert run_command_line([*words, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert [each["name"] for each in printed["files"]] == [
        "net_segment_0_of_2", "net_segment_1_of_2",
    ]  # fmt: skip
    assert {row["file"] for row in printed["rows"]} == {each["name"] for each in printed["files"]}
    assert all(layer["cycles"] > 0 for layer in printed["layers"])
    for number in range(2):
        assert load(tmp_path / f"net_segment_{number}_of_2_edgetpu.tflite").executables
        log = (tmp_path / f"net_segment_{number}_of_2_edgetpu.log").read_text()
        assert "Number of Edge TPU subgraphs: 1" in log
    assert run_command_line(words) == 0
    assert "streamed" in capsys.readouterr().out
    assert run_command_line(["compile", str(model), "-n", "3"]) == 2
    assert "only 2 operators go to the chip" in capsys.readouterr().err


def test_the_command_compiles_models_together(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [tmp_path / "a.tflite", tmp_path / "b.tflite"]
    for seed, path in enumerate(paths):
        path.write_bytes(random_network(seed, 2, ["CONV_2D"]))
    assert run_command_line(["compile", *map(str, paths), "--no-check"]) == 0
    shown = capsys.readouterr().out
    assert shown.count("Number of Edge TPU subgraphs: 1") == 2
    assert (tmp_path / "a_edgetpu.tflite").exists()
    assert (tmp_path / "b_edgetpu.log").exists()
    assert run_command_line(["compile", str(paths[0]), str(paths[0])]) == 2
    assert "two models have one name" in capsys.readouterr().err


def test_if_one_of_the_models_is_wrong_none_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compilation, "check_sharing", lambda parts: "piece 0 gives other bytes")
    paths = [tmp_path / "a.tflite", tmp_path / "b.tflite"]
    for seed, path in enumerate(paths):
        path.write_bytes(random_network(seed, 1, ["CONV_2D"]))
    assert run_command_line(["compile", *map(str, paths)]) == 1
    assert not list(tmp_path.glob("*_edgetpu*"))


def test_what_is_not_made_of_several_models_is_refused() -> None:
    models = [random_network(1, 1), random_network(2, 1)]
    with pytest.raises(Unsupported, match="--num_segments 2 of 2 models"):
        compiled(models, num_segments=2)


def test_the_schedule_says_where_each_layer_is_and_how_long_it_takes() -> None:
    network = RandomNetwork(5, (1, 190, 190, 4), signed=True)
    wide = network.layer(network.values[0], 48, 1)
    network.layer(network.layer(wide, 48, 1), 4, 3)
    (result,) = compiled([network.finish()], check=False, times=True)
    layers = result.report.figures["layers"]
    assert [layer.number for layer in layers] == [0, 1, 2]
    assert all(layer.tiles == 16 and layer.bytes > 0 for layer in layers)
    assert max(layer.bands for layer in layers) > 1
    assert all(layer.cycles for layer in layers)
    assert result.built is not None
    (piece,) = result.built.pieces
    timing = timed(inference_of(piece))
    cycles = phase_cycles(piece, timing)
    # Nothing is left over but the way of the last part of the output to the host.
    assert 0.9 * timing.cycles < sum(cycles) <= timing.cycles
    by_layer = {layer.number: layer.cycles for layer in layers}
    for number, expected in by_layer.items():
        mine = [k for k, phase in enumerate(piece.phases) if phase.operation == number]
        assert sum(cycles[k] for k in mine) == expected
    assert sum(layer.kept + layer.streamed for layer in layers) > 48 * 48
