"""Is a model the one before compilation? Its weights are bytes of the executable's parameters.

In a convolution or fully connected layer the weights of four consecutive input channels are four
consecutive bytes; in a depthwise layer those of four channels are the diagonal of 4 x 4 bytes, with
the zero point beside it (docs/chip-facts.md). Their order is the compiler's, so that only whether
they are there is asked. A layer of a genuine model is found whole; of another training run of the
same network nothing is, but for chance.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from darwinn_reference.arrays import AnyArray
from darwinn_reference.tflite.graph import Network, NetworkTensor, Operator
from darwinn_reference.tflite.layers import window_axes
from darwinn_reference.tflite.output_stage import NotComputableError
from darwinn_reference.tflite.stored_words import StoredWords

LEAST_SHARE = 0.25
"""Of the groups looked for in a layer. All of a genuine layer's are there, of another training run
almost none; a changed weight or damaged parameters are a mismatch of bytes."""

LEAST_GROUPS = 16
"""Different groups or values, below which nothing is said of a layer."""
_MOST_GROUPS = 300
_MOST_LOOKED_AT = 4096
_GROUP = 4
_SIGN_BIT = np.uint8(0x80)
_RENAMING = frozenset({"RESHAPE", "SQUEEZE", "EXPAND_DIMS", "QUANTIZE"})


@dataclass(frozen=True, slots=True)
class LayerShare:
    """How many of the groups that were looked for in a layer's weights the executable holds."""

    operator: Operator
    groups: int
    found: int

    @property
    def differs(self) -> bool:
        """Whether the executable was compiled from other weights."""
        return self.found < LEAST_SHARE * self.groups


def layer_shares(
    network: Network, stored: StoredWords, operators: Iterable[Operator]
) -> Iterator[LayerShare]:
    """Those of ``operators`` whose weights can be looked for.

    None where the executables have less parameters than a layer has weights: they are incomplete,
    which says nothing of the model.
    """
    for operator in operators:
        share = _likeliest(network, stored, operator)[1]
        if share.groups >= LEAST_GROUPS:
            yield share


def held_groups(network: Network, stored: StoredWords, operator: Operator) -> AnyArray:
    """Rows of bytes as the chip holds them: those furthest from the middle, the least likely to be
    there by chance. None for a layer whose form in the parameters is not known.
    """
    return _likeliest(network, stored, operator)[0]


def _likeliest(
    network: Network, stored: StoredWords, operator: Operator
) -> tuple[AnyArray, LayerShare]:
    """The groups of the form in which an executable holds most of a layer, and how many it holds.

    If it holds a layer in none of the forms that can be looked for, and there is another form, then
    nothing is said of it.
    """
    none = np.zeros((0, _GROUP), np.uint8), LayerShare(operator, 0, 0)
    found, hidden = [], False
    for groups in _forms(network, operator):
        hidden |= not len(groups)
        if len(groups) and groups.size <= stored.size:
            found.append((groups, LayerShare(operator, len(groups), stored.count(groups))))
    best = max(found, key=lambda each: each[1].found / each[1].groups, default=none)
    return none if hidden and best[1].differs else best


def _forms(network: Network, operator: Operator) -> Iterator[AnyArray]:
    """The groups of a layer in each form that a program may hold it in."""
    if operator.name not in _FORMS or len(operator.inputs) < 2:
        return
    tensor = network.tensors[operator.inputs[1]]
    if tensor.constant is None or tensor.dtype not in (np.uint8, np.int8) or not tensor.size:
        return
    if len(tensor.shape) != (2 if operator.name == "FULLY_CONNECTED" else 4):
        return
    octets = tensor.constant.view(np.uint8)
    if tensor.dtype == np.int8:
        octets = octets ^ _SIGN_BIT
    try:
        for groups in _FORMS[operator.name](network, operator, octets, tensor):
            yield _rarest(groups, octets)
    except NotComputableError:
        return


def _rarest(groups: AnyArray, octets: AnyArray) -> AnyArray:
    """Different groups, those of weights furthest from the middle first."""
    groups = groups[:: -(-len(groups) // _MOST_LOOKED_AT) or 1]
    groups = np.unique(groups[(groups != groups[:, :1]).any(axis=1)], axis=0)
    spread = np.abs(groups.astype(np.int64) - int(np.median(octets))).sum(axis=1)
    return groups[np.argsort(-spread, kind="stable")[:_MOST_GROUPS]]


def _dense(
    network: Network, operator: Operator, octets: AnyArray, tensor: NetworkTensor
) -> Iterator[AnyArray]:
    """Four input channels of a position; the channels of what was flattened, if it was, in any of
    the shapes that it had."""
    depths = [each.shape[-1] if each.shape else 0 for each in _shapes(network, operator.inputs[0])]
    if len(tensor.shape) == 4:
        depths = [tensor.shape[-1]]
        octets = _used_taps(network, operator, octets)
    for depth in dict.fromkeys(depths):
        whole = depth // _GROUP * _GROUP
        if whole and not octets.shape[-1] % depth:
            found = np.ascontiguousarray(octets.reshape(-1, depth)[:, :whole])
            yield found.reshape(-1, _GROUP)
        else:
            yield np.zeros((0, _GROUP), np.uint8)


def _used_taps(network: Network, operator: Operator, octets: AnyArray) -> AnyArray:
    """Weights that meet the image: over a small padded one the compiler leaves out the others."""
    size = network.tensors[operator.inputs[0]].shape[1:3]
    height, width = window_axes(operator.options, size, octets.shape[1:3])
    return octets[:, height.used(size[0])][:, :, width.used(size[1])]


def _shapes(network: Network, index: int) -> Iterator[NetworkTensor]:
    """The tensor ``index``, and those that it is under another shape."""
    makers = {index: each for each in network.operators for index in each.outputs}
    yield network.tensors[index]
    while index in makers and makers[index].name in _RENAMING:
        index = makers[index].inputs[0]
        yield network.tensors[index]


def _depthwise(
    network: Network, operator: Operator, octets: AnyArray, tensor: NetworkTensor
) -> Iterator[AnyArray]:
    """4 x 4 bytes of four channels of a position: weights on the diagonal."""
    channels = tensor.shape[-1]
    whole = channels // _GROUP * _GROUP
    if network.tensors[operator.inputs[0]].shape[-1:] != (channels,) or not tensor.zero_point.size:
        return
    shift = _SIGN_BIT if tensor.dtype == np.int8 else 0
    taps = (
        _used_taps(network, operator, octets).reshape(-1, channels)[:, :whole].reshape(-1, _GROUP)
    )
    blocks = np.full((len(taps), _GROUP, _GROUP), int(tensor.zero_point[0]) + shift, np.uint8)
    blocks[:, np.arange(_GROUP), np.arange(_GROUP)] = taps
    yield blocks.reshape(len(taps), _GROUP * _GROUP)


_FORMS = {
    "CONV_2D": _dense,
    "FULLY_CONNECTED": _dense,
    "DEPTHWISE_CONV_2D": _depthwise,
}


def operators_between(
    network: Network, outputs: Collection[int], inputs: Collection[int]
) -> tuple[Operator, ...]:
    """Operators that tensors ``outputs`` are computed by, back to ``inputs``, in their order."""
    needed = set(outputs)
    found = []
    for operator in reversed(network.operators):
        made = needed.intersection(operator.outputs).difference(inputs)
        if made:
            found.append(operator)
            needed.update(operator.inputs)
    return tuple(reversed(found))
