"""One small call of each operator, as a program, on which the original runtime and ours agree.

``python tests/support/executorch_cases.py`` runs them in the original runtime (package executorch)
and prints the results as JSON: that is ``executorch_expected.json``.
"""

from __future__ import annotations

import json
import multiprocessing
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from darwinn_formats.errors import ExecutionError
from darwinn_formats.executorch import schema
from darwinn_formats.executorch.builder import ProgramBuilder, scalar_type_of
from darwinn_reference.executorch import OPERATORS, Convention

F32, F64, F16, I8, U8, I32, I64, BOOL = (
    np.dtype(name) for name in ("f4", "f8", "f2", "i1", "u1", "i4", "i8", "?")
)
INT8_TYPE = int(scalar_type_of(I8))


@dataclass(frozen=True)
class Case:
    """A call of an operator; arrays among the arguments are inputs of the program.

    ``dtypes`` are those of the outputs; ``as_list``: the outputs are one list argument.
    """

    name: str
    operator: str
    arguments: tuple[Any, ...]
    dtypes: tuple[np.dtype[Any], ...] = (F32,)
    as_list: bool = False

    @property
    def inputs(self) -> list[np.ndarray]:
        return [entry for entry in flat(self.arguments) if isinstance(entry, np.ndarray)]

    def build(self) -> bytes:
        """The program of the call; the sizes of its outputs are those that our kernel gives."""
        operator = OPERATORS[self.operator]
        results = operator.kernel(*self.arguments)
        results = results if isinstance(results, tuple | list) else (results,)
        program = ProgramBuilder()
        method = program.method()
        arguments = [place(method, entry) for entry in self.arguments]
        if operator.convention is Convention.VALUE:
            result = method.argument(results[0])
            method.call(self.operator, *arguments, returns=result)
            method.output(result)
            return program.build()
        if operator.convention is Convention.IN_PLACE:
            method.call(self.operator, *arguments, returns=arguments[0])
            method.output(arguments[0])
            return program.build()
        outputs = [
            method.tensor(dtype, np.shape(result))
            for dtype, result in zip(self.dtypes, results, strict=True)
        ]
        if self.as_list:
            listed, returned = method.tensors(outputs), method.tensors(outputs)
            method.call(self.operator, *arguments, listed, returns=returned)
        else:
            method.call(self.operator, *arguments, outputs=outputs)
        method.output(*outputs)
        return program.build()


def flat(entries: Sequence[Any]) -> Iterator[Any]:
    for entry in entries:
        if isinstance(entry, list):
            yield from flat(entry)
        else:
            yield entry


def place(method: Any, entry: Any) -> Any:
    """An argument as the builder takes it: arrays become inputs."""
    if isinstance(entry, np.ndarray):
        return method.input(entry.dtype, entry.shape)
    if isinstance(entry, list) and any(isinstance(item, np.ndarray) for item in entry):
        placed = [place(method, item) for item in entry]
        if isinstance(entry, Indices):
            indices = [-1 if item is None else item.index for item in placed]
            return method.value(schema.OptionalTensorList(tuple(indices)))
        return placed
    if isinstance(entry, list) and entry and all(isinstance(item, bool) for item in entry):
        return method.value(schema.BoolList(tuple(entry)))
    return entry


class Indices(list[Any]):
    """A list of optional tensors."""


def floats(*shape: int, seed: int = 0, low: float = -2, high: float = 2) -> np.ndarray:
    values = np.random.default_rng(seed + sum(shape)).uniform(low, high, shape)
    return np.asarray(np.round(values, 2)).astype(F32)


def integers(*shape: int, seed: int = 0, low: int = -9, high: int = 9) -> np.ndarray:
    return np.random.default_rng(seed + sum(shape)).integers(low, high, shape, np.int64)


def truths(*shape: int, seed: int = 0) -> np.ndarray:
    return integers(*shape, seed=seed) > 0


def cases() -> list[Case]:
    return [
        Case(f"{name}/{at}", f"{prefix}{name}", *entry)
        for prefix, table in (("aten::", ATEN), ("", OTHER))
        for name, entries in table.items()
        for at, entry in enumerate(entries)
    ]


def with_other_types(operator: str, positions: Sequence[int]) -> Iterator[Case]:
    """A call in float32 with another type of the first output, or of one of these arguments."""
    case = next(each for each in cases() if each.operator == operator and F32 in each.dtypes)
    yield replace(case, dtypes=(F64, *case.dtypes[1:]))
    for place in positions:
        arguments = list(case.arguments)
        if isinstance(arguments[place], np.ndarray):
            arguments[place] = arguments[place].astype(F64)
            yield replace(case, arguments=tuple(arguments))


X = floats(2, 3)
ALONE = np.array(1.5, F32)
Y = floats(2, 3, seed=1)
UNIT = floats(2, 3, low=-0.9, high=0.9)
POSITIVE = floats(2, 3, low=0.2, high=3)
IMAGE = floats(1, 2, 5, 6)
TIES = np.array([[1, 3, 3], [2, 2, 1]], F32)
WHOLE = integers(2, 3)
ODD = np.array([[-2.5, -1.5, -0.5], [0.5, 1.5, 2.5]], F32)
SPECIAL = np.array([np.inf, -np.inf, np.nan, 0, -1.5], F32)
SCALES = np.array([0.5, 0.25], F64)
POINTS = np.array([3, -4], I64)
Q = integers(2, 3, low=-100, high=100).astype(I8)

_UNARY = {
    "acos": UNIT,
    "acosh": POSITIVE + 1,
    "asin": UNIT,
    "asinh": X,
    "atan": X,
    "atanh": UNIT,
    "cos": X,
    "cosh": X,
    "erf": X,
    "exp": X,
    "expm1": X,
    "log": POSITIVE,
    "log10": POSITIVE,
    "log1p": POSITIVE,
    "log2": POSITIVE,
    "reciprocal": POSITIVE,
    "rsqrt": POSITIVE,
    "sigmoid": X,
    "sin": X,
    "sinh": X,
    "sqrt": POSITIVE,
    "tan": UNIT,
    "tanh": X,
}
_COMPARISONS = ("eq", "ge", "gt", "le", "lt", "ne")
_BITS = ("bitwise_and", "bitwise_or", "bitwise_xor")

_GRID = floats(1, 2, 3, 2, low=-1.4, high=1.4)
_ROWS = floats(2, 1, 3)
_POINTS_OF_ROWS = integers(2, 1)
_SCALES_OF_ROWS = floats(2, 1, low=0.1, high=1).astype(F64)
_BYTES = integers(3, 2, low=0, high=255).astype(U8)
_OF_GROUPS = floats(3, 2, low=0.1, high=1)
_WEIGHTS = integers(3, 2, low=-100, high=100).astype(I8)
_FOUND = np.array([[2, 0]], I64)
_GRADIENT = (
    floats(1, 4, 2, 3),
    floats(1, 2, 5, 6),
    floats(4, 1, 2, 2),
    [4],
    [2, 2],
    [0, 1],
    [1, 2],
    False,
    [0, 0],
    2,
)
"""Arguments of a gradient of a convolution, but for the last."""

ATEN: dict[str, list[tuple[Any, ...]]] = {
    **{
        f"{name}.out": [((x,),), ((np.array([1, 2], I32),),)]
        for name, x in _UNARY.items()
        if name not in ("acos", "asin", "atanh", "tan", "acosh")
    },
    **{
        f"{name}.out": [((x,),)]
        for name, x in _UNARY.items()
        if name in ("acos", "asin", "atanh", "tan", "acosh")
    },
    **{
        f"{name}.Tensor_out": [
            ((X, Y), (BOOL,)),
            ((TIES, X[:1]), (BOOL,)),
            # Equal in float32.
            ((X.astype(F64) + 1e-12, X), (BOOL,)),
            ((WHOLE, WHOLE + 1e-12), (BOOL,)),
        ]
        for name in _COMPARISONS
    },
    **{
        f"{name}.Scalar_out": [((TIES, 2), (BOOL,)), ((WHOLE, 0.5), (BOOL,))]
        for name in _COMPARISONS
    },
    **{f"{name}.Tensor_out": [((WHOLE, integers(3)), (I64,))] for name in _BITS},
    **{f"{name}.Scalar_out": [((WHOLE, 6), (I64,))] for name in _BITS},
    **{f"logical_{name}.out": [((truths(2, 3), WHOLE), (BOOL,))] for name in ("and", "or", "xor")},
    "abs.out": [((X,),), ((WHOLE,), (I64,))],
    "bitwise_not.out": [((WHOLE,), (I64,)), ((truths(3),), (BOOL,))],
    "ceil.out": [((ODD,),)],
    "floor.out": [((ODD,),)],
    "isinf.out": [((SPECIAL,), (BOOL,))],
    "isnan.out": [((SPECIAL,), (BOOL,))],
    "logical_not.out": [((WHOLE,), (BOOL,))],
    "neg.out": [((X,),)],
    "relu.out": [((X,),), ((WHOLE,), (I64,)), ((SPECIAL,),)],
    "round.out": [((ODD,),)],
    "sign.out": [((ODD,),), ((truths(3),), (BOOL,))],
    "trunc.out": [((ODD,),)],
    "bitwise_left_shift.Tensor_out": [((np.array([1, 5], I64), np.array([3, 2], I64)), (I64,))],
    "bitwise_right_shift.Tensor_out": [((np.array([99, -5], I64), np.array([3, 1], I64)), (I64,))],
    "fmod.Tensor_out": [((X, POSITIVE),), ((np.array([5, 0], I32), np.array([0, 2], I32)),)],
    "fmod.Scalar_out": [((X, 0.7),), ((_BYTES, -3), (U8,))],
    "remainder.Tensor_out": [((X, POSITIVE),), ((WHOLE, np.array(4, I64)), (I64,))],
    "remainder.Scalar_out": [((WHOLE, -4), (I64,))],
    "floor_divide.out": [
        ((WHOLE, np.array([3, -4, 5], I64)), (I64,)),
        ((X, POSITIVE),),
        ((ODD, np.array([0, -0.0, 2], F32)),),
    ],
    "maximum.out": [((X, Y),)],
    "minimum.out": [((X, WHOLE),)],
    "mul.out": [((X, Y),), ((np.array([2, 3], U8), np.array([-3, 4], I8)), (np.dtype("i2"),))],
    "mul.Scalar_out": [((X, 3),), ((WHOLE, 0.5),)],
    "pow.Scalar_out": [((2.0, X),)],
    "pow.Tensor_Scalar_out": [
        ((POSITIVE, 1.5),),
        ((WHOLE, 3), (I64,)),
        ((np.array([5, -2, 0], I32), -1),),
        ((np.array([3, 7], U8), 25),),
        ((_BYTES, -3),),
    ],
    "pow.Tensor_Tensor_out": [((POSITIVE, Y),)],
    "add.out": [
        ((X, Y, 2),),
        ((WHOLE.astype(I32), np.array(0.5, F32), 1),),
        ((X.astype(F16), np.array(0.1, F32), 1), (F16,)),
        ((np.array(5, F32), X, 3),),
        ((np.array([[5]], I32), WHOLE.astype(I32), 3), (I32,)),
        ((np.array([5], F32), np.array(2, F32), 3),),
    ],
    "add.Scalar_out": [((X, 1.5, 2),), ((WHOLE, 7, 1), (I64,))],
    "sub.out": [((X, Y, 0.5),)],
    "sub.Scalar_out": [((X, 1.5, 2),)],
    "rsub.Scalar_out": [((X, 1.5, 2),)],
    "atan2.out": [((X, Y),)],
    "clamp.out": [((X, -1.0, 1.0),), ((X, None, 0.5),), ((WHOLE, -2, None), (I64,))],
    "clamp.Tensor_out": [((X, Y, None),), ((X, UNIT, POSITIVE),)],
    "div.out": [((X, POSITIVE),), ((WHOLE, np.array(4, I64)),)],
    "div.out_mode": [
        ((X, POSITIVE, "floor"),),
        ((X, POSITIVE, "trunc"),),
        ((X, POSITIVE, None),),
        ((WHOLE, np.array(4, I64), "floor"), (I64,)),
        ((WHOLE, np.array(4, I64), "trunc"), (I64,)),
    ],
    "div.Scalar_out": [((X, 4),), ((_BYTES, -3),)],
    "div.Scalar_mode_out": [((X, 0.3, "floor"),)],
    "elu.out": [((X, 1.5, 1.0, 1.0),)],
    "gelu.out": [((X, "none"),), ((X, "tanh"),)],
    "glu.out": [((floats(2, 4), -1),)],
    "hardtanh.out": [((X, 0, 6),), ((X, -0.5, 0.5),)],
    "leaky_relu.out": [((X, 0.1),)],
    "masked_fill.Scalar_out": [((X, truths(2, 3), 9.5),)],
    "where.self_out": [((truths(2, 1), X, Y),)],
    # reductions
    "_log_softmax.out": [((X, -1, False),)],
    "_softmax.out": [
        ((X, 0, False),),
        ((floats(2, 2, 3), 2, False),),
        ((np.zeros((0, 3), F32), 0, False),),
    ],
    "_native_batch_norm_legit.no_stats_out": [
        ((floats(2, 3, 2), floats(3), floats(3, seed=1), True, 0.1, 1e-5), (F32, F32, F32))
    ],
    "_native_batch_norm_legit_no_training.out": [
        (
            (
                floats(1, 3, 2, 2),
                floats(3),
                floats(3, seed=1),
                floats(3, seed=2),
                floats(3, seed=3, low=0.1),
                0.1,
                1e-5,
            ),
            (F32, F32, F32),
        )
    ],
    "amax.out": [((X, [1], True),), ((X, [], False),), ((ALONE, [0], False),)],
    "amin.out": [((X, [0], False),)],
    "any.all_out": [((truths(2, 2),), (BOOL,))],
    "any.dims_out": [((truths(2, 3), [0], False), (BOOL,))],
    "any.out": [((truths(2, 3), 1, False), (BOOL,)), ((ALONE, -1, False), (BOOL,))],
    "argmax.out": [((TIES, 1, False), (I64,)), ((TIES, None, False), (I64,))],
    "argmin.out": [((TIES, 1, True), (I64,))],
    "cumsum.out": [((X, 1, None),), ((X, 0, int(scalar_type_of(I64))), (I64,))],
    "max.dim_max": [((TIES, 1, False), (F32, I64))],
    "max.unary_out": [((X,),)],
    "mean.dtype_out": [((X, None),)],
    "mean.out": [
        ((floats(2, 2, 3), [1, 2], True, None),),
        ((X, None, False, None),),
        ((ALONE, [0], True, None),),
    ],
    "min.dim_min": [((TIES, 1, True), (F32, I64))],
    "min.unary_out": [((X,),)],
    "native_group_norm.out": [
        ((floats(1, 4, 3), floats(4), floats(4, seed=1), 1, 4, 3, 2, 1e-5), (F32, F32, F32))
    ],
    "native_layer_norm.out": [
        ((floats(2, 2, 3), [3], floats(3), floats(3, seed=1), 1e-5), (F32, F32, F32)),
        ((floats(2, 4), [4], None, None, 1e-5), (F32, F32, F32)),
    ],
    "prod.int_out": [((X, 1, False, None),), ((ODD, 0, False, int(scalar_type_of(I64))), (I64,))],
    "prod.out": [((X, None),)],
    "sum.IntList_out": [
        ((X, [1], False, None),),
        ((WHOLE, [], False, None), (I64,)),
        ((X, [0], False, int(scalar_type_of(I64))), (I64,)),
    ],
    "topk.values": [((floats(2, 4), 2, 1, True, True), (F32, I64))],
    "var.correction_out": [
        ((X, [1], 0, False),),
        ((X, None, None, False),),
        ((ALONE, [-1], 0, False),),
    ],
    "var.out": [((X, [1], True, True),)],
    # products and windows
    "addmm.out": [((floats(2), X, floats(3, 2), 1, 1),), ((floats(2), X, floats(3, 2), 0.5, 2.0),)],
    "bmm.out": [((floats(2, 1, 3), floats(2, 3, 2)),)],
    "linear.out": [((X, floats(2, 3, seed=5), floats(2)),), ((X, floats(2, 3, seed=5), None),)],
    "mm.out": [
        ((X, floats(3, 2)),),
        ((floats(1, 40).astype(F16), floats(40, 2).astype(F16)), (F16,)),
    ],
    "_adaptive_avg_pool2d.out": [((IMAGE, [2, 4]),)],
    "avg_pool2d.out": [
        ((IMAGE, [2, 2], [2, 2], [0, 0], False, True, None),),
        ((IMAGE, [3, 2], [2, 1], [1, 1], True, False, None),),
        ((IMAGE, [3, 3], [2, 3], [1, 1], True, True, None),),
        ((IMAGE, [2, 2], [], [0, 0], False, True, 3),),
    ],
    "convolution.out": [
        ((IMAGE, floats(2, 2, 3, 3), None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1),),
        ((IMAGE, floats(4, 1, 2, 3), floats(4), [2, 1], [0, 2], [2, 1], False, [0, 0], 2),),
        ((floats(1, 2, 6), floats(3, 2, 2), floats(3), [2], [1], [1], False, [0], 1),),
        (
            (
                floats(1, 2, 2, 3),
                floats(2, 2, 3, 2),
                floats(2),
                [2, 2],
                [1, 0],
                [1, 1],
                True,
                [1, 0],
                1,
            ),
        ),
        ((floats(1, 4, 2, 2), floats(4, 1, 2, 2), None, [1, 2], [0, 0], [1, 1], True, [0, 0], 2),),
        *(
            (
                (
                    floats(1, 6, 4, 3).astype(F16),
                    floats(6, 3, 2, 2).astype(F16),
                    floats(6).astype(F16),
                    *([2, 1], [1, 0], [1, 1], is_transposed, [0, 0], 2),
                ),
                (F16,),
            )
            for is_transposed in (False, True)
        ),
    ],
    "max_pool2d_with_indices.out": [
        ((IMAGE, [2, 2], [2, 2], [0, 0], [1, 1], False), (F32, I64)),
        ((IMAGE, [3, 2], [2, 2], [1, 1], [2, 1], True), (F32, I64)),
    ],
    "upsample_bilinear2d.vec_out": [
        ((floats(1, 1, 2, 3), [3, 4], False, None),),
        ((floats(1, 1, 2, 3), [3, 5], True, None),),
        ((floats(1, 1, 2, 3), None, False, [2.0, 2.0]),),
    ],
    "upsample_nearest2d.vec_out": [
        ((floats(1, 1, 2, 3), [3, 5], None),),
        ((floats(1, 1, 2, 3), None, [2.0, 2.0]),),
    ],
    # movement
    "_local_scalar_dense": [((np.array(2.5, F32),),), ((np.array(3, I64),),)],
    "copy.out": [((X, floats(1, 3), False),)],
    "copy_": [((X, floats(1, 3), False),)],
    "empty.out": [(([0], None),)],
    "index_put_": [((X, Indices([np.array([1], I64)]), floats(1, 3, seed=8), False),)],
    "sym_numel": [((X,),)],
    "sym_size.int": [((X, 1),)],
    "alias_copy.out": [((X,),)],
    "arange.out": [((3,), (I64,))],
    "arange.start_out": [((1, 8, 3), (I64,)), ((0.5, 2.0, 0.5),)],
    "cat.out": [(([X, floats(1, 3)], 0),), (([X, floats(2, 1)], -1),)],
    "clone.out": [((X, None),)],
    "constant_pad_nd.out": [((X, [1, 0, 0, 2], 0.5),)],
    "detach_copy.out": [((X,),)],
    "embedding.out": [((floats(4, 2), np.array([[3, 0]], I64), -1, False, False),)],
    "expand_copy.out": [((floats(1, 3), [2, -1], False),), ((floats(3), [2, 2, 3], False),)],
    "fill.Scalar_out": [((X, 2),)],
    "fill.Tensor_out": [((X, np.array(2.5, F32)),)],
    "flip.out": [((X, [0, 1]),), ((ALONE, [0]),)],
    "full.out": [(([2, 2], 1.5),), (([3], 7), (I64,))],
    "full_like.out": [((X, 3, None),)],
    "gather.out": [
        ((X, 1, np.array([[2, 0]], I64), False),),
        ((ALONE, -1, np.array(0, I64), False),),
    ],
    "index.Tensor_out": [
        ((floats(3, 2, 2), Indices([None, np.array([1, 0, 1], I64)])),),
        ((floats(3, 4), Indices([np.array([2, 0], I64), np.array([1, 3], I64)])),),
        ((X, Indices([np.array([True, False])])),),
    ],
    "index_put.out": [
        ((X, Indices([None, np.array([2, 0], I64)]), floats(2, 2, seed=7), False),),
        ((X, Indices([np.array([1, 1], I64)]), floats(2, 3, seed=8), True),),
    ],
    "index_select.out": [((X, 1, np.array([2, 2, 0], I64)),)],
    "lift_fresh_copy.out": [((X,),)],
    "masked_select.out": [((X, np.array([[True, False, True]])),)],
    "nonzero.out": [((np.array([[0, 2], [1, 0]], I64),), (I64,))],
    "ones.out": [(([2],),)],
    "permute_copy.out": [((floats(2, 3, 1), [2, 0, 1]),)],
    "pixel_shuffle.out": [((floats(1, 4, 2, 2), 2),), ((np.zeros((0, 4, 2, 2), F32), 2),)],
    "pixel_unshuffle.out": [((floats(1, 1, 4, 2), 2),)],
    "reflection_pad1d.out": [((floats(1, 4), [2, 1]),)],
    "reflection_pad2d.out": [((floats(1, 3, 3), [1, 2, 0, 1]),)],
    "repeat.out": [((X, [2, 1, 2]),)],
    "replication_pad1d.out": [((floats(1, 3), [2, 1]),)],
    "replication_pad2d.out": [((floats(1, 2, 2), [1, 1, 0, 2]),)],
    "roll.out": [((X, [1, -1], [0, 1]),)],
    "scalar_tensor.out": [((2.5,),)],
    "scatter.src_out": [((X, 1, np.array([[2, 0]], I64), floats(2, 2)),)],
    "scatter.value_out": [
        ((X, 0, np.array([[1, 0, 1]], I64), 9),),
        ((ALONE, 0, np.array(0, I64), 2.5),),
    ],
    "scatter_add.out": [
        ((X, 1, np.array([[2, 2, 0]], I64), floats(2, 3, seed=3)),),
        ((ALONE, 0, np.array(0, I64), ALONE),),
    ],
    "select_copy.int_out": [((X, -1, 1),)],
    "select_scatter.out": [((X, floats(2), 1, 2),)],
    "slice_copy.Tensor_out": [((X, 1, 1, 2**63 - 1, 1),), ((floats(5), 0, None, -1, 2),)],
    "slice_scatter.out": [((X, floats(2, 1), 1, 1, 2, 1),)],
    "split_copy.Tensor_out": [((floats(5), 2, 0), (F32, F32, F32), True)],
    "split_with_sizes_copy.out": [((X, [1, 2], 1), (F32, F32), True)],
    "squeeze_copy.dim_out": [((floats(2, 1), 1),), ((floats(2, 1), 0),)],
    "squeeze_copy.dims_out": [((floats(1, 2, 1), [0, 2]),)],
    "stack.out": [(([X, Y], 1),)],
    "t_copy.out": [((X,),)],
    "transpose_copy.int_out": [((X, 0, -1),)],
    "tril.out": [((floats(3, 3), 0),)],
    "unbind_copy.int_out": [((X, 0), (F32, F32), True)],
    "unsqueeze_copy.out": [((X, -1),)],
    "view_copy.out": [((X, [3, -1]),)],
    "_cdist_forward.out": [
        ((_ROWS, floats(2, 3, seed=1), power, None),) for power in (0.0, 1.0, 2.0, 3.0, np.inf)
    ],
    "_native_batch_norm_legit.out": [
        (
            (floats(2, 3, 2), floats(3), None, floats(3), POSITIVE[0], False, 0.1, 1e-5),
            (F32, F32, F32),
        )
    ],
    "_pdist_forward.out": [((floats(3, 2), power),) for power in (1.0, 2.5)],
    "_upsample_bilinear2d_aa.out": [
        ((IMAGE, [2, 9], False, None, None),),
        ((IMAGE, [1, 3], True, None, None),),
        ((IMAGE, [2, 4], False, 0.4, 0.7),),
    ],
    "as_strided_copy.out": [((X, [2, 2], [1, 2], 1),), ((X, [3, 2], [0, 1], None),)],
    "bitwise_left_shift.Tensor_Scalar_out": [((WHOLE, 3), (I64,)), ((Q, 9), (I8,))],
    "bitwise_right_shift.Tensor_Scalar_out": [((WHOLE, 2), (I64,))],
    "convolution_backward.out": [((*_GRADIENT, [True, True, True]), (F32, F32, F32))],
    "diagonal_copy.out": [((X, 1, 0, 1),), ((floats(2, 3, 2), -1, -1, 0),)],
    "grid_sampler_2d.out": [
        ((IMAGE, _GRID, interpolation, padding, padding == 1),)
        for interpolation in range(3)
        for padding in range(3)
    ],
    "logit.out": [((POSITIVE / 4, None),), ((X, 0.2),), ((np.array([0, 1], I32), 0.1),)],
    "masked_scatter.out": [((X, truths(3), Y),)],
    "max_pool2d_with_indices_backward.grad_input": [
        (
            (
                floats(1, 2, 2, 3),
                IMAGE,
                [2, 2],
                [2, 2],
                [0, 0],
                [1, 1],
                False,
                np.array([[[7, 2, 5], [12, 14, 23]], [[0, 2, 4], [19, 21, 17]]], I64)[np.newaxis],
            ),
        )
    ],
    "narrow_copy.out": [((X, 1, 1, 2),)],
    "native_dropout.out": [
        ((X, 0.5, False), (F32, BOOL)),
        ((X, 1.0, True), (F32, BOOL)),
    ],
    "reflection_pad3d.out": [((floats(1, 2, 3, 4), [1, 2, 0, 1, 1, 1]),)],
    "repeat_interleave.Tensor_out": [((np.array([2, 0, 3], I32), 5), (I32,))],
    "replication_pad3d.out": [((floats(1, 2, 3, 4), [1, -2, 0, 3, 2, 1]),)],
    "unfold_copy.out": [((floats(5, 2), 0, 3, 2),), ((X, -1, 2, 1), (F64,))],
    "var_mean.correction_out": [
        ((X, [-1], 1, True), (F32, F32)),
        ((X, None, 0.5, False), (F32, F32)),
        ((X, [0], 2, False), (F32, F32)),
    ],
    "zeros.out": [(([2],),)],
    "_to_copy.out": [((X, False, None), (I32,))],
}

_PAIRS = ((7, -2), (2.5, 2.0))
_NUMBERS: dict[str, list[tuple[Any, ...]]] = {
    **{
        f"executorch_prim::{name}.Scalar": [(pair,) for pair in _PAIRS]
        for name in ("add", "eq", "ge", "gt", "le", "lt", "mul", "sub")
    },
    **{
        f"executorch_prim::{name}.Scalar": [((2.5,),), ((-1.5,),)]
        for name in ("ceil", "neg", "round", "trunc")
    },
    **{
        f"executorch_prim::{name}.Scalar": [(pair,) for pair in (*_PAIRS, (-2.5, 0), (0.0, 0.0))]
        for name in ("floordiv", "truediv")
    },
    **{f"executorch_prim::{name}.Scalar": [((7, -2),)] for name in ("mod", "sym_max", "sym_min")},
    "executorch_prim::floordiv.int": [((7, -2),), ((-7, 2),)],
    "executorch_prim::mod.int": [((-7, 2),)],
    "executorch_prim::sym_float.Scalar": [((3,),)],
    "executorch_prim::sym_ite.Scalar": [((True, 3, 4),), ((False, 3, 2.5),)],
    "executorch_prim::sym_int.Scalar": [((-2.5,),)],
    "executorch_prim::sym_not.Scalar": [((False,),)],
}
_RANGE = (-128, 127, INT8_TYPE)
OTHER: dict[str, list[tuple[Any, ...]]] = {
    **_NUMBERS,
    "dim_order_ops::_empty_dim_order.out": [(([0], [0]),)],
    "dim_order_ops::_clone_dim_order.out": [((X, False, [0, 1]),)],
    "dim_order_ops::_to_dim_order_copy.out": [
        ((X, False, [0, 1]), (I32,)),
        ((WHOLE, False, [0, 1]),),
    ],
    "quantized_decomposed::choose_qparams.Tensor_out": [
        ((X, -128, 127, 1e-4, INT8_TYPE), (F64, I64)),
        ((POSITIVE, -128, 127, 1e-4, INT8_TYPE), (F64, I64)),
        ((-POSITIVE, -128, 127, 1e-4, INT8_TYPE), (F64, I64)),
        ((np.zeros(3, F32), -128, 127, 1e-4, INT8_TYPE), (F64, I64)),
        ((X * np.float32(1e-5), -128, 127, 1e-4, INT8_TYPE), (F64, I64)),
    ],
    "quantized_decomposed::dequantize_per_channel.out": [
        ((Q, SCALES, POINTS, 0, *_RANGE, None),),
        ((Q, SCALES, None, 0, *_RANGE, None),),
    ],
    "quantized_decomposed::dequantize_per_tensor.out": [((Q, 0.1, -3, *_RANGE, None),)],
    "quantized_decomposed::dequantize_per_tensor.Tensor_out": [
        ((Q, SCALES[:1], POINTS[:1], *_RANGE, None),)
    ],
    "quantized_decomposed::quantize_per_channel.out": [((X, SCALES, POINTS, 0, *_RANGE), (I8,))],
    "quantized_decomposed::quantize_per_tensor.out": [
        ((X, 0.01, 3, *_RANGE), (I8,)),
        ((ODD, 1.0, 0, *_RANGE), (I8,)),
    ],
    "quantized_decomposed::quantize_per_tensor.Tensor_out": [
        ((X, SCALES[:1], POINTS[:1], *_RANGE), (I8,))
    ],
    "quantized_decomposed::add.out": [
        ((_BYTES, 0.1, 3, 0, 255, _BYTES[::-1].copy(), 0.2, 7, 0, 255, 0.25, 5, 0, 255), (U8,)),
        ((Q, 0.1, -3, 0, 127, Q, 0.3, 4, 0, 127, 0.5, 7, 9, 100), (I8,)),
    ],
    "quantized_decomposed::choose_qparams_per_token_asymmetric.out": [
        ((_ROWS * np.float32(scale), INT8_TYPE), (F64, I64)) for scale in (1, 1e-6)
    ],
    "quantized_decomposed::dequantize_per_token.out": [
        ((Q, _SCALES_OF_ROWS, _POINTS_OF_ROWS, *_RANGE, int(scalar_type_of(F32))),)
    ],
    **{
        f"quantized_decomposed::embedding_{bits}.{overload}": [
            ((_BYTES, scales, points, 0, 255, _FOUND, *dtype),)
            for scales, points in ((POSITIVE[0], None), (_OF_GROUPS, np.round(4 * _OF_GROUPS)))
        ]
        for bits in ("2bit", "4bit", "byte")
        for overload, dtype in (("out", ()), ("dtype_out", (None,)))
    },
    "quantized_decomposed::mixed_linear.out": [
        ((floats(2, 2), _WEIGHTS, POSITIVE[0], None, None),),
        ((floats(2, 2), _WEIGHTS, _OF_GROUPS, None, int(scalar_type_of(F32))),),
    ],
    "quantized_decomposed::mixed_mm.out": [((X, _WEIGHTS, POSITIVE[0], None),)],
    "quantized_decomposed::quantize_per_token.out": [
        ((X, _SCALES_OF_ROWS, _POINTS_OF_ROWS, *_RANGE), (I8,))
    ],
}


def original(name: str) -> list[list[float]]:
    """Results of a case in the original runtime, as numbers in row-major order."""
    from darwinn_reference.executorch.original import OriginalRuntime

    case = next(entry for entry in cases() if entry.name == name)
    outputs = OriginalRuntime(case.build()).run(case.inputs)
    return [
        [float(f"{value:.7g}") for value in np.asarray(entry.data).reshape(-1).tolist()]
        for entry in outputs
    ]


def main() -> None:
    """Each case runs in a process of its own, for the original runtime may crash."""
    context = multiprocessing.get_context("fork")
    lines = []
    for case in cases():
        with ProcessPoolExecutor(1, context) as pool:
            try:
                result = pool.submit(original, case.name).result()
            except (BrokenProcessPool, ExecutionError) as error:
                print("REFUSED", case.name, error, file=sys.stderr)
                continue
        lines.append(f"{json.dumps(case.name)}: {json.dumps(result, separators=(',', ':'))}")
    print("{\n" + ",\n".join(lines) + "\n}")


if __name__ == "__main__":
    main()
