"""Element types of tensors, and the enumerations that option tables hold."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np


class TensorType(IntEnum):
    """Element type of a tensor."""

    FLOAT32 = 0
    FLOAT16 = 1
    INT32 = 2
    UINT8 = 3
    INT64 = 4
    STRING = 5
    BOOL = 6
    INT16 = 7
    COMPLEX64 = 8
    INT8 = 9
    FLOAT64 = 10
    COMPLEX128 = 11
    UINT64 = 12
    RESOURCE = 13
    VARIANT = 14
    UINT32 = 15
    UINT16 = 16
    INT4 = 17
    BFLOAT16 = 18
    INT2 = 19
    UINT4 = 20
    FLOAT8_E4M3FN = 21
    FLOAT8_E5M2 = 22


DTYPES: dict[TensorType, np.dtype[Any]] = {
    TensorType[name.upper()]: np.dtype(name).newbyteorder("<")
    for name in (
        *("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"),
        *("float16", "float32", "float64", "complex64", "complex128", "bool"),
    )
}
"""NumPy types of the element types that have one."""


class Padding(IntEnum):
    """Padding of a convolution or a pool."""

    SAME = 0
    VALID = 1


class ActivationFunctionType(IntEnum):
    """Activation that is fused into an operator."""

    NONE = 0
    RELU = 1
    RELU_N1_TO_1 = 2
    RELU6 = 3
    TANH = 4
    SIGN_BIT = 5


class WeightsFormat(IntEnum):
    """Layout of the weights of FULLY_CONNECTED."""

    DEFAULT = 0
    SHUFFLED4X16INT8 = 1


class MirrorPadMode(IntEnum):
    """Whether the border itself is repeated."""

    REFLECT = 0
    SYMMETRIC = 1


class LSTMKernelType(IntEnum):
    """Kernel of an LSTM operator."""

    FULL = 0
    BASIC = 1
