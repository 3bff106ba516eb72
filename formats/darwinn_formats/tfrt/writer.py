"""Write BEF files: the layout of the original converter, byte for byte.

Sections come in a fixed order; a section says its alignment only where its contents would
otherwise be misaligned in the file.
"""

from __future__ import annotations

from collections.abc import Iterable

from darwinn_formats.errors import FormatError
from darwinn_formats.signatures import BEF
from darwinn_formats.tfrt.attributes import emit_attribute
from darwinn_formats.tfrt.emitter import Emitter
from darwinn_formats.tfrt.encoding import (
    KERNEL_ALIGNMENT,
    PSEUDO_KERNEL_CODE,
    PSEUDO_KERNEL_LOCATION,
    VERSION,
    FunctionKind,
    LocationKind,
    SectionId,
)
from darwinn_formats.tfrt.model import (
    BefFile,
    Body,
    CallSite,
    FileLineColumn,
    Function,
    Fused,
    Kernel,
    Location,
    NameLocation,
    Untyped,
)


def dump(file: BefFile) -> bytes:
    """Write a BEF file; ``load`` of the result gives an equal file.

    Raises:
        FormatError: naming the field, when something does not fit or refers to nothing.
    """
    return _Writer(file).write()


class _Writer:
    def __init__(self, file: BefFile) -> None:
        self.file = file
        self.output = bytearray(BEF + bytes([VERSION]))
        self.locations = _Locations()
        self.attribute_names = Emitter()
        self.register_types = Emitter()
        self.kernel_codes = _numbered(file.kernel_names)
        self.type_numbers = _numbered(file.types)

    def write(self) -> bytes:
        strings = self.strings()
        attributes, attribute_types = self.attributes()
        functions, offsets = self.functions()
        self.section(SectionId.STRINGS, strings)
        self.section(SectionId.ATTRIBUTES, attributes)
        self.section(SectionId.KERNELS, self.name_table(self.file.kernel_names))
        self.section(SectionId.TYPES, self.name_table(self.file.types))
        self.section(SectionId.FUNCTION_INDEX, self.function_index(offsets))
        self.section(SectionId.FUNCTIONS, functions)
        if self.locations.data.size:
            self.section(SectionId.LOCATION_STRINGS, self.locations.strings)
            self.section(SectionId.LOCATIONS, self.locations.data)
        if self.file.attribute_data is None:
            self.section(SectionId.ATTRIBUTE_TYPES, attribute_types)
        if self.file.has_attribute_names:
            self.section(SectionId.ATTRIBUTE_NAMES, self.attribute_names)
        if self.file.has_register_types:
            self.section(SectionId.REGISTER_TYPES, self.register_types)
        for unknown in self.file.unknown_sections:
            section = Emitter()
            section.alignment = unknown.alignment
            section.append(unknown.data)
            self.section(unknown.id, section)
        return bytes(self.output)

    def section(self, number: int, contents: Emitter) -> None:
        header = Emitter()
        header.integer(contents.size << 1)
        misaligned = (len(self.output) + 1 + header.size) % contents.alignment != 0
        self.output.append(number)
        header = Emitter()
        header.integer(contents.size << 1 | misaligned)
        self.output += header.data
        if misaligned:
            self.output.append(contents.alignment)
            self.output += b"\xcc" * (-len(self.output) % contents.alignment)
        self.output += contents.data

    def strings(self) -> Emitter:
        section = Emitter()
        self.string_offsets: dict[str, int] = {}
        for index, text in enumerate(self.file.strings):
            self.string_offsets[text] = _append_string(section, text, f"strings[{index}]")
        return section

    def string(self, text: str, field: str) -> int:
        offset = self.string_offsets.get(text)
        if offset is None:
            raise FormatError(field, f"{text!r} is not one of the strings")
        return offset

    def attributes(self) -> tuple[Emitter, Emitter]:
        section, types = Emitter(), Emitter()
        self.attribute_offsets: list[int] = []
        if self.file.attribute_data is not None:
            # Offsets without types: the section is kept as it is, aligned for any of them.
            section.alignment = 8
            section.append(self.file.attribute_data)
            for index, attribute in enumerate(self.file.attributes):
                if not isinstance(attribute, Untyped):
                    raise FormatError(f"attributes[{index}]", "attribute data without types")
                self.attribute_offsets.append(attribute.offset)
            return section, types
        types.integer(len(self.file.attributes))
        for index, attribute in enumerate(self.file.attributes):
            offset = emit_attribute(section, attribute, f"attributes[{index}]")
            assert not isinstance(attribute, Untyped)
            self.attribute_offsets.append(offset)
            types.integer(offset)
            types.integer(attribute.code)
        return section, types

    def name_table(self, names: Iterable[str]) -> Emitter:
        section = Emitter()
        offsets = [self.string(name, "name table") for name in names]
        section.integer(len(offsets))
        for offset in offsets:
            section.integer(offset)
        return section

    def type(self, name: str | None, field: str) -> int:
        number = None if name is None else self.type_numbers.get(name)
        if number is None:
            raise FormatError(field, f"{name!r} is not one of the types")
        return number

    def function_index(self, offsets: list[int]) -> Emitter:
        section = Emitter()
        section.integer(len(offsets))
        for index, (function, offset) in enumerate(zip(self.file.functions, offsets, strict=True)):
            path = f"functions[{index}]"
            section.append(bytes([function.kind]))
            section.integer(offset)
            section.integer(self.string(function.name, f"{path}.name"))
            for types in (function.argument_types, function.result_types):
                section.integer(len(types))
                for name in types:
                    section.integer(self.type(name, path))
        return section

    def functions(self) -> tuple[Emitter, list[int]]:
        section, offsets = Emitter(), []
        self.attribute_names.integer(len(self.file.functions))
        self.register_types.integer(len(self.file.functions))
        for index, function in enumerate(self.file.functions):
            offsets.append(section.size)
            path = f"functions[{index}]"
            if (function.body is None) != (function.kind is FunctionKind.NATIVE):
                raise FormatError(f"{path}.body", "a native function has none, all others have one")
            if function.body is not None:
                self.function(section, function, function.body, path)
        return section, offsets

    def function(self, section: Emitter, function: Function, body: Body, path: str) -> None:
        section.integer(self.locations.offset(body.location, body.location_offset))
        section.integer(len(body.registers))
        self.register_types.integer(len(body.registers))
        for register in body.registers:
            section.integer(register.uses)
            if self.file.has_register_types:
                self.register_types.integer(self.type(register.type, f"{path}.registers"))
        section.integer(len(body.kernels) + 1)
        self.attribute_names.integer(len(body.kernels) + 1)
        kernels = Emitter()
        for word in (0, 0, body.entry_stream):
            section.integer(word)
        arguments = range(len(function.argument_types))
        self.kernel_record(
            kernels,
            (PSEUDO_KERNEL_CODE, PSEUDO_KERNEL_LOCATION),
            ((), (), (), (len(body.registers), *arguments)),
            body.entry_used_by,
            path,
        )
        for number, kernel in enumerate(body.kernels):
            for word in (kernels.size, kernel.ready_count, kernel.stream):
                section.integer(word)
            self.kernel(kernels, kernel, f"{path}.kernels[{number}]")
        for register_number in body.results:
            section.integer(register_number)
        section.align(KERNEL_ALIGNMENT)
        section.part(kernels)

    def kernel(self, kernels: Emitter, kernel: Kernel, path: str) -> None:
        code = self.kernel_codes.get(kernel.name)
        if code is None:
            raise FormatError(path, f"{kernel.name!r} is not one of the kernel names")
        location = self.locations.offset(kernel.location, kernel.location_offset)
        for index in kernel.attributes:
            if not 0 <= index < len(self.attribute_offsets):
                raise FormatError(f"{path}.attributes", f"attribute {index} does not exist")
        attributes = tuple(self.attribute_offsets[index] for index in kernel.attributes)
        if self.file.has_attribute_names:
            names = kernel.attribute_names
            if names is None or len(names) != len(attributes):
                raise FormatError(f"{path}.attribute_names", "one name for each attribute")
            for name in names:
                self.attribute_names.integer(self.string(name, f"{path}.attribute_names"))
        body = (kernel.arguments, attributes, kernel.functions, kernel.results)
        self.kernel_record(kernels, (code, location), body, kernel.used_by, path)

    def kernel_record(
        self,
        kernels: Emitter,
        identity: tuple[int, int],
        body: tuple[tuple[int, ...], ...],
        used_by: tuple[tuple[int, ...], ...],
        path: str,
    ) -> None:
        if len(used_by) != len(body[-1]):
            raise FormatError(f"{path}.used_by", "one list of users for each result")
        words = [*identity, *map(len, body), *map(len, used_by)]
        for part in (*body, *used_by):
            words += part
        for word in words:
            kernels.fixed(word, path)


def _numbered(names: tuple[str, ...]) -> dict[str, int]:
    """Number of each name; the first one, where a table names something twice."""
    numbers: dict[str, int] = {}
    for number, name in enumerate(names):
        numbers.setdefault(name, number)
    return numbers


def _append_string(section: Emitter, text: str, field: str) -> int:
    data = text.encode("utf-8", "surrogateescape")
    if b"\0" in data:
        raise FormatError(field, "a string cannot hold a zero byte")
    return section.append(data + b"\0")


class _Locations:
    """The sections of locations and of their strings: one entry for each function and kernel."""

    def __init__(self) -> None:
        self.data = Emitter()
        self.strings = Emitter()
        self.string_offsets: dict[str, int] = {}

    def offset(self, location: Location | None, offset: int) -> int:
        return offset if location is None else self.emit(location)

    def emit(self, location: Location) -> int:
        start = self.data.size
        match location:
            case FileLineColumn(file, line, column):
                self.data.append(bytes([LocationKind.FILE_LINE_COLUMN]))
                for value in (self.string(file), line, column):
                    self.data.integer(value)
            case NameLocation(name, child):
                self.data.append(bytes([LocationKind.NAME]))
                self.data.integer(self.string(name))
                self.emit(child)
            case CallSite(callee, caller):
                self.data.append(bytes([LocationKind.CALL_SITE]))
                self.emit(callee)
                self.emit(caller)
            case Fused(locations):
                self.data.append(bytes([LocationKind.FUSED]))
                self.data.integer(len(locations))
                for entry in locations:
                    self.emit(entry)
            case _:
                self.data.append(bytes([LocationKind.UNKNOWN]))
        return start

    def string(self, text: str) -> int:
        if text not in self.string_offsets:
            self.string_offsets[text] = _append_string(self.strings, text, "location")
        return self.string_offsets[text]
