"""What operators on the CPU give the chip is computed once; the chip is judged from there on."""

from __future__ import annotations

from pathlib import Path

import pytest
from darwinn_formats.files import Content
from darwinn_testbench.comparison.verify import verify
from darwinn_testbench.compilation import compile as compilation
from darwinn_testbench.compilation.compile import CompileOptions, compile_model
from darwinn_testbench.compiler.random_networks import RandomNetwork
from darwinn_testbench.report import Verdict


def test_a_convolution_on_the_cpu_rounds_as_it_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LiteRT rounds some of its sums in another way than the chip would."""
    network = RandomNetwork(5, (1, 64, 64, 4), signed=True)
    first = network.layer(network.values[0], 32, 3)
    network.layer(network.layer(first, 16, 3), 8, 3)
    reference, compiled = tmp_path / "model.tflite", tmp_path / "model_edgetpu.tflite"
    reference.write_bytes(network.finish())
    monkeypatch.setattr(compilation, "_ends", lambda *_: {0: "left to the CPU"})
    result = compile_model(Content(reference.read_bytes(), "model"), CompileOptions(check=False))
    assert result.data is not None
    compiled.write_bytes(result.data)
    report = verify(compiled, reference, chip_only=True, runs=10, proof=False, hazards=False)
    assert report.verdict is Verdict.PASS, report.message
