"""Models that answer questions about drawn pictures, made by the sample's compiler."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from darwinn_formats import flatbuffer, tflite
from darwinn_formats.tflite import BuiltinOperator, TensorType
from darwinn_formats.tflite.options import ReshapeOptions
from darwinn_testbench.compiler import compile_network, edgetpu_model, uncompiled
from darwinn_testbench.compiler.network import DenseLayer, DenseNetwork, Quantisation
from PIL import Image

SIZE = 8
COLOURS = ("red", "green", "blue")
"""Classes of the classifier: the colour that there is most of."""


def colour_network() -> DenseNetwork:
    """A dense layer whose outputs are how much there is of each colour."""
    weights = np.zeros((3, SIZE * SIZE, 3), np.int8)
    for colour in range(3):
        weights[colour, :, colour] = 100
    layer = DenseLayer(
        weights.reshape(3, -1),
        np.full(3, 1 / (100 * SIZE * SIZE), np.float32),
        np.zeros(3, np.int32),
        Quantisation(np.float32(1 / 256), -128),
        relu=False,
    )
    return DenseNetwork("colours", Quantisation(np.float32(1 / 256), -128), (layer,))


def colour_models(network: DenseNetwork | None = None) -> tuple[bytes, bytes]:
    """The classifier of pictures, compiled and before: RESHAPE on the CPU, a dense layer."""
    network = network or colour_network()
    compiled = edgetpu_model(network, compile_network(network))
    return of_pictures(compiled), of_pictures(uncompiled(network))


def of_pictures(model: bytes) -> bytes:
    """The model of a vector, with a RESHAPE of a picture before it."""
    read = tflite.load(model)
    (graph,) = read.subgraphs
    (source,) = graph.inputs
    vector = graph.tensors[source]
    picture = replace(vector, name="picture", shape=(1, SIZE, SIZE, 3))
    code = tflite.OperatorCode(int(BuiltinOperator.RESHAPE), "", 1, int(BuiltinOperator.RESHAPE))
    reshape = tflite.Operator(
        len(read.operator_codes), (len(graph.tensors),), (source,), ReshapeOptions(vector.shape)
    )
    assert vector.type is TensorType.INT8
    whole = replace(
        graph,
        tensors=(*graph.tensors, picture),
        inputs=(len(graph.tensors),),
        operators=(reshape, *graph.operators),
    )
    return flatbuffer.write(
        replace(read, operator_codes=(*read.operator_codes, code), subgraphs=(whole,))
    )


def colour_picture(colour: int, seed: int, size: int = 20) -> Image.Image:
    """A picture with most of one colour, and noise."""
    pixels = np.random.default_rng(seed).integers(0, 100, (size, size, 3))
    pixels[..., colour] += 120
    return Image.fromarray(pixels.astype(np.uint8))


def colour_folders(folder: Path, count: int) -> None:
    """``count`` pictures of each colour, in a folder of its name."""
    for colour, name in enumerate(COLOURS):
        (folder / name).mkdir(parents=True)
        for k in range(count):
            colour_picture(colour, 100 * colour + k).save(folder / name / f"{k}.png")
