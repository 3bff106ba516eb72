"""Models that work together in time: stages of a pipeline, and turns on one chip."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from darwinn_formats.darwinn import load
from darwinn_testbench.chip.cycles import measure
from darwinn_testbench.chip.stage_times import PipelineTimes, stage_order
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.compiler.network import DenseNetwork, random_dense
from darwinn_testbench.compiler.package import compile_network, edgetpu_model
from darwinn_testbench.errors import InputError
from hypothesis import given
from hypothesis import strategies as st
from whole_models import chained

WIDTHS = ([256, 64], [64, 32], [32, 16])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("segments")
    for number, network in enumerate(chained(WIDTHS)):
        model = edgetpu_model(network, compile_network(network))
        (folder / f"net_segment_{number}_of_3_edgetpu.tflite").write_bytes(model)
    return folder


def told(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, object]:
    """What `cycles --json` prints."""
    assert run_command_line(["cycles", "--json", *map(str, arguments)]) == 0
    report = json.loads(capsys.readouterr().out)
    assert isinstance(report, dict)
    return report


def milliseconds(path: Path, kind: str) -> float:
    """Of the runs of a kind, as plain `cycles` gives them."""
    found = [row.milliseconds for row in measure(path).rows if row.type == kind]
    assert len(found) == 1 and found[0] is not None
    return found[0]


def test_stages_of_a_folder_are_timed_together(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = told(capsys, "--pipeline", folder)
    rows, pipeline = report["rows"], report["pipeline"]
    assert isinstance(rows, list) and isinstance(pipeline, dict)
    files = sorted(folder.iterdir())
    times = [milliseconds(each, "EXECUTION_ONLY") for each in files]
    assert [row["name"] for row in rows] == [each.name for each in files]
    assert [row["milliseconds"] for row in rows] == pytest.approx(times)
    loading = [milliseconds(each, "PARAMETER_CACHING") for each in files]
    assert [row["loading_milliseconds"] for row in rows] == pytest.approx(loading)
    assert [row["input_bytes"] for row in rows] == [width for width, _ in WIDTHS]
    assert pipeline["latency_milliseconds"] == pytest.approx(sum(times))
    assert pipeline["throughput"] == pytest.approx(1e3 / max(times))
    assert rows[pipeline["bottleneck"]]["busy"] == 1
    assert pipeline["bottleneck_file"] == rows[pipeline["bottleneck"]]["name"]


def test_stages_that_do_not_follow_each_other_are_refused(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second, _ = sorted(folder.iterdir())
    other = folder.parent / "other_edgetpu.tflite"
    other.write_bytes(second.read_bytes())
    assert run_command_line(["cycles", "--pipeline", str(other), str(first)]) == 2
    said = capsys.readouterr().err
    assert "no model before it computes its input tensor0" in said


def steady_latency(times: list[int]) -> int:
    """Of a line without room between its stages, inference by inference, when it is full."""
    stages = len(times)
    left = [0] * (stages + 1)  # when each stage was left last; behind the last one there is room
    latency = 0
    for _ in range(4 * stages + 4):
        enters = at = left[0]
        for stage, time in enumerate(times):
            done = at + time
            at = max(done, left[stage + 1]) if stage + 1 < stages else done
            left[stage] = at
        latency = at - enters
    return latency


def with_token(network: DenseNetwork, token: int) -> bytes:
    """The compiled network with another token: what the compiler does to models together."""
    model = edgetpu_model(network, compile_network(network))
    own = load(model).executables[0].parameter_caching_token.to_bytes(8, "little")
    assert model.count(own) == 2
    changed = model.replace(own, token.to_bytes(8, "little"))
    assert {each.parameter_caching_token for each in load(changed).executables} == {token}
    return changed


@given(st.lists(st.integers(1, 50), min_size=2, max_size=6))
def test_a_full_pipeline_is_that_of_a_line_without_queues(times: list[int]) -> None:
    found = PipelineTimes.of([float(each) for each in times], [str(each) for each in times])
    assert found.filled_milliseconds == steady_latency(times)
    assert found.latency_milliseconds == sum(times)
    assert found.interval_milliseconds == max(times)
    assert found.even_throughput >= found.throughput - 1e-9


def test_segments_are_in_the_order_of_their_numbers() -> None:
    names = [f"a/net_segment_{k}_of_12_edgetpu.tflite" for k in range(12)]
    assert stage_order(sorted(names)) == names
    assert stage_order(["b.tflite", "a.tflite"]) == ["b.tflite", "a.tflite"]
    for wrong, reason in (
        (names[:-1], "segment 11 of 12 is missing"),
        ([*names, names[0]], "a segment twice"),
        ([names[0], "net_segment_1_of_2.tflite"], "of several cuts, into 2 and 12"),
    ):
        with pytest.raises(InputError, match=reason):
            stage_order(wrong)


def test_models_on_one_chip_displace_parameters_of_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of one token they do not; with one that caches nothing they do, whatever their tokens are."""
    network = random_dense([256, 64], 5)
    paths = {}
    for name, token in (("a", 1), ("b", 1), ("c", 2)):
        paths[name] = tmp_path / f"{name}_edgetpu.tflite"
        paths[name].write_bytes(with_token(network, token))
    loading = milliseconds(paths["a"], "PARAMETER_CACHING")
    for order, swaps in (("ab", 0), ("abc", 3), ("ac", 2), ("aab", 0)):
        report = told(capsys, "--one-chip", *(paths[name] for name in order))
        rows, turns = report["rows"], report["turns"]
        assert isinstance(rows, list) and isinstance(turns, dict)
        assert turns["swap_milliseconds"] == pytest.approx(swaps * loading)
        inference = milliseconds(paths["a"], "EXECUTION_ONLY")
        assert turns["round_milliseconds"] == pytest.approx(
            swaps * loading + len(order) * inference
        )


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--pipeline", "--one-chip"], "--one-chip gives all of them one"),
        (["--pipeline", "--executable", "0"], "are for files one by one"),
        (["--one-chip", "--update"], "are for files one by one"),
        (["--one-chip"], "two models or more share a chip"),
        (["--pipeline"], "a pipeline has two models or more"),
    ],
)
def test_what_makes_no_sense_is_said(
    folder: Path, capsys: pytest.CaptureFixture[str], options: list[str], reason: str
) -> None:
    path = folder.parent / "alone.tflite"
    path.write_bytes(next(folder.iterdir()).read_bytes())
    assert run_command_line(["cycles", *options, str(path)]) == 2
    assert reason in capsys.readouterr().err
