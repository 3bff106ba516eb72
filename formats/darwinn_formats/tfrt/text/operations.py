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
from darwinn_formats.tfrt.text.attribute_pieces import (
    AttributeValue,
    EnclosedSetting,
    Function,
    FunctionList,
    Number,
    NumberList,
    Pairs,
    Settings,
    StringValue,
    TypedNumber,
)
from darwinn_formats.tfrt.text.form import Form, Piece
from darwinn_formats.tfrt.text.pieces import (
    AttributeDictionary,
    ElseRegion,
    EnclosedOperands,
    FunctionType,
    MoreOperands,
    Operand,
    Operands,
    OperandTypes,
    Region,
    ResultCount,
    Results,
    Word,
)
from darwinn_formats.tfrt.text.type_names import TENSOR as TENSOR

CHAIN: Final = "!tfrt.chain"
BUFFER: Final = "!ht.host_buffer"
SHAPE: Final = "!ts.shape"
PARTIAL_SHAPE: Final = "!ts.partial_shape"
HANDLE: Final = "!corert.tensorhandle"
HANDLER: Final = "!corert.ophandler"

_CHAIN_RESULT = Results((CHAIN,))
_DICTIONARY = AttributeDictionary()
_RANGE = (Operand(), Word("to"), Operand(), Word("fixed"), Operand())
_BENCHMARK = Settings(("duration_secs", "max_count", "num_warmup_runs"), {"num_warmup_runs": 1})

_EXECUTED = (
    StringValue("op_name"),
    EnclosedOperands(),
    Pairs("op_attrs"),
    Pairs("op_func_attrs"),
)

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
    "corert.const_dense_tensor": (AttributeValue("value"), _DICTIONARY, Results((HANDLE,))),
    "corert.get_op_handler": (
        Operand(),
        StringValue("op_handler_name"),
        _DICTIONARY,
        Results((HANDLER,)),
    ),
    "corert.register_op_handler": (
        Operand(),
        StringValue("op_handler_name"),
        _DICTIONARY,
        _CHAIN_RESULT,
    ),
    "corert.executeop": (EnclosedOperands(number=1), *_EXECUTED, ResultCount(HANDLE)),
    "corert.executeop.seq": (
        EnclosedOperands(number=2),
        *_EXECUTED,
        ResultCount(HANDLE, (CHAIN,)),
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
    """Operations of operands and attributes: types of their operands and results.

    T and R in a name stand for its element type and rank; ``elements`` and ``ranks`` are those for
    which the original defines the operation. It defines none where ``defined`` is false.
    """

    operands: str
    results: str
    elements: str = ""
    ranks: int = 0
    defined: bool = True


_SHORT: Final = {
    "chain": CHAIN,
    "tensor": TENSOR,
    "buffer": BUFFER,
    "shape": SHAPE,
    "partial": PARTIAL_SHAPE,
    "fixed": "!ts.fixed_rank_shape.R",
    "string": "!tfrt.string",
    "example": "!proto.example",
    "device": "!tfrt.device",
    "tensor_type": "!tfrt.tensor_type",
    "handle": HANDLE,
    "handler": HANDLER,
}
"""Types in the tables, besides those that are their own names."""
_TENSOR_ELEMENTS: Final = "ui8 ui16 ui32 ui64 i32 f32 i64 bool complex64 complex128"
_COO: Final = ("i32 f32", 4)

_OPERAND_FORMS: Final[dict[str, _Row]] = {
    "tfrt.new.chain": _Row("", "chain"),
    "tfrt.get_device": _Row("chain", "device"),
    "tfrt.add.T": _Row("T T", "T", "i32 i64 f32 f64"),
    "tfrt.minus.T": _Row("T T", "T", defined=False),
    "tfrt.mul.T": _Row("T T", "T", "i32 i64"),
    "tfrt.mul_s.T": _Row("T T", "T", "i32 i64"),
    "tfrt.multiply.T": _Row("T T", "T", defined=False),
    "tfrt.minimum.T": _Row("T T", "T", defined=False),
    "tfrt.and.T": _Row("T T", "T", "i1"),
    "tfrt.equal.T": _Row("T T", "i1", "i32 i64"),
    "tfrt.lessequal.T": _Row("T T", "i1", defined=False),
    "tfrt.div.i32": _Row("i32 i32", "i32 i32", "i32"),
    "tfrt.div.i64": _Row("i64 i64", "i64 i64", "i64"),
    "tfrt.div.f32": _Row("f32 f32", "f32", defined=False),
    "tfrt.div.f64": _Row("f64 f64", "f64", defined=False),
    "tfrt.cast.i64_to_f32": _Row("i64", "f32", defined=False),
    "tfrt.cast.i64_to_f64": _Row("i64", "f64", defined=False),
    "tfrt.cast.f32_to_i64": _Row("f32", "i64", defined=False),
    "tfrt.cast.f64_to_i64": _Row("f64", "i64", defined=False),
    "tfrt.print.T": _Row("T chain", "chain", "i1 i32 i64 f32 f64"),
    "tfrt_test.count3.T": _Row("T", "T T T", "i32 i64"),
    "tfrt_test.get_string": _Row("", "string"),
    "tfrt_test.get_string_sync": _Row("", "string"),
    "tfrt_test.decode_jpeg": _Row("string", "tensor"),
    "tfrt_test.resize_bilinear": _Row("tensor i64 i64", "tensor"),
    "tfrt_test.parse_example_from_bytes": _Row("string", "example"),
    "tfrt_test.get_bytes_field_from_example": _Row("example string", "string"),
    "tfrt_test.get_int64_field_from_example": _Row("example string", "i64"),
    "tfrt_dht.print_tensor": _Row("tensor chain", "chain"),
    "tfrt_dht.print_tensor_shape": _Row("tensor chain", "chain", defined=False),
    "tfrt_dht.print_buffer": _Row("buffer chain", "chain"),
    "tfrt_dht.get_tensor_shape": _Row("tensor", "shape"),
    "tfrt_dht.tensor_equal.T": _Row("tensor tensor chain", "i1 chain", _TENSOR_ELEMENTS),
    "tfrt_dht.tensor_allclose.T": _Row("tensor tensor chain", "i1 chain", defined=False),
    "tfrt_dht.make_tensor.T": _Row("buffer shape chain", "tensor chain", _TENSOR_ELEMENTS),
    "tfrt_dht.get_buffer": _Row("tensor chain", "buffer chain"),
    "tfrt_dht.get_buffer_slice": _Row("buffer i64 i64", "buffer"),
    "tfrt_dht.allocate_buffer": _Row("i64 i64", "buffer"),
    "tfrt_dht_sync.print_tensor": _Row("tensor", ""),
    "tfrt_dht_sync.allocate_buffer": _Row("i64 i64", "buffer"),
    "tfrt_dht_sync.get_tensor_shape": _Row("tensor", "shape"),
    "tfrt_dht_sync.make_tensor.T": _Row("buffer shape", "tensor", _TENSOR_ELEMENTS),
    "tfrt_dht_sync.get_buffer_slice": _Row("buffer i64 i64", "buffer"),
    "coo.print_tensor": _Row("tensor chain", "chain"),
    "coo.convert_dht_to_coo.T.R": _Row("tensor chain", "tensor chain", *_COO),
    "coo.convert_coo_to_dht.T.R": _Row("tensor chain", "tensor chain", *_COO),
    "coo.tensor_equal.T.R": _Row("tensor tensor chain", "i1 chain", *_COO),
    "ts.print_shape": _Row("shape chain", "chain"),
    "ts.print_partial_shape": _Row("partial chain", "chain"),
    "ts.print_fixed_rank_shape.R": _Row("fixed chain", "chain", ranks=4),
    "ts.as_fixed_rank_shape.R": _Row("shape", "fixed", ranks=4),
    "ts.equal_shape": _Row("shape shape", "i1"),
    "ts.get_dimension": _Row("shape i32", "i64"),
    "ts.get_num_elements": _Row("shape", "i64"),
    "ts.to_shape": _Row("partial", "shape"),
    "ts.to_partial_shape": _Row("shape", "partial"),
    "ts.build_unranked_partial_shape": _Row("", "partial"),
    "ts_sync.get_num_elements": _Row("shape", "i64"),
    "ts_sync.to_shape": _Row("partial", "shape"),
    "ts_sync.to_partial_shape": _Row("shape", "partial"),
    "corert.create_dense_tensor.T": _Row(
        "",
        "handle",
        "ui8 ui16 ui32 ui64 i1 i8 i16 i32 i64 bf16 f16 f32 f64 complex64 complex128",
    ),
    "corert.const_string_tensor": _Row("", "handle"),
    "corert.get_dst_tensor_type": _Row("handle device", "tensor_type"),
    "corert.transfer": _Row("handle device tensor_type", "handle"),
    "corert.transfer_inferred_tensortype": _Row("handle device", "handle"),
    "corert.tensorhandle_to_int32": _Row("handle", "i32"),
}

_COMPLEX_PARTS: Final = {"complex64": DType.F32, "complex128": DType.F64}
_ELEMENTS: Final = {
    "bool": DType.I1,
    **{text: dtype for text, dtype in DTYPE_OF_TEXT.items() if text.isalnum()},
}


def _constant(element: str) -> tuple[Piece, ...]:
    part = _COMPLEX_PARTS.get(element)
    if part is None:
        return (Number("value", _ELEMENTS[element]),)
    return (Number("real", part), Word(","), Number("imaginary", part))


def _values(element: str) -> tuple[Piece, ...]:
    """Complex elements are twice as many numbers: each its real part, then its imaginary one."""
    return (NumberList("values", _COMPLEX_PARTS.get(element) or _ELEMENTS[element]),)


def _value(element: str) -> tuple[Piece, ...]:
    return (TypedNumber("value", _COMPLEX_PARTS.get(element) or _ELEMENTS[element]),)


def _shape(_: str) -> tuple[Piece, ...]:
    return (NumberList("shape", DType.I64),)


class _ElementRow(NamedTuple):
    """As ``_Row``, for operations with an attribute; ``pieces`` are its text."""

    operands: str
    results: str
    pieces: Callable[[str], tuple[Piece, ...]]
    elements: str
    ranks: int = 0
    defined: bool = True


_ELEMENT_FORMS: Final[dict[str, _ElementRow]] = {
    "tfrt.constant.T": _ElementRow(
        "", "T", _constant, "i1 i32 i64 bf16 f16 f32 f64 ui32 ui64 complex64 complex128"
    ),
    "tfrt.constant_s.T": _ElementRow("", "T", _constant, "i64 f16 f32 f64"),
    "tfrt_dht.create_uninitialized_tensor.T.R": _ElementRow(
        "", "tensor", _shape, _TENSOR_ELEMENTS, 5
    ),
    "tfrt_dht_sync.create_uninitialized_tensor.T.R": _ElementRow(
        "", "tensor", _shape, _TENSOR_ELEMENTS, 5
    ),
    "tfrt_dht.fill_tensor_with_constant.T": _ElementRow(
        "tensor chain", "chain", _value, _TENSOR_ELEMENTS
    ),
    "tfrt_dht.set_tensor_with_constant_values.T": _ElementRow(
        "tensor chain", "chain", _values, _TENSOR_ELEMENTS
    ),
    "tfrt_dht_sync.set_tensor_with_constant_values.T": _ElementRow(
        "tensor", "", _values, _TENSOR_ELEMENTS
    ),
}

_OTHER_OPERANDS: Final = {"corert.executeop": HANDLE, "corert.executeop.seq": HANDLE}
"""Type of all further operands."""

_FIRST_OPERANDS: Final = {
    "tfrt.if": ("i1",),
    "tfrt.cond": ("i1",),
    "tfrt.case": ("i32",),
    "tfrt.while": ("i1",),
    "tfrt.repeat.i32": ("i32",),
    "tfrt.parallel_for.i32": ("i32", "i32", "i32"),
    "tfrt.parallel_call.i32": ("i32", "i32", "i32"),
    "corert.cond": (HANDLE, CHAIN),
    "corert.while": (CHAIN,),
    "corert.executeop": (HANDLER,),
    "corert.executeop.seq": (HANDLER, CHAIN),
    "corert.get_op_handler": (CHAIN,),
    "corert.register_op_handler": (HANDLER,),
}
"""Types of the first operands of operations with any number of them."""


@cache
def form_of(name: str) -> Form | None:
    """The form of an operation, or None."""
    if name in _FORMS:
        pieces = _FORMS[name]
        results = next((piece.types for piece in pieces if isinstance(piece, Results)), None)
        return Form(
            pieces,
            first_types=_FIRST_OPERANDS.get(name, ()),
            other_type=_OTHER_OPERANDS.get(name),
            result_types=results,
        )
    pattern, element, rank = _generalise(name)
    row: _Row | _ElementRow | None = _OPERAND_FORMS.get(name) or _OPERAND_FORMS.get(pattern)
    own: tuple[Piece, ...] = ()
    if row is None:
        found = _ELEMENT_FORMS.get(pattern) if element else None
        if found is None:
            return None
        row, own = found, found.pieces(element)
    operands, types = (
        tuple(_type(text, element, rank) for text in texts.split())
        for texts in (row.operands, row.results)
    )
    return Form(
        (Operands(len(operands)), *own, _DICTIONARY, Results(types)),
        row.defined and _is_defined(row.elements, row.ranks, element, rank),
        operand_types=operands,
        result_types=types,
    )


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


def _type(text: str, element: str, rank: str) -> str:
    """The type that a word of the tables stands for."""
    if text == "T":
        return _type_text(element)
    full = _SHORT.get(text, text)
    return f"{full[:-1]}{rank}" if full.endswith(".R") else full


def _type_text(element: str) -> str:
    if element in _COMPLEX_PARTS:
        return f"complex<{_COMPLEX_PARTS[element].name.lower()}>"
    return "i1" if element == "bool" else element
