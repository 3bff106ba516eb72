"""What has to hold before a module is handed on, beyond the flatbuffer: the VM's verifier.

Every name, ordinal, register and branch is checked, so that an interpreter can index with what it
finds. The text of each error says what is wrong and where.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from darwinn_formats.errors import FormatError
from darwinn_formats.flatbuffer import Budget, Span
from darwinn_formats.iree.bytecode import Instruction
from darwinn_formats.iree.calling_convention import REGISTER_TYPES, CallingConvention, parse
from darwinn_formats.iree.module import Function
from darwinn_formats.iree.opcodes import (
    BLOCK,
    F32,
    F64,
    IMPORT_BIT,
    MOVE_BIT,
    PLAIN_ARGUMENT,
    REFERENCE_BIT,
    Field,
)
from darwinn_formats.iree.schema import (
    BytecodeModule,
    Feature,
    FunctionDescriptor,
    FusedLocation,
    NameLocation,
)
from darwinn_formats.iree.versions import READ, unread

_WIDE = frozenset("ld")
_GLOBAL_BYTES = {"i32": 4, "f32": 4, "i64": 8, "f64": 8}
_SCALAR_LIMIT = 0x7FFF
_REFERENCE_LIMIT = 0x3FFF
_PREFIX_FEATURE: Mapping[int, Feature] = {F32: Feature.EXT_F32, F64: Feature.EXT_F64}


def check_definition(module: BytecodeModule) -> None:
    """Names, versions and ordinals of the tables; raises FormatError."""
    _check_version(module)
    _check_names(module)
    functions, signatures = len(module.function_descriptors), len(module.function_signatures)
    if functions != signatures:
        reason = f"{signatures} signatures for {functions} functions"
        raise FormatError("function_signatures", reason, offset=module.file_offset)
    for index, export in enumerate(module.exported_functions):
        if not 0 <= export.internal_ordinal < functions:
            reason = f"{export.internal_ordinal} is none of the {functions} functions"
            field = f"exported_functions[{index}].internal_ordinal"
            raise FormatError(field, reason, offset=export.file_offset)
        if not module.function_signatures[export.internal_ordinal].calling_convention:
            reason = "an exported function needs a calling convention"
            raise FormatError(f"exported_functions[{index}]", reason, offset=export.file_offset)
    _check_state(module)
    _check_debug_database(module)


def _check_version(module: BytecodeModule) -> None:
    refuse_version(module.bytecode_version, module.file_offset)


def refuse_version(version: int, offset: int) -> None:
    """Raise FormatError for a version of the bytecode that is not read."""
    major, minor = version >> 16, version & 0xFFFF
    if minor <= READ.get(major, -1):
        return
    known = ", ".join(f"{entry}.{last}" for entry, last in READ.items())
    found = unread(major)
    why = f" (it has {found.changes})" if found else ""
    reason = f"bytecode version {major}.{minor} is none of those that are known: {known}{why}"
    raise FormatError("bytecode_version", reason, offset=offset)


def _check_names(module: BytecodeModule) -> None:
    named = [("name", module.name, module.file_offset)]
    tables: tuple[tuple[str, tuple[Any, ...], str], ...] = (
        ("types", module.types, "full_name"),
        ("dependencies", module.dependencies, "name"),
        ("imported_functions", module.imported_functions, "full_name"),
        ("exported_functions", module.exported_functions, "local_name"),
    )
    for field, entries, attribute in tables:
        for index, entry in enumerate(entries):
            path = f"{field}[{index}].{attribute}"
            named.append((path, getattr(entry, attribute), entry.file_offset))
    for field, name, offset in named:
        if not name:
            raise FormatError(field, "the name is empty", offset=offset)


def _check_state(module: BytecodeModule) -> None:
    state = module.module_state
    for size in ("global_bytes_capacity", "global_ref_count"):
        if state is not None and getattr(state, size) < 0:
            reason = f"{getattr(state, size)} is negative"
            raise FormatError(f"module_state.{size}", reason, offset=state.file_offset)


def _check_debug_database(module: BytecodeModule) -> None:
    database = module.debug_database
    if database is None:
        return
    count, functions = len(database.location_table), len(module.function_descriptors)
    if len(database.functions) > functions:
        reason = f"{len(database.functions)} source maps for {functions} functions"
        raise FormatError("debug_database.functions", reason, offset=database.file_offset)
    for ordinal, source_map in enumerate(database.functions):
        for index, entry in enumerate(source_map.locations):
            if not 0 <= entry.location < count:
                field = f"debug_database.functions[{ordinal}].locations[{index}]"
                reason = f"{entry.location} is none of the {count} locations"
                raise FormatError(field, reason, offset=source_map.file_offset)
    for index, location in enumerate(database.location_table):
        children: tuple[int, ...] = ()
        if isinstance(location, FusedLocation):
            children = location.locations
        elif isinstance(location, NameLocation):
            children = (location.child_location,)
        if any(not -1 <= child < count for child in children):
            field = f"debug_database.location_table[{index}]"
            reason = f"a child is none of the {count} locations"
            raise FormatError(field, reason, offset=database.file_offset)


def convention_of(text: str, field: str, offset: int) -> CallingConvention | None:
    """Calling convention of a signature, None if it has none."""
    if not text:
        return None
    try:
        return parse(text)
    except FormatError as error:
        raise FormatError(field, error.reason, offset=offset) from None


def check_descriptor(descriptor: FunctionDescriptor, code: Span, field: str) -> None:
    """Place of a function in the bytecode, and the counts of its registers."""
    start, length = descriptor.bytecode_offset, descriptor.bytecode_length
    reason = ""
    if length <= 0 or descriptor.block_count <= 0:
        reason = f"{length} bytes in {descriptor.block_count} blocks are no function"
    elif start < 0 or start + length > len(code):
        reason = f"bytes {start} to {start + length} are not in the {len(code)} of the bytecode"
    elif not 0 <= descriptor.i32_register_count <= _SCALAR_LIMIT:
        reason = f"{descriptor.i32_register_count} registers for numbers"
    elif not 0 <= descriptor.ref_register_count <= _REFERENCE_LIMIT:
        reason = f"{descriptor.ref_register_count} registers for references"
    if reason:
        raise FormatError(field, reason, offset=code.offset)


class FunctionChecker:
    """Checks the functions of one module."""

    def __init__(self, module: BytecodeModule, functions: Sequence[Function]) -> None:
        self.module = module
        self.conventions = tuple(function.convention for function in functions)
        state = module.module_state
        self.global_bytes = 0 if state is None else state.global_bytes_capacity
        self.global_references = 0 if state is None else state.global_ref_count
        self.imports = tuple(
            self._import_convention(index) for index in range(len(module.imported_functions))
        )
        self.limits: Mapping[str, tuple[str, int]] = {
            "T": ("type", len(module.types)),
            "O": ("rodata segment", len(module.rodata_segments)),
        }

    def check(self, function: Function, budget: Budget) -> None:
        """Check one function; raises FormatError.

        Functions may share bytes: the budget bounds what all of them take together.
        """
        budget.structure -= len(function.body)
        if budget.structure < 0:
            reason = "functions share their bytes too often"
            raise FormatError("bytecode", reason, offset=function.body.offset)
        _OneFunction(self, function).check()

    def _import_convention(self, index: int) -> CallingConvention:
        entry = self.module.imported_functions[index]
        field = f"imported_functions[{index}].signature"
        text = "" if entry.signature is None else entry.signature.calling_convention
        convention = convention_of(text, field, entry.file_offset)
        if convention is None:
            raise FormatError(field, "no calling convention", offset=entry.file_offset)
        return convention


@dataclass(frozen=True, slots=True)
class _Branch:
    target: int
    pc: int


class _OneFunction:
    """The checks of one function."""

    def __init__(self, checker: FunctionChecker, function: Function) -> None:
        self.checker = checker
        self.function = function
        descriptor = function.descriptor
        self.scalars = _round_up(descriptor.i32_register_count)
        self.references = _round_up(descriptor.ref_register_count)
        self.features = checker.module.requirements | descriptor.requirements
        self.branches: list[_Branch] = []
        self.blocks: set[int] = set()
        self.pc = 0

    def check(self) -> None:
        self._check_arguments()
        inside = False
        for instruction in self.function.instructions():
            self.pc = instruction.pc
            if (instruction.mnemonic == BLOCK) is inside:
                reason = "the block before has no end" if inside else "no block starts here"
                raise self.fault("block", reason)
            if not inside:
                self.blocks.add(instruction.pc)
            inside = not instruction.operation.terminates
            self._check_instruction(instruction)
        if inside:
            raise self.fault("block", "the last block has no end")
        if len(self.blocks) != self.function.descriptor.block_count:
            declared = self.function.descriptor.block_count
            raise self.fault("block_count", f"{declared} are declared, {len(self.blocks)} found")
        for branch in self.branches:
            if branch.target not in self.blocks:
                self.pc = branch.pc
                raise self.fault("branch", f"no block starts at {branch.target}")

    def fault(self, field: str, reason: str) -> FormatError:
        name = f"functions[{self.function.ordinal}].{field}"
        return FormatError(name, reason, offset=self.function.body.offset + self.pc)

    def _check_arguments(self) -> None:
        convention = self.function.convention
        if convention is None:
            return
        if convention.variadic:
            raise self.fault("signature", f"{convention.text} repeats arguments")
        counts = argument_registers(convention)[1]
        if counts[0] > self.scalars or counts[1] > self.references:
            raise self.fault("signature", f"{convention.text} needs more registers than there are")

    def _check_instruction(self, instruction: Instruction) -> None:
        feature = _PREFIX_FEATURE.get(instruction.operation.prefix)
        if feature is not None and not self.features & feature:
            reason = f"the module does not require {feature.name}"
            raise self.fault(instruction.mnemonic, reason)
        for field, operand in instruction.fields():
            self._check_operand(instruction.mnemonic, field, operand)
        rule = _RULES.get(instruction.mnemonic)
        if rule is not None:
            rule(self, instruction)

    def _check_operand(self, mnemonic: str, field: Field, operand: Any) -> None:
        if field.kind in "ilfdr*":
            self.register(mnemonic, field.kind, operand)
        elif field.kind == "V" and field.type != "n":
            for register in operand:
                self.register(mnemonic, field.type, register)
        elif field.kind == "G":
            self._check_global(mnemonic, operand)
        elif field.kind in self.checker.limits:
            name, limit = self.checker.limits[field.kind]
            if operand >= limit:
                raise self.fault(mnemonic, f"{operand} is none of the {limit} {name}s")
        elif field.kind == "B":
            self.branches.append(_Branch(operand, self.pc))
        elif field.kind == "M":
            self._check_copies(mnemonic, operand)
        elif field.kind == "C":
            for block, copies in operand:
                self.branches.append(_Branch(block, self.pc))
                self._check_copies(mnemonic, copies)

    def register(self, mnemonic: str, kind: str, register: int) -> None:
        if register & REFERENCE_BIT:
            ordinal = register & ~(REFERENCE_BIT | MOVE_BIT)
            if kind not in "r*":
                raise self.fault(mnemonic, f"reference register {ordinal} for a number")
            if ordinal >= self.references:
                reason = f"reference register {ordinal} is none of {self.references}"
                raise self.fault(mnemonic, reason)
            return
        if kind == "r":
            raise self.fault(mnemonic, f"register {register} for a reference")
        if register + (kind in _WIDE) >= self.scalars:
            raise self.fault(mnemonic, f"register {register} is none of {self.scalars}")
        if kind in _WIDE and register % 2:
            raise self.fault(mnemonic, f"register {register} is not even, for 64 bits")

    def _check_global(self, mnemonic: str, operand: int) -> None:
        size = _GLOBAL_BYTES.get(mnemonic.rpartition(".")[2])
        if size is None:
            if operand >= self.checker.global_references:
                count = self.checker.global_references
                raise self.fault(mnemonic, f"{operand} is none of the {count} global references")
        elif operand + size > self.checker.global_bytes or operand % size:
            reason = (
                f"bytes {operand} to {operand + size} of {self.checker.global_bytes} of globals"
            )
            raise self.fault(mnemonic, reason)

    def _check_copies(self, mnemonic: str, copies: Sequence[tuple[int, int]]) -> None:
        for source, destination in copies:
            if (source ^ destination) & REFERENCE_BIT:
                raise self.fault(mnemonic, "copy between a number and a reference")
            self.register(mnemonic, "*", source)
            self.register(mnemonic, "*", destination)

    def check_import(self, instruction: Instruction) -> None:
        if not next(instruction.of_kind("F")) & IMPORT_BIT:
            raise self.fault(instruction.mnemonic, "an import is needed")
        self.callee(instruction)

    def callee(self, instruction: Instruction) -> CallingConvention:
        target: int = next(instruction.of_kind("F"))
        imported, ordinal = target & IMPORT_BIT, target & ~IMPORT_BIT
        known = self.checker.imports if imported else self.checker.conventions
        if ordinal >= len(known):
            name = "imports" if imported else "functions"
            raise self.fault(instruction.mnemonic, f"{ordinal} is none of the {len(known)} {name}")
        convention = known[ordinal]
        if convention is None:
            reason = f"function {ordinal} has no calling convention"
            raise self.fault(instruction.mnemonic, reason)
        return convention

    def check_call(self, instruction: Instruction) -> None:
        convention = self.callee(instruction)
        if convention.variadic:
            raise self.fault(instruction.mnemonic, f"{convention.text} repeats arguments")
        arguments, results = instruction.of_kind("V")
        self.values(instruction.mnemonic, tuple(convention.flat_arguments()), arguments)
        self.values(instruction.mnemonic, convention.results, results)

    def check_variadic_call(self, instruction: Instruction) -> None:
        if not next(instruction.of_kind("F")) & IMPORT_BIT:
            raise self.fault(instruction.mnemonic, "only imports repeat arguments")
        convention = self.callee(instruction)
        segments, arguments, results = instruction.of_kind("V")
        fits = len(segments) == len(convention.arguments) and all(
            (size == PLAIN_ARGUMENT) is not isinstance(argument, tuple)
            for size, argument in zip(segments, convention.arguments, strict=True)
        )
        if not fits:
            reason = f"segments {segments} do not fit {convention.text}"
            raise self.fault(instruction.mnemonic, reason)
        taken = sum(
            size * len(argument) if isinstance(argument, tuple) else 1
            for size, argument in zip(segments, convention.arguments, strict=True)
        )
        if taken != len(arguments):
            reason = f"{len(arguments)} values for {taken} of {convention.text}"
            raise self.fault(instruction.mnemonic, reason)
        self.values(instruction.mnemonic, tuple(convention.flat_arguments(segments)), arguments)
        self.values(instruction.mnemonic, convention.results, results)

    def check_return(self, instruction: Instruction) -> None:
        convention = self.function.convention
        if convention is not None:
            self.values("return", convention.results, next(instruction.of_kind("V")))

    def values(self, mnemonic: str, letters: Sequence[str], registers: Sequence[int]) -> None:
        if len(letters) != len(registers):
            raise self.fault(mnemonic, f"{len(registers)} values for {len(letters)}")
        for letter, register in zip(letters, registers, strict=True):
            self.register(mnemonic, REGISTER_TYPES[letter], register)


_RULES: Mapping[str, Callable[[_OneFunction, Instruction], None]] = {
    "call": _OneFunction.check_call,
    "call.yieldable": _OneFunction.check_call,
    "call.variadic": _OneFunction.check_variadic_call,
    "call.variadic.yieldable": _OneFunction.check_variadic_call,
    "return": _OneFunction.check_return,
    "import.resolved": _OneFunction.check_import,
}


def argument_registers(
    convention: CallingConvention,
) -> tuple[tuple[int, ...], tuple[int, int]]:
    """Registers in which a function finds its arguments, and the counts of both banks.

    Numbers of 64 bits take an even register and the next one.
    """
    registers, scalars, references = [], 0, 0
    for letter in convention.flat_arguments():
        kind = REGISTER_TYPES[letter]
        if kind == "r":
            registers.append(REFERENCE_BIT | references)
            references += 1
            continue
        if kind in _WIDE:
            scalars += scalars % 2
        registers.append(scalars)
        scalars += 2 if kind in _WIDE else 1
    return tuple(registers), (scalars, references)


def _round_up(count: int) -> int:
    """Registers that the virtual machine reserves: a power of two."""
    return 1 << max(count - 1, 0).bit_length()
