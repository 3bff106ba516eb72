"""Whether the graph around an executable has the inputs and outputs of the network.

An application reads and writes these: their order, types, shapes, scales and zero points. In the
compiled models of public repositories they are those of the model before compilation, one by one.
A segment has some inner tensors of the network in their place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from darwinn_reference.tflite.graph import Network, NetworkTensor

from darwinn_testbench.chip.inputs import TensorPort
from darwinn_testbench.chip.whole import GraphEnds

_Named = Callable[[str], str]


def difference(ends: GraphEnds, network: Network, name: _Named, *, in_order: bool = True) -> str:
    """Say what is wrong with the ends of a compiled graph; empty if nothing is.

    ``name`` gives the name in the network of a tensor of the graph. ``in_order``: the order counts,
    as nobody has said which is which.
    """
    if not ends.outputs:
        return "the compiled graph has no outputs"
    through = {network.tensors[index].name for index in {*network.inputs} & {*network.outputs}}
    unwritten = [each for each in ends.unwritten if name(each) not in through]
    if unwritten:
        return f"no operator of the compiled graph writes its output {unwritten[0]}"
    for what, own, indices in _kinds(ends, network):
        others = [network.tensors[index] for index in indices]
        pairs = _paired(own, others, network, name)
        for port, tensor in pairs:
            if found := _unlike(port, tensor):
                return f"{what} {port.name}: the compiled graph has {found}"
        names, wanted = [tensor.name for _, tensor in pairs], [each.name for each in others]
        if in_order and names != wanted and set(names) == set(wanted):
            return f"the {what}s of the compiled graph are in the order {', '.join(names)}"
    return ""


def lacking(ends: GraphEnds, network: Network, name: _Named) -> list[str]:
    """Names of the network's outputs that are none of the compiled graph's."""
    others = [network.tensors[index] for index in network.outputs]
    given = {tensor.name for _, tensor in _paired(ends.outputs, others, network, name)}
    return [each.name for each in others if each.name not in given]


def _kinds(
    ends: GraphEnds, network: Network
) -> tuple[tuple[str, Sequence[TensorPort], Sequence[int]], ...]:
    inputs = [index for index in network.inputs if not network.tensors[index].variable]
    return ("input", ends.inputs, inputs), ("output", ends.outputs, network.outputs)


def _paired(
    own: Sequence[TensorPort],
    others: Sequence[NetworkTensor],
    network: Network,
    name: _Named,
) -> list[tuple[TensorPort, NetworkTensor]]:
    """Pair ends of the graph with tensors of the network: by name, or by order if the network knows
    none of the names."""
    found = [network.tensor(name(port.name)) for port in own]
    if all(tensor is None for tensor in found) and len(own) == len(others):
        return list(zip(own, others, strict=True))
    return [(port, tensor) for port, tensor in zip(own, found, strict=True) if tensor is not None]


def _unlike(port: TensorPort, tensor: NetworkTensor) -> str:
    """Say how an end differs from its tensor; empty if an application sees the same."""
    if port.dtype != tensor.dtype:
        return f"{port.dtype}, the network {tensor.dtype}"
    # Operators that decide a shape when they run leave it out.
    if port.shape and tensor.shape and port.shape != tensor.shape:
        return f"shape {_sizes(port.shape)}, the network {_sizes(tensor.shape)}"
    scale, zero_point = tensor.quantisation
    if (port.scale, port.zero_point) != (scale, zero_point):
        return (
            f"scale {port.scale:.6g} and zero point {port.zero_point}, "
            f"the network {scale:.6g} and {zero_point}"
        )
    return ""


def _sizes(shape: Sequence[int]) -> str:
    return "x".join(map(str, shape))
