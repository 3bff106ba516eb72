"""Small networks of the kinds that users export, operator for operator, against plain NumPy.

Each is written twice at once: as a program, and in float64 from the definition of its operators.
Every tensor on the way is compared, not only the output.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from darwinn_formats.executorch.builder import ProgramBuilder, Value
from darwinn_reference.executorch import ExecutorchReference
from darwinn_reference.protocol import Intermediate
from numpy.typing import NDArray

Array = NDArray[Any]
TOLERANCE = 2e-5


@dataclass(frozen=True)
class Twin:
    """A tensor of the program, and what it has to be."""

    value: Value
    array: Array

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape


class Net:
    """A program that grows together with its results; constants are random, from a seed."""

    def __init__(self, seed: int) -> None:
        self.program = ProgramBuilder()
        self.method = self.program.method()
        self.random = np.random.default_rng(seed)
        self.inputs: list[Array] = []
        self.expected: dict[str, Array] = {}

    def normal(self, *shape: int) -> Array:
        return self.random.normal(0, 1, shape).astype(np.float32)

    def weights(self, *shape: int) -> Array:
        """Outputs first; scaled so that sums are about 1."""
        return self.normal(*shape) / np.float32(np.sqrt(np.prod(shape[1:])))

    def input(self, array: Array) -> Twin:
        self.inputs.append(array)
        return Twin(self.method.input(array.dtype, array.shape), array)

    def constant(self, array: Array) -> Any:
        return self.program.constant(array)

    def call(self, name: str, *arguments: Any, gives: Array) -> Twin:
        """Call an operator whose result has to be ``gives``."""
        dtype = np.float32 if gives.dtype == np.float64 else gives.dtype
        output = self.method.tensor(dtype, gives.shape)
        self.method.call(name, *map(_handle, arguments), outputs=[output])
        self.expected[f"%{output.index}"] = gives
        return Twin(output, gives)

    def reference(self, *outputs: Twin) -> ExecutorchReference:
        """The program, with these outputs."""
        self.method.output(*(twin.value for twin in outputs))
        return ExecutorchReference(self.program.build())

    def check(self, reference: ExecutorchReference, outputs: Sequence[Twin]) -> None:
        """A call on the inputs: every tensor that it writes, and the outputs."""
        seen = []

        def tap(entry: Intermediate) -> None:
            _assert_close(entry.data, self.expected[entry.name], entry.operation)
            seen.append(entry.name)

        results = reference.run(self.inputs, tap=tap)
        assert set(seen) == set(self.expected)
        for result, twin in zip(results, outputs, strict=True):
            _assert_close(np.asarray(result.data), twin.array, result.name)

    # --- layers -----------------------------------------------------------------------------------

    def convolution(
        self, x: Twin, channels: int, kernel: int, stride: int = 1, padding: int = 0
    ) -> Twin:
        weights, bias = self.weights(channels, x.shape[1], kernel, kernel), self.normal(channels)
        margins = [(0, 0), (0, 0), (padding, padding), (padding, padding)]
        windows = _windows(np.pad(x.array, margins), kernel, stride)
        gives = np.einsum("nchwij,ocij->nohw", windows, weights.astype(np.float64))
        return self.call(
            "aten::convolution.out",
            *(x, self.constant(weights), self.constant(bias)),
            *([stride] * 2, [padding] * 2, [1, 1], False, [0, 0], 1),
            gives=gives + bias[:, None, None],
        )

    def linear(self, x: Twin, size: int) -> Twin:
        weights, bias = self.weights(size, x.shape[1]), self.normal(size)
        turned = self.call(
            "aten::permute_copy.out", self.constant(weights), [1, 0], gives=weights.T
        )
        gives = bias + x.array @ weights.T.astype(np.float64)
        return self.call("aten::addmm.out", self.constant(bias), x, turned, 1, 1, gives=gives)

    def relu(self, x: Twin) -> Twin:
        return self.call("aten::relu.out", x, gives=np.maximum(x.array, 0))

    def add(self, a: Twin, b: Twin) -> Twin:
        return self.call("aten::add.out", a, b, 1, gives=a.array + b.array)

    def mul(self, a: Twin, b: Twin) -> Twin:
        return self.call("aten::mul.out", a, b, gives=a.array * b.array)

    def cat(self, parts: Sequence[Twin], axis: int) -> Twin:
        gives = np.concatenate([part.array for part in parts], axis)
        return self.call("aten::cat.out", [part.value for part in parts], axis, gives=gives)

    def view(self, x: Twin, *shape: int) -> Twin:
        return self.call("aten::view_copy.out", x, list(shape), gives=np.reshape(x.array, shape))

    def permute(self, x: Twin, *axes: int) -> Twin:
        return self.call("aten::permute_copy.out", x, list(axes), gives=np.transpose(x.array, axes))

    def product(self, a: Twin, b: Twin) -> Twin:
        return self.call("aten::bmm.out", a, b, gives=a.array @ b.array)

    def softmax(self, x: Twin) -> Twin:
        powers = np.exp(x.array - x.array.max(-1, keepdims=True))
        gives = powers / powers.sum(-1, keepdims=True)
        return self.call("aten::_softmax.out", x, -1, False, gives=gives)

    def sigmoid(self, x: Twin) -> Twin:
        return self.call("aten::sigmoid.out", x, gives=1 / (1 + np.exp(-x.array)))


def _assert_close(actual: Array, wanted: Array, name: str) -> None:
    np.testing.assert_allclose(actual, wanted, rtol=TOLERANCE, atol=TOLERANCE, err_msg=name)


def _handle(argument: Any) -> Any:
    return argument.value if isinstance(argument, Twin) else argument


def _windows(array: Array, kernel: int, stride: int) -> Array:
    """Windows (n, c, y, x, i, j), in float64."""
    view = np.lib.stride_tricks.sliding_window_view(array, (kernel, kernel), (2, 3))
    return view[:, :, ::stride, ::stride].astype(np.float64)


# --- the networks ---------------------------------------------------------------------------------


def resnet(net: Net) -> list[Twin]:
    """Strided convolution, batch norm, pooling, a residual block with a projection, a head."""

    def norm(x: Twin) -> Twin:
        channels = x.shape[1]
        scale, shift, mean = (net.normal(channels) for _ in range(3))
        variance = np.abs(net.normal(channels)) + np.float32(0.5)
        spread = np.sqrt(variance.astype(np.float64) + 1e-5)
        column = (slice(None), None, None)
        gives = (x.array - mean[column]) / spread[column] * scale[column] + shift[column]
        output = net.method.tensor(np.float32, x.shape)
        empty = [net.method.tensor(np.float32, (0,)) for _ in range(2)]
        constants = [net.constant(each) for each in (scale, shift, mean, variance)]
        net.method.call(
            "aten::_native_batch_norm_legit_no_training.out",
            *(x.value, *constants, 0.1, 1e-5),
            outputs=[output, *empty],
        )
        for value, array in zip((output, *empty), (gives, np.zeros(0), np.zeros(0)), strict=True):
            net.expected[f"%{value.index}"] = array
        return Twin(output, gives)

    x = net.input(net.normal(1, 3, 17, 17))
    x = net.relu(norm(net.convolution(x, 6, 7, stride=2, padding=3)))
    edges = [(0, 0), (0, 0), (1, 1), (1, 1)]
    padded = np.pad(x.array, edges, constant_values=-np.inf)
    windows = _windows(padded, 3, 2).reshape(1, 6, 5, 5, 9)
    pooled = net.method.tensor(np.float32, (1, 6, 5, 5))
    places = net.method.tensor(np.int64, (1, 6, 5, 5))
    net.method.call(
        "aten::max_pool2d_with_indices.out",
        *(x.value, [3, 3], [2, 2], [1, 1], [1, 1], False),
        outputs=[pooled, places],
    )
    greatest, taken = windows.max(-1), windows.argmax(-1)
    rows = 2 * np.arange(5)[:, None] + taken // 3 - 1
    columns = 2 * np.arange(5) + taken % 3 - 1
    net.expected[f"%{pooled.index}"] = greatest
    net.expected[f"%{places.index}"] = rows * 9 + columns
    x = Twin(pooled, greatest)
    branch = net.relu(norm(net.convolution(x, 8, 3, stride=2, padding=1)))
    branch = norm(net.convolution(branch, 8, 3, padding=1))
    x = net.relu(net.add(branch, net.convolution(x, 8, 1, stride=2)))
    means = x.array.mean((-1, -2), keepdims=True)
    x = net.call("aten::mean.out", x, [-1, -2], True, None, gives=means)
    return [net.linear(net.view(x, 1, 8), 10)]


def vision_transformer(net: Net) -> list[Twin]:
    """Patches, class token, positions, layer norm, attention of two heads, GELU, softmax."""
    width, heads, count = 8, 2, 5

    def norm(x: Twin) -> Twin:
        scale, shift = net.normal(width), net.normal(width)
        mean = x.array.mean(-1, keepdims=True)
        deviation = 1 / np.sqrt(x.array.var(-1, keepdims=True) + 1e-5)
        gives = (x.array - mean) * deviation * scale + shift
        arrays = (gives, mean, deviation)
        outputs = [net.method.tensor(np.float32, array.shape) for array in arrays]
        net.method.call(
            "aten::native_layer_norm.out",
            *(x.value, [width], net.constant(scale), net.constant(shift), 1e-5),
            outputs=outputs,
        )
        for value, array in zip(outputs, arrays, strict=True):
            net.expected[f"%{value.index}"] = array
        return Twin(outputs[0], gives)

    def split(x: Twin) -> Twin:
        x = net.permute(net.view(x, 1, count, heads, width // heads), 0, 2, 1, 3)
        return net.view(x, heads, count, width // heads)

    x = net.convolution(net.input(net.normal(1, 3, 8, 8)), width, 4, stride=4)
    x = net.permute(net.view(x, 1, width, 4), 0, 2, 1)
    token, positions = net.normal(1, 1, width), net.normal(1, count, width)
    first = net.call("aten::expand_copy.out", net.constant(token), [1, -1, -1], False, gives=token)
    x = net.cat([first, x], 1)
    x = net.call("aten::add.out", x, net.constant(positions), 1, gives=x.array + positions)
    flat = net.view(norm(x), count, width)
    q, k, v = (split(net.linear(flat, width)) for _ in range(3))
    size = np.sqrt(width // heads)
    scores = net.product(q, net.permute(k, 0, 2, 1))
    scores = net.call("aten::mul.Scalar_out", scores, float(1 / size), gives=scores.array / size)
    mixed = net.view(net.product(net.softmax(scores), v), 1, heads, count, width // heads)
    mixed = net.view(net.permute(mixed, 0, 2, 1, 3), count, width)
    x = net.add(x, net.view(net.linear(mixed, width), 1, count, width))
    wide = net.linear(net.view(norm(x), count, width), 2 * width)
    cubed = np.sqrt(2 / np.pi) * (wide.array + 0.044715 * wide.array**3)
    bent = net.call("aten::gelu.out", wide, "tanh", gives=wide.array * (1 + np.tanh(cubed)) / 2)
    x = net.add(x, net.view(net.linear(bent, width), 1, count, width))
    last = norm(x)
    head = net.call("aten::select_copy.int_out", last, 1, 0, gives=last.array[:, 0])
    return [net.softmax(net.linear(head, 4))]


def unet(net: Net) -> list[Twin]:
    """Group norm, down by pooling, up by a transposed convolution and by resampling, skips."""
    x = net.convolution(net.input(net.normal(1, 2, 8, 8)), 4, 3, padding=1)
    grouped = x.array.reshape(1, 2, 2 * 64)
    mean, variance = grouped.mean(-1), grouped.var(-1)
    deviation = 1 / np.sqrt(variance + 1e-5)
    gives = ((grouped - mean[..., None]) * deviation[..., None]).reshape(x.shape)
    outputs = [net.method.tensor(np.float32, array.shape) for array in (gives, mean, deviation)]
    net.method.call(
        "aten::native_group_norm.out",
        *(x.value, None, None, 1, 4, 64, 2, 1e-5),
        outputs=outputs,
    )
    for value, array in zip(outputs, (gives, mean, deviation), strict=True):
        net.expected[f"%{value.index}"] = array
    x = Twin(outputs[0], gives)
    skip = net.mul(x, net.sigmoid(x))
    means = _windows(skip.array, 2, 2).mean((-1, -2))
    small = net.call(
        "aten::avg_pool2d.out", skip, [2, 2], [2, 2], [0, 0], False, True, None, gives=means
    )
    small = net.convolution(small, 6, 3, padding=1)
    bent = np.where(small.array > 0, small.array, small.array * 0.1)
    small = net.call("aten::leaky_relu.out", small, 0.1, gives=bent)
    # Each pixel becomes a square of two by two.
    weights, bias = net.normal(6, 4, 2, 2), net.normal(4)
    raised = np.einsum("nchw,coij->nohiwj", small.array, weights.astype(np.float64))
    raised = raised.reshape(1, 4, 8, 8) + bias[:, None, None]
    up = net.call(
        "aten::convolution.out",
        *(small, net.constant(weights), net.constant(bias)),
        *([2, 2], [0, 0], [1, 1], True, [0, 0], 1),
        gives=raised,
    )
    near = net.call(
        "aten::upsample_nearest2d.vec_out",
        *(small, None, [2.0, 2.0]),
        gives=small.array.repeat(2, 2).repeat(2, 3),
    )
    x = net.cat([up, skip, near], 1)
    return [net.sigmoid(net.convolution(x, 1, 1))]


LENGTH, WIDTH, HEADS, VOCABULARY = 5, 8, 2, 11
SIZE = WIDTH // HEADS


def decoder(net: Net, token: int, at: int, keys: Array, values: Array) -> list[Twin]:
    """One token of a decoder: embedding, RMS norm, rotation, caches, masked attention, a gate.

    ``keys`` and ``values``, shape (HEADS, LENGTH, SIZE), are the caches before the call; they get
    what it adds.
    """
    tokens = net.input(np.array([[token]]))
    position = net.input(np.array([at]))
    table = net.normal(VOCABULARY, WIDTH)
    x = net.call(
        "aten::embedding.out",
        *(net.constant(table), tokens, -1, False, False),
        gives=table[token][None, None].astype(np.float64),
    )

    def norm(x: Twin) -> Twin:
        squared = net.call("aten::pow.Tensor_Scalar_out", x, 2, gives=x.array**2)
        mean = squared.array.mean(-1, keepdims=True)
        found = net.call("aten::mean.out", squared, [-1], True, None, gives=mean)
        found = net.call("aten::add.Scalar_out", found, 1e-6, 1, gives=found.array + 1e-6)
        found = net.call("aten::rsqrt.out", found, gives=found.array**-0.5)
        return net.view(net.mul(x, found), 1, WIDTH)

    angles = np.outer(np.arange(LENGTH), [1.0, 0.1]).astype(np.float32)
    turns = []
    for table_of in (np.cos(angles), np.sin(angles)):
        gives = table_of[at][None]
        turns.append(
            net.call("aten::index_select.out", net.constant(table_of), 0, position, gives=gives)
        )

    def rotated(x: Twin) -> Twin:
        """The two halves of each head as numbers of a plane, turned by the position."""
        halves = [
            net.call(
                "aten::slice_copy.Tensor_out", x, 2, low, high, 1, gives=x.array[:, :, low:high]
            )
            for low, high in ((0, SIZE // 2), (SIZE // 2, SIZE))
        ]
        (a, b), (cosine, sine) = halves, turns
        first = [net.mul(a, cosine), net.mul(b, sine)]
        second = net.add(net.mul(a, sine), net.mul(b, cosine))
        difference = net.call("aten::sub.out", *first, 1, gives=first[0].array - first[1].array)
        return net.cat([difference, second], 2)

    hidden = norm(x)
    q, k, v = (net.view(net.linear(hidden, WIDTH), HEADS, 1, SIZE) for _ in range(3))
    q, k = rotated(q), rotated(k)
    caches = []
    for name, cache, new in (("keys", keys, k), ("values", values, v)):
        state = net.method.state(np.zeros(cache.shape, np.float32), name=name)
        cache[:, at] = new.array[:, 0]
        put = net.method.tensor(np.float32, cache.shape)
        index = net.method.argument([None, position.value])
        net.method.call("aten::index_put.out", state, index, new.value, False, outputs=[put])
        net.expected[f"%{put.index}"] = cache.copy()
        net.method.call("aten::copy_", state, put, False, returns=state)
        net.expected[f"%{state.index}"] = cache.copy()
        caches.append(Twin(state, cache.copy()))
    scores = net.product(q, net.permute(caches[0], 0, 2, 1))
    places = np.arange(LENGTH)
    later = net.call("aten::gt.Tensor_out", net.constant(places), position, gives=places > at)
    never = net.constant(np.array(-np.inf, np.float32))
    masked = np.where(later.array, -np.inf, scores.array)
    scores = net.call("aten::where.self_out", later, never, scores, gives=masked)
    mixed = net.view(net.product(net.softmax(scores), caches[1]), 1, WIDTH)
    x = net.add(x, net.view(net.linear(mixed, WIDTH), 1, 1, WIDTH))
    gate, lift = (net.linear(norm(x), 2 * WIDTH) for _ in range(2))
    gated = net.mul(net.mul(gate, net.sigmoid(gate)), lift)
    x = net.add(x, net.view(net.linear(gated, WIDTH), 1, 1, WIDTH))
    logits = net.linear(norm(x), VOCABULARY)
    chosen = net.call("aten::argmax.out", logits, 1, False, gives=logits.array.argmax(1))
    return [logits, chosen]


NETWORKS: dict[str, Callable[[Net], list[Twin]]] = {
    "resnet": resnet,
    "vision transformer": vision_transformer,
    "u-net": unet,
}


@pytest.mark.parametrize("name", NETWORKS)
def test_every_tensor_of_a_network(name: str) -> None:
    net = Net(seed=len(name))
    outputs = NETWORKS[name](net)
    net.check(net.reference(*outputs), outputs)


def test_every_tensor_of_a_decoder_token_after_token() -> None:
    """The caches are state of the program: each call sees what those before it have put there."""
    keys, values = np.zeros((2, HEADS, LENGTH, SIZE))
    reference, token = None, 3
    for at in range(LENGTH):
        net = Net(seed=1)
        outputs = decoder(net, token, at, keys, values)
        reference = reference or net.reference(*outputs)
        net.check(reference, outputs)
        token = int(outputs[1].array[0])
    assert np.count_nonzero(keys) == keys.size
    assert reference is not None
    reference.reset()
    net, keys, values = Net(seed=1), np.zeros_like(keys), np.zeros_like(values)
    net.check(reference, decoder(net, 3, 0, keys, values))
