"""What is said of models that are lifted, and of those that never are."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from darwinn_sim.lifting.walk import NotLifted
from darwinn_testbench.chip.model import BoundModel

from benchmarks import cores, many_inputs


def test_a_model_with_variables_is_not_said_to_be_lifted() -> None:
    many_inputs.refuse_variables(cast(BoundModel, SimpleNamespace(states={})))
    with pytest.raises(NotLifted, match="it has variables"):
        many_inputs.refuse_variables(cast(BoundModel, SimpleNamespace(states={"a": None})))


def test_neither_bench_lifts_a_real_model_with_variables(corpus: Path) -> None:
    path = corpus / "darwinn" / "keras_lstm_mnist_ptq_edgetpu.tflite"
    assert "it has variables" in str(many_inputs.measure(path, 1, 1))
    of_cores = cores.measure(path, 1, 1)
    assert of_cores.equal and of_cores.after is None and "it has variables" in str(of_cores.lifted)
