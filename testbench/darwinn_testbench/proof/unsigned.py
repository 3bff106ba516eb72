"""A network as the chip holds it: bytes of int8 tensors with the sign bit turned."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from darwinn_reference.tflite.graph import Network, NetworkTensor

_SIGN = np.uint8(0x80)
_RAISED = 128


def unsigned(network: Network) -> Network:
    """The same network with uint8 in the place of int8: no difference to a zero point changes."""
    return replace(network, tensors=tuple(map(_unsigned, network.tensors)))


def _unsigned(tensor: NetworkTensor) -> NetworkTensor:
    if tensor.dtype != np.int8 or not len(tensor.scale):
        return tensor
    constant = tensor.constant
    return replace(
        tensor,
        dtype=np.dtype(np.uint8),
        zero_point=tensor.zero_point + _RAISED,
        constant=None if constant is None else constant.view(np.uint8) ^ _SIGN,
    )
