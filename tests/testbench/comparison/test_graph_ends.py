"""The graph around an executable has the network's inputs and outputs, or the verdict says so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from darwinn_formats import flatbuffer, tflite
from darwinn_testbench import verify
from darwinn_testbench.errors import InputError
from darwinn_testbench.report import Verdict

Change = Callable[[tflite.Model, tflite.SubGraph], tflite.SubGraph]


def changed(path: Path, change: Change, target: Path) -> Path:
    model = tflite.load(path.read_bytes())
    graph = change(model, model.subgraphs[0])
    target.write_bytes(flatbuffer.write(replace(model, subgraphs=(graph, *model.subgraphs[1:]))))
    return target


def quantised(index: int, scale: float, zero_point: int) -> Change:
    def change(model: tflite.Model, graph: tflite.SubGraph) -> tflite.SubGraph:
        tensors = list(graph.tensors)
        parameters = tflite.QuantizationParameters(scale=(scale,), zero_point=(zero_point,))
        tensors[index] = replace(tensors[index], quantization=parameters)
        return replace(graph, tensors=tuple(tensors))

    return change


def another_tensor(model: tflite.Model, graph: tflite.SubGraph) -> tflite.SubGraph:
    twin = replace(graph.tensors[graph.outputs[0]], name="nobody's")
    return replace(graph, tensors=(*graph.tensors, twin), outputs=(len(graph.tensors),))


def transposed(model: tflite.Model, graph: tflite.SubGraph) -> tflite.SubGraph:
    tensors = list(graph.tensors)
    place = graph.outputs[0]
    tensors[place] = replace(tensors[place], shape=tensors[place].shape[::-1])
    return replace(graph, tensors=tuple(tensors))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda model, graph: replace(graph, outputs=()), "has no outputs"),
        (lambda model, graph: replace(graph, outputs=graph.inputs), "writes its output input"),
        (another_tensor, "writes its output nobody's"),
        (transposed, "output output: the compiled graph has shape 72x1, the network 1x72"),
        (quantised(0, 1.0, 0), "input input: the compiled graph has scale 1 and zero point 0"),
        (quantised(1, 0.5, 77), "output output: the compiled graph has scale 0.5 and zero point"),
    ],
)
def test_a_graph_that_an_application_reads_otherwise_is_another_model(
    samples: Path, tmp_path: Path, change: Change, message: str
) -> None:
    model = changed(samples / "dense_edgetpu.tflite", change, tmp_path / "changed.tflite")
    with pytest.raises(InputError, match=message):
        verify(model, reference=samples / "dense.tflite", runs=1)


def test_what_the_graph_lacks_of_the_network_is_not_proved(samples: Path, tmp_path: Path) -> None:
    """All operators on the CPU are gone: what is left ends inside the network."""
    end = changed(
        samples / "classifier_edgetpu.tflite",
        lambda model, graph: replace(
            graph, operators=graph.operators[:1], outputs=graph.operators[0].outputs
        ),
        tmp_path / "end.tflite",
    )
    whole = verify(end, reference=samples / "classifier.tflite", runs=1)
    assert whole.verdict is Verdict.PASS
    assert "sampled: output scores of the reference" in whole.message
    part = verify(end, reference=samples / "classifier.tflite", runs=1, chip_only=True)
    assert part.verdict is Verdict.PROVED


def test_a_second_executable_that_writes_the_output_is_named(samples: Path, tmp_path: Path) -> None:
    twice = changed(
        samples / "dense_edgetpu.tflite",
        lambda model, graph: replace(graph, operators=graph.operators * 2),
        tmp_path / "twice.tflite",
    )
    found = verify(twice, reference=samples / "dense.tflite", runs=1)
    assert found.verdict is Verdict.PASS
    assert "sampled: further executables of the graph" in found.message


def test_an_input_of_another_name_is_the_network_s_by_order(samples: Path, tmp_path: Path) -> None:
    octets = (samples / "dense_edgetpu.tflite").read_bytes().replace(b"input", b"inpux")
    model = tmp_path / "renamed.tflite"
    model.write_bytes(octets)
    assert verify(model, reference=samples / "dense.tflite", runs=1).verdict is Verdict.PROVED
    scales = changed(model, quantised(0, 1.0, 0), tmp_path / "scales.tflite")
    with pytest.raises(InputError, match="input inpux: the compiled graph has scale 1 and zero"):
        verify(scales, reference=samples / "dense.tflite", runs=1)
