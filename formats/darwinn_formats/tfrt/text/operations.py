"""The operations that have a form of their own, and what that form implies.

The forms are those of the original's operation definitions. An operation that is not here can only
be written in its generic form; one that the original does not define, though its name is like that
of others, is read in their form and printed in the generic one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Final, NamedTuple

from darwinn_formats.tfrt.encoding import DTYPE_OF_TEXT, DType
from darwinn_formats.tfrt.text.form import Form, Piece
from darwinn_formats.tfrt.text.pieces import (
    AttributeDictionary,
    AttributeValue,
    ElseRegion,
    EnclosedOperands,
    EnclosedSetting,
    Function,
    FunctionList,
    FunctionType,
    MoreOperands,
    Number,
    NumberList,
    Operand,
    Operands,
    OperandTypes,
    Region,
    Results,
    Settings,
    StringValue,
    TypedNumber,
    Word,
)

CHAIN: Final = "!tfrt.chain"
TENSOR: Final = "!t.tensor"
BUFFER: Final = "!ht.host_buffer"
SHAPE: Final = "!ts.shape"
PARTIAL_SHAPE: Final = "!ts.partial_shape"
_STRING: Final = "!tfrt.string"
_EXAMPLE: Final = "!proto.example"
_HANDLE: Final = "!corert.tensorhandle"
_HANDLER: Final = "!corert.ophandler"

_CHAIN_RESULT = Results((CHAIN,))
_DICTIONARY = AttributeDictionary()
_RANGE = (Operand(), Word("to"), Operand(), Word("fixed"), Operand())
_BENCHMARK = Settings(("duration_secs", "max_count", "num_warmup_runs"), {"num_warmup_runs": 1})

_FORMS: Final[dict[str, tuple[Piece, ...]]] = {
    "tfrt.return": (Operands(), OperandTypes()),
    "tfrt.merge.chains": (Operands(), _DICTIONARY, OperandTypes(optional=True), _CHAIN_RESULT),
    "tfrt.call": (
        Function("callee"),
        EnclosedOperands(),
        _DICTIONARY,
        FunctionType(enclosed=False),
    ),
    "tfrt.if": (Operands(at_least=1), FunctionType(1), Region((0,)), ElseRegion((0,))),
    "tfrt.cond": (
        Operand(),
        Function("a_true_fn"),
        Function("b_false_fn"),
        EnclosedOperands(),
        _DICTIONARY,
        FunctionType(1),
    ),
    "tfrt.case": (
        Operand(),
        FunctionList("branches"),
        EnclosedOperands(),
        _DICTIONARY,
        FunctionType(1, chain=CHAIN),
    ),
    "tfrt.while": (
        Operand(),
        Function("body_fn"),
        EnclosedOperands(),
        _DICTIONARY,
        EnclosedSetting("parallel_iterations"),
        FunctionType(1),
    ),
    "tfrt.repeat.i32": (Operands(at_least=1), OperandTypes(1, as_results=True), Region((0,))),
    "tfrt.once": (Function("function"), EnclosedOperands(), _DICTIONARY, FunctionType()),
    "tfrt.parallel_for.i32": (
        *_RANGE,
        MoreOperands(),
        OperandTypes(3),
        # The arguments are start and end, without the block size.
        Region((2,)),
        _CHAIN_RESULT,
    ),
    "tfrt.parallel_call.i32": (
        *_RANGE,
        Function("callee"),
        EnclosedOperands(),
        OperandTypes(3),
        _CHAIN_RESULT,
    ),
    "tfrt_test.do.async": (Operands(), FunctionType(), Region()),
    "tfrt_test.benchmark": (
        StringValue("name"),
        EnclosedOperands(typed=True),
        _BENCHMARK,
        Region(),
        _CHAIN_RESULT,
    ),
    "tfrt_test.sync_benchmark": (Function("target_fn"), EnclosedOperands(typed=True), _BENCHMARK),
    "tfrt_test.test_cost": (
        Operands(),
        _DICTIONARY,
        OperandTypes(optional=True),
        Results(("i32",)),
    ),
    "corert.const_dense_tensor": (AttributeValue("value"), _DICTIONARY, Results((_HANDLE,))),
    "corert.get_op_handler": (
        Operand(),
        StringValue("op_handler_name"),
        _DICTIONARY,
        Results((_HANDLER,)),
    ),
    "corert.register_op_handler": (
        Operand(),
        StringValue("op_handler_name"),
        _DICTIONARY,
        _CHAIN_RESULT,
    ),
    "corert.cond": (
        Operand(),
        Function("a_true_fn"),
        Function("b_false_fn"),
        EnclosedOperands(),
        _DICTIONARY,
        FunctionType(1, chain=CHAIN, shows_chain=False),
    ),
    "corert.while": (
        Function("a_cond_fn"),
        Function("b_body_fn"),
        EnclosedOperands(),
        _DICTIONARY,
        FunctionType(chain=CHAIN, shows_chain=False),
    ),
} | {
    f"{dialect}.{name}": (NumberList("value", DType.I64), _DICTIONARY, Results((result,)))
    for dialect in ("ts", "ts_sync")
    for name, result in (("build_shape", SHAPE), ("build_partial_shape", PARTIAL_SHAPE))
}


class _Row(NamedTuple):
    """Operations of operands and attributes, with the types of their results.

    T and R in a name stand for its element type and rank; ``elements`` and ``ranks`` are those for
    which the original defines the operation. It defines none where ``defined`` is false.
    """

    operands: int
    results: tuple[str, ...]
    elements: str = ""
    ranks: int = 0
    defined: bool = True


_TENSOR_ELEMENTS: Final = "ui8 ui16 ui32 ui64 i32 f32 i64 bool complex64 complex128"
_COO: Final = ("i32 f32", 4)

_OPERAND_FORMS: Final[dict[str, _Row]] = {
    "tfrt.new.chain": _Row(0, (CHAIN,)),
    "tfrt.get_device": _Row(1, ("!tfrt.device",)),
    "tfrt.add.T": _Row(2, ("T",), "i32 i64 f32 f64"),
    "tfrt.minus.T": _Row(2, ("T",), defined=False),
    "tfrt.mul.T": _Row(2, ("T",), "i32 i64"),
    "tfrt.mul_s.T": _Row(2, ("T",), "i32 i64"),
    "tfrt.multiply.T": _Row(2, ("T",), defined=False),
    "tfrt.minimum.T": _Row(2, ("T",), defined=False),
    "tfrt.and.T": _Row(2, ("T",), "i1"),
    "tfrt.equal.T": _Row(2, ("i1",), "i32 i64"),
    "tfrt.lessequal.T": _Row(2, ("i1",), defined=False),
    "tfrt.div.i32": _Row(2, ("i32", "i32"), "i32"),
    "tfrt.div.i64": _Row(2, ("i64", "i64"), "i64"),
    "tfrt.div.f32": _Row(2, ("f32",), defined=False),
    "tfrt.div.f64": _Row(2, ("f64",), defined=False),
    "tfrt.cast.i64_to_f32": _Row(1, ("f32",), defined=False),
    "tfrt.cast.i64_to_f64": _Row(1, ("f64",), defined=False),
    "tfrt.cast.f32_to_i64": _Row(1, ("i64",), defined=False),
    "tfrt.cast.f64_to_i64": _Row(1, ("i64",), defined=False),
    "tfrt.print.T": _Row(2, (CHAIN,), "i1 i32 i64 f32 f64"),
    "tfrt_test.count3.T": _Row(1, ("T", "T", "T"), "i32 i64"),
    "tfrt_test.get_string": _Row(0, (_STRING,)),
    "tfrt_test.get_string_sync": _Row(0, (_STRING,)),
    "tfrt_test.decode_jpeg": _Row(1, (TENSOR,)),
    "tfrt_test.resize_bilinear": _Row(3, (TENSOR,)),
    "tfrt_test.parse_example_from_bytes": _Row(1, (_EXAMPLE,)),
    "tfrt_test.get_bytes_field_from_example": _Row(2, (_STRING,)),
    "tfrt_test.get_int64_field_from_example": _Row(2, ("i64",)),
    "tfrt_dht.print_tensor": _Row(2, (CHAIN,)),
    "tfrt_dht.print_tensor_shape": _Row(2, (CHAIN,), defined=False),
    "tfrt_dht.print_buffer": _Row(2, (CHAIN,)),
    "tfrt_dht.get_tensor_shape": _Row(1, (SHAPE,)),
    "tfrt_dht.tensor_equal.T": _Row(3, ("i1", CHAIN), _TENSOR_ELEMENTS),
    "tfrt_dht.tensor_allclose.T": _Row(3, ("i1", CHAIN), defined=False),
    "tfrt_dht.make_tensor.T": _Row(3, (TENSOR, CHAIN), _TENSOR_ELEMENTS),
    "tfrt_dht.get_buffer": _Row(2, (BUFFER, CHAIN)),
    "tfrt_dht.get_buffer_slice": _Row(3, (BUFFER,)),
    "tfrt_dht.allocate_buffer": _Row(2, (BUFFER,)),
    "tfrt_dht_sync.print_tensor": _Row(1, ()),
    "tfrt_dht_sync.allocate_buffer": _Row(2, (BUFFER,)),
    "tfrt_dht_sync.get_tensor_shape": _Row(1, (SHAPE,)),
    "tfrt_dht_sync.make_tensor.T": _Row(2, (TENSOR,), _TENSOR_ELEMENTS),
    "tfrt_dht_sync.get_buffer_slice": _Row(3, (BUFFER,)),
    "coo.print_tensor": _Row(2, (CHAIN,)),
    "coo.convert_dht_to_coo.T.R": _Row(2, (TENSOR, CHAIN), *_COO),
    "coo.convert_coo_to_dht.T.R": _Row(2, (TENSOR, CHAIN), *_COO),
    "coo.tensor_equal.T.R": _Row(3, ("i1", CHAIN), *_COO),
    "ts.print_shape": _Row(2, (CHAIN,)),
    "ts.print_partial_shape": _Row(2, (CHAIN,)),
    "ts.print_fixed_rank_shape.R": _Row(2, (CHAIN,), ranks=4),
    "ts.as_fixed_rank_shape.R": _Row(1, ("!ts.fixed_rank_shape.R",), ranks=4),
    "ts.equal_shape": _Row(2, ("i1",)),
    "ts.get_dimension": _Row(2, ("i64",)),
    "ts.get_num_elements": _Row(1, ("i64",)),
    "ts.to_shape": _Row(1, (SHAPE,)),
    "ts.to_partial_shape": _Row(1, (PARTIAL_SHAPE,)),
    "ts.build_unranked_partial_shape": _Row(0, (PARTIAL_SHAPE,)),
    "ts_sync.get_num_elements": _Row(1, ("i64",)),
    "ts_sync.to_shape": _Row(1, (SHAPE,)),
    "ts_sync.to_partial_shape": _Row(1, (PARTIAL_SHAPE,)),
    "corert.create_dense_tensor.T": _Row(
        0,
        (_HANDLE,),
        "ui8 ui16 ui32 ui64 i1 i8 i16 i32 i64 bf16 f16 f32 f64 complex64 complex128",
    ),
    "corert.const_string_tensor": _Row(0, (_HANDLE,)),
    "corert.get_dst_tensor_type": _Row(2, ("!tfrt.tensor_type",)),
    "corert.transfer": _Row(3, (_HANDLE,)),
    "corert.transfer_inferred_tensortype": _Row(2, (_HANDLE,)),
    "corert.tensorhandle_to_int32": _Row(1, ("i32",)),
}

_COMPLEX_PARTS: Final = {"complex64": DType.F32, "complex128": DType.F64}
_ELEMENTS: Final = {
    "bool": DType.I1,
    **{text: dtype for text, dtype in DTYPE_OF_TEXT.items() if text.isalnum()},
}


def _constant(element: str) -> tuple[Piece, ...]:
    part = _COMPLEX_PARTS.get(element)
    number: tuple[Piece, ...]
    if part is None:
        number = (Number("value", _ELEMENTS[element]),)
    else:
        number = (Number("real", part), Word(","), Number("imaginary", part))
    return (*number, _DICTIONARY, Results((_type_text(element),)))


def _values(element: str) -> NumberList:
    """Complex elements are twice as many numbers: each its real part, then its imaginary one."""
    return NumberList("values", _COMPLEX_PARTS.get(element) or _ELEMENTS[element])


def _uninitialised(_: str) -> tuple[Piece, ...]:
    return (NumberList("shape", DType.I64), _DICTIONARY, Results((TENSOR,)))


class _ElementRow(NamedTuple):
    """As ``_Row``, for operations with an attribute of the element type of their name."""

    pieces: Callable[[str], tuple[Piece, ...]]
    elements: str
    ranks: int = 0


_ELEMENT_FORMS: Final[dict[str, _ElementRow]] = {
    "tfrt.constant.T": _ElementRow(
        _constant, "i1 i32 i64 bf16 f16 f32 f64 ui32 ui64 complex64 complex128"
    ),
    "tfrt.constant_s.T": _ElementRow(_constant, "i64 f16 f32 f64"),
    "tfrt_dht.create_uninitialized_tensor.T.R": _ElementRow(_uninitialised, _TENSOR_ELEMENTS, 5),
    "tfrt_dht_sync.create_uninitialized_tensor.T.R": _ElementRow(
        _uninitialised, _TENSOR_ELEMENTS, 5
    ),
    "tfrt_dht.fill_tensor_with_constant.T": _ElementRow(
        lambda element: (
            Operands(2),
            TypedNumber("value", _COMPLEX_PARTS.get(element) or _ELEMENTS[element]),
            _DICTIONARY,
            _CHAIN_RESULT,
        ),
        _TENSOR_ELEMENTS,
    ),
    "tfrt_dht.set_tensor_with_constant_values.T": _ElementRow(
        lambda element: (Operands(2), _values(element), _DICTIONARY, _CHAIN_RESULT),
        _TENSOR_ELEMENTS,
    ),
    "tfrt_dht_sync.set_tensor_with_constant_values.T": _ElementRow(
        lambda element: (Operands(1), _values(element), _DICTIONARY), _TENSOR_ELEMENTS
    ),
}


@cache
def form_of(name: str) -> Form | None:
    """The form of an operation, or None."""
    if name in _FORMS:
        return Form(_FORMS[name])
    pattern, element, rank = _generalise(name)
    for candidate in (name, pattern):
        row = _OPERAND_FORMS.get(candidate)
        if row is not None:
            types = tuple(_substitute(text, element, rank) for text in row.results)
            pieces = (Operands(row.operands), _DICTIONARY, Results(types))
            return Form(pieces, row.defined and _is_defined(row.elements, row.ranks, element, rank))
    found = _ELEMENT_FORMS.get(pattern) if element else None
    if found is None:
        return None
    return Form(found.pieces(element), _is_defined(found.elements, found.ranks, element, rank))


def _is_defined(elements: str, ranks: int, element: str, rank: str) -> bool:
    """Whether the original defines an operation for an element type and a rank."""
    return (not element or element in elements.split()) and (not rank or int(rank) < ranks)


def _generalise(name: str) -> tuple[str, str, str]:
    """A name with T and R in it, and what these stand for."""
    parts = name.split(".")
    element = rank = ""
    if parts[-1].isdecimal():
        rank, parts[-1] = parts[-1], "R"
    last = -2 if rank else -1
    if len(parts) > -last and (parts[last] in _ELEMENTS or parts[last] in _COMPLEX_PARTS):
        element, parts[last] = parts[last], "T"
    return ".".join(parts), element, rank


def _substitute(text: str, element: str, rank: str) -> str:
    if text == "T":
        return _type_text(element)
    return f"{text[:-1]}{rank}" if text.endswith(".R") else text


def _type_text(element: str) -> str:
    if element in _COMPLEX_PARTS:
        return f"complex<{_COMPLEX_PARTS[element].name.lower()}>"
    return "i1" if element == "bool" else element
