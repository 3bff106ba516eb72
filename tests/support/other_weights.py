"""A model before compilation with other weights in one of its operators."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
from darwinn_formats import tflite
from one_operator import Array


def with_weights(model: Path, operator: int, change: Callable[[Array], Array]) -> bytes:
    """The file with the weights of one operator changed in place."""
    data = bytearray(model.read_bytes())
    loaded = tflite.load(bytes(data))
    graph = loaded.subgraphs[0]
    weights = graph.tensors[graph.operators[operator].inputs[1]]
    old = loaded.constant(weights)
    assert old is not None
    place = bytes(data).find(old.tobytes())
    assert place > 0
    assert struct.unpack_from("<I", data, place - 4)[0] == old.nbytes
    data[place : place + old.nbytes] = np.ascontiguousarray(change(old.copy())).tobytes()
    return bytes(data)
