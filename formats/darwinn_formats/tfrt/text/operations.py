"""The operations that have a form of their own, and what that form implies.

An operation that is not here can only be written in its generic form.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from darwinn_formats.tfrt.encoding import DTYPE_OF_TEXT, DType
from darwinn_formats.tfrt.text.form import Form, Piece
from darwinn_formats.tfrt.text.pieces import (
    AttributeDictionary,
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
    Setting,
    StringValue,
    TypedNumber,
    Word,
)

CHAIN: Final = "!tfrt.chain"
TENSOR: Final = "!t.tensor"
BUFFER: Final = "!ht.host_buffer"
SHAPE: Final = "!ts.shape"
PARTIAL_SHAPE: Final = "!ts.partial_shape"

_CHAIN_RESULT = Results((CHAIN,))
_RANGE = (Operand(), Word("to"), Operand(), Word("fixed"), Operand())

_FORMS: Final[dict[str, tuple[Piece, ...]]] = {
    "tfrt.return": (Operands(), OperandTypes()),
    "tfrt.new.chain": (_CHAIN_RESULT,),
    "tfrt.merge.chains": (Operands(), OperandTypes(optional=True), _CHAIN_RESULT),
    "tfrt.call": (Function("callee"), EnclosedOperands(), AttributeDictionary(), FunctionType()),
    "tfrt.if": (Operands(at_least=1), FunctionType(1), Region((0,)), ElseRegion((0,))),
    "tfrt.cond": (
        Operand(),
        Function("a_true_fn"),
        Function("b_false_fn"),
        EnclosedOperands(),
        FunctionType(1),
    ),
    "tfrt.case": (Operand(), FunctionList("branches"), EnclosedOperands(), FunctionType(1)),
    "tfrt.while": (
        Operand(),
        Function("body_fn"),
        EnclosedOperands(),
        EnclosedSetting("parallel_iterations"),
        FunctionType(1),
    ),
    "tfrt.repeat.i32": (Operands(at_least=1), OperandTypes(1, as_results=True), Region((0,))),
    "tfrt.once": (Function("function"), EnclosedOperands(), FunctionType()),
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
        Setting("duration_secs"),
        Word(","),
        Setting("max_count"),
        Setting("num_warmup_runs", 1),
        Region(),
        _CHAIN_RESULT,
    ),
    "tfrt_test.test_cost": (
        Operands(1),
        AttributeDictionary(),
        OperandTypes(optional=True),
        Results(("i32",)),
    ),
    "ts.build_shape": (NumberList("value", DType.I64), Results((SHAPE,))),
    "ts.build_partial_shape": (NumberList("value", DType.I64), Results((PARTIAL_SHAPE,))),
}

_OPERAND_FORMS: Final[dict[str, tuple[int, tuple[str, ...]]]] = {
    "tfrt.add.T": (2, ("T",)),
    "tfrt.minus.T": (2, ("T",)),
    "tfrt.mul.T": (2, ("T",)),
    "tfrt.multiply.T": (2, ("T",)),
    "tfrt.minimum.T": (2, ("T",)),
    "tfrt.and.T": (2, ("T",)),
    "tfrt.equal.T": (2, ("i1",)),
    "tfrt.lessequal.T": (2, ("i1",)),
    "tfrt.div.i32": (2, ("i32", "i32")),
    "tfrt.div.i64": (2, ("i64", "i64")),
    "tfrt.div.f32": (2, ("f32",)),
    "tfrt.div.f64": (2, ("f64",)),
    "tfrt.cast.i64_to_f32": (1, ("f32",)),
    "tfrt.cast.i64_to_f64": (1, ("f64",)),
    "tfrt.cast.f32_to_i64": (1, ("i64",)),
    "tfrt.cast.f64_to_i64": (1, ("i64",)),
    "tfrt.print.T": (2, (CHAIN,)),
    "tfrt_test.count3.T": (1, ("T", "T", "T")),
    "tfrt_dht.print_tensor": (2, (CHAIN,)),
    "tfrt_dht.print_tensor_shape": (2, (CHAIN,)),
    "tfrt_dht.get_tensor_shape": (1, (SHAPE,)),
    "tfrt_dht.tensor_equal.T": (3, ("i1", CHAIN)),
    "tfrt_dht.tensor_allclose.T": (3, ("i1", CHAIN)),
    "tfrt_dht.make_tensor.T": (3, (TENSOR, CHAIN)),
    "tfrt_dht.get_buffer": (2, (BUFFER, CHAIN)),
    "tfrt_dht.get_buffer_slice": (3, (BUFFER,)),
    "tfrt_dht.allocate_buffer": (2, (BUFFER,)),
    "coo.convert_dht_to_coo.T.R": (2, (TENSOR, CHAIN)),
    "coo.convert_coo_to_dht.T.R": (2, (TENSOR, CHAIN)),
    "coo.tensor_equal.T.R": (3, ("i1", CHAIN)),
    "ts.print_shape": (2, (CHAIN,)),
    "ts.print_partial_shape": (2, (CHAIN,)),
    "ts.print_fixed_rank_shape.R": (2, (CHAIN,)),
    "ts.as_fixed_rank_shape.R": (1, ("!ts.fixed_rank_shape.R",)),
    "ts.equal_shape": (2, ("i1",)),
    "ts.get_dimension": (2, ("i64",)),
    "ts.get_num_elements": (1, ("i64",)),
    "ts.to_shape": (1, (SHAPE,)),
    "ts.to_partial_shape": (1, (PARTIAL_SHAPE,)),
    "ts.build_unranked_partial_shape": (0, (PARTIAL_SHAPE,)),
}
"""Operands and types of the results; T and R in a name stand for its element type and rank."""

_COMPLEX_ELEMENTS = {"complex64": DType.F32, "complex128": DType.F64}
_ELEMENTS = {
    "bool": DType.I1,
    **{text: dtype for text, dtype in DTYPE_OF_TEXT.items() if text.isalnum()},
}


@cache
def form_of(name: str) -> Form | None:
    """The form of an operation, or None."""
    if name in _FORMS:
        return Form(_FORMS[name])
    pattern, element, rank = _generalise(name)
    for candidate in (name, pattern):
        if candidate in _OPERAND_FORMS:
            count, results = _OPERAND_FORMS[candidate]
            types = tuple(_substitute(text, element, rank) for text in results)
            return Form((Operands(count), Results(types)))
    return _element_form(pattern, element)


def _generalise(name: str) -> tuple[str, str, str]:
    """A name with T and R in it, and what these stand for."""
    parts = name.split(".")
    element = rank = ""
    if parts[-1].isdecimal():
        rank, parts[-1] = parts[-1], "R"
    last = -2 if rank else -1
    if len(parts) > -last and (parts[last] in _ELEMENTS or parts[last] in _COMPLEX_ELEMENTS):
        element, parts[last] = parts[last], "T"
    return ".".join(parts), element, rank


def _substitute(text: str, element: str, rank: str) -> str:
    if text == "T":
        return _type_text(element)
    return f"{text[:-1]}{rank}" if text.endswith(".R") else text


def _type_text(element: str) -> str:
    if element in _COMPLEX_ELEMENTS:
        return f"complex<{_COMPLEX_ELEMENTS[element].name.lower()}>"
    return "i1" if element == "bool" else element


def _element_form(pattern: str, element: str) -> Form | None:
    """Forms with an attribute of the element type of the name."""
    if not element:
        return None
    if element in _COMPLEX_ELEMENTS and pattern == "tfrt.constant.T":
        part = _COMPLEX_ELEMENTS[element]
        numbers = (Number("real", part), Word(","), Number("imaginary", part))
        return Form((*numbers, Results((_type_text(element),))))
    if pattern == "tfrt_dht.create_uninitialized_tensor.T.R":
        return Form((NumberList("shape", DType.I64), Results((TENSOR,))))
    dtype = _ELEMENTS.get(element)
    if dtype is None:
        return None
    match pattern:
        case "tfrt.constant.T":
            return Form((Number("value", dtype), Results((_type_text(element),))))
        case "tfrt_dht.fill_tensor_with_constant.T":
            return Form((Operands(2), TypedNumber("value", dtype), _CHAIN_RESULT))
        case "tfrt_dht.set_tensor_with_constant_values.T":
            return Form((Operands(2), NumberList("values", dtype), _CHAIN_RESULT))
    return None
