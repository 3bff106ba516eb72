"""The open compiler at the limits of the chip: large images, long programs, wide inputs."""

from __future__ import annotations

import numpy as np
import pytest
from darwinn_formats.files import Content
from darwinn_formats.tflite import BuiltinOperator
from darwinn_formats.tflite import options as o
from darwinn_sim import chip
from darwinn_testbench.compilation.compile import Compiled, CompileOptions, compile_model
from darwinn_testbench.compilation.engines import compare_engines
from darwinn_testbench.compiler.parameters import UNIT_BYTES
from darwinn_testbench.compiler.random_networks import RandomNetwork
from darwinn_testbench.compiler.stages import fitting, needs, parts, planning, schedule
from darwinn_testbench.compiler.stages.bands import Chain
from darwinn_testbench.compiler.stages.demand import Demand
from darwinn_testbench.compiler.stages.placement import Placement
from darwinn_testbench.explain.placement import Place
from darwinn_testbench.report import Verdict


def compiled(network: RandomNetwork, *, check: bool = True) -> Compiled:
    return compile_model(Content(network.finish(), "model.tflite"), CompileOptions(check=check))


def assert_proved(result: Compiled) -> None:
    assert all(row.place is Place.CHIP for row in result.report.rows)
    assert result.report.verdict is Verdict.PROVED, result.report.headline


@pytest.mark.parametrize("shape", [(1, 13, 22, 50), (1, 9, 5, 131)])
def test_means_of_images_that_no_tile_holds_are_proved(
    shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit is lowered, since a proof of a large image takes long."""
    monkeypatch.setattr(needs, "_MOST_COPIED", 4000)
    network = RandomNetwork(3, shape, signed=True)
    source = network.function(network.values[0])
    axes = network._constant(np.array([1, 2], np.int32))
    result = network._value((1, shape[-1]), source.scale * 0.7, 3)
    inputs = source.index, axes
    network._operate(BuiltinOperator.MEAN, inputs, result, o.ReducerOptions(False))
    assert_proved(compiled(network))


def test_sums_and_prelus_run_band_by_band() -> None:
    network = RandomNetwork(5, (1, 120, 120, 4), signed=True)
    wide = network.layer(network.values[0], 96, 1)
    network.layer(network.binary(network.prelu(wide), BuiltinOperator.ADD), 4, 3)
    result = compiled(network)
    assert result.built is not None
    assert result.built.pieces[0].placement.chains
    assert_proved(result)


@pytest.mark.parametrize("limit", [2600, 3000])
def test_a_chain_that_is_tried_counts_as_one_that_is_there(
    limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a try does not count anew is what the chain does not change."""
    monkeypatch.setattr(fitting, "_LIMITS", (limit,))
    network = RandomNetwork(5, (1, 20, 24, 4), signed=True)
    value = network.layer(network.values[0], 40, 1)
    for kernel in (3, 1, 3, 1):
        value = network.layer(value, 40, kernel)
    network.layer(network.binary(value, BuiltinOperator.ADD), 4, 1)
    result = compiled(network, check=False)
    assert result.built is not None
    piece = result.built.pieces[0]
    demand = Demand(piece.graph, piece.placement.scratch_sizes)
    whole = demand.asked(piece.placement.chains)
    assert whole.needed.max() < demand.asked().needed.max()
    for chain in piece.placement.chains:
        trial = demand.asked([each for each in whole.chains if each != chain]).trial(chain)
        assert (trial.fixed <= whole.needed).all()
        assert trial.needed(chain).tolist() == whole.needed.tolist()
    assert any(each.over is not None for each in whole.chains)


def test_a_graph_keeps_its_placement_when_parameters_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    demands: list[Demand] = []

    def noted(demand: Demand) -> Placement:
        demands.append(demand)
        return fitting.fitted(demand)

    monkeypatch.setattr(planning, "fitted", noted)
    network = RandomNetwork(5, (1, 9, 9, 4), signed=True)
    network.layer(network.layer(network.values[0], 96, 3), 64, 3)
    result = compiled(network, check=False)
    assert result.report.figures["cached_bytes"] > 0
    assert len(demands) == 1


def test_an_input_without_a_place_keeps_what_reads_it_on_the_cpu() -> None:
    """The first operator on the chip was blamed, and then the next one."""
    network = RandomNetwork(5, (1, 4, 4, 3), signed=True)
    large = network.add_input((1, 640, 640, 16))
    network.layer(network.values[0], 8, 1)
    network.pool(large, BuiltinOperator.MAX_POOL_2D)
    rows = compiled(network, check=False).report.rows
    assert [row.place for row in rows] == [Place.CHIP, Place.CPU]


def chains_of(result: Compiled) -> list[Chain]:
    assert result.built is not None
    return [chain for piece in result.built.pieces for chain in piece.placement.chains]


def test_results_take_the_place_of_their_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    """Below their sources from the first band on, above them from the last one on."""
    monkeypatch.setattr(fitting, "_LIMITS", (2600,))
    network = RandomNetwork(5, (1, 20, 24, 4), signed=True)
    value = network.layer(network.values[0], 40, 1)
    for kernel in (3, 1, 3, 1):
        value = network.layer(value, 40, kernel)
    network.layer(value, 4, 1)
    result = compiled(network)
    assert result.built is not None
    (piece,) = result.built.pieces
    assert {
        piece.placement.bands_of(each, piece.graph.operations[each.last].result)[0] == 0
        for each in chains_of(result)
        if each.over is not None
    } == {False, True}
    assert_proved(result)


@pytest.mark.parametrize(
    ("limit", "across", "again", "kept"),
    [(1500, 1, False, True), (1200, 2, False, False), (1050, 6, True, False)],
)
def test_inputs_come_band_by_band(
    limit: int, across: int, again: bool, kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bands across share what comes, and keep rows of it for the next ones, or each gets its own
    where there is no room for that.

    Parameters come between bands where the chip keeps none.
    """
    monkeypatch.setattr(fitting, "_LIMITS", (limit,))
    if not kept:
        monkeypatch.setattr(planning, "rows_to_keep", lambda phases, areas, most: 0)
    network = RandomNetwork(5, (1, 44, 44, 3), signed=False)
    network.layer(network.window(network.values[0], 16, 5, (2, 2)), 8, 1)
    result = compiled(network)
    (chain,) = chains_of(result)
    assert (chain.fed, chain.across, chain.again) == (0, across, again)
    assert result.built is not None
    phases = [each.what for each in result.built.pieces[0].phases]
    assert any(each.endswith("that are there") for each in phases) is not again
    assert bool(result.report.figures["streamed_bytes"]) is not kept
    assert_proved(result)


def test_the_chain_whose_bands_cost_the_least_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """The shortest one has six times as many bands."""
    monkeypatch.setattr(fitting, "_LIMITS", (7000,))
    network = RandomNetwork(5, (1, 60, 60, 4), signed=True)
    value = network.layer(network.layer(network.values[0], 16, 1), 32, 1)
    network.layer(network.window(value, 8, 3, (2, 2)), 4, 1)
    result = compiled(network)
    (chain,) = chains_of(result)
    assert (chain.first, chain.last, chain.bands) == (0, 2, 4)
    assert_proved(result)


def test_what_does_not_fit_as_a_copy_stays_with_those_behind_it() -> None:
    """The operator that makes the image goes to the chip: its parts fit."""
    network = RandomNetwork(5, (1, 80, 80, 3), signed=True)
    network.transposed(network.layer(network.values[0], 32, 1))
    rows = compiled(network, check=False).report.rows
    assert [row.place for row in rows] == [Place.CHIP, Place.CPU]


@pytest.mark.parametrize("channels", [5, 1029])
def test_inputs_of_any_number_of_channels_come_in(channels: int) -> None:
    """More than a thousand of them, no multiple of four, ended in an internal error."""
    network = RandomNetwork(5, (1, 2, 3, channels), signed=False)
    network.leaky(network.values[0])
    assert_proved(compiled(network))


def test_rows_that_become_pixels_are_few_steps() -> None:
    """The head of YOLOv5: a run for each row was too many."""
    network = RandomNetwork(3, (1, 28, 28, 18), signed=True)
    network.reshaped(network.values[0], (1, 784, 3, 6))
    assert_proved(compiled(network))


def test_single_channels_of_a_vector_read_nothing_behind_its_end() -> None:
    """A program that depends on what memories held beforehand is not lifted."""
    network = RandomNetwork(3, (1, 4), signed=True)
    network.reshaped(network.leaky(network.values[0]), (1, 1, 4, 1))
    data = network.finish()
    result = compile_model(Content(data, "model.tflite"), CompileOptions(check=False))
    assert not compare_engines(result.data, data, "model").reason


def test_a_chunk_waits_for_no_parameters_that_come_in_the_next_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The host was asked for all at once, and sent the next chunk behind what had no room yet."""
    monkeypatch.setattr(planning, "rows_to_keep", lambda phases, areas, most: 0)
    monkeypatch.setattr(schedule, "_CHUNK_BUNDLES", 300)
    network = RandomNetwork(3, (1, 512), signed=True)
    value = network.values[0]
    for _ in range(4):
        value = network.dense(value, [512])
    model = Content(network.finish(), "model.tflite")
    result = compile_model(model, CompileOptions(check=True, times=True))
    assert result.report.figures["streamed_bytes"] > 2 * chip.PARAMETER_UNITS * UNIT_BYTES
    assert_proved(result)


def test_a_program_that_waits_for_its_next_chunk_for_ever_is_not_given_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The host is asked for the parameters of all chunks in the first one."""
    monkeypatch.setattr(planning, "rows_to_keep", lambda phases, areas, most: 0)
    monkeypatch.setattr(schedule, "_CHUNK_BUNDLES", 300)
    parameters = schedule.Parameters
    monkeypatch.setattr(
        schedule,
        "Parameters",
        lambda program, phases, cache, ends: parameters(program, phases, cache, []),
    )
    network = RandomNetwork(3, (1, 512), signed=True)
    value = network.values[0]
    for _ in range(4):
        value = network.dense(value, [512])
    result = compiled(network)
    assert result.report.verdict is Verdict.FAULT and not result.data
    assert "a defect of this compiler, nothing is written" in result.report.headline
    assert "waits for ever with host link usb3" in result.report.headline


def test_outputs_leave_before_what_does_not_need_them() -> None:
    """The host took them when everything had been computed."""
    network = RandomNetwork(3, (1, 6, 6, 4), signed=True)
    network.show(network.layer(network.values[0], 8, 3))
    network.layer(network.values[-1], 8, 3)
    result = compiled(network)
    assert result.built is not None
    phases = [(each.operation, each.what.split()[0]) for each in result.built.pieces[0].phases]
    assert [each for each in phases if each[1] in ("convolution", "output")] == [
        (0, "convolution"),
        (-1, "output"),
        (1, "convolution"),
        (-1, "output"),
    ]
    assert_proved(result)


def test_long_steps_are_cut_into_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    network = RandomNetwork(3, (1, 7, 9, 6), signed=True)
    network.transposed(network.values[0])
    whole = compiled(network, check=False)
    monkeypatch.setattr(parts, "_FEW", 1)
    monkeypatch.setattr(parts, "_MOST_BUNDLES", 1)
    cut = compiled(network)
    assert whole.built is not None
    assert cut.built is not None
    assert len(cut.built.pieces[0].phases) > len(whole.built.pieces[0].phases)
    assert_proved(cut)


def test_a_step_too_long_for_program_memory_keeps_its_operator_on_the_cpu(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    network = RandomNetwork(3, (1, 9, 9, 6), signed=True)
    network.transposed(network.layer(network.values[0], 8, 1))
    alone = RandomNetwork(3, (1, 9, 9, 6), signed=True)
    alone.layer(alone.values[0], 8, 1)
    longest = compiled(alone, check=False).report.figures["instruction_bytes"] // 16
    monkeypatch.setattr(schedule, "_MOST_BUNDLES", longest)
    rows = compiled(network, check=False).report.rows
    assert [row.place for row in rows] == [Place.CHIP, Place.CPU]
    assert "program memory" in rows[1].reason
