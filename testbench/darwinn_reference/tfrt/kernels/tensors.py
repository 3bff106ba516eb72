"""Kernels on tensors of the host: dense, coordinate-list, and of texts."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from darwinn_formats.limits import limits
from darwinn_formats.tfrt import Dense, DType
from darwinn_formats.tfrt.encoding import ARRAY_FLAG, DTYPES
from numpy.typing import NDArray

from darwinn_reference.tfrt.kernels.numbers import float_text, printing
from darwinn_reference.tfrt.kernels.shapes import I64_ARRAY, TensorShape
from darwinn_reference.tfrt.registry import AGGREGATE, DENSE, kernel
from darwinn_reference.tfrt.values import CHAIN, Chain, KernelError

SHOWN: Final = 16
SHOWN_TEXTS: Final = 32
"""Elements above which a tensor of texts says that it is cut; 16 are shown all the same."""
BYTES_PER_TEXT: Final = 32
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
    """Bytes that tensors can share; their address is not told, so that runs print the same."""

    data: NDArray[np.uint8]

    def __str__(self) -> str:
        return f"HostBuffer<pointer=0x0, size={self.data.size}>"


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


def _array_type(dtype: DType) -> np.dtype[Any]:
    """What an array has elements of that type as."""
    return np.dtype(np.bool_ if dtype is DType.I1 else DTYPES[dtype].numpy)


def _creating(dtype: DType, rank: int) -> Callable[[list[int]], DenseHostTensor]:
    numpy_type, size = _array_type(dtype), DTYPES[dtype].size

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


def _assign(values: list[Any], tensor: DenseHostTensor) -> None:
    if len(values) != tensor.data.size:
        raise KernelError(
            f"Incorrect number of values for the tensor: {len(values)}, "
            f"but expected {tensor.data.size}"
        )
    tensor.data[...] = np.array(values, tensor.data.dtype).reshape(tensor.data.shape)


def _set(values: list[Any], tensor: DenseHostTensor, chain: Chain) -> Chain:
    _assign(values, tensor)
    return chain


def _pairs(numbers: list[float]) -> list[complex]:
    """Complex numbers of their real and imaginary parts in turn."""
    if len(numbers) % 2:
        raise KernelError(f"{len(numbers)} parts are no complex numbers")
    return [complex(*pair) for pair in zip(numbers[::2], numbers[1::2], strict=True)]


def _set_complex(numbers: list[float], tensor: DenseHostTensor, chain: Chain) -> Chain:
    return _set(_pairs(numbers), tensor, chain)


def _filled(dtype: DType) -> Callable[[list[int], list[Any]], DenseHostTensor]:
    numpy_type = _array_type(dtype)

    def create(shape: list[int], values: list[Any]) -> DenseHostTensor:
        tensor = _creating(dtype, len(shape))(shape)
        if len(values) == 1:
            tensor.data[...] = np.array(values, numpy_type)
        else:
            _assign(values, tensor)
        return tensor

    return create


def _scalar(dtype: DType) -> Callable[[list[int], Any], ScalarHostTensor]:
    return lambda shape, value: ScalarHostTensor(
        dtype, TensorShape(tuple(shape)), _array_type(dtype).type(value)
    )


def _set_operands(tensor: DenseHostTensor, chain: Chain, *values: Any) -> Chain:
    return _set(list(values), tensor, chain)


def _made(dtype: DType, kernel_name: str) -> Callable[[HostBuffer, TensorShape], DenseHostTensor]:
    numpy_type = _array_type(dtype)

    def make(buffer: HostBuffer, shape: TensorShape) -> DenseHostTensor:
        size = numpy_type.itemsize
        if min(shape.dims, default=0) < 0 or shape.elements * size != buffer.data.size:
            raise KernelError(
                f"{kernel_name} failed: buffer_size ({buffer.data.size}) is not equal to the "
                f"number of elements in shape ({shape}) times element size ({size})"
            )
        return DenseHostTensor(dtype, buffer.data.view(numpy_type).reshape(shape.dims))

    return make


def _making(dtype: DType) -> Callable[[HostBuffer, TensorShape, Chain], tuple[Any, Chain]]:
    make = _made(dtype, "dht.make_tensor")
    return lambda buffer, shape, chain: (make(buffer, shape), chain)


def _equal(first: DenseHostTensor, second: DenseHostTensor, chain: Chain) -> tuple[bool, Chain]:
    return bool(np.array_equal(first.data, second.data)), chain


def _closing(
    units: int,
) -> Callable[[DenseHostTensor, DenseHostTensor, Chain], tuple[bool, Chain]]:
    """Whether values are within as many units in the last place."""

    def close(first: DenseHostTensor, second: DenseHostTensor, chain: Chain) -> tuple[bool, Chain]:
        if first.data.shape != second.data.shape:
            return False, chain
        if first.data.dtype.kind not in "fc":
            return _equal(first, second, chain)
        information = np.finfo(first.data.dtype)
        largest = np.maximum(np.abs(first.data), np.abs(second.data))
        bound = np.maximum(information.eps * largest * units, information.tiny)
        return bool(np.all(np.abs(first.data - second.data) <= bound)), chain

    return close


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
    DType.UI16,
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
_PARTS: Final = {DType.COMPLEX64: DType.F32, DType.COMPLEX128: DType.F64}
_FURTHER_UNITS: Final = (3, 1000, 2000, 100000)
_ONLY_CREATED: Final = (DType.F16, DType.BF16)
_SLICED: Final = (DType.F32, DType.I32, DType.I64)
_COORDINATE: Final = (DType.F32, DType.I32)


def _suffix(dtype: DType) -> str:
    return "bool" if dtype is DType.I1 else dtype.name.lower()


for _dtype in (*_CREATED, *_ONLY_CREATED):
    for _rank in range(6):
        kernel(
            f"tfrt_dht.create_uninitialized_tensor.{_suffix(_dtype)}.{_rank}",
            f"tfrt_dht_sync.create_uninitialized_tensor.{_suffix(_dtype)}.{_rank}",
            attributes=(I64_ARRAY,),
        )(_creating(_dtype, _rank))
for _dtype in _CREATED:
    _name = _suffix(_dtype)
    # No attribute holds a complex number; a list has their parts in turn.
    _parts = _PARTS.get(_dtype)
    if _parts is not None:
        kernel(
            f"tfrt_dht.set_tensor_with_constant_values.{_name}",
            attributes=(int(_parts) | ARRAY_FLAG,),
            writes=0,
            fresh=False,
        )(_set_complex)
        kernel(
            f"tfrt_dht_sync.set_tensor_with_constant_values.{_name}",
            attributes=(int(_parts) | ARRAY_FLAG,),
            results=0,
            writes=0,
        )(lambda numbers, tensor: _assign(_pairs(numbers), tensor))
    else:
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
        kernel(
            f"tfrt_dht_sync.set_tensor_with_constant_values.{_name}",
            attributes=(int(_dtype) | ARRAY_FLAG,),
            results=0,
            writes=0,
        )(_assign)
        kernel(
            f"tfrt_dht_sync.create_dense_tensor.{_name}",
            attributes=(I64_ARRAY, int(_dtype) | ARRAY_FLAG),
        )(_filled(_dtype))
        kernel(f"tfrt_dht_sync.create_from_scalar.{_name}", attributes=(I64_ARRAY, int(_dtype)))(
            _scalar(_dtype)
        )
    kernel(f"tfrt_dht.set_tensor_with_values.{_name}", writes=0, fresh=False)(_set_operands)
    kernel(f"tfrt_dht.make_tensor.{_name}", results=2)(_making(_dtype))
    kernel(f"tfrt_dht.tensor_equal.{_name}", results=2)(_equal)
    kernel(f"tfrt_dht_sync.make_tensor.{_name}")(_made(_dtype, "tfrt_dht_sync.make_tensor"))
    kernel(f"tfrt_dht.tensor_allclose.{_name}", results=2)(_closing(CLOSE_UNITS))
    for _units in _FURTHER_UNITS:
        kernel(f"tfrt_dht.tensor_allclose.{_units}ulp.{_name}", results=2)(_closing(_units))
for _dtype in _COORDINATE:
    for _rank in range(4):
        _name = f"{_suffix(_dtype)}.{_rank}"
        kernel(f"coo.convert_dht_to_coo.{_name}", results=2)(_to_coo)
        kernel(f"coo.convert_coo_to_dht.{_name}", results=2)(_to_dense)
        kernel(f"coo.tensor_equal.{_name}", results=2)(_coo_equal)


# --- for all tensors -------------------------------------------------------------------------


def _shape(tensor: DenseHostTensor) -> TensorShape:
    return TensorShape(tensor.data.shape)


kernel("tfrt_dht.print_tensor", "coo.print_tensor", host=True)(printing(""))
kernel("tfrt_dht_sync.print_tensor", host=True, results=0)(
    lambda host, tensor: host.print(str(tensor))
)
kernel("tfrt_dht.print_buffer", host=True)(printing(""))
kernel("tfrt_dht.no_op_ht")(lambda _: CHAIN)
kernel("tfrt_test.const_dense_attr", "tfrt_test.sync.const_dense_attr", attributes=(DENSE,))(
    lambda value: DenseHostTensor(value.dtype, _elements(value))
)
kernel("tfrt_dht.print_tensor_shape", host=True)(printing("", lambda tensor: str(_shape(tensor))))
kernel("tfrt_dht.get_tensor_shape", "tfrt_dht_sync.get_tensor_shape")(_shape)


def _elements(dense: Dense) -> Elements:
    """A copy of the elements of an attribute."""
    array = np.frombuffer(dense.data, DTYPES[dense.dtype].numpy)
    return array.reshape(dense.dims).astype(_array_type(dense.dtype))


def _slice(
    tensor: DenseHostTensor, begin: DenseHostTensor, chain: Chain, output: DenseHostTensor
) -> Chain:
    """Fill a tensor with the part of another from an index on."""
    starts = begin.data.reshape(-1).tolist()
    sizes = output.data.shape
    ends = [start + size for start, size in zip(starts, sizes, strict=True)]
    if min(starts, default=0) < 0 or any(map(operator.gt, ends, tensor.data.shape)):
        raise KernelError("the slice reaches beyond the tensor")
    output.data[...] = tensor.data[tuple(map(slice, starts, ends))]
    return chain


for _dtype in _SLICED:
    kernel(f"tfrt_test.slice_inplace.{_suffix(_dtype)}.3", writes=3, fresh=False)(_slice)


@kernel("tfrt_dht.allocate_buffer", "tfrt_dht_sync.allocate_buffer")
def allocate_buffer(size: int, _alignment: int) -> HostBuffer:
    """A buffer of bytes."""
    if not 0 <= size <= limits().memory:
        raise KernelError("Cannot allocate host buffer")
    return HostBuffer(np.zeros(size, np.uint8))


@kernel("tfrt_dht.get_buffer", results=2, fresh=False)
def get_buffer(tensor: DenseHostTensor, chain: Chain) -> tuple[HostBuffer, Chain]:
    """The bytes of a tensor, shared with it."""
    return HostBuffer(tensor.data.reshape(-1).view(np.uint8)), chain


@kernel("tfrt_dht.get_buffer_slice", "tfrt_dht_sync.get_buffer_slice", fresh=False)
def get_buffer_slice(buffer: HostBuffer, offset: int, size: int) -> HostBuffer:
    """A part of a buffer, shared with it."""
    if offset < 0 or size < 0 or offset + size > buffer.data.size:
        raise KernelError("Cannot allocate host buffer")
    return HostBuffer(buffer.data[offset : offset + size])


@kernel("tfrt_sht.create_tensor", "tfrt_sht_sync.create_tensor", attributes=(I64_ARRAY, AGGREGATE))
def create_string_tensor(shape: list[int], values: list[str]) -> StringHostTensor:
    """A tensor of texts."""
    tensor = StringHostTensor(TensorShape(tuple(shape)), values)
    if tensor.shape.elements != len(values):
        raise KernelError("Shape mismatch")
    return tensor


@kernel("tfrt_sht_sync.create_uninitialized_tensor", attributes=(I64_ARRAY,))
def create_uninitialized_string_tensor(shape: list[int]) -> StringHostTensor:
    """A tensor of empty texts."""
    of = TensorShape(tuple(shape))
    if min(shape, default=0) < 0 or of.elements * BYTES_PER_TEXT > limits().memory:
        raise KernelError("Cannot allocate tensor")
    return StringHostTensor(of, [""] * of.elements)
