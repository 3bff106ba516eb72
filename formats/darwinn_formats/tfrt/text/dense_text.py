"""Dense tensors in the text form: ``dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>``."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np

from darwinn_formats.limits import refuse_size
from darwinn_formats.tfrt.encoding import COMPLEX, DTYPE_OF_TEXT, DTYPES, SCALARS, DType
from darwinn_formats.tfrt.model import Dense, Scalar
from darwinn_formats.tfrt.text.numbers import number_text, scalar_of_text
from darwinn_formats.tfrt.text.token_reader import TokenReader

MAXIMUM_DEPTH: Final = 64
"""Lists in lists."""
MOST_LISTED: Final = 100
"""Elements above which different ones are written as the bytes of all in hexadecimal."""

_PARTS: Final = {DType.COMPLEX64: DType.F32, DType.COMPLEX128: DType.F64}

# --- printing ------------------------------------------------------------------------------------


def print_dense(dense: Dense) -> str:
    """The text of a dense tensor: one element where all are alike, nothing where there are none."""
    size = DTYPES[dense.dtype].size
    elements = [dense.data[at : at + size] for at in range(0, len(dense.data), size)]
    if not elements:
        text = ""
    elif all(element == elements[0] for element in elements):
        text = _element_text(dense.dtype, elements[0])
    elif len(elements) > MOST_LISTED:
        text = f'"0x{_packed(dense).hex().upper()}"'
    else:
        text = _list_text([_element_text(dense.dtype, data) for data in elements], dense.dims)
    dims = "".join(f"{dim}x" for dim in dense.dims)
    return f"dense<{text}> : tensor<{dims}{DTYPES[dense.dtype].text}>"


def _element_text(dtype: DType, data: bytes) -> str:
    part = _PARTS.get(dtype)
    if part is None:
        return number_text(Scalar(dtype, data))
    half = len(data) // 2
    texts = (number_text(Scalar(part, half_data)) for half_data in (data[:half], data[half:]))
    return f"({','.join(texts)})"


def _list_text(texts: list[str], dims: tuple[int, ...]) -> str:
    for dim in reversed(dims):
        texts = [f"[{', '.join(texts[at : at + dim])}]" for at in range(0, len(texts), dim)]
    return texts[0]


def _packed(dense: Dense) -> bytes:
    """The bytes that hexadecimal stands for: eight elements of i1 share one, the first lowest."""
    if dense.dtype is not DType.I1:
        return dense.data
    bits = np.frombuffer(dense.data, np.uint8)
    return np.packbits(bits, bitorder="little").tobytes()


# --- parsing -------------------------------------------------------------------------------------


def parse_dense(reader: TokenReader) -> Dense:
    """``dense<...> : tensor<...>`` at the reader's position."""
    start = reader.take()
    reader.expect("<")
    if reader.token.kind == "string":
        token = reader.token
        text = reader.string().decode("ascii", "replace")
        if not text.startswith("0x"):
            raise reader.error("dense strings are hexadecimal, from 0x on", token)
        elements: list[_Element] | None = None
        try:
            data = bytes.fromhex(text[2:])
        except ValueError:
            raise reader.error("not hexadecimal", token) from None
    else:
        elements, data = [] if reader.token.text == ">" else _parse_elements(reader, 0), b""
    reader.expect(">")
    reader.expect(":")
    token = reader.token
    dims, dtype = _tensor_type(reader)
    count = math.prod(dims)
    if elements is not None:
        try:
            data = b"".join(element(dtype) for element in elements)
        except ValueError as error:
            raise reader.error(str(error), start) from None
        if len(elements) == 1:
            refuse_size(len(data) * count, f"dense tensor in line {start.line}")
            data *= count
    elif dtype is DType.I1 and len(data) == (count + 7) // 8:
        data = np.unpackbits(
            np.frombuffer(data, np.uint8), count=count, bitorder="little"
        ).tobytes()
    if len(data) != count * DTYPES[dtype].size:
        raise reader.error(f"not {count} elements", token)
    return Dense(dtype, dims, data)


_Element = Callable[[DType], bytes]
"""The bytes of an element as one of a type; ValueError where it is none."""


def _parse_elements(reader: TokenReader, depth: int) -> list[_Element]:
    if depth > MAXIMUM_DEPTH:
        raise reader.error(f"lists are nested more than {MAXIMUM_DEPTH} deep")
    if reader.token.text == "[":
        nested = reader.entries("[", "]", lambda: _parse_elements(reader, depth + 1))
        return [element for elements in nested for element in elements]
    if reader.token.text == "(":
        return [_complex(reader.entries("(", ")", lambda: _parse_number(reader)))]
    return [_parse_number(reader)]


def _parse_number(reader: TokenReader) -> _Element:
    token = reader.take()
    text, kind = token.text, token.kind
    if text in ("true", "false"):
        text, kind = str(int(text == "true")), "truth"
    elif kind not in ("integer", "float", "hex"):
        raise reader.error("an element of a tensor is a number", token)

    def number(dtype: DType) -> bytes:
        if dtype in COMPLEX:
            raise ValueError(f"{DTYPES[dtype].text} needs elements like (1.0, 2.0)")
        if kind == "truth" and dtype is not DType.I1:
            raise ValueError(f"{token.text} is not of type {DTYPES[dtype].text}")
        return scalar_of_text(text, "integer" if kind == "truth" else kind, dtype).data

    return number


def _complex(parts: list[_Element]) -> _Element:
    def number(dtype: DType) -> bytes:
        part = _PARTS.get(dtype)
        if part is None or len(parts) != 2:
            raise ValueError(f"a list in parentheses is not of type {DTYPES[dtype].text}")
        return b"".join(element(part) for element in parts)

    return number


def _tensor_type(reader: TokenReader) -> tuple[tuple[int, ...], DType]:
    token = reader.token
    text = reader.type().replace(" ", "")
    if not (text.startswith("tensor<") and text.endswith(">")):
        raise reader.error("a tensor type is needed", token)
    *sizes, element = text[len("tensor<") : -1].split("x", text.count("x"))
    # complex has an x of its own.
    if sizes and sizes[-1] == "comple":
        element = f"{sizes.pop()}x{element}"
    dtype = DTYPE_OF_TEXT.get(element)
    if dtype is None or dtype not in {*SCALARS, *COMPLEX} or not all(s.isdecimal() for s in sizes):
        raise reader.error(f"a tensor of type {text!r} cannot be held", token)
    return tuple(map(int, sizes)), dtype
