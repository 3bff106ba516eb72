"""Kernels on tensors of the host: dense, coordinate-list, and of texts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from darwinn_formats.limits import limits
from darwinn_formats.tfrt import DType
from darwinn_formats.tfrt.encoding import ARRAY_FLAG, COMPLEX, DTYPES
from numpy.typing import NDArray

from darwinn_testbench.reference.tfrt.kernels.numbers import float_text, printing
from darwinn_testbench.reference.tfrt.kernels.shapes import I64_ARRAY, TensorShape
from darwinn_testbench.reference.tfrt.registry import AGGREGATE, kernel
from darwinn_testbench.reference.tfrt.values import Chain, KernelError

SHOWN: Final = 16
SHOWN_TEXTS: Final = 32
"""Elements above which a tensor of texts says that it is cut; 16 are shown all the same."""
CLOSE_UNITS: Final = 2
"""Units in the last place by which values that are close may differ."""

Elements = NDArray[Any]


@dataclass(slots=True)
class DenseHostTensor:
    """Elements in row-major order; the array may share its memory with others."""

    dtype: DType
    data: Elements

    def __str__(self) -> str:
        values = [_element_text(value) for value in self.data.reshape(-1)[:SHOWN]]
        more = ", ... " if self.data.size > SHOWN else ""
        shape = TensorShape(self.data.shape)
        text = f"DenseHostTensor dtype = {dtype_text(self.dtype)}, shape = {shape}, "
        return f"{text}values = [{', '.join(values)}{more}]"


@dataclass(slots=True)
class ScalarHostTensor:
    """One value for all elements."""

    dtype: DType
    shape: TensorShape
    value: Any

    def __str__(self) -> str:
        text = f"ScalarHostTensor dtype = {dtype_text(self.dtype)}, shape = {self.shape}, "
        return f"{text}value = {_element_text(self.value)}"


@dataclass(slots=True)
class CooHostTensor:
    """Values that are not zero, and the int64 indices [n, rank] of each."""

    dtype: DType
    shape: TensorShape
    indices: Elements
    values: Elements

    def __str__(self) -> str:
        indices = ", ".join(str(number) for number in self.indices.reshape(-1))
        values = ", ".join(map(_element_text, self.values))
        text = f"CooHostTensor dtype = {dtype_text(self.dtype)}, shape = {self.shape}, "
        return f"{text}indices = [{indices}], values = [{values}]\n"


@dataclass(slots=True)
class StringHostTensor:
    """Texts."""

    shape: TensorShape
    values: list[str]

    def __str__(self) -> str:
        cut = len(self.values) > SHOWN_TEXTS
        texts = ", ".join(f'"{text}"' for text in self.values[:SHOWN])
        return f"StringHostTensor shape = {self.shape}, values = [{texts}{', ... ' if cut else ''}]"


@dataclass(slots=True)
class HostBuffer:
    """Bytes that tensors can share."""

    data: NDArray[np.uint8]


def dtype_text(dtype: DType) -> str:
    """Name of an element type in printed tensors."""
    return dtype.name.lower()


def _element_text(value: Any) -> str:
    if isinstance(value, np.complexfloating):
        return f"{float_text(float(value.real), 'e')}+{float_text(float(value.imag), 'e')}i"
    if isinstance(value, np.floating):
        return float_text(float(value), "e")
    return str(int(value))


# --- for every element type ------------------------------------------------------------------


def _creating(dtype: DType, rank: int) -> Callable[[list[int]], DenseHostTensor]:
    numpy_type, size = np.dtype(DTYPES[dtype].numpy), DTYPES[dtype].size
    if dtype is DType.I1:
        numpy_type = np.dtype(np.bool_)

    def create(shape: list[int]) -> DenseHostTensor:
        count = TensorShape(tuple(shape)).elements
        if len(shape) != rank or min(shape, default=0) < 0 or count * size > limits().memory:
            raise KernelError("Cannot allocate tensor")
        # The original leaves the elements as they are; zeros are as good as any, and repeatable.
        return DenseHostTensor(dtype, np.zeros(shape, numpy_type))

    return create


def _fill(value: Any, tensor: DenseHostTensor, chain: Chain) -> Chain:
    tensor.data[...] = value
    return chain


def _set(values: list[Any], tensor: DenseHostTensor, chain: Chain) -> Chain:
    if len(values) != tensor.data.size:
        raise KernelError(
            f"Incorrect number of values for the tensor: {len(values)}, "
            f"but expected {tensor.data.size}"
        )
    tensor.data[...] = np.array(values, tensor.data.dtype).reshape(tensor.data.shape)
    return chain


def _set_operands(tensor: DenseHostTensor, chain: Chain, *values: Any) -> Chain:
    return _set(list(values), tensor, chain)


def _making(dtype: DType) -> Callable[[HostBuffer, TensorShape, Chain], tuple[Any, Chain]]:
    numpy_type = np.dtype(np.bool_ if dtype is DType.I1 else DTYPES[dtype].numpy)

    def make(buffer: HostBuffer, shape: TensorShape, chain: Chain) -> tuple[Any, Chain]:
        size = shape.elements * numpy_type.itemsize
        if min(shape.dims, default=0) < 0 or size > buffer.data.size:
            raise KernelError("Cannot allocate tensor")
        return DenseHostTensor(
            dtype, buffer.data[:size].view(numpy_type).reshape(shape.dims)
        ), chain

    return make


def _equal(first: DenseHostTensor, second: DenseHostTensor, chain: Chain) -> tuple[bool, Chain]:
    return bool(np.array_equal(first.data, second.data)), chain


def _close(first: DenseHostTensor, second: DenseHostTensor, chain: Chain) -> tuple[bool, Chain]:
    if first.data.shape != second.data.shape:
        return False, chain
    if first.data.dtype.kind not in "fc":
        return _equal(first, second, chain)
    information = np.finfo(first.data.dtype)
    largest = np.maximum(np.abs(first.data), np.abs(second.data))
    bound = np.maximum(information.eps * largest * CLOSE_UNITS, information.tiny)
    return bool(np.all(np.abs(first.data - second.data) <= bound)), chain


def _to_coo(tensor: DenseHostTensor, chain: Chain) -> tuple[CooHostTensor, Chain]:
    flat = tensor.data.reshape(-1)
    places = np.flatnonzero(flat)
    indices = _digits(places, tensor.data.shape)
    shape = TensorShape(tensor.data.shape)
    return CooHostTensor(tensor.dtype, shape, indices, flat[places]), chain


def _digits(places: Elements, shape: tuple[int, ...]) -> Elements:
    """Indices of elements: divided by the first size first, stored from the last column on."""
    indices = np.zeros((places.size, len(shape)), np.int64)
    for number, size in enumerate(shape):
        places, indices[:, len(shape) - 1 - number] = np.divmod(places, max(size, 1))
    return indices


def _to_dense(tensor: CooHostTensor, chain: Chain) -> tuple[DenseHostTensor, Chain]:
    dims = tensor.shape.dims
    places = np.zeros(len(tensor.values), np.int64)
    for number in reversed(range(len(dims))):
        places = places * dims[number] + tensor.indices[:, len(dims) - 1 - number]
    flat = np.zeros(tensor.shape.elements, tensor.values.dtype)
    flat[places] = tensor.values
    return DenseHostTensor(tensor.dtype, flat.reshape(dims)), chain


def _coo_equal(first: CooHostTensor, second: CooHostTensor, chain: Chain) -> tuple[bool, Chain]:
    same = (
        first.shape == second.shape
        and np.array_equal(first.indices, second.indices)
        and np.array_equal(first.values, second.values)
    )
    return bool(same), chain


_CREATED: Final = (
    DType.UI8,
    DType.UI32,
    DType.UI64,
    DType.I8,
    DType.I32,
    DType.I64,
    DType.F32,
    DType.F64,
    DType.I1,
    DType.COMPLEX64,
    DType.COMPLEX128,
)
_ONLY_CREATED: Final = (DType.F16, DType.BF16)
_COORDINATE: Final = (DType.F32, DType.I32)


def _suffix(dtype: DType) -> str:
    return "bool" if dtype is DType.I1 else dtype.name.lower()


for _dtype in (*_CREATED, *_ONLY_CREATED):
    for _rank in range(6):
        kernel(
            f"tfrt_dht.create_uninitialized_tensor.{_suffix(_dtype)}.{_rank}",
            attributes=(I64_ARRAY,),
        )(_creating(_dtype, _rank))
for _dtype in _CREATED:
    _name = _suffix(_dtype)
    # No attribute holds a complex number.
    if _dtype not in COMPLEX:
        kernel(
            f"tfrt_dht.fill_tensor_with_constant.{_name}",
            attributes=(int(_dtype),),
            writes=0,
            fresh=False,
        )(_fill)
        kernel(
            f"tfrt_dht.set_tensor_with_constant_values.{_name}",
            attributes=(int(_dtype) | ARRAY_FLAG,),
            writes=0,
            fresh=False,
        )(_set)
    kernel(f"tfrt_dht.set_tensor_with_values.{_name}", writes=0, fresh=False)(_set_operands)
    kernel(f"tfrt_dht.make_tensor.{_name}", results=2)(_making(_dtype))
    kernel(f"tfrt_dht.tensor_equal.{_name}", results=2)(_equal)
    kernel(f"tfrt_dht.tensor_allclose.{_name}", results=2)(_close)
for _dtype in _COORDINATE:
    for _rank in range(4):
        _name = f"{_suffix(_dtype)}.{_rank}"
        kernel(f"coo.convert_dht_to_coo.{_name}", results=2)(_to_coo)
        kernel(f"coo.convert_coo_to_dht.{_name}", results=2)(_to_dense)
        kernel(f"coo.tensor_equal.{_name}", results=2)(_coo_equal)


# --- for all tensors -------------------------------------------------------------------------


def _shape(tensor: DenseHostTensor) -> TensorShape:
    return TensorShape(tensor.data.shape)


kernel("tfrt_dht.print_tensor", host=True)(printing(""))
kernel("tfrt_dht.print_tensor_shape", host=True)(printing("", lambda tensor: str(_shape(tensor))))
kernel("tfrt_dht.get_tensor_shape")(_shape)


@kernel("tfrt_dht.allocate_buffer")
def allocate_buffer(size: int, _alignment: int) -> HostBuffer:
    """A buffer of bytes."""
    if not 0 <= size <= limits().memory:
        raise KernelError("Cannot allocate host buffer")
    return HostBuffer(np.zeros(size, np.uint8))


@kernel("tfrt_dht.get_buffer", results=2, fresh=False)
def get_buffer(tensor: DenseHostTensor, chain: Chain) -> tuple[HostBuffer, Chain]:
    """The bytes of a tensor, shared with it."""
    return HostBuffer(tensor.data.reshape(-1).view(np.uint8)), chain


@kernel("tfrt_dht.get_buffer_slice", fresh=False)
def get_buffer_slice(buffer: HostBuffer, offset: int, size: int) -> HostBuffer:
    """A part of a buffer, shared with it."""
    if offset < 0 or size < 0 or offset + size > buffer.data.size:
        raise KernelError("Cannot allocate host buffer")
    return HostBuffer(buffer.data[offset : offset + size])


@kernel("tfrt_sht.create_tensor", attributes=(I64_ARRAY, AGGREGATE))
def create_string_tensor(shape: list[int], values: list[str]) -> StringHostTensor:
    """A tensor of texts."""
    tensor = StringHostTensor(TensorShape(tuple(shape)), values)
    if tensor.shape.elements != len(values):
        raise KernelError("Shape mismatch")
    return tensor
