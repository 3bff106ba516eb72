"""Results of layers are tapped whole: where a run stops at one, also where what feeds it is issued
after it, and where words come faster than they are taken out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from darwinn_formats import darwinn
from darwinn_formats.darwinn import CompiledModel
from darwinn_sim import chip
from darwinn_sim.accelerator import Accelerator, RunResult
from darwinn_sim.machine import layers, observer
from darwinn_sim.machine.examine import StopPoint, Tap

MODELS = ("dense_256", "gabor_64x64_7k_4o_2s", "looming_64x64_3x3", "mobilenet_v1_0.25_128_quant")


@pytest.mark.parametrize("name", MODELS)
def run(
    model: CompiledModel, number: int, until: StopPoint | None = None, schedule: int | None = None
) -> RunResult:
    """A run with a tap on a layer."""
    generator = np.random.default_rng(0)
    inputs = {
        layer.name or "": generator.integers(0, 256, layer.size_bytes, np.uint8).tobytes()
        for layer in model.inference.input_layers
    }
    accelerator = Accelerator(schedule=schedule)
    assert model.caching is not None
    accelerator.run(model.caching, {})
    return accelerator.run(model.inference, inputs, until=until, taps=[Tap(layer=number)])


@pytest.mark.parametrize("name", MODELS)
def test_results_of_a_layer_are_complete_where_the_run_stops(corpus: Path, name: str) -> None:
    (model,) = darwinn.load(corpus / "darwinn" / f"{name}_edgetpu.tflite").models
    count = len(layers.find(Accelerator().load(model.inference).chunks))
    for number in {0, count // 2, count - 1}:
        whole = run(model, number)
        stopped = run(model, number, StopPoint(layer=number))
        assert stopped.stopped
        assert not whole.stopped
        assert len(whole.tapped[0].data) > 0
        assert np.array_equal(np.sort(whole.tapped[0].data), np.sort(stopped.tapped[0].data))


def test_taps_with_little_room_are_those_with_much(
    corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Units that stand still until there is room go on where they were, in any order of units."""
    (model,) = darwinn.load(corpus / "darwinn" / f"{MODELS[1]}_edgetpu.tflite").models
    whole = np.sort(run(model, 0).tapped[0].data)
    monkeypatch.setattr(observer, "_TAP_WORDS", 2 * chip.LANES)
    assert len(whole) > 8 * chip.LANES
    for schedule in (None, 0, 1, 2, 3):
        assert np.array_equal(np.sort(run(model, 0, schedule=schedule).tapped[0].data), whole)
