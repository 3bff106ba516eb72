"""What the original's verifiers, and then its converter, find wrong in a module that can be parsed.

The words are theirs, since tests of theirs compare them (``expected-error``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from darwinn_formats.errors import TextError
from darwinn_formats.tfrt.encoding import FunctionKind
from darwinn_formats.tfrt.model import Aggregate, Array, Attribute, Location, Scalar, String
from darwinn_formats.tfrt.text.form import Form
from darwinn_formats.tfrt.text.location_text import error_at
from darwinn_formats.tfrt.text.operations import CHAIN, form_of
from darwinn_formats.tfrt.text.syntax import (
    RETURN,
    Block,
    FunctionReference,
    FunctionReferences,
    Module,
    Operation,
    TextFunction,
)

_INDEX: Final = "i32"
_COST: Final = "_tfrt_cost"


def verify(module: Module, file: str) -> list[TextError]:
    """Errors of a module, where ``file`` is what its locations name: one of each function.

    Those of the verifiers; only where there are none, those of the converter.
    """
    functions = {function.name: function for function in module.functions}
    for find in (_verified, _converted):
        firsts = (next(find(function, functions), None) for function in module.functions)
        found = [error_at(first.location, file, first.reason) for first in firsts if first]
        if found:
            return found
    return []


@dataclass(frozen=True)
class _Problem:
    location: Location
    reason: str


_Functions = dict[str, TextFunction]


@dataclass(frozen=True)
class _Seen:
    """An operation where it stands."""

    operation: Operation
    operands: list[str]
    functions: _Functions

    @property
    def results(self) -> tuple[str, ...]:
        return self.operation.result_types

    def named(self, attribute: str) -> TextFunction | None:
        """The function that an attribute names."""
        reference = self.operation.attributes.get(attribute)
        return self.functions.get(_name(reference))


def _name(reference: object) -> str:
    return reference.name if isinstance(reference, FunctionReference) else ""


def _operations(block: Block, functions: _Functions) -> Iterator[_Seen]:
    """Operations of a block, those of regions after the one that has them."""
    types = block.value_types()
    for operation in block.operations:
        yield _Seen(operation, [types[value] for value in operation.operands], functions)
        for region in operation.regions:
            yield from _operations(region, functions)


# --- verifiers -------------------------------------------------------------------------------


def _verified(function: TextFunction, functions: _Functions) -> Iterator[_Problem]:
    if function.block is None:
        return
    for seen in _operations(function.block, functions):
        for reason in _wrong(seen):
            where = seen.operation.location
            yield _Problem(where, f"'{seen.operation.name}' op {reason}")
        yield from _returns(seen)
    returned, stated = function.block.result_types(), function.result_types
    at = function.block.return_location
    if len(returned) != len(stated):
        counts = f"has {len(returned)} operands, but enclosing function returns {len(stated)}"
        yield _Problem(at, f"'{RETURN}' op {counts}")
        return
    for number, (actual, wanted) in enumerate(zip(returned, stated, strict=True)):
        if actual != wanted:
            reason = f"type of return operand {number} ('{actual}')"
            yield _Problem(at, f"{reason} doesn't match function result type ('{wanted}')")
            return


def _wrong(seen: _Seen) -> Iterator[str]:
    """What is wrong with an operation, as its definition and its verifier have it."""
    form = form_of(seen.operation.name)
    if form is not None and form.printed:
        yield from _against(seen, form)
    check = _VERIFIERS.get(seen.operation.name)
    if check is not None:
        yield from check(seen)


def _against(seen: _Seen, form: Form) -> Iterator[str]:
    """What an operation has otherwise than its definition."""
    operands, results = form.operand_types, form.result_types
    if operands is not None and len(operands) != len(seen.operands):
        counts = f"expected {len(operands)} operands, but found {len(seen.operands)}"
        yield {0: "requires zero operands", 1: "requires a single operand"}.get(
            len(operands), counts
        )
    if results is not None and len(results) != len(seen.results):
        counts = f"expected {len(results)} results"
        yield {0: "requires zero results", 1: "requires one result"}.get(len(results), counts)
    for name in sorted(form.bound):
        if name not in seen.operation.attributes:
            yield f"requires attribute '{name}'"
    for what, wanted, actual in (
        ("operand", operands, seen.operands),
        ("result", results, seen.results),
    ):
        yield from _types(what, wanted or (), actual)
    if operands is None:
        yield from _types("operand", form.wanted_types(len(seen.operands)), seen.operands)


def _types(what: str, wanted: Sequence[str], actual: Sequence[str]) -> Iterator[str]:
    for number, (expected, given) in enumerate(zip(wanted, actual, strict=False)):
        if expected != given:
            yield f"{what} #{number} must be {_described(expected)}, but got '{given}'"


def _described(text: str) -> str:
    """A type in the words of its definition."""
    if text.startswith("!"):
        return f"{text} type"
    if text == "bf16":
        return "bfloat16 type"
    if text.startswith("complex<"):
        return f"complex type with {_described(text[len('complex<') : -1])} elements"
    bits = text.lstrip("uif")
    if text.startswith("f"):
        return f"{bits}-bit float"
    return f"{bits}-bit {'unsigned' if text.startswith('u') else 'signless'} integer"


def _returns(seen: _Seen) -> Iterator[_Problem]:
    """Whether regions return what their operation gives."""
    name = seen.operation.name
    if name not in _RETURNING:
        return
    for region in seen.operation.regions:
        returned = region.result_types()
        if name == _PARALLEL_FOR and not returned:
            continue
        if returned != seen.results:
            reason = f"'{RETURN}' op operand types don't match '{name}' result"
            yield _Problem(region.return_location, reason)
            return


_PARALLEL_FOR: Final = "tfrt.parallel_for.i32"
_RETURNING: Final = frozenset({"tfrt.if", "tfrt.repeat.i32", "tfrt_test.do.async", _PARALLEL_FOR})
"""Operations whose regions return the results."""


def _verify_call(seen: _Seen, attribute: str = "callee") -> Iterator[str]:
    callee = seen.named(attribute)
    if callee is None:
        name = _name(seen.operation.attributes.get(attribute))
        yield f"'{name}' does not reference a valid function"
        return
    yield from _verify_operands(seen.operands, callee, "callee", "")
    if attribute != "callee":
        if callee.result_types:
            yield "Target benchmark function must return zero value."
        return
    yield from _verify_results(seen.results, callee, "callee", "")


def _verify_operands(
    operands: list[str], callee: TextFunction, what: str, which: str
) -> Iterator[str]:
    if len(operands) != len(callee.argument_types):
        yield f"incorrect number of operands for {what}"
    elif operands != list(callee.argument_types):
        yield f"operand type mismatch{which}"


def _verify_results(
    results: tuple[str, ...], callee: TextFunction, what: str, which: str
) -> Iterator[str]:
    if len(results) != len(callee.result_types):
        yield f"incorrect number of results for {what}"
    elif results != callee.result_types:
        yield f"result type mismatch{which}"


def _verify_cond(seen: _Seen) -> Iterator[str]:
    branches = (("a_true_fn", "true function"), ("b_false_fn", "false function"))
    for attribute, _ in branches:
        if seen.named(attribute) is None:
            name = _name(seen.operation.attributes.get(attribute))
            yield f"'{name}' does not reference a valid function"
            return
    for find in (_verify_operands, _verify_results):
        for attribute, what in branches:
            callee = seen.named(attribute)
            assert callee is not None
            if find is _verify_operands:
                yield from _verify_operands(seen.operands[1:], callee, what, f" for {what}")
            else:
                yield from _verify_results(seen.results, callee, what, f" for {what}")


def _verify_if(seen: _Seen) -> Iterator[str]:
    regions = dict(zip(("then", "else"), seen.operation.regions, strict=False))
    if len(seen.operation.regions) != len(regions) or len(regions) != 2:
        yield "requires 2 regions"
        return
    for name, region in regions.items():
        if len(region.argument_types) != len(seen.operands) - 1:
            yield f"incorrect number of arguments to '{name}' block"
    if any(list(region.argument_types) != seen.operands[1:] for region in regions.values()):
        yield "operand/argument type mismatch"


def _verify_repeat(seen: _Seen) -> Iterator[str]:
    if len(seen.results) != len(seen.operands) - 1:
        yield "incorrect number of operands"
    elif list(seen.results) != seen.operands[1:]:
        yield "operand/result type mismatch"


def _verify_parallel_call(seen: _Seen) -> Iterator[str]:
    callee = seen.named("callee")
    if callee is None:
        name = _name(seen.operation.attributes.get("callee"))
        yield f"'{name}' does not reference a valid function"
        return
    wanted = callee.argument_types
    if len(wanted) != len(seen.operands) - 1:
        yield "incorrect number of callee operands"
    elif wanted[:2] != (_INDEX, _INDEX):
        yield "callee must take stard and end indices first"
    elif list(wanted[2:]) != seen.operands[3:]:
        yield "operand type mismatch"
    if len(callee.result_types) > 1:
        yield "invalid callee result type"
    elif callee.result_types not in ((), (CHAIN,)):
        yield "async callee must return a chain"


def _verify_benchmark(seen: _Seen) -> Iterator[str]:
    for region in seen.operation.regions:
        if len(region.returned) != 1:
            yield "incorrect number of return values. One return value is expected"


def _verify_cost(seen: _Seen) -> Iterator[str]:
    cost = seen.operation.attributes.get(_COST)
    if isinstance(cost, Scalar) and cost.value.real <= 0:
        yield "cost value must be larger than 0"


def _verify_op_attributes(seen: _Seen) -> Iterator[str]:
    held = seen.operation.attributes.get("op_attrs")
    entries: Sequence[Attribute] = held.elements if isinstance(held, Aggregate) else ()
    plain = isinstance(held, Array) and held.data
    if plain or not all(map(_is_pair, entries)):
        yield "each op_attr should be a key-value pair, where the key is a string"


def _is_pair(entry: Attribute) -> bool:
    return (
        isinstance(entry, Aggregate)
        and len(entry.elements) == 2
        and isinstance(entry.elements[0], String)
    )


_VERIFIERS: Final[dict[str, Callable[[_Seen], Iterator[str]]]] = {
    "tfrt.call": _verify_call,
    "tfrt.cond": _verify_cond,
    "tfrt.if": _verify_if,
    "tfrt.repeat.i32": _verify_repeat,
    "tfrt.parallel_call.i32": _verify_parallel_call,
    "tfrt_test.benchmark": _verify_benchmark,
    "tfrt_test.sync_benchmark": lambda seen: _verify_call(seen, "target_fn"),
    "tfrt_test.test_cost": _verify_cost,
    "corert.executeop": _verify_op_attributes,
    "corert.executeop.seq": _verify_op_attributes,
}
"""Operations that have a verifier, besides what is checked against definitions."""


# --- the converter ---------------------------------------------------------------------------


def _converted(function: TextFunction, functions: _Functions) -> Iterator[_Problem]:
    block = function.block
    if block is None:
        return
    for seen in _operations(block, functions):
        for attribute in seen.operation.attributes.values():
            for name in references(attribute):
                if name not in functions:
                    yield _Problem(seen.operation.location, f"function @{name} not defined")
    if function.kind is not FunctionKind.SYNC:
        return
    for number, value in enumerate(block.returned):
        reason = ""
        if value < len(block.argument_types):
            reason = "is an argument in a sync function"
        elif value in block.returned[:number]:
            reason = "is duplicated in a sync function"
        if reason:
            yield _Problem(block.return_location, f"return value {number} {reason}")
            return


def references(attribute: object) -> tuple[str, ...]:
    """Functions that an attribute names."""
    match attribute:
        case FunctionReference(name):
            return (name,)
        case FunctionReferences(names):
            return names
        case _:
            return ()
