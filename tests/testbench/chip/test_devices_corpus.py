"""Several programs, or many inferences, on one chip; several chips in a row."""

from __future__ import annotations

import gc
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from corpus_models import model_of, path_of
from darwinn_sim.machine.examine import StopPoint
from darwinn_testbench.chip.execution import run
from darwinn_testbench.chip.inputs import TensorMap, random_inputs
from darwinn_testbench.chip.model import BoundModel, open_models
from darwinn_testbench.chip.pipeline import Pipeline
from darwinn_testbench.chip.session import Device, Inference, Session
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.errors import InputError

SMALL, MIDDLE = "mobilenet_v1_0.25_128_quant", "mobilenet_v1_0.5_160_quant"
SEGMENT = "ssd_mobilenet_v1_coco_quant_postprocess_segment_{}_of_2"
INFERENCES = 20
GROWTH_BOUND = 4 << 10
"""Bytes that an inference may seem to leave: some 60 are counted for each call of a compiled
kernel, which the process does not keep. It is as large after 2,000 inferences as after 10,000
(``benchmarks.speed`` measures that). A trace or buffer that is left is more."""


def outputs_of(inference: Inference) -> list[bytes]:
    return [tensor.tobytes() for tensor in inference.outputs.values()]


def inputs_of(model: BoundModel, seed: int) -> TensorMap:
    (tensors,) = random_inputs(model.ports, seed=seed, runs=1)
    return tensors


def test_models_compiled_together_alternate_without_loading_parameters_again(
    corpus: Path,
) -> None:
    device = Device(strict=True)
    sessions = [
        Session(model_of(corpus, f"{one}_cocompiled_with_{other}"), device=device)
        for one, other in ((SMALL, MIDDLE), (MIDDLE, SMALL))
    ]
    alone = [Session(model_of(corpus, name)) for name in (SMALL, MIDDLE)]
    for session in sessions:
        assert session.load_parameters() is not None
    loaded = [session.caching for session in sessions]
    for seed in range(3):
        for session, single in zip(sessions, alone, strict=True):
            tensors = inputs_of(session.model, seed)
            given = {port.name: tensors[port.name] for port in session.model.ports}
            expected = single.infer(inputs_of(single.model, seed))
            assert outputs_of(session.infer(given)) == outputs_of(expected)
    assert [session.caching for session in sessions] == loaded


def test_a_model_with_another_token_makes_the_first_load_again(corpus: Path) -> None:
    device = Device(strict=True)
    one, other = (Session(model_of(corpus, name), device=device) for name in (SMALL, "dense_256"))
    tensors = inputs_of(one.model, 0)
    before = outputs_of(one.infer(tensors))
    first = one.caching
    other.infer(inputs_of(other.model, 0))
    assert outputs_of(one.infer(tensors)) == before
    assert one.caching is not first


def test_parameters_are_loaded_again_after_a_stop(corpus: Path) -> None:
    session = Session(model_of(corpus, "dense_256"), strict=True)
    tensors = inputs_of(session.model, 0)
    before = outputs_of(session.infer(tensors))
    assert session.infer(tensors, until=StopPoint(layer=0)).result.stopped
    assert outputs_of(session.infer(tensors)) == before


def test_segments_of_a_pipeline_run_one_after_another(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [path_of(corpus, SEGMENT.format(number)) for number in (0, 1)]
    first, second = (Session(open_models(path)[0], strict=True) for path in paths)
    tensors = inputs_of(first.model, 7)
    between = first.infer(tensors).outputs
    ports = {port.name: port for port in second.model.ports}
    assert ports.keys() == between.keys()
    expected = second.infer(between).outputs
    assert all(len(np.unique(tensor)) > 10 for tensor in expected.values())
    report = run(paths[0], [tensors], then=[paths[1]], strict=True, chip_only=True)
    assert {row.name: row.tensor.tobytes() for row in report.rows} == {
        name: tensor.tobytes() for name, tensor in expected.items()
    }
    arguments = ["run", str(paths[0]), "--then", str(paths[1]), "--seed", "7"]
    assert run_command_line([*arguments, "--json"]) == 0
    assert "TFLite_Detection_PostProcess:3" in capsys.readouterr().out
    assert run_command_line([*arguments, "--until", "layer:0"]) == 2


def test_segments_that_do_not_fit_are_refused(corpus: Path) -> None:
    sessions = [Session(model_of(corpus, name)) for name in (SMALL, SEGMENT.format(1))]
    with pytest.raises(InputError, match="no model before it computes its input"):
        Pipeline(sessions)


@pytest.mark.parametrize("name", [SMALL, "keras_lstm_mnist_ptq"])
def test_many_inferences_give_equal_bytes_and_leave_nothing_behind(corpus: Path, name: str) -> None:
    session = Session(model_of(corpus, name), strict=True)
    tensors = inputs_of(session.model, 3)
    first = outputs_of(session.infer(tensors))
    regions = len(list(session.accelerator.host.mappings))
    traced = len(session.accelerator.host.transfers)
    tracemalloc.start()
    allocated = []
    for _ in range(INFERENCES - 1):
        session.reset_states()
        assert outputs_of(session.infer(tensors)) == first
        gc.collect()
        allocated.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    # The first ones under observation leave their own traces, in place of some not observed.
    settled = allocated[len(allocated) // 2 :]
    assert settled[-1] - settled[0] < GROWTH_BOUND * (len(settled) - 1)
    assert len(session.accelerator.host.transfers) == traced
    assert len(list(session.accelerator.host.mappings)) == regions
