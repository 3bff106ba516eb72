"""The whole DMA program of real executables, performed by the harness: bytes equal the model's."""

from __future__ import annotations

import numpy as np
import pytest
from darwinn_formats.darwinn import load
from darwinn_sim.driver import layer_bytes
from harness_runs import design, require_toolchain, run

WINDOW_BASE = 1 << 63


def perform(workload, expected, tmp_path, **environment):
    """Run ``workload`` on the harness; compare memory, streams and completion."""
    from darwinn_testbench.rtl.workload import START, WorkloadResult

    source, target = tmp_path / "workload.npz", tmp_path / "result.npz"
    workload.save(source)
    chosen = design("workload", c_sources=("workload.cpp",), DataBytes=8)
    run(
        chosen,
        "workload_tests",
        "play",
        tmp_path,
        seed=1,
        DARWINN_WORKLOAD=source,
        DARWINN_RESULT=target,
        **environment,
    )
    found = WorkloadResult.load(target)
    for tag, data in expected.streams.items():
        assert found.streams[tag] == data, f"{tag.name} stream differs"
    for start, data in expected.regions.items():
        assert found.regions[start] == data, f"host memory at {start:#x} differs"
    started = found.events[found.events["kind"] >= START]
    assert np.all(started["kind"] == START), "a descriptor was refused"
    assert np.array_equal(started["index"], np.arange(len(workload.descriptors)))
    return found


def executables(path):
    file = load(path)
    return [e for model in file.models for e in (model.caching, model.inference) if e]


def perform_all(paths, tmp_path, stalls):
    """The DMA programs of all executables of the files."""
    require_toolchain()
    from darwinn_testbench.rtl.workload import record

    random = np.random.default_rng(1)
    for path in paths:
        for number, executable in enumerate(executables(path)):
            inputs = {
                layer.name or "": random.bytes(layer_bytes(layer) * max(1, executable.batch_size))
                for layer in executable.input_layers
            }
            workload, expected = record(executable, inputs, WINDOW_BASE)
            folder = tmp_path / path.stem / str(number)
            folder.mkdir(parents=True)
            perform(workload, expected, folder, DARWINN_STALLS=stalls)


def models(corpus):
    return sorted(corpus.rglob("*_edgetpu.tflite"), key=lambda path: path.stat().st_size)


@pytest.mark.parametrize("stalls", ["", "1"], ids=["free", "stalled"])
def test_dma_programs_of_the_smallest_models(corpus, tmp_path, stalls):
    perform_all(models(corpus)[:4], tmp_path, stalls)


@pytest.mark.nightly
@pytest.mark.parametrize("stalls", ["", "1"], ids=["free", "stalled"])
def test_dma_programs_of_all_models(corpus, tmp_path, stalls):
    perform_all(models(corpus)[4:], tmp_path, stalls)
