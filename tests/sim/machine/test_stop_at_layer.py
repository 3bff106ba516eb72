"""A stop at a layer comes when it is complete, also where what feeds it is issued after it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from darwinn_formats import darwinn
from darwinn_sim.accelerator import Accelerator, RunResult
from darwinn_sim.machine import layers
from darwinn_sim.machine.examine import StopPoint, Tap

MODELS = ("dense_256", "gabor_64x64_7k_4o_2s", "looming_64x64_3x3", "mobilenet_v1_0.25_128_quant")


@pytest.mark.parametrize("name", MODELS)
def test_results_of_a_layer_are_complete_where_the_run_stops(corpus: Path, name: str) -> None:
    (model,) = darwinn.load(corpus / "darwinn" / f"{name}_edgetpu.tflite").models
    caching = model.caching
    assert caching is not None
    generator = np.random.default_rng(0)
    inputs = {
        layer.name or "": generator.integers(0, 256, layer.size_bytes, np.uint8).tobytes()
        for layer in model.inference.input_layers
    }

    def run(until: StopPoint | None, number: int) -> RunResult:
        chip = Accelerator()
        chip.run(caching, {})
        return chip.run(model.inference, inputs, until=until, taps=[Tap(layer=number)])

    count = len(layers.find(Accelerator().load(model.inference).chunks))
    for number in {0, count // 2, count - 1}:
        whole, stopped = run(None, number), run(StopPoint(layer=number), number)
        assert stopped.stopped
        assert not whole.stopped
        assert len(whole.tapped[0].data) > 0
        assert np.array_equal(np.sort(whole.tapped[0].data), np.sort(stopped.tapped[0].data))
