"""Find, in a few words, what in an operator violates a condition of the chip; empty if nothing
does.

Each function examines one thing; ``conditions`` says which functions apply to which operator.
"""

from __future__ import annotations

from collections.abc import Callable

from darwinn_testbench.explain.graph import EIGHT_BITS, Node, Value

# Types and shapes, of any operator.


def types(node: Node) -> str:
    """Data that is not quantised to 8 bits; a variable of an LSTM may have 16."""
    wrong = [
        each
        for each in (*node.data, *node.outputs)
        if each.type not in EIGHT_BITS and not (each.variable and each.type == "INT16")
    ]
    return f"{wrong[0].type.lower()} data" if wrong else ""


def float_weights(node: Node) -> str:
    """Constants in floating point."""
    wrong = [each for each in node.given if each.constant and each.type.startswith("FLOAT")]
    return f"{wrong[0].type.lower()} parameters" if wrong else ""


def not_quantised(node: Node) -> str:
    """Data or results without a scale."""
    wrong = [each for each in (*node.data, *node.outputs) if not each.scales]
    return "8 bits without a scale" if wrong else ""


def dynamic(node: Node) -> str:
    """A dimension that is known at run time only; the first may be open, which counts as 1."""
    for each in (*node.data, *node.outputs):
        if any(size < 0 for size in (*each.signature[1:], *each.shape)) or 0 in each.shape:
            return "dynamic shape"
    return ""


def batch(node: Node) -> str:
    """More than one element in another dimension than the three innermost."""
    for each in (*node.data, *node.outputs):
        if len(each.shape) > 3 and max(each.shape[:-3]) > 1:
            return f"batch {max(each.shape[:-3])}" if len(each.shape) == 4 else "5 dimensions"
    return ""


# What single operators do not allow.


def activation(node: Node) -> str:
    """An activation function that is fused into the operator."""
    activation = node.option("fused_activation_function")
    return f"fused {activation.name}" if activation else ""


def parameters(*places: int) -> Callable[[Node], str]:
    """Whether the inputs at ``places`` are all in the file."""

    def finds(node: Node) -> str:
        values = [node.inputs[k] for k in places if k < len(node.inputs)]
        computed = any(each is not None and not each.constant for each in values)
        return "parameters are computed" if computed else ""

    return finds


def dilation(node: Node) -> str:
    """Dilation that is not the same along rows and columns."""
    rates = (node.option("dilation_h_factor", 1), node.option("dilation_w_factor", 1))
    return "" if rates[0] == rates[1] else f"dilation {rates[0]}x{rates[1]}"


def constant_part(node: Node) -> str:
    """A constant that is concatenated and no padding by zeros."""
    constants = [k for k, each in enumerate(node.inputs) if each is not None and each.constant]
    if not constants:
        return ""
    if len(node.inputs) != 2:
        return "a constant among several inputs"
    data = node.constant(constants[0])
    return "" if data is not None and not data.any() else "a constant that is not 0"


def weights_format(node: Node) -> str:
    """Weights in another format than the default one."""
    weights = node.option("weights_format")
    return f"weights {weights.name}" if weights else ""


def one_dimension(of: str) -> Callable[[Node], str]:
    """Whether the ``result``, or else the ``input``, has at most one dimension of several."""

    def finds(node: Node) -> str:
        (value, *_) = (*node.outputs, None) if of == "result" else (*node.data, None)
        many = value is not None and len(value.extent) > 1
        return f"{of} of {len(value.extent)} dimensions" if many and value is not None else ""

    return finds


def _axes(node: Node) -> tuple[list[int], Value | None]:
    """The axes that an operator with them as second input works along, from the first."""
    data, axes = (*node.inputs, None)[0], node.constant(1)
    if data is None or axes is None or axes.dtype.kind not in "iu":
        return [], data
    rank = len(data.shape)
    return [int(axis) % rank if rank else 0 for axis in axes.reshape(-1)], data


def along_batch(node: Node) -> str:
    """A reduction of the batch."""
    axes, data = _axes(node)
    return "along the batch" if data is not None and len(data.shape) > 3 and 0 in axes else ""


def takes_floats(node: Node) -> str:
    """Floating point data."""
    kinds = [each.type.lower() for each in node.data if each.type.startswith("FLOAT")]
    return f"{kinds[0]} data" if kinds else ""


def odd_depth(node: Node) -> str:
    """A reduction over channels, the number of which is no multiple of 4."""
    axes, data = _axes(node)
    if data is None or not data.shape or len(data.shape) - 1 not in axes:
        return ""
    return f"over {data.shape[-1]} channels" if data.shape[-1] % 4 else ""


def pads_batch(node: Node) -> str:
    """Padding of another dimension than the three innermost."""
    sizes = node.constant(1)
    if sizes is None or sizes.ndim != 2 or len(sizes) < 4:
        return ""
    return "pads the batch" if sizes[:-3].any() else ""


def pads_channels(node: Node) -> str:
    """Padding of channels, of which the table of 2019 says that it is not supported."""
    sizes = node.constant(1)
    pads = sizes is not None and sizes.ndim == 2 and len(sizes) == 4 and sizes[-1].any()
    return "pads channels?" if pads else ""


def over_channels(node: Node) -> str:
    """A reduction over channels, of which the table of 2019 says the same."""
    axes, data = _axes(node)
    return "over channels?" if data is not None and len(data.shape) - 1 in axes else ""


def relays(node: Node) -> str:
    """Dropping a dimension behind a larger one moves the data: [1, 1, 10] stays, [5, 1, 10] not."""
    if not node.data:
        return ""
    shape = node.data[0].shape[-3:]
    first = next((k for k, size in enumerate(shape) if size > 1), len(shape))
    return "drops inner dimensions?" if 1 in shape[first:] else ""


def packs_batch(node: Node) -> str:
    """Packing along the batch."""
    shape = node.outputs[0].shape if node.outputs else ()
    axis = node.option("axis", 0)
    return "along the batch" if len(shape) > 3 and axis in (0, -len(shape)) else ""


def alpha(node: Node) -> str:
    """Slopes that differ along rows or columns."""
    alpha = node.inputs[1] if len(node.inputs) > 1 else None
    return "alpha of several dimensions" if alpha is not None and len(alpha.extent) > 1 else ""


def splits_batch(place: int, data: int) -> Callable[[Node], str]:
    """Whether the axis, the input at ``place``, splits the batch of the input at ``data``."""

    def finds(node: Node) -> str:
        axis, value = node.constant(place), node.inputs[data] if data < len(node.inputs) else None
        if axis is None or axis.size != 1 or axis.dtype.kind not in "iu":
            return ""
        if value is None or len(value.shape) < 4:
            return ""
        splits = len(node.outputs) > 1 and int(axis.reshape(-1)[0]) in (0, -len(value.shape))
        return "splits the batch" if splits else ""

    return finds


def strides(node: Node) -> str:
    """A slice with other steps than 1, or with new axes."""
    strides = node.constant(3)
    if strides is not None and (strides != 1).any():
        return f"strides {'x'.join(str(each) for each in strides.reshape(-1))}"
    masks = (node.option("ellipsis_mask", 0), node.option("new_axis_mask", 0))
    return "a mask for new axes" if any(masks) else ""


def long_softmax(node: Node) -> str:
    """More elements than a softmax may have."""
    longest = max((each.elements for each in node.data), default=0)
    return f"{longest:,} elements" if longest > 16_000 else ""


def result_bytes(node: Node) -> int:
    """Bytes of the largest result."""
    return max((each.bytes for each in node.outputs), default=0)


def averaged(node: Node) -> int:
    """Elements of which each element of a result is the mean."""
    if not node.data or not node.outputs:
        return 0
    return node.data[0].elements // max(node.outputs[0].elements, 1)


def largest_bytes(node: Node) -> int:
    """Bytes of the largest of the inputs that are no constants, and of the results."""
    return max((each.bytes for each in (*node.data, *node.outputs)), default=0)


def single_pixel(node: Node) -> bool:
    """Whether an operator reads a picture of one pixel: enlarging that is a broadcast."""
    return bool(node.data) and node.data[0].shape[1:3] == (1, 1)


def enlargement(node: Node) -> int:
    """How many times more rows or columns a result has."""
    if not node.data or not node.outputs:
        return 0
    before, after = node.data[0].shape, node.outputs[0].shape
    if len(before) != 4 or len(after) != 4:
        return 0
    return max(round(after[k] / max(before[k], 1)) for k in (1, 2))
