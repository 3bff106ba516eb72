"""What a proof refutes is shown: at an output that was run, within, or for inputs made for it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.comparison import visible
from darwinn_testbench.comparison.check import OutputRow
from darwinn_testbench.comparison.verify import verify
from darwinn_testbench.compiler import (
    compile_network,
    edgetpu_model,
    random_convolution,
    random_dense,
    uncompiled,
)
from darwinn_testbench.compiler.network import Convolution, DenseNetwork
from darwinn_testbench.proof.shown import NOT_SHOWN, Shown
from darwinn_testbench.report import Report, Verdict

DENSE = random_dense((40, 24, 10), 0)
IMAGE = random_convolution(6, 8, 4, 4, 1)


def with_weight(layer: int, place: tuple[int, int], change: int) -> DenseNetwork:
    layers = list(DENSE.layers)
    weights = layers[layer].weights.copy()
    weights[place] ^= change
    layers[layer] = replace(layers[layer], weights=weights)
    return replace(DENSE, layers=tuple(layers))


def verified(
    faulty: DenseNetwork | Convolution, network: DenseNetwork | Convolution, **options: Any
) -> Report[OutputRow]:
    compiled = edgetpu_model(network, compile_network(faulty))
    report = verify(compiled, uncompiled(network), **options)
    assert report.verdict is Verdict.MISMATCH
    return report


def outputs_of(
    model: DenseNetwork | Convolution, shown: Shown, network: DenseNetwork | Convolution
) -> np.ndarray[Any, Any]:
    """What a program gives for the inputs that show it."""
    inputs = [dict(shown.inputs)]
    compiled = edgetpu_model(network, compile_network(model))
    return verify(compiled, uncompiled(network), inputs, proof=False).rows[0].tensor


CONSTANT = [{"input": np.full((1, 40), DENSE.input.zero_point, np.int8)}]


@pytest.mark.parametrize("layer", [0, 1])
@pytest.mark.parametrize("change", [1, 4])
def test_an_input_is_made_for_a_weight_that_no_run_shows(layer: int, change: int) -> None:
    """Of a first layer and of one behind it; the chip and the network differ for it."""
    faulty = with_weight(layer, (3, 5), change)
    # All operands are zero: no weight shows.
    report = verified(faulty, DENSE, inputs=CONSTANT)
    shown = report.figures["proof"].shown
    assert all(row.verdict is Verdict.PASS for row in report.rows)
    assert shown is not None
    assert (shown.run, len(shown.made)) == (None, 1)
    assert shown.network != shown.chip
    assert str(shown) in report.message
    right, wrong = (outputs_of(each, shown, DENSE) for each in (DENSE, faulty))
    if shown.is_output:
        assert (right[shown.element], wrong[shown.element]) == (shown.network, shown.chip)
    made = shown.made[0]
    array = np.full(40, made.fill)
    array[list(made.places)] = made.values
    assert np.array_equal(array.reshape(1, 40), shown.inputs[made.name])


def test_an_input_is_made_for_a_weight_of_a_convolution() -> None:
    weights = IMAGE.weights.copy()
    weights[2, 1, 1, 3] ^= 1
    faulty = replace(IMAGE, weights=weights)
    zero = np.full((1, 6, 8, 4), IMAGE.input.zero_point, np.uint8)
    shown = verified(faulty, IMAGE, inputs=[{"input": zero}]).figures["proof"].shown
    assert shown is not None
    assert (shown.run, shown.is_output, shown.element[-1]) == (None, True, 2)


def test_an_output_of_a_run_is_named_with_what_it_was_drawn_from() -> None:
    report = verified(with_weight(1, (3, 5), 0x40), DENSE)
    shown = report.figures["proof"].shown
    assert shown.is_output
    row, found = next(
        (row, row.chip_arithmetic)
        for row in report.rows
        if row.chip_arithmetic and row.chip_arithmetic.differing
    )
    assert (shown.run, str(shown.origin)) == (row.run, row.origin)
    assert shown.element == found.first_difference


def test_what_no_input_shows_in_time_is_no_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(visible.Search, "shown", lambda *_: None)
    paths = tmp_path / "model_edgetpu.tflite", tmp_path / "model.tflite", tmp_path / "input.npy"
    faulty = with_weight(1, (3, 5), 1)
    paths[0].write_bytes(edgetpu_model(DENSE, compile_network(faulty)))
    paths[1].write_bytes(uncompiled(DENSE))
    np.save(paths[2], CONSTANT[0]["input"])
    words = ["verify", str(paths[0]), "--reference", str(paths[1]), "--inputs", str(paths[2])]
    assert run_command_line(words) == 1
    verdict, advice = capsys.readouterr().out.splitlines()[-2:]
    assert verdict.startswith("mismatch")
    assert NOT_SHOWN in verdict
    assert "--localise" not in advice
