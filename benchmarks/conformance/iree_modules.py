"""IREE modules for VMVX: arithmetic, products, windows, reductions, shapes, loops, state.

Needs ``iree-base-compiler``; it is imported when a module is made, not before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from benchmarks.conformance.subject import Call, Maker, Subject

Input = tuple[str, tuple[int, ...]]
"""Type of the elements, as NumPy has it, and sizes."""

_MAP2 = "affine_map<(d0, d1) -> (d0, d1)>"


def _elementwise(body: str, types: Sequence[str], result: str, shape: str = "5x7") -> str:
    """A function of tensors of one shape, computed element by element."""
    names = [f"%a{at}" for at in range(len(types))]
    given = ", ".join(f"{n}: tensor<{shape}x{t}>" for n, t in zip(names, types, strict=True))
    kinds = ", ".join(f"tensor<{shape}x{entry}>" for entry in types)
    scalars = ", ".join(f"%x{at}: {kind}" for at, kind in enumerate(types))
    maps = ", ".join([_MAP2] * (len(types) + 1))
    return f"""
func.func @main({given}) -> tensor<{shape}x{result}> {{
  %e = tensor.empty() : tensor<{shape}x{result}>
  %r = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel", "parallel"]}}
      ins({", ".join(names)} : {kinds}) outs(%e : tensor<{shape}x{result}>) {{
    ^bb0({scalars}, %o: {result}):
      {body}
      linalg.yield %y : {result}
  }} -> tensor<{shape}x{result}>
  return %r : tensor<{shape}x{result}>
}}"""


def _filled(operation: str, inputs: Sequence[str], result: str, zero: str) -> str:
    """A named operation that adds to an output of zeros."""
    given = ", ".join(f"%a{at}: {kind}" for at, kind in enumerate(inputs))
    names = ", ".join(f"%a{at}" for at in range(len(inputs)))
    element = result.rpartition("x")[2].rstrip(">")
    return f"""
func.func @main({given}) -> {result} {{
  %z = arith.constant {zero} : {element}
  %e = tensor.empty() : {result}
  %f = linalg.fill ins(%z : {element}) outs(%e : {result}) -> {result}
  %r = {operation} ins({names} : {", ".join(inputs)}) outs(%f : {result}) -> {result}
  return %r : {result}
}}"""


def _reduction(body: str, start: str, element: str = "f32") -> str:
    return f"""
func.func @main(%a: tensor<6x9x{element}>) -> tensor<6x{element}> {{
  %z = arith.constant {start} : {element}
  %e = tensor.empty() : tensor<6x{element}>
  %f = linalg.fill ins(%z : {element}) outs(%e : tensor<6x{element}>) -> tensor<6x{element}>
  %r = linalg.generic {{
      indexing_maps = [{_MAP2}, affine_map<(d0, d1) -> (d0)>],
      iterator_types = ["parallel", "reduction"]}}
      ins(%a : tensor<6x9x{element}>) outs(%f : tensor<6x{element}>) {{
    ^bb0(%x: {element}, %o: {element}):
      {body}
      linalg.yield %y : {element}
  }} -> tensor<6x{element}>
  return %r : tensor<6x{element}>
}}"""


_F32_PAIR: Sequence[Input] = [("float32", (5, 7))] * 2
_F32: Sequence[Input] = [("float32", (5, 7))]

_MATMUL = "tensor<8x16xf32>", "tensor<16x12xf32>"
_BYTES = "tensor<8x16xi8>", "tensor<16x12xi8>"

MODULES: Mapping[str, tuple[str, Sequence[Input]]] = {
    "add f32": (_elementwise("%y = arith.addf %x0, %x1 : f32", ["f32"] * 2, "f32"), _F32_PAIR),
    "divide f32": (_elementwise("%y = arith.divf %x0, %x1 : f32", ["f32"] * 2, "f32"), _F32_PAIR),
    "maximum f32": (
        _elementwise("%y = arith.maximumf %x0, %x1 : f32", ["f32"] * 2, "f32"),
        _F32_PAIR,
    ),
    "exp f32": (_elementwise("%y = math.exp %x0 : f32", ["f32"], "f32"), _F32),
    "tanh f32": (_elementwise("%y = math.tanh %x0 : f32", ["f32"], "f32"), _F32),
    "erf f32": (_elementwise("%y = math.erf %x0 : f32", ["f32"], "f32"), _F32),
    "sqrt of squares f32": (
        _elementwise("%s = arith.mulf %x0, %x0 : f32 %y = math.sqrt %s : f32", ["f32"], "f32"),
        _F32,
    ),
    "floor f32": (_elementwise("%y = math.floor %x0 : f32", ["f32"], "f32"), _F32),
    "compare and select f32": (
        _elementwise(
            "%c = arith.cmpf olt, %x0, %x1 : f32 %y = arith.select %c, %x0, %x1 : f32",
            ["f32"] * 2,
            "f32",
        ),
        _F32_PAIR,
    ),
    "multiply i32": (
        _elementwise("%y = arith.muli %x0, %x1 : i32", ["i32"] * 2, "i32"),
        [("int32", (5, 7))] * 2,
    ),
    "shifts i32": (
        _elementwise(
            "%c = arith.constant 3 : i32 %s = arith.shrsi %x0, %c : i32 "
            "%y = arith.xori %s, %x1 : i32",
            ["i32"] * 2,
            "i32",
        ),
        [("int32", (5, 7))] * 2,
    ),
    "multiply i8 to i32": (
        _elementwise(
            "%l = arith.extsi %x0 : i8 to i32 %r = arith.extsi %x1 : i8 to i32 "
            "%y = arith.muli %l, %r : i32",
            ["i8"] * 2,
            "i32",
        ),
        [("int8", (5, 7))] * 2,
    ),
    "f32 to i32": (_elementwise("%y = arith.fptosi %x0 : f32 to i32", ["f32"], "i32"), _F32),
    "i64 sums": (
        _elementwise("%y = arith.addi %x0, %x1 : i64", ["i64"] * 2, "i64"),
        [("int64", (5, 7))] * 2,
    ),
    "matrix product f32": (
        _filled("linalg.matmul", _MATMUL, "tensor<8x12xf32>", "0.0"),
        [("float32", (8, 16)), ("float32", (16, 12))],
    ),
    "matrix product i8": (
        _filled("linalg.matmul", _BYTES, "tensor<8x12xi32>", "0"),
        [("int8", (8, 16)), ("int8", (16, 12))],
    ),
    "batch of products f32": (
        _filled(
            "linalg.batch_matmul",
            ["tensor<3x4x5xf32>", "tensor<3x5x6xf32>"],
            "tensor<3x4x6xf32>",
            "0.0",
        ),
        [("float32", (3, 4, 5)), ("float32", (3, 5, 6))],
    ),
    "matrix and vector f32": (
        _filled("linalg.matvec", ["tensor<9x11xf32>", "tensor<11xf32>"], "tensor<9xf32>", "0.0"),
        [("float32", (9, 11)), ("float32", (11,))],
    ),
    "convolution f32": (
        _filled(
            "linalg.conv_2d_nhwc_hwcf {strides = dense<2> : tensor<2xi64>}",
            ["tensor<1x9x9x3xf32>", "tensor<3x3x3x4xf32>"],
            "tensor<1x4x4x4xf32>",
            "0.0",
        ),
        [("float32", (1, 9, 9, 3)), ("float32", (3, 3, 3, 4))],
    ),
    "convolution of channels first f32": (
        _filled(
            "linalg.conv_2d_nchw_fchw",
            ["tensor<1x3x7x7xf32>", "tensor<4x3x3x3xf32>"],
            "tensor<1x4x5x5xf32>",
            "0.0",
        ),
        [("float32", (1, 3, 7, 7)), ("float32", (4, 3, 3, 3))],
    ),
    "depthwise convolution f32": (
        _filled(
            "linalg.depthwise_conv_2d_nhwc_hwc",
            ["tensor<1x7x7x5xf32>", "tensor<3x3x5xf32>"],
            "tensor<1x5x5x5xf32>",
            "0.0",
        ),
        [("float32", (1, 7, 7, 5)), ("float32", (3, 3, 5))],
    ),
    "sums f32": (_reduction("%y = arith.addf %x, %o : f32", "0.0"), [("float32", (6, 9))]),
    "maxima f32": (
        _reduction("%y = arith.maximumf %x, %o : f32", "0xFF800000"),
        [("float32", (6, 9))],
    ),
    "minima i32": (
        _reduction("%y = arith.minsi %x, %o : i32", "2147483647", "i32"),
        [("int32", (6, 9))],
    ),
    "softmax f32": (
        """
func.func @main(%a: tensor<4x9xf32>) -> tensor<4x9xf32> {
  %e = tensor.empty() : tensor<4x9xf32>
  %r = linalg.softmax dimension(1) ins(%a : tensor<4x9xf32>) outs(%e : tensor<4x9xf32>)
      -> tensor<4x9xf32>
  return %r : tensor<4x9xf32>
}""",
        [("float32", (4, 9))],
    ),
    "transpose f32": (
        """
func.func @main(%a: tensor<3x4x5xf32>) -> tensor<5x3x4xf32> {
  %e = tensor.empty() : tensor<5x3x4xf32>
  %r = linalg.transpose ins(%a : tensor<3x4x5xf32>) outs(%e : tensor<5x3x4xf32>)
      permutation = [2, 0, 1]
  return %r : tensor<5x3x4xf32>
}""",
        [("float32", (3, 4, 5))],
    ),
    "slice and reshape f32": (
        """
func.func @main(%a: tensor<6x8xf32>) -> tensor<12xf32> {
  %s = tensor.extract_slice %a[1, 2] [3, 4] [2, 1] : tensor<6x8xf32> to tensor<3x4xf32>
  %r = tensor.collapse_shape %s [[0, 1]] : tensor<3x4xf32> into tensor<12xf32>
  return %r : tensor<12xf32>
}""",
        [("float32", (6, 8))],
    ),
    "pad f32": (
        """
func.func @main(%a: tensor<3x4xf32>) -> tensor<6x7xf32> {
  %c = arith.constant 1.5 : f32
  %r = tensor.pad %a low[1, 2] high[2, 1] {
    ^bb0(%i: index, %j: index):
      tensor.yield %c : f32
  } : tensor<3x4xf32> to tensor<6x7xf32>
  return %r : tensor<6x7xf32>
}""",
        [("float32", (3, 4))],
    ),
    "rows of any number f32": (
        """
func.func @main(%a: tensor<?x4xf32>, %b: tensor<4x3xf32>) -> tensor<?x3xf32> {
  %c0 = arith.constant 0 : index
  %z = arith.constant 0.0 : f32
  %n = tensor.dim %a, %c0 : tensor<?x4xf32>
  %e = tensor.empty(%n) : tensor<?x3xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<?x3xf32>) -> tensor<?x3xf32>
  %r = linalg.matmul ins(%a, %b : tensor<?x4xf32>, tensor<4x3xf32>)
      outs(%f : tensor<?x3xf32>) -> tensor<?x3xf32>
  return %r : tensor<?x3xf32>
}""",
        [("float32", (5, 4)), ("float32", (4, 3))],
    ),
    "a loop f32": (
        """
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c7 = arith.constant 7 : index
  %r = scf.for %i = %c0 to %c7 step %c1 iter_args(%x = %a) -> (tensor<4xf32>) {
    %y = arith.addf %x, %a : tensor<4xf32>
    scf.yield %y : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}""",
        [("float32", (4,))],
    ),
    "a branch by an element i32": (
        """
func.func @main(%a: tensor<4xi32>) -> tensor<4xi32> {
  %c0 = arith.constant 0 : index
  %z = arith.constant 0 : i32
  %x = tensor.extract %a[%c0] : tensor<4xi32>
  %p = arith.cmpi sgt, %x, %z : i32
  %r = scf.if %p -> (tensor<4xi32>) {
    %y = arith.addi %a, %a : tensor<4xi32>
    scf.yield %y : tensor<4xi32>
  } else {
    %y = arith.muli %a, %a : tensor<4xi32>
    scf.yield %y : tensor<4xi32>
  }
  return %r : tensor<4xi32>
}""",
        [("int32", (4,))],
    ),
    "state f32": (
        """
util.global private mutable @total = dense<0.0> : tensor<4xf32>
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %t = util.global.load @total : tensor<4xf32>
  %r = arith.addf %t, %a : tensor<4xf32>
  util.global.store %r, @total : tensor<4xf32>
  return %r : tensor<4xf32>
}""",
        [("float32", (4,))],
    ),
    "two layers with constants f32": (
        """
func.func @main(%a: tensor<2x3xf32>) -> tensor<2x2xf32> {
  %w = arith.constant dense<[[0.5, -1.0], [2.0, 0.25], [-0.75, 1.5]]> : tensor<3x2xf32>
  %v = arith.constant dense<[[1.0, 0.5], [-0.5, 2.0]]> : tensor<2x2xf32>
  %z = arith.constant 0.0 : f32
  %zeros = arith.constant dense<0.0> : tensor<2x2xf32>
  %e = tensor.empty() : tensor<2x2xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<2x2xf32>) -> tensor<2x2xf32>
  %h = linalg.matmul ins(%a, %w : tensor<2x3xf32>, tensor<3x2xf32>)
      outs(%f : tensor<2x2xf32>) -> tensor<2x2xf32>
  %p = arith.maximumf %h, %zeros : tensor<2x2xf32>
  %r = linalg.matmul ins(%p, %v : tensor<2x2xf32>, tensor<2x2xf32>)
      outs(%f : tensor<2x2xf32>) -> tensor<2x2xf32>
  return %r : tensor<2x2xf32>
}""",
        [("float32", (2, 3))],
    ),
}
"""Text of each module, and what its function is called with."""

CALLS = 3
"""Calls of each module, with inputs of their own."""


def drawn(random: np.random.Generator, kind: str, shape: tuple[int, ...]) -> np.ndarray:
    """Elements of a type."""
    dtype = np.dtype(kind)
    if dtype.kind == "f":
        return (random.standard_normal(shape) * 2).astype(dtype)
    bound = min(np.iinfo(dtype).max, 30_000)
    return random.integers(-bound, bound, shape).astype(dtype)


def _module(text: str, inputs: Sequence[Input]) -> Subject:
    from iree.compiler import tools

    data = tools.compile_str(text, target_backends=["vmvx"])
    random = np.random.default_rng(0)
    calls = [Call([drawn(random, *entry) for entry in inputs]) for _ in range(CALLS)]
    return Subject(data, calls)


def modules() -> dict[str, Maker]:
    """What makes each module, by its name."""
    return {name: partial(_module, *entry) for name, entry in MODULES.items()}
