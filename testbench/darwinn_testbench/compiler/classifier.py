"""A classifier of pictures, with operators on the CPU behind the chip.

It tells which of three colours a picture has most of: a dense layer adds them up. A softmax in
float32 behind it stays on the CPU, as the ends of many public models do. It is the smallest model
that can be asked about pictures; its weights are written down, not drawn.
"""

from __future__ import annotations

import numpy as np
from darwinn_formats import darwinn
from darwinn_formats.darwinn import Package
from darwinn_formats.darwinn.loader import CUSTOM_OPERATOR
from darwinn_formats.tflite import BuiltinOperator
from darwinn_formats.tflite.options import SoftmaxOptions

from darwinn_testbench.compiler.network import DenseLayer, DenseNetwork, Quantisation
from darwinn_testbench.compiler.package import custom_options
from darwinn_testbench.compiler.uncompiled import GraphWriter, add_dense

COLOURS = ("red", "green", "blue")
"""Classes of the classifier."""
SIZE = 16
"""Height and width of its input, in pixels."""
_PIXELS = Quantisation(np.float32(1 / 255), -128)
_LOGITS = Quantisation(np.float32(1 / 16), 0)
_WEIGHT = 100
_GAIN = 15.0
"""What a colour's mean, 0 to 1, counts beside those of the others."""


def colour_network() -> DenseNetwork:
    """The layer on the chip: of each colour its mean, less half of those of the others."""
    signs = _WEIGHT * np.eye(len(COLOURS)) - _WEIGHT // 2 * (1 - np.eye(len(COLOURS)))
    weights = np.tile(signs, SIZE * SIZE).astype(np.int8)
    scale = np.float32(_GAIN / (_WEIGHT * SIZE * SIZE))
    scales = np.full(len(COLOURS), scale)
    bias = np.zeros(len(COLOURS), np.int32)
    layer = DenseLayer(weights, scales, bias, _LOGITS, relu=False)
    return DenseNetwork("classifier", _PIXELS, (layer,))


def classifier_model(package: Package | None = None) -> bytes:
    """The ``.tflite``: before compilation, or with ``package`` in the place of its layer.

    It takes int8 pixels, 1x16x16x3, and gives the three probabilities, float32, 1x3.
    """
    network, writer = colour_network(), GraphWriter()
    classes = len(COLOURS)
    source = writer.activation(network.source, (1, SIZE, SIZE, classes), np.int8, _PIXELS)
    result = writer.activation(network.result, (1, classes), np.int8, _LOGITS)
    if package is None:
        add_dense(writer, network, source, result)
    else:
        options = custom_options(darwinn.dump(package))
        writer.custom_operator(CUSTOM_OPERATOR, (source,), result, options)
    logits, scores = (writer.floats(name, (1, classes)) for name in ("logits", "scores"))
    writer.operator(BuiltinOperator.DEQUANTIZE, (result,), logits, None)
    writer.operator(BuiltinOperator.SOFTMAX, (logits,), scores, SoftmaxOptions(1.0))
    return writer.finish()
