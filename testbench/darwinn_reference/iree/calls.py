"""Calls of functions of the same module, and of imports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from darwinn_formats.errors import ExecutionError
from darwinn_formats.iree import CallingConvention, Instruction
from darwinn_formats.iree.calling_convention import parse
from darwinn_formats.iree.opcodes import IMPORT_BIT

from darwinn_reference.errors import Unsupported
from darwinn_reference.iree.binding import Binding, Step
from darwinn_reference.iree.imports import PlacedError


def call(binding: Binding, instruction: Instruction) -> Step:
    """Call a function by its ordinal, which says whether it is an import."""
    lists = list(instruction.of_kind("V"))
    target: int = instruction.operands[0]
    segments = lists[0] if "variadic" in instruction.mnemonic else None
    if target & IMPORT_BIT:
        return _import_call(binding, target & ~IMPORT_BIT, segments, *lists[-2:])
    return _internal_call(binding, target, *lists[-2:])


def _internal_call(
    binding: Binding, ordinal: int, arguments: Sequence[int], results: Sequence[int]
) -> Step:
    run, function = binding.call, binding.state.module.functions[ordinal]
    assert function.convention is not None
    letters = function.convention.flat_arguments()
    taken = [binding.taken(*pair) for pair in zip(letters, arguments, strict=True)]
    given = binding.given(function.convention.results, results)

    def step() -> None:
        values = run(function, [read() for read in taken])
        for (bank, index), value in zip(given, values, strict=True):
            bank[index] = value

    return step


def _import_call(
    binding: Binding,
    ordinal: int,
    segments: Sequence[int] | None,
    arguments: Sequence[int],
    results: Sequence[int],
) -> Step:
    entry = binding.state.module.definition.imported_functions[ordinal]
    handler, host = binding.state.imports[ordinal], binding.state.host
    convention = parse(entry.signature.calling_convention if entry.signature else "0")
    taken = _arguments(binding, convention, segments, arguments)
    given = binding.given(convention.results, results)
    several = len(given) > 1

    def step() -> None:
        if handler is None:
            raise ExecutionError(f"the import {entry.full_name} is optional and not there")
        values = [
            [tuple(read() for read in item) for item in value]
            if isinstance(value, list)
            else value()
            for value in taken
        ]
        try:
            result = handler(host, *values)
        except (PlacedError, Unsupported):
            raise
        except ExecutionError as error:
            raise ExecutionError(f"{entry.full_name}: {error}") from None
        for (bank, index), value in zip(given, result if several else (result,), strict=False):
            bank[index] = value

    return step


def resolved(binding: Binding, instruction: Instruction) -> Step:
    """Whether an optional import is there."""
    target, register = instruction.operands
    there = int(binding.state.imports[target & ~IMPORT_BIT] is not None)
    return binding.set("i", register, there)


def _arguments(
    binding: Binding,
    convention: CallingConvention,
    segments: Sequence[int] | None,
    registers: Sequence[int],
) -> list[Any]:
    """What reads the arguments of a call; for a repeated tuple a list of tuples of that."""
    left = iter(registers)
    readers: list[Any] = []
    for index, argument in enumerate(convention.arguments):
        if isinstance(argument, tuple):
            count = 0 if segments is None else segments[index]
            readers.append(
                [[binding.taken(letter, next(left)) for letter in argument] for _ in range(count)]
            )
        else:
            readers.append(binding.taken(argument, next(left)))
    return readers
