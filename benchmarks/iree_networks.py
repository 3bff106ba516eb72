"""Programs for IREE's compiler, as ``linalg`` on tensors: matrix products, a layer, a MobileNet."""

from __future__ import annotations

from typing import Any

import numpy as np
from darwinn_testbench.compiler import DenseNetwork
from darwinn_testbench.compiler.parameters import dense_bounds, output_factors

_WIDTHS = ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5)
_BLOCKS = (*_WIDTHS, (1024, 2), (1024, 1))
"""Channels and stride of each separable convolution of MobileNet v1."""
_CLASSES = 1001
_ZERO_POINT = -128
"""Of all values between layers: they are what a ReLU leaves."""

_IMAGE = "affine_map<(n, h, w, c) -> (n, h, w, c)>"
_CHANNEL = "affine_map<(n, h, w, c) -> (c)>"


def product(size: int, element: str, result: str) -> str:
    """A product of two square matrices."""
    taken, given = f"tensor<{size}x{size}x{element}>", f"tensor<{size}x{size}x{result}>"
    zero = "0.0" if result.startswith("f") else "0"
    return f"""
func.func @main(%a: {taken}, %b: {taken}) -> {given} {{
  %z = arith.constant {zero} : {result}
  %e = tensor.empty() : {given}
  %f = linalg.fill ins(%z : {result}) outs(%e : {given}) -> {given}
  %r = linalg.matmul ins(%a, %b : {taken}, {taken}) outs(%f : {given}) -> {given}
  return %r : {given}
}}"""


def _literal(values: Any, element: str) -> str:
    """A constant and its type."""
    data = np.ascontiguousarray(values).tobytes().hex().upper()
    sizes = "x".join(map(str, values.shape))
    return f'arith.constant dense<"0x{data}"> : tensor<{sizes}x{element}>'


def dense(network: DenseNetwork) -> str:
    """A network of one fully connected layer, in the arithmetic of the chip's output stage.

    Raises:
        ValueError: it has several layers.
    """
    (layer,) = network.layers
    taken, given = layer.inputs, layer.outputs
    factors = output_factors(network.input, layer.weight_scales, layer.output)
    low, high = dense_bounds(layer)
    sums, result = f"tensor<1x{given}xi32>", f"tensor<1x{given}xi8>"
    values = f"tensor<1x{taken}xi8>, tensor<{taken}x{given}xi8>, i32, i32"
    rows = "affine_map<(i, j) -> (i, j)>"
    column = "affine_map<(i, j) -> (j)>"
    return f"""
func.func @main(%image: tensor<1x{taken}xi8>) -> {result} {{
  %weights = {_literal(layer.weights.T, "i8")}
  %bias = {_literal(layer.bias, "i32")}
  %factors = {_literal(factors, "f32")}
  %point = arith.constant {network.input.zero_point} : i32
  %zero = arith.constant 0 : i32
  %low = arith.constant {float(low)!r} : f32
  %high = arith.constant {float(high)!r} : f32
  %middle = arith.constant {float(layer.output.zero_point)!r} : f32
  %e = tensor.empty() : {sums}
  %f = linalg.fill ins(%zero : i32) outs(%e : {sums}) -> {sums}
  %s = linalg.quantized_matmul ins(%image, %weights, %point, %zero : {values}) outs(%f : {sums})
      -> {sums}
  %o = tensor.empty() : {result}
  %r = linalg.generic {{indexing_maps = [{rows}, {column}, {column}, {rows}],
      iterator_types = ["parallel", "parallel"]}} ins(%s, %bias, %factors :
      {sums}, tensor<{given}xi32>, tensor<{given}xf32>) outs(%o : {result}) {{
    ^bb0(%x: i32, %b: i32, %k: f32, %old: i8):
      %total = arith.addi %x, %b : i32
      %real = arith.sitofp %total : i32 to f32
      %scaled = arith.mulf %real, %k : f32
      %more = arith.maximumf %scaled, %low : f32
      %less = arith.minimumf %more, %high : f32
      %even = math.roundeven %less : f32
      %moved = arith.addf %even, %middle : f32
      %byte = arith.fptosi %moved : f32 to i8
      linalg.yield %byte : i8
  }} -> {result}
  return %r : {result}
}}"""


def mobilenet(size: int = 224) -> str:
    """A quantised MobileNet v1 for square images, with weights drawn from a fixed seed."""
    return _Network(size).text()


class _Network:
    """Lines of the function as layers are added; ``value``, ``size`` and ``channels`` are the last
    layer's result and its height and width.
    """

    def __init__(self, size: int) -> None:
        self.random = np.random.default_rng(0)
        self.lines: list[str] = []
        self.value, self.size, self.channels = "%image", size, 3
        self.image = f"tensor<1x{size}x{size}x3xi8>"

    def text(self) -> str:
        self.convolution(32, 3, 2)
        for channels, stride in _BLOCKS:
            self.depthwise(stride)
            self.convolution(channels, 1, 1)
        self.classify()
        body = "\n  ".join(self.lines)
        return f"""
func.func @main(%image: {self.image}) -> tensor<1x{_CLASSES}xi32> {{
  %zero = arith.constant 0 : i32
  %point = arith.constant {_ZERO_POINT} : i32
  %pad = arith.constant {_ZERO_POINT} : i8
  {body}
  return {self.value} : tensor<1x{_CLASSES}xi32>
}}"""

    def name(self, text: str) -> str:
        """Add an operation; the name of its result."""
        made = f"%t{len(self.lines)}"
        self.lines.append(f"{made} = {text}")
        return made

    def constant(self, values: Any, element: str) -> str:
        return self.name(_literal(values, element))

    def drawn(self, *shape: int) -> str:
        return self.constant(self.random.integers(-127, 128, shape).astype(np.int8), "i8")

    def zeros(self, kind: str) -> str:
        empty = self.name(f"tensor.empty() : {kind}")
        return self.name(f"linalg.fill ins(%zero : i32) outs({empty} : {kind}) -> {kind}")

    def padded(self, stride: int) -> int:
        """Pad what a window of three needs; the size then."""
        low = int(stride == 1)
        wide = self.size + low + 1
        before, after = (f"tensor<1x{n}x{n}x{self.channels}xi8>" for n in (self.size, wide))
        self.value = self.name(
            f"tensor.pad {self.value} low[0, {low}, {low}, 0] high[0, 1, 1, 0] {{\n"
            "  ^bb0(%i: index, %j: index, %k: index, %l: index):\n    tensor.yield %pad : i8\n"
            f"  }} : {before} to {after}"
        )
        return wide

    def convolution(self, channels: int, window: int, stride: int) -> None:
        wide = self.padded(stride) if window > 1 else self.size
        weights = self.drawn(window, window, self.channels, channels)
        kernel = f"tensor<{window}x{window}x{self.channels}x{channels}xi8>"
        terms = window * window * self.channels
        self.windows("conv_2d_nhwc_hwcf_q", wide, window, stride, channels, (weights, kernel))
        self.requantised(terms)

    def depthwise(self, stride: int) -> None:
        wide = self.padded(stride)
        weights, kernel = self.drawn(3, 3, self.channels), f"tensor<3x3x{self.channels}xi8>"
        name = "depthwise_conv_2d_nhwc_hwc_q"
        self.windows(name, wide, 3, stride, self.channels, (weights, kernel))
        self.requantised(9)

    def windows(
        self,
        name: str,
        wide: int,
        window: int,
        stride: int,
        channels: int,
        weights: tuple[str, str],
    ) -> None:
        taken = f"tensor<1x{wide}x{wide}x{self.channels}xi8>"
        self.size, self.channels = (wide - window) // stride + 1, channels
        given = f"tensor<1x{self.size}x{self.size}x{channels}xi32>"
        sums = self.zeros(given)
        attributes = (
            f"{{strides = dense<{stride}> : tensor<2xi64>, dilations = dense<1> : tensor<2xi64>}}"
        )
        self.value = self.name(
            f"linalg.{name} {attributes} ins({self.value}, {weights[0]}, %point, %zero : "
            f"{taken}, {weights[1]}, i32, i32) outs({sums} : {given}) -> {given}"
        )

    def requantised(self, terms: int) -> None:
        """Bias, a factor for each channel in fixed point, and what eight bits hold."""
        count, size = self.channels, self.size
        shift = 31 + int(np.log2(terms * 70 * 100 / 256))
        bias = self.constant(self.random.integers(-1000, 1000, count).astype(np.int32), "i32")
        drawn = self.random.integers(1 << 30, (1 << 31) - 1, count)
        factors = self.constant(drawn.astype(np.int32), "i32")
        given = f"tensor<1x{size}x{size}x{count}x"
        empty = self.name(f"tensor.empty() : {given}i8>")
        maps = f"[{_IMAGE}, {_CHANNEL}, {_CHANNEL}, {_IMAGE}]"
        self.value = self.name(
            f"""linalg.generic {{indexing_maps = {maps}, iterator_types =
      ["parallel", "parallel", "parallel", "parallel"]}}
      ins({self.value}, {bias}, {factors} : {given}i32>, tensor<{count}xi32>, tensor<{count}xi32>)
      outs({empty} : {given}i8>) {{
    ^bb0(%a: i32, %b: i32, %m: i32, %o: i8):
      %sum = arith.addi %a, %b : i32
      %wide = arith.extsi %sum : i32 to i64
      %factor = arith.extsi %m : i32 to i64
      %product = arith.muli %wide, %factor : i64
      %half = arith.constant {1 << (shift - 1)} : i64
      %rounded = arith.addi %product, %half : i64
      %amount = arith.constant {shift} : i64
      %scaled = arith.shrsi %rounded, %amount : i64
      %narrow = arith.trunci %scaled : i64 to i32
      %low = arith.constant -128 : i32
      %moved = arith.addi %narrow, %low : i32
      %high = arith.constant 127 : i32
      %above = arith.maxsi %moved, %low : i32
      %within = arith.minsi %above, %high : i32
      %byte = arith.trunci %within : i32 to i8
      linalg.yield %byte : i8
  }} -> {given}i8>"""
        )

    def classify(self) -> None:
        """Sums over the image, and a product with the weights of the classes."""
        count, size = self.channels, self.size
        self.value = self.reduced(
            ("(n, c, h, w) -> (n, h, w, c)",),
            "(n, c, h, w) -> (n, c)",
            f"({self.value} : tensor<1x{size}x{size}x{count}xi8>)",
            f"tensor<1x{count}xi32>",
            2,
            "%a: i8, %o: i32):\n      %y = arith.extsi %a : i8 to i32",
        )
        weights = self.drawn(count, _CLASSES)
        self.value = self.reduced(
            ("(n, o, c) -> (n, c)", "(n, o, c) -> (c, o)"),
            "(n, o, c) -> (n, o)",
            f"({self.value}, {weights} : tensor<1x{count}xi32>, tensor<{count}x{_CLASSES}xi8>)",
            f"tensor<1x{_CLASSES}xi32>",
            1,
            "%a: i32, %b: i8, %o: i32):\n      %x = arith.extsi %b : i8 to i32\n"
            "      %y = arith.muli %a, %x : i32",
        )

    def reduced(
        self, taken: tuple[str, ...], given: str, operands: str, kind: str, over: int, body: str
    ) -> str:
        maps = ", ".join(f"affine_map<{each}>" for each in (*taken, given))
        iterators = ", ".join(['"parallel"'] * 2 + ['"reduction"'] * over)
        sums = self.zeros(kind)
        return self.name(
            f"""linalg.generic {{indexing_maps = [{maps}], iterator_types = [{iterators}]}}
      ins{operands} outs({sums} : {kind}) {{
    ^bb0({body}
      %sum = arith.addi %y, %o : i32
      linalg.yield %sum : i32
  }} -> {kind}"""
        )
